"""Small perturbations of the uniform law under causal attention, for labels of different amplitude.

The data 1 + ε q(s) Y_l(x), with Y_l a harmonic of degree l, become 1 + ε (e^{cK} q)(s) Y_l(x) + O(ε²), c = a_l t, with
a_l from `response_rate` and K, P(s) and the depth t as in `causal`. A narrow source at s′ of width δ gives
ε δ `response`(c, s, s′, λ).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exprel

from pde_solver.errors import InputError
from pde_solver.solutions.causal import distance, require_growth


def eigenfunction(s: ArrayLike, power: ArrayLike, slope: ArrayLike = 0.0) -> np.ndarray:
    """q(s) = P(s)^p, P(s) = (e^{λs} − 1)/λ; s^p for λ = 0: it keeps its shape, and grows by `eigenfunction_growth`.

    Args:
        s: label in [0, 1].
        power: p > −1.
        slope: λ ≥ 0; all broadcast.

    Raises:
        InputError: if p ≤ −1.

    Source: derived for this project.
    """
    s, slope = np.asarray(s, dtype=float), np.asarray(slope, dtype=float)
    return (s * exprel(slope * s)) ** _power("eigenfunction", power)


def eigenfunction_growth(c: ArrayLike, power: ArrayLike) -> np.ndarray:
    """e^{c/(p+1)}, the factor by which `eigenfunction` grows; e^c for p = 0, where all labels are alike.

    Args:
        c: a_l t of either sign.
        power: p > −1; both broadcast.

    Raises:
        InputError: if p ≤ −1.

    Source: derived for this project.
    """
    return np.exp(np.asarray(c, dtype=float) / (_power("eigenfunction_growth", power) + 1))


def step_response(c: ArrayLike, s: ArrayLike, edge: ArrayLike, slope: ArrayLike = 0.0) -> np.ndarray:
    """(e^{cK} q)(s) for q = 1 up to s₀ and 0 beyond: e^c for s ≤ s₀, else e^c [Q₁(√(2c), √(2D)) − e^{−c−D} I₀(2√(cD))].

    D = Y(s, s₀) is the distance and Q₁ Marcum's function. Summed as Σ_{m≥1} c^m/m! P(X ≤ m − 1), X Poisson of mean D:
    all terms are positive.

    Args:
        c: a_l t ≥ 0.
        s: label in (0, 1].
        edge: s₀ in (0, 1].
        slope: λ ≥ 0; all broadcast.

    Raises:
        InputError: if a label is outside (0, 1], or c or λ is negative.

    Source: derived for this project.
    """
    c, gap = np.broadcast_arrays(require_growth("step_response", c), distance(s, edge, slope))
    beyond = np.maximum(gap, 0.0)
    weight = c.copy()  # c^m / m!
    probability = np.exp(-beyond)  # P(X = m − 1)
    at_most = probability.copy()  # P(X ≤ m − 1)
    total = weight * at_most
    # beyond this term they halve at least: c/m ≤ 1/4, and P(X ≤ m) ≤ (1 + D/m) P(X ≤ m − 1)
    last = int(np.ceil(max(4 * np.max(c, initial=0.0), np.sqrt(4 * np.max(c * beyond, initial=0.0))))) + 60
    for m in range(2, last):
        weight = weight * c / m
        probability = probability * beyond / (m - 1)
        at_most = at_most + probability
        total = total + weight * at_most
    return np.where(gap <= 0, np.exp(c), total)


def _power(where: str, power: ArrayLike) -> np.ndarray:
    """p as an array, if P^p is integrable at 0."""
    power = np.asarray(power, dtype=float)
    if not np.all(power > -1):
        raise InputError(f"{where}: power must be > −1, so that ∫ s^p ds exists, found {np.min(power):g}.")
    return power
