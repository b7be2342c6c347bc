"""Local Lagrange interpolation on uniform grids in one to three dimensions, and its adjoint.

A position between nodes is given by the first of the `order` nodes that surround it along each axis and by its offset
in the middle cell of the stencil. Values of several fields at one node lie side by side, so that they fill a vector
register. Callers pad their grids: no index wraps.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pde_solver.compiled import compiled

#: Nodes of a stencil along one axis; 1 takes the nearest node's value.
ORDERS = (1, 4, 6, 8)
# Its own type knows nothing of the arguments.
_intrinsic: Any = intrinsic
# Sums of a stencil may be taken in any order.
_LIBERTIES = frozenset({"contract", "nsz", "reassoc"})


def stencil(positions: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes around positions: base and offset with position = base + order/2 − 1 + offset, 0 ≤ offset < 1.

    Args:
        positions: (n, dims) in units of the spacing, node k at k.
        order: nodes per axis, one of ORDERS; for 1 the base is the nearest node and the offset 0.

    Returns:
        base (n, dims) integers, the stencil is base, ..., base + order − 1 along each axis; offset (n, dims).
    """
    if order == 1:
        return np.rint(positions).astype(np.int32), np.zeros(positions.shape)
    below = np.floor(positions)
    return below.astype(np.int32) - np.int32(order // 2 - 1), positions - below


def scatter(order: int, base: np.ndarray, offset: np.ndarray, weights: np.ndarray, grid: np.ndarray) -> None:
    """grid += Σ_i weights_i ℓ(position_i), the adjoint of interpolation; zero weights cost nothing.

    Args:
        order: nodes per axis.
        base: (n, dims) and offset: (n, dims), from `stencil`.
        weights: (n,).
        grid: dims axes, contiguous, added to.
    """
    _kernels(order, grid.ndim, 1)[0](base, offset, weights, _three_axes(grid, grid.ndim))


def gather(order: int, base: np.ndarray, offset: np.ndarray, fields: np.ndarray, out: np.ndarray) -> None:
    """out_i = fields interpolated at position_i.

    Args:
        order: nodes per axis.
        base: (n, dims) and offset: (n, dims), from `stencil`.
        fields: dims axes and then c fields side by side, contiguous.
        out: (n, c), written.
    """
    dims = fields.ndim - 1
    _kernels(order, dims, fields.shape[-1])[1](base, offset, _three_axes(fields, dims), out)


def gather_means(
    order: int,
    base: np.ndarray,
    offset: np.ndarray,
    fields: np.ndarray,
    directions: np.ndarray | None,
    out: np.ndarray,
    denominator: np.ndarray | None = None,
    least: float = -np.inf,
    longest: float = np.inf,
) -> None:
    """out_i = numerator / denominator or ⟨direction_i, numerator⟩ / denominator, both interpolated at position_i.

    Args:
        order: nodes per axis.
        base: (n, dims) and offset: (n, dims), from `stencil`.
        fields: dims axes and then the denominator and the d parts of the numerator side by side, contiguous.
        directions: (n, d), or None for the whole vector.
        out: (n, d), or (n,) with directions; written.
        denominator: (n,), written if given.
        least: what a denominator below it is replaced by.
        longest: means that come out longer are shortened to this length; means of points of a ball cannot.
    """
    dims = fields.ndim - 1
    kernels = _kernels(order, dims, fields.shape[-1])
    kept = np.empty(0) if denominator is None else denominator
    if directions is None:
        kernels[2](base, offset, _three_axes(fields, dims), out, kept, least, longest)
    else:
        kernels[3](base, offset, _three_axes(fields, dims), directions, out, kept, least, longest)


def _three_axes(array: np.ndarray, dims: int) -> np.ndarray:
    """The array with leading axes of length 1 before its `dims` axes, so that one kernel serves all dimensions."""
    return array.reshape((1,) * (3 - dims) + array.shape)


@_intrinsic
def _stack(typing_context, count):
    """Room for a fixed number of floats on the stack, where the compiler can keep them in registers."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    size = count.literal_value

    def generate(context, builder, sig, args):
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(ir.DoubleType(), size))
            room.align = 64
        return builder.bitcast(room, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(count), generate


@_intrinsic
def _address(typing_context, array):
    """Where the floats of a contiguous array begin."""

    def generate(context, builder, sig, args):
        return context.make_array(array)(context, builder, args[0]).data

    return types.CPointer(types.float64)(array), generate


@_intrinsic
def _add_multiple(typing_context, target, to, factor, source, start, count):
    """target[to : to + count] += factor · source[start : start + count], as one vector of `count` floats.

    Written as loops the same sums are unrolled into scalars, which are up to 20 times as slow.
    """
    if not isinstance(count, types.IntegerLiteral):
        return None
    vector = ir.VectorType(ir.DoubleType(), count.literal_value)

    def generate(context, builder, sig, args):
        target, to, factor, source, start, _ = args
        place = builder.bitcast(builder.gep(target, [to]), vector.as_pointer())
        added = builder.load(builder.bitcast(builder.gep(source, [start]), vector.as_pointer()), align=8)
        lanes = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0))
        same = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
        lanes = builder.shuffle_vector(lanes, ir.Constant(vector, ir.Undefined), same)
        product = builder.fmul(lanes, added, flags=tuple(_LIBERTIES))
        total = builder.fadd(builder.load(place, align=8), product, flags=tuple(_LIBERTIES))
        builder.store(total, place, align=8)
        return context.get_dummy_value()

    return types.void(target, types.intp, types.float64, source, types.intp, count), generate


@functools.cache
def _kernels(order: int, dims: int, columns: int) -> tuple[Callable, Callable, Callable, Callable]:
    """`scatter`, `gather`, `means`, `products` for stencils of order^dims nodes with `columns` fields.

    All three numbers are constants of the machine code, so that the short loops vanish.
    """
    first, second = (order if dims > 2 else 1), (order if dims > 1 else 1)
    middle = order // 2 - 1
    # 1 / Π_{k≠j} (j − k)
    scale = tuple(1.0 / float(np.prod([j - k for k in range(order) if k != j])) for j in range(order))

    @compiled(fastmath=_LIBERTIES, inline=True)
    def lagrange(offset, weights):
        """weights_j = Π_{k≠j} (x − k)/(j − k) at x = middle + offset: products from the left times those from the right."""
        product = 1.0
        for j in range(order):
            weights[j] = product * scale[j]
            product *= offset + (middle - j)
        product = 1.0
        for k in range(order):
            j = order - 1 - k
            weights[j] *= product
            product *= offset + (middle - j)

    @compiled(fastmath=_LIBERTIES, inline=True)
    def weigh(offset, i, a, b, c):
        """The Lagrange weights of target or source i along each axis."""
        if order > 1:
            if dims > 2:
                lagrange(offset[i, dims - 3], a)
            if dims > 1:
                lagrange(offset[i, dims - 2], b)
            lagrange(offset[i, dims - 1], c)

    @compiled(inline=True)
    def corner(base, i, shape):
        """The flat index of the first node of the stencil."""
        x = base[i, dims - 3] if dims > 2 else 0
        y = base[i, dims - 2] if dims > 1 else 0
        return (np.int64(x) * shape[1] + y) * shape[2] + base[i, dims - 1]

    @compiled(fastmath=_LIBERTIES)
    def scatter(base, offset, weights, grid):
        a, b, c = _stack(8), _stack(8), _stack(8)
        a[0] = b[0] = c[0] = 1.0
        shape = grid.shape
        nodes = _address(grid)
        for i in range(len(weights)):
            if weights[i] == 0.0:
                continue
            weigh(offset, i, a, b, c)
            start = corner(base, i, shape)
            for p in range(first):
                for q in range(second):
                    _add_multiple(nodes, start + (p * shape[1] + q) * shape[2], weights[i] * a[p] * b[q], c, 0, order)

    @compiled(fastmath=_LIBERTIES, inline=True)
    def interpolate(base, offset, i, fields, shape, a, b, c, line, total):
        """total_f = Σ_pqr a_p b_q c_r fields[x + p, y + q, z + r, f]."""
        weigh(offset, i, a, b, c)
        start = corner(base, i, shape)
        for f in range(columns):
            total[f] = 0.0
        for p in range(first):
            for q in range(second):
                for f in range(columns):
                    line[f] = 0.0
                row = start + (p * shape[1] + q) * shape[2]
                for r in range(order):
                    _add_multiple(line, 0, c[r], fields, (row + r) * columns, columns)
                _add_multiple(total, 0, a[p] * b[q], line, 0, columns)

    @compiled(fastmath=_LIBERTIES)
    def gather(base, offset, fields, out):
        a, b, c, line, total = _stack(8), _stack(8), _stack(8), _stack(columns), _stack(columns)
        a[0] = b[0] = c[0] = 1.0
        for i in range(len(out)):
            interpolate(base, offset, i, _address(fields), fields.shape, a, b, c, line, total)
            for f in range(columns):
                out[i, f] = total[f]

    @compiled(fastmath=_LIBERTIES)
    def means(base, offset, fields, out, denominator, least, longest):
        a, b, c, line, total = _stack(8), _stack(8), _stack(8), _stack(columns), _stack(columns)
        a[0] = b[0] = c[0] = 1.0
        for i in range(len(out)):
            interpolate(base, offset, i, _address(fields), fields.shape, a, b, c, line, total)
            divisor = least if total[0] < least else total[0]
            square = 0.0
            for f in range(1, columns):
                square += total[f] * total[f]
            inverse = 1.0 / divisor
            if square > (longest * divisor) * (longest * divisor):
                inverse = longest / np.sqrt(square)
            for f in range(1, columns):
                out[i, f - 1] = total[f] * inverse
            if len(denominator):
                denominator[i] = divisor

    @compiled(fastmath=_LIBERTIES)
    def products(base, offset, fields, directions, out, denominator, least, longest):
        a, b, c, line, total = _stack(8), _stack(8), _stack(8), _stack(columns), _stack(columns)
        a[0] = b[0] = c[0] = 1.0
        for i in range(len(out)):
            interpolate(base, offset, i, _address(fields), fields.shape, a, b, c, line, total)
            product, square = 0.0, 0.0
            for f in range(1, columns):
                product += directions[i, f - 1] * total[f]
                square += total[f] * total[f]
            divisor = least if total[0] < least else total[0]
            out[i] = product / divisor
            if square > (longest * divisor) * (longest * divisor):
                out[i] = product * longest / np.sqrt(square)
            if len(denominator):
                denominator[i] = divisor

    return scatter, gather, means, products
