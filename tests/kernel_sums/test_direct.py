import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.kernel_sums import exponential_sums

EPSILON = np.finfo(float).eps
BETAS = (0.0, 1e-3, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 1e4)


def dense(queries, keys, values, weights, key_bias=None):
    """The right values: log ∫ e^s ν_z and the mean of y, all scores at once, in long double, relative to the largest."""
    queries, keys, values, weights = (np.asarray(a, np.longdouble) for a in (queries, keys, values, weights))
    scores = queries @ keys.T + (0 if key_bias is None else np.asarray(key_bias, np.longdouble))
    scores = np.where((weights != 0)[:, None, :], scores, -np.inf)
    largest = scores.max(axis=2)
    terms = weights[:, None, :] * np.exp(scores - largest[..., None])
    total = terms.sum(axis=2)
    return largest + np.log(total), np.einsum("znm,md->znd", terms, values) / total[..., None]


def assert_right(queries, keys, values, weights, key_bias=None):
    """Compare with `dense`; scores carry a rounding error of ε |q| |k|, which no summation can undo."""
    sums = exponential_sums(queries, keys, values, weights, key_bias)
    log_total, mean = dense(queries, keys, values, weights, key_bias)
    reach = np.linalg.norm(queries, axis=1).max() * np.linalg.norm(keys, axis=1).max()
    reach += 0 if key_bias is None else np.abs(key_bias).max()
    tolerance = 1e-13 + 4 * EPSILON * reach
    assert np.all(np.isfinite(sums.numerator))
    assert np.abs(sums.shift + np.log(sums.denominator) - log_total).max() < tolerance
    assert np.abs(sums.numerator / sums.denominator[..., None] - mean).max() < tolerance * np.abs(values).max()


def on_sphere(rng, count, d, spread=None):
    points = rng.normal(size=(count, d))
    if spread is not None:
        points = np.eye(d)[0] + spread * points
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def law(kind, rng, count, d):
    """Points and positive weights of a law on S^{d−1}."""
    if kind == "uniform":
        return on_sphere(rng, count, d), np.full(count, 1 / count)
    if kind == "smooth":
        points = on_sphere(rng, count, d)
        weights = np.exp(2 * points[:, 0])
    elif kind == "clustered":
        points = np.vstack([on_sphere(rng, count // 2, d, 1e-3), on_sphere(rng, count - count // 2, d)])
        weights = np.exp(400 * (points[:, 0] - 1)) + 1e-30
    else:
        points = np.vstack([on_sphere(rng, count // 2, d, 1e-2), -on_sphere(rng, count - count // 2, d, 1e-2)])
        weights = np.ones(count)
    return points, weights / weights.sum()


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("kind", ["uniform", "smooth", "clustered", "antipodal"])
def test_sphere_every_law_and_temperature(kind, beta):
    rng = np.random.default_rng(1)
    points, weights = law(kind, rng, 700, 3)
    targets = np.vstack([points[::9], -points[::50], on_sphere(rng, 40, 3)])
    assert_right(beta * targets, points, points, weights[None])


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("d", [1, 2, 4, 8, 64])
def test_every_dimension(d, beta):
    rng = np.random.default_rng(2)
    points, weights = rng.normal(size=(200, d)) / np.sqrt(d), rng.random(200)
    assert_right(beta * points[:70], points, points, weights[None])


@pytest.mark.parametrize("beta", BETAS)
def test_indefinite_form_and_rectangular_head(beta):
    rng = np.random.default_rng(3)
    points, weights = on_sphere(rng, 300, 4), rng.random(300)
    query, key = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    assert_right(beta * points @ query.T, points @ key.T, points, weights[None])
    assert_right(-beta * points[:65], points, points, weights[None])


@pytest.mark.parametrize("beta", BETAS)
def test_bias_of_the_keys(beta):
    rng = np.random.default_rng(4)
    points, weights = rng.normal(size=(300, 2)), rng.random(300)
    assert_right(beta * points, points, points, weights[None], -0.5 * beta * (points**2).sum(axis=1))


@pytest.mark.parametrize("beta", [1.0, 1e4])
@pytest.mark.parametrize("labels", [2, 3, 33])
def test_several_labels_in_one_pass(labels, beta):
    rng = np.random.default_rng(5)
    points, weights = on_sphere(rng, 200, 3), rng.random((labels, 200))
    weights[:, ::7] = 0
    weights[0, :150] = 0
    assert_right(beta * points[:50], points, points, weights)


@pytest.mark.parametrize("targets", [0, 1, 63, 64, 65, 128])
@pytest.mark.parametrize("sources", [1, 31, 32, 33, 257])
def test_any_number_of_targets_and_sources(targets, sources):
    rng = np.random.default_rng(6)
    points, weights = on_sphere(rng, 257, 3), rng.random((2, sources))
    queries, keys = 5 * points[:targets], points[:sources]
    sums = exponential_sums(queries, keys, keys, weights)
    assert sums.shift.shape == sums.denominator.shape == (2, targets)
    assert sums.numerator.shape == (2, targets, 3)
    if targets:
        assert_right(queries, keys, keys, weights)


def test_no_values_and_no_labels():
    rng = np.random.default_rng(7)
    points = on_sphere(rng, 40, 3)
    sums = exponential_sums(points, points, np.empty((40, 0)), np.ones((1, 40)))
    assert sums.numerator.shape == (1, 40, 0)
    np.testing.assert_allclose(
        sums.shift + np.log(sums.denominator), np.log(np.exp(points @ points.T).sum(axis=1))[None]
    )
    assert exponential_sums(points, points, points, np.ones((0, 40))).denominator.shape == (0, 40)


@pytest.mark.parametrize("beta", [1.0, 1e4])
def test_sources_without_weight_do_not_matter(beta):
    # not even where their score is the largest by far, or where it is not a number
    rng = np.random.default_rng(8)
    points = on_sphere(rng, 100, 3)
    weights = (points[:, 0] < 0).astype(float)[None]
    targets = points[points[:, 0] > 0.5]
    assert_right(beta * targets, points, points, weights)
    few, present = exponential_sums(beta * targets, points, points, weights), weights[0] > 0
    points[~present] = np.nan
    again = exponential_sums(beta * targets, points, points, weights)
    assert np.array_equal(again.denominator, few.denominator)
    assert np.array_equal(again.numerator, few.numerator)


def test_labels_in_different_places_at_low_temperature():
    # relative to the common scale the far label's terms are e^{−20000}: each label needs its own
    rng = np.random.default_rng(9)
    near, far = on_sphere(rng, 60, 3, 1e-2), -on_sphere(rng, 60, 3, 1e-2)
    points = np.vstack([near, far])
    weights = np.zeros((3, 120))
    weights[0, :60] = weights[1, 60:] = weights[2] = 1 / 60
    assert_right(1e4 * np.vstack([near, far, on_sphere(rng, 30, 3)]), points, points, weights)


def test_tiny_weights_where_the_scores_are_largest():
    # the tail of a density: weight 1e−300 at score 1000 against weight 1 at score 0
    keys, weights = np.array([[1.0], [0.0], [-1.0]]), np.array([[1e-300, 1.0, 0.0]])
    assert_right(np.array([[1000.0], [690.0], [10.0], [-10.0]]), keys, keys, weights)
    assert_right(np.array([[1000.0], [10.0]]), keys, keys, 1e-300 * weights[:, ::-1] + 1e-305)


def test_negative_weights_count_with_their_sign():
    rng = np.random.default_rng(10)
    points, weights = on_sphere(rng, 100, 3), rng.random((1, 100)) - 0.1
    sums = exponential_sums(3 * points, points, points, weights)
    terms = np.exp(3 * points @ points.T) * weights
    np.testing.assert_allclose(np.exp(sums.shift) * sums.denominator, terms.sum(axis=1)[None], rtol=1e-12)
    np.testing.assert_allclose(
        np.exp(sums.shift)[..., None] * sums.numerator, (terms @ points)[None], rtol=0, atol=1e-11
    )


def test_nan_reaches_only_the_targets_that_have_it():
    rng = np.random.default_rng(11)
    points = on_sphere(rng, 100, 3)
    queries = 4 * points[:70]
    right = exponential_sums(queries, points, points, np.ones((1, 100))).denominator
    queries[3] = np.nan
    found = exponential_sums(queries, points, points, np.ones((1, 100))).denominator
    assert np.flatnonzero(np.isnan(found[0])).tolist() == [3]
    assert np.array_equal(np.delete(found, 3, axis=1), np.delete(right, 3, axis=1))
    points[5, 1] = np.nan
    assert np.all(np.isnan(exponential_sums(4 * points[:3], points, points, np.ones((1, 100))).denominator))


def test_a_label_without_mass_is_named():
    points = np.eye(3)
    with pytest.raises(InputError, match=r"row 1 of the attended laws has no mass, all its 3 weights are zero"):
        exponential_sums(points, points, points, np.array([[1.0, 0, 0], [0, 0, 0]]))


@pytest.mark.parametrize("beta", [0.0, 16.0])
def test_ten_thousand_sources_to_thirteen_digits(beta):
    # β = 0 adds ten thousand equal numbers: rounding errors that all go one way
    rng = np.random.default_rng(12)
    points = on_sphere(rng, 10_000, 3)
    weights = np.full((1, 10_000), 1e-4)
    sums = exponential_sums(beta * points[:100], points, points, weights)
    log_total, mean = dense(beta * points[:100], points, points, weights)
    assert np.abs(sums.shift + np.log(sums.denominator) - log_total).max() < 5e-14
    assert np.abs(sums.numerator / sums.denominator[..., None] - mean).max() < 1e-13 * np.abs(mean).max()
