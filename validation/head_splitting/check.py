"""A head and its splittings: equal Q and K with Σ a_h V_h = a V, permutations, and other factors of QᵀK, run beside each other."""

from collections.abc import Iterator

import numpy as np
from mpi4py import MPI

import pde_solver as ps

SOURCE = "derived for this project; the subject is that of arXiv:2604.23681"

CIRCLE = (
    "model.manifold=circle",
    "model.dimension=",
    "model.attention.0={beta=2.0, query=[[1.0, 0.3], [-0.2, 0.8]], key=[[0.9, 0.2], [0.1, 1.1]], value=[[1.0, 0.3], [-0.2, 0.6]]}",
    "initial.components.0.mean=[1.0, 0.0]",
    "initial.components.1.mean=[-0.3, 0.8]",
)
PLANE = (
    "model.manifold=euclidean",
    "model.dimension=2",
    "model.attention.0={beta=0.5, query=[[1.0, 0.3], [-0.2, 0.8]], key=[[0.9, 0.2], [0.1, 1.1]], "
    "value=[[-1.0, 0.3], [-0.2, -0.6]]}",
    "initial={law='mixture', components=[{law='gaussian', mean=[1.0, 0.3], covariance=0.3}, "
    "{law='gaussian', mean=[-0.8, -0.5], covariance=0.2}]}",
)
SPACES = {
    "S¹": (CIRCLE, "mesh={kind='circle', cells=32}"),
    "S²": ((), "mesh={kind='icosphere', level=1}"),
    "R²": (PLANE, "mesh={kind='rectangle', lower=[-4.0, -4.0], upper=[4.0, 4.0], cells=[8, 8]}"),
}
METHODS = {
    "finite volume, order 2": "discretisation={kind='finite-volume', order=2}",
    "discontinuous Galerkin, degree 2": "discretisation={kind='discontinuous-galerkin', degree=2}",
    "particles": "discretisation={kind='particles', count=200, seed=1}",
}
#: Of four heads; the sum is 1.
WEIGHTS = (0.7, -1.1, 0.9, 0.5)
#: Of the time when quick: five steps instead of 25.
QUICK = "time={stop=0.1, step=0.02}"
NORMALISERS = {"SA": ps.Softmax(), "USA": ps.Unnormalised(log_scale=1.0)}


def head(one: ps.Attention, **changes: object) -> ps.Attention:
    """The head with some of its parts replaced."""
    parts = {name: getattr(one, name) for name in ("beta", "query", "key", "value", "normaliser", "weight")}
    return ps.Attention(**(parts | changes))


def total(heads: list[ps.Attention]):
    """The sum of heads, in their order."""
    term = heads[0]
    for further in heads[1:]:
        term = term + further
    return term


def splittings(one: ps.Attention) -> dict[str, list[list[ps.Attention]]]:
    """The same velocity in other words, by the kind of splitting; `one` has the weight 1."""
    rng = np.random.default_rng(1)
    d = len(one.value)
    parts = list(rng.standard_normal((3, d, d)))
    parts.append(one.value - sum(parts))
    of_values = [head(one, value=part) for part in parts]
    return {
        "4 heads with Σ V_h = V, in two orders": [of_values, [of_values[i] for i in (2, 0, 3, 1)]],
        "4 heads with weights, Σ a_h V_h = V": [
            [head(one, value=part / a, weight=a) for a, part in zip(WEIGHTS, parts, strict=True)],
            [head(one, weight=a) for a in WEIGHTS],
        ],
        "five factorisations of B = β QᵀK": [[other] for other in factorisations(one, rng)],
    }


def factorisations(one: ps.Attention, rng: np.random.Generator) -> list[ps.Attention]:
    """Heads with other Q and K, of head dimension d and d + 2, and the same β QᵀK."""
    d = len(one.value)
    form = one.query.T @ one.key
    left, sizes, right = np.linalg.svd(form)
    change = rng.standard_normal((d, d)) + 2 * np.eye(d)
    longer, zeros = rng.standard_normal((2, d)), np.zeros((2, d))
    return [
        head(one, query=np.eye(d), key=form),
        head(one, query=form.T, key=np.eye(d)),
        head(one, query=(left * np.sqrt(sizes)).T, key=np.sqrt(sizes)[:, None] * right),
        head(one, beta=1.0, query=one.beta * change @ one.query, key=np.linalg.inv(change).T @ one.key),
        head(one, query=np.vstack([one.query, longer]), key=np.vstack([one.key, zeros])),
    ]


def prepared(case: ps.Case, heads: list[ps.Attention]) -> ps.Simulation:
    """The case with these heads, on its mesh, from its law and with its steps."""
    model, mesh = ps.Model(case.model.manifold, total(heads)), case.settings.mesh
    built = None if mesh is None else mesh.build(model.manifold, case.comm)
    discretisation = case.settings.discretisation.build(model, built, case.settings.evaluation.build())
    return ps.Simulation(discretisation, case.law, case.settings.time.stop, scheme=case.scheme)


def timed(trial: ps.Trial, *changes: str) -> ps.Case:
    """The claim's case with changes, and with fewer steps when quick."""
    return trial.case(*([QUICK] if trial.quick else []), *changes)


def final_state(case: ps.Case, heads: list[ps.Attention]) -> np.ndarray:
    """This rank's unknowns at the stop."""
    simulation = prepared(case, heads)
    simulation.run()
    return simulation.state


def difference(trial: ps.Trial, one: np.ndarray, other: np.ndarray) -> float:
    """max |one − other| / max |one| over all ranks."""
    apart, size = (trial.comm.allreduce(float(np.abs(x).max(initial=0.0)), MPI.MAX) for x in (one - other, one))
    return apart / size


def single(case: ps.Case, normaliser: object) -> ps.Attention:
    """The case's head with a normaliser."""
    return head(case.model.velocity.summands()[0], normaliser=normaliser)


def check_flow(trial: ps.Trial) -> Iterator[ps.Check]:
    """The state at the stop against that of the single head."""
    for space, (changes, mesh) in SPACES.items():
        for method, discretisation in METHODS.items():
            placed = ("mesh=", "time.scheme=ssp-4") if method == "particles" else (mesh,)
            case = timed(trial, *changes, *placed, discretisation)
            for name, normaliser in list(NORMALISERS.items())[: 1 if trial.quick else 2]:
                one = single(case, normaliser)
                reference = final_state(case, [one])
                for kind, ways in splittings(one).items():
                    apart = [
                        difference(trial, reference, final_state(case, heads))
                        for heads in ways[: 1 if trial.quick else None]
                    ]
                    yield ps.Check(
                        f"state at t = {case.settings.time.stop:g} against that of a single head, {space}, {name}: {kind}",
                        np.array(apart),
                        np.zeros(len(apart)),
                        2e-14,
                        SOURCE,
                        method=method,
                        exact=True,
                    )


def check_energy(trial: ps.Trial) -> Iterator[ps.Check]:
    """The interaction energy adds up with the weights and does not know V, over depth."""
    for space, (changes, mesh) in SPACES.items():
        case = timed(trial, *changes, mesh)
        stop = case.settings.time.stop
        for name, normaliser in list(NORMALISERS.items())[: 1 if trial.quick else 2]:
            one = single(case, normaliser)
            ways = {
                "4 heads with equal V, Σ a_h = 1": (1.0, [head(one, weight=a) for a in WEIGHTS]),
                "4 heads with Σ V_h = V, weights 1: four times": (
                    4.0,
                    splittings(one)["4 heads with Σ V_h = V, in two orders"][0],
                ),
                "another factorisation": (1.0, [factorisations(one, np.random.default_rng(1))[-1]]),
            }
            values = {}
            for kind, heads in [("single", [one]), *((kind, heads) for kind, (_, heads) in ways.items())]:
                simulation = prepared(case, heads)
                record = simulation.record(ps.interaction_energy, at=[0.0, 0.4 * stop, stop])
                simulation.run()
                values[kind] = record.values
            for kind, (multiple, _) in ways.items():
                yield ps.Check(
                    f"interaction energy at t = 0, {0.4 * stop:g}, {stop:g}, {space}, {name}: {kind}",
                    values[kind],
                    multiple * values["single"],
                    1e-14,
                    SOURCE,
                    relation="relative",
                    method="finite volume, order 2",
                    exact=True,
                )


def check_fast_sums(trial: ps.Trial) -> Iterator[ps.Check]:
    """Four heads that cancel, summed by a fast method, against the direct sum of the single head."""
    for space, family in list({"S¹": "circle", "S²": "sphere", "R²": "rotated"}.items())[: 2 if trial.quick else 3]:
        changes, mesh = SPACES[space]
        case = trial.case(*changes, mesh, METHODS["discontinuous Galerkin, degree 2"])
        one = single(case, ps.Softmax())
        manifold, heads = case.model.manifold, splittings(one)["4 heads with weights, Σ a_h V_h = V"][0]
        discretisation = case.discretisation()
        measure = discretisation.measure(discretisation.initial(case.law))
        # the tolerance is promised where there are tokens
        points = measure.points[case.law.density(measure.points, manifold) > 1e-6]
        exact = ps.velocity(ps.Model(manifold, one), 0.0, points, measure)

        model = ps.Model(manifold, total(heads))

        def error(tolerance: float, model=model, family=family, points=points, measure=measure, exact=exact) -> float:
            evaluation = ps.Evaluation(tolerance=tolerance, method=family)
            return difference(trial, exact, ps.velocity(model, 0.0, points, measure, evaluation=evaluation))

        if family == "circle":  # Fourier coefficients to rounding, whatever the tolerance
            yield ps.Check(
                f"velocity of 4 heads by the method {family!r} with tolerance 1e-2, {space}, SA",
                error(1e-2),
                0.0,
                2e-14,
                SOURCE,
                method="discontinuous Galerkin, degree 2",
                exact=True,
            )
            continue
        study = ps.converge(error, [1e-4, 1e-6, 1e-8], abscissa="tolerance")
        yield ps.Check(
            f"velocity of 4 heads by the method {family!r} with tolerance 1e-8, {space}, SA",
            study.last("error"),
            0.0,
            1e-8,
            SOURCE,
            method="discontinuous Galerkin, degree 2",
            study=study,
        )
