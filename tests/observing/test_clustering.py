"""Clusters of laws whose number is known by construction."""

import numpy as np
import pytest
from observing_fakes import Tokens, circle_cells, sphere_cells, square_cells

from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import Attention, Model
from pde_solver.observing import cluster_count, clusters

CENTRES = np.eye(3)  # three orthogonal directions


def bumps(kappa, shares=(1, 1, 1)):
    return lambda x: sum(share * np.exp(kappa * (x @ c - 1)) for c, share in zip(CENTRES, shares, strict=True))


def sphere_tokens(count, kappa, rng, shares=(1 / 3, 1 / 3, 1 / 3)):
    """von Mises–Fisher bumps on S² by inversion of the height's distribution function."""
    tokens = Tokens(Model(Sphere(3), Attention(beta=4.0)), count)
    height = 1 + np.log1p(-rng.random(count) * (1 - np.exp(-2 * kappa))) / kappa if kappa else rng.uniform(-1, 1, count)
    angle = rng.uniform(0, 2 * np.pi, count)
    side = np.sqrt(1 - height**2)
    local = np.stack([height, side * np.cos(angle), side * np.sin(angle)])
    which = rng.choice(3, count, p=shares)
    points = np.stack([np.roll(local[:, i], which[i]) for i in range(count)])
    return tokens.snapshot(tokens.state(points))


@pytest.mark.parametrize("count", [300, 3000, 20_000])
def test_mesh_of_the_sphere(count):
    """Uniform: 1. Three orthogonal bumps: 3, at any resolution of the mesh and for masses 8 : 1 : 1."""
    cells = sphere_cells(count)
    assert cluster_count(cells.snapshot(cells.state(lambda x: 1.0))) == 1
    for kappa in (30, 60, 1000):
        assert cluster_count(cells.snapshot(cells.state(bumps(kappa)))) == 3
    assert cluster_count(cells.snapshot(cells.state(bumps(30, shares=(8, 1, 1))))) == 3
    assert cluster_count(cells.snapshot(cells.state(bumps(1)))) == 1  # so wide that they are one


@pytest.mark.parametrize("count", [500, 5000])
def test_tokens_on_the_sphere(count):
    rng = np.random.default_rng(11)
    for _ in range(5):
        assert cluster_count(sphere_tokens(count, 0, rng)) == 1
        assert cluster_count(sphere_tokens(count, 30, rng)) == 3
        assert cluster_count(sphere_tokens(count, 200, rng, (0.8, 0.1, 0.1))) == 3


def test_circle_and_plane():
    cells = circle_cells(128)
    assert cluster_count(cells.snapshot(cells.state(lambda x: 1.0))) == 1
    angle = np.arctan2(cells.points[:, 1], cells.points[:, 0])
    assert cluster_count(cells.snapshot(cells.state(lambda x: np.exp(30 * (np.cos(3 * angle) - 1))))) == 3
    for side in (15, 100):  # cells of 0.67 are coarser than the distance 0.25, cells of 0.1 are finer
        square = square_cells(side)
        two = lambda x: sum(np.exp(-np.sum((x - c) ** 2, axis=1) / 0.5) for c in ([-2, 0], [2.5, 1]))  # noqa: E731
        assert cluster_count(square.snapshot(square.state(lambda x: 1.0))) == 1
        assert cluster_count(square.snapshot(square.state(two))) == 2


def test_collapsed_tokens():
    """Tokens in exactly k places are k clusters, a single token is one."""
    tokens = Tokens(Model(Euclidean(1), Attention()), 60)
    places = np.arange(60)[:, None]
    for k in (1, 4, 60):
        assert cluster_count(tokens.snapshot(tokens.state(1.0 * (places % k)))) == k


def test_distance_is_an_angle_on_spheres():
    """Two Diracs 1 rad apart (chord 0.959) are one cluster as soon as the distance exceeds 1, not 0.959."""
    tokens = Tokens(Model(Sphere(2), Attention()), 2)
    pair = tokens.snapshot(tokens.state(np.array([[1.0, 0.0], [np.cos(1.0), np.sin(1.0)]])))
    assert [clusters(distance)(pair) for distance in (0.97, 0.999, 1.001)] == [2, 2, 1]


def test_refused():
    with pytest.raises(InputError, match="distance must be"):
        clusters(0.0)
    with pytest.raises(InputError, match="floor must lie"):
        clusters(floor=1.0)
