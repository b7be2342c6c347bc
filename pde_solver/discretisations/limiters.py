"""Limiters that keep a polynomial density ≥ 0 without changing any cell's mean."""

import numpy as np


def limit_to_positive(coefficients: np.ndarray, basis: np.ndarray, mean: np.ndarray) -> None:
    """In place, f ← f̄ + θ (f − f̄) with θ = min(1, f̄ / (f̄ − min f)), the minimum over the checked points.

    A cell whose mean is negative becomes constant: if more than rounding made it so, the caller will notice. The order
    of accuracy is kept where the solution is smooth.

    Args:
        coefficients: (cells, nodes) nodal values of each cell's polynomial.
        basis: (points, nodes) basis functions at the points where the polynomial must be ≥ 0.
        mean: (cells, nodes) weights of the cell mean.

    Source: Zhang and Shu, J. Comput. Phys. 229 (2010) 8918.
    """
    lowest = (basis @ coefficients.T).min(axis=0, initial=np.inf)
    low = np.flatnonzero(lowest < 0)
    if not len(low):
        return
    average = np.einsum("ci,ci->c", mean[low], coefficients[low])
    above = np.maximum(average - lowest[low], np.finfo(float).tiny)
    # a hair more than needed, so that rounding does not leave −1e-17
    scale = np.clip(average / above, 0.0, 1.0) * (1 - 1e-14)
    coefficients[low] = average[:, None] + scale[:, None] * (coefficients[low] - average[:, None])
