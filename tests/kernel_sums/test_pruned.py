import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.kernel_sums import exponential_sums, pruned
from pde_solver.kernel_sums.pruned import pruned_sums

EPSILON = np.finfo(float).eps


def lattice(count):
    """Points of a Fibonacci lattice on S²."""
    i = np.arange(count) + 0.5
    height, longitude = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    radius = np.sqrt(1 - height**2)
    return np.column_stack([radius * np.cos(longitude), radius * np.sin(longitude), height])


def clusters(points, concentration=300.0):
    """Weights of three von Mises-Fisher bumps."""
    centres = np.array([[1.0, 0.0, 0.0], [-0.3, 0.9, 0.2], [0.0, -0.5, 0.8]])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    return np.exp(concentration * (points @ centres.T - 1)).sum(axis=1)


def exact(queries, keys, values, weights, key_bias=0.0):
    """log Σ w e^s and the mean of y in long double, relative to the largest term."""
    queries, keys, values, weights = (np.asarray(a, np.longdouble) for a in (queries, keys, values, weights))
    with np.errstate(divide="ignore"):
        logarithms = queries @ keys.T + np.log(weights) + key_bias
    largest = logarithms.max(axis=1, keepdims=True)
    terms = np.exp(logarithms - largest)
    return largest[:, 0] + np.log(terms.sum(axis=1)), terms @ values / terms.sum(axis=1, keepdims=True)


def assert_within(tolerance, sums, label, chosen, queries, keys, values, weights, key_bias=0.0):
    """Compare with `exact` at chosen targets; scores carry a rounding error of ε |q| |k| and ε |log w|."""
    log_total, mean = exact(queries[chosen], keys, values, weights, key_bias)
    with np.errstate(divide="ignore"):
        logarithms = np.log(weights)
    reach = np.linalg.norm(queries, axis=1).max() * np.linalg.norm(keys, axis=1).max()
    reach += np.abs(logarithms[weights > 0] + key_bias).max() if np.ndim(key_bias) == 0 else np.abs(key_bias).max()
    tolerance = tolerance + 1e-14 + 4 * EPSILON * reach
    found = sums.shift[label, chosen] + np.log(sums.denominator[label, chosen])
    assert np.abs(found - log_total).max() < tolerance
    found = sums.numerator[label, chosen] / sums.denominator[label, chosen, None]
    assert np.abs(found - mean).max() < 2 * tolerance * np.abs(values).max()


@pytest.fixture
def pairs(monkeypatch):
    """Counts the pairs of target and source that were looked at by lists."""
    counts = []

    def counted(self, blocks, shift, bounded, chosen=None):
        if chosen is not None:
            counts.append(len(chosen[2]) * pruned.TILE * pruned.LANES)
        return original(self, blocks, shift, bounded, chosen)

    original = pruned.Sources.sums
    monkeypatch.setattr(pruned.Sources, "sums", counted)
    return counts


@pytest.mark.parametrize(("beta", "share"), [(64.0, 0.25), (256.0, 0.25), (1024.0, 0.22)])
@pytest.mark.parametrize("sign", [1, -1])
def test_clustered_laws_with_tails(pairs, beta, sign, share):
    # for A = −I a target near a cluster gets what the law has on the far side, e^{−400} of its peak
    points = lattice(20_000)
    weights, queries = clusters(points), sign * beta * lattice(1_500)
    sums = pruned_sums(queries, points, points, weights[None])
    assert_within(1e-10, sums, 0, slice(None, None, 37), queries, points, points, weights)
    assert 0 < sum(pairs) < share * len(points) * len(queries)


def test_weights_that_jump_by_hundreds_of_orders_between_neighbours(pairs):
    rng = np.random.default_rng(1)
    points = lattice(3_000)
    weights = 10.0 ** rng.uniform(-300, 0, len(points))
    for beta in (10.0, 1000.0):
        queries = -beta * lattice(1_500)
        sums = pruned_sums(queries, points, points, weights[None])
        assert_within(1e-10, sums, 0, slice(None, None, 13), queries, points, points, weights)
    assert pairs


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-13])
def test_the_tolerance_is_kept_and_used(pairs, tolerance):
    points = lattice(10_000)
    queries = 200 * lattice(1_000)
    weights = np.full((1, len(points)), 1e-4)
    full = exponential_sums(queries, points, points, weights)
    sums = pruned_sums(queries, points, points, weights, tolerance=tolerance)
    error = np.exp(sums.shift - full.shift) * sums.denominator / full.denominator - 1
    assert np.abs(error).max() < tolerance + 2e-13
    assert 0 < sum(pairs) < 0.5 * len(points) * len(queries)


@pytest.mark.parametrize("k", [1, 2, 4, 5, 9])
def test_every_dimension(pairs, k):
    rng = np.random.default_rng(2)
    keys, queries = rng.normal(size=(3_000, k)), 30 * rng.normal(size=(1_500, k))
    values, weights = rng.normal(size=(3_000, 2)), rng.random(3_000)
    sums = pruned_sums(queries, keys, values, weights[None])
    assert_within(1e-10, sums, 0, slice(None, None, 7), queries, keys, values, weights)
    assert pairs


@pytest.mark.parametrize("beta", [1e4, 1e6])
def test_scores_far_beyond_the_floats(pairs, beta):
    # between a target's bounds there are more than e^{600}: its largest score is looked for
    points = lattice(2_000)
    queries = beta * lattice(1_500)
    weights = np.ones(len(points))
    sums = pruned_sums(queries, points, points, weights[None])
    assert np.all(np.isfinite(sums.denominator))
    assert_within(1e-10, sums, 0, slice(None, None, 7), queries, points, points, weights)
    assert pairs


def test_bias_of_the_keys(pairs):
    rng = np.random.default_rng(3)
    keys, weights = rng.normal(size=(3_000, 2)), rng.random(3_000)
    queries, bias = 200 * keys[:1_500], -100 * (keys**2).sum(axis=1)
    sums = pruned_sums(queries, keys, keys, weights[None], bias)
    assert_within(1e-10, sums, 0, slice(None, None, 7), queries, keys, keys, weights, bias)
    assert pairs


def test_labels_each_with_their_own_sources(pairs):
    points = lattice(5_000)
    weights = np.vstack([clusters(points), clusters(-points)])
    weights[0, points[:, 2] > 0] = 0
    weights[1, :4_900] = 0
    queries = -500 * lattice(1_500)
    sums = pruned_sums(queries, points, points, weights)
    for label in (0, 1):
        assert_within(1e-10, sums, label, slice(None, None, 7), queries, points, points, weights[label])
    assert pairs


def test_where_nothing_can_be_left_out_the_sums_are_those_of_all_pairs():
    points = lattice(2_000)
    weights = np.random.default_rng(4).random((3, 2_000))
    for queries in (0.1 * points, 1e3 * points[:500]):
        sums, full = (method(queries, points, points, weights) for method in (pruned_sums, exponential_sums))
        assert np.array_equal(sums.denominator, full.denominator)
        assert np.array_equal(sums.numerator, full.numerator)
        assert np.array_equal(sums.shift, full.shift)


def test_negative_weights_count_with_their_sign(pairs):
    rng = np.random.default_rng(5)
    points, weights = lattice(3_000), rng.random((1, 3_000)) - 0.2
    queries = 300 * lattice(1_500)
    sums, full = (method(queries, points, points, weights) for method in (pruned_sums, exponential_sums))
    size = exponential_sums(queries, points, points, np.abs(weights)).denominator
    difference = np.exp(sums.shift - full.shift) * sums.denominator - full.denominator
    assert np.abs(difference / size).max() < 1e-10
    assert pairs


def test_nan_reaches_the_targets_that_have_it_and_no_others(pairs):
    points = lattice(3_000)
    queries = 300 * lattice(1_500)
    queries[17] = np.nan
    sums = pruned_sums(queries, points, points, np.ones((1, 3_000)))
    assert np.flatnonzero(np.isnan(sums.denominator[0])).tolist() == [17]
    points = points.copy()
    points[5] = np.nan
    assert np.all(np.isnan(pruned_sums(300 * lattice(1_500), points, points, np.ones((1, 3_000))).denominator))
    assert pairs


def test_many_equal_sources_and_targets(pairs):
    points = np.repeat(np.eye(3), 1_000, axis=0)
    sums = pruned_sums(50 * points, points, points, np.ones((1, 3_000)))
    np.testing.assert_allclose(sums.shift + np.log(sums.denominator), 50 + np.log(1_000), rtol=1e-14)
    assert pairs


def test_a_label_without_mass_is_named():
    points = lattice(1_500)
    with pytest.raises(InputError, match="row 0 of the attended laws has no mass"):
        pruned_sums(points, points, points, np.zeros((1, 600)))
