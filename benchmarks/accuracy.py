"""Time to accuracy: this package beside what a user would write or take instead, all measured in one run.

    python benchmarks/accuracy.py [--quick] [--cache FOLDER] [--figure FILE]

Softmax attention on S², β = 4, from the three bumps of docs/gallery/three_bumps.toml: to T = 2, where the law is smooth,
and to T = 6, where it has drawn together to clusters with densities above 10⁴. Errors against CPU time of the time loop, without
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
import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# Some environments force an older BLAS kernel on NumPy, which would flatter the comparison; threads would spoil it.
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from rivals import independent_tokens, published_loop, reference, weighted_characteristics  # noqa: E402
from rivals import spherical_harmonics as galerkin  # noqa: E402
from rivals.refined_sphere import RefinedSphere, refined_sphere  # noqa: E402
from scipy.interpolate import RBFInterpolator  # noqa: E402

import pde_solver as ps  # noqa: E402

CASE = ps.load_case(Path(__file__).parents[1] / "docs" / "gallery" / "three_bumps.toml")
MODEL, LAW, SPHERE = CASE.model, CASE.law, ps.Sphere(3)
BETA = 4.0
STOPS = (2.0, 6.0)
SMOOTH, CLUSTERED = STOPS
#: Depth of the two steps that each method takes first, so that what compiles at this size is compiled.
BRIEF = 0.2
#: Level of the smallest triangles of the quadrature at T = 6.
FINEST = 14

PUBLISHED, INDEPENDENT = "published loop", "independent tokens, our velocity"
WEIGHTED, AT_TOKENS = "weighted characteristics", "weighted characteristics + log J, at the tokens"
INTERPOLATED, GALERKIN = "weighted characteristics + log J, interpolated", "spherical harmonics"
VOLUMES = {1: "ours: finite volume, order 1", 2: "ours: finite volume, order 2"}
ELEMENTS = {2: "ours: discontinuous Galerkin, degree 2", 3: "ours: discontinuous Galerkin, degree 3"}
OURS = (*VOLUMES.values(), *ELEMENTS.values())


@dataclass(frozen=True)
class Sizes:
    """How large the problems are.

    Args:
        order: of the reference's quadrature; a coarser one, by the factor 0.8, says how far it can be trusted.
        step: of the reference.
        grid: order of the quadrature on which estimates are compared at T = 2.
        galerkin_check: degree of the Galerkin run that the reference is compared with at T = 2.
        share: of the mass that a triangle of the quadrature at T = 6 may hold.
        published: tokens and how many seeds.
        independent: tokens.
        weighted: orders of the quadratures.
        harmonics: degrees L.
        volumes: levels of the icosphere.
        elements: levels of the icosphere for each degree.
        patience: seconds after which a run is not repeated.
    """

    order: int
    step: float
    grid: int
    galerkin_check: int
    share: float
    published: dict[int, int]
    independent: tuple[int, ...]
    weighted: tuple[int, ...]
    harmonics: tuple[int, ...]
    volumes: tuple[int, ...]
    elements: dict[int, tuple[int, ...]]
    patience: float


FULL = Sizes(
    order=160,
    step=0.025,
    grid=96,
    galerkin_check=96,
    share=1e-4,
    published={100: 8, 1000: 4, 4000: 1},
    independent=(1_000, 10_000, 100_000),
    weighted=(9, 13, 25, 33, 49, 70, 100),
    harmonics=(8, 16, 24, 32, 64),
    volumes=(2, 3, 4, 5, 6),
    elements={2: (1, 2, 3, 4), 3: (1, 2, 3, 4)},
    patience=3.0,
)
QUICK = Sizes(
    order=40,
    step=0.05,
    grid=48,
    galerkin_check=40,
    share=1e-3,
    published={100: 4, 1000: 1},
    independent=(300, 1_000),
    weighted=(9, 13, 25),
    harmonics=(16, 24, 32),
    volumes=(2, 3),
    elements={2: (1, 2), 3: (1,)},
    patience=0.2,
)


@dataclass(frozen=True)
class Measured:
    """One run of one method."""

    method: str
    size: int
    stop: float
    seconds: float
    moments: float = np.nan
    density: float = np.nan
    note: str = ""

    def __str__(self) -> str:
        errors = [f"{error:9.1e}" if np.isfinite(error) else f"{'-':>9}" for error in (self.moments, self.density)]
        return (
            f"{self.method:<48} {self.size:>7} {self.stop:>3g} {self.seconds:>10.3g} {'  '.join(errors)}  {self.note}"
        )


class Truth:
    """The exact solution, and the errors of what the methods found."""

    def __init__(self, sizes: Sizes, folder: Path) -> None:
        key = f"{LAW} {BETA} {sizes.order} {sizes.step} {sizes.share} {reference.DEGREE} {max(sizes.volumes)}"
        path = folder / f"accuracy-{hashlib.sha256(key.encode()).hexdigest()[:12]}.npz"
        if not path.exists():
            print(f"computing the reference, to be kept in {path}", flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **_computed(sizes))
        kept = np.load(path)
        tokens = ps.TokenMeasure(kept["tokens"], kept["weights"])
        self.solution = reference.Reference(BETA, sizes.step, kept["charges"], kept["moments"], tokens)
        self.uncertainty = dict(zip(STOPS, kept["uncertainty"], strict=True))
        self.density_uncertainty = float(kept["density_uncertainty"])
        names = [name for name in kept if name.startswith("level")]
        ancestors = {int(name.removeprefix("level")): kept[name] for name in names}
        self.clustered = RefinedSphere(kept["points"], kept["measures"], kept["values"], ancestors)
        smooth = ps.sphere_quadrature(SPHERE, sizes.grid)
        #: for each depth points, measures and exact values, to compare estimates with that are known everywhere
        self.grids = {
            SMOOTH: (smooth.points, smooth.weights[0], self.density(SMOOTH, smooth.points)),
            CLUSTERED: (self.clustered.points, self.clustered.measures, self.clustered.values),
        }

    def density(self, t: float, points: np.ndarray) -> np.ndarray:
        return self.solution.density(LAW, t, points)

    def moment_error(self, t: float, found: np.ndarray) -> float:
        return _relative(found, self.solution.moments_at(t))


def _relative(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _computed(sizes: Sizes) -> dict[str, Any]:
    """What is kept of the reference."""
    placed = weighted_characteristics.placed
    fine = reference.solve(placed(LAW, sizes.order), BETA, CLUSTERED, sizes.step)
    coarse = reference.solve(placed(LAW, int(0.8 * sizes.order)), BETA, CLUSTERED, sizes.step)
    exact = partial(fine.density, LAW, CLUSTERED)
    sphere = refined_sphere(exact, fine.tokens, max(sizes.volumes), FINEST, sizes.share)
    # the same density with the coarser velocity, at one point in 20
    some = slice(None, None, 20)
    other = coarse.density(LAW, CLUSTERED, sphere.points[some])
    difference = sphere.measures[some] @ np.abs(other - sphere.values[some])
    return {
        "charges": fine.charges,
        "moments": fine.moments,
        "tokens": fine.tokens.points,
        "weights": fine.tokens.weights,
        "uncertainty": [_relative(coarse.moments_at(t), fine.moments_at(t)) for t in STOPS],
        "density_uncertainty": difference / (sphere.measures[some] @ sphere.values[some]),
        "points": sphere.points,
        "measures": sphere.measures,
        "values": sphere.values,
        **{f"level{level}": sphere.ancestors[level] for level in sizes.volumes},
    }


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


def time_to(rows: list[Measured], kind: str, error: float) -> float:
    """CPU seconds in which a method reaches an error, between its runs by powers; inf if none of them reaches it."""
    runs = sorted((row.seconds, getattr(row, kind)) for row in rows if np.isfinite(getattr(row, kind)))
    least = np.inf
    for k, (seconds, found) in enumerate(runs):
        if found > error:
            continue
        if k == 0 or runs[k - 1][1] <= error:
            return min(least, seconds)
        before, reached_before = runs[k - 1]
        share = np.log(reached_before / error) / np.log(reached_before / found)
        return min(least, before * (seconds / before) ** share)
    return least


def power(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """p and c of the least-squares fit values = c · sizes^p."""
    slope, intercept = np.polyfit(np.log(sizes), np.log(values), 1)
    return float(slope), float(np.exp(intercept))


def of(rows: list[Measured], stop: float, *methods: str) -> list[Measured]:
    return [row for row in rows if row.stop == stop and row.method in methods]


def statements(rows: list[Measured], truth: Truth) -> list[str]:
    """What this run says."""
    sentences = [to_density(rows), to_moments(rows)]
    blown = [row for row in of(rows, CLUSTERED, GALERKIN) if row.note.find("blows up") >= 0]
    ran = of(rows, CLUSTERED, GALERKIN)
    sentences.append(
        f"Spherical harmonics to T = {CLUSTERED:g}: {len(blown)} of {len(ran)} runs blow up"
        + (f" ({'; '.join(row.note for row in blown)})." if blown else ".")
    )
    sentences += [fastest(rows, *goal) for goal in GOALS]
    sentences.append(winners(rows))
    return sentences


#: Depth, kind of error and error for which all methods are compared.
GOALS = (
    (SMOOTH, "moments", 1e-2),
    (SMOOTH, "moments", 1e-4),
    (SMOOTH, "density", 1e-1),
    (SMOOTH, "density", 1e-2),
    (CLUSTERED, "moments", 1e-2),
    (CLUSTERED, "density", 0.5),
)


def to_density(rows: list[Measured]) -> str:
    """Independent tokens against ours to L1 = 1e-2 at T = 2."""
    tokens = of(rows, SMOOTH, INDEPENDENT)
    counts = np.array([row.size for row in tokens], float)
    order, constant = power(counts, np.array([row.density for row in tokens]))
    cost, unit = power(counts[-2:], np.array([row.seconds for row in tokens[-2:]]))
    wanted = (1e-2 / constant) ** (1 / order)
    theirs = unit * wanted**cost
    ours, name = best_of_ours(rows, SMOOTH, "density", 1e-2)
    start = f"Density to 1e-2 at T = {SMOOTH:g}: independent tokens need {theirs:.2g} s, extrapolated"
    start += f" (error ∝ n^{order:.2f}, cost ∝ n^{cost:.2f}, n = {wanted:.1g})"
    return (
        f"{start}; ours {ours:.2g} s ({name}): ratio {theirs / ours:.2g}." if name else f"{start}; none of ours does."
    )


def to_moments(rows: list[Measured]) -> str:
    """Weighted characteristics against ours to 1e-3 in the moments at T = 2."""
    theirs = time_to(of(rows, SMOOTH, WEIGHTED), "moments", 1e-3)
    ours, name = best_of_ours(rows, SMOOTH, "moments", 1e-3)
    if not name:
        return f"Moments to 1e-3 at T = {SMOOTH:g}: weighted characteristics {theirs:.2g} s; none of ours does."
    return (
        f"Moments to 1e-3 at T = {SMOOTH:g}: weighted characteristics {theirs:.2g} s, ours {ours:.2g} s ({name}): "
        f"ratio {theirs / ours:.2g}."
    )


def best_of_ours(rows: list[Measured], stop: float, kind: str, error: float) -> tuple[float, str]:
    """The least time of our methods, and which it is; "" if none reaches the error."""
    times = {method: time_to(of(rows, stop, method), kind, error) for method in OURS}
    best = min(OURS, key=times.__getitem__)
    return times[best], best.removeprefix("ours: ") if np.isfinite(times[best]) else ""


def fastest(rows: list[Measured], stop: float, kind: str, error: float) -> str:
    """Who reaches an error first."""
    times = ranking(rows, stop, kind, error)
    reached = ", ".join(f"{method} {seconds:.2g} s" for method, seconds in times.items())
    return f"{kind.capitalize()} to {error:g} at T = {stop:g}: {reached or 'nobody'}."


def ranking(rows: list[Measured], stop: float, kind: str, error: float) -> dict[str, float]:
    """The methods that reach an error and their seconds, the fastest first."""
    times = {method: time_to(of(rows, stop, method), kind, error) for method in LOOKS}
    reached = [method for method in LOOKS if np.isfinite(times[method])]
    return {method: times[method] for method in sorted(reached, key=times.__getitem__)}


def winners(rows: list[Measured]) -> str:
    """Where a rival is faster than ours, and where not."""
    theirs, ours = [], []
    for stop, kind, error in GOALS:
        goal = f"{kind} to {error:g} at T = {stop:g}"
        times = ranking(rows, stop, kind, error)
        best, _ = best_of_ours(rows, stop, kind, error)
        first = next(iter(times), "")
        if first in OURS:
            ours.append(goal)
        elif first:
            how = f"{best / times[first]:.2g} times faster" if np.isfinite(best) else "ours does not get there"
            theirs.append(f"{goal} ({first}; {how})")
    return (
        f"A rival is fastest for {'; '.join(theirs) or 'nothing'}. Ours is fastest for {'; '.join(ours) or 'nothing'}."
    )


#: Colour, marker and line of each method: ours in strong colours and full lines, rivals dashed.
LOOKS = {
    PUBLISHED: ("#8c8c8c", "v", ":"),
    INDEPENDENT: ("#4d4d4d", "^", ":"),
    WEIGHTED: ("#d95f02", "D", "--"),
    AT_TOKENS: ("#d95f02", "d", "--"),
    INTERPOLATED: ("#a6761d", "P", "--"),
    GALERKIN: ("#7570b3", "X", "--"),
    VOLUMES[1]: ("#66c2a5", "o", "-"),
    VOLUMES[2]: ("#1b9e77", "o", "-"),
    ELEMENTS[2]: ("#74add1", "s", "-"),
    ELEMENTS[3]: ("#2166ac", "s", "-"),
}


def draw(rows: list[Measured], truth: Truth, path: Path) -> None:
    """Errors against CPU time."""
    figure = Figure(figsize=(11.5, 10), layout="constrained")
    axes = figure.subplots(2, 2)
    handles: dict[str, Any] = {}
    for line, stop in zip(axes, STOPS, strict=True):
        for panel, kind in zip(line, ("moments", "density"), strict=True):
            for method, (colour, marker, style) in LOOKS.items():
                runs = [row for row in of(rows, stop, method) if np.isfinite(getattr(row, kind))]
                if runs:
                    (handles[method],) = panel.loglog(
                        [row.seconds for row in runs],
                        [getattr(row, kind) for row in runs],
                        color=colour,
                        marker=marker,
                        linestyle=style,
                        markersize=5.5,
                        linewidth=1.6,
                    )
            guide_slopes(panel)
            panel.grid(True, which="major", color="0.9")
            panel.spines[["top", "right"]].set_visible(False)
            panel.set_xlabel("CPU time of the time loop [s], one core")
            state = "smooth" if stop == SMOOTH else "clustered"
            what = "relative error of 24 moments" if kind == "moments" else "L¹ error of the density"
            panel.set_title(f"{what}, T = {stop:g} ({state})", fontsize=11)
        broken = sorted({row.size for row in of(rows, stop, GALERKIN) if not np.isfinite(row.moments)})
        if broken:
            degrees = ", ".join(f"{round(size**0.5) - 1}" for size in broken)
            said = f"{line[0].get_title()}\nspherical harmonics blow up: L = {degrees}"
            line[0].set_title(said, fontsize=11)
    lowest = axes[1][0].get_ylim()[0]
    if truth.uncertainty[CLUSTERED] > lowest:
        axes[1][0].axhspan(lowest, truth.uncertainty[CLUSTERED], color="0.93")
        axes[1][0].set_ylim(bottom=lowest)
        place = {"transform": axes[1][0].transAxes, "ha": "right", "va": "bottom", "fontsize": 7.5, "color": "0.4"}
        axes[1][0].text(0.99, 0.005, "grey: the reference's own uncertainty", **place)
    labels = [method for method in LOOKS if method in handles]
    figure.legend([handles[label] for label in labels], labels, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle("Softmax attention on S², β = 4, from three bumps: time to accuracy")
    figure.savefig(path, dpi=130)


def guide_slopes(panel: Any) -> None:
    """Short lines of error ∝ time^p, in the lower left corner."""
    for place, (name, slope) in enumerate({"−1/2": -0.5, "−1": -1.0, "−2": -2.0}.items()):
        # in the axes' own logarithmic frame the slope depends on the limits
        (x0, x1), (y0, y1) = np.log10(panel.get_xlim()), np.log10(panel.get_ylim())
        steepness = slope * (x1 - x0) / (y1 - y0)
        left, width = 0.04 + 0.07 * place, min(0.05, -0.18 / steepness)
        ends = [0.22, 0.22 + steepness * width]
        panel.plot([left, left + width], ends, transform=panel.transAxes, color="0.5", linewidth=1)
        panel.text(left, 0.225, name, transform=panel.transAxes, fontsize=7, color="0.4", ha="center", va="bottom")


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
    print("\nMeasured in this run:", *statements(rows, truth), sep="\n- ")
    draw(rows, truth, arguments.figure)
    print(f"\nfigure: {arguments.figure}")


if __name__ == "__main__":
    main()
