"""How fast W₂ to the Dirac mass decays: laws in a cap, laws that are positive everywhere, on the circle, S² and S³."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

import pde_solver as ps
from pde_solver.solutions import PoissonKernelFlow
from pde_solver.solutions.clustering_rates import clustering_rate

WEIGHTED = "particles, weighted by a quadrature"
GALERKIN = "discontinuous Galerkin, degree 3"


def model(trial: ps.Trial, dimension: int, beta: float, normaliser: str) -> ps.Model:
    """Attention with Q = K = V = I on S^{d−1}."""
    where = ("model.manifold=circle",) if dimension == 2 else ("model.manifold=sphere", f"model.dimension={dimension}")
    head = (f"model.attention.0.beta={beta}", f"model.attention.0.normaliser={normaliser}")
    return trial.case(*where, *head, "mesh=", "discretisation={kind='particles'}").model


def around(dimension: int) -> np.ndarray:
    """Points of S^{d−2} that a symmetry of theirs keeps in place: ±1, a pentagon, an icosahedron."""
    if dimension == 2:
        return np.array([[1.0], [-1.0]])
    if dimension == 3:
        angles = 2 * np.pi * np.arange(5) / 5
        return np.column_stack([np.cos(angles), np.sin(angles)])
    golden = (1 + 5**0.5) / 2
    points = [np.roll([0, s, u * golden], shift) for shift in range(3) for s in (1, -1) for u in (1, -1)]
    return np.array(points) / np.hypot(1, golden)


def rings(dimension: int, lowest: float, highest: float, step: float) -> ps.TokenMeasure:
    """A quadrature whose points crowd at e₁ and at its antipode: equal steps of y = ln tan(a/2), a the angle to e₁.

    There cos a = −tanh y, sin a = 1/cosh y and sin^{d−2} a da = sin^{d−1} a dy.
    """
    y = np.arange(lowest, highest + step / 2, step)
    ring, sine = around(dimension), 1 / np.cosh(y)
    points = np.column_stack([np.repeat(-np.tanh(y), len(ring)), np.kron(sine[:, None], ring)])
    return ps.TokenMeasure(points, np.repeat(sine ** (dimension - 1), len(ring))[None])


def dirac(dimension: int) -> ps.TokenMeasure:
    """All mass at e₁."""
    return ps.TokenMeasure(np.eye(dimension)[:1], np.ones((1, 1)))


def distances(
    of: ps.Model, quadrature: ps.TokenMeasure, law: ps.Law, depths: Sequence[float], step: float
) -> np.ndarray:
    """W₂ of weighted tokens to the Dirac mass at e₁."""
    tokens = ps.Particles(of, quadrature=quadrature, evaluation=ps.Evaluation(method="dense"))
    simulation = ps.Simulation(tokens, law, depths[-1], scheme=ps.SSP(4, step=step))
    found = simulation.record(ps.wasserstein_to(dirac(of.manifold.ambient_dimension), method="exact"), at=depths)
    simulation.run()
    return found.values


def over_depth(slopes: np.ndarray, depths: np.ndarray, rate: float, first: int) -> ps.Study:
    """How far the local slopes are from the rate, relative to it, over the depth up to which they are taken."""
    found = dict(zip(depths[1:], slopes, strict=True))
    study = ps.converge(
        lambda depth: abs(found[depth] - rate) / rate,
        depths[1 + first :],
        abscissa="depth",
        name="the local slope of log W₂ against its limit",
    )
    return replace(study, refines=False)  # the error falls exponentially


def picture(depths: np.ndarray, slopes: np.ndarray, rate: float) -> ps.Figure:
    """The local slope over depth, beside its limit."""
    middles = (depths[1:] + depths[:-1]) / 2
    return ps.Figure(
        (
            ps.Curve(depths, np.full(len(depths), rate), "limit", expected=True),
            ps.Curve(middles, slopes, "measured"),
        ),
        "t",
        "−d log W₂ / dt",
    )


def check_cap(trial: ps.Trial) -> Iterator[ps.Check]:
    """The law begins on a cap that leaves out the antipode: softmax e^{−t}, unnormalised e^{−e^β t}."""
    # the depth at which W₂ begins to decay at its rate depends on how long the law first stays wide
    cases = [
        (2, 1.0, "softmax", 10, 6e-7),
        (2, 4.0, "softmax", 14, 4.5e-7),
        (3, 1.0, "softmax", 10, 6e-7),
        (2, 1.0, "unnormalised", 12, 6e-7),
        (3, 2.0, "unnormalised", 18, 5e-7),
        (4, 1.0, "softmax", 11, 1.8e-7),
    ]
    for dimension, beta, normaliser, end, tolerance in cases[3:4] if trial.quick else cases:
        of = model(trial, dimension, beta, normaliser)
        rate, _ = clustering_rate(of.manifold, of.velocity.summands()[0], full_support=False)
        depths = np.arange(0.0, end - 1 if trial.quick else end + 1) / rate
        quadrature = rings(dimension, -5.0, 0.45, 0.25)  # a up to 2
        law = ps.Expression("1 + 0.5*x1")
        slopes = -np.diff(np.log(distances(of, quadrature, law, depths, 0.05 / rate))) / np.diff(depths)
        name = "SA" if normaliser == "softmax" else "USA"
        yield ps.Check(
            f"rate of W₂ to the Dirac mass, law in a cap, {of.manifold}, {name}, β = {beta:g}",
            slopes[-1],
            rate,
            4e-5 if trial.quick else tolerance,
            ps.DERIVED,
            relation="relative",
            method=WEIGHTED,
            study=over_depth(slopes, depths, rate, 2),
            figure=picture(depths, slopes, rate),
        )


def check_general_values(trial: ps.Trial) -> Iterator[ps.Check]:
    """Tokens e₁ + ξ_i with V e₁ = λ₁ e₁: their mean relaxes at λ₁ − λ_j along e_j, their spread about it at λ₁.

    To first order ξ_i' = V ξ̄ − λ₁ ξ_i, times e^{β⟨Q e₁, K e₁⟩} for unnormalised attention, whatever Q, K and β are.
    """
    values, beta, depth = np.array([1.0, 0.6, -0.5]), 2.0, 0.5
    query = np.array([[0.9, 0.2, -0.3], [-0.4, 1.1, 0.1], [0.2, 0.5, 0.7]])
    key = np.array([[1.0, -0.2, 0.4], [0.3, 0.8, -0.1], [-0.5, 0.1, 1.2]])
    means = np.array([0.6, -0.8])
    # of sum zero, so that they are no part of the mean
    spreads = np.array([[1.0, 0.3], [-0.6, 0.8], [-0.7, -0.2], [0.3, -0.9]])
    head = "model.attention.0"
    matrices = {"query": query, "key": key, "value": np.diag(values)}
    changes = [f"{head}.{name}={matrix.tolist()}" for name, matrix in matrices.items()]
    where = (
        "model.manifold=sphere",
        "model.dimension=3",
        f"{head}.beta={beta}",
        "mesh=",
        "discretisation={kind='particles'}",
    )
    # three times the errors for displacements of 1e-4
    cases = [("softmax", "SA", 1e-7), ("unnormalised", "USA", 1.6e-7)]
    for normaliser, name, tolerance in cases[1:] if trial.quick else cases:
        of = trial.case(*where, f"{head}.normaliser={normaliser}", *changes).model
        factor = np.exp(beta * query[:, 0] @ key[:, 0]) if normaliser == "unnormalised" else 1.0
        exact = factor * np.array([values[0] - values[1], values[0] - values[2], values[0]])
        steps = ps.SSP(4, step=depth / 25 / factor)  # which are wrong by 2e-9
        found: list[np.ndarray] = []

        def displacements(size: float, of=of, factor=factor, steps=steps) -> np.ndarray:
            """ξ at the depth, (tokens, 2)."""
            beside = size * (means + spreads)
            points = np.column_stack([np.sqrt(1 - (beside**2).sum(axis=1)), beside])
            quadrature = ps.TokenMeasure(points, np.full((1, 4), 0.25))
            tokens = ps.Particles(of, quadrature=quadrature, evaluation=ps.Evaluation(method="dense"))
            # the density 1 leaves the weights as they are
            simulation = ps.Simulation(tokens, ps.Expression("1"), depth / factor, scheme=steps)
            simulation.run()
            return simulation.snapshot.law.gathered().points[:, 1:]

        def error(size: float, displacements=displacements, factor=factor, exact=exact, found=found) -> float:
            # the second order cancels between both signs
            after = (displacements(size) - displacements(-size)) / (2 * size)
            mean = after.mean(axis=0)
            spread = ((after - mean) * spreads).sum() / (spreads**2).sum()
            found.append(-np.log([*(mean / means), spread]) * factor / depth)
            return np.abs(found[-1] / exact - 1).max()

        study = ps.converge(error, trial.resolutions(1e-2, 1e-3, 1e-4, quick=2), abscissa="displacement")
        what = f"V = diag(1, 0.6, −0.5), S², {name}, β = {beta:g}"
        yield ps.Check(
            f"rates of mean and spread of tokens near e₁ / (λ₁ − λ₂, λ₁ − λ₃, λ₁), {what}",
            found[-1] / exact,
            np.ones(3),
            100 * tolerance if trial.quick else tolerance,
            ps.DERIVED,
            method="particles",
            study=study,
        )
        yield ps.Check(
            f"observed order in the displacement of tokens, {what}",
            float(study.orders("error")[0]),
            1.95,
            0.0,
            ps.DERIVED,
            "at least",
            "particles",
            study,
        )


def check_independent_tokens(trial: ps.Trial) -> Iterator[ps.Check]:
    """Tokens drawn at random from a cap: the limit is where they end up, not the cap's centre."""
    of = model(trial, 3, 1.0, "softmax")
    law = ps.UniformOn(ps.Cap((1.0, 0.0, 0.0), 1.3))
    tokens = ps.Particles(of, count=100, seed=4, evaluation=ps.Evaluation(method="dense"))
    simulation = ps.Simulation(tokens, law, 16.0, scheme=ps.SSP(4, step=0.05))
    points = simulation.record(lambda snapshot: snapshot.law.gathered().points, at=np.arange(17.0))
    simulation.run()
    limit = points.values[-1].mean(axis=0)
    target = ps.TokenMeasure(limit[None] / np.linalg.norm(limit), np.ones((1, 1)))
    weights = np.full((1, 100), 0.01)
    depths = np.arange(9.0)
    found = [ps.wasserstein(ps.TokenMeasure(x, weights), target, of.manifold, p=2) for x in points.values[:9]]
    slopes = -np.diff(np.log(found))
    yield ps.Check(
        "rate of W₂ to the Dirac mass, 100 tokens at random in a cap, S², SA, β = 1",
        slopes[-1],
        1.0,
        4e-6,
        ps.DERIVED,
        relation="relative",
        method="particles",
        study=over_depth(slopes, depths, 1.0, 2),
        figure=picture(depths, slopes, 1.0),
    )


def check_positive_everywhere(trial: ps.Trial) -> Iterator[ps.Check]:
    """A smooth law that is positive at the antipode: what leaves the antipode last decides where (d−1) r₂ / 2 < r₁."""
    # dimension, β, normaliser, how far tokens crowd at the antipode, their distance, last depth (full, quick), tolerances
    cases = [
        (2, 1.0, "softmax", 32.0, 0.5, (18.0, 14.0), (4e-6, 8e-5)),
        (2, 0.5, "unnormalised", 32.0, 0.25, (26.0, 18.0), (1e-6, 2e-4)),
        (2, 1.0, "unnormalised", 26.0, 0.125, (28.0, 18.0), (2e-4, 4e-3)),
        (3, 0.5, "unnormalised", 24.0, 0.25, (18.0, 12.0), (6e-7, 3e-4)),
        (4, 1.0, "softmax", 20.0, 0.5, (14.0, 10.0), (3e-5, 2e-3)),
    ]
    for dimension, beta, normaliser, highest, step, ends, tolerances in cases[:1] if trial.quick else cases:
        of = model(trial, dimension, beta, normaliser)
        rate, power = clustering_rate(of.manifold, of.velocity.summands()[0], full_support=True)
        assert power == 0
        depths = np.arange(0.0, ends[trial.quick] + 1, 2.0)
        quadrature = rings(dimension, -8.0 if dimension == 2 else -5.0, highest, step)
        slopes = -np.diff(np.log(distances(of, quadrature, ps.Expression("1 + 0.5*x1"), depths, 0.1))) / 2
        name = "SA" if normaliser == "softmax" else "USA"
        yield ps.Check(
            f"rate of W₂ to the Dirac mass, positive density, {of.manifold}, {name}, β = {beta:g}",
            slopes[-1],
            rate,
            tolerances[trial.quick],
            ps.DERIVED,
            relation="relative",
            method=WEIGHTED,
            study=over_depth(slopes, depths, rate, 3),
            figure=picture(depths, slopes, rate),
        )


def power_of_depth(depths: np.ndarray, squares: np.ndarray) -> float:
    """q of squares = A (t + t₀)^{2q}, from three depths."""
    growth = np.diff(np.log(squares))

    def mismatch(shift: float) -> float:
        logs = np.diff(np.log(depths + shift))
        return growth[0] * logs[1] - growth[1] * logs[0]

    shift = brentq(mismatch, -depths[0] + 1e-3, 1e3, xtol=1e-14)
    return float((growth.sum() / np.log((depths[2] + shift) / (depths[0] + shift))) / 2)


def check_resonance(trial: ps.Trial) -> Iterator[ps.Check]:
    """Softmax on S²: both rates are 1, and W₂ ~ t^{1/2} e^{−t}."""
    of = model(trial, 3, 1.0, "softmax")
    rate, power = clustering_rate(of.manifold, of.velocity.summands()[0], full_support=True)
    depths = np.arange(0.0, 15.0 if trial.quick else 19.0, 2.0)
    found = distances(of, rings(3, -5.0, 24.0, 0.5), ps.Expression("1 + 0.5*x1"), depths, 0.1)
    squares = found**2 * np.exp(2 * rate * depths)
    powers = {
        end: power_of_depth(depths[end - 2 : end + 1], squares[end - 2 : end + 1]) for end in range(5, len(depths))
    }
    study = ps.converge(
        lambda end: abs(powers[end] - power), list(powers), resolution=lambda end: depths[end], abscissa="depth"
    )
    yield ps.Check(
        "power q of depth in W₂ ~ t^q e^{−t}, positive density, the sphere S^2, SA, β = 1",
        powers[len(depths) - 1],
        power,
        5e-4 if trial.quick else 2e-4,
        ps.DERIVED,
        method=WEIGHTED,
        study=replace(study, refines=False),
        figure=ps.Figure(
            (
                ps.Curve(
                    depths,
                    squares[-1] + (depths - depths[-1]) * (squares[-1] - squares[-2]) / 2,
                    "a line",
                    expected=True,
                ),
                ps.Curve(depths, squares, "measured"),
            ),
            "t",
            "e^{2t} W₂²",
        ),
    )


def mesh_distances(trial: ps.Trial, *changes: str, stop: float) -> tuple[np.ndarray, np.ndarray]:
    """Depths and W₂ of the density on the mesh to the Dirac mass at e₁."""
    simulation = trial.simulation(*changes, f"time.stop={stop}")
    found = simulation.record(ps.wasserstein_to(dirac(2)), every=0.5)
    simulation.run()
    return found.times, found.values


def check_mesh(trial: ps.Trial) -> Iterator[ps.Check]:
    """W₂ of a density on a mesh while the mesh resolves it: against the exact law at β = 0, against tokens at β = 1."""
    stop = 3.0 if trial.quick else 5.0
    flow = PoissonKernelFlow((0.3, 0.0))
    depths = np.arange(0.0, stop + 0.25, 0.5)
    exact = {"β = 0": np.array([flow.wasserstein_to_dirac(t) for t in depths])}
    changes = {"β = 0": ("model.attention.0.beta=0.0", "initial={law='poisson-kernel', w=[0.3, 0.0]}"), "SA, β = 1": ()}
    if not trial.quick:
        # smaller steps than elsewhere: at 0.05 they are wrong by 8e-9
        fine = model(trial, 2, 1.0, "softmax"), rings(2, -26.0, 26.0, 0.25)
        exact["SA, β = 1"] = distances(*fine, ps.Expression("1 + 0.5*x1"), depths, 0.0125)
    for name, expected in exact.items():
        runs = []

        def errors(cells: int, name=name, expected=expected, runs=runs) -> float:
            runs.append(mesh_distances(trial, *changes[name], f"mesh.cells={cells}", stop=stop)[1])
            return float(np.abs(runs[-1] / expected - 1).max())

        study = ps.converge(errors, trial.resolutions(64, 128, 256, quick=2), resolution=lambda n: 2 * np.pi / n)
        yield ps.Check(
            f"W₂ to the Dirac mass at {len(depths)} depths over its value, positive density, the circle, {name}",
            runs[-1] / expected,
            np.ones(len(depths)),
            3.5e-9 if trial.quick else 6e-10,
            ps.DERIVED,
            method=GALERKIN,
            study=study,
            figure=ps.Figure(
                (ps.Curve(depths, expected, "expected", expected=True), ps.Curve(depths, runs[-1], "mesh")),
                "t",
                "W₂",
                "log-y",
            ),
        )
