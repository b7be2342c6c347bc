"""Time to accuracy: this package beside what a user would write or take instead, all measured in one run.

    python benchmarks/accuracy.py [--quick] [--cache FOLDER] [--figure FILE]

Softmax attention on S², β = 4, from three wide bumps above a floor: to T = 2, where the law is smooth, and to T = 6, where it
has drawn together to clusters with densities above 10³. Errors against CPU time of the time loop, without
set-up and compilation, on one core; short runs are repeated and the least time counts.

- moments: the 24 real spherical-harmonic moments of degree 1 to 4, relative error in the Euclidean norm;
- density: ∫ |f − exact| dx. Meshes at T = 2 by their own quadrature; at T = 6 as 2 ∫ max(exact − f, 0) dx, which is the
  same, as both have mass one, and needs points only where the clusters are.
  Independent tokens by a kernel estimate with the best bandwidth there is. Weighted characteristics at their own tokens
  (which is kind to them: it asks for no value in between), and at T = 2 interpolated to the whole sphere.
  None for discontinuous Galerkin at T = 6.

The reference takes some minutes; it is kept in the cache folder.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measuring  # noqa: F401  first: it sets the environment
import numpy as np
from accuracy_figure import (
    AT_TOKENS,
    CLUSTERED,
    ELEMENTS,
    GALERKIN,
    INDEPENDENT,
    INTERPOLATED,
    PUBLISHED,
    SMOOTH,
    STOPS,
    VOLUMES,
    WEIGHTED,
    Measured,
    draw,
    statements,
)
from accuracy_truth import BETA, FULL, LAW, MODEL, QUICK, SPHERE, Sizes, Truth
from rivals import independent_tokens, published_loop, reference, weighted_characteristics
from rivals import spherical_harmonics as galerkin
from scipy.interpolate import RBFInterpolator

import pde_solver as ps

#: Depth of the two steps that each method takes first, so that what compiles at this size is compiled.
BRIEF = 0.2


def least_time(prepare: Callable[[], Any], run: Callable[[Any], Any], patience: float) -> tuple[float, Any]:
    """CPU seconds of run(prepare()), preparation not counted: the least of up to three; and what it returned last."""
    times: list[float] = []
    while len(times) < 3 and sum(times) <= patience:
        prepared = prepare()
        start = time.process_time()
        result = run(prepared)
        times.append(time.process_time() - start)
    return min(times), result


def measure_published(truth: Truth, stop: float, count: int, seeds: int, patience: float) -> Measured:
    """Root mean square and mean errors over the seeds."""
    moment_errors, density_errors, seconds = [], [], np.inf
    for seed in range(seeds):
        start = independent_tokens.drawn(LAW, count, seed)
        took, tokens = least_time(
            lambda start=start: start.points, lambda x: published_loop.follow(x, BETA, stop), patience
        )
        seconds = min(seconds, took)
        moment_errors.append(truth.moment_error(stop, reference.moments(ps.TokenMeasure(tokens, start.weights))))
        density_errors.append(independent_tokens.best_estimate_error(tokens, *truth.grids[stop]))
    moments = float(np.sqrt(np.mean(np.square(moment_errors))))
    return Measured(PUBLISHED, count, stop, seconds, moments, float(np.mean(density_errors)), f"{seeds} seeds")


def measure_independent(truth: Truth, stop: float, count: int, patience: float) -> Measured:
    drawn = independent_tokens.drawn(LAW, count, 0)
    weighted_characteristics.follow(MODEL, drawn, BRIEF)
    seconds, tokens = least_time(
        lambda: drawn, lambda start: weighted_characteristics.follow(MODEL, start, stop), patience
    )
    error = independent_tokens.best_estimate_error(tokens.points, *truth.grids[stop])
    return Measured(INDEPENDENT, count, stop, seconds, truth.moment_error(stop, reference.moments(tokens)), error)


def measure_weighted(truth: Truth, stop: float, order: int, patience: float) -> list[Measured]:
    """Without the density, and with it: at the tokens, and at T = 2 interpolated from them (which is not timed)."""
    start = weighted_characteristics.placed(LAW, order)
    count = len(start.points)
    weighted_characteristics.follow(MODEL, start, BRIEF)
    seconds, tokens = least_time(
        lambda: start, lambda tokens: weighted_characteristics.follow(MODEL, tokens, stop), patience
    )
    rows = [Measured(WEIGHTED, count, stop, seconds, truth.moment_error(stop, reference.moments(tokens)))]
    initial = LAW.density(start.points, SPHERE)
    weighted_characteristics.follow_with_density(MODEL, start, initial, BRIEF)
    seconds, (tokens, density) = least_time(
        lambda: start,
        lambda tokens: weighted_characteristics.follow_with_density(MODEL, tokens, initial, stop),
        patience,
    )
    # a token stands for the area weight / density
    at_tokens = tokens.weights[0] @ np.abs(1 - truth.density(stop, tokens.points) / density)
    rows.append(Measured(AT_TOKENS, count, stop, seconds, density=float(at_tokens)))
    if stop == SMOOTH:
        points, measures, exact = truth.grids[stop]
        between = RBFInterpolator(tokens.points, np.log(density), neighbors=30, kernel="thin_plate_spline")
        found = np.exp(np.minimum(between(points), np.log(density).max()))
        rows.append(Measured(INTERPOLATED, count, stop, seconds, density=float(measures @ np.abs(found - exact))))
    return rows


def measure_galerkin(truth: Truth, stop: float, degree: int, patience: float) -> Measured:
    harmonics = galerkin.Harmonics(degree, 3 * (degree + 1) // 2)
    density = LAW.density(harmonics.points, SPHERE)
    steps = int(np.ceil(stop * max(10, degree / 2)))
    seconds, outcome = least_time(
        lambda: density, lambda f: galerkin.solve(harmonics, f, BETA, stop, stop / steps), patience
    )
    size = (degree + 1) ** 2
    if outcome.broken:
        return Measured(GALERKIN, size, stop, seconds, note=f"L = {degree} blows up at t = {outcome.t:.2g}")
    found = harmonics.values(outcome.coefficients[..., None]).ravel()
    error = harmonics.weights @ np.abs(found - truth.density(stop, harmonics.points))
    moments = truth.moment_error(stop, reference.real_moments(outcome.coefficients))
    return Measured(GALERKIN, size, stop, seconds, moments, float(error), f"L = {degree}")


def measure_ours(truth: Truth, stop: float, method: str, level: int, build: Callable, patience: float) -> Measured:
    discretisation = build(level)
    ps.Simulation(discretisation, LAW, stop=BRIEF / 10).run()
    seconds, simulation = least_time(
        lambda: ps.Simulation(discretisation, LAW, stop=stop), lambda run: (run.run(), run)[1], patience
    )
    moments = truth.moment_error(stop, reference.moments(discretisation.measure(simulation.state)))
    error, note = np.nan, f"level {level}, {simulation.steps} steps"
    if stop == SMOOTH:
        error = discretisation.density_error(simulation.state, lambda points: truth.density(stop, points)).l1
    elif isinstance(discretisation, ps.FiniteVolume):
        points, _, means = discretisation.sampled_density(simulation.state)
        error = truth.clustered.error_of_cells(level, points, means[0])
    return Measured(method, discretisation.unknowns, stop, seconds, moments, error, note)


def finite_volume(order: int) -> Callable[[int], ps.FiniteVolume]:
    return lambda level: ps.FiniteVolume(MODEL, ps.icosphere(level), order=order)


def discontinuous_galerkin(degree: int) -> Callable[[int], ps.DiscontinuousGalerkin]:
    return lambda level: ps.DiscontinuousGalerkin(MODEL, ps.icosphere(level, geometry_degree=degree), degree=degree)


def measure_all(truth: Truth, sizes: Sizes) -> list[Measured]:
    """Every method at every size, printed as it comes."""
    rows: list[Measured] = []

    def keep(*found: Measured) -> None:
        rows.extend(found)
        print(*found, sep="\n", flush=True)

    print(f"{'method':<48} {'size':>7} {'T':>3} {'cpu [s]':>10} {'moments':>9}  {'L1':>9}")
    for stop in STOPS:
        for count, seeds in sizes.published.items():
            keep(measure_published(truth, stop, count, seeds, sizes.patience))
        for count in sizes.independent:
            keep(measure_independent(truth, stop, count, sizes.patience))
        for order in sizes.weighted:
            keep(*measure_weighted(truth, stop, order, sizes.patience))
        for degree in sizes.harmonics:
            keep(measure_galerkin(truth, stop, degree, sizes.patience))
        for order, method in VOLUMES.items():
            for level in sizes.volumes:
                keep(measure_ours(truth, stop, method, level, finite_volume(order), sizes.patience))
        for degree, method in ELEMENTS.items():
            for level in sizes.elements[degree]:
                keep(measure_ours(truth, stop, method, level, discontinuous_galerkin(degree), sizes.patience))
    return rows


def main() -> None:
    """Print the table and the statements, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems, less than a minute in all")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pde-solver"
    parser.add_argument("--cache", type=Path, default=cache, help="where the reference is kept (%(default)s)")
    parser.add_argument("--figure", type=Path, default=Path("accuracy.png"), help="the picture (%(default)s)")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    truth = Truth(sizes, arguments.cache)
    for stop in STOPS:
        print(f"reference at T = {stop:g}: moments change by {truth.uncertainty[stop]:.1e} on the next coarser one")
    print(f"reference at T = {CLUSTERED:g}: the density changes by {truth.density_uncertainty:.1e} of its mass")
    print(
        f"its mass at T = {CLUSTERED:g} on the refined sphere: 1 {truth.clustered.measures @ truth.clustered.values - 1:+.1e}"
    )
    check = measure_galerkin(truth, SMOOTH, sizes.galerkin_check, 0.0)
    print(
        f"spherical harmonics with {check.note} at T = {SMOOTH:g} differ from it by {check.moments:.1e} in the moments, "
        f"{check.density:.1e} in the density"
    )
    print()
    rows = measure_all(truth, sizes)
    print("\nMeasured in this run:", *statements(rows), sep="\n- ")
    draw(rows, truth.uncertainty[CLUSTERED], arguments.figure)
    print(f"\nfigure: {arguments.figure}")


if __name__ == "__main__":
    main()
