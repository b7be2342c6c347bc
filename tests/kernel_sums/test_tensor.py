import numpy as np
import pytest
from mpi4py import MPI

from pde_solver.kernel_sums.method import Problem
from pde_solver.kernel_sums.tensor import proposals
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import L2, Attention
from tests.kernel_sums import long_double

BETAS = [0.0, 1e-3, 4.0, 64.0, 1024.0]


def product(*axes):
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def box(cells, half_width, seed=0):
    """Uneven cells of a box: their midpoints and those of their facets, shuffled."""
    rng = np.random.default_rng(seed)
    ends = [-half_width, half_width]
    edges = [np.sort(np.concatenate([ends, rng.uniform(*ends, n - 1)])) for n in cells]
    middles = [0.5 * (edge[1:] + edge[:-1]) for edge in edges]
    facets = [product(*[edges[j] if j == k else middles[j] for j in range(len(cells))]) for k in range(len(cells))]
    return rng.permutation(product(*middles)), rng.permutation(np.vstack(facets))


def problem(heads, targets, sources, labels=1, tolerance=1e-8):
    manifold = Euclidean(sources.shape[1])
    counts = len(targets), len(sources)
    return Problem(manifold, tuple(heads), targets, sources, MPI.COMM_SELF, *counts, labels, tolerance)


def attended(head, targets, sources, weights, **options):
    (proposal,) = proposals(problem([head], targets, sources, len(weights)))
    sums = proposal.build()
    return sums, sums.attend(weights, np.eye(len(weights)), **options)[0]


def law(kind, points, half_width):
    squares = {shift: np.sum((points - shift * half_width) ** 2, axis=1) for shift in (-0.5, 0.3, 0.5, 0.9)}
    density = {
        "smooth": np.exp(-squares[0.3]),
        "corner": np.exp(-200 * squares[0.9]),
        "two": np.exp(-100 * squares[0.5]) + np.exp(-100 * squares[-0.5]),
    }[kind]
    return density / density.sum()


def heads(beta, d):
    mixed = np.diag([1.0, -0.7, 0.3][:d])
    return [Attention(beta), Attention(beta, -np.eye(d)), Attention(beta, mixed, normaliser=L2())]


@pytest.mark.parametrize("half_width", [1.0, 3.0])
@pytest.mark.parametrize("cells", [(60,), (18, 23), (7, 8, 6)], ids=str)
@pytest.mark.parametrize("kind", ["smooth", "corner", "two"])
def test_exact_at_every_temperature(cells, half_width, kind):
    sources, targets = box(cells, half_width)
    targets = targets[:: max(1, len(targets) // 500)] if len(cells) == 1 else targets
    weights = law(kind, sources, half_width)[None]
    chosen = np.random.default_rng(1).choice(len(targets), min(40, len(targets)), replace=False)
    for beta in BETAS:
        for head in heads(beta, len(cells)):
            sums, found = attended(head, targets, sources, weights, partition=True)
            near = sums.mass_near(targets)[0, chosen] > 1e-10
            sure = near if found.doubtful is None else near & ~found.doubtful[0, chosen]
            arguments = head.queries(targets[chosen]), head.keys(sources)
            bias = head.key_bias(arguments[1])
            right = long_double.mean(*arguments, sources, weights, bias)[0]
            error = np.abs(found.mean[0, chosen] - right).max(axis=1) / np.abs(sources).max()
            assert error[sure].max(initial=0.0) < 1e-14, (beta, head)
            logarithm = long_double.log_partition(*arguments, weights, bias)[0]
            deviation = np.abs(found.log_partition[0, chosen] - logarithm) / (1 + np.abs(logarithm))
            assert deviation[sure].max(initial=0.0) < 1e-13, (beta, head)


def test_a_cluster_far_from_where_the_kernel_is_largest_is_not_doubtful():
    # e^{β x y} is largest at the ends of the box, 1800 exponents above what a law in between it sees
    sources, targets = box((20, 20), 3.0)
    weights = np.exp(-30 * np.sum((sources - 1.2) ** 2, axis=1))[None]
    _, found = attended(Attention(500.0), targets, sources, weights)
    assert found.doubtful is None


def test_doubtful_where_there_is_mass_but_nothing_is_left_of_the_sum():
    axis = np.linspace(-1.0, 1.0, 21)
    sources = product(axis, axis)
    # two atoms on a diagonal: relative to the product of the marginals nothing is at the other corners
    weights = np.zeros((2, len(sources)))
    weights[0, 0] = weights[0, -1] = 0.5
    weights[1] = 1 / len(sources)
    (proposal,) = proposals(problem([Attention(1000.0, np.diag([1.0, -1.0]))], sources, sources, 2))
    sums = proposal.build()
    found = sums.attend(weights, np.array([[1.0, 0.0]]))[0]
    # for a single wanted label mass of any label counts, and label 1 is everywhere
    assert found.doubtful is not None
    assert found.doubtful.any()
    assert np.all(found.mean[found.doubtful] == 0)
    right = long_double.mean(sources @ np.diag([1e3, -1e3]), sources, sources, weights[:1])
    assert np.abs(found.mean - right)[~found.doubtful].max() < 1e-13
    # each for itself: label 0 has no mass where its sum is lost
    both = sums.attend(weights, np.eye(2))[0]
    assert both.doubtful is None or not both.doubtful[1].any()


def test_mixed_labels_and_directions():
    sources, targets = box((9, 11), 2.0)
    rng = np.random.default_rng(3)
    weights, mixing = rng.random((3, len(sources))), np.tril(rng.random((3, 3)))
    directions = [rng.normal(size=targets.shape) for _ in range(2)]
    pair = heads(16.0, 2)[:2]
    (proposal,) = proposals(problem(pair, targets, sources, 3))
    found = proposal.build().attend(weights, mixing, directions)
    for head, direction, result in zip(pair, directions, found, strict=True):
        right = long_double.mean(head.queries(targets), head.keys(sources), sources, mixing @ weights)
        np.testing.assert_allclose(result.mean, np.einsum("znd,nd->zn", right, direction), rtol=0, atol=1e-13)
        assert result.log_partition is None


def test_mass_near():
    sources, targets = box((9, 11), 2.0)
    weights = np.zeros((1, len(sources)))
    weights[0, 17] = 0.3
    sums, _ = attended(Attention(1.0), targets, sources, weights)
    near = sums.mass_near(np.vstack([sources[17], sources]))[0]
    assert near[0] == 1
    assert np.count_nonzero(near[1:]) <= 9


@pytest.mark.parametrize(("cells", "groups"), [((30,), 1), ((12, 13), 2), ((5, 6, 7), 3)])
def test_facets_are_as_many_grids_as_axes(cells, groups):
    sources, targets = box(cells, 1.0)
    (proposal,) = proposals(problem([Attention(1.0)], targets, sources))
    assert proposal.name == f"tensor grid {' × '.join(map(str, cells))}, targets on {groups}"
    assert proposal.communication == 8 * len(sources)


def test_nothing_is_proposed_without_grids_or_diagonal_heads():
    sources, targets = box((9, 11), 1.0)
    rng = np.random.default_rng(0)
    scattered = rng.normal(size=(99, 2))
    turned = np.array([[1.0, 1e-3], [0.0, 1.0]])
    assert proposals(problem([Attention(1.0)], targets, sources))
    assert not proposals(problem([Attention(1.0, turned)], targets, sources))
    assert not proposals(problem([Attention(1.0, turned, np.linalg.inv(turned).T, normaliser=L2())], targets, sources))
    assert proposals(problem([Attention(1.0, turned, np.linalg.inv(turned).T)], targets, sources))
    assert not proposals(problem([Attention(1.0)], targets, scattered))
    assert not proposals(problem([Attention(1.0)], scattered, sources))
    assert not proposals(problem([Attention(1.0)], targets, np.vstack([sources[1:], sources[1:2]])))
    on_sphere = Problem(Sphere(2), (Attention(1.0),), targets, sources, MPI.COMM_SELF, len(targets), 99, 1, 1e-8)
    assert not proposals(on_sphere)
