"""Growth rates of small harmonics about the uniform law on a sphere, and the noise that stops them."""

import numpy as np
from scipy.special import gamma, hyp0f1, ive

from pde_solver.densities.arguments import number, require_sphere, whole_number
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.models.attention import Attention
from pde_solver.models.normalisers import Unnormalised


def kernel_coefficient(sphere: Sphere, beta: float, degree: int) -> float:
    """c_l e^{−β}, where ∫ e^{β⟨x, y⟩} Y_l(y) σ(dy) = c_l Y_l(x) for every harmonic Y_l of degree l.

    Here σ is the uniform law, of mass one; c_l = Γ(ν+1) (2/β)^ν I_{l+ν}(β), ν = d/2 − 1. The factor e^{−β} is there so
    that no β overflows.

    Args:
        sphere: S^{d−1}.
        beta: β ≥ 0.
        degree: l ≥ 0.

    Source: the Funk–Hecke formula; C. Müller, Spherical Harmonics (1966).
    """
    return _scaled(sphere, beta, degree) * (beta / 2) ** degree if beta < 1 else _scaled(sphere, beta, degree)


def growth_rate(sphere: Manifold, attention: Attention, degree: int, diffusion: float = 0.0) -> float:
    """λ_l, such that a small harmonic of degree l on the uniform law grows like e^{λ_l t}, whatever its order.

    λ_l = l(l+d−2) (a v c_l / (β c_0) − κ) for softmax (and, on a sphere, L2) attention, V = v I, weight a;
    c_l e^{−c} / β in place of c_l / (β c_0) for unnormalised attention with Z = e^c.

    Args:
        sphere: S^{d−1}.
        attention: a head with Q = K = I and V a multiple of I.
        degree: l ≥ 1.
        diffusion: κ ≥ 0.

    Raises:
        InputError: if the head is no such head, the manifold no sphere, or a number out of its range.

    Source: derived for this project; the structure is that of Bruno et al. (arXiv:2410.23228).
    """
    sphere = require_sphere("growth_rate", sphere, instead="GaussianClosure")
    degree = whole_number("growth_rate: degree", degree)
    if degree < 1:
        raise InputError(f"growth_rate: degree must be ≥ 1, as mass is conserved, found {degree}.")
    diffusion = number("growth_rate: diffusion", diffusion, least=0)
    laplacian = degree * (degree + sphere.ambient_dimension - 2)
    return laplacian * (_attention_part(sphere, attention, degree) - diffusion)


def critical_noise(sphere: Manifold, attention: Attention) -> float:
    """κ_c, the diffusion above which the uniform law is linearly stable; degree one is the last to give way.

    κ_c = a v c_1 / (β c_0) for softmax, a v c_1 e^{−c} / β for unnormalised attention; 0 where attention itself damps.

    Args:
        sphere: S^{d−1}.
        attention: a head with Q = K = I and V a multiple of I.

    Raises:
        InputError: if the head is no such head, or the manifold no sphere.

    Source: derived for this project.
    """
    sphere = require_sphere("critical_noise", sphere, instead="GaussianClosure")
    return max(_attention_part(sphere, attention, 1), 0.0)


def _attention_part(sphere: Sphere, attention: Attention, degree: int) -> float:
    """a v c_l / (β c_0), or a v c_l e^{−c} / β."""
    strength = attention.weight * _multiple_of_identity(attention)
    beta = attention.beta
    # c_l / β at β → 0 comes from the power series, where one factor β is taken out by hand
    over_beta = _scaled(sphere, beta, degree)
    over_beta *= (beta / 2) ** (degree - 1) / 2 if beta < 1 else 1 / beta
    if isinstance(attention.normaliser, Unnormalised):
        return strength * over_beta * float(np.exp(beta - attention.normaliser.log_scale))
    return strength * over_beta / _scaled(sphere, beta, 0)


def _scaled(sphere: Sphere, beta: float, degree: int) -> float:
    """c_l e^{−β}; for β < 1 without the factor (β/2)^l, as Bessel functions over powers of β are 0/0 at β = 0."""
    nu = sphere.ambient_dimension / 2 - 1
    if beta < 1:
        series = hyp0f1(degree + nu + 1, beta**2 / 4) * np.exp(-beta)
        return float(gamma(nu + 1) / gamma(degree + nu + 1) * series)
    return float(gamma(nu + 1) * (2 / beta) ** nu * ive(degree + nu, beta))


def _multiple_of_identity(attention: Attention) -> float:
    """v with V = v I, where Q = K = I; nothing else has such rates."""
    if attention.query is not None or attention.key is not None:
        raise InputError(f"growth_rate: known for Q = K = I only, found {attention}.")
    if attention.value_multiple is None:
        raise InputError(f"growth_rate: known for V = v I only, found {attention}.")
    return attention.value_multiple
