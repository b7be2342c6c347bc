"""Direct summation: exact to round-off, any dimension, any β."""

from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError
from pde_solver.kernel_sums.tiles import LANES, TILE, tile_kernels

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
    active = _sources_with_weight(weights)
    if not active.all():
        keys, values, weights = keys[active], values[active], weights[:, active]
        key_bias = None if key_bias is None else key_bias[active]
    bias = np.zeros(len(keys)) if key_bias is None else key_bias
    labels, n, d = len(weights), len(queries), values.shape[1]
    if not labels or not n:
        return ExponentialSums(np.zeros((labels, n)), np.zeros((labels, n)), np.zeros((labels, n, d)))
    common_shift = _shift(queries, keys, bias)
    sums = _sums(queries, common_shift, keys, bias, _columns(weights, values))
    denominator, numerator = sums[:labels], np.moveaxis(sums[labels:].reshape(labels, d, n), 1, 2)
    shift = np.tile(common_shift, (labels, 1))
    # the scale is common to all labels and can be far above one whose sources are elsewhere: that one again, by itself
    faint = np.abs(denominator) < _FAINT
    for label in np.flatnonzero(faint.any(axis=1)):
        targets, own = faint[label], weights[label] != 0
        weight = weights[label, own]
        weighted_bias = bias[own] + np.log(np.abs(weight))
        own_shift = _largest_scores(queries[targets], keys[own], weighted_bias)
        columns = _columns(np.sign(weight)[None], values[own])
        sums = _sums(queries[targets], own_shift, keys[own], weighted_bias, columns)
        shift[label, targets], denominator[label, targets], numerator[label, targets] = own_shift, sums[0], sums[1:].T
    return ExponentialSums(shift, denominator, numerator)


def _sources_with_weight(weights: np.ndarray) -> np.ndarray:
    present = weights != 0
    empty = np.flatnonzero(~present.any(axis=1))
    if len(empty):
        raise InputError(
            f"Attention: row {empty[0]} of the attended laws has no mass, all its {weights.shape[1]} weights are zero; "
            "check the state and the mixing matrix of the labels."
        )
    return present.any(axis=0)


def _shift(queries: np.ndarray, keys: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """An exponent for each target that its scores do not exceed and, if they are far below, the largest of them."""
    reach = np.linalg.norm(queries, axis=1) * np.sqrt(np.einsum("mk,mk->m", keys, keys).max())
    shift = reach + bias.max()
    far = 2 * reach + (bias.max() - bias.min()) > _SAFE_RANGE
    if far.any():
        shift[far] = _largest_scores(queries[far], keys, bias)
    return shift


def _columns(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """w_z for all labels and then w_z y, (m, labels (1 + d))."""
    products = weights.T[:, :, None] * values[:, None, :]
    return np.hstack([weights.T, products.reshape(len(values), -1)])


def _sums(queries, shift, keys, bias, columns) -> np.ndarray:
    """Σ_j e^{⟨q_i, k_j⟩ + b_j − shift_i} columns_j, (columns, n)."""
    features, width = _chunk(queries.shape[1]), _chunk(columns.shape[1])
    targets, offset = _target_blocks(queries, features), _target_blocks(shift[:, None], 1)[:, 0]
    sums = np.empty((len(targets), _round_up(columns.shape[1], width), LANES))
    add_up, _ = tile_kernels(features, width)
    add_up(targets, offset, *_source_tiles(keys, bias, features), _padded(columns, TILE, width), sums)
    return sums.transpose(1, 0, 2).reshape(sums.shape[1], -1)[: columns.shape[1], : len(queries)]


def _largest_scores(queries, keys, bias) -> np.ndarray:
    """max_j ⟨q_i, k_j⟩ + b_j, (n,)."""
    features = _chunk(queries.shape[1])
    targets = _target_blocks(queries, features)
    largest = np.empty((len(targets), LANES))
    _, find_largest = tile_kernels(features, 1)
    find_largest(targets, *_source_tiles(keys, bias, features), largest)
    return largest.ravel()[: len(queries)] / _LOG2_E


def _chunk(count: int) -> int:
    """How many features or columns a kernel takes at once: all of up to 4, else 4 or 3, whichever pads less.

    With more the constants of a group of sources no longer fit in the registers, and the rate halves.
    """
    return max(count, 1) if count <= 4 else min((4, 3), key=lambda chunk: _round_up(count, chunk))


def _target_blocks(rows: np.ndarray, chunk: int) -> np.ndarray:
    """Queries or shifts (n, c) in units of log 2 as the kernels want them, (blocks, c', LANES), padded with zeros."""
    padded = _padded(rows * _LOG2_E, LANES, chunk)
    return np.ascontiguousarray(padded.reshape(-1, LANES, padded.shape[1]).transpose(0, 2, 1))


def _source_tiles(keys: np.ndarray, bias: np.ndarray, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys (m', k') padded with zeros, and the bias (m',) in units of log 2, −∞ where there is no source."""
    keys = _padded(keys, TILE, chunk)
    padded_bias = np.full(len(keys), -np.inf)
    padded_bias[: len(bias)] = bias * _LOG2_E
    return keys, padded_bias


def _padded(rows: np.ndarray, multiple: int, chunk: int) -> np.ndarray:
    """Rows (n, c) continued by zeros to multiples of the two numbers."""
    result = np.zeros((_round_up(len(rows), multiple), _round_up(rows.shape[1], chunk)))
    result[: len(rows), : rows.shape[1]] = rows
    return result


def _round_up(count: int, multiple: int) -> int:
    return -(-max(count, 1) // multiple) * multiple
