"""Kernels e^{Σ_k (a_k x_k y_k − c_k y_k²/2)} between tensor grids: one matrix product for each axis."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Of a multiplication and addition in `separable_products`, by dimension (measured): on a line each matrix entry is read for
#: one or two of them.
SECONDS_PER_PRODUCT = {1: 4e-10, 2: 5e-11, 3: 5e-11}
# Smaller factors count as zero, subnormal numbers being slow; so do weights below e^{this}.
_LOWEST_EXPONENT = -650.0
# What was dropped is round-off for denominators above this.
_FAINT = 1e-250


@dataclass(frozen=True, eq=False)
class GridMeans:
    """What is attended to at the nodes of a grid of targets.

    Args:
        mean: (labels, nodes..., d) ∫ e^{score} y ν(dy) / ∫ e^{score} ν(dy), and 0 where it is faint.
        log_partition: (labels, nodes...) log ∫ e^{score} ν(dy), −∞ where it is faint; None where it was not asked for.
        faint: (labels, nodes...) where the law is too far from what the kernel looks at for floating-point numbers.
    """

    mean: np.ndarray
    log_partition: np.ndarray | None
    faint: np.ndarray


class SeparableKernel:
    """Π_k E_k with E_k = e^{a_k x_k y_k − c_k y_k²/2 − shift}, every row scaled by an exponential of its own.

    All terms are positive, so nothing cancels at any temperature.

    Args:
        coupling: (d,) a_k.
        square: (d,) c_k.
        targets: values of x on each axis.
        sources: values of y on each axis.

    Source: derived for this project.
    """

    def __init__(
        self, coupling: np.ndarray, square: np.ndarray, targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]
    ) -> None:
        self._axes = list(zip(coupling, square, targets, sources, strict=True))
        self._factors = _factors(self._exponents())

    def means(self, weights: np.ndarray, partition: bool = False) -> GridMeans:
        """What is attended to at all targets under laws with weights (labels, nodes of the sources...)."""
        labels, dimension = len(weights), len(self._axes)
        denominator, *numerators = self._sums(self._factors, weights)
        shift = np.tile(self._factors.shift, (labels,) + (1,) * dimension)
        for label in np.flatnonzero((denominator < _FAINT).reshape(labels, -1).any(axis=1)):
            if weights[label].any():
                sums = denominator[label], [numerator[label] for numerator in numerators], shift[label]
                self._rescale(weights[label], *sums)
        faint = denominator < _FAINT
        denominator[faint] = 1.0
        mean = np.empty((*denominator.shape, dimension))
        for k, numerator in enumerate(numerators):
            np.divide(numerator, denominator, out=mean[..., k])
        mean[faint] = 0.0
        return GridMeans(mean, np.where(faint, -np.inf, np.log(denominator) + shift) if partition else None, faint)

    def _exponents(self) -> list[np.ndarray]:
        return [a * np.outer(x, y) - 0.5 * c * y**2 for a, c, x, y in self._axes]

    def _rescale(self, weights: np.ndarray, denominator, numerators, shift) -> None:
        """Replace the sums that are faint because the law is far from where the kernel is largest, for one label."""
        relative, log_marginals, log_scale = _relative_to_marginals(weights)
        factors = _factors(self._exponents(), log_marginals)
        again, *lifted = self._sums(factors, relative[None])
        better = (denominator < _FAINT) & (again[0] >= _FAINT)
        denominator[better] = again[0][better]
        shift[better] = factors.shift[better] + log_scale
        for numerator, replacement in zip(numerators, lifted, strict=True):
            numerator[better] = replacement[0][better]

    def _sums(self, factors: "_Factors", weights: np.ndarray) -> np.ndarray:
        """Π_k E_k applied to w and to w y_k, (1 + d, labels, targets).

        Axis by axis from the last: what has not met its y_k yet is shared with the denominator.
        """
        labels = len(weights)
        fields = np.where(np.abs(weights) < np.exp(_LOWEST_EXPONENT), 0.0, weights)
        for axis in reversed(range(len(self._axes))):
            values = self._axes[axis][3].reshape(-1, *[1] * (len(self._axes) - 1 - axis))
            # the new numerator goes first among them, so that the coordinates end up in order
            fields = np.concatenate([fields[:labels], fields[:labels] * values, fields[labels:]])
            fields = _contract(factors.matrices[axis], fields, axis)
        return fields.reshape(-1, labels, *fields.shape[1:])


def separable_products(sources: Sequence[int], targets: Sequence[int]) -> float:
    """Multiplications that `SeparableKernel.means` takes for one label between grids of these shapes."""
    work, size = 0.0, float(np.prod(sources))
    for done, axis in enumerate(reversed(range(len(sources)))):
        work += (2 + done) * size * targets[axis]
        size *= targets[axis] / sources[axis]
    return work


def largest_around(weights: np.ndarray) -> np.ndarray:
    """The largest |weight| of each node (labels, nodes...) and its neighbours, relative to the largest of the label."""
    spread = np.abs(weights)
    largest = spread.reshape(len(weights), -1).max(axis=1)
    for axis in range(1, spread.ndim):
        line = np.moveaxis(spread, axis, -1)
        wider = line.copy()
        np.maximum(wider[..., 1:], line[..., :-1], out=wider[..., 1:])
        np.maximum(wider[..., :-1], line[..., 1:], out=wider[..., :-1])
        spread = np.moveaxis(wider, -1, axis)
    return spread / np.where(largest > 0, largest, 1.0).reshape(-1, *[1] * (spread.ndim - 1))


def diagonal_of(matrix: np.ndarray, tolerance: float) -> np.ndarray | None:
    """The diagonal of a matrix; None if anything else is larger than this fraction of its largest entry."""
    diagonal = np.diagonal(matrix).copy()
    rest = np.abs(matrix - np.diag(diagonal)).max()
    return diagonal if rest <= tolerance * np.abs(matrix).max() else None


@dataclass(frozen=True, eq=False)
class _Factors:
    """E_k for each axis, (targets, sources), and the sum of the shifts at each node of the targets."""

    matrices: list[np.ndarray]
    shift: np.ndarray


def _factors(exponents: list[np.ndarray], log_marginals: list[np.ndarray] | None = None) -> _Factors:
    """Factors scaled to the largest in each row; multiplied by the marginals first if these are given."""
    matrices, total = [], np.zeros(())
    for k, exponent in enumerate(exponents):
        raised = exponent if log_marginals is None else exponent + log_marginals[k]
        shift = raised.max(axis=1)
        matrices.append(_exp(raised - shift[:, None]))
        total = total[..., None] + shift
    return _Factors(matrices, total)


def _relative_to_marginals(weights: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], float]:
    """A law as weights = relative · Π_k marginal_k · e^{scale}: what is left is of order one for any product of laws.

    The tails of the law then join the factors, whose exponents have no limits.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.log(np.abs(weights))
        log_marginals = []
        for k in range(weights.ndim):
            others = tuple(other for other in range(weights.ndim) if other != k)
            log_marginals.append(np.log(np.abs(weights).sum(axis=others)))
            exponent -= np.expand_dims(log_marginals[k], others)
    exponent[weights == 0] = -np.inf
    scale = float(exponent.max())
    return np.sign(weights) * _exp(exponent - scale), log_marginals, scale


def _exp(exponent: np.ndarray) -> np.ndarray:
    return np.where(exponent < _LOWEST_EXPONENT, 0.0, np.exp(np.maximum(exponent, _LOWEST_EXPONENT)))


def _contract(matrix: np.ndarray, array: np.ndarray, axis: int) -> np.ndarray:
    """Σ_j matrix_ij array_{…j…} on a grid's axis, for arrays (fields, nodes...)."""
    before, after = array.shape[: axis + 1], array.shape[axis + 2 :]
    if not after:
        return array @ matrix.T
    flat = matrix @ array.reshape(-1, array.shape[axis + 1], int(np.prod(after)))
    return flat.reshape(*before, len(matrix), *after)
