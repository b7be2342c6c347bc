"""Direct summation: exact to round-off, any dimension, any β."""

from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError
from pde_solver.kernel_sums.tiles import (
    LANES,
    TILE,
    collect_targets,
    largest_kernel,
    lay_sources,
    lay_targets,
    lengths,
    sum_kernel,
)

_LOG2_E = 1.4426950408889634
# e^{±600} and sums of it are ordinary floats: scores in a range this wide need no search for the largest.
_SAFE_RANGE = 600.0
# A sum so far below its scale e^{shift} has lost digits to underflow.
_FAINT = 1e-250


@dataclass(frozen=True)
class ExponentialSums:
    """Sums relative to e^{shift}, so that nothing overflows; the true sums are e^{shift} times these.

    Args:
        shift: (labels, n) the exponents taken out, one for each label and target.
        denominator: (labels, n) Σ_j w_{zj} e^{s_j − shift}.
        numerator: (labels, n, d) Σ_j w_{zj} e^{s_j − shift} y_j.
    """

    shift: np.ndarray
    denominator: np.ndarray
    numerator: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """∫ e^s y ν / ∫ e^s ν, (labels, n, d)."""
        with np.errstate(divide="ignore", invalid="ignore"):  # targets that are not finite, laws without mass
            return self.numerator / self.denominator[..., None]

    @property
    def log_partition(self) -> np.ndarray:
        """log Σ_j w_{zj} e^{s_j}, (labels, n); −∞ where there is no mass."""
        with np.errstate(divide="ignore"):
            return np.log(self.denominator) + self.shift


def exponential_sums(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    key_bias: np.ndarray | None = None,
) -> ExponentialSums:
    """Σ_j w_{zj} e^{s_ij} (1, y_j) with scores s_ij = ⟨q_i, k_j⟩ + b_j, for all targets i and labels z.

    The cost is targets × (sources with a weight), for all labels in one pass; sources without weight count for
    nothing. Relative error of the sums: a few ε plus ε |q_i| |k_j|, the rounding of the scores themselves. A target
    whose query is not finite gets nan.

    Args:
        queries: (n, k) targets.
        keys: (m, k) sources.
        values: (m, d) what the sources carry.
        weights: (labels, m) weights of the sources for each label.
        key_bias: (m,) the term b of the score; zero by default.

    Raises:
        InputError: if a label has no source of nonzero weight.

    Source: derived for this project.
    """
    queries, keys, values, weights = (as_rows(rows) for rows in (queries, keys, values, weights))
    bias = np.zeros(len(keys)) if key_bias is None else np.asarray(key_bias, float)
    if not weights.all():
        active = _sources_with_weight(weights)
        keys, values, weights, bias = keys[active], values[active], as_rows(weights[:, active]), bias[active]
    labels, n, d = len(weights), len(queries), values.shape[1]
    if not labels or not n:
        return ExponentialSums(np.zeros((labels, n)), np.zeros((labels, n)), np.zeros((labels, n, d)))
    blocks, sources = target_blocks(queries), Sources(keys, bias, weights, values)
    common_shift, bounded = _shift(queries, keys, bias, blocks, sources)
    sums = sources.sums(blocks, common_shift, bounded)
    denominator, numerator = sums[:labels], sums[labels:].reshape(labels, d, n).transpose(0, 2, 1)
    shift = common_shift[None].repeat(labels, axis=0)
    # the scale is common to all labels and can be far above one whose sources are elsewhere: that one again, by itself
    faint = np.abs(denominator) < _FAINT
    for label in range(labels) if faint.any() else ():
        if not faint[label].any():
            continue
        targets, own = faint[label], weights[label] != 0
        weight = weights[label, own]
        own_sources = Sources(keys[own], bias[own] + np.log(np.abs(weight)), np.sign(weight)[None], values[own])
        blocks = target_blocks(queries[targets])
        own_shift = own_sources.largest_scores(blocks, int(targets.sum()))
        sums = own_sources.sums(blocks, own_shift, bounded=False)
        shift[label, targets], denominator[label, targets], numerator[label, targets] = own_shift, sums[0], sums[1:].T
    return ExponentialSums(shift, denominator, numerator)


class Sources:
    """Sources laid out in tiles for the compiled kernels.

    Args:
        keys: (m, k), contiguous floats as all arrays here.
        bias: (m,) b.
        weights: (labels, m).
        values: (m, d).
    """

    def __init__(self, keys: np.ndarray, bias: np.ndarray, weights: np.ndarray, values: np.ndarray):
        labels, m = weights.shape
        rows = _round_up(m, TILE)
        self.column_count = labels * (1 + values.shape[1])
        self._features, self._width = chunk(keys.shape[1]), chunk(self.column_count)
        self._keys = np.empty((rows, _round_up(keys.shape[1], self._features)))
        self._columns = np.empty((rows, _round_up(self.column_count, self._width)))
        lay_sources(keys, weights, values, self._keys, self._columns)
        self._bias = np.empty(rows)
        np.multiply(bias, _LOG2_E, out=self._bias[:m])
        self._bias[m:] = self._bias[m - 1]

    def sums(
        self, blocks: np.ndarray, shift: np.ndarray, bounded: bool, chosen: tuple[np.ndarray, ...] | None = None
    ) -> np.ndarray:
        """Σ_j e^{⟨q_i, k_j⟩ + b_j − shift_i} (w_j, w_j y_j) for all labels, (labels (1 + d), n).

        Args:
            blocks: the targets as `target_blocks` makes them.
            shift: (n,).
            bounded: whether no exponent is below −700.
            chosen: for each block where its list of tiles begins and ends, and all lists; all tiles by default.
        """
        offset = np.empty((len(blocks), 1, LANES))
        lay_targets(shift[:, None], _LOG2_E, offset)
        sums = np.empty((len(blocks), self._columns.shape[1], LANES))
        lists = self._all_tiles(len(blocks)) if chosen is None else chosen
        add_up = sum_kernel(self._features, self._width, bounded)
        add_up(blocks, offset[:, 0], self._keys, self._bias, self._columns, *lists, sums)
        result = np.empty((self.column_count, len(shift)))
        collect_targets(sums, result)
        return result

    def largest_scores(
        self, blocks: np.ndarray, count: int, chosen: tuple[np.ndarray, ...] | None = None
    ) -> np.ndarray:
        """max_j ⟨q_i, k_j⟩ + b_j for the first `count` targets, (count,)."""
        largest = np.empty((len(blocks), LANES))
        lists = self._all_tiles(len(blocks)) if chosen is None else chosen
        find_largest = largest_kernel(self._features)
        find_largest(blocks, np.zeros((len(blocks), LANES)), self._keys, self._bias, *lists, largest)
        return largest.ravel()[:count] / _LOG2_E

    def _all_tiles(self, blocks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        tiles = np.arange(len(self._keys) // TILE)
        return np.zeros(blocks, np.int64), np.full(blocks, len(tiles)), tiles


def target_blocks(queries: np.ndarray) -> np.ndarray:
    """Queries (n, k) in units of log 2 as the kernels want them, (blocks, k', LANES), continued by zeros."""
    features = chunk(queries.shape[1])
    blocks = np.empty((_round_up(len(queries), LANES) // LANES, _round_up(queries.shape[1], features), LANES))
    lay_targets(queries, _LOG2_E, blocks)
    return blocks


def as_rows(rows: np.ndarray) -> np.ndarray:
    """Contiguous floats that may be written to: the one kind of array that the kernels are compiled for."""
    contiguous = np.ascontiguousarray(rows, float)
    return contiguous if contiguous.flags.writeable else contiguous.copy()


def _sources_with_weight(weights: np.ndarray) -> np.ndarray:
    present = weights != 0
    empty = np.flatnonzero(~present.any(axis=1))
    if len(empty):
        raise InputError(
            f"Attention: row {empty[0]} of the attended laws has no mass, all its {weights.shape[1]} weights are zero; "
            "check the state and the mixing matrix of the labels."
        )
    return present.any(axis=0)


def _shift(queries, keys, bias, blocks: np.ndarray, sources: Sources) -> tuple[np.ndarray, bool]:
    """An exponent for each target that its scores do not exceed, and whether they are nowhere far below it.

    Where they could be it is the largest of them.
    """
    highest, lowest = bias.max(), bias.min()
    reach = lengths(queries) * lengths(keys).max()
    far = 2 * reach > _SAFE_RANGE - (highest - lowest)
    shift = reach + highest
    if not far.any():
        return shift, True
    chosen = as_rows(queries[far])
    if len(chosen) < len(queries):
        blocks = target_blocks(chosen)
    shift[far] = sources.largest_scores(blocks, len(chosen))
    return shift, False


def chunk(count: int) -> int:
    """How many features or columns a kernel takes at once: all of up to 4, else 4 or 3, whichever pads less.

    With more the constants of a group of sources no longer fit in the registers, and the rate halves.
    """
    return max(count, 1) if count <= 4 else min((4, 3), key=lambda chunk: _round_up(count, chunk))


def _round_up(count: int, multiple: int) -> int:
    return -(-max(count, 1) // multiple) * multiple
