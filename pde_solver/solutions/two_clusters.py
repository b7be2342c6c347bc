"""Two clusters of half the tokens each: the angle between them, and how long they take to merge."""

import numpy as np
from scipy.integrate import quad

from pde_solver.densities.arguments import number
from pde_solver.errors import InputError
from pde_solver.models.attention import Attention
from pde_solver.solutions.isotropic_head import isotropic_head


def two_cluster_rate(angle: float, attention: Attention) -> float:
    """θ', where θ is the angle between two Dirac masses of 1/2 on any sphere.

    Softmax: θ' = −2 s sin θ / (e^{b(1 − cos θ)} + 1); unnormalised: θ' = −s sin θ e^{b cos θ − c}.
    Here s = a v and b = β q k for Q = q I, K = k I, V = v I and weight a.

    Args:
        angle: θ in [0, π].
        attention: a head with Q, K and V multiples of I.

    Raises:
        InputError: if the head is no such head, or the angle out of its range.

    Source: derived for this project.
    """
    strength, exponent, log_scale = isotropic_head("two_cluster_rate", attention)
    angle = number("two_cluster_rate: angle", angle, least=0)
    if angle > np.pi:
        raise InputError(f"two_cluster_rate: angle must be in [0, π], found {angle:g}.")
    if log_scale is None:
        with np.errstate(over="ignore"):  # beyond the floats the clusters do not see each other
            return float(-2 * strength * np.sin(angle) / (np.exp(exponent * (1 - np.cos(angle))) + 1))
    return float(-strength * np.sin(angle) * np.exp(exponent * np.cos(angle) - log_scale))


def two_cluster_time(start: float, end: float, attention: Attention) -> float:
    """The depth at which the angle, θ₀ at depth zero, is θ₁.

    With y = ln tan(θ/2), where sin θ = 1 / cosh y and cos θ = −tanh y, it is a smooth integral from y₁ to y₀:
    ∫ (e^{b(1 + tanh y)} + 1) dy / (2s) for softmax, ∫ e^{b tanh y + c} dy / s for unnormalised attention.
    As b grows it is like e^{b(1 − cos θ)} for softmax and e^{−b cos θ + c} for unnormalised attention, up to powers of b,
    where θ is the larger of θ₀ and θ₁: clusters far apart are metastable.

    Args:
        start: θ₀ in (0, π).
        end: θ₁ in (0, π); at most θ₀ if s > 0, at least θ₀ if s < 0.
        attention: a head with Q, K and V multiples of I.

    Returns:
        The depth, infinite where it exceeds the floats.

    Raises:
        InputError: if the head is no such head, an angle out of its range, or θ₁ never reached.

    Source: derived for this project.
    """
    where = "two_cluster_time"
    strength, exponent, log_scale = isotropic_head(where, attention)
    start, end = number(f"{where}: start", start), number(f"{where}: end", end)
    if not (0 < start < np.pi and 0 < end < np.pi):
        raise InputError(f"{where}: start and end must be in (0, π), where clusters move, found {start:g} and {end:g}.")
    if start == end:
        return 0.0
    if strength == 0 or (start > end) != (strength > 0):
        direction = {1.0: "shrinks", -1.0: "grows", 0.0: "stays"}[float(np.sign(strength))]
        raise InputError(f"{where}: the angle {direction}, so that it never comes from {start:g} to {end:g}.")
    low, high = sorted((_log_tangent(start), _log_tangent(end)))
    # the integrand is largest at one end; what is integrated is at most one
    largest = max(exponent * np.tanh(low), exponent * np.tanh(high))
    integral = quad(lambda y: np.exp(exponent * np.tanh(y) - largest), low, high, epsabs=0, epsrel=1e-13, limit=500)[0]
    with np.errstate(over="ignore"):
        if log_scale is None:
            return float((np.exp(exponent + largest) * integral + high - low) / (2 * abs(strength)))
        return float(np.exp(largest + log_scale) * integral / abs(strength))


def _log_tangent(angle: float) -> float:
    """ln tan(θ/2)."""
    return float(np.log(np.tan(angle / 2)))
