"""Rotations of spheres and translations of R^d against the change of variables, by finite volumes and Galerkin."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import pde_solver as ps
from pde_solver.solutions import LinearFlow

#: Name -> the order that is expected of it, the least that must be observed, and the norm in which it is measured:
#: L¹ for finite volumes, as the limiter clips smooth extrema, which weighs more in higher norms.
ORDERS = {
    "finite volume, order 2": (2, 1.8, "L1"),
    "discontinuous Galerkin, degree 1": (2, 1.9, "L2"),
    "discontinuous Galerkin, degree 2": (3, 2.8, "L2"),
    "discontinuous Galerkin, degree 3": (4, 3.7, "L2"),
}
FV2, DG1, DG2, DG3 = ORDERS


@dataclass(frozen=True)
class Runs:
    """The resolutions of one method on one problem, and the tolerances at the last of them.

    Args:
        method: a key of `ORDERS`.
        resolutions: cells, or the level of the icosphere.
        error: tolerance in the method's norm.
        distance: tolerance of W₁; None where it is not measured.
        changes: what else these runs change in the case.
    """

    method: str
    resolutions: tuple[int, ...]
    error: float
    distance: float | None = None
    changes: tuple[str, ...] = ()


ROTATION = (
    "model={manifold='sphere', dimension=3, linear={matrix=[[0, -1, 0.3], [1, 0, -0.5], [-0.3, 0.5, 0]]}}",
    "initial={law='von-mises-fisher', mean=[1, 0, 1], kappa=2.0}",
)


def translation(dimension: int, mean: float) -> tuple[str, ...]:
    """A Gaussian on R^d that moves by 0.8 along every axis in unit depth."""
    return (
        f"model={{manifold='euclidean', dimension={dimension}, linear={{offset={[0.8] * dimension}}}}}",
        f"initial={{law='gaussian', mean={[mean] * dimension}, covariance=0.16}}",
    )


def discretisation(method: str) -> str:
    """The method as a change of the case."""
    kind, _, number = method.partition(", ")
    name, value = number.split()
    return f"discretisation={{kind='{kind.lower().replace(' ', '-')}', {name}={value}}}"


def transport(
    trial: ps.Trial, problem: str, changes: tuple[str, ...], mesh: str, methods: list[Runs]
) -> Iterator[ps.Check]:
    """Errors, orders, mass and positivity of each method.

    Args:
        trial: of this claim.
        problem: its name.
        changes: what it changes in the case.
        mesh: with {n} for the resolution and, on curved manifolds, {degree} for the degree of the geometry.
        methods: the runs.
    """
    studies: dict[str, ps.Study] = {}
    mass_errors: list[float] = []
    minima: list[float] = []
    for runs in methods:
        order, least, norm = ORDERS[runs.method]
        degree = 1 if runs.method == FV2 else order - 1

        def run(n: int, runs=runs, degree=degree) -> ps.Measurement:
            case = trial.case(*changes, discretisation(runs.method), mesh.format(n=n, degree=degree), *runs.changes)
            drift, stop = case.model.velocity, case.settings.time.stop
            assert isinstance(drift, ps.Linear)
            flow = LinearFlow(case.model.manifold, drift, case.law)
            simulation = case.simulation()
            outcome = simulation.run()
            mass_errors.append(outcome.mass_error)
            minima.append(outcome.minimum)
            return ps.measured(simulation, lambda x: flow.density(stop, x), distance=runs.distance is not None)

        study = studies[runs.method] = ps.converge(run, runs.resolutions)
        norm_name = norm.translate(str.maketrans("12", "¹²"))
        last = runs is methods[-1]
        yield ps.Check(
            f"{norm_name} error, {problem}",
            study.last(norm),
            0.0,
            runs.error,
            ps.DERIVED,
            method=runs.method,
            study=study,
        )
        if runs.distance is not None:
            yield ps.Check(
                f"W₁ error, {problem}",
                study.last("W1"),
                0.0,
                runs.distance,
                ps.DERIVED,
                method=runs.method,
                study=study,
            )
        yield ps.Check(
            f"observed order in {norm_name}, {problem}",
            study.order(norm),
            least,
            0.0,
            ps.DERIVED,
            relation="at least",
            method=runs.method,
            study=study,
            figure=orders(studies) if last else None,
        )
    for quantity, found, tolerance, relation in (
        ("change of mass", mass_errors, 1e-12, "at most"),
        ("smallest density", minima, 0.0, "at least"),
    ):
        yield ps.Check(
            f"{quantity}, {problem}",
            np.array(found),
            np.zeros(len(found)),
            tolerance,
            "derived for this project: mass is conserved and a density stays ≥ 0",
            relation=relation,
            method="finite volume and discontinuous Galerkin",
            exact=True,
        )


def orders(studies: dict[str, ps.Study]) -> ps.Figure:
    """Each method's error on a line of its expected order through the finest measurement."""
    curves = []
    for method, study in studies.items():
        order, _, norm = ORDERS[method]
        h, errors = study.resolutions, study.errors(norm)
        curves.append(ps.Curve(h, errors, method))
        curves.append(ps.Curve(h, errors[-1] * (h / h[-1]) ** order, f"h{'⁰¹²³⁴'[order]}", expected=True))
    return ps.Figure(curves, "h", "error in L¹ (finite volume) or L²", "log-log")


def check_circle(trial: ps.Trial) -> Iterator[ps.Check]:
    """Half a radian on the circle."""
    methods = [
        Runs(FV2, (32, 64, 128), 1.8e-3, 4e-4),
        Runs(DG1, (32, 64, 128), 3.5e-4, 1e-5),
        Runs(DG2, (16, 32, 64), 2.1e-5, 5e-7),
        Runs(DG3, (16, 32, 64), 4.5e-7, 2e-8),
    ]
    if trial.quick:
        methods = [
            Runs(FV2, (32, 64), 7e-3, 1.5e-3),
            Runs(DG1, (32, 64), 1.4e-3, 7e-5),
            Runs(DG2, (16, 32), 1.7e-4, 7.5e-6),
            Runs(DG3, (16, 32), 7.5e-6, 3.5e-7),
        ]
    mesh = "mesh={{kind='circle', cells={n}, geometry_degree={degree}}}"
    yield from transport(trial, "rotation of the circle", (), mesh, methods)


def check_sphere(trial: ps.Trial) -> Iterator[ps.Check]:
    """A tilted axis, on triangles and on quadrilaterals."""
    cubed = "mesh={{kind='cubed-sphere', cells={n}, geometry_degree={degree}}}"
    if trial.quick:
        methods = [
            Runs(FV2, (8, 16), 2.3e-3),
            Runs(DG1, (4, 8), 9.5e-3),
            Runs(DG2, (4, 8), 1.4e-4, 1e-6),
            Runs(DG3, (3, 6), 1.5e-5),
        ]
        yield from transport(trial, "rotation of S², quadrilaterals", ROTATION, cubed, methods)
        return
    methods = [
        Runs(FV2, (8, 16, 32), 5e-4, 6e-5),
        Runs(DG1, (4, 8, 16), 2.4e-3, 1.1e-4),
        Runs(DG2, (4, 8, 16), 1.7e-5, 5.5e-8),
        Runs(DG3, (3, 6, 12), 9.5e-7, 1.2e-8),
    ]
    yield from transport(trial, "rotation of S², quadrilaterals", ROTATION, cubed, methods)
    methods = [
        Runs(FV2, (2, 3, 4), 5.5e-4, 4e-5),
        Runs(DG1, (1, 2, 3), 5.5e-3, 3e-4),
        Runs(DG2, (1, 2, 3), 4.5e-5, 4.5e-7),
        Runs(DG3, (0, 1, 2), 8e-5, 1.3e-6),
    ]
    icosphere = "mesh={{kind='icosphere', level={n}, geometry_degree={degree}}}"
    yield from transport(trial, "rotation of S², triangles", ROTATION, icosphere, methods)


def check_line(trial: ps.Trial) -> Iterator[ps.Check]:
    """A Gaussian that moves by its own width."""
    methods = [
        Runs(FV2, (64, 128, 256), 2e-3, 2.5e-4),
        Runs(DG1, (32, 64, 128), 1.5e-3, 4.5e-5),
        Runs(DG2, (32, 64, 128), 2.3e-5, 1.8e-7),
        Runs(DG3, (20, 40, 80), 2e-6, 3.5e-8),
    ]
    if trial.quick:
        methods = [
            Runs(FV2, (64, 128), 7.5e-3, 1.1e-3),
            Runs(DG1, (32, 64), 6e-3, 3.5e-4),
            Runs(DG2, (32, 64), 1.8e-4, 2.8e-6),
            Runs(DG3, (20, 40), 3.3e-5, 8e-7),
        ]
    mesh = "mesh={{kind='interval', lower=-3, upper=3, cells={n}}}"
    yield from transport(trial, "translation on R", translation(1, -0.4), mesh, methods)


def check_plane(trial: ps.Trial) -> Iterator[ps.Check]:
    """Along the diagonal of triangles and quadrilaterals."""
    start = translation(2, -0.4)
    rectangle = "mesh={{kind='rectangle', lower=[-3, -3], upper=[3, 3], cells=[{n}, {n}], cell='CELL'}}"
    quadrilaterals, triangles = (rectangle.replace("CELL", cell) for cell in ("quadrilateral", "triangle"))
    if trial.quick:
        methods = [Runs(FV2, (24, 48), 7.5e-2), Runs(DG1, (12, 24), 5e-2), Runs(DG2, (12, 24), 4e-3)]
        yield from transport(trial, "translation on R², quadrilaterals", start, quadrilaterals, methods)
        return
    methods = [
        Runs(FV2, (24, 48, 96), 1.7e-2, 2.3e-3),
        Runs(DG1, (12, 24, 48), 1.3e-2, 5.5e-4),
        Runs(DG2, (12, 24, 48), 5e-4, 2.2e-6),
        Runs(DG3, (16, 32, 48), 1.8e-5, 1.5e-7),
    ]
    yield from transport(trial, "translation on R², quadrilaterals", start, quadrilaterals, methods)
    methods = [
        Runs(FV2, (24, 48, 96), 7e-3, 7.5e-4),
        Runs(DG1, (12, 24, 48), 1.4e-2, 3.5e-4),
        Runs(DG2, (12, 24, 48), 8e-4, 3.5e-6),
        Runs(DG3, (16, 32, 48), 4e-5, 9.5e-8),
    ]
    yield from transport(trial, "translation on R², triangles", start, triangles, methods)


def check_space(trial: ps.Trial) -> Iterator[ps.Check]:
    """Along the diagonal of cubes; W₁ would take longer than the runs. Finite volumes go a fifth of the way."""
    # the error of a limited scheme is proportional to h² only while it is small against the density
    methods = [Runs(FV2, (12, 24), 4.2e-2, changes=("time.stop=0.1",))]
    if not trial.quick:
        methods += [Runs(DG1, (6, 12, 24), 2.8e-2), Runs(DG2, (4, 8, 16), 5.7e-3), Runs(DG3, (8, 12, 16), 5e-4)]
    mesh = (
        "mesh={{kind='box', lower=[-2.2, -2.2, -2.2], upper=[2.2, 2.2, 2.2], cells=[{n}, {n}, {n}], cell='hexahedron'}}"
    )
    yield from transport(trial, "translation on R³, hexahedra", translation(3, -0.2), mesh, methods)
