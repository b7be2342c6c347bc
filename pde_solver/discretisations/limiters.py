"""Limiters that keep a polynomial density ≥ 0 without changing any cell's mean."""

import numpy as np

from pde_solver.compiled import compiled

# A polynomial whose bound is not further from its goal than this, relative to its largest coefficient, is evaluated:
# well above the rounding errors of the evaluation.
_MARGIN = 1e-13


class ScalingLimiter:
    """f ← f̄ + θ (f − f̄) with θ = min(1, f̄ / (f̄ − min f)) in each cell, the minimum over the checked points.

    A cell whose mean is negative becomes constant: if more than rounding made it so, the caller will notice. The order
    of accuracy is kept where the solution is smooth. Polynomials are evaluated only where their nodal values c_i leave
    a doubt: f = c + Σ_i (c_i − c) φ_i, with c the least of them, is nowhere below c − Σ_i (c_i − c) max(−φ_i).

    Args:
        basis: (points, nodes) basis functions, of sum one, at the points where the polynomial must be ≥ 0.
        mean: (cells, nodes) weights of the cell mean.

    Source: Zhang and Shu, J. Comput. Phys. 229 (2010) 8918; the bound is derived for this project.
    """

    def __init__(self, basis: np.ndarray, mean: np.ndarray) -> None:
        self._basis = np.ascontiguousarray(basis.T)
        self._mean = mean
        self._dips = np.maximum(-basis.min(axis=0), 0.0)

    def limited(self, densities: np.ndarray) -> np.ndarray:
        """The densities (labels, cells, nodes) limited: they themselves where that changes nothing, else a copy."""
        if self._first_negative(densities) == densities.shape[0] * densities.shape[1]:
            return densities
        copy = densities.copy()
        self.limit(copy)
        return copy

    def limit(self, densities: np.ndarray) -> None:
        """Limit contiguous densities (labels, cells, nodes) in place."""
        polynomials = densities.reshape(-1, densities.shape[-1])
        _limit(polynomials, self._basis, self._dips, self._mean, self._first_negative(densities))

    def range(self, densities: np.ndarray) -> tuple[float, float]:
        """The smallest and the largest value at the checked points; inf and −inf if there are none."""
        return _range(densities.reshape(-1, densities.shape[-1]), self._basis, self._dips)

    def _first_negative(self, densities: np.ndarray) -> int:
        return _first_negative(densities.reshape(-1, densities.shape[-1]), self._basis, self._dips)


@compiled(inline=True)
def _evaluate(polynomials, cell, basis, values):
    """values = Σ_i c_i φ_i at all points; basis is (nodes, points)."""
    for q in range(len(values)):
        values[q] = polynomials[cell, 0] * basis[0, q]
    for i in range(1, basis.shape[0]):
        coefficient = polynomials[cell, i]
        for q in range(len(values)):
            values[q] += coefficient * basis[i, q]


@compiled(inline=True)
def _bounds(polynomials, cell, dips):
    """Numbers that no value at a checked point is below, and above; nan if a coefficient is not finite."""
    low = polynomials[cell, 0]
    high = low
    for i in range(1, len(dips)):
        low = min(low, polynomials[cell, i])
        high = max(high, polynomials[cell, i])
    below = _MARGIN * max(-low, high)
    above = below
    for i in range(len(dips)):
        below += (polynomials[cell, i] - low) * dips[i]
        above += (high - polynomials[cell, i]) * dips[i]
    return low - below, high + above


@compiled
def _first_negative(polynomials, basis, dips):
    """The first cell with a negative value at a checked point, or the number of cells."""
    values = np.empty(basis.shape[1])
    for cell in range(len(polynomials)):
        low, _ = _bounds(polynomials, cell, dips)
        if low >= 0:
            continue
        _evaluate(polynomials, cell, basis, values)
        for q in range(len(values)):
            if values[q] < 0:
                return cell
    return len(polynomials)


@compiled
def _limit(polynomials, basis, dips, mean, first):
    """Limit all cells from `first` on."""
    values = np.empty(basis.shape[1])
    for cell in range(first, len(polynomials)):
        low, _ = _bounds(polynomials, cell, dips)
        if low >= 0:
            continue
        _evaluate(polynomials, cell, basis, values)
        least = 0.0
        for q in range(len(values)):
            least = min(least, values[q])
        if least < 0:
            average = 0.0
            for i in range(len(dips)):
                average += mean[cell % len(mean), i] * polynomials[cell, i]
            scale = average / max(average - least, 2.2250738585072014e-308)
            # a hair more than needed, so that rounding does not leave −1e-17
            scale = min(max(scale, 0.0), 1.0) * (1 - 1e-14)
            for i in range(len(dips)):
                polynomials[cell, i] = average + scale * (polynomials[cell, i] - average)


@compiled
def _range(polynomials, basis, dips):
    """The smallest and largest value at the checked points, nan if there is one; only cells in doubt are evaluated."""
    values = np.empty(basis.shape[1])
    lowest, highest = np.inf, -np.inf
    for cell in range(len(polynomials)):
        low, high = _bounds(polynomials, cell, dips)
        if low >= lowest and high <= highest:
            continue
        _evaluate(polynomials, cell, basis, values)
        for q in range(len(values)):
            # a nan is taken, and nothing replaces it
            if values[q] < lowest or np.isnan(values[q]):
                lowest = values[q]
            if values[q] > highest or np.isnan(values[q]):
                highest = values[q]
    return lowest, highest
