"""Direct summation that leaves out what cannot matter: for low temperatures, where a target sees few sources.

Sources are sorted into compact tiles. For each target and tile an upper bound of the tile's terms and a lower bound of
the target's whole sum follow from a few numbers for each tile; tiles below the tolerance are never looked at. Bounds and
sums work with log w + s, so that weights may span any range: where the attended law has tails of 10⁻³⁰⁰ and these are
all that a target sees, they are what it gets.
"""

import functools
from collections.abc import Iterator

import numpy as np
from numba import carray

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.direct import ExponentialSums, Sources, as_rows, chunk, exponential_sums, target_blocks
from pde_solver.kernel_sums.tiles import LANES, TILE, stack_tile, use_widest_vectors

_LOG2_E = 1.4426950408889634
_CONTRACT = frozenset({"contract", "nsz"})
# Sources that share one bound, in tiles of the kernels and in sources.
_TILES = 2
_SHARED = _TILES * TILE
# Directions in which the extent of a tile is known; across them it is a ball.
_AXES = 3
# Above this dimension a tile is a ball in all directions: its principal axes would cost more than they save.
_MOST_FEATURES = 8
# Blocks of targets that are bounded at once.
_BLOCKS_AT_ONCE = 256
# A range of exponents in units of log 2 within which sums neither overflow nor fade.
_SAFE_RANGE = 850.0
# How many sources and targets tell which share of the pairs matters.
_SAMPLE, _SAMPLED_TARGETS = 1000, 30
# Pairs that could be summed in the time to sort and bound one source; and how many more pairs are summed in whole tiles
# for whole blocks than there are pairs that matter.
_PREPARATION, _EXCESS = 700, 1.5
# Vector operations for a pair of target and source beside one for each column.
_SCORE_AND_EXPONENTIAL = 18


def pruned_sums(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    key_bias: np.ndarray | None = None,
    tolerance: float = 1e-10,
) -> ExponentialSums:
    """The sums of `exponential_sums` to a relative tolerance, without the sources that contribute less.

    What is left out for a target is below tolerance · Σ_j |w_{zj}| e^{s_ij} (1, |y_j|). Each label is pruned by itself;
    where that would cost more than all pairs for all labels at once, the answer is that of `exponential_sums`.

    Args:
        queries: (n, k) targets.
        keys: (m, k) sources.
        values: (m, d) what the sources carry.
        weights: (labels, m) weights of the sources for each label.
        key_bias: (m,) the term b of the score; zero by default.
        tolerance: what may be left out, relative to the sum.

    Raises:
        InputError: if a label has no source of nonzero weight.

    Source: derived for this project.
    """
    queries, keys, values, weights = (as_rows(rows) for rows in (queries, keys, values, weights))
    labels, n, d = len(weights), len(queries), values.shape[1]
    for_one, for_all = (_SCORE_AND_EXPONENTIAL + count * (1 + d) for count in (1, labels))
    everything = n * len(keys) * for_all
    preparation = labels * len(keys) * _PREPARATION * for_one
    if preparation > everything or not (weights != 0).any(axis=1).all():
        return exponential_sums(queries, keys, values, weights, key_bias)
    shares = [_share_that_matters(queries, keys, weight, key_bias, tolerance) for weight in weights]
    if preparation + min(1.0, _EXCESS * sum(shares)) * n * len(keys) * for_one > everything:
        return exponential_sums(queries, keys, values, weights, key_bias)
    order = compact_order(queries, LANES)
    blocks = target_blocks(as_rows(queries[order]))
    result = ExponentialSums(np.empty((labels, n)), np.empty((labels, n)), np.empty((labels, n, d)))
    for label, weight in enumerate(weights):
        law = _Law(keys, values, weight, key_bias, tolerance)
        for begin, end, shift, sums in law.sums(blocks, n):
            targets = order[begin:end]
            result.shift[label, targets] = shift
            result.denominator[label, targets], result.numerator[label, targets] = sums[0], sums[1:].T
    return result


def _share_that_matters(
    queries: np.ndarray, keys: np.ndarray, weights: np.ndarray, key_bias: np.ndarray | None, tolerance: float
) -> float:
    """About which share of the pairs of target and source contributes to the sums, from a sample."""
    chosen = np.flatnonzero(weights)
    chosen = chosen[:: max(len(chosen) // _SAMPLE, 1)]
    logarithms = queries[:: max(len(queries) // _SAMPLED_TARGETS, 1)] @ keys[chosen].T + np.log(np.abs(weights[chosen]))
    if key_bias is not None:
        logarithms += key_bias[chosen]
    matters = logarithms >= logarithms.max(axis=1, keepdims=True) - np.log(len(keys) / tolerance)
    return float(matters.mean()) * np.count_nonzero(weights) / len(keys)


class _Law:
    """The sources of one label, in compact tiles, with what bounds them.

    In a tile with centre c and unit axes e_a, the keys are k = c + Σ_a z_a e_a + r, |z_a| ≤ h_a, |r| ≤ ρ, and the
    logarithmic weights ℓ = Σ_a g_a z_a + e with e ≤ e_max: hence

        ⟨q, k⟩ + ℓ ≤ ⟨q, c⟩ + e_max + Σ_a |⟨q, e_a⟩ + g_a| h_a + |q| ρ.

    The axes are principal and the g_a fitted, because on a manifold and for a smooth law, where the sum for a target
    is concentrated q + g is normal to the manifold: h_a is small or what it multiplies is. And for any probabilities p

        log Σ_j e^{⟨q, k_j⟩ + ℓ_j} ≥ ⟨q, Σ_j p_j k_j⟩ + Σ_j p_j (ℓ_j − log p_j),

    for which p ∝ exp(e) is chosen.

    Source: Cauchy-Schwarz and Jensen; derived for this project.
    """

    def __init__(
        self,
        keys: np.ndarray,
        values: np.ndarray,
        weights: np.ndarray,
        key_bias: np.ndarray | None,
        tolerance: float,
    ):
        own = np.flatnonzero(weights)
        self._count = len(own)
        self._margin = np.log2(len(own) / tolerance)
        own = own[compact_order(as_rows(keys[own]), _SHARED)]
        missing = -len(own) % _SHARED
        own = np.concatenate([own, np.full(missing, own[-1])])
        keys, signs = as_rows(keys[own]), np.sign(weights[own])
        signs[self._count :] = 0.0
        log_weights = np.log(np.abs(weights[own])) + (0.0 if key_bias is None else key_bias[own])
        self._sources = Sources(keys, log_weights, signs[None], as_rows(values[own]))

        keys, log_weights = keys.reshape(-1, _SHARED, keys.shape[1]), log_weights.reshape(-1, _SHARED)
        centre = keys.mean(axis=1)
        offsets = keys - centre[:, None]
        axes = _principal_axes(offsets)
        z = offsets @ axes
        extent = np.abs(z).max(axis=1)
        square = np.maximum((z**2).sum(axis=1), np.finfo(float).tiny)
        slope = (log_weights[:, None] @ z)[:, 0] / square
        rest = log_weights - (z @ slope[:, :, None])[:, :, 0]
        across = np.zeros(len(centre))
        if axes.shape[2] < keys.shape[2]:
            across = np.linalg.norm(offsets - z @ axes.transpose(0, 2, 1), axis=2).max(axis=1)
        self._centre, self._highest = _with_features(centre), rest.max(axis=1) * _LOG2_E
        self._axes = _with_features((axes * extent[:, None]).transpose(0, 2, 1))
        self._slope, self._across = slope * extent * _LOG2_E, across

        p = np.exp(rest - rest.max(axis=1, keepdims=True))
        p[-1, _SHARED - missing :] = 0.0
        p /= p.sum(axis=1, keepdims=True)
        entropy = -(p * np.log(np.maximum(p, np.finfo(float).tiny))).sum(axis=1)
        self._mean = _with_features((p[:, None] @ keys)[:, 0])
        self._lowest = ((p * log_weights).sum(axis=1) + entropy) * _LOG2_E

    def sums(self, blocks: np.ndarray, count: int) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """For ranges of targets, begin and end, the exponents taken out and the sums (1 + d, end − begin)."""
        for first in range(0, len(blocks), _BLOCKS_AT_ONCE):
            some = blocks[first : first + _BLOCKS_AT_ONCE]
            begin, end = first * LANES, min((first + len(some)) * LANES, count)
            needed, lower, spread = self._needed(some, end - begin)
            lists = self._tile_lists(needed)
            shift = lower / _LOG2_E
            if not spread < _SAFE_RANGE:
                shift = self._sources.largest_scores(some, end - begin, lists)
            yield begin, end, shift, self._sources.sums(some, shift, bounded=False, chosen=lists)

    def _needed(self, blocks: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Which tiles the blocks need, (blocks, tiles); lower bounds of log₂ of the sums, and how much higher they can be."""
        lower = np.full((len(blocks), LANES), np.inf)
        bound_below, bound_above = bound_kernels(chunk(self._mean.shape[1]), self._axes.shape[1])
        bound_below(blocks, self._mean, self._lowest, lower)
        lower.reshape(-1)[count:] = np.inf  # what only continues the targets needs nothing
        needed = np.empty((len(blocks), len(self._centre)), np.bool_)
        spread = bound_above(
            blocks, lower, self._margin, self._centre, self._highest, self._axes, self._slope, self._across, needed
        )
        return needed, lower.reshape(-1)[:count], spread

    def _tile_lists(self, needed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where each block's list of the kernels' tiles begins and ends, and all lists."""
        last = _TILES * np.cumsum(needed.sum(axis=1))
        tiles = (_TILES * np.nonzero(needed)[1][:, None] + np.arange(_TILES)).ravel()
        return last - _TILES * needed.sum(axis=1), last, tiles


def _principal_axes(offsets: np.ndarray) -> np.ndarray:
    """The directions in which points of each tile, (tiles, m, k), vary most, (tiles, k, at most three)."""
    tiles, _, k = offsets.shape
    if k > _MOST_FEATURES:
        return np.empty((tiles, k, 0))
    square = np.nan_to_num(offsets.transpose(0, 2, 1) @ offsets, posinf=0.0, neginf=0.0)
    return np.linalg.eigh(square)[1][:, :, max(k - _AXES, 0) :]


def _with_features(rows: np.ndarray) -> np.ndarray:
    """Rows (..., k) continued by zeros to as many features as blocks of targets have."""
    k = rows.shape[-1]
    return as_rows(np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, -k % chunk(k))]))


@functools.cache
def bound_kernels(features: int, directions: int):
    """The kernels (`bound_below`, `bound_above`) that take `features` features at a time, for tiles with so many axes.

    Both numbers are constants of the machine code, so that short loops over them vanish.
    """

    @compiled(fastmath=_CONTRACT)
    def bound_below(queries, mean, lowest, lower):
        """lower[i] = max_T ⟨q_i, mean_T⟩ + lowest_T.

        Args:
            queries: (blocks, k', LANES), the targets.
            mean: (tiles, k') and lowest: (tiles,).
            lower: (blocks, LANES), written.
        """
        use_widest_vectors()  # type: ignore[call-arg]
        scratch = carray(stack_tile(), (TILE, LANES))  # type: ignore[call-arg]
        bound, greatest = scratch[0], scratch[1]
        for block in range(len(queries)):
            greatest[:] = -np.inf
            for tile in range(len(mean)):
                for t in range(LANES):
                    total = lowest[tile]
                    for a in range(features):
                        total += queries[block, a, t] * mean[tile, a]
                    bound[t] = total
                for first in range(features, mean.shape[1], features):
                    for t in range(LANES):
                        for a in range(features):
                            bound[t] += queries[block, first + a, t] * mean[tile, first + a]
                for t in range(LANES):
                    greatest[t] = greatest[t] if bound[t] <= greatest[t] else bound[t]  # a nan stays
            lower[block] = greatest

    @compiled(fastmath=_CONTRACT)
    def bound_above(queries, lower, margin, centre, highest, axes, slope, across, needed):
        """needed[b, T]: ⟨q_i, c_T⟩ + highest_T + Σ_a |⟨q_i, axis_Ta⟩ + slope_Ta| + |q_i| across_T ≥ lower_i − margin.

        Args:
            queries: (blocks, k', LANES), the targets i of each block b.
            lower: (blocks, LANES).
            margin: how far below the lower bound a tile still matters.
            centre: (tiles, k'), highest: (tiles,), axes: (tiles, directions, k'), slope: (tiles, directions),
                across: (tiles,).
            needed: (blocks, tiles), written: whether the tile matters for any target of the block.

        Returns:
            The largest difference of the two bounds.
        """
        use_widest_vectors()  # type: ignore[call-arg]
        scratch = carray(stack_tile(), (TILE, LANES))  # type: ignore[call-arg]
        bound, length, spread, along = scratch[0], scratch[1], scratch[2], scratch[3:]
        spread[:] = -np.inf
        for block in range(len(queries)):
            length[:] = 0.0
            for a in range(queries.shape[1]):
                for t in range(LANES):
                    length[t] += queries[block, a, t] ** 2
            for t in range(LANES):
                length[t] = np.sqrt(length[t])
            for tile in range(len(centre)):
                for t in range(LANES):
                    total = highest[tile] - lower[block, t] + across[tile] * length[t]
                    for a in range(features):
                        total += queries[block, a, t] * centre[tile, a]
                    bound[t] = total
                for axis in range(directions):
                    for t in range(LANES):
                        total = slope[tile, axis]
                        for a in range(features):
                            total += queries[block, a, t] * axes[tile, axis, a]
                        along[axis, t] = total
                for first in range(features, centre.shape[1], features):
                    for t in range(LANES):
                        for a in range(features):
                            bound[t] += queries[block, first + a, t] * centre[tile, first + a]
                    for axis in range(directions):
                        for t in range(LANES):
                            for a in range(features):
                                along[axis, t] += queries[block, first + a, t] * axes[tile, axis, first + a]
                idle = 0
                for t in range(LANES):
                    total = bound[t]
                    for axis in range(directions):
                        total += abs(along[axis, t])
                    spread[t] = spread[t] if total <= spread[t] else total
                    idle += 1 if total < -margin else 0  # what is not a number is needed
                needed[block, tile] = idle < LANES
        return spread.max()

    return bound_below, bound_above


@compiled
def compact_order(rows, size):
    """An order of points (n, k) in which each run of `size`, from a multiple of it, is compact: a k-d tree's leaves."""
    points, order = rows.copy(), np.arange(len(rows))
    segments = [(0, len(rows))]
    while len(segments):
        begin, end = segments.pop()
        if end - begin <= size:
            continue
        widest, width = 0, -1.0
        for a in range(rows.shape[1]):
            low = high = points[begin, a]
            for i in range(begin, end):
                low, high = min(low, points[i, a]), max(high, points[i, a])
            if high - low > width:
                widest, width = a, high - low
        middle = begin + size * ((end - begin + size) // (2 * size))
        _select(points, order, begin, end - 1, middle, widest)
        segments.append((begin, middle))
        segments.append((middle, end))
    return order


@compiled
def _select(points, order, low, high, middle, a):
    """Reorder so that no coordinate a before `middle` is larger than one after it (Hoare's selection)."""
    while low < high:
        pivot = points[(low + high) // 2, a]
        i, j = low, high
        while i <= j:
            while points[i, a] < pivot:
                i += 1
            while points[j, a] > pivot:
                j -= 1
            if i <= j:
                for c in range(points.shape[1]):
                    points[i, c], points[j, c] = points[j, c], points[i, c]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return
