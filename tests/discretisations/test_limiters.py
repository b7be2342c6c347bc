"""The scaling limiter of Zhang and Shu, by itself."""

import numpy as np
import pytest

from pde_solver.discretisations.limiters import limit_to_positive

#: Linear functions on [0, 1] by their values at both ends, checked there and in the middle; the mean is the middle.
BASIS = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
MEAN = np.array([[0.5, 0.5]])


def limited(*values):
    coefficients = np.array([values], dtype=float)
    limit_to_positive(coefficients, BASIS, MEAN)
    return coefficients[0]


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


def test_random_polynomials_become_positive_and_keep_their_means():
    rng = np.random.default_rng(0)
    basis, cells = rng.normal(size=(40, 6)), 2000
    basis /= basis.sum(axis=1, keepdims=True)  # a basis that reproduces constants
    mean = rng.random((cells, 6))
    mean /= mean.sum(axis=1, keepdims=True)
    before = rng.normal(size=(cells, 6)) + 0.5
    after = before.copy()
    limit_to_positive(after, basis, mean)
    means = np.einsum("ci,ci->c", mean, before)
    assert np.abs(np.einsum("ci,ci->c", mean, after) - means).max() < 1e-14
    fine = means >= 0
    assert 0.5 < fine.mean() < 1
    largest = np.abs(before @ basis.T).max(axis=1)
    assert ((after @ basis.T).min(axis=1) >= -1e-14 * largest)[fine].all()
    assert (np.ptp(after[~fine], axis=1) == 0).all()
