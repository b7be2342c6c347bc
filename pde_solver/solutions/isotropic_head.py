"""Heads that turn with the tokens: Q, K and V are multiples of the identity."""

import numpy as np

from pde_solver.errors import InputError
from pde_solver.models.attention import Attention
from pde_solver.models.normalisers import Unnormalised


def isotropic_head(where: str, attention: Attention) -> tuple[float, float, float | None]:
    """The three numbers of the head x ↦ s ∫ e^{b⟨x, y⟩} y ν(dy) / Z on a sphere.

    s = a v and b = β q k for Q = q I, K = k I, V = v I; b < 0 where query and key have opposite signs. On a sphere
    L2 attention is softmax attention, as |Qx − Ky|² differs from −2⟨Qx, Ky⟩ by a constant.

    Args:
        where: the function that asks, for the message.
        attention: the head.

    Returns:
        s, b, and c of Z = e^c for unnormalised attention, None where the weights are normalised to one.

    Raises:
        InputError: if it is not one head, or a matrix is no multiple of the identity.
    """
    if not isinstance(attention, Attention):
        raise InputError(f"{where}: known for a single Attention head only, found {attention}.")
    query, key, value = (_multiple(matrix) for matrix in (attention.query, attention.key, attention.value))
    if query is None or key is None:
        raise InputError(f"{where}: known where Q and K are multiples of the identity only, found {attention}.")
    if value is None:
        raise InputError(f"{where}: known for V = v I only, found {attention}.")
    log_scale = attention.normaliser.log_scale if isinstance(attention.normaliser, Unnormalised) else None
    return attention.weight * value, attention.beta * query * key, log_scale


def _multiple(matrix: np.ndarray | None) -> float | None:
    """The number m with matrix = m I, if there is one."""
    if matrix is None:
        return 1.0
    m = float(matrix[0, 0])
    return m if np.array_equal(matrix, m * np.eye(len(matrix))) else None
