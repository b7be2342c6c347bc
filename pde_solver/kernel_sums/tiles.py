"""The compiled heart of direct summation: tiles of 32 sources × 64 targets, with the targets in the vector lanes.

Scores are in units of log 2. For one tile they are formed, turned into exponentials in place and contracted with the
columns, three short loops over 64 contiguous targets that the compiler vectorises; the tile stays in the nearest cache
and no array of the size targets × sources exists. Targets come in whole blocks and sources in whole tiles, which
`target_blocks` and `lay_sources` make; each block has a list of the tiles that it needs.
"""

import functools

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from pde_solver.compiled import compiled

#: Targets in one block, the length of every innermost loop.
LANES = 64
#: Sources in one tile.
TILE = 32
# Sources that share one load and store of a score or an accumulator; divides TILE.
_GROUP = 4
# Tiles that are added up before they join the running sum, so that rounding errors do not grow with their number.
_PANEL = 8

# a·b + c may be rounded once; nothing is reordered, or adding and subtracting _ROUND would cancel.
_CONTRACT = frozenset({"contract", "nsz"})
# 1.5 · 2⁵²: adding it rounds to a whole number n, which then stands in the lowest bits of the sum.
_ROUND = 6755399441055744.0
# 2^s stops falling here, at 10⁻²⁸⁶ of the largest term: further down its products with small weights would be
# subnormal numbers, on which processors take a hundred times as long.
_LOWEST = -950.0
# Chebyshev interpolation of 2^f on [−½, ½], highest power first: relative error 2·10⁻¹⁶.
_COEFFICIENTS = (
    7.072585949269223e-09,
    1.0208690299958306e-07,
    1.321544258792169e-06,
    1.5252657260200837e-05,
    0.0001540353044173605,
    0.0013333558230164974,
    0.009618129107606888,
    0.05550410866444772,
    0.24022650695910097,
    0.69314718055995,
    1.0,
)


@intrinsic
def _bits(typing_context, x):
    """The bits of a float as an integer."""
    return types.int64(types.float64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _from_bits(typing_context, x):
    """The float with the bits of an integer."""
    return types.float64(types.int64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


@intrinsic
def use_widest_vectors(typing_context):
    """Ask for 512-bit vectors in the function that calls this, where the processor has them.

    LLVM prefers 256 bits on several of these processors because mixed code may slow their clock; in these loops the
    full width is 1.4 times as fast.
    """

    def generate(context, builder, sig, args):
        # llvmlite's own `add` knows only attributes without a value
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def stack_tile(typing_context):
    """Room for one tile of scores on the stack.

    Nothing else can overlap it, and the compiler knows: without checks for overlap before each of the short loops
    they run up to twice as fast.
    """

    def generate(context, builder, sig, args):
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(ir.DoubleType(), TILE * LANES))
            room.align = 64
        return builder.bitcast(room, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(), generate


@compiled(fastmath=_CONTRACT, inline=True)
def exp2_within(s):
    """2^s for −1021 ≤ s ≤ 1023 to round-off: 2^f by a polynomial, f ∈ [−½, ½]; the whole part joins the exponent."""
    rounded = s + _ROUND
    f = s - (rounded - _ROUND)
    power = _COEFFICIENTS[0]
    for coefficient in _COEFFICIENTS[1:]:
        power = power * f + coefficient
    return _from_bits(_bits(power) + (_bits(rounded) << 52))  # type: ignore[call-arg]


@compiled(fastmath=_CONTRACT, inline=True)
def exp2(s):
    """2^s for s ≤ 1023 to round-off; it stops falling at s = −950."""
    return exp2_within(_LOWEST if s < _LOWEST else s)  # in this order a nan stays one


@compiled(fastmath=_CONTRACT, inline=True)
def _fill(scores, queries, shift, keys, bias, block, begin, features):
    """scores[j, t] = ⟨q_t, k_j⟩ + bias_j − shift_t for a block of targets and the tile of sources from `begin`."""
    for j in range(0, TILE, _GROUP):
        for t in range(LANES):
            for g in range(_GROUP):
                score = bias[begin + j + g] - shift[block, t]
                for a in range(features):
                    score += queries[block, a, t] * keys[begin + j + g, a]
                scores[j + g, t] = score
    for first in range(features, keys.shape[1], features):
        for j in range(0, TILE, _GROUP):
            for t in range(LANES):
                for g in range(_GROUP):
                    score = scores[j + g, t]
                    for a in range(features):
                        score += queries[block, first + a, t] * keys[begin + j + g, first + a]
                    scores[j + g, t] = score


@functools.cache
def sum_kernel(features: int, columns: int, bounded: bool):
    """The kernel `add_up` that takes `features` features and `columns` columns at a time.

    All arguments are constants of the machine code, so that short loops and questions vanish.

    Args:
        features: features taken at once.
        columns: columns taken at once.
        bounded: whether the caller knows that no exponent is below −1021, which makes the kernel a tenth faster.
    """

    @compiled(fastmath=_CONTRACT)
    def add_up(queries, shift, keys, bias, values, first, last, tiles, sums):
        """sums[c, i] = Σ_j 2^{⟨q_i, k_j⟩ + bias_j − shift_i} values[j, c].

        Args:
            queries: (blocks, features', LANES) and shift: (blocks, LANES), the targets.
            keys: (m, features'), bias: (m,), values: (m, columns'), the sources; m is a multiple of TILE, features'
                and columns' are multiples of the constants.
            first, last: (blocks,) and tiles: the sum for block b is over the sources of tiles[first[b] : last[b]].
            sums: (blocks, columns', LANES), written.
        """
        use_widest_vectors()  # type: ignore[call-arg]
        scores = carray(stack_tile(), (TILE, LANES))  # type: ignore[call-arg]
        partial = np.empty((values.shape[1], LANES))
        for block in range(len(queries)):
            for c in range(values.shape[1]):
                for t in range(LANES):
                    sums[block, c, t] = 0.0
            for panel in range(first[block], last[block], _PANEL):
                for c in range(values.shape[1]):
                    for t in range(LANES):
                        partial[c, t] = 0.0
                for tile in tiles[panel : min(panel + _PANEL, last[block])]:
                    begin = tile * TILE
                    _fill(scores, queries, shift, keys, bias, block, begin, features)
                    for j in range(TILE):
                        for t in range(LANES):
                            scores[j, t] = exp2_within(scores[j, t]) if bounded else exp2(scores[j, t])
                    for column in range(0, values.shape[1], columns):
                        for j in range(0, TILE, _GROUP):
                            for t in range(LANES):
                                for c in range(columns):
                                    total = partial[column + c, t]
                                    for g in range(_GROUP):
                                        total += scores[j + g, t] * values[begin + j + g, column + c]
                                    partial[column + c, t] = total
                for c in range(values.shape[1]):
                    for t in range(LANES):
                        sums[block, c, t] += partial[c, t]

    return add_up


@functools.cache
def largest_kernel(features: int):
    """The kernel `find_largest` that takes `features` features at a time."""

    @compiled(fastmath=_CONTRACT)
    def find_largest(queries, shift, keys, bias, first, last, tiles, largest):
        """largest[i] = max_j ⟨q_i, k_j⟩ + bias_j − shift_i; arguments as in `add_up`, largest: (blocks, LANES), written."""
        use_widest_vectors()  # type: ignore[call-arg]
        scores = carray(stack_tile(), (TILE, LANES))  # type: ignore[call-arg]
        for block in range(len(queries)):
            for t in range(LANES):
                largest[block, t] = -np.inf
            for tile in tiles[first[block] : last[block]]:
                _fill(scores, queries, shift, keys, bias, block, tile * TILE, features)
                for j in range(TILE):
                    for t in range(LANES):
                        largest[block, t] = scores[j, t] if scores[j, t] > largest[block, t] else largest[block, t]

    return find_largest


@compiled
def lengths(rows):
    """|row| for each row of (n, k)."""
    result = np.empty(len(rows))
    for i in range(len(rows)):
        square = 0.0
        for a in range(rows.shape[1]):
            square += rows[i, a] * rows[i, a]
        result[i] = np.sqrt(square)
    return result


@compiled
def lay_targets(rows, scale, blocks):
    """blocks[b, a, t] = scale · rows[b LANES + t, a], and zero beyond the rows; blocks: (blocks, columns', LANES)."""
    blocks[-1, :, :] = 0.0
    blocks[:, rows.shape[1] :, :] = 0.0
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            blocks[i // LANES, a, i % LANES] = scale * rows[i, a]


@compiled
def lay_sources(keys, weights, values, tiles, columns):
    """Write keys (m, k) into tiles (m', k') and w_z for all labels z and then w_z y into columns (m', c').

    The last source is repeated without weight until a tile is full: its scores are no larger than those there are.
    """
    labels, m = weights.shape
    tiles[:, keys.shape[1] :] = 0.0
    columns[:, labels * (1 + values.shape[1]) :] = 0.0
    columns[m:] = 0.0
    for j in range(len(tiles)):
        for a in range(keys.shape[1]):
            tiles[j, a] = keys[min(j, m - 1), a]
    for j in range(m):
        for z in range(labels):
            columns[j, z] = weights[z, j]
            for c in range(values.shape[1]):
                columns[j, labels + z * values.shape[1] + c] = weights[z, j] * values[j, c]


@compiled
def collect_targets(blocks, rows):
    """rows[c, b LANES + t] = blocks[b, c, t], for as many as there are rows: the inverse of `lay_targets`."""
    for b in range(len(blocks)):
        begin = b * LANES
        for c in range(rows.shape[0]):
            for t in range(min(LANES, rows.shape[1] - begin)):
                rows[c, begin + t] = blocks[b, c, t]
