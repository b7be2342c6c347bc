"""Tokens with one inner product for all pairs, under softmax and unnormalised attention, from 4 tokens to many."""

from collections.abc import Iterator

import numpy as np

import pde_solver as ps
from pde_solver.solutions import equiangular_gap

SOURCE = "derived for this project; the setting is that of arXiv:2312.10794"

PARTICLES = "particles"
DEPTHS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: A gap 1 − γ below this is no longer followed: tokens are 1e-3 apart there, of which the accuracy of coordinates, 1e-11, is 1e-8.
SMALLEST_GAP = 5e-7

NAMES = {"softmax": "SA", "unnormalised": "USA"}
TABLE = "model.attention.0"
#: A head with scales everywhere: s = −0.5 · −1.4, b = 2 · 0.8 · 1.5, c = 1.
GENERAL = (
    f"{TABLE}.beta=2.0",
    f"{TABLE}.weight=-0.5",
    f"{TABLE}.query=[[0.8, 0, 0, 0], [0, 0.8, 0, 0], [0, 0, 0.8, 0], [0, 0, 0, 0.8]]",
    f"{TABLE}.key=[[1.5, 0, 0, 0], [0, 1.5, 0, 0], [0, 0, 1.5, 0], [0, 0, 0, 1.5]]",
    f"{TABLE}.value=[[-1.4, 0, 0, 0], [0, -1.4, 0, 0], [0, 0, -1.4, 0], [0, 0, 0, -1.4]]",
)
REPULSIVE = (f"{TABLE}.beta=1.0", f"{TABLE}.weight=-1.0")


def changes_of(normaliser: str, beta: float) -> tuple[str, ...]:
    """Of the case, for the plain head."""
    return (f"{TABLE}.normaliser={normaliser}", f"{TABLE}.beta={beta}")


def equiangular(count: int, inner_product: float) -> ps.PointCloud:
    """Tokens of R^n, the rows of the root of their matrix of inner products (1 − γ) I + γ 1 1ᵀ."""
    root, all_alike = np.sqrt(1 - inner_product), np.sqrt(1 + (count - 1) * inner_product)
    return ps.PointCloud(root * np.eye(count) + (all_alike - root) / count)


def gaps(case: ps.Case, count: int, inner_product: float, depths: list[float]) -> np.ndarray:
    """1 − ⟨x_i, x_j⟩ = |x_i − x_j|² / 2 of all pairs at the depths, (depths, pairs)."""
    model = ps.Model(ps.Sphere(count), case.model.velocity)
    particles = ps.Particles(model, count, evaluation=case.settings.evaluation.build())
    simulation = ps.Simulation(particles, equiangular(count, inner_product), depths[-1], scheme=case.scheme)
    i, j = np.triu_indices(count, 1)
    found: list[np.ndarray] = []

    def look(snapshot) -> None:
        x = snapshot.law.gathered().points
        found.append(((x[i] - x[j]) ** 2).sum(axis=1) / 2)

    simulation.observe(look, at=depths)
    simulation.run()
    return np.array(found)


def followed(trial: ps.Trial, what: str, changes: tuple[str, ...], count: int, inner_product: float, tolerance: float):
    """log(1 − γ) at all depths until the gap is tiny, over the tolerance of the time stepping; and all pairs alike."""
    head = trial.case(*changes).model.velocity.summands()[0]
    depths = [t for t in DEPTHS if equiangular_gap(t, inner_product, head, count) > SMALLEST_GAP]
    expected = np.log([equiangular_gap(t, inner_product, head, count) for t in depths])
    runs: list[np.ndarray] = []

    def error(allowed: float) -> float:
        runs.append(gaps(trial.case(*changes, f"time.tolerance={allowed}"), count, inner_product, depths))
        return np.abs(np.log(runs[-1].mean(axis=1)) - expected).max()

    study = ps.converge(error, trial.resolutions(1e-7, 1e-9, 1e-11, quick=2), abscissa="tolerance")
    fine = np.linspace(0, depths[-1], 60)
    yield ps.Check(
        f"log(1 − γ) at depths from {depths[0]:g} to {depths[-1]:g}, {what}",
        np.log(runs[-1].mean(axis=1)),
        expected,
        200 * tolerance if trial.quick else tolerance,
        SOURCE,
        method=PARTICLES,
        study=study,
        figure=ps.Figure(
            [
                ps.Curve(fine, [equiangular_gap(t, inner_product, head, count) for t in fine], "exact", expected=True),
                ps.Curve(depths, runs[-1].mean(axis=1), "tokens"),
            ],
            "depth t",
            "1 − γ",
            "log-y",
        ),
    )
    yield ps.Check(
        f"spread of 1 − ⟨x_i, x_j⟩ over all pairs and depths, {what}",
        float(max(np.ptp(runs[-1], axis=1))),
        0.0,
        3e-15,
        SOURCE,
        method=PARTICLES,
        exact=True,
    )


def check_orthogonal_tokens(trial: ps.Trial) -> Iterator[ps.Check]:
    """γ₀ = 0."""
    # three times the error measured with the tolerance 1e-11 of the time stepping
    tolerances = {
        ("softmax", 4, 1.0): 3e-8,
        ("softmax", 16, 1.0): 3e-8,
        ("softmax", 64, 1.0): 3e-8,
        ("softmax", 4, 4.0): 3e-10,
        ("softmax", 16, 4.0): 1.5e-9,
        ("softmax", 64, 4.0): 7e-9,
        ("unnormalised", 4, 1.0): 7e-10,
        ("unnormalised", 16, 1.0): 5e-11,
        ("unnormalised", 64, 1.0): 1.7e-8,
        ("unnormalised", 4, 4.0): 6e-9,
        ("unnormalised", 16, 4.0): 1.2e-11,
        ("unnormalised", 64, 4.0): 2.5e-11,
    }
    for (normaliser, count, beta), tolerance in tolerances.items():
        if trial.quick and (count == 64 or beta == 1.0):
            continue
        what = f"{NAMES[normaliser]}, β = {beta:g}, {count} orthogonal tokens"
        yield from followed(trial, what, changes_of(normaliser, beta), count, 0.0, tolerance)


def check_other_angles(trial: ps.Trial) -> Iterator[ps.Check]:
    """γ₀ ≠ 0; a head with scales everywhere; a head that pushes tokens apart, towards γ = −1/(n − 1)."""
    cases = {
        "SA, β = 4, 4 tokens, γ₀ = −0.2": (changes_of("softmax", 4.0), 4, -0.2, 5e-12),
        "USA, β = 1, 16 tokens, γ₀ = 0.3": (changes_of("unnormalised", 1.0), 16, 0.3, 3e-9),
        "SA, s = 0.7, b = 2.4, 4 tokens, γ₀ = 0.1": ((f"{TABLE}.normaliser=softmax", *GENERAL), 4, 0.1, 1.5e-9),
        "USA, s = 0.7, b = 2.4, c = 1, 4 tokens, γ₀ = 0.1": (
            (f"{TABLE}.normaliser=unnormalised", f"{TABLE}.log_scale=1.0", *GENERAL),
            4,
            0.1,
            3e-8,
        ),
        "SA, s = −1, β = 1, 16 tokens, γ₀ = 0.6": ((f"{TABLE}.normaliser=softmax", *REPULSIVE), 16, 0.6, 5e-12),
    }
    for what, (changes, count, inner_product, tolerance) in list(cases.items())[: 2 if trial.quick else None]:
        yield from followed(trial, what, changes, count, inner_product, tolerance)


def check_many_tokens(trial: ps.Trial) -> Iterator[ps.Check]:
    """n → ∞ at fixed γ₀ = 0.2: softmax has 1 − γ = (1 − γ₀) e^{−2t} / (γ₀ + (1 − γ₀) e^{−2t})."""
    depth, inner_product = 1.0, 0.2
    # two to three times the errors measured with n = 256; with n = 64 they are 4 and 16 times as large
    cases = (("softmax", 1.0, 4e-3, 1e-4), ("softmax", 4.0, 4e-2, 1e-3), ("unnormalised", 1.0, 6e-3, 2.5e-4))
    for normaliser, beta, tolerance, extrapolated in cases:
        case = trial.case(*changes_of(normaliser, beta), "time.tolerance=1e-9")
        head = case.model.velocity.summands()[0]
        if normaliser == "softmax":
            shrink = (1 - inner_product) * np.exp(-2 * depth)
            expected = shrink / (inner_product + shrink)
        else:
            expected = equiangular_gap(depth, inner_product, head)
        found: list[float] = []

        def errors(count: int, case=case, expected=expected, found=found) -> dict[str, float]:
            found.append(float(gaps(case, count, inner_product, [depth])[0].mean()))
            # first order in 1/n: what is left of its error after extrapolation is of second order
            beyond = {"extrapolated": abs(2 * found[-1] - found[-2] - expected)} if len(found) > 1 else {}
            return {"gap": abs(found[-1] - expected)} | beyond

        study = ps.converge(
            errors, trial.resolutions(16, 32, 64, 128, 256, quick=3), resolution=lambda n: 1 / n, abscissa="1/n"
        )
        what = f"{NAMES[normaliser]}, β = {beta:g}, γ₀ = {inner_product:g}"
        yield ps.Check(
            f"1 − γ at t = {depth:g} for n → ∞, {what}",
            found[-1],
            expected,
            4 * tolerance if trial.quick else tolerance,
            SOURCE,
            method=PARTICLES,
            study=study,
        )
        yield ps.Check(
            f"1 − γ at t = {depth:g} for n → ∞, extrapolated from the last two n, {what}",
            2 * found[-1] - found[-2],
            expected,
            extrapolated * (16 if trial.quick else 1),
            SOURCE,
            method=PARTICLES,
            study=study,
        )
        yield ps.Check(
            f"observed order in 1/n, {what}",
            study.order("gap"),
            0.85 if trial.quick else 0.95,
            0.0,
            SOURCE,
            "at least",
            PARTICLES,
            study,
        )
