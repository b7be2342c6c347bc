"""What a run of `accuracy.py` says: who reaches which error in what time, in sentences and as a figure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

#: The depths of comparison.
STOPS = (2.0, 6.0)
SMOOTH, CLUSTERED = STOPS

PUBLISHED, INDEPENDENT = "published loop", "independent tokens, our velocity"
WEIGHTED, AT_TOKENS = "weighted characteristics", "weighted characteristics + log J, at the tokens"
INTERPOLATED, GALERKIN = "weighted characteristics + log J, interpolated", "spherical harmonics"
VOLUMES = {1: "ours: finite volume, order 1", 2: "ours: finite volume, order 2"}
ELEMENTS = {2: "ours: discontinuous Galerkin, degree 2", 3: "ours: discontinuous Galerkin, degree 3"}
OURS = (*VOLUMES.values(), *ELEMENTS.values())
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
#: Depth, kind of error and error for which all methods are compared.
GOALS = (
    (SMOOTH, "moments", 1e-2),
    (SMOOTH, "moments", 1e-4),
    (SMOOTH, "density", 1e-1),
    (SMOOTH, "density", 1e-2),
    (CLUSTERED, "moments", 1e-2),
    (CLUSTERED, "density", 0.5),
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


def statements(rows: list[Measured]) -> list[str]:
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


def draw(rows: list[Measured], uncertainty: float, path: Path) -> None:
    """Errors against CPU time, and how far the reference's moments can be trusted where there are clusters."""
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
    if uncertainty > lowest:
        axes[1][0].axhspan(lowest, uncertainty, color="0.93")
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
