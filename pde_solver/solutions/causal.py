"""Causal attention and independent uniform tokens on a sphere: response to an earlier token, and correlations.

Token i of N has the label s = i/N in (0, 1], its position. It attends to the tokens before it, with weights ∝ e^{λs′}
(ALiBi of slope λ ≥ 0; λ = 0 is the plain average). From independent uniform tokens the law of each stays uniform, but
pairs become correlated at order 1/N. Degree l of the correlation depends on d, β, l, t and on the normaliser through
one number only, c = a_l t with the rate a_l of `response_rate`. Here t is the depth of x' = P_x ∫ e^{β⟨x,y⟩} y (/ Z);
the depth of arXiv:2605.09213 is t/β (unnormalised attention on the circle).

With K the Volterra operator (Ku)(s) = ∫₀^s k_λ(s, s′) u(s′) ds′, the response is e^{cK} − I and the correlation of two
tokens at depths t and t′ is e^{cK} (e^{c′K})ᵀ − I. Both are taken off the diagonal: s ≠ s′.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exprel, i1e, j1

from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold
from pde_solver.models.attention import Attention
from pde_solver.models.terms import Term
from pde_solver.solutions.growth_rates import growth_rate


def graphon(s: ArrayLike, source: ArrayLike, slope: ArrayLike = 0.0) -> np.ndarray:
    """k_λ(s, s′) = e^{λs′} / P(s) for s′ ≤ s, 0 for s′ > s, with P(s) = (e^{λs} − 1)/λ, and P(s) = s for λ = 0.

    It says how much the token at s attends to the one at s′; ∫₀^s k_λ(s, s′) ds′ = 1.

    Args:
        s: label of the token that attends, in (0, 1].
        source: s′, label of the token attended to, in (0, 1].
        slope: λ ≥ 0; all three broadcast.

    Raises:
        InputError: if a label is outside (0, 1], or λ is negative.

    Source: arXiv:2605.09213.
    """
    s, source, slope = _labels("graphon", s, source, slope)
    # e^{−λ(s−s′)} and (1 − e^{−λs})/λ, so that no λ overflows and λ → 0 is not 0/0
    weights = np.exp(-slope * np.abs(s - source)) / (s * exprel(-slope * s))
    return np.where(source <= s, weights, 0.0)


def distance(s: ArrayLike, source: ArrayLike, slope: ArrayLike = 0.0) -> np.ndarray:
    """Y(s, s′) = log(P(s)/P(s′)), P(s) = (e^{λs} − 1)/λ; log(s/s′) for λ = 0, and −Y(s′, s) for s < s′.

    Args:
        s: label in (0, 1].
        source: s′, label in (0, 1].
        slope: λ ≥ 0; all three broadcast.

    Raises:
        InputError: if a label is outside (0, 1], or λ is negative.

    Source: the variable of the closed form of arXiv:2605.09213.
    """
    s, source, slope = _labels("distance", s, source, slope)
    gap, first = np.abs(s - source), np.minimum(s, source)
    # P(s)/P(s′) − 1 = e^{λ(s−s′)} (1 − e^{−λ(s−s′)}) / (1 − e^{−λs′}): nothing cancels or overflows in its logarithm
    with np.errstate(divide="ignore"):
        excess = slope * gap + np.log(gap * exprel(-slope * gap)) - np.log(first * exprel(-slope * first))
    return np.sign(s - source) * np.logaddexp(0.0, excess)


def response_rate(sphere: Manifold, attention: Term, degree: int) -> float:
    """a_l in c = a_l t: softmax l(l+d−2)/β · I_{l+ν}(β)/I_ν(β), unnormalised l(l+d−2)/β · Γ(ν+1) (2/β)^ν I_{l+ν}(β).

    Here ν = d/2 − 1. It is the growth rate of a small harmonic about the uniform law, `growth_rate` without diffusion.
    Rates of several heads add up, whatever the signs of their weights, if all heads share one slope λ. Heads with
    slopes of their own have Volterra operators that do not commute: no single c describes them.

    Args:
        sphere: S^{d−1}.
        attention: a head with Q = K = I and V a multiple of I, or a sum of such heads.
        degree: l ≥ 1.

    Raises:
        InputError: if a head is no such head, the manifold no sphere, or the degree no whole number ≥ 1.

    Source: arXiv:2605.09213 for unnormalised attention on the circle, n² I_n(β) in its depth; else derived for this
    project.
    """
    return sum(growth_rate(sphere, head, degree) for head in heads("response_rate", attention))


def heads(where: str, attention: Term) -> tuple[Attention, ...]:
    """The heads of which the velocity is the sum.

    Args:
        where: the function that asks, for the message.
        attention: a head or a sum of heads.

    Raises:
        InputError: if there is a term that is no head.
    """
    found = []
    for term in attention.summands() if isinstance(attention, Term) else (attention,):
        if not isinstance(term, Attention):
            raise InputError(f"{where}: known for Attention heads and sums of them only, found {term}.")
        found.append(term)
    return tuple(found)


def response_profile(c: ArrayLike, distance: ArrayLike) -> np.ndarray:
    """h(c, Y) = Σ_{m≥1} c^m Y^{m−1} / (m! (m−1)!) = √(c/Y) I₁(2√(cY)); −√(|c|/Y) J₁(2√(|c|Y)) for c < 0.

    It solves ∂_c h = 1 + ∫₀^Y h, h(0, Y) = 0. It overflows for cY > 1.2e5: then take `log_response_profile`.

    Args:
        c: a_l t of either sign; negative for heads that repel.
        distance: Y ≥ 0; both broadcast.

    Source: arXiv:2605.09213; c < 0 derived for this project.
    """
    c, distance = np.asarray(c, dtype=float), np.asarray(distance, dtype=float)
    x = 2 * np.sqrt(np.abs(c) * distance)
    with np.errstate(invalid="ignore", divide="ignore"):
        bessel = np.where(c < 0, j1(x), i1e(x) * np.exp(np.where(c < 0, 0.0, x)))
        return c * np.where(x > 0, 2 * bessel / x, 1.0)


def log_response_profile(c: ArrayLike, distance: ArrayLike) -> np.ndarray:
    """log h(c, Y) of `response_profile`, which overflows for no c and Y; −∞ for c = 0.

    Args:
        c: a_l t ≥ 0.
        distance: Y ≥ 0; both broadcast.

    Raises:
        InputError: if c is negative, as h then changes sign.

    Source: arXiv:2605.09213.
    """
    c, distance = require_growth("log_response_profile", c), np.asarray(distance, dtype=float)
    x = 2 * np.sqrt(c * distance)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(c) + np.log(np.where(x > 0, 2 * i1e(x) / x, 1.0)) + x


def response(c: ArrayLike, s: ArrayLike, source: ArrayLike, slope: ArrayLike = 0.0) -> np.ndarray:
    """g(c; s, s′) = k_λ(s, s′) h(c, Y(s, s′)) = lim N E P_l(⟨x_i(t), x_j(0)⟩), how token s remembers where s′ began.

    P_l is the Gegenbauer polynomial with P_l(1) = 1: cos lθ on the circle. The law of x_i(t) given x_j(0) = y has the
    density 1 + N⁻¹ Σ_l dim_l g(a_l t; s, s′) P_l(⟨x, y⟩) relative to the uniform law. The sum rule is
    ∫₀^s g ds′ = e^c − 1. At s′ = s the value is the limit from s′ < s.

    Args:
        c: a_l t of either sign.
        s: label of the token at depth t, in (0, 1].
        source: s′, label of the token at depth 0, in (0, 1].
        slope: λ ≥ 0; all broadcast.

    Returns:
        g, 0 for s′ > s.

    Raises:
        InputError: if a label is outside (0, 1], or λ is negative.

    Source: arXiv:2605.09213 on the circle at s = 1; other labels and spheres derived for this project.
    """
    weights = graphon(s, source, slope)
    return weights * response_profile(c, np.maximum(distance(s, source, slope), 0.0))


def equal_time_correlation(c: ArrayLike, s: ArrayLike, source: ArrayLike, slope: ArrayLike = 0.0) -> np.ndarray:
    """G(c; s, s′) = lim N E P_l(⟨x_i(t), x_j(t)⟩) = B(c, c, Y)/P(s) + 2λ e^{−Y} B(c/2, c/2, 2Y) for s′ ≤ s.

    It is symmetric in s and s′; B is `correlation_profile`. At s = s′ the value is the limit of two close tokens,
    without what a token has in common with itself; for λ = 0 it is (c/s) e^{2c} (I₀(2c) − I₁(2c)).

    Args:
        c: a_l t ≥ 0.
        s: label in (0, 1].
        source: s′, label in (0, 1].
        slope: λ ≥ 0; all broadcast.

    Raises:
        InputError: if a label is outside (0, 1], or c or λ is negative.

    Source: derived for this project.
    """
    return two_time_correlation(c, c, s, source, slope)


def two_time_correlation(
    c: ArrayLike, c_source: ArrayLike, s: ArrayLike, source: ArrayLike, slope: ArrayLike = 0.0
) -> np.ndarray:
    """G(c, c′; s, s′) = lim N E P_l(⟨x_i(t), x_j(t′)⟩) = B(c, c′, Y)/P(s) + 2λ e^{−Y} B(c/2, c′/2, 2Y) for s′ ≤ s.

    For s < s′ the two tokens change places with their depths. c′ = 0 gives `response`, c′ = c the correlation at one
    depth. For c ≠ c′ it jumps across s = s′, where the value is the limit from s′ < s.

    Args:
        c: a_l t ≥ 0, of the token at s.
        c_source: c′ = a_l t′ ≥ 0, of the token at s′.
        s: label in (0, 1].
        source: s′, label in (0, 1].
        slope: λ ≥ 0; all broadcast.

    Raises:
        InputError: if a label is outside (0, 1], or c, c′ or λ is negative.

    Source: derived for this project.
    """
    where = "two_time_correlation"
    s, source, slope = _labels(where, s, source, slope)
    c, c_source = require_growth(where, c), require_growth(where, c_source)
    later, earlier = np.where(source <= s, c, c_source), np.where(source <= s, c_source, c)
    last, y = np.maximum(s, source), np.abs(distance(s, source, slope))
    with np.errstate(divide="ignore"):
        log_volume = slope * last + np.log(last * exprel(-slope * last))  # log P of the later token
        # initial noise is white in s, which weighs P by 1 + λP: one term for each part
        plain = np.exp(_log_correlation_profile(later, earlier, y) - log_volume)
        tilted = np.exp(np.log(2 * slope) - y + _log_correlation_profile(later / 2, earlier / 2, 2 * y))
    return plain + tilted


def correlation_profile(c: ArrayLike, c_source: ArrayLike, distance: ArrayLike) -> np.ndarray:
    """B(c, c′, Y) = (1/2πi) ∮ exp(c/z + c′/(1−z) + zY) dz over |z| < 1; at one depth c = c′.

    B = e^{c′} Σ_{n≥0} L_n(c′) J_n, with J_n = (c/Y)^{(n+1)/2} I_{n+1}(2√(cY)) and the Laguerre polynomials
    L_n(c′) = L_n^{(−1)}(−c′). All terms are positive. B(c, 0, Y) = h(c, Y), B(c, c, 0) = c e^{2c} (I₀(2c) − I₁(2c)).

    Args:
        c: a_l t ≥ 0, of the later token.
        c_source: c′ ≥ 0, of the earlier token.
        distance: Y ≥ 0; all broadcast.

    Raises:
        InputError: if c or c′ is negative.

    Source: derived for this project.
    """
    c, c_source = require_growth("correlation_profile", c), require_growth("correlation_profile", c_source)
    with np.errstate(divide="ignore"):
        return np.exp(_log_correlation_profile(c, c_source, np.asarray(distance, dtype=float)))


def _log_correlation_profile(c: np.ndarray, c_source: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """log B = c′ + log h + log(1 + c′ r₁ (1 + q₁ r₂ (1 + q₂ r₃ (1 + …)))), r_n = J_n/J_{n−1}, q_n = L_{n+1}/L_n.

    Ratios follow from positive recurrences, r_n = c/(n + 1 + Y r_{n+1}) downwards and q_n = 1 + e_n,
    (n + 1) e_n = (n − 1) e_{n−1}/(1 + e_{n−1}) + c′ upwards, so that every digit survives.
    """
    # q_n < 1 + c′/n + √(c′/n) and r_n < c/n: from here on terms halve at least, and so does the error of r
    most, source_most, far = (float(np.max(a, initial=0.0)) for a in (c, c_source, distance))
    halving = max(6 * most, (6 * most) ** (2 / 3) * source_most ** (1 / 3), np.sqrt(6 * most * max(source_most, far)))
    count = int(np.ceil(halving)) + 60
    growth = [np.ones_like(c_source), c_source / 2]  # e_n; e_0 only fills the list
    for n in range(2, count):
        growth.append(((n - 1) * growth[-1] / (1 + growth[-1]) + c_source) / (n + 1))
    ratio: np.ndarray = c / (count + 1)
    tail = np.ones(np.broadcast_shapes(c.shape, c_source.shape, distance.shape))
    for n in range(count, 1, -1):
        tail = 1 + (1 + growth[n - 1]) * ratio * tail
        ratio = c / (n + distance * ratio)
    return c_source + log_response_profile(c, distance) + np.log1p(c_source * ratio * tail)


def require_growth(where: str, c: ArrayLike) -> np.ndarray:
    """The array c, if nowhere negative.

    Args:
        where: the function that asks, for the message.
        c: a_l t.

    Raises:
        InputError: if c is negative or no number somewhere.
    """
    c = np.asarray(c, dtype=float)
    if not np.all(c >= 0):
        raise InputError(
            f"{where}: c = a_l t must be ≥ 0, found {np.min(c):g}; for heads that repel `response` is known."
        )
    return c


def _labels(where: str, s: ArrayLike, source: ArrayLike, slope: ArrayLike) -> tuple[np.ndarray, ...]:
    """The labels and the slope as arrays, if they are in their ranges."""
    s, source, slope = (np.asarray(a, dtype=float) for a in (s, source, slope))
    for name, label in (("s", s), ("source", source)):
        allowed = (label > 0) & (label <= 1)
        if not np.all(allowed):
            raise InputError(f"{where}: {name} is a position in (0, 1], found {label[~allowed][0]:g}.")
    allowed = (slope >= 0) & np.isfinite(slope)
    if not np.all(allowed):
        raise InputError(f"{where}: slope must be a finite number ≥ 0, found {slope[~allowed][0]:g}.")
    return s, source, slope
