"""Equal clusters, equally spaced on the circle: they stand still, and small displacements grow or decay."""

import numpy as np

from pde_solver.densities.arguments import whole_number
from pde_solver.errors import InputError
from pde_solver.models.attention import Attention
from pde_solver.solutions.isotropic_head import isotropic_head


def inter_cluster_rates(clusters: int, attention: Attention) -> np.ndarray:
    """λ_k, such that clusters displaced by ε cos(2πjk/p) or ε sin(2πjk/p), j = 0, …, p − 1, move like ε e^{λ_k t}.

    λ_k = −(s/p) Σ_j f'(x_j)(1 − cos(k x_j)) / Z with x_j = 2πj/p, f(x) = sin x e^{b cos x},
    f' = e^{b cos x}(cos x − b sin² x), and Z = (1/p) Σ_j e^{b cos x_j} for softmax, e^c for unnormalised attention.
    Here s = a v and b = β q k for Q = q I, K = k I, V = v I and weight a; a query −I makes b negative.

    Args:
        clusters: p ≥ 1, each of mass 1/p.
        attention: a head with Q, K and V multiples of I.

    Returns:
        (p,): λ_k for k = 0, …, p − 1; λ_0 = 0 is the turn of all.

    Raises:
        InputError: if the head is no such head, or there is no cluster.

    Source: derived for this project.
    """
    angles, slopes = _angles_and_slopes("inter_cluster_rates", clusters, attention)
    modes = np.arange(len(angles))
    # 1 − cos = 2 sin² of half the angle, which does not cancel; whole turns are taken out first
    turns = np.outer(modes, modes) % len(angles)
    return -(2 * np.sin(np.pi * turns / len(angles)) ** 2) @ slopes


def intra_cluster_rate(clusters: int, attention: Attention) -> float:
    """λ, such that a token at distance ε of its cluster moves like ε e^{λt}: −(s/p) Σ_j f'(x_j) / Z.

    Args:
        clusters: p ≥ 1, each of mass 1/p.
        attention: a head with Q, K and V multiples of I.

    Raises:
        InputError: if the head is no such head, or there is no cluster.

    Source: derived for this project.
    """
    return -float(_angles_and_slopes("intra_cluster_rate", clusters, attention)[1].sum())


def _angles_and_slopes(where: str, clusters: int, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """x_j and s f'(x_j) / (p Z), (p,) each."""
    strength, exponent, log_scale = isotropic_head(where, attention)
    clusters = whole_number(f"{where}: clusters", clusters)
    if clusters < 1:
        raise InputError(f"{where}: there must be at least one cluster, found {clusters}.")
    angles = 2 * np.pi * np.arange(clusters) / clusters
    # relative to the largest weight, so that no b overflows
    weights = np.exp(exponent * np.cos(angles) - abs(exponent))
    slopes = strength * weights * (np.cos(angles) - exponent * np.sin(angles) ** 2)
    if log_scale is None:
        return angles, slopes / weights.sum()
    return angles, slopes * np.exp(abs(exponent) - log_scale) / clusters
