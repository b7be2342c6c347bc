import numpy as np
import pytest

from pde_solver.kernel_sums.lagrange import ORDERS, gather, gather_means, scatter, stencil

SIZE = {1: 60, 2: 40, 3: 24}


def positions(dims, count=500, seed=1):
    """Random positions at which all stencils lie inside the grid, and some on its nodes."""
    random = 4 + np.random.default_rng(seed).random((count, dims)) * (SIZE[dims] - 9)
    random[:20] = np.rint(random[:20])
    return random


def weights_by_formula(order, offset):
    """Π_{k≠j} (x − k)/(j − k) at x = order/2 − 1 + offset, (n, order)."""
    x = order // 2 - 1 + offset if order > 1 else 0 * offset
    nodes = range(order)
    return np.stack([np.prod([(x - k) / (j - k) for k in nodes if k != j] or [1 + 0 * x], axis=0) for j in nodes], -1)


def dense(order, base, offset, dims):
    """The interpolation matrix (n, nodes of the grid), written out."""
    rows = np.ones((len(base), 1))
    for a in range(dims):
        line = np.zeros((len(base), SIZE[dims]))
        weights = weights_by_formula(order, offset[:, a])
        for j in range(order):
            line[np.arange(len(base)), base[:, a] + j] = weights[:, j]
        rows = (rows[:, :, None] * line[:, None, :]).reshape(len(base), -1)
    return rows


@pytest.mark.parametrize("order", ORDERS)
def test_stencils_surround_their_positions(order):
    where = positions(2)
    base, offset = stencil(where, order)
    assert base.dtype == np.int32
    if order == 1:
        assert np.abs(where - base).max() <= 0.5
        assert not offset.any()
    else:
        np.testing.assert_allclose(base + order // 2 - 1 + offset, where, rtol=0, atol=1e-14)
        assert offset.min() >= 0
        assert offset.max() < 1
    on_nodes, inside = stencil(np.array([[5.0]]), order)
    assert inside[0, 0] == 0
    assert on_nodes[0, 0] == (5 if order == 1 else 5 - (order // 2 - 1))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_scatter_and_gather_are_the_matrix_and_its_transpose(order, dims):
    rng = np.random.default_rng(2)
    where = positions(dims, 300)
    base, offset = stencil(where, order)
    matrix = dense(order, base, offset, dims)
    shape = (SIZE[dims],) * dims
    weights = rng.normal(size=len(where))
    weights[::7] = 0.0
    grid = np.ones(shape)
    scatter(order, base, offset, weights, grid)
    np.testing.assert_allclose(grid.ravel(), 1 + matrix.T @ weights, rtol=0, atol=2e-14)
    for columns in (1, 4):
        fields = rng.normal(size=(*shape, columns))
        out = np.empty((len(where), columns))
        gather(order, base, offset, fields, out)
        np.testing.assert_allclose(out, matrix @ fields.reshape(-1, columns), rtol=0, atol=2e-14)


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_means_are_quotients(columns):
    rng = np.random.default_rng(3)
    where = positions(2)
    base, offset = stencil(where, 6)
    fields = rng.random((SIZE[2], SIZE[2], columns)) + 1
    both = np.empty((len(where), columns))
    gather(6, base, offset, fields, both)
    mean, denominator = np.empty((len(where), columns - 1)), np.empty(len(where))
    gather_means(6, base, offset, fields, None, mean, denominator)
    np.testing.assert_allclose(mean, both[:, 1:] / both[:, :1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(denominator, both[:, 0], rtol=0, atol=1e-14)
    directions, product = rng.normal(size=mean.shape), np.empty(len(where))
    gather_means(6, base, offset, fields, directions, product)
    np.testing.assert_allclose(product, np.sum(directions * mean, axis=1), rtol=0, atol=1e-14)


def test_means_are_bounded_where_that_is_asked_for():
    where = np.array([[10.0, 10.0], [20.0, 20.0]])
    base, offset = stencil(where, 4)
    fields = np.zeros((SIZE[2], SIZE[2], 4))
    fields[10, 10] = [-1e-20, 3.0, 0.0, 4.0]
    fields[20, 20] = [2.0, 1.0, 0.0, 0.0]
    mean, denominator = np.empty((2, 3)), np.empty(2)
    gather_means(4, base, offset, fields, None, mean, denominator, 1e-10, 1.0)
    np.testing.assert_allclose(mean, [[0.6, 0, 0.8], [0.5, 0, 0]], rtol=1e-14)
    np.testing.assert_allclose(denominator, [1e-10, 2.0])
    product = np.empty(2)
    gather_means(4, base, offset, fields, np.tile([1.0, 0, 0], (2, 1)), product, None, 1e-10, 1.0)
    np.testing.assert_allclose(product, [0.6, 0.5], rtol=1e-14)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("order", [4, 6, 8])
def test_polynomials_are_exact_and_others_converge_at_the_order(order, dims):
    def interpolated(function, spacing):
        axes = np.meshgrid(*[np.arange(SIZE[dims]) * spacing] * dims, indexing="ij")
        where = positions(dims)
        out = np.empty((len(where), 1))
        gather(order, *stencil(where, order), function(*axes)[..., None], out)
        return np.abs(out[:, 0] - function(*(where * spacing).T)).max()

    assert interpolated(lambda *x: sum(x) ** (order - 1), 0.05) < 2e-10 * (0.05 * SIZE[dims] * dims) ** (order - 1)
    coarse, fine = (interpolated(lambda *x: np.sin(sum(x)), spacing) for spacing in (0.2, 0.1))
    assert abs(np.log2(coarse / fine) - order) < 0.2
