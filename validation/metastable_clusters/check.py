"""Equal clusters, equispaced on the circle: how fast displacements grow, tokens of a cluster meet, and how long it all lasts."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import pde_solver as ps
from pde_solver.solutions import inter_cluster_rates, intra_cluster_rate

TOKENS = "particles, weighted"
GALERKIN = "discontinuous Galerkin, degree 3"
SYNCHRONISATION = "arXiv:2507.22857"
THRESHOLD = "derived for this project; the threshold −2/3 is that of arXiv:2507.22857"
NAMES = {"softmax": "SA", "unnormalised": "USA"}
DIRECT = ps.Evaluation(method="dense")
PRECISE = ps.EmbeddedRK(5, 1e-12)

#: Three times the relative errors of λ_k for displacements of 1e-4, by normaliser and β, for 2, 3, 4, 5 clusters.
BETWEEN = {
    ("softmax", 1.0): (6.5e-8, 5.4e-9, 1.4e-7, 1.2e-7),
    ("softmax", 4.0): (3.9e-7, 4.4e-7, 3.7e-7, 6.3e-8),
    ("softmax", 9.0): (9e-7, 2e-6, 2.7e-6, 1.4e-6),
    ("softmax", -1.0): (3.9e-8, 1.9e-7, 1.5e-7, 8.4e-8),
    ("unnormalised", 1.0): (7.7e-8, 1.7e-8, 9.6e-8, 1.1e-7),
    ("unnormalised", 4.0): (3.9e-7, 4.5e-7, 4.3e-7, 1.2e-7),
    ("unnormalised", 9.0): (9e-7, 1.9e-6, 2.7e-6, 1.5e-6),
    ("unnormalised", -1.0): (1.3e-7, 1.9e-7, 2e-7, 8.7e-8),
}
#: The same of λ, by which tokens of one cluster meet.
INSIDE = {
    ("softmax", 1.0): (6e-8, 1.3e-7, 2.3e-7, 4.7e-7),
    ("softmax", 4.0): (1.1e-7, 1.2e-7, 1.7e-7, 3e-7),
    ("softmax", 9.0): (2e-7, 2e-7, 2e-7, 2.4e-7),
    ("softmax", -1.0): (1.3e-7, 1.4e-7, 5e-7, 4.6e-7),
    ("unnormalised", 1.0): (7.4e-8, 1.4e-7, 2.3e-7, 4.7e-7),
    ("unnormalised", 4.0): (1.8e-7, 1.9e-7, 2.4e-7, 3.4e-7),
    ("unnormalised", 9.0): (3.7e-7, 3.7e-7, 3.7e-7, 4.1e-7),
    ("unnormalised", -1.0): (1.7e-7, 1.3e-7, 5e-7, 4.6e-7),
}


def model_of(trial: ps.Trial, normaliser: str, beta: float) -> ps.Model:
    """The case's model with another head; β < 0 is a query −I; USA is divided by e^|β|."""
    head = "model.attention.0"
    changes = [f"{head}.normaliser={normaliser}", f"{head}.beta={abs(beta)}"]
    changes += [f"{head}.log_scale={abs(beta)}"] if normaliser == "unnormalised" else []
    changes += [f"{head}.query=[[-1, 0], [0, -1]]"] if beta < 0 else []
    return trial.case(*changes).model


def head_of(model: ps.Model) -> ps.Attention:
    """The one head."""
    return model.velocity.summands()[0]


def equispaced(clusters: int) -> np.ndarray:
    """2πj/p, (p,)."""
    return 2 * np.pi * np.arange(clusters) / clusters


def angles_at(
    model: ps.Model,
    angles: np.ndarray,
    depths: list[float],
    scheme: ps.EmbeddedRK = PRECISE,
    masses: np.ndarray | None = None,
) -> np.ndarray:
    """The angles of weighted tokens at the depths, (depths, n), as turns from where they began."""
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    weights = np.full(len(angles), 1 / len(angles)) if masses is None else masses
    particles = ps.Particles(model, quadrature=ps.TokenMeasure(points, weights[None]), evaluation=DIRECT)
    # the density 1 leaves the masses as they are
    simulation = ps.Simulation(particles, ps.Expression("1"), depths[-1], scheme=scheme)
    found: list[np.ndarray] = []

    def look(snapshot: ps.Snapshot) -> None:
        x = snapshot.law.gathered().points
        turn = np.arctan2(points[:, 0] * x[:, 1] - points[:, 1] * x[:, 0], (points * x).sum(axis=1))
        found.append(angles + turn)

    simulation.observe(look, at=depths)
    simulation.run()
    return np.array(found)


def growth(model: ps.Model, rest: np.ndarray, mode: np.ndarray, size: float, depth: float) -> float:
    """log of the growth of a displacement size · mode per depth; the second order cancels between its two signs."""
    ahead, behind = (angles_at(model, rest + sign * size * mode, [depth])[0] for sign in (1, -1))
    return float(np.log(np.dot(mode, ahead - behind) / (2 * size * np.dot(mode, mode))) / depth)


def cases(trial: ps.Trial) -> Iterator[tuple[str, ps.Model, int, tuple[str, float]]]:
    """Normaliser, β and the number of clusters, in words and as a model; the key of `BETWEEN` and `INSIDE`."""
    for normaliser, name in NAMES.items():
        for beta in (4.0,) if trial.quick else (1.0, 4.0, 9.0, -1.0):
            for clusters in (3,) if trial.quick else (2, 3, 4, 5):
                yield (
                    f"{name}, β = {beta:g}, p = {clusters}",
                    model_of(trial, normaliser, beta),
                    clusters,
                    (normaliser, beta),
                )


def check_between_clusters(trial: ps.Trial) -> Iterator[ps.Check]:
    """λ_k for k = 1, …, p/2, by displacements cos(k x_j) of size 1e-2 to 1e-4."""
    studies: list[ps.Study] = []
    for what, model, clusters, key in cases(trial):
        rest = equispaced(clusters)
        exact = inter_cluster_rates(clusters, head_of(model))[1 : clusters // 2 + 1]
        modes = [np.cos(k * rest) for k in range(1, clusters // 2 + 1)]
        found: list[np.ndarray] = []

        def error(size: float, model=model, rest=rest, exact=exact, modes=modes, found=found) -> float:
            # long enough to grow or decay by e^{1/2}
            rates = [growth(model, rest, m, size, 0.5 / abs(r)) for m, r in zip(modes, exact, strict=True)]
            found.append(np.array(rates))
            return np.abs(found[-1] / exact - 1).max()

        study = ps.converge(error, trial.resolutions(1e-2, 1e-3, 1e-4, quick=2), abscissa="displacement")
        studies.append(replace(study, name=what))
        yield ps.Check(
            f"rates λ_k / (the closed form) between clusters, k ≤ p/2, {what}",
            found[-1] / exact,
            np.ones_like(exact),
            4e-5 if trial.quick else BETWEEN[key][clusters - 2],
            ps.DERIVED,
            "relative",
            TOKENS,
            study,
        )
    least = min(studies, key=lambda study: study.orders("error")[0])
    yield ps.Check(
        "least observed order in the displacement, from 1e-2 to 1e-3",
        float(least.orders("error")[0]),
        1.95,
        0.0,
        ps.DERIVED,
        "at least",
        TOKENS,
        least,
    )


def check_inside_a_cluster(trial: ps.Trial) -> Iterator[ps.Check]:
    """Each cluster is two tokens, 2ε apart: how fast they meet (or part, for β < 0)."""
    for what, model, clusters, key in cases(trial):
        rest, sides = np.repeat(equispaced(clusters), 2), np.tile([1.0, -1.0], clusters)
        exact = intra_cluster_rate(clusters, head_of(model))
        fastest = inter_cluster_rates(clusters, head_of(model)).max()
        # not so long that the rounding of what lies between clusters grows by more than e^5
        depth = min(0.5 / abs(exact), 5 / max(fastest, 1e-300))
        found: list[float] = []

        def error(size: float, model=model, rest=rest, sides=sides, depth=depth, exact=exact, found=found) -> float:
            found.append(growth(model, rest, sides, size, depth))
            return abs(found[-1] / exact - 1)

        study = ps.converge(error, trial.resolutions(1e-2, 1e-3, 1e-4, quick=2), abscissa="displacement")
        yield ps.Check(
            f"rate inside a cluster, {what}",
            found[-1],
            exact,
            {"softmax": 1e-5, "unnormalised": 1.7e-5}[key[0]] if trial.quick else INSIDE[key][clusters - 2],
            ps.DERIVED,
            "relative",
            TOKENS,
            study,
        )


def check_where_three_clusters_attract(trial: ps.Trial) -> Iterator[ps.Check]:
    """USA, β < −2/3: three clusters hold each other; above, they leave, and at β = −0.1 all tokens meet."""
    rest = equispaced(3)
    betas = [-0.60, -0.66, -0.68, -0.70]
    rates = [growth(model_of(trial, "unnormalised", b), rest, np.cos(rest), 1e-3, 1.0) for b in betas]
    fine = np.linspace(-0.75, -0.55, 41)
    exact = [
        inter_cluster_rates(3, ps.Attention(-b, query=-np.eye(2), normaliser=ps.Unnormalised(log_scale=-b)))[1]
        for b in fine
    ]
    yield ps.Check(
        "sign of the rate between three clusters at β = −0.6, −0.66, −0.68, −0.7",
        np.sign(rates),
        np.array([1.0, 1.0, -1.0, -1.0]),
        0.0,
        THRESHOLD,
        method=TOKENS,
        exact=True,
        figure=ps.Figure(
            [ps.Curve(fine, exact, "exact", expected=True), ps.Curve(betas, rates, "tokens")],
            "β",
            "rate between 3 clusters",
        ),
    )


def check_synchronisation(trial: ps.Trial) -> Iterator[ps.Check]:
    """USA on the circle: from the same 15 tokens, all meet for β ≥ −0.16 (and −0.6), three clusters are left for β = −1.

    The limit is approached exponentially: each run ends before the distance from it is rounding.
    """
    shifts = np.array([0.2, -0.1, 0.15])
    angles = ((equispaced(3) + shifts)[:, None] + np.linspace(-0.3, 0.3, 5)).reshape(-1)
    # the last depth, and three times the distance from the limit there
    ends = {
        0.5: (20.0, 1.8e-11),
        -0.1: (20.0, 1.9e-11),
        -0.16: (20.0, 5e-10),
        -0.6: (40.0, 7e-9),
        -1.0: (120.0, 1.6e-8),
    }
    for beta in (-0.16, -1.0) if trial.quick else ends:
        end, tolerance = ends[beta]
        depths = np.arange(5.0, end + 1, 5.0)
        turned = angles_at(model_of(trial, "unnormalised", beta), angles, list(depths), ps.EmbeddedRK(5, 1e-8))
        order_parameters = dict(zip(depths, np.abs(np.exp(1j * turned).mean(axis=1)), strict=True))
        limit = 1.0 if beta > -2 / 3 else 0.0

        def error(depth: float, order_parameters=order_parameters, limit=limit) -> float:
            return abs(order_parameters[depth] - limit)

        study = ps.converge(error, depths, abscissa="depth", name=f"R against its limit, β = {beta:g}")
        yield ps.Check(
            f"order parameter R at t = {end:g} from tokens near three clusters, USA, β = {beta:g}",
            float(order_parameters[end]),
            limit,
            tolerance,
            SYNCHRONISATION if beta >= -0.16 else THRESHOLD,
            method=TOKENS,
            study=replace(study, refines=False),
        )


def check_inside_a_bump(trial: ps.Trial) -> Iterator[ps.Check]:
    """Bumps of width κ^{−1/2} on a mesh: how fast 1 − ∫ cos(pθ) f, p²/2 of their variance, decays; width → 0."""
    # three times what is left of the error after extrapolation
    bumps_of = (("softmax", 9.0, 3, 1.2e-3), ("softmax", 4.0, 4, 4e-4), ("unnormalised", 4.0, 3, 9.5e-4))
    for normaliser, beta, clusters, extrapolated in bumps_of[: 1 if trial.quick else None]:
        exact = intra_cluster_rate(clusters, head_of(model_of(trial, normaliser, beta)))
        depth = 0.5 / abs(exact)
        changes = [
            f"model.attention.0.normaliser={normaliser}",
            f"model.attention.0.beta={beta}",
            f"time.stop={depth!r}",
        ]
        changes += [f"model.attention.0.log_scale={beta}"] if normaliser == "unnormalised" else []
        found: list[float] = []

        def measure(kappa: float, cells_of_a_width: float, clusters=clusters, depth=depth, changes=changes) -> float:
            bumps = [
                f"{{law='von-mises-fisher', mean=[{float(np.cos(a))!r}, {float(np.sin(a))!r}], kappa={kappa}}}"
                for a in equispaced(clusters)
            ]
            cells = 2 * clusters * round(np.pi * cells_of_a_width * kappa**0.5 / clusters)
            simulation = trial.simulation(
                *changes, f"mesh.cells={cells}", f"initial={{law='mixture', components=[{', '.join(bumps)}]}}"
            )

            def spread(snapshot: ps.Snapshot) -> float:
                law = snapshot.law
                return float(law.integrate(lambda x: 1 - np.cos(clusters * np.arctan2(x[:, 1], x[:, 0])))[0])

            record = simulation.record(spread)
            simulation.run()
            return float(np.log(record.values[1] / record.values[0]) / (2 * depth))

        def errors(kappa: float, measure=measure, exact=exact, found=found) -> dict[str, float]:
            found.append(measure(kappa, 3.0))
            # of second order in the width: half the error of half the κ
            beyond = {"extrapolated": abs((2 * found[-1] - found[-2]) / exact - 1)} if len(found) > 1 else {}
            return {"rate": abs(found[-1] / exact - 1)} | beyond

        study = ps.converge(
            errors,
            trial.resolutions(50.0, 100.0, 200.0, 400.0, quick=3),
            resolution=lambda k: k**-0.5,
            abscissa="width",
        )
        what = f"{NAMES[normaliser]}, β = {beta:g}, p = {clusters}"
        yield ps.Check(
            f"rate inside narrow bumps, {what}",
            found[-1],
            exact,
            0.1 if trial.quick else 0.06,
            ps.DERIVED,
            "relative",
            GALERKIN,
            study,
        )
        yield ps.Check(
            f"rate inside bumps, extrapolated to bumps without width, {what}",
            2 * found[-1] - found[-2],
            exact,
            5e-3 if trial.quick else extrapolated,
            ps.DERIVED,
            "relative",
            GALERKIN,
            study,
        )
        yield ps.Check(
            f"observed order in the width of the bumps, {what}",
            study.order("rate"),
            1.85 if trial.quick else 1.95,
            0.0,
            ps.DERIVED,
            "at least",
            GALERKIN,
            study,
        )


def check_lifetime(trial: ps.Trial) -> Iterator[ps.Check]:
    """Four bumps at β = 9, SA: from t = 5 or so they are four points, for some 400 units of depth; then pairs merge.

    The bumps are displaced by ε (1, −1, 1, −1), which is the fastest mode, k = 2. Tokens stand at a quadrature of the circle:
    bumps that shrink like e^{−t} soon fit into no cell of a mesh.
    """
    clusters, beta, kappa, stop = 4, 9.0, 80.0, 700.0
    model, rest = model_of(trial, "softmax", beta), equispaced(clusters)
    mode = np.cos(2 * rest)
    exact = float(inter_cluster_rates(clusters, head_of(model))[2])
    depths = [20.0, 20.0 + 0.5 / exact]
    particles = ps.Particles(model, quadrature=ps.sphere_quadrature(ps.Sphere(2), order=40), evaluation=DIRECT)
    # p clusters at rest: (1/2β) e^{−β} ∬ e^{β⟨x, y⟩} is the sum over pairs of them
    plateau = float(np.exp(beta * (np.cos(rest) - 1)).sum() / clusters / (2 * beta))
    pairs = (1 + np.exp(-2 * beta)) / 2 / (2 * beta)

    def amplitude(snapshot: ps.Snapshot) -> float:
        """ε(t): mean displacements of the tokens next to each place of rest, against the mode."""

        def sums(x: np.ndarray) -> np.ndarray:
            """Displacement and one, for the place that is next to each token: (m, 2p)."""
            turns = np.arctan2(x[:, 1], x[:, 0])[:, None] - rest
            turns = (turns + np.pi) % (2 * np.pi) - np.pi
            inside = np.abs(turns) < np.pi / clusters
            return np.concatenate([inside * turns, inside], axis=1)

        found = snapshot.law.integrate(sums)[0]
        displacements = found[:clusters] / found[clusters:]
        return float(np.dot(mode, displacements) / np.dot(mode, mode))

    def energy(snapshot: ps.Snapshot) -> float:
        return np.exp(-beta) * ps.interaction_energy(snapshot)

    def simulation_of(size: float, last: float) -> ps.Simulation:
        bumps = [ps.VonMisesFisher((np.cos(a), np.sin(a)), kappa) for a in rest + size * mode]
        return ps.Simulation(particles, ps.Mixture(bumps), last, scheme=ps.EmbeddedRK(5, 1e-8))

    ends: list[tuple[float, float]] = []

    def errors(size: float) -> dict[str, float]:
        simulation = simulation_of(size, depths[-1])
        amplitudes, energies = simulation.record(amplitude, at=depths), simulation.record(energy, at=depths)
        simulation.run()
        rate = float(np.log(amplitudes.values[1] / amplitudes.values[0]) / (depths[1] - depths[0]))
        ends.append((rate, float(energies.values[0])))
        return {"rate": abs(rate / exact - 1), "energy": abs(energies.values[0] / plateau - 1)}

    study = ps.converge(errors, trial.resolutions(0.02, 0.01, 0.005, quick=2), abscissa="displacement")
    rate, level = ends[-1]
    yield ps.Check(
        "rate at which four bumps leave their places, SA, β = 9",
        rate,
        exact,
        0.03 if trial.quick else 8e-3,
        ps.DERIVED,
        "relative",
        TOKENS,
        study,
    )
    yield ps.Check(
        "energy of the plateau of four clusters, at t = 20",
        level,
        plateau,
        1.5e-5 if trial.quick else 4e-6,
        ps.DERIVED,
        "relative",
        TOKENS,
        study,
    )
    yield ps.Check(
        "observed order of that rate in the displacement",
        study.order("rate"),
        1.95,
        0.0,
        ps.DERIVED,
        "at least",
        TOKENS,
        study,
    )
    if trial.quick:
        return
    simulation = simulation_of(0.02, stop)
    energies, counts = simulation.record(energy, every=10.0), simulation.record(ps.cluster_count, every=10.0)
    simulation.run()
    times = energies.times
    levels = [
        ps.Curve(times, np.full(len(times), value), name, expected=True)
        for name, value in (("four clusters", plateau), ("two clusters", pairs))
    ]
    long = (times >= 10) & (times <= 350)
    yield ps.Check(
        "number of clusters from t = 10 to t = 350, four bumps displaced by 0.02",
        counts.values[long],
        np.full(long.sum(), clusters),
        0.0,
        ps.DERIVED,
        method=TOKENS,
        exact=True,
        figure=ps.Figure([*levels, ps.Curve(times, energies.values, "tokens")], "depth t", "energy"),
    )
    # at t = 410 it is still wrong by 9e-8, which e^{−2t} has brought below rounding ten units later
    late = times >= 420
    yield ps.Check(
        f"energy from t = 420 to t = {stop:g}, when pairs have merged",
        energies.values[late],
        np.full(late.sum(), pairs),
        3e-14,
        ps.DERIVED,
        "relative",
        TOKENS,
        exact=True,
    )
