"""How attention turns ⟨Qx, Ky⟩ into weights: softmax, unnormalised, or by distance."""

from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError


@dataclass(frozen=True)
class Softmax:
    """Softmax attention (SA): weights e^{β⟨Qx,Ky⟩} ν(dy) / ∫ e^{β⟨Qx,Ky'⟩} ν(dy')."""

    normalised = True

    def key_bias(self, beta: float, keys: np.ndarray) -> np.ndarray | None:
        """Softmax scores carry no term of the key alone."""
        return None


@dataclass(frozen=True)
class Unnormalised:
    """Unnormalised attention (USA): weights e^{β⟨Qx,Ky⟩ − c} ν(dy).

    Args:
        log_scale: c = log Z of the constant Z that divides; c = β keeps the velocity of order one on the
            sphere however large β is, and amounts to rescaling depth.

    Source: the surrogate model of Geshkovski, Letrouit, Polyanskiy, Rigollet (arXiv:2312.10794) for c = 0.
    """

    log_scale: float = 0.0
    normalised = False

    def __post_init__(self) -> None:
        if not np.isfinite(self.log_scale):
            raise InputError(f"Unnormalised: log_scale must be finite, found {self.log_scale!r}.")

    def key_bias(self, beta: float, keys: np.ndarray) -> np.ndarray | None:
        """Unnormalised scores carry no term of the key alone."""
        return None

    def factor(self, log_partition: np.ndarray) -> np.ndarray:
        """∫ e^{score} ν / Z from the logarithm of the integral, of any shape; infinite where it exceeds the floats."""
        return np.exp(log_partition - self.log_scale)


@dataclass(frozen=True)
class L2:
    """L2 attention: weights e^{−β|Qx − Ky|²/2} ν(dy), normalised to one.

    The term of x alone cancels, so the score is β⟨Qx, Ky⟩ − β|Ky|²/2. Gaussian laws stay Gaussian
    (Castin, Ablin, Carrillo, Peyré, arXiv:2501.18322).
    """

    normalised = True

    def key_bias(self, beta: float, keys: np.ndarray) -> np.ndarray | None:
        """−β|Ky|²/2 for keys Ky (m, k)."""
        return -0.5 * beta * np.einsum("mk,mk->m", keys, keys)


Normaliser = Softmax | Unnormalised | L2
