"""The scaling limiter of Zhang and Shu, by itself."""

import numpy as np
import pytest

from pde_solver.discretisations.limiters import ScalingLimiter

#: Linear functions on [0, 1] by their values at both ends, checked there and in the middle; the mean is the middle.
BASIS = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
MEAN = np.array([[0.5, 0.5]])


def limited(*values):
    before = np.array([[values]], dtype=float)
    kept = before.copy()
    after = ScalingLimiter(BASIS, MEAN).limited(before)
    assert (before == kept).all()
    return after[0, 0]


def test_by_hand():
    """f = −1 at 0 and 3 at 1 has mean 1; θ = 1 / (1 − (−1)) = ½ makes it 0 and 2."""
    assert limited(-1, 3) == pytest.approx([0, 2], abs=1e-13)
    assert limited(-1, 3).min() >= 0
    assert limited(-0.1, 3.9) == pytest.approx([0, 3.8], abs=1e-13)  # θ = 0.95: no more than is needed
    assert limited(-1, 1).tolist() == [0, 0]  # nothing is left but the mean 0


def test_what_is_positive_is_left_alone_bit_by_bit():
    assert limited(0, 0.1).tolist() == [0, 0.1]
    assert limited(1e-300, 3).tolist() == [1e-300, 3]


def test_a_negative_mean_stays_negative_for_the_caller_to_notice():
    assert limited(-3, 1).tolist() == [-1, -1]
    assert limited(-2, -2).tolist() == [-2, -2]


def test_nothing_is_copied_where_nothing_is_limited():
    limiter = ScalingLimiter(BASIS, MEAN)
    fine, low = np.array([[[1.0, 2.0]], [[0.0, 0.0]]]), np.array([[[1.0, 2.0]], [[-1.0, 3.0]]])
    assert limiter.limited(fine) is fine
    assert limiter.limited(low) is not low
    limiter.limit(low)
    assert low[0].tolist() == [[1, 2]]
    assert low[1, 0] == pytest.approx([0, 2], abs=1e-13)


def random_polynomials(cells=2000):
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(40, 6))
    basis /= basis.sum(axis=1, keepdims=True)  # a basis that reproduces constants
    mean = rng.random((cells, 6))
    mean /= mean.sum(axis=1, keepdims=True)
    return basis, mean, rng.normal(size=(2, cells, 6)) + 0.5


def test_random_polynomials_become_positive_and_keep_their_means():
    basis, mean, before = random_polynomials()
    after = ScalingLimiter(basis, mean).limited(before)
    means = np.einsum("ci,zci->zc", mean, before)
    assert np.abs(np.einsum("ci,zci->zc", mean, after) - means).max() < 1e-14
    fine = means >= 0
    assert 0.5 < fine.mean() < 1
    largest = np.abs(before @ basis.T).max(axis=-1)
    assert ((after @ basis.T).min(axis=-1) >= -1e-14 * largest)[fine].all()
    assert (np.ptp(after[~fine], axis=1) == 0).all()


@pytest.mark.parametrize("spread", [1e-3, 0.3, 1.0])
def test_the_bound_hides_no_negative_value(spread):
    """θ from all values of all polynomials, the least of which is far from zero, near it, or below."""
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 23)
    basis = np.stack([(1 - x) * (1 - 2 * x), 4 * x * (1 - x), x * (2 * x - 1)], axis=1)  # values at 0, ½, 1
    mean = np.tile([1 / 6, 2 / 3, 1 / 6], (5000, 1))
    before = 0.3 + spread * rng.random((1, 5000, 3))
    before[0, ::2] -= 0.3 + spread * 0.1
    values, means = before @ basis.T, (before @ mean[0])[..., None]
    least = np.minimum(values.min(axis=-1, keepdims=True), 0)
    theta = np.clip(means / np.maximum(means - least, 1e-300), 0, 1)
    after = ScalingLimiter(basis, mean).limited(before)
    assert 0.1 < (theta < 1).mean() < 0.6
    assert np.abs(after - np.where(theta < 1, means + theta * (before - means), before)).max() < 1e-13
    assert ScalingLimiter(basis, mean).range(before) == pytest.approx((values.min(), values.max()), rel=1e-14)


def test_range_of_random_polynomials():
    basis, mean, polynomials = random_polynomials()
    limiter = ScalingLimiter(basis, mean)
    values = polynomials @ basis.T
    assert limiter.range(polynomials) == pytest.approx((values.min(), values.max()), rel=1e-14)
    assert limiter.range(polynomials[:0]) == (np.inf, -np.inf)
    polynomials[1, 7, 3] = np.nan
    assert np.isnan(limiter.range(polynomials)).all()
