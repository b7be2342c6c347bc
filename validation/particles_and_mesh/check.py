"""Tokens drawn from the initial law, tokens at the points of a quadrature, and the mesh: one law, three discretisations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

import pde_solver as ps

SPHERE = (
    "model.manifold=sphere",
    "model.dimension=3",
    "initial.components.0.mean=[1.0, 0.0, 0.0]",
    "initial.components.1.mean=[-0.2, 1.0, 0.5]",
    "discretisation.degree=2",
)


@dataclass(frozen=True)
class Problem:
    """A model with its law, and how it is resolved.

    Args:
        changes: to the case.
        mesh: of a resolution, as an override.
        resolutions: of the mesh, from coarse to fine.
        width: the mesh width of a resolution.
        quadrature: of an order, the table of the weighted tokens.
        orders: of the quadrature, from coarse to fine.
        agreements: the largest difference of moments between the finest mesh and the finest quadrature, quick and in full.
        of_orders: the same of the last two quadratures from each other.
    """

    changes: tuple[str, ...]
    mesh: str
    resolutions: tuple[int, ...]
    width: Callable[[int], float]
    quadrature: str
    orders: tuple[int, ...]
    agreements: tuple[float, float]
    of_orders: tuple[float, float]


ON_CIRCLE = ("mesh={{kind='circle', cells={}}}", (32, 64, 128), lambda n: 2 * np.pi / n)
ON_SPHERE = ("mesh={{kind='icosphere', level={}}}", (1, 2, 3), lambda n: (4 * np.pi / (20 * 4**n)) ** 0.5)
AT_ORDER = "discretisation={{kind='particles', placement='quadrature', quadrature_order={}}}"

PROBLEMS = {
    "circle, SA, β = 4": Problem((), *ON_CIRCLE, AT_ORDER, (20, 40, 80), (1.3e-7, 6e-10), (4e-5, 1.3e-7)),
    "S², SA, β = 4": Problem(SPHERE, *ON_SPHERE, AT_ORDER, (12, 18, 24), (3e-5, 2e-6), (5e-5, 1.5e-6)),
    "S², USA, β = 4": Problem(
        (*SPHERE, "model.attention.0.normaliser=unnormalised", "model.attention.0.log_scale=3.0"),
        *ON_SPHERE,
        AT_ORDER,
        (5, 8, 12),
        (1e-5, 6e-7),
        (8e-5, 7e-9),
    ),
    "circle, SA, general B and V": Problem(
        (
            "model.attention.0={beta=1.0, query=[[2.0, -0.3], [0.5, 1.0]], key=[[1.0, 0.0], [0.0, 1.0]], "
            "value=[[1.0, 0.3], [-0.2, 0.6]]}",
        ),
        *ON_CIRCLE,
        AT_ORDER,
        (40, 80, 160),
        (4.5e-7, 7e-10),
        (7e-5, 4.5e-7),
    ),
    "R², SA with a drift": Problem(
        (
            "model.manifold=euclidean",
            "model.dimension=2",
            "model.attention.0.beta=0.5",
            "time.stop=1.0",
            "model.linear={matrix=[[-0.8, -0.5], [0.5, -0.8]], offset=[0.2, 0.0]}",
            "initial={law='mixture', components=[{law='gaussian', weight=0.4, mean=[1.0, 0.3], covariance=0.3}, "
            "{law='gaussian', weight=0.6, mean=[-0.8, -0.5], covariance=[[0.4, 0.1], [0.1, 0.3]]}]}",
            "discretisation.degree=2",
        ),
        "mesh={{kind='rectangle', lower=[-4.5, -4.5], upper=[4.5, 4.5], cells=[{0}, {0}], cell='quadrilateral'}}",
        (12, 24, 36),
        lambda n: 9 / n,
        "discretisation={{kind='particles', placement='quadrature', lower=[-4.5, -4.5], upper=[4.5, 4.5], cells=[12, 12], "
        "quadrature_order={}}}",
        (2, 3, 4),
        (2.2e-4, 6e-7),
        (2e-4, 1.4e-5),
    ),
}


def moments(points: np.ndarray) -> np.ndarray:
    """All coordinates and their products, (n, d + d(d + 1)/2); on spheres the last product follows from the others."""
    first, second = np.triu_indices(points.shape[1])
    return np.column_stack([points, points[:, first] * points[:, second]])


def of_law(simulation: ps.Simulation) -> np.ndarray:
    """∫ moments dμ."""
    return simulation.snapshot.law.integrate(moments)[0]


def on_mesh(trial: ps.Trial, problem: Problem, resolution: int, *changes: str) -> ps.Simulation:
    """The mesh solution at the stop."""
    simulation = trial.simulation(*problem.changes, problem.mesh.format(resolution), *changes)
    simulation.run()
    return simulation


def weighted(trial: ps.Trial, problem: Problem, order: int) -> np.ndarray:
    """Moments of tokens that a quadrature places and weights."""
    simulation = trial.simulation(
        *problem.changes,
        "mesh=",
        problem.quadrature.format(order),
        "time.scheme=rk-5",
        f"time.tolerance={1e-8 if trial.quick else 1e-10}",
    )
    simulation.run()
    return of_law(simulation)


def fine_law(simulation: ps.Simulation) -> ps.TokenMeasure:
    """The mesh solution as points so dense that their distance is no error: on the circle at 8192 of them."""
    discretisation = simulation.discretisation
    if discretisation.model.manifold.ambient_dimension > 2 or not isinstance(discretisation.model.manifold, ps.Sphere):
        return simulation.snapshot.law
    points = ps.sphere_quadrature(discretisation.model.manifold, 4096).points
    weights = np.maximum(discretisation.density_at(simulation.state, points), 0.0)
    return ps.TokenMeasure(points, weights / weights.sum())


def monomials(points: np.ndarray) -> np.ndarray:
    """All products of one to three coordinates, (n, 9) for d = 2, (n, 19) for d = 3."""
    chosen = (c for k in (1, 2, 3) for c in combinations_with_replacement(range(points.shape[1]), k))
    return np.column_stack([points[:, list(c)].prod(axis=1) for c in chosen])


@dataclass
class Drawn:
    """What independent sets of tokens gave, one row for each.

    Args:
        counts: n, how many tokens.
        starts: ∫ monomials dμ at t = 0.
        ends: ∫ moments dμ at the stop.
        distances: W₁ from the mesh solution at the stop.
    """

    counts: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    distances: np.ndarray


def drawn(trial: ps.Trial, problem: Problem, law: ps.TokenMeasure, replicas: dict[int, int]) -> Drawn:
    """Sets of n tokens with the seeds n, n + 1, …, as many as `replicas` says for n."""
    case = trial.case(
        *problem.changes,
        "mesh=",
        "discretisation={kind='particles', count=4000}",
        "time.scheme=rk-5",
        "time.tolerance=1e-6",
        "evaluation.tolerance=1e-6",
    )
    manifold = case.model.manifold
    how = {"method": "exact"} if manifold.dimension == 1 else {"method": "sliced", "projections": 30}
    rows = []
    for count, sets in replicas.items():
        for seed in range(count, count + sets):  # no seed twice: sets of different n are independent
            tokens = ps.Particles(case.model, count, seed, evaluation=case.settings.evaluation.build())
            simulation = ps.Simulation(tokens, case.law, case.settings.time.stop, scheme=case.scheme)
            start = simulation.snapshot.law.integrate(monomials)[0]
            simulation.run()
            distance = ps.wasserstein(simulation.snapshot.law, law, manifold, **how)
            rows.append((count, start, of_law(simulation), distance))
    return Drawn(*(np.array(column) for column in zip(*rows, strict=True)))


def rate_of_decay(tokens: Drawn, squares: np.ndarray) -> tuple[ps.Study, float]:
    """Root mean squares over the sets of each n, and the standard error of the slope of their logarithms."""
    counts = np.unique(tokens.counts)
    of_count = {int(n): squares[tokens.counts == n] for n in counts}
    study = ps.converge(lambda n: float(np.mean(of_count[n]) ** 0.5), of_count, abscissa="n")
    # the logarithm of a root mean square of R squares has the error cv/(2√R), cv their coefficient of variation
    errors = np.array([np.std(q, ddof=1) / np.mean(q) / (2 * len(q) ** 0.5) for q in of_count.values()])
    x = np.log(counts) - np.log(counts).mean()
    return study, float(np.sqrt(np.sum((x * errors) ** 2)) / np.sum(x**2))


def adjusted(tokens: Drawn, start: np.ndarray, end: np.ndarray) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """By n: mean over its sets of the moments less the mesh's, and its standard error.

    What the tokens missed at t = 0 is known, and most of what they miss at the stop follows from it: the part that is linear
    in the monomials at the start is fitted over all sets and subtracted (control variates).
    """
    root = np.sqrt(tokens.counts)[:, None]
    known, missed = root * (tokens.starts - start), root * (tokens.ends - end)
    # on spheres monomials depend on each other, up to rounding
    coefficients, _, rank, _ = np.linalg.lstsq(known, missed, rcond=1e-7)
    rest = missed - known @ coefficients
    deviation = np.sqrt(np.sum(rest**2, axis=0) / (len(rest) - rank))
    found = {}
    for count in np.unique(tokens.counts):
        of_count = tokens.counts == count
        total = tokens.counts[of_count].sum()
        found[int(count)] = (root * rest)[of_count].sum(axis=0) / total, deviation / np.sqrt(total)
    return found


def examined(trial: ps.Trial, name: str, *, draw: bool = True) -> Iterator[ps.Check]:
    """The checks of one problem, with or without tokens that are drawn."""
    problem = PROBLEMS[name]
    quick = 2
    meshes = {r: on_mesh(trial, problem, r) for r in trial.resolutions(*problem.resolutions, quick=quick)}
    quadratures = {o: weighted(trial, problem, o) for o in trial.resolutions(*problem.orders, quick=quick)}
    finest = list(meshes.values())[-1]
    end, reference = of_law(finest), list(quadratures.values())[-1]
    degree = "degree 3" if name.startswith("circle") else "degree 2"
    galerkin = f"discontinuous Galerkin, {degree}"

    mesh_errors = {r: float(np.abs(of_law(mesh) - reference).max()) for r, mesh in meshes.items()}
    yield ps.Check(
        f"moments on the mesh against weighted tokens, {name}",
        end,
        reference,
        problem.agreements[0 if trial.quick else 1],
        ps.DERIVED,
        method=galerkin,
        study=ps.converge(mesh_errors.get, meshes, resolution=problem.width),
    )
    *coarser, last = quadratures
    yield ps.Check(
        f"moments of weighted tokens, order {coarser[-1]} against order {last}, {name}",
        quadratures[coarser[-1]],
        reference,
        problem.of_orders[0 if trial.quick else 1],
        ps.DERIVED,
        method="particles, weighted by a quadrature",
        study=ps.converge(lambda o: float(np.abs(quadratures[o] - reference).max()), coarser, abscissa="order"),
    )
    if draw:
        yield from against_drawn(trial, name, meshes, mesh_errors)


def against_drawn(
    trial: ps.Trial, name: str, meshes: dict[int, ps.Simulation], mesh_errors: dict[int, float]
) -> Iterator[ps.Check]:
    """The checks of one problem against tokens drawn from the initial law."""
    problem, finest = PROBLEMS[name], list(meshes.values())[-1]
    end = of_law(finest)

    replicas = {250: 32, 4000: 16} if trial.quick else {250: 64, 1000: 32, 4000: 16}
    tokens = drawn(trial, problem, fine_law(finest), replicas)
    distance = "W₁" if name.startswith("circle") else "sliced W₁"
    for what, squares in (
        (f"{distance} from the mesh", tokens.distances**2),
        ("distance of the moments from the mesh's", np.sum((tokens.ends - end) ** 2, axis=1)),
    ):
        study, error = rate_of_decay(tokens, squares)
        n, values, slope = study.resolutions, study.errors("error"), study.fitted_order("error")
        yield ps.Check(
            f"slope in n of the {what}, r.m.s. over seeds, {name}",
            slope,
            -0.5,
            0.2 if trial.quick else 0.15,
            ps.DERIVED,
            method="particles",
            study=study,
            figure=ps.Figure(
                (
                    ps.Curve(n, values[0] * (n / n[0]) ** -0.5, "n^(−1/2)", expected=True),
                    ps.Curve(n, values, f"{what}: slope {slope:.2f}, standard error {error:.2f}"),
                ),
                "tokens n",
                "root mean square",
                "log-log",
            ),
        )

    case = trial.case(*problem.changes, problem.mesh.format(list(meshes)[-1]))
    start = case.simulation().snapshot.law.integrate(monomials)[0]
    by_count = adjusted(tokens, start, end)
    mean, error = by_count[4000]
    in_errors = ps.converge(lambda n: float(np.abs(by_count[n][0] / by_count[n][1]).max()), by_count, abscissa="n")
    yield ps.Check(
        f"mean moments of the largest sets less the mesh's, in standard errors, {name}",
        mean / error,
        np.zeros(len(mean)),
        3.5,
        ps.DERIVED,
        method="particles",
        study=replace(in_errors, refines=False),
    )
    faster = of_law(on_mesh(trial, problem, list(meshes)[-1], "model.attention.0.weight=1.02"))
    yield ps.Check(
        f"what a head 2 % too strong changes on the mesh, in those standard errors, {name}",
        float(np.max(np.abs(faster - end) / error)),
        5.0,
        0.0,
        ps.DERIVED,
        relation="at least",
        method="particles",
        exact=True,
    )
    yield ps.Check(
        f"error of the moments on the mesh against the standard errors, {name}",
        mesh_errors[list(meshes)[-1]] / error.min(),
        0.1,
        0.0,
        ps.DERIVED,
        relation="at most",
        method="discontinuous Galerkin",
        study=ps.converge(lambda r: mesh_errors[r] / error.min(), meshes, resolution=problem.width),
    )


def check_circle(trial: ps.Trial) -> Iterator[ps.Check]:
    """Softmax at β = 4 on the circle."""
    yield from examined(trial, "circle, SA, β = 4", draw=not trial.quick)


def check_sphere(trial: ps.Trial) -> Iterator[ps.Check]:
    """Softmax and unnormalised attention at β = 4 on S²."""
    yield from examined(trial, "S², USA, β = 4")
    yield from examined(trial, "S², SA, β = 4", draw=not trial.quick)


def check_general_matrices(trial: ps.Trial) -> Iterator[ps.Check]:
    """A score and a value without symmetry, on the circle."""
    yield from examined(trial, "circle, SA, general B and V", draw=not trial.quick)


def check_plane(trial: ps.Trial) -> Iterator[ps.Check]:
    """Softmax on R² with an affine drift."""
    yield from examined(trial, "R², SA with a drift", draw=not trial.quick)
