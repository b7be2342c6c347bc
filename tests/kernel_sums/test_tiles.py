import mpmath
import numpy as np
import pytest

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.tiles import (
    LANES,
    TILE,
    collect_targets,
    exp2,
    exp2_within,
    largest_kernel,
    lay_sources,
    lay_targets,
    lengths,
    sum_kernel,
)


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


@compiled
def exp2_within_of(exponents):
    result = np.empty_like(exponents)
    for i in range(len(exponents)):
        result[i] = exp2_within(exponents[i])
    return result


def test_exp2_within_its_range_is_exp2_and_reaches_further_down():
    exponents = np.linspace(-950, 1023, 4001)
    assert np.array_equal(exp2_within_of(exponents), exp2_of(exponents))
    assert exp2_within_of(np.array([-1021.0]))[0] == 2.0**-1021
    assert np.isnan(exp2_within_of(np.array([np.nan]))[0])


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
@pytest.mark.parametrize("bounded", [False, True])
def test_kernels_agree_with_dense_sums_for_any_number_of_chunks(features, columns, chunks, bounded):
    # right values: dense sums in long double over the tiles that each of the two blocks lists
    rng = np.random.default_rng(3)
    queries = rng.normal(size=(2, features * chunks, LANES))
    shift = rng.normal(size=(2, LANES))
    keys, bias = rng.normal(size=(20 * TILE, features * chunks)), rng.normal(size=20 * TILE)
    values = rng.normal(size=(20 * TILE, columns * chunks))
    tiles = np.concatenate([np.arange(20), [3, 7, 19]])
    lists = np.array([0, 20]), np.array([20, 23]), tiles
    sums, largest = np.empty((2, columns * chunks, LANES)), np.empty((2, LANES))
    sum_kernel(features, columns, bounded)(queries, shift, keys, bias, values, *lists, sums)
    largest_kernel(features)(queries, shift, keys, bias, *lists, largest)
    for block, (begin, end) in enumerate([(0, 20), (20, 23)]):
        own = (tiles[begin:end, None] * TILE + np.arange(TILE)).ravel()
        scores = keys[own].astype(np.longdouble) @ queries[block] + bias[own, None] - shift[block]
        exact, size = (np.exp2(scores).T @ v for v in (values[own], np.abs(values[own])))
        assert np.max(np.abs(sums[block].T - exact) / size) < 1e-14
        np.testing.assert_allclose(largest[block], scores.max(axis=0).astype(float), rtol=1e-14, atol=1e-14)


def test_a_block_without_tiles_has_sum_zero():
    sums = np.full((1, 1, LANES), np.nan)
    none = np.zeros(1, np.int64)
    rows = np.ones((TILE, 1))
    sum_kernel(1, 1, False)(
        np.ones((1, 1, LANES)), np.zeros((1, LANES)), rows, rows[:, 0], rows, none, none, none, sums
    )
    assert np.array_equal(sums, np.zeros((1, 1, LANES)))


def test_targets_are_laid_out_in_blocks_and_collected_again():
    rows = np.random.default_rng(4).normal(size=(LANES + 5, 3))
    blocks = np.full((2, 4, LANES), np.nan)
    lay_targets(rows, 2.0, blocks)
    assert np.array_equal(blocks[1, :3, 4], 2 * rows[-1])
    assert np.all(blocks[1, :, 5:] == 0)
    assert np.all(blocks[:, 3] == 0)
    collected = np.empty((3, len(rows)))
    collect_targets(blocks, collected)
    assert np.array_equal(collected.T, 2 * rows)


def test_sources_are_laid_out_in_tiles_that_the_last_one_fills():
    rng = np.random.default_rng(5)
    keys, weights, values = rng.normal(size=(5, 3)), rng.random((2, 5)), rng.normal(size=(5, 2))
    tiles, columns = np.full((TILE, 4), np.nan), np.full((TILE, 8), np.nan)
    lay_sources(keys, weights, values, tiles, columns)
    assert np.array_equal(tiles[:5, :3], keys)
    assert np.all(tiles[5:, :3] == keys[4])
    assert np.all(tiles[:, 3] == 0)
    assert np.array_equal(columns[:5, :2], weights.T)
    assert np.array_equal(columns[:5, 4:6], weights[1][:, None] * values)
    assert np.all(columns[5:] == 0)
    assert np.all(columns[:, 6:] == 0)


def test_lengths():
    rows = np.random.default_rng(6).normal(size=(7, 5))
    np.testing.assert_allclose(lengths(rows), np.linalg.norm(rows, axis=1), rtol=4e-16)
