"""The picture of laws that depend on a label: density over label and angle (or x), at a few depths. Good enough for a talk."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.output.atomic import replaced_file
from pde_solver.output.frames import Frame
from pde_solver.output.style import STYLE


def can_draw_labels(manifold: Manifold, frames: Sequence[Sequence[Frame]]) -> bool:
    """Whether there is such a picture: densities in one dimension."""
    return manifold.dimension == 1 and bool(frames) and not any(frame.is_tokens for row in frames for frame in row)


def label_figure(
    path: str | os.PathLike[str],
    manifold: Manifold,
    nodes: Sequence[float] | np.ndarray,
    frames: Sequence[Sequence[Frame]],
    title: str | None = None,
) -> None:
    """Draw the density of every label over its number s and the angle (or x), one panel a depth, 200 dots per inch.

    One process only. All panels have one scale of colours, so that they can be compared.

    Args:
        path: the picture; .png, .pdf or .svg.
        manifold: the circle or the line.
        nodes: (labels,) the labels' numbers, increasing.
        frames: for each depth the frames of all labels, in the order of the nodes.
        title: a line above everything.

    Raises:
        InputError: the manifold has another dimension, or the frames are tokens or not as many as the nodes.
        RunStopped: the picture cannot be written.
    """
    if not can_draw_labels(manifold, frames):
        raise InputError("label figure: give densities on the circle or on the line, one to six depths.")
    if any(len(row) != len(nodes) for row in frames) or len(frames) > 6:
        raise InputError(
            f"label figure: give at most six depths, each with a frame for each of the {len(nodes)} labels."
        )
    on_circle = isinstance(manifold, Sphere)
    highest = max(frame.values.max() for row in frames for frame in row)
    edges = _edges(np.asarray(nodes, dtype=float))
    columns = len(frames)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.6 * columns + 1.2, 4.6), dpi=200, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        if title:
            figure.suptitle(title, fontsize=17)
        axes = figure.subplots(1, columns, sharey=True, squeeze=False)[0]
        for ax, row in zip(axes, frames, strict=True):
            points = row[0].points
            place = np.arctan2(points[:, 1], points[:, 0]) if on_circle else points[:, 0]
            place, first = np.unique(place, return_index=True)
            density = np.array([frame.values[first] for frame in row])
            across = _edges(place)
            if on_circle:  # which has no ends
                across[[0, -1]] = -np.pi, np.pi
            image = ax.pcolormesh(across, edges, density, cmap="magma", vmin=0.0, vmax=highest, rasterized=True)
            ax.set_title(f"t = {row[0].t:.4g}", loc="left")
            ax.set_xlabel("angle θ" if on_circle else "x")
            if on_circle:
                ax.set(xlim=(-np.pi, np.pi))
                ax.set_xticks([-np.pi, 0, np.pi], ["−π", "0", "π"])
        axes[0].set_ylabel("position s")
        figure.colorbar(image, ax=list(axes), label="density", pad=0.015)
        with replaced_file(Path(path)) as temporary:
            figure.savefig(temporary, format=Path(path).suffix[1:])


def _edges(centres: np.ndarray) -> np.ndarray:
    """Edges of the cells around increasing centres, half way between them."""
    if len(centres) == 1:
        return centres[0] + np.array([-0.5, 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])
