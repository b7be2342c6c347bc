"""The scheme of published scripts: independent tokens, forward Euler, all n² scores in one NumPy matrix."""

import numpy as np


def follow(tokens: np.ndarray, beta: float, stop: float, step: float = 0.1) -> np.ndarray:
    """Move tokens by x ← x + dt P_x Σ_j softmax(β⟨x, x_j⟩) x_j, and back to the sphere after each step.

    Args:
        tokens: (n, 3) on the sphere.
        beta: inverse temperature.
        stop: final depth.
        step: dt; scripts in circulation use 0.01 to 0.1, and n is what limits them, not dt.

    Returns:
        The tokens (n, 3) at the final depth.
    """
    x = tokens.copy()
    for _ in range(round(stop / step)):
        attention = np.exp(beta * x @ x.T)
        attention /= attention.sum(axis=1, keepdims=True)
        velocity = attention @ x
        velocity -= np.sum(velocity * x, axis=1, keepdims=True) * x
        x += step * velocity
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x
