"""Gaussian tokens on the line through discrete softmax layers: the variance collapses doubly exponentially, or not."""

import numpy as np

from pde_solver.densities.arguments import number, whole_number
from pde_solver.errors import InputError
from pde_solver.models.attention import Attention
from pde_solver.models.normalisers import Softmax


def attention_layers_log_variance(attention: Attention, variance: float, layers: int) -> np.ndarray:
    """ln s_l for tokens N(m, s) under layers of pure attention, x ↦ a V (m + s A x) with A = β QᵀK.

    s_{l+1} = g² s_l³ with g = a V A, so |g| s_l = (|g| s₀)^{3^l}: doubly exponential collapse where |g| s₀ < 1. The logarithm is
    returned, as the variance itself soon leaves the floats.

    Args:
        attention: a softmax head on the line; Q and K may have several rows.
        variance: s₀ > 0.
        layers: how many, ≥ 0.

    Returns:
        (layers + 1,): ln s_l for l = 0, …, layers; −∞ from l = 1 on where g = 0.

    Raises:
        InputError: if the head is no softmax head on the line, or a number out of its range.

    Source: derived for this project.
    """
    where = "attention_layers_log_variance"
    gain, start, layers = _arguments(where, attention, variance, layers)
    if gain == 0:
        return np.concatenate([[start], np.full(layers, -np.inf)])
    log_gain = np.log(abs(gain))
    # l = 0 is s₀ itself, to the last bit
    growth = 3.0 ** np.arange(layers + 1)
    return start + (growth - 1) * (log_gain + start)


def residual_layers_log_variance(attention: Attention, variance: float, layers: int, step: float = 1.0) -> np.ndarray:
    """ln s_l for tokens N(m, s) under residual layers, x ↦ x + h (attention of x).

    s_{l+1} = s_l (1 + h g s_l)² with g = a V β QᵀK: growth where g > 0; where g < 0 and h|g| s₀ < 1 no collapse, but
    s_l ∼ 1 / (2 h |g| l).

    Args:
        attention: a softmax head on the line; Q and K may have several rows.
        variance: s₀ > 0.
        layers: how many, ≥ 0.
        step: h > 0.

    Returns:
        (layers + 1,): ln s_l for l = 0, …, layers; −∞ from where all tokens coincide.

    Raises:
        InputError: if the head is no softmax head on the line, or a number out of its range.

    Source: derived for this project.
    """
    where = "residual_layers_log_variance"
    gain, start, layers = _arguments(where, attention, variance, layers)
    step = number(f"{where}: step", step)
    if step <= 0:
        raise InputError(f"{where}: step must be > 0, found {step:g}.")
    logs = np.full(layers + 1, start)
    for layer in range(layers):
        logs[layer + 1] = logs[layer] + 2 * _log_of_one_plus(step * gain, logs[layer])
    return logs


def _log_of_one_plus(factor: float, log_variance: float) -> float:
    """ln |1 + factor · s| from ln s, where s may be beyond the floats."""
    if factor == 0 or log_variance == -np.inf:
        return 0.0
    size = np.log(abs(factor)) + log_variance
    if factor > 0:
        return float(np.logaddexp(0, size))
    if size == 0:
        return -np.inf
    return float(max(size, 0.0) + np.log(-np.expm1(-abs(size))))


def _arguments(where: str, attention: Attention, variance: float, layers: int) -> tuple[float, float, int]:
    """g, ln s₀ and the number of layers."""
    if not isinstance(attention, Attention) or not isinstance(attention.normaliser, Softmax):
        raise InputError(f"{where}: known for a single softmax head only, found {attention}.")
    attention.check(1)
    one = np.ones((1, 1))
    query = one if attention.query is None else attention.query
    key = one if attention.key is None else attention.key
    value = 1.0 if attention.value is None else float(attention.value[0, 0])
    gain = attention.weight * value * attention.beta * float((query.T @ key)[0, 0])
    variance = number(f"{where}: variance", variance)
    if variance <= 0:
        raise InputError(f"{where}: variance must be > 0, found {variance:g}.")
    layers = whole_number(f"{where}: layers", layers)
    if layers < 0:
        raise InputError(f"{where}: layers must be ≥ 0, found {layers}.")
    return gain, float(np.log(variance)), layers
