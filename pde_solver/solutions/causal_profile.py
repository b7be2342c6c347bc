"""Where in its context the last token of causal attention remembers best: retrieval profile, primacy, recency.

The last token, s = 1, is decoded to the nearest of M codewords on the circle; the profile S_t(σ₀) says how much more
often than by chance it is the codeword that the token at σ₀ began with. Depth is that of `causal`: the depth of
arXiv:2605.09213 is t/β.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import i1e, ive, j1, jv

from pde_solver.densities.arguments import number, whole_number
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.models.terms import Term
from pde_solver.solutions.causal import distance, heads, response, response_rate
from pde_solver.solutions.growth_rates import growth_rate

CIRCLE = Sphere(2)


def retrieval_profile(
    t: ArrayLike,
    position: ArrayLike,
    slope: float,
    codebook: int | None,
    attention: Term,
    sphere: Manifold = CIRCLE,
    weights: ArrayLike | None = None,
) -> np.ndarray:
    """S_t(σ₀) = Σ_{l≥1} ρ_l g(a_l t; 1, σ₀), on the circle with ρ_n = e^{−π²n²/(2M²)}.

    The sum ends where the rest is below rounding. Heads add up if they share the slope, see `response_rate`.

    Args:
        t: depth ≥ 0.
        position: σ₀ in (0, 1]; broadcasts with t.
        slope: λ ≥ 0.
        codebook: M ≥ 1, the number of codewords; None where weights are given.
        attention: a head with Q = K = I and V a multiple of I, or a sum of such heads.
        sphere: S^{d−1}; on other spheres than the circle give weights.
        weights: ρ_1, ρ_2, … up to the last that is not zero, with the multiplicity dim_l where it is meant; None is the
            codebook's.

    Returns:
        S, of the shape of t and position.

    Raises:
        InputError: if neither or both of codebook and weights are given, or an argument is out of its range.

    Source: arXiv:2605.09213 for unnormalised attention on the circle; other heads and spheres derived for this project.
    """
    weights, rates = retrieval_modes("retrieval_profile", codebook, attention, sphere, weights)
    t, position = np.broadcast_arrays(_depth("retrieval_profile", t), np.asarray(position, dtype=float))
    return np.tensordot(weights, response(np.multiply.outer(rates, t), 1.0, position, slope), 1)


def soft_accuracy(
    t: ArrayLike, position: ArrayLike, count: int, slope: float, codebook: int, attention: Term
) -> np.ndarray:
    """√(π/2)/M + √(2π)/(MN) S_t(σ₀), the smoothed probability to decode the token at σ₀, up to o(1/N).

    Args:
        t: depth ≥ 0.
        position: σ₀ in (0, 1]; broadcasts with t.
        count: N ≥ 1, the number of tokens.
        slope: λ ≥ 0.
        codebook: M ≥ 1, the number of codewords.
        attention: a head with Q = K = I and V a multiple of I, or a sum of such heads; tokens on the circle.

    Raises:
        InputError: if an argument is out of its range.

    Source: arXiv:2605.09213.
    """
    count = _at_least_one("soft_accuracy: count", count)
    profile = retrieval_profile(t, position, slope, codebook, attention)
    return np.sqrt(np.pi / 2) / codebook + np.sqrt(2 * np.pi) / (codebook * count) * profile


def recency_threshold(
    slope: float,
    codebook: int | None,
    attention: Term,
    sphere: Manifold = CIRCLE,
    weights: ArrayLike | None = None,
) -> float:
    """t* = 2(1 − e^{−λ}) Σ ρ_l a_l / Σ ρ_l a_l²: the profile rises towards the last token exactly for 0 < t < t*.

    Args:
        slope: λ ≥ 0; t* = 0 for λ = 0, where only the first tokens are remembered.
        codebook: as in `retrieval_profile`.
        attention: as in `retrieval_profile`.
        sphere: as in `retrieval_profile`.
        weights: as in `retrieval_profile`.

    Raises:
        InputError: as in `retrieval_profile`, or if the sum of ρ_l a_l is not positive.

    Source: derived for this project.
    """
    weights, rates = retrieval_modes("recency_threshold", codebook, attention, sphere, weights)
    slope = number("recency_threshold: slope", slope, least=0)
    growth = float(weights @ rates)
    if not growth > 0:
        raise InputError(f"recency_threshold: known for heads that attract only, found Σ ρ_l a_l = {growth:g}.")
    return -2 * float(np.expm1(-slope)) * growth / float(weights @ rates**2)


def u_shape_threshold(slope: float, attention: Term, sphere: Manifold = CIRCLE) -> float:
    """min(3 − √3, 2(1 − e^{−λ})) / sup_l a_l: up to this depth the profile is U-shaped, whatever the codebook.

    That is, for 0 < t ≤ this depth the profile diverges as σ₀ → 0, rises at σ₀ = 1, and has one minimum between. The
    condition is sufficient, not necessary: see `recency_threshold`.

    Args:
        slope: λ ≥ 0; for λ = 0 the depth is 0.
        attention: a head with Q = K = I and V a multiple of I, or a sum of such heads.
        sphere: S^{d−1}.

    Raises:
        InputError: if a head is no such head, the rates are nowhere positive, or λ is negative.

    Source: arXiv:2605.09213, Theorem on the U-shape, for unnormalised attention on the circle; else derived for this
    project.
    """
    slope = number("u_shape_threshold: slope", slope, least=0)
    rates = _rates("u_shape_threshold", attention, sphere, exponent=0.0)
    if not np.all(rates >= 0) or not np.any(rates):
        raise InputError("u_shape_threshold: known for heads that attract only, found rates that are not positive.")
    return min(3 - np.sqrt(3), -2 * float(np.expm1(-slope))) / float(np.max(rates))


def profile_minimum(
    t: float,
    slope: float,
    codebook: int | None,
    attention: Term,
    sphere: Manifold = CIRCLE,
    weights: ArrayLike | None = None,
) -> tuple[float, float]:
    """The position in (0, 1) that is remembered least, and S_t there: the lost middle of a U-shaped profile.

    It is the root of ∂S/∂σ₀, which has the sign of Σ ρ_l [(e^{λσ₀} − 1)(h_l − h_l′) − h_l′], h_l = h(a_l t, Y(1, σ₀)),
    ′ = ∂_Y. Signs are compared at 2048 positions, so that a minimum and a maximum closer than that escape.

    Args:
        t: depth ≥ 0.
        slope: λ ≥ 0.
        codebook: as in `retrieval_profile`.
        attention: as in `retrieval_profile`.
        sphere: as in `retrieval_profile`.
        weights: as in `retrieval_profile`.

    Returns:
        Position and value of the lowest minimum inside; nan, nan if there is none.

    Raises:
        InputError: as in `retrieval_profile`.

    Source: derived for this project.
    """
    t, slope = number("profile_minimum: t", t, least=0), number("profile_minimum: slope", slope, least=0)
    modes = retrieval_modes("profile_minimum", codebook, attention, sphere, weights)
    strength = float(np.max(np.abs(modes[1]), initial=0.0)) * t

    def rise(position: ArrayLike) -> np.ndarray:
        """∂S/∂σ₀ up to a positive factor, chosen so that neither large c nor large λ overflows."""
        y = distance(1.0, position, slope)
        c = np.multiply.outer(modes[1] * t, np.ones_like(y))
        shape, slant = _scaled_profile(c, y), _scaled_derivative(c, y)
        largest = np.exp(2 * (np.sqrt(np.abs(c) * y) * (c > 0) - np.sqrt(strength * y)))
        tilt = slope * np.asarray(position)
        return np.tensordot(modes[0], largest * (-np.expm1(-tilt) * (shape - slant) - np.exp(-tilt) * slant), 1)

    # geometric where the primacy is, even where the recency is
    positions = np.union1d(np.geomspace(1e-300, 1e-2, 1024), np.linspace(1e-2, 1, 1024))
    signs = np.sign(rise(positions))
    positions, signs = positions[signs != 0], signs[signs != 0]
    minima = [
        brentq(rise, positions[k], positions[k + 1], xtol=1e-300, rtol=4 * np.finfo(float).eps)
        for k in np.flatnonzero((signs[:-1] < 0) & (signs[1:] > 0))
    ]
    if not minima:
        return np.nan, np.nan
    values = retrieval_profile(t, minima, slope, codebook, attention, sphere, weights)
    lowest = int(np.argmin(values))
    return float(minima[lowest]), float(values[lowest])


def retrieval_modes(
    where: str, codebook: int | None, attention: Term, sphere: Manifold, weights: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """The weights ρ_l and the rates a_l of `retrieval_profile`, l = 1, 2, …, as far as they count.

    Args:
        where: the function that asks, for the message.
        codebook: as in `retrieval_profile`.
        attention: as in `retrieval_profile`.
        sphere: as in `retrieval_profile`.
        weights: as in `retrieval_profile`.

    Raises:
        InputError: if neither or both of codebook and weights are given, or one of them is out of its range.
    """
    if (codebook is None) == (weights is None):
        raise InputError(f"{where}: give either a codebook or weights, found {codebook!r} and {weights!r}.")
    if codebook is None:
        weights = np.asarray(weights, dtype=float)
        if weights.ndim != 1 or not weights.size or not np.all(np.isfinite(weights) & (weights >= 0)):
            raise InputError(f"{where}: weights must be a list of finite numbers ≥ 0, found {weights}.")
        return weights, np.array([response_rate(sphere, attention, n) for n in range(1, len(weights) + 1)])
    if sphere != CIRCLE:
        raise InputError(f"{where}: codewords lie on the circle, but tokens live on {sphere}; give weights.")
    exponent = np.pi**2 / (2 * _at_least_one(f"{where}: codebook", codebook) ** 2)
    rates = _rates(where, attention, sphere, exponent)
    return np.exp(-exponent * np.arange(1, len(rates) + 1) ** 2), rates


def _rates(where: str, attention: Term, sphere: Manifold, exponent: float) -> np.ndarray:
    """a_1, a_2, … up to the degree after which Σ e^{−exponent l²} g(a_l t; s, s′) has nothing above rounding.

    As g / c grows with c, the fastest degree p has g_l / a_l < g_p / a_p: ρ_l a_l ≪ ρ_p a_p leaves nothing at any t.
    """
    rates: list[float] = []
    fastest = weighted = 0.0
    while True:
        degree = len(rates) + 1
        each = [growth_rate(sphere, head, degree) for head in heads(where, attention)]
        rates.append(sum(each))
        speed, weight = sum(abs(rate) for rate in each), float(np.exp(-exponent * degree**2))
        if speed > fastest:
            fastest, weighted = speed, weight * speed
        elif weight * speed <= 2**-60 * weighted:
            return np.array(rates)


def _scaled_profile(c: np.ndarray, y: np.ndarray) -> np.ndarray:
    """h(c, Y) e^{−2√(cY)}; for c < 0 just h."""
    x = 2 * np.sqrt(np.abs(c) * y)
    with np.errstate(invalid="ignore", divide="ignore"):
        return c * np.where(x > 0, 2 * np.where(c < 0, j1(x), i1e(x)) / x, 1.0)


def _scaled_derivative(c: np.ndarray, y: np.ndarray) -> np.ndarray:
    """∂_Y h = (c/Y) I₂(2√(cY)), times e^{−2√(cY)}; for c < 0 just (|c|/Y) J₂(2√(|c|Y))."""
    x = 2 * np.sqrt(np.abs(c) * y)
    sign = np.where(c < 0, -1, 1)
    # I₂(x) e^{−x} / x² is 0/0 at 0; the next term of the series is x⁴/384
    series = c**2 / 2 * (1 + sign * x**2 / 12) * np.exp(-x * (c >= 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(x < 1e-3, series, 4 * c**2 * np.where(c < 0, jv(2, x), ive(2, x)) / x**2)


def _at_least_one(where: str, value: object) -> int:
    """A whole number ≥ 1."""
    count = whole_number(where, value)
    if count < 1:
        raise InputError(f"{where} must be ≥ 1, found {count}.")
    return count


def _depth(where: str, t: ArrayLike) -> np.ndarray:
    """The depth as an array, if nowhere negative."""
    t = np.asarray(t, dtype=float)
    if not np.all(np.isfinite(t) & (t >= 0)):
        raise InputError(f"{where}: t must be ≥ 0 and finite, found {t}.")
    return t
