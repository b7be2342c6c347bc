"""The figures of the report: error against resolution, and measured values beside expected ones, as SVG in the page."""

import html
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes

from pde_solver.checks import Check
from pde_solver.convergence import Study
from pde_solver.validation.drawing import Mark, draw_figure, draw_study, drawn

#: Lines that one figure holds at most.
MOST_LINES = 6


@dataclass(frozen=True)
class Picture:
    """One figure and the checks that it belongs to.

    Args:
        number: from 1.
        svg: the drawing.
        legend: what its marks stand for; empty if there is but one.
        caption: what it shows.
        checks: to which it belongs.
    """

    number: int
    svg: str
    legend: tuple[Mark, ...]
    caption: str
    checks: tuple[Check, ...]


def pictures(checks: Sequence[Check], prefix: str) -> list[Picture]:
    """One figure for each `Figure`, then the studies: alike ones together, each drawn once however many checks share it.

    Args:
        checks: of one claim.
        prefix: unlike that of any other claim on the page.
    """
    found: list[Picture] = []

    def add(draw: Callable[[Axes], None], caption: str, belonging: Sequence[Check]) -> None:
        number = len(found) + 1
        try:
            svg, legend = drawn(draw, f"{prefix}-{number}")
        except Exception:  # one figure must not cost the report
            svg, legend = f'<pre class="traceback">{html.escape(traceback.format_exc())}</pre>', []
        found.append(Picture(number, svg, tuple(legend) if len(legend) > 1 else (), caption, tuple(belonging)))

    for figure, belonging in _by_identity([(check.figure, check) for check in checks if check.figure is not None]):
        caption = f"Measured (dots) and expected (lines): {belonging[0].quantity}."
        add(partial(draw_figure, figure=figure), caption, belonging)
    studies = _by_identity([(check.study, check) for check in checks if check.study is not None])
    for lines, belonging in _groups(studies):
        several = len(lines) > 1
        title = lines[0][0] if not several else lines[0][1].name or belonging[0].quantity
        of_one = len({id(study) for _, study, _ in lines}) == 1
        what = f": {title}." if of_one else "."
        caption = f"Error{'s' if several else ''} against {lines[0][1].abscissa}{what}"
        add(partial(draw_study, lines=lines, checks=belonging), caption, belonging)
    return found


def _by_identity(pairs: Sequence[tuple]) -> list[tuple]:
    """Each object once, with all checks that share it."""
    grouped: dict[int, tuple] = {}
    for thing, check in pairs:
        grouped.setdefault(id(thing), (thing, []))[1].append(check)
    return list(grouped.values())


def _groups(studies: Sequence[tuple[Study, list[Check]]]) -> list[tuple[list[tuple[str, Study, str]], list[Check]]]:
    """Studies of one error share a figure, if they have the same abscissa; a study of several errors has one of its own."""
    groups: list[tuple[list[tuple[str, Study, str]], list[Check]]] = []
    for study, checks in studies:
        if len(study.names) > 1:
            groups.append(([(name, study, name) for name in study.names], list(checks)))
            continue
        line = (study.name or checks[0].quantity, study, study.names[0])
        open_ones = [
            g for g in groups
            if len(g[0]) < MOST_LINES and len(g[0][0][1].names) == 1 and g[0][0][1].abscissa == study.abscissa
        ]  # fmt: skip
        if open_ones:
            open_ones[-1][0].append(line)
            open_ones[-1][1].extend(checks)
        else:
            groups.append(([line], list(checks)))
    return groups
