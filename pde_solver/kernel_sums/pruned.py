"""Direct summation that leaves out what cannot matter: for low temperatures, where a target sees few sources.

Sources are sorted into compact tiles. For each target and tile an upper bound of the tile's terms and a lower bound of
the target's whole sum follow from a few numbers for each tile; tiles below the tolerance are never looked at. Bounds and
sums work with log w + s, so that weights may span any range: where the attended law has tails of 10⁻³⁰⁰ and these are
all that a target sees, they are what it gets.
"""

from collections.abc import Iterator

import numpy as np

from pde_solver.kernel_sums.compact_order import compact_order
from pde_solver.kernel_sums.direct import ExponentialSums, Sources, as_rows, exponential_sums, target_blocks
from pde_solver.kernel_sums.tile_bounds import LOG2_E, TileBounds
from pde_solver.kernel_sums.tiles import LANES, TILE

# Sources that share one bound, in tiles of the kernels and in sources.
_TILES = 2
_SHARED = _TILES * TILE
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
    """The sources of one label, in compact tiles, with what bounds them."""

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
        tiles = len(own) // _SHARED
        self._bounds = TileBounds(keys.reshape(tiles, _SHARED, -1), log_weights.reshape(tiles, _SHARED), missing)

    def sums(self, blocks: np.ndarray, count: int) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """For ranges of targets, begin and end, the exponents taken out and the sums (1 + d, end − begin)."""
        for first in range(0, len(blocks), _BLOCKS_AT_ONCE):
            some = blocks[first : first + _BLOCKS_AT_ONCE]
            begin, end = first * LANES, min((first + len(some)) * LANES, count)
            needed, lower, spread = self._bounds.needed(some, end - begin, self._margin)
            lists = self._tile_lists(needed)
            shift = lower / LOG2_E
            if not spread < _SAFE_RANGE:
                shift = self._sources.largest_scores(some, end - begin, lists)
            yield begin, end, shift, self._sources.sums(some, shift, bounded=False, chosen=lists)

    def _tile_lists(self, needed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where each block's list of the kernels' tiles begins and ends, and all lists."""
        last = _TILES * np.cumsum(needed.sum(axis=1))
        tiles = (_TILES * np.nonzero(needed)[1][:, None] + np.arange(_TILES)).ravel()
        return last - _TILES * needed.sum(axis=1), last, tiles
