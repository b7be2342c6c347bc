"""Poisson kernels under attention at β = 0: densities, means, the distance to a Dirac mass, on S¹, S² and S³."""

from collections.abc import Iterator

import numpy as np

import pde_solver as ps
from pde_solver.solutions import PoissonKernelFlow

FV2, DG2, DG3 = "finite volume, order 2", "discontinuous Galerkin, degree 2", "discontinuous Galerkin, degree 3"
PARTICLES = "particles, weighted by a quadrature"

#: Method -> its change of the case, the norm of its errors, the least order that must be observed.
METHODS = {
    FV2: ("discretisation={kind='finite-volume', order=2}", "L1", 1.8),
    DG2: ("discretisation={kind='discontinuous-galerkin', degree=2}", "L2", 2.8),
    DG3: ("discretisation={kind='discontinuous-galerkin', degree=3}", "L2", 3.7),
}
CIRCLE = ("mesh={kind='circle', geometry_degree=3}",)
SPHERE = (
    "model.manifold=sphere",
    "model.dimension=3",
    "mesh={kind='icosphere', geometry_degree=2}",
    "initial.w=[0.2, 0.1, 0.2]",
)
THIRD_SPHERE = ("model.manifold=sphere", "model.dimension=4", "mesh=", "initial.w=[0.1, 0.2, 0.2, 0.1]")


def exact_flow(case: ps.Case) -> PoissonKernelFlow:
    """The closed form of a case: its w, the weight of its head and its field."""
    assert isinstance(case.law, ps.PoissonKernel)
    attention, *drifts = case.model.velocity.summands()
    assert isinstance(attention, ps.Attention)
    field = tuple(drifts[0].offset) if drifts else None
    return PoissonKernelFlow(case.law.w, attention.weight, field)


def mean_in_elementary_functions(w: np.ndarray) -> np.ndarray:
    """∫ x f(x) dx of the Poisson kernel with w: μ_d(r) w / r, with μ₂ = r, μ₃ of logarithms, μ₄ = r (3 − r²) / 2."""
    r = float(np.linalg.norm(w))
    if len(w) == 2:
        return w
    if len(w) == 4:
        return (3 - r**2) / 2 * w
    length = (1 + r**2) / (2 * r) - (1 - r**2) ** 2 / (4 * r**2) * np.log((1 + r) / (1 - r))
    return length / r * w


def densities(
    trial: ps.Trial,
    where: str,
    changes: tuple[str, ...],
    method: str,
    refined: str,
    values: list[int],
    tolerance: float,
) -> Iterator[ps.Check]:
    """The error of the density at the stop, and its order.

    Args:
        trial: of this claim.
        where: the sphere, in words.
        changes: of the case.
        method: a key of `METHODS`.
        refined: the key of the case that is refined.
        values: what it takes.
        tolerance: of the error at the last of them.
    """
    change, norm, least = METHODS[method]

    def run(value: int) -> ps.Measurement:
        case = trial.case(*changes, change, f"{refined}={value}")
        flow, stop = exact_flow(case), case.settings.time.stop
        simulation = case.simulation()
        simulation.run()
        return ps.measured(simulation, lambda x: flow.density(stop, x), distance=refined == "mesh.cells")

    study = ps.converge(run, values)
    name = norm.translate(str.maketrans("12", "¹²"))
    yield ps.Check(
        f"{name} error of the density, {where}",
        study.last(norm),
        0.0,
        tolerance,
        ps.DERIVED,
        method=method,
        study=study,
    )
    yield ps.Check(
        f"observed order in {name}, {where}",
        study.order(norm),
        least,
        0.0,
        ps.DERIVED,
        relation="at least",
        method=method,
        study=study,
    )


def moments(
    trial: ps.Trial,
    where: str,
    changes: tuple[str, ...],
    method: str,
    refined: str,
    values: list[int],
    tolerance: float,
) -> Iterator[ps.Check]:
    """The mean ∫ x μ(dx) at a few depths against ∫ x f(x) dx of the exact law in elementary functions.

    Args: as those of `densities`; the tolerance is that of the mean.
    """
    depths = [0.0, 0.25, 0.5, 0.75, 1.0]
    found: list[np.ndarray] = []
    case = trial.case(*changes, f"{refined}={values[-1]}")
    expected = np.array([mean_in_elementary_functions(exact_flow(case).w_at(t)) for t in depths])

    def run(value: int) -> ps.Measurement:
        simulation = trial.simulation(*changes, f"{refined}={value}")
        record = simulation.record(ps.first_moment, at=depths)
        simulation.run()
        found.append(np.reshape(record.values, expected.shape))
        size = 1 / value if method == PARTICLES else simulation.discretisation.cell_size
        return ps.Measurement(size, {"mean": np.abs(found[-1] - expected).max()}, simulation.discretisation.unknowns)

    study = ps.converge(run, values, abscissa="1 / order" if method == PARTICLES else "h")
    curves = [ps.Curve(depths, np.linalg.norm(found[-1], axis=1), f"{where}, measured")]
    curves.append(ps.Curve(depths, np.linalg.norm(expected, axis=1), "closed form", expected=True))
    yield ps.Check(
        f"mean at depths up to 1, {where}",
        found[-1],
        expected,
        tolerance,
        ps.DERIVED,
        method=method,
        study=study,
        figure=ps.Figure(curves, "depth t", "|∫ x μ(dx)|"),
    )


def tokens(trial: ps.Trial) -> Iterator[ps.Check]:
    """Independent tokens on S³: the root mean square of the error of the mean, over seeds, falls like n^{−1/2}."""
    drawn = (*THIRD_SPHERE, "discretisation={kind='particles', placement='independent'}")
    expected = mean_in_elementary_functions(exact_flow(trial.case(*drawn)).w_at(1.0))
    seeds = range(32)

    def run(count: int) -> float:
        errors = []
        for seed in seeds:
            simulation = trial.simulation(*drawn, f"discretisation.count={count}", f"discretisation.seed={seed}")
            simulation.run()
            errors.append(np.ravel(ps.first_moment(simulation.snapshot)) - expected)
        return float(np.sqrt(np.mean(np.sum(np.square(errors), axis=1))))

    study = ps.converge(run, [100, 400, 1600], abscissa="n")
    yield ps.Check(
        "rate in the number of tokens, S³",
        study.fitted_order("error"),
        -0.5,
        0.11,
        ps.DERIVED,
        method="particles",
        study=study,
    )


def check_circle(trial: ps.Trial) -> Iterator[ps.Check]:
    """Without a field, with one across the mean, and with repulsion (V = −I)."""
    field = ("model.linear.offset=[0.2, -0.3]",)
    galerkin = trial.resolutions(16, 32, 64, quick=2)
    fine, finer = (1.4e-5, 1.8e-7) if trial.quick else (1e-6, 1.2e-8)
    volumes = trial.resolutions(32, 64, 128, quick=2)
    yield from densities(trial, "circle", CIRCLE, FV2, "mesh.cells", volumes, 1.2e-3 if trial.quick else 3e-4)
    yield from densities(trial, "circle", CIRCLE, DG3, "mesh.cells", galerkin, fine)
    yield from moments(trial, "circle", CIRCLE, DG3, "mesh.cells", galerkin, finer)
    yield from moments(trial, "circle with a field", (*CIRCLE, *field), DG3, "mesh.cells", galerkin, finer)
    if not trial.quick:
        repelled = (*CIRCLE, *field, "model.attention.0.weight=-1.0")
        yield from densities(trial, "circle with a field and repulsion", repelled, DG3, "mesh.cells", galerkin, 3e-7)


def check_radius_on_the_circle(trial: ps.Trial) -> Iterator[ps.Check]:
    """|∫ x μ(dx)|² = r₀² e^t / (1 − r₀² + r₀² e^t), r₀ = 0.3, without the package's closed form."""
    found: list[np.ndarray] = []

    def run(cells: int) -> ps.Measurement:
        simulation = trial.simulation(*CIRCLE, f"mesh.cells={cells}", "time.stop=3.0")
        record = simulation.record(ps.order_parameter, every=0.5)
        simulation.run()
        growth = 0.09 * np.exp(record.times)
        found[:] = [np.array(record.times), np.ravel(record.values), np.sqrt(growth / (0.91 + growth))]
        return ps.Measurement(simulation.discretisation.cell_size, {"R": np.abs(found[1] - found[2]).max()})

    study = ps.converge(run, trial.resolutions(32, 64, 128, quick=2))
    times, measured, expected = found
    yield ps.Check(
        "order parameter at depths up to 3, circle",
        measured,
        expected,
        1.5e-8 if trial.quick else 1e-9,
        ps.DERIVED,
        method=DG3,
        study=study,
        figure=ps.Figure(
            [ps.Curve(times, measured, "measured"), ps.Curve(times, expected, "closed form", expected=True)],
            "depth t",
            "R",
        ),
    )


def check_distance_to_a_dirac(trial: ps.Trial) -> Iterator[ps.Check]:
    """W₂ to the Dirac mass at w / |w|; 0.3 (cos 3π/8, sin 3π/8), so that the kink of the distance is at a vertex of the mesh."""
    w = (0.3 * np.cos(3 * np.pi / 8), 0.3 * np.sin(3 * np.pi / 8))
    flow = PoissonKernelFlow(w)
    target = ps.TokenMeasure(np.array([w]) / 0.3, np.ones((1, 1)))
    found: list[np.ndarray] = []

    def run(cells: int) -> ps.Measurement:
        simulation = trial.simulation(
            *CIRCLE, f"mesh.cells={cells}", "time.stop=4.0", f"initial.w={list(map(float, w))}"
        )
        record = simulation.record(ps.wasserstein_to(target, p=2), every=1.0)
        simulation.run()
        found[:] = [np.array(record.times), np.ravel(record.values)]
        found.append(np.array([flow.wasserstein_to_dirac(t) for t in record.times]))
        return ps.Measurement(simulation.discretisation.cell_size, {"W2": np.abs(found[1] - found[2]).max()})

    study = ps.converge(run, trial.resolutions(32, 64, 128, quick=2))
    times, measured, expected = found
    yield ps.Check(
        "W₂ to a Dirac mass at depths up to 4, circle",
        measured,
        expected,
        4e-8 if trial.quick else 2.5e-9,
        ps.DERIVED,
        method=DG3,
        study=study,
        figure=ps.Figure(
            [ps.Curve(times, measured, "measured"), ps.Curve(times, expected, "√(π²/3 + 4 Li₂(−r))", expected=True)],
            "depth t",
            "W₂(μ_t, δ)",
            "log-y",
        ),
    )


def check_sphere(trial: ps.Trial) -> Iterator[ps.Check]:
    """Without a field, and with one across the mean."""
    volumes, galerkin = trial.resolutions(2, 3, 4, quick=2), trial.resolutions(1, 2, 3, quick=2)
    for where, changes, first, second, mean in (
        ("S²", SPHERE, 7.5e-3 if trial.quick else 1.8e-3, 4e-4, 2.5e-5 if trial.quick else 1.5e-6),
        (
            "S² with a field",
            (*SPHERE, "model.linear.offset=[0.1, -0.4, 0.2]"),
            1.4e-2 if trial.quick else 3.5e-3,
            1.2e-3,
            5e-5 if trial.quick else 3e-6,
        ),
    ):
        yield from densities(trial, where, changes, FV2, "mesh.level", volumes, first)
        if not trial.quick:  # on 80 and 320 triangles the order is 2.7
            yield from densities(trial, where, changes, DG2, "mesh.level", galerkin, second)
        yield from moments(trial, where, (*changes, METHODS[DG2][0]), DG2, "mesh.level", galerkin, mean)


def check_third_sphere(trial: ps.Trial) -> Iterator[ps.Check]:
    """S³, where there is no mesh: tokens at the points of a quadrature, and independent ones."""
    placed = (*THIRD_SPHERE, "discretisation={kind='particles', placement='quadrature'}")
    field = "model.linear.offset=[0.1, -0.4, 0.2, 0.0]"
    orders, refined = trial.resolutions(4, 6, 8, quick=2), "discretisation.quadrature_order"
    yield from moments(trial, "S³", placed, PARTICLES, refined, orders, 4e-5 if trial.quick else 4e-7)
    yield from moments(
        trial, "S³ with a field", (*placed, field), PARTICLES, refined, orders, 4e-5 if trial.quick else 4e-7
    )
    if not trial.quick:
        yield from tokens(trial)
