"""Pictures: of the right size, without a warning, and with the mass where it is."""

import matplotlib.image
import numpy as np
import pytest

from pde_solver.errors import InputError, RunStopped
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.output import Frame
from pde_solver.output.figures import summary_figure
from pde_solver.output.interpolation import NodalInterpolant
from pde_solver.output.sphere_view import View

CURVE = ("interaction_energy", np.linspace(0, 2, 21), np.linspace(0, 1, 21) ** 2)
pytestmark = pytest.mark.filterwarnings("error")


def spiral(count=800):
    """Points spread evenly over S²."""
    i = np.arange(count) + 0.5
    z, angle = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    return np.column_stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z])


def test_the_interpolant_is_near_a_smooth_density():
    # exp(3 x₁) varies by a factor e^6; with 3,200 nodes 0.06 apart, an average over ten nodes is off by ~ (3 · 0.06)² / 2.
    points, seen = spiral(3200), spiral(501)
    interpolant = NodalInterpolant(np.repeat(points, 2, axis=0), np.repeat(np.exp(3 * points[:, 0]), 2), 1e-9)
    assert np.max(np.abs(interpolant(seen) / np.exp(3 * seen[:, 0]) - 1)) < 0.05


def test_the_viewer_faces_the_mass():
    points = spiral()
    bump = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
    view = View.facing([Frame(0.0, points, np.exp(5 * points @ bump))])
    assert view.axes[2] @ bump > 0.999
    assert np.allclose(view.axes @ view.axes.T, np.eye(3), atol=1e-14)
    antipodal = View.facing([Frame(0.0, points, np.cosh(5 * points @ bump))])
    assert abs(antipodal.axes[2] @ bump) > 0.999


def test_a_peak_is_bright_where_it_is(tmp_path):
    points = spiral(3000)
    frames = [Frame(t, points, np.exp(k * (points[:, 0] - 1))) for t, k in ((0.0, 1.0), (2.0, 60.0))]
    summary_figure(tmp_path / "ü.png", Sphere(3), frames, CURVE, title="S²")
    image = matplotlib.image.imread(tmp_path / "ü.png")
    assert image.shape[:2] == (1500, 2666)  # 16:9 at 200 dots an inch
    right = image[300:1400, 700:1380, :3]  # the second sphere
    coloured = np.where(np.ptp(right, axis=2) > 0.2, right.sum(axis=2), 0)  # not the white paper
    row, column = np.unravel_index(np.argmax(coloured), coloured.shape)
    dark = right.sum(axis=2) < 1
    assert abs(column - np.nonzero(dark.any(axis=0))[0].mean()) < 40
    assert abs(row - np.nonzero(dark.any(axis=1))[0].mean()) < 40


@pytest.mark.parametrize(
    ("manifold", "dimension", "is_tokens"),
    [
        (Sphere(3), 3, True),
        (Sphere(2), 2, False),
        (Sphere(2), 2, True),
        (Sphere(5), 3, True),
        (Euclidean(1), 1, False),
        (Euclidean(1), 1, True),
        (Euclidean(2), 2, False),
        (Euclidean(2), 2, True),
        (Euclidean(3), 3, False),
        (Euclidean(7), 3, True),
    ],
)
def test_every_manifold_has_a_picture(tmp_path, manifold, dimension, is_tokens):
    random = np.random.default_rng(2)
    frames = []
    for t in (0.0, 2.0):
        points = np.zeros((300, 3))
        points[:, :dimension] = random.normal(size=(300, dimension)) * (1 - 0.4 * t)
        if isinstance(manifold, Sphere):
            points /= np.linalg.norm(points, axis=1, keepdims=True)
        frames.append(Frame(t, points, np.exp(-(points[:, 0] ** 2)), is_tokens))
    summary_figure(tmp_path / "p.png", manifold, frames, CURVE)
    assert (tmp_path / "p.png").stat().st_size > 20_000


def test_a_uniform_law_and_an_empty_curve(tmp_path):
    points = spiral()
    nothing = ("energy", np.empty(0), np.empty(0))
    summary_figure(tmp_path / "p.png", Sphere(3), [Frame(0.0, points, np.full(len(points), 0.08))], nothing)
    assert (tmp_path / "p.png").exists()


def test_what_cannot_be_drawn_is_said(tmp_path):
    with pytest.raises(InputError, match="one to six depths, found 0"):
        summary_figure(tmp_path / "p.png", Sphere(3), [], CURVE)
    frame = Frame(0.0, spiral(), np.ones(800))
    with pytest.raises(InputError, match=r"\.xyz is no format for pictures; use \.png"):
        summary_figure(tmp_path / "p.xyz", Sphere(3), [frame], CURVE)
    with pytest.raises(RunStopped, match="writing failed"):
        summary_figure(tmp_path / "none" / "p.png", Sphere(3), [frame], CURVE)
