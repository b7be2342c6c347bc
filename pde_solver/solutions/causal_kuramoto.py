"""The exact nonlinear solution of causal attention at β = 0 on the circle: Poisson kernels, one for each label."""

from collections.abc import Callable

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import exprel

from pde_solver.densities.arguments import number
from pde_solver.errors import InputError

AGREEMENT = 1e-12
MOST_NODES = 256


def causal_first_moment(
    t: ArrayLike, s: ArrayLike, initial: Callable[[np.ndarray], np.ndarray], slope: float = 0.0
) -> np.ndarray:
    """α(t, s) = ∫ e^{iθ} f(t, s, dθ), where f(t, s, ·) is the Poisson kernel of parameter α: right to 1e-11.

    ∂ₜα = (m − m̄ α²)/2, m(t, s) = ∫₀^s k_λ(s, s′) α(t, s′) ds′, with the weights k_λ of `graphon`. For α₀ that does not
    depend on s, α = α₀ / √((1 − |α₀|²) e^{−t} + |α₀|²). At β = 0 softmax and unnormalised attention are the same.

    The labels are Chebyshev points; their number doubles until the values at s do not move by 1e-12.

    Args:
        t: depths ≥ 0, a number or (T,) in ascending order.
        s: labels in [0, 1], a number or (S,).
        initial: α₀, a smooth function of labels (n,): (n,), real or complex, |α₀| < 1.
        slope: λ ≥ 0.

    Returns:
        α of shape (T, S), without the axes of numbers; real for real α₀.

    Raises:
        InputError: if |α₀| ≥ 1, a depth or label is out of its range, or α₀ is not smooth enough.

    Source: derived for this project; for one label it is the invariant manifold of Ott and Antonsen,
    Chaos 18 (2008) 037113, arXiv:0806.0004.
    """
    slope = number("causal_first_moment: slope", slope, least=0)
    depths, labels = np.atleast_1d(np.asarray(t, dtype=float)), np.atleast_1d(np.asarray(s, dtype=float))
    if depths.ndim != 1 or not np.all(np.diff(depths, prepend=0.0) >= 0) or not np.all(np.isfinite(depths)):
        raise InputError(f"causal_first_moment: t must be depths ≥ 0 in ascending order, found {t!r}.")
    if labels.ndim != 1 or not np.all((labels >= 0) & (labels <= 1)):
        raise InputError(f"causal_first_moment: s must be labels in [0, 1], found {s!r}.")
    nodes, coarse = 16, None
    while nodes <= MOST_NODES:
        fine = _collocation(depths, labels, initial, slope, nodes)
        if coarse is not None and np.max(np.abs(fine - coarse), initial=0.0) <= AGREEMENT:
            return fine.reshape(np.shape(t) + np.shape(s))
        nodes, coarse = 2 * nodes, fine
    raise InputError(
        f"causal_first_moment: {MOST_NODES} nodes do not suffice to {AGREEMENT:g}; initial must be a smooth function "
        "of the label."
    )


def _collocation(
    depths: np.ndarray, labels: np.ndarray, initial: Callable[[np.ndarray], np.ndarray], slope: float, nodes: int
) -> np.ndarray:
    """α at all depths and labels, from α at the Chebyshev points, (T, S)."""
    points = (chebpts1(nodes) + 1) / 2
    # from values at the points to coefficients of Chebyshev polynomials
    coefficients = np.linalg.inv(_chebyshev(points, nodes))
    average = _average(points, slope, nodes) @ coefficients
    alpha = np.asarray(initial(points)) + np.zeros(nodes)
    if alpha.shape != (nodes,) or not np.all(np.abs(alpha) < 1):
        raise InputError("causal_first_moment: initial must give one |α₀| < 1 for each label.")

    def rate(_t: float, alpha: np.ndarray) -> np.ndarray:
        m = average @ alpha
        return (m - np.conj(m) * alpha**2) / 2

    rows, start = [], 0.0
    for depth in depths:
        if depth > start:
            alpha = solve_ivp(rate, (start, depth), alpha, method="DOP853", rtol=1e-13, atol=1e-15).y[:, -1]
            start = depth
        rows.append(_chebyshev(labels, nodes) @ coefficients @ alpha)
    return np.array(rows)


def _average(points: np.ndarray, slope: float, nodes: int) -> np.ndarray:
    """∫₀^s k_λ(s, s′) T_j(2s′ − 1) ds′ at s = points: (nodes, nodes). With s′ = s v the integrand is smooth in v."""
    v, weights = leggauss(nodes)
    v, weights = (v + 1) / 2, weights / 2
    kernel = np.exp(-slope * np.outer(points, 1 - v)) / exprel(-slope * points)[:, None]
    return np.einsum("q,sq,sqj->sj", weights, kernel, _chebyshev(np.outer(points, v), nodes))


def _chebyshev(s: np.ndarray, nodes: int) -> np.ndarray:
    """T_j(2s − 1) for j < nodes: (..., nodes)."""
    return chebvander(2 * s - 1, nodes - 1)
