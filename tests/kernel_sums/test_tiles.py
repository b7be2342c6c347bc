import mpmath
import numpy as np
import pytest

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.tiles import LANES, TILE, exp2, tile_kernels


@compiled
def exp2_of(exponents):
    result = np.empty_like(exponents)
    for i in range(len(exponents)):
        result[i] = exp2(exponents[i])
    return result


def test_exp2_is_exact_to_round_off():
    # right values: mpmath at 40 digits
    exponents = np.concatenate([np.linspace(-950, 0, 2001), np.linspace(-0.5, 0.5, 1001), [1.0, 10.0, 1000.0]])
    with mpmath.workdps(40):
        exact = np.array([float(mpmath.mpf(2) ** mpmath.mpf(float(s))) for s in exponents])
    assert np.max(np.abs(exp2_of(exponents) / exact - 1)) < 6e-16


def test_exp2_of_whole_numbers_and_halves_of_a_step():
    assert np.array_equal(exp2_of(np.arange(-950.0, 1000.0)), 2.0 ** np.arange(-950.0, 1000.0))
    halves = np.arange(-20, 20) + 0.5  # f = ±½, the ends of the polynomial's range
    np.testing.assert_allclose(exp2_of(halves), 2.0**halves, rtol=6e-16)


def test_exp2_below_its_range_is_negligible_and_nan_stays_nan():
    small = exp2_of(np.array([-951.0, -1e5, -1e300, -np.inf]))
    assert np.all((small >= 0) & (small <= 2.0**-950))
    assert np.isnan(exp2_of(np.array([np.nan]))[0])


@pytest.mark.parametrize(("features", "columns"), [(1, 1), (3, 4), (4, 3)])
@pytest.mark.parametrize("chunks", [1, 3])
def test_kernels_agree_with_dense_sums_for_any_number_of_chunks(features, columns, chunks):
    # right values: dense sums in long double
    rng = np.random.default_rng(3)
    queries = rng.normal(size=(2, features * chunks, LANES))
    offset = rng.normal(size=(2, LANES))
    keys, bias = rng.normal(size=(5 * TILE, features * chunks)), rng.normal(size=5 * TILE)
    values = rng.normal(size=(5 * TILE, columns * chunks))
    sums, largest = np.empty((2, columns * chunks, LANES)), np.empty((2, LANES))
    add_up, find_largest = tile_kernels(features, columns)
    add_up(queries, offset, keys, bias, values, sums)
    find_largest(queries, keys, bias, largest)
    scores = np.einsum("mk,bkt->bmt", keys.astype(np.longdouble), queries) + bias[:, None]
    terms = np.exp2(scores - offset[:, None])
    exact, size = (np.einsum("bmt,mc->bct", terms, v) for v in (values, np.abs(values)))
    assert np.max(np.abs(sums - exact) / size) < 1e-14
    np.testing.assert_allclose(largest, scores.max(axis=1).astype(float), rtol=1e-14, atol=1e-14)
