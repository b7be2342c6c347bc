"""Exact optimal transport on the line and on the circle, by quantile functions."""

import numpy as np


def transport_on_line(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, p: float) -> float:
    """W_p^p = ∫₀¹ |F_a⁻¹(q) − F_b⁻¹(q)|^p dq between two discrete laws on the line.

    Args:
        x: (n,) atoms of the first law, in any order.
        a: (n,) their masses, summing to 1.
        y: (m,) atoms of the second law.
        b: (m,) their masses, summing to 1.
        p: power of the distance, p ≥ 1.

    Source: for example Santambrogio, Optimal Transport for Applied Mathematicians, proposition 2.17.
    """
    first, second = _Quantiles(x, a), _Quantiles(y, b)
    levels = np.sort(np.concatenate([[0.0, 1.0], first.levels[:-1], second.levels[:-1]]))
    middle = (levels[1:] + levels[:-1]) / 2
    return float(np.diff(levels) @ np.abs(first(middle) - second(middle)) ** p)


def transport_on_circle(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, p: float) -> float:
    """W_p^p = min_θ ∫₀¹ |F_a⁻¹(q) − F_b⁻¹(q + θ)|^p dq on the circle of circumference 1, with F⁻¹(q + 1) = F⁻¹(q) + 1.

    The integral is convex and piecewise linear in θ; its slope is summed exactly, and the minimum is found by
    bisection on the sign of the slope down to round-off.

    Args:
        x: (n,) atoms of the first law in [0, 1), in any order.
        a: (n,) their masses, summing to 1.
        y: (m,) atoms of the second law in [0, 1).
        b: (m,) their masses, summing to 1.
        p: power of the distance, p ≥ 1.

    Source: Delon, Salomon, Sobolevskii, Fast transport optimization for Monge costs on the circle,
        SIAM J. Appl. Math. 70 (2010).
    """
    first, second = _Quantiles(x, a), _Quantiles(y, b)
    after = np.append(second.atoms[1:], second.atoms[0] + 1)  # the atom that follows each of the second law

    def cost(theta: float) -> float:
        jumps = np.concatenate([first.levels, np.mod(second.levels - theta, 1.0), [0.0, 1.0]])
        levels = np.clip(np.sort(jumps), 0.0, 1.0)
        middle = (levels[1:] + levels[:-1]) / 2
        return float(np.diff(levels) @ np.abs(first(middle) - second(middle + theta)) ** p)

    def slope(theta: float) -> float:
        here = first(second.levels - theta)
        return float(np.sum(np.abs(here - after) ** p - np.abs(here - second.atoms) ** p))

    low, high = -1.0, 1.0
    while high - low > 1e-15:
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) >= 0 else (middle, high)
    return min(cost(theta) for theta in (low, high, 0.0))  # 0 so that a law is at distance 0 from itself


class _Quantiles:
    """The quantile function of a discrete law; beyond [0, 1] it goes on round the circle."""

    def __init__(self, atoms: np.ndarray, masses: np.ndarray) -> None:
        order = np.argsort(atoms, kind="stable")
        self.atoms = atoms[order]
        self.levels = np.cumsum(masses[order])
        self.levels /= self.levels[-1]

    def __call__(self, q: np.ndarray) -> np.ndarray:
        turns = np.floor(q)
        place = np.searchsorted(self.levels, q - turns, side="left")
        return self.atoms[np.minimum(place, len(self.atoms) - 1)] + turns
