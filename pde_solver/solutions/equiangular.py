"""Tokens on a sphere with one inner product for all pairs: attention keeps them so, and one number tells everything."""

import numpy as np
from scipy.integrate import solve_ivp

from pde_solver.densities.arguments import number, whole_number
from pde_solver.errors import InputError
from pde_solver.models.attention import Attention
from pde_solver.solutions.isotropic_head import isotropic_head


def equiangular_rate(inner_product: float, attention: Attention, tokens: int | None = None) -> float:
    """γ', where ⟨x_i, x_j⟩ = γ for all i ≠ j.

    Softmax: γ' = 2 s e^{bγ} (1 − γ)((n − 1)γ + 1) / (e^b + (n − 1) e^{bγ}), and 2 s γ(1 − γ) for n → ∞;
    unnormalised: γ' = (2 s / n) e^{bγ−c} (1 − γ)((n − 1)γ + 1), and 2 s e^{bγ−c} γ(1 − γ) for n → ∞.
    Here s = a v and b = β q k for Q = q I, K = k I, V = v I and weight a.

    Args:
        inner_product: γ in [−1/(n−1), 1]; [0, 1] for n → ∞.
        attention: a head with Q, K and V multiples of I.
        tokens: n ≥ 2; None is the limit n → ∞.

    Raises:
        InputError: if the head is no such head, or a number out of its range.

    Source: derived for this project; the setting is that of arXiv:2312.10794.
    """
    head = isotropic_head("equiangular_rate", attention)
    gap, share = _gap_and_share("equiangular_rate", inner_product, tokens)
    return gap * _decay(gap, *head, share)


def equiangular_gap(t: float, inner_product: float, attention: Attention, tokens: int | None = None) -> float:
    """1 − γ(t), right to eleven digits however small it is: its logarithm is what is integrated.

    For softmax and n → ∞: 1 − γ = (1 − γ₀) e^{−2st} / (γ₀ + (1 − γ₀) e^{−2st}).

    Args:
        t: depth ≥ 0.
        inner_product: γ₀, as in `equiangular_rate`.
        attention: a head with Q, K and V multiples of I.
        tokens: n ≥ 2; None is the limit n → ∞.

    Raises:
        InputError: if the head is no such head, or a number out of its range.

    Source: derived for this project; the setting is that of arXiv:2312.10794.
    """
    strength, exponent, log_scale = isotropic_head("equiangular_gap", attention)
    gap, share = _gap_and_share("equiangular_gap", inner_product, tokens)
    t = number("equiangular_gap: t", t, least=0)
    if gap == 0 or t == 0:
        return gap
    if tokens is None and log_scale is None:
        # divided by the larger of two exponentials, so that neither overflows
        shrink = np.exp(-2 * abs(strength) * t)
        ours, others = (gap * shrink, 1 - gap) if strength > 0 else (gap, (1 - gap) * shrink)
        return float(ours / (others + ours))

    def slope(_t: float, log_gap: np.ndarray) -> np.ndarray:
        return np.array([-_decay(float(np.exp(log_gap[0])), strength, exponent, log_scale, share)])

    result = solve_ivp(slope, (0, t), [np.log(gap)], method="DOP853", rtol=1e-13, atol=1e-14)
    return float(np.exp(result.y[0, -1]))


def _decay(gap: float, strength: float, exponent: float, log_scale: float | None, share: float) -> float:
    """γ' / (1 − γ), written in 1 − γ and the share q = 1 − 1/n of all others, so that n may be infinite."""
    if log_scale is None:
        # e^{bγ} cancels against the denominator but for e^{b(1−γ)}, which overflows for huge b: then nothing moves
        with np.errstate(over="ignore"):
            itself = (1 - share) * np.exp(exponent * gap) if share < 1 else 0.0
        return float(2 * strength * (1 - share * gap) / (share + itself))
    return float(2 * strength * np.exp(exponent - log_scale - exponent * gap) * (1 - share * gap))


def _gap_and_share(where: str, inner_product: float, tokens: int | None) -> tuple[float, float]:
    """1 − γ and q = 1 − 1/n, if there are such tokens."""
    share = 1.0
    if tokens is not None:
        tokens = whole_number(f"{where}: tokens", tokens)
        if tokens < 2:
            raise InputError(f"{where}: tokens must be ≥ 2, or None for infinitely many, found {tokens}.")
        share = 1 - 1 / tokens
    inner_product = number(f"{where}: inner_product", inner_product)
    least = 0.0 if tokens is None else -1 / (tokens - 1)
    if not least <= inner_product <= 1:
        count = "infinitely many" if tokens is None else tokens
        raise InputError(
            f"{where}: the inner product of {count} tokens, pair by pair, lies in [{least:g}, 1], "
            f"found {inner_product:g}."
        )
    return 1 - inner_product, share
