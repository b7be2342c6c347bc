from pathlib import Path

import long_double
import numpy as np
import pytest
from mpi4py import MPI

from pde_solver.kernel_sums.method import Problem
from pde_solver.kernel_sums.sphere import proposals
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import L2, Attention, Unnormalised

CENTRES = Sphere(3).retract(np.array([[0.3, 0.5, 0.8], [-0.7, 0.6, 0.1], [0.2, -0.9, -0.4]]))
ROTATION = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]


def law(kind, count=1500, seed=1):
    """Points and weights (1, count)."""
    rng = np.random.default_rng(seed)
    points = Sphere(3).retract(rng.normal(size=(count, 3)))
    match kind:
        case "uniform":
            weights = np.ones(count)
        case "smooth":
            weights = 1 + 0.5 * points[:, 0] + 0.3 * points[:, 1] * points[:, 2]
        case "bumps":
            weights = sum(np.exp(kappa * (points @ c - 1)) for kappa, c in zip((8, 10, 12), CENTRES, strict=True))
        case "clusters" | "antipodal":
            centres = CENTRES if kind == "clusters" else np.array([CENTRES[0], -CENTRES[0]])
            near = centres[rng.integers(len(centres), size=count)]
            points, weights = Sphere(3).retract(near + 0.03 * rng.normal(size=(count, 3))), np.ones(count)
    return points, (weights / weights.sum())[None]


def problem(heads, targets, sources, tolerance, labels=1):
    return Problem(
        Sphere(3), tuple(heads), targets, sources, MPI.COMM_SELF, len(targets), len(sources), labels, tolerance
    )


def sums(*arguments, **options):
    (proposal,) = proposals(problem(*arguments, **options))
    return proposal.build()


def exact(head, targets, points, weights):
    keys = head.keys(points)
    return long_double.mean(head.queries(targets), keys, points, weights, head.key_bias(keys)).astype(float)


def errors(head, kind, tolerance, count=1500, targets=200):
    """Errors of the mean at targets that are not doubtful, weighted by the mass near them; the part that is doubtful."""
    points, weights = law(kind, count)
    own = points[:targets]
    method = sums([head], own, points, tolerance)
    (found,) = method.attend(weights, np.eye(1))
    error = np.linalg.norm(found.mean - exact(head, own, points, weights), axis=2) * method.mass_near(own)
    doubtful = np.zeros(error.shape, dtype=bool) if found.doubtful is None else found.doubtful
    assert np.all(np.linalg.norm(found.mean, axis=2) <= 1 + 1e-12)
    return error[~doubtful].max(initial=0.0), doubtful.mean()


LAWS = ("uniform", "smooth", "bumps", "clusters", "antipodal")


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("beta", [0.0, 1e-3, 1.0, 4.0, 16.0, 64.0, 256.0])
def test_identity_keeps_the_tolerance(kind, beta):
    for tolerance in (1e-3, 1e-6):
        error, doubtful = errors(Attention(beta), kind, tolerance)
        assert error < tolerance
        assert doubtful == 0


def test_low_temperature():
    error, doubtful = errors(Attention(1024.0), "bumps", 1e-4)
    assert error < 1e-4
    assert doubtful == 0


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("query", [-np.eye(3), ROTATION], ids=["reflection", "rotation"])
@pytest.mark.parametrize("beta", [1.0, 16.0, 64.0])
def test_rotations_keep_the_tolerance_or_doubt(kind, query, beta):
    error, doubtful = errors(Attention(beta, query=query), kind, 1e-5)
    assert error < 1e-5
    assert doubtful == 0 or kind in ("clusters", "antipodal", "bumps")


GENERAL = {
    "general": (np.random.default_rng(1).normal(size=(3, 3)) / 2, None),
    "indefinite": (np.diag([1.0, -0.6, 0.3]), None),
    "two rows": (np.random.default_rng(2).normal(size=(2, 3)) / 2, np.random.default_rng(3).normal(size=(2, 3)) / 2),
    "five rows": (np.random.default_rng(4).normal(size=(5, 3)) / 3, np.random.default_rng(5).normal(size=(5, 3)) / 3),
}


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("matrices", GENERAL.values(), ids=GENERAL.keys())
def test_general_matrices_keep_the_tolerance_or_doubt(kind, matrices):
    query, key = matrices
    for beta in (1e-3, 4.0, 32.0):
        error, doubtful = errors(Attention(beta, query=query, key=key), kind, 1e-4)
        assert error < 1e-4
        assert doubtful < 0.1 or kind in ("clusters", "antipodal")


def test_ten_digits():
    error, doubtful = errors(Attention(4.0), "bumps", 1e-10)
    assert error < 1e-10
    assert doubtful == 0


def test_keys_with_a_bias_and_the_partition_function():
    points, weights = law("smooth")
    targets = points[:200]
    key = np.diag([1.0, 0.5, 0.8])
    heads = [
        Attention(6.0, normaliser=L2()),
        Attention(6.0, key=key, normaliser=L2()),
        Attention(9.0, normaliser=Unnormalised(3.0)),
        Attention(0.0),
    ]
    method = sums(heads, targets, points, 1e-6)
    for head, found in zip(heads, method.attend(weights, np.eye(1), partition=True), strict=True):
        assert found.doubtful is None
        assert np.abs(found.mean - exact(head, targets, points, weights)).max() < 1e-6
        keys = head.keys(points)
        log_partition = long_double.log_partition(head.queries(targets), keys, weights, head.key_bias(keys))
        assert np.abs(found.log_partition - log_partition).max() < 1e-5


def test_labels_heads_and_directions():
    points, first = law("smooth")
    weights = np.vstack([first, law("smooth", seed=2)[1], np.exp(-4 * points[:, 2])[None]])
    mixing = np.tril(np.ones((3, 3)))
    heads = [Attention(8.0), Attention(3.0, query=ROTATION), Attention(2.0, query=np.diag([1.0, 0.7, 0.4]))]
    method = sums(heads, points, points, 1e-6, labels=3)
    whole = method.attend(weights, mixing)
    for head, found in zip(heads, whole, strict=True):
        assert found.doubtful is None
        assert np.abs(found.mean - exact(head, points, points, mixing @ weights)).max() < 1e-6
    directions = [np.random.default_rng(h).normal(size=points.shape) for h in range(3)]
    for along, found, product in zip(directions, whole, method.attend(weights, mixing, directions), strict=True):
        expected = np.einsum("znd,nd->zn", found.mean, along)
        np.testing.assert_allclose(product.mean, expected, rtol=0, atol=1e-13)


def test_mass_near_is_the_kernel_smoothed_law():
    points, weights = law("bumps")
    beta = 30.0
    method = sums([Attention(beta), Attention(1.0)], points, points, 1e-6)
    method.attend(weights, np.eye(1))
    smooth = np.exp(beta * (points @ points.T - 1)) @ weights[0]
    np.testing.assert_allclose(method.mass_near(points)[0] / smooth, 1 / smooth.max(), rtol=2e-2)


def test_one_cluster_far_from_what_the_targets_look_for():
    # right values: all mass is at e₁ within 10⁻⁶, so that is what every target attends to, or it is in doubt
    points = Sphere(3).retract(np.array([1.0, 0, 0]) + 1e-6 * np.random.default_rng(1).normal(size=(100, 3)))
    targets = Sphere(3).retract(np.random.default_rng(2).normal(size=(300, 3)))
    targets[:100] = points
    method = sums([Attention(100.0, query=-np.eye(3))], targets, points, 1e-6)
    (found,) = method.attend(np.full((1, 100), 0.01), np.eye(1))
    assert np.all(np.isfinite(found.mean))
    assert np.all(found.doubtful[0, :100])
    assert np.all(np.linalg.norm(found.mean, axis=2) <= 1 + 1e-12)


def test_only_for_the_sphere():
    points = law("uniform", 10)[0]
    assert not proposals(Problem(Euclidean(3), (Attention(),), points, points, MPI.COMM_SELF, 10, 10, 1, 1e-6))
    assert not proposals(Problem(Sphere(2), (Attention(),), points, points, MPI.COMM_SELF, 10, 10, 1, 1e-6))


def test_no_promise_below_round_off():
    points = law("uniform", 10)[0]
    assert [len(proposals(problem([Attention(4.0)], points, points, t))) for t in (1e-11, 1e-12, 1e-13)] == [1, 1, 0]


def test_no_proposal_where_the_legendre_functions_would_fill_the_memory():
    # 8 bytes · 226²/2 · 160 latitudes are 33 MB for one head; heads of different β have tables of their own
    points = law("uniform", 10)[0]
    different, equal = ([Attention(1024.0 * (1 - slope * h)) for h in range(12)] for slope in (0.02, 0.0))
    assert not proposals(problem(different, points, points, 1e-6))
    assert len(proposals(problem(equal, points, points, 1e-6))) == 1


@pytest.mark.parametrize("ranks", [2, 3])  # with 3 the last has no points
def test_ranks_agree_with_one(on_ranks, ranks):
    done = on_ranks(Path(__file__).with_name("mpi_sphere.py"), ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("agree") == ranks
