"""The picture of a convergence study: errors against resolution on logarithmic axes, beside powers of the resolution."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, ScalarFormatter

from pde_solver.convergence.study import Study
from pde_solver.errors import InputError
from pde_solver.output.atomic import replaced_file
from pde_solver.output.style import INK, PALETTE, STYLE

MARKERS = "osD^vP*"


def draw_studies(path: str | os.PathLike[str], studies: Sequence[Study], title: str = "") -> None:
    """Draw studies over the same abscissa, 200 dots per inch. One process only.

    One study: its errors in one panel. Several: a panel for each error, with a line for each study. Dashed lines are powers of
    the resolution, the nearest to the fitted order by steps of one half.

    Args:
        path: the picture; .png, .pdf or .svg.
        studies: what is drawn.
        title: a line above everything.

    Raises:
        InputError: there is nothing to draw, or too much.
        RunStopped: the picture cannot be written.
    """
    names = list(dict.fromkeys(name for study in studies for name in study.names))
    if not names:
        raise InputError("convergence figure: the studies hold no errors.")
    panels = [names] if len(studies) == 1 else [[name] for name in names]
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    size = (8.0, 6.0) if len(panels) == 1 else (5.2 * columns, 4.6 * rows + 0.6)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=200, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        if title:
            figure.suptitle(title, fontsize=18)
        for place, group in enumerate(panels):
            ax = figure.add_subplot(rows, columns, place + 1)
            if len(studies) == 1:
                draw_errors(ax, [(name, studies[0], name) for name in group])
            else:
                draw_errors(ax, [(study.name, study, group[0]) for study in studies if group[0] in study.names])
                ax.set_title(f"error in {group[0]}", loc="left")
                ax.set_ylabel("")
        with replaced_file(Path(path)) as temporary:
            figure.savefig(temporary, format=Path(path).suffix[1:])


def draw_errors(ax: Axes, lines: Sequence[tuple[str, Study, str]], *, legend: bool = True) -> None:
    """Errors against resolution: each line is a label, a study, and the name of the error.

    Args:
        ax: where.
        lines: what; all over the same abscissa.
        legend: whether to name the lines, if there are several.
    """
    slopes: dict[float, tuple[np.ndarray, np.ndarray]] = {}
    refines = all(study.refines for _, study, _ in lines)
    for i, (label, study, name) in enumerate(lines):
        x, errors = study.resolutions, study.errors(name)
        shown = np.isfinite(errors) & (errors > 0)
        colour = PALETTE[i % len(PALETTE)]
        ax.plot(x[shown], errors[shown], "-", color=colour, linewidth=1.8, zorder=2)
        ax.plot(
            x[shown], errors[shown], MARKERS[i % len(MARKERS)], color=colour, markersize=8, markeredgecolor="white",
            label=label, zorder=3,
        )  # fmt: skip
        order = study.fitted_order(name)
        if refines and np.isfinite(order) and shown.sum() > 1 and round(2 * order):
            slopes.setdefault(round(2 * order) / 2, (x[shown], errors[shown]))
    abscissa = lines[0][1].abscissa
    for slope, (x, errors) in slopes.items():
        _power(ax, slope, x, errors, abscissa)
    if any(np.any(study.errors(name) > 0) for _, study, name in lines):
        ax.set_yscale("log")
    if refines:
        ax.set_xscale("log")
        _ticks(ax, np.concatenate([study.resolutions for _, study, _ in lines]))
    ax.set(xlabel=abscissa, ylabel="error")
    ax.grid(which="major", color=INK, alpha=0.12, linewidth=0.8)
    if legend and (len(lines) > 1 or lines[0][0]):
        ax.legend(frameon=False, handletextpad=0.2)


def _power(ax: Axes, slope: float, x: np.ndarray, errors: np.ndarray, abscissa: str) -> None:
    """x^slope through a point somewhat below the first error."""
    ends = np.array([x.min(), x.max()])
    line = 0.55 * errors[0] * (ends / x[0]) ** slope
    ax.plot(ends, line, "--", color=INK, alpha=0.55, linewidth=1.2, zorder=1)
    power = f"{slope:g}".replace("-", "−")
    ax.annotate(
        f"{abscissa}$^{{{power}}}$", (ends.prod() ** 0.5, line.prod() ** 0.5), xytext=(6, -6), textcoords="offset points",
        color=INK, alpha=0.75, ha="left", va="top",
    )  # fmt: skip


def _ticks(ax: Axes, x: np.ndarray) -> None:
    """Where the resolutions span less than a decade, the tick labels are plain numbers, and few."""
    if x.max() < 30 * x.min():
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        formatter = ScalarFormatter()
        formatter.set_scientific(False)
        ax.xaxis.set_major_formatter(formatter)
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
