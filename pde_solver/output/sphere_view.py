"""S² seen from afar: orthographic view, light shading, a thin graticule."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LogNorm

from pde_solver.output.frames import Frame
from pde_solver.output.interpolation import NodalInterpolant

PIXELS = 640
#: Lines of equal density between the ends of the scale; they show humps that the colours of a common scale would not.
ISOLINES = 8
INK = "#1b1b1f"


@dataclass(frozen=True)
class View:
    """Where the viewer stands.

    Args:
        axes: (3, 3) rows: right, up, and towards the viewer; orthonormal.
    """

    axes: np.ndarray

    @classmethod
    def facing(cls, frames: list[Frame]) -> "View":
        """The view that shows the most mass of all depths: along the mean, or along the main axis where there is none."""
        mean, second = np.zeros(3), np.zeros((3, 3))
        for frame in frames:
            share = frame.values / frame.values.sum()
            mean += share @ frame.points
            second += np.einsum("n,ni,nj->ij", share, frame.points, frame.points)
        if np.linalg.norm(mean) < 0.05 * len(frames):
            mean = np.linalg.eigh(second)[1][:, -1]
        towards = mean / np.linalg.norm(mean)
        pole = np.array([0.0, 0.0, 1.0]) if abs(towards[2]) < 0.95 else np.array([0.0, 1.0, 0.0])
        right = np.cross(pole, towards)
        right /= np.linalg.norm(right)
        return cls(np.array([right, np.cross(towards, right), towards]))

    def project(self, points: np.ndarray) -> np.ndarray:
        """Right, up and depth of points (n, 3): (n, 3)."""
        return points @ self.axes.T


def draw_density(ax: Axes, view: View, frame: Frame, norm: LogNorm, cmap: Colormap) -> None:
    """The front of the sphere, coloured by density."""
    right, up, front, radius = _disc()
    inside = radius <= 1.0
    seen = np.column_stack([right[inside], up[inside], front[inside]]) @ view.axes
    nodes = frame.points / np.linalg.norm(frame.points, axis=1, keepdims=True)
    density = NodalInterpolant(nodes, frame.values, float(norm.inverse(0.0)))(seen)
    image = np.zeros((PIXELS, PIXELS, 4))
    image[inside] = cmap(norm(density))
    light = 0.72 + 0.28 * front[inside] ** 0.4  # the limb a little darker: round, and the colours still readable
    image[inside, :3] *= light[:, None]
    _show(ax, image, radius)
    levels = norm.inverse(np.linspace(0, 1, ISOLINES + 2)[1:-1])
    levels = levels[(levels > density.min()) & (levels < density.max())]
    if len(levels):
        field = np.full((PIXELS, PIXELS), np.nan)
        field[inside] = density
        ax.contour(right, up, field, levels=levels, colors="white", linewidths=0.7, alpha=0.42, zorder=3)
    _graticule(ax, view, "#ffffff", 0.13)


def draw_tokens(ax: Axes, view: View, frame: Frame, colour: str) -> None:
    """Tokens as dots on a pale sphere; those behind shine through."""
    right, up, front, radius = _disc()
    image = np.ones((PIXELS, PIXELS, 4))
    light = np.clip(-0.35 * right + 0.45 * up + 0.82 * front, 0, 1)
    image[..., :3] = (0.84 + 0.14 * light)[..., None]
    _show(ax, image, radius)
    _graticule(ax, view, INK, 0.10)
    places = view.project(frame.points / np.linalg.norm(frame.points, axis=1, keepdims=True))
    size = float(np.clip(16000 / len(places), 2.5, 30))
    opacity = float(np.clip((1000 / len(places)) ** 0.5, 0.25, 0.6))  # so that a dense cluster keeps its shape
    for hidden, alpha in ((True, opacity / 5), (False, opacity)):
        chosen = places[(places[:, 2] < 0) == hidden]
        ax.scatter(chosen[:, 0], chosen[:, 1], s=size, c=colour, alpha=alpha, linewidths=0, zorder=2 if hidden else 4)


def _disc() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Right, up, depth and distance from the centre for each pixel."""
    line = np.linspace(-1.01, 1.01, PIXELS)
    right, up = np.meshgrid(line, line)
    radius = np.hypot(right, up)
    return right, up, np.sqrt(np.maximum(1 - radius**2, 0)), radius


def _show(ax: Axes, image: np.ndarray, radius: np.ndarray) -> None:
    image[..., 3] = np.clip((1 - radius) * PIXELS / 2.02, 0, 1)  # a smooth rim
    ax.imshow(image, extent=(-1.01, 1.01, -1.01, 1.01), origin="lower", interpolation="bilinear", zorder=1)
    ax.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
    ax.axis("off")


def _graticule(ax: Axes, view: View, colour: str, alpha: float) -> None:
    """Meridians and parallels every 30°, on the front only."""
    angle = np.linspace(0, 2 * np.pi, 361)
    lines = []
    for latitude in np.radians([-60, -30, 0, 30, 60]):
        ring = np.cos(latitude) * np.array([np.cos(angle), np.sin(angle)])
        lines.append(np.vstack([ring, np.full((1, len(angle)), np.sin(latitude))]).T)
    for longitude in np.radians(np.arange(0, 180, 30)):
        lines.append(np.array([np.cos(angle) * np.cos(longitude), np.cos(angle) * np.sin(longitude), np.sin(angle)]).T)
    segments = []
    for line in lines:
        places = view.project(line)
        front = (places[:-1, 2] > 0) & (places[1:, 2] > 0)
        segments += list(np.stack([places[:-1, :2], places[1:, :2]], axis=1)[front])
    ax.add_collection(LineCollection(segments, colors=colour, alpha=alpha, linewidths=0.7, zorder=3))
