"""Two clusters: how long they take to merge, the energy that this sets free, and the same for narrow bumps on a mesh."""

from collections.abc import Iterator, Sequence

import numpy as np

import pde_solver as ps
from pde_solver.solutions import two_cluster_time

SOURCE = "derived for this project; the setting is that of arXiv:2312.10794"

TOKENS = "particles, one weighted token for each cluster"
NAMES = {"softmax": "SA", "unnormalised": "USA"}
DIRECT = ps.Evaluation(method="dense")
#: The angle at which two clusters count as merged.
MERGED = 0.1
#: Cells of the mesh in the width of a bump at the start.
CELLS_OF_A_WIDTH = 3.0
#: Of which the longest merger takes 106.
MOST_RUNS = 500


def model_of(trial: ps.Trial, normaliser: str, beta: float, *more: str) -> ps.Model:
    """The case's model with another head."""
    head = "model.attention.0"
    return trial.case(f"{head}.normaliser={normaliser}", f"{head}.beta={beta}", *more).model


def on_circle(*angles: float) -> np.ndarray:
    """Points (n, 2)."""
    return np.column_stack([np.cos(angles), np.sin(angles)])


def angle_between(x: np.ndarray, y: np.ndarray) -> float:
    """Right to rounding, relative, for small angles too."""
    return float(2 * np.arctan2(np.linalg.norm(x - y), np.linalg.norm(x + y)))


def tokens_at(
    model: ps.Model, points: np.ndarray, masses: Sequence[float], depths: Sequence[float], tolerance: float
) -> list[ps.Snapshot]:
    """Weighted tokens at increasing depths ≥ 0: copies of the snapshots."""
    particles = ps.Particles(model, quadrature=ps.TokenMeasure(points, np.array([masses])), evaluation=DIRECT)
    # the density 1 leaves the masses as they are
    simulation = ps.Simulation(particles, ps.Expression("1"), depths[-1], scheme=ps.EmbeddedRK(5, tolerance))
    found: list[ps.Snapshot] = []
    simulation.observe(lambda s: found.append(ps.Snapshot(s.t, s.step, s.state.copy(), s.discretisation)), at=depths)
    simulation.run()
    return found


def merging_depth(
    model: ps.Model, points: np.ndarray, masses: Sequence[float], pair: tuple[int, int], tolerance: float
) -> float:
    """The depth at which the angle between two tokens has fallen to `MERGED`.

    Merging takes 1 to 3e7 units of depth and ends in a few, so that no list of depths fits all. Runs go on from each other
    instead: each lasts a share of the depth y/|y'| that is left by the velocity of its start, y = ln tan(θ/2) above its end,
    short enough that the angle is never overshot; the last are Newton's method. nan where they do not approach each other.
    """
    beta, depth = model.velocity.summands()[0].beta, 0.0
    i, j = pair
    for _ in range(MOST_RUNS):
        measure = ps.TokenMeasure(points, np.array([masses]))
        velocity = ps.velocity(model, depth, points, measure)[0]
        angle = angle_between(points[i], points[j])
        left = np.log(np.tan(angle / 2) / np.tan(MERGED / 2))
        # θ' = (v_i − v_j)·(x_i − x_j) / sin θ, and y' = θ' / sin θ
        slope = float((velocity[i] - velocity[j]) @ (points[i] - points[j])) / np.sin(angle) ** 2
        if slope >= 0:
            break
        if abs(left) < 1e-7:
            return depth - left / slope
        share = min(0.9 * left if left > 1e-3 else left, 0.5 / (1 + beta))
        run = tokens_at(model, points, masses, [-share / slope], tolerance)[-1]
        depth += run.t
        points = run.law.gathered().points
    return np.nan


def check_depth_of_merging(trial: ps.Trial) -> Iterator[ps.Check]:
    """From θ₀ to 0.1, up to 3.2e7 units of depth: β = 9 is exponential metastability."""
    # three times the relative errors from θ₀ = 1, 2, 3 that the tolerance 1e-11 of the time stepping leaves; from 3 for β = 9
    # one rounding of the angle is 1e-15 of the depth, and one tolerance 1e-10
    tolerances = {
        ("softmax", 1.0): (1e-10, 6.5e-11, 2.4e-11),
        ("softmax", 4.0): (8e-11, 4e-11, 1e-11),
        ("softmax", 9.0): (2.2e-11, 1.1e-10, 7e-10),
        ("unnormalised", 1.0): (1e-10, 5e-11, 3e-11),
        ("unnormalised", 4.0): (6e-11, 4e-11, 1e-11),
        ("unnormalised", 9.0): (2.6e-11, 1.1e-10, 7e-10),
    }
    betas = (4.0,) if trial.quick else (1.0, 4.0, 9.0)
    starts = (2.0,) if trial.quick else (1.0, 2.0, 3.0)
    for normaliser, name in NAMES.items():
        curves: list[ps.Curve] = []
        for beta in betas:
            model = model_of(trial, normaliser, beta)
            head = model.velocity.summands()[0]
            measured: list[float] = []
            for start, tolerance in zip(starts, tolerances[normaliser, beta], strict=not trial.quick):
                exact = two_cluster_time(start, MERGED, head)
                found: list[float] = []

                def error(tolerance: float, model=model, start=start, exact=exact, found=found) -> float:
                    found.append(merging_depth(model, on_circle(0.0, start), [0.5, 0.5], (0, 1), tolerance))
                    return abs(found[-1] / exact - 1)

                study = ps.converge(error, trial.resolutions(1e-7, 1e-9, 1e-11, quick=2), abscissa="tolerance")
                measured.append(found[-1])
                curve, dots = _curves(head, beta, starts, measured)
                complete = beta == betas[-1] and start == starts[-1]
                yield ps.Check(
                    f"depth from θ₀ = {start:g} to {MERGED}, {name}, β = {beta:g}",
                    found[-1],
                    exact,
                    1e-8 if trial.quick else tolerance,
                    SOURCE,
                    "relative",
                    TOKENS,
                    study,
                    figure=ps.Figure([*curves, curve, dots], "angle θ₀", "depth of merging", "log-y")
                    if complete
                    else None,
                )
            curves += [curve, dots]


def _curves(
    head: ps.Attention, beta: float, starts: Sequence[float], measured: list[float]
) -> tuple[ps.Curve, ps.Curve]:
    fine = np.linspace(0.3, 3.05, 50)
    exact = [two_cluster_time(angle, MERGED, head) for angle in fine]
    return (
        ps.Curve(fine, exact, f"exact, β = {beta:g}", expected=True),
        ps.Curve(starts[: len(measured)], measured, f"tokens, β = {beta:g}"),
    )


def check_what_does_not_matter(trial: ps.Trial) -> Iterator[ps.Check]:
    """Clusters of eight tokens each, the dimension of the sphere, and, for unnormalised attention, the masses."""
    start, beta = 2.0, 4.0
    sphere = ("model.manifold=sphere", "model.dimension=3")
    one, other = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    turned = np.stack([one, np.cos(start) * one + np.sin(start) * other])
    eight = (np.repeat(on_circle(0.0, start), 8, axis=0), [1 / 16] * 16, (0, 8))
    cases = {
        "SA, eight tokens in each cluster": ("softmax", eight),
        "USA, eight tokens in each cluster": ("unnormalised", eight),
        "SA, on S²": ("softmax", (turned, [0.5, 0.5], (0, 1))),
        "USA, masses 0.3 and 0.7": ("unnormalised", (on_circle(0.0, start), [0.3, 0.7], (0, 1))),
    }
    for what, (normaliser, (points, masses, pair)) in list(cases.items())[2 if trial.quick else 0 :]:
        # no mesh of the circle on S²; its model alone is wanted
        changes = (*sphere, "mesh={kind='icosphere'}", "initial={law='uniform'}") if points.shape[1] == 3 else ()
        model = model_of(trial, normaliser, beta, *changes)
        exact = two_cluster_time(start, MERGED, model.velocity.summands()[0])
        found: list[float] = []

        def error(
            tolerance: float, model=model, points=points, masses=masses, pair=pair, exact=exact, found=found
        ) -> float:
            found.append(merging_depth(model, points, masses, pair, tolerance))
            return abs(found[-1] / exact - 1)

        study = ps.converge(error, trial.resolutions(1e-7, 1e-9, 1e-11, quick=2), abscissa="tolerance")
        yield ps.Check(
            f"depth from θ₀ = {start:g} to {MERGED}, β = {beta:g}, {what}",
            found[-1],
            exact,
            1e-8 if trial.quick else 5e-11,
            SOURCE,
            "relative",
            "particles",
            study,
        )


def check_energy_along_a_merger(trial: ps.Trial) -> Iterator[ps.Check]:
    """e^{−β} E = (1 − 2 p₁p₂ (1 − e^{β(cos θ − 1)})) / (2β) at the depths where θ is 2, 1.5, 1, 0.5, 0.1, 0.01."""
    angles, beta = np.array([2.0, 1.5, 1.0, 0.5, 0.1, 0.01]), 4.0
    for normaliser, masses in (("softmax", [0.5, 0.5]), ("unnormalised", [0.3, 0.7]))[1 if trial.quick else 0 :]:
        model = model_of(trial, normaliser, beta)
        head = model.velocity.summands()[0]
        depths = [two_cluster_time(angles[0], angle, head) for angle in angles]
        product = masses[0] * masses[1]
        expected = (1 - 2 * product * (1 - np.exp(beta * (np.cos(angles) - 1)))) / (2 * beta)
        jump = product / beta * (1 - np.exp(beta * (np.cos(angles[0]) - 1)))
        # at the angle 0.01 all but 2e-4 of the jump is done: (1 − e^{β(cos θ − 1)}) p₁p₂ / β, taken into account
        rest = product / beta * (1 - np.exp(beta * (np.cos(angles[-1]) - 1)))
        runs: list[np.ndarray] = []

        def climbed(energies: np.ndarray, rest=rest) -> float:
            return float(energies[-1] - energies[0] + rest)

        def errors(
            tolerance: float, model=model, masses=masses, depths=depths, expected=expected, jump=jump, runs=runs
        ) -> dict[str, float]:
            found = tokens_at(model, on_circle(0.0, angles[0]), masses, depths, tolerance)
            runs.append(np.exp(-beta) * np.array([ps.interaction_energy(snapshot) for snapshot in found]))
            return {"energy": np.abs(runs[-1] - expected).max(), "jump": abs(climbed(runs[-1]) - jump)}

        study = ps.converge(errors, trial.resolutions(1e-7, 1e-9, 1e-11, quick=2), abscissa="tolerance")
        what = f"{NAMES[normaliser]}, β = {beta:g}, masses {masses[0]} and {masses[1]}"
        tolerance, of_jump = (5e-9, 1e-11) if trial.quick else (1e-11, 6e-14 if normaliser == "softmax" else 4e-14)
        yield ps.Check(
            f"energy at six angles, {what}", runs[-1], expected, tolerance, SOURCE, "absolute", TOKENS, study
        )
        yield ps.Check(
            f"jump of the energy as they merge, {what}",
            climbed(runs[-1]),
            float(jump),
            of_jump,
            SOURCE,
            "absolute",
            TOKENS,
            study,
        )


def check_staircase(trial: ps.Trial) -> Iterator[ps.Check]:
    """Three clusters of masses p: the energy waits at Σ p² / (2β) of the clusters that are left, and jumps by p_i p_j / β."""
    masses, angles = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, -1.2])
    # unnormalised attention keeps Σ p θ, so that the first two meet at 0.3 / 0.8
    apart = 0.3 / 0.8 - angles[2]
    betas = trial.resolutions(4.0, 6.0, 8.0, quick=2)
    runs: list[tuple[np.ndarray, np.ndarray]] = []

    def levels(beta: float) -> np.ndarray:
        """The energy of three, two and one clusters, the first at their angles, the second at theirs."""
        three = masses @ np.exp(beta * (np.cos(angles[:, None] - angles) - 1)) @ masses
        two = 0.8**2 + 0.2**2 + 2 * 0.8 * 0.2 * np.exp(beta * (np.cos(apart) - 1))
        return np.array([three, two, 1.0]) / (2 * beta)

    def errors(beta: float) -> dict[str, float]:
        model = model_of(trial, "unnormalised", beta, f"model.attention.0.log_scale={beta}")
        head = model.velocity.summands()[0]
        first, last = two_cluster_time(1.0, 0.01, head) / 0.8, two_cluster_time(apart, 0.001, head)
        plateau = first + 0.1 * (last - first)
        depths = np.unique([0.0, *np.geomspace(0.1, 1.3 * last, 60), plateau])
        found = tokens_at(model, on_circle(*angles), list(masses), list(depths), 1e-9)
        energies = np.array([ps.interaction_energy(snapshot) for snapshot in found])
        runs.append((depths, energies))
        heights = energies[[0, np.flatnonzero(depths == plateau)[0], -1]]
        jumps = np.diff(heights) * beta / [masses[0] * masses[1], 0.8 * 0.2]
        return {"levels": np.abs(heights / levels(beta) - 1).max(), "jumps": np.abs(jumps - 1).max()}

    # e^{β(cos θ − 1)}, by which a jump falls short of p_i p_j / β
    study = ps.converge(
        errors, betas, resolution=lambda beta: float(np.exp(beta * (np.cos(1.0) - 1))), abscissa="e^{β(cos 1 − 1)}"
    )
    beta, (depths, energies) = betas[-1], runs[-1]
    shown = np.log10(depths[1:])
    stairs = [
        ps.Curve(shown, np.full(len(shown), level), f"{count}", expected=True)
        for count, level in zip(("three clusters", "two clusters", "one cluster"), levels(beta), strict=True)
    ]
    figure = ps.Figure([*stairs, ps.Curve(shown, energies[1:], "tokens")], "log₁₀ of depth", "energy")
    yield ps.Check(
        f"levels of the energy of 3, 2, 1 clusters, USA divided by e^β, β = {beta:g}, relative",
        study.last("levels"),
        0.0,
        3e-3 if trial.quick else 3e-4,
        SOURCE,
        method=TOKENS,
        study=study,
        figure=figure,
    )
    yield ps.Check(
        f"jumps of the energy over p_i p_j / β, minus one, β = {beta:g}",
        study.last("jumps"),
        0.0,
        0.15 if trial.quick else 0.06,
        SOURCE,
        method=TOKENS,
        study=study,
    )


def check_bumps_on_a_mesh(trial: ps.Trial) -> Iterator[ps.Check]:
    """Two bumps of width κ^{−1/2}, to 1.2 apart: the angle between the means of both halves, and width → 0.

    Bumps shrink like e^{−t} at least, so that a mesh holds them while they merge within a few units of depth, not longer.
    """
    end = 1.2
    # three times the error for κ = 200, and what is left of it after extrapolation
    cases = (
        ("softmax", 1.0, 2.0, 1.1e-2, 1.5e-4),
        ("softmax", 2.0, 1.5, 1.2e-2, 2.3e-4),
        ("unnormalised", 1.0, 2.0, 4e-3, 2e-4),
    )
    for normaliser, beta, start, tolerance, extrapolated in cases[: 1 if trial.quick else None]:
        head = "model.attention.0"
        changes = (f"{head}.normaliser={normaliser}", f"{head}.beta={beta}")
        depth = two_cluster_time(start, end, trial.case(*changes).model.velocity.summands()[0])
        found: list[float] = []

        def angle(kappa: float, changes=changes, depth=depth, start=start) -> float:
            cells = 4 * round(np.pi / 2 * CELLS_OF_A_WIDTH * kappa**0.5)
            bumps = [f"initial.components.{i}.kappa={kappa}" for i in (0, 1)]
            places = [(float(np.cos(start / 2)), sign * float(np.sin(start / 2))) for sign in (1, -1)]
            bumps += [f"initial.components.{i}.mean={list(place)}" for i, place in enumerate(places)]
            simulation = trial.simulation(*changes, *bumps, f"mesh.cells={cells}", f"time.stop={depth!r}")
            simulation.run()
            law = simulation.snapshot.law
            return float(2 * law.integrate(lambda x: np.abs(np.arctan2(x[:, 1], x[:, 0])))[0])

        def errors(kappa: float, angle=angle, found=found) -> dict[str, float]:
            found.append(angle(kappa))
            # of second order in the width: half the error of half the κ
            beyond = {"extrapolated": abs(2 * found[-1] - found[-2] - end)} if len(found) > 1 else {}
            return {"angle": abs(found[-1] - end)} | beyond

        study = ps.converge(
            errors, trial.resolutions(25.0, 50.0, 100.0, 200.0, quick=2), resolution=lambda k: k**-0.5, abscissa="width"
        )
        what = f"{NAMES[normaliser]}, β = {beta:g}"
        method = "discontinuous Galerkin, degree 3"
        yield ps.Check(
            f"angle between two bumps when clusters have come from {start:g} to {end:g}, {what}",
            found[-1],
            end,
            0.04 if trial.quick else tolerance,
            SOURCE,
            method=method,
            study=study,
        )
        yield ps.Check(
            f"that angle, extrapolated to bumps without width, {what}",
            2 * found[-1] - found[-2],
            end,
            3.5e-3 if trial.quick else extrapolated,
            SOURCE,
            method=method,
            study=study,
        )
        yield ps.Check(
            f"observed order in the width of the bumps, {what}",
            study.order("angle"),
            1.85 if trial.quick else 1.9,
            0.0,
            SOURCE,
            "at least",
            method,
            study,
        )
