"""Drawings of the report: an SVG element for the page, and what its colours and marks stand for."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pde_solver.checks import Check, Figure
from pde_solver.convergence import Study
from pde_solver.convergence.figure import draw_errors
from pde_solver.output.style import INK, PALETTE, STYLE

#: Marks of matplotlib, and how they are written in text.
MARKS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼", "P": "✚", "*": "★"}
LINES = {"-": "—", ":": "⋯", "--": "– –"}


@dataclass(frozen=True)
class Mark:
    """One entry of a legend.

    Args:
        colour: of the mark, "#rrggbb".
        symbol: the mark as text.
        label: what it stands for.
    """

    colour: str
    symbol: str
    label: str


def draw_figure(ax: Axes, *, figure: Figure) -> None:
    """Expected values as lines, measured ones as dots; what belongs together has one colour."""
    expected = [curve for curve in figure.curves if curve.expected]
    measured = [curve for curve in figure.curves if not curve.expected]
    marks = list(MARKS)
    for i, curve in enumerate(expected):
        ax.plot(curve.x, curve.y, "-", color=PALETTE[i % len(PALETTE)], linewidth=1.8, label=curve.label, zorder=2)
    for i, curve in enumerate(measured):
        ax.plot(
            curve.x, curve.y, marks[i % len(marks)], color=PALETTE[i % len(PALETTE)], markersize=6,
            markeredgecolor="white", label=curve.label, zorder=3,
        )  # fmt: skip
    if figure.scale in ("log-y", "log-log"):
        ax.set_yscale("log")
    if figure.scale == "log-log":
        ax.set_xscale("log")
    if figure.scale != "log-log":
        ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.set(xlabel=figure.x_label, ylabel=figure.y_label)
    ax.grid(which="major", color=INK, alpha=0.12, linewidth=0.8)


def draw_study(ax: Axes, *, lines: Sequence[tuple[str, Study, str]], checks: Sequence[Check]) -> None:
    """Errors against resolution, with the tolerances that they must meet as dotted lines."""
    draw_errors(ax, lines, legend=False)
    last = [study.last(name) for _, study, name in lines]
    # a check may hold something else than the study's own error against its tolerance, such as an order
    own = {check.tolerance for check in checks if any(np.isclose(check.error, e, rtol=1e-6, atol=0) for e in last)}
    for i, tolerance in enumerate(sorted(own)):
        label = "tolerance" if i == 0 else None
        ax.axhline(tolerance, color=INK, linestyle=":", linewidth=1.2, zorder=1, label=label)


def drawn(draw: Callable[[Axes], None], prefix: str) -> tuple[str, list[Mark]]:
    """A drawing as an <svg> element whose text is text, and its legend.

    Args:
        draw: draws on axes.
        prefix: makes the names inside the element unlike those of the page's other drawings.
    """
    small = {"font.size": 11, "axes.labelsize": 12, "svg.fonttype": "none", "svg.hashsalt": "report"}
    with matplotlib.rc_context(STYLE | small):
        canvas = Canvas(figsize=(5.4, 3.9), layout="constrained", facecolor="none")
        FigureCanvasSVG(canvas)
        ax = canvas.add_subplot()
        draw(ax)
        buffer = io.StringIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    # without a size of its own, so that it takes that of its column
    text = re.sub(r' (?:width|height)="[^"]*pt"', "", text[text.index("<svg") :], count=2)
    text = re.sub(r'(\bid="|href="#|url\(#)([^")]+)', rf"\g<1>{prefix}-\g<2>", text)
    handles, labels = ax.get_legend_handles_labels()
    return text, [
        _mark(handle, label) for handle, label in zip(handles, labels, strict=True) if isinstance(handle, Line2D)
    ]


def _mark(line: Line2D, label: str) -> Mark:
    symbol = MARKS.get(str(line.get_marker())) or LINES.get(str(line.get_linestyle()), "—")
    return Mark(to_hex(line.get_color()), symbol, label)
