"""One picture of a run: the law at a few depths beside the curve of a recorded quantity. Good enough for a talk."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.output import sphere_view
from pde_solver.output.atomic import replaced_file
from pde_solver.output.frames import Frame
from pde_solver.output.interpolation import NodalInterpolant
from pde_solver.output.style import BLUE, INK, ORANGE, STYLE

#: Densities below the highest by more than this are one colour.
DECADES = 3.0
#: Perceptually uniform, and without the last black, on which a sphere would look flat.
COLOURS = ListedColormap(matplotlib.colormaps["magma"](np.linspace(0.07, 0.99, 256)), name="density")


def summary_figure(
    path: str | os.PathLike[str],
    manifold: Manifold,
    frames: Sequence[Frame],
    curve: tuple[str, np.ndarray, np.ndarray],
    title: str | None = None,
) -> None:
    """Draw the law at a few depths beside a recorded quantity, 16:9, 200 dots per inch. One process only.

    On S²: spheres coloured by density, or with tokens as dots. On the circle and the line: the density against angle or
    x, one line a depth. In the plane: density in colours, or tokens. In R³: the marginal of the first two
    coordinates; for tokens in higher dimensions, their first two coordinates.

    Args:
        path: the picture; the suffix says its format (.png, .pdf, .svg).
        manifold: where the tokens live.
        frames: the depths, one to six; four look best.
        curve: the quantity's name, its depths (n,) and its values (n,).
        title: a line above everything.

    Raises:
        InputError: there are no frames, or too many, or the suffix is another.
        RunStopped: the picture cannot be written.
    """
    if not 1 <= len(frames) <= 6:
        raise InputError(f"summary figure: give one to six depths, found {len(frames)}.")
    suffix = Path(path).suffix
    if suffix not in {".png", ".pdf", ".svg"}:
        raise InputError(f"{path}: {suffix or 'no suffix'} is no format for pictures; use .png, .pdf or .svg.")
    frames = list(frames)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(40 / 3, 7.5), dpi=200, facecolor="white")
        FigureCanvasAgg(figure)
        top = 0.86 if title else 0.92
        if title:
            figure.text(0.5, 0.965, title, ha="center", va="top", fontsize=19)
        if manifold.dimension == 1:
            grid = figure.add_gridspec(1, 2, left=0.075, right=0.975, bottom=0.12, top=top, wspace=0.24)
            _lines(figure.add_subplot(grid[0, 0]), manifold, frames)
            _curve(figure.add_subplot(grid[0, 1]), frames, curve)
        else:
            _panels(figure, manifold, frames, top)
            left = 0.605 if all(frame.is_tokens for frame in frames) else 0.655  # tokens have no scale of colours
            side = figure.add_gridspec(1, 1, left=left, right=0.975, bottom=0.16, top=top - 0.04)
            _curve(figure.add_subplot(side[0, 0]), frames, curve)
        with replaced_file(Path(path)) as temporary:
            figure.savefig(temporary, format=suffix[1:])


def _panels(figure: Figure, manifold: Manifold, frames: list[Frame], top: float) -> None:
    """A picture for each depth on the left, with one scale of colours."""
    rows = 1 if len(frames) <= 2 else 2
    columns = -(-len(frames) // rows)
    on_sphere = isinstance(manifold, Sphere) and manifold.ambient_dimension == 3
    gaps = {"wspace": 0.02, "hspace": 0.14} if on_sphere else {"wspace": 0.2, "hspace": 0.3}
    left = 0.02 if on_sphere else 0.065
    grid: GridSpec = figure.add_gridspec(
        rows, columns, left=left, right=0.52, bottom=0.04 if on_sphere else 0.1, top=top, **gaps
    )
    axes = [figure.add_subplot(grid[i // columns, i % columns]) for i in range(len(frames))]
    if on_sphere:
        view = sphere_view.View.facing(frames)
        norm = _norm([frame.values for frame in frames if not frame.is_tokens])
        for ax, frame in zip(axes, frames, strict=True):
            if frame.is_tokens:
                sphere_view.draw_tokens(ax, view, frame, BLUE)
            else:
                sphere_view.draw_density(ax, view, frame, norm, COLOURS)
    else:
        corners = _corners(frames)
        images = [None if frame.is_tokens else _marginal(manifold, frame, *corners) for frame in frames]
        norm = _norm([image for image in images if image is not None])
        for ax, frame, image in zip(axes, frames, images, strict=True):
            _plane(ax, frame, image, *corners, norm)
    for ax, frame in zip(axes, frames, strict=True):
        ax.set_title(f"t = {frame.t:.4g}")
    if not all(frame.is_tokens for frame in frames):
        bar = figure.add_axes((0.545, 0.25, 0.010, 0.45))
        figure.colorbar(ScalarMappable(norm, COLOURS), cax=bar, extend="min")
        bar.set_title("density", fontsize=13, loc="left", pad=12)
        bar.tick_params(labelsize=12, length=3)
        bar.minorticks_off()
        for spine in bar.spines.values():
            spine.set_visible(False)


def _norm(densities: list[np.ndarray]) -> LogNorm:
    """One logarithmic scale for all depths, over the topmost decades."""
    highest = max((float(density.max()) for density in densities), default=1.0)
    lowest = min((float(density.min()) for density in densities), default=0.1)
    highest = highest if highest > 0 else 1.0
    return LogNorm(min(max(lowest, highest * 10**-DECADES), 0.99 * highest), highest)


def _corners(frames: list[Frame]) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corner of the box around all points, with a little air around tokens."""
    points = np.vstack([frame.points for frame in frames])
    lowest, highest = points.min(axis=0), points.max(axis=0)
    margin = 0.03 * (highest - lowest) if frames[0].is_tokens else 0.0
    return lowest - margin, highest + margin


def _plane(ax: Axes, frame: Frame, image: np.ndarray | None, lowest, highest, norm: LogNorm) -> None:
    """The first two coordinates: a density in colours, or tokens as dots."""
    if image is None:
        size = float(np.clip(16000 / len(frame.points), 3, 30))
        ax.scatter(frame.points[:, 0], frame.points[:, 1], s=size, c=BLUE, alpha=0.5, linewidths=0)
    else:
        extent = (lowest[0], highest[0], lowest[1], highest[1])
        ax.imshow(image, extent=extent, origin="lower", norm=norm, cmap=COLOURS, interpolation="bilinear")
    ax.set(xlim=(lowest[0], highest[0]), ylim=(lowest[1], highest[1]), aspect="equal", xlabel="x₁", ylabel="x₂")
    ax.label_outer()


def _marginal(manifold: Manifold, frame: Frame, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """f on a grid of pixels in the plane; in R³ ∫ f dx₃."""
    dimension = manifold.ambient_dimension
    axes = [np.linspace(lowest[i], highest[i], 300 if dimension == 2 else 64) for i in range(dimension)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    floor = float(frame.values.max()) * 10 ** (-2 * DECADES)
    density = NodalInterpolant(frame.points[:, :dimension], frame.values, floor)(grid.reshape(-1, dimension))
    density = density.reshape(grid.shape[:-1])
    return density.T if dimension == 2 else np.trapezoid(density, axes[2], axis=2).T


def _lines(ax: Axes, manifold: Manifold, frames: list[Frame]) -> None:
    """Density against angle or x; tokens as a histogram."""
    on_circle = isinstance(manifold, Sphere)
    places = [np.arctan2(f.points[:, 1], f.points[:, 0]) if on_circle else f.points[:, 0] for f in frames]
    ends = (-np.pi, np.pi) if on_circle else (min(x.min() for x in places), max(x.max() for x in places))
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, len(frames)))
    highest = []
    for frame, x, shade in zip(frames, places, shades, strict=True):
        if frame.is_tokens:
            heights, edges = np.histogram(x, bins=80, range=ends, weights=frame.values, density=True)
            ax.stairs(heights, edges, color=shade, linewidth=2.2, label=f"t = {frame.t:.4g}")
            highest.append(heights.max())
        else:
            order = np.argsort(x, kind="stable")
            ax.plot(x[order], frame.values[order], color=shade, linewidth=2.4, label=f"t = {frame.t:.4g}")
            highest.append(frame.values.max())
    if max(highest) > 30 * min(highest):
        ax.set_yscale("log")
        ax.set_ylim(max(highest) * 10**-DECADES, 2 * max(highest))
    else:
        ax.set_ylim(bottom=0)
    ax.set(xlim=ends, xlabel="angle θ" if on_circle else "x", ylabel="density")
    if on_circle:
        ax.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["−π", "−π/2", "0", "π/2", "π"])
    ax.legend(frameon=False, handlelength=1.4)


def _curve(ax: Axes, frames: list[Frame], curve: tuple[str, np.ndarray, np.ndarray]) -> None:
    """The quantity against depth, with a dot at each depth that is shown."""
    name, times, values = curve
    times, values = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    ax.plot(times, values, color=BLUE, linewidth=2.6, zorder=2)
    shown = [frame.t for frame in frames if len(times) and times[0] <= frame.t <= times[-1]]
    if shown:
        dots = np.interp(shown, times, values)
        ax.plot(shown, dots, "o", color=ORANGE, markersize=9, markeredgecolor="white", zorder=3)
    ax.set(xlabel="depth t")
    ax.set_title(name.replace("_", " "), loc="left")
    ax.grid(axis="y", color=INK, alpha=0.1, linewidth=0.8)
    ax.margins(x=0.03)
