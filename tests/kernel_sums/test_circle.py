from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from pde_solver.kernel_sums.circle import proposals
from pde_solver.kernel_sums.method import Problem
from pde_solver.kernel_sums.spot_check import importance
from pde_solver.manifolds import Sphere
from pde_solver.models import L2, Attention, Unnormalised
from tests.kernel_sums import long_double
from tests.mpi.launching import launch

BETAS = [0.0, 1e-3, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]
TOLERANCE = 1e-9
ANGLES = {
    "lattice": (0.1 + 2 * np.pi / 64 * np.arange(64), 0.1 + 2 * np.pi / 64 * (np.arange(64) + 0.5)),
    "few": (0.1 + 2 * np.pi / 7 * np.arange(7), np.linspace(0, 6, 40)),
    "random": (np.random.default_rng(1).uniform(-4, 4, 60), np.random.default_rng(2).uniform(-4, 4, 50)),
}


def ring(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def matrix(rows, columns, seed):
    found = np.random.default_rng(seed).normal(size=(rows, columns))
    return found / np.linalg.norm(found, 2)


HEADS = {
    "plain": {},
    "repulsive": {"query": -np.eye(2)},
    "indefinite": {"query": np.diag([1.0, -0.6])},
    "general": {"query": matrix(2, 2, 1)},
    "higher": {"query": matrix(3, 2, 2), "key": matrix(3, 2, 3)},
    "degenerate": {"query": np.outer([0.6, 0.8], [1.0, 0.0])},
    "by distance": {"query": matrix(2, 2, 4), "key": matrix(2, 2, 5), "normaliser": L2()},
}


def density(kind, angles):
    bump = {centre: np.exp(100 * (np.cos(angles - centre) - 1)) for centre in (1.0, 1.0 + np.pi)}
    return {
        "uniform": np.ones(len(angles)),
        "smooth": 1 + 0.5 * np.cos(angles),
        "clustered": bump[1.0],
        "antipodal": sum(bump.values()),
    }[kind] / len(angles)


def problem(heads, targets, sources, labels=1, tolerance=TOLERANCE):
    counts = len(targets), len(sources)
    return Problem(Sphere(2), tuple(heads), targets, sources, MPI.COMM_SELF, *counts, labels, tolerance)


def sums_of(*arguments, **options):
    (proposal,) = proposals(problem(*arguments, **options))
    return proposal.build()


@pytest.mark.parametrize("points", ANGLES)
@pytest.mark.parametrize("name", HEADS)
def test_any_head_at_any_temperature(points, name):
    angles, target_angles = ANGLES[points]
    sources, targets = ring(angles), ring(target_angles)
    laws = np.stack([density(kind, angles) for kind in ("uniform", "smooth", "clustered", "antipodal")])
    for beta in BETAS:
        head = Attention(beta, **HEADS[name])
        sums = sums_of([head], targets, sources, len(laws))
        found = sums.attend(laws, np.eye(len(laws)), partition=True)[0]
        counted = importance(sums.mass_near(targets))
        if found.doubtful is not None:
            counted[found.doubtful] = 0.0
        arguments = head.queries(targets), head.keys(sources)
        bias = head.key_bias(arguments[1])
        error = np.abs(found.mean - long_double.mean(*arguments, sources, laws, bias)).max(axis=2)
        assert np.max(error * counted) < TOLERANCE, beta
        deviation = np.abs(found.log_partition - long_double.log_partition(*arguments, laws, bias))
        assert np.max((deviation * counted)[counted > 1e-6], initial=0.0) < 2 * TOLERANCE, beta
        if beta <= 64 and name != "by distance" and points != "few":
            assert error[0].max() < 3e-13, beta
            assert found.doubtful is None or not found.doubtful[:2].any()


@pytest.mark.parametrize(("points", "bound"), [("lattice", 3e-14), ("random", 3e-13)])
def test_close_to_round_off_while_the_law_is_smooth(points, bound):
    angles, target_angles = ANGLES[points]
    sources, targets = ring(angles), ring(target_angles)
    weights = density("smooth", angles)[None]
    for beta in BETAS[:5]:
        for name in ("plain", "repulsive", "indefinite", "general"):
            head = Attention(beta, **HEADS[name])
            found = sums_of([head], targets, sources).attend(weights, np.eye(1))[0]
            right = long_double.mean(head.queries(targets), head.keys(sources), sources, weights)
            assert np.abs(found.mean - right).max() < bound, (beta, name)


def test_doubtful_where_mass_sees_only_what_is_far_below_the_largest_sum():
    angles, _ = ANGLES["lattice"]
    points = ring(angles)
    weights = density("clustered", angles)[None]
    # tokens of a cluster that look for their antipodes find the tails of the cluster, which round-off covers
    repulsive = sums_of([Attention(64.0, -np.eye(2))], points, points).attend(weights, np.eye(1))[0]
    assert repulsive.doubtful is not None
    assert repulsive.doubtful[0, np.argmax(weights)]
    # if they look for each other nothing is lost
    assert sums_of([Attention(64.0)], points, points).attend(weights, np.eye(1))[0].doubtful is None


def test_heads_labels_mixing_and_directions():
    angles, target_angles = ANGLES["random"]
    sources, targets = ring(angles), ring(target_angles)
    rng = np.random.default_rng(3)
    weights, mixing = rng.random((3, len(sources))), np.tril(rng.random((3, 3)))
    heads = [Attention(4.0, **HEADS[name]) for name in HEADS]
    directions = [rng.normal(size=targets.shape) for _ in heads]
    found = sums_of(heads, targets, sources, 3).attend(weights, mixing, directions)
    for head, direction, result in zip(heads, directions, found, strict=True):
        keys = head.keys(sources)
        right = long_double.mean(head.queries(targets), keys, sources, mixing @ weights, head.key_bias(keys))
        np.testing.assert_allclose(result.mean, np.einsum("znd,nd->zn", right, direction), rtol=0, atol=1e-12)
        assert result.log_partition is None


def test_unnormalised_heads_at_low_temperature():
    angles, target_angles = ANGLES["lattice"]
    sources, targets = ring(angles), ring(target_angles)
    weights = density("smooth", angles)[None]
    head = Attention(1e4, normaliser=Unnormalised(1e4))
    found = sums_of([head], targets, sources).attend(weights, np.eye(1), partition=True)[0]
    right = long_double.log_partition(head.queries(targets), sources, weights)
    np.testing.assert_allclose(found.log_partition, right.astype(float), rtol=1e-12)


def test_particles_that_move_onto_each_other_and_coincide():
    angles = np.array([0.3, 0.3, 0.3 + 1e-9, 2.0, -np.pi, np.pi])
    points = ring(angles)
    weights = np.full((1, 6), 1 / 6)
    for beta in (0.0, 3.0, 100.0):
        head = Attention(beta)
        found = sums_of([head], points, points).attend(weights, np.eye(1))[0]
        right = long_double.mean(head.queries(points), points, points, weights)
        np.testing.assert_allclose(found.mean, right.astype(float), rtol=0, atol=1e-12)


def test_mass_near():
    angles, _ = ANGLES["lattice"]
    points = ring(angles)
    weights = np.zeros((1, len(points)))
    weights[0, 15] = 0.2
    sums = sums_of([Attention(256.0)], points, points)
    sums.attend(weights, np.eye(1))
    near = sums.mass_near(points)[0]
    np.testing.assert_allclose(near, np.exp(256 * (np.cos(angles - angles[15]) - 1)), rtol=0, atol=1e-3)
    assert near.argmax() == 15


def test_a_nan_is_not_hidden():
    angles, target_angles = ANGLES["random"]
    weights = np.full((1, len(angles)), np.nan)
    for name in ("plain", "general"):
        sums = sums_of([Attention(2.0, **HEADS[name])], ring(target_angles), ring(angles))
        assert np.all(np.isnan(sums.attend(weights, np.eye(1))[0].mean))


def test_only_circles_and_grids_that_fit():
    points = ring(ANGLES["random"][0])
    (proposal,) = proposals(problem([Attention(4.0)], points, points))
    assert proposal.family == "circle"
    assert 0 < proposal.seconds < 0.1
    assert proposal.error < 1e-12
    assert proposal.communication < 2000
    assert not proposals(problem([Attention(1e12)], points, points))
    sphere = np.eye(3)
    assert not proposals(Problem(Sphere(3), (Attention(1.0),), sphere, sphere, MPI.COMM_SELF, 3, 3, 1, 1e-9))


@pytest.mark.parametrize("ranks", [1, 2, 3])  # with 3 the last has no points
def test_sums_on_ranks_agree_with_those_on_one(ranks):
    done = launch(Path(__file__).with_name("mpi_circle_and_boxes.py"), ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("agree") == ranks
