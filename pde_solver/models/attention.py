"""One attention head."""

import math
from dataclasses import dataclass, field
from numbers import Real

import numpy as np

from pde_solver.errors import InputError
from pde_solver.models.normalisers import Normaliser, Softmax
from pde_solver.models.terms import Term


@dataclass(frozen=True, eq=False)
class Attention(Term):
    """One attention head: x ↦ a ∫ e^{β⟨Qx,Ky⟩} V y ν(dy) / Z.

    Several heads are a sum, `Attention(...) + Attention(...)`.

    Args:
        beta: inverse temperature β ≥ 0.
        query: Q, (k, d); None is the identity. The head dimension k may differ from d.
        key: K, (k, d); None is the identity.
        value: V, (d, d); None is the identity.
        normaliser: what Z is: `Softmax()`, `Unnormalised()` or `L2()`.
        weight: the head's weight a.

    Raises:
        InputError: if β is negative or not finite, or the matrices do not fit each other.
    """

    beta: float = 1.0
    query: np.ndarray | None = None
    key: np.ndarray | None = None
    value: np.ndarray | None = None
    normaliser: Normaliser = field(default_factory=Softmax)
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not _is_number(self.beta) or self.beta < 0:
            raise InputError(f"Attention: beta must be a finite number ≥ 0, found {self.beta!r}.")
        if not _is_number(self.weight):
            raise InputError(f"Attention: weight must be a finite number, found {self.weight!r}.")
        if not isinstance(self.normaliser, Normaliser):
            raise InputError(
                f"Attention: normaliser must be Softmax(), Unnormalised() or L2(), found {self.normaliser!r}."
            )
        for name in ("query", "key", "value"):
            object.__setattr__(self, name, as_matrix(f"Attention: {name}", getattr(self, name)))
        if self.query is not None and self.key is not None and len(self.query) != len(self.key):
            raise InputError(
                f"Attention: query and key must have as many rows (the head dimension), "
                f"found {self.query.shape} and {self.key.shape}."
            )

    @property
    def is_plain(self) -> bool:
        """Whether Q = K = V = I with a positive weight: then attention climbs the interaction energy."""
        return self.query is None and self.key is None and self.value is None and self.weight > 0

    @property
    def value_multiple(self) -> float | None:
        """The number v with V = v I, if there is one."""
        if self.value is None:
            return 1.0
        v = float(self.value[0, 0])
        return v if np.array_equal(self.value, v * np.eye(len(self.value))) else None

    def queries(self, points: np.ndarray) -> np.ndarray:
        """β Q x for points (n, d): (n, k)."""
        return self.beta * (points if self.query is None else points @ self.query.T)

    def keys(self, points: np.ndarray) -> np.ndarray:
        """K y for points (m, d): (m, k)."""
        return points if self.key is None else points @ self.key.T

    def key_bias(self, keys: np.ndarray) -> np.ndarray | None:
        """The term of the score that depends on the key alone, (m,), or None where there is none."""
        return self.normaliser.key_bias(self.beta, keys)

    def values(self, means: np.ndarray) -> np.ndarray:
        """a V m for means m (..., d) of what is attended to; multiply by the normaliser's `factor`."""
        means = means if self.value is None else means @ self.value.T
        return means if self.weight == 1 else self.weight * means

    def pulled_back(self, directions: np.ndarray) -> np.ndarray:
        """a Vᵀ n for directions n (n, d): ⟨n, a V m⟩ = ⟨a Vᵀ n, m⟩."""
        directions = directions if self.value is None else directions @ self.value
        return directions if self.weight == 1 else self.weight * directions

    def check(self, dimension: int) -> None:
        """Raise InputError if Q, K or V cannot act on tokens of R^dimension."""
        for name, matrix in (("query", self.query), ("key", self.key)):
            if matrix is not None and matrix.shape[1] != dimension:
                raise InputError(f"Attention: {name} must have {dimension} columns, found shape {matrix.shape}.")
        if self.value is not None and self.value.shape != (dimension, dimension):
            raise InputError(f"Attention: value must be {dimension} × {dimension}, found shape {self.value.shape}.")
        rows = {len(m) if m is not None else dimension for m in (self.query, self.key)}
        if len(rows) > 1:
            raise InputError(
                f"Attention: query and key must have as many rows (the head dimension), found {sorted(rows)}; "
                "give both where k ≠ d."
            )

    def __repr__(self) -> str:
        parts = [f"beta={self.beta:g}"]
        parts += [f"{n}={getattr(self, n).tolist()}" for n in ("query", "key", "value") if getattr(self, n) is not None]
        parts += [f"normaliser={self.normaliser}"] if self.normaliser != Softmax() else []
        parts += [f"weight={self.weight:g}"] if self.weight != 1 else []
        return f"Attention({', '.join(parts)})"


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def as_matrix(where: str, value: object) -> np.ndarray | None:
    """A read-only finite float matrix from what the user gave; None stays None (the identity).

    Raises:
        InputError: `where` must be a matrix of finite numbers.
    """
    if value is None:
        return None
    try:
        matrix = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"{where} must be a matrix of numbers (a list of rows of one length), found {value!r}."
        ) from None
    if matrix.ndim != 2 or not matrix.size or not np.all(np.isfinite(matrix)):
        raise InputError(f"{where} must be a matrix of finite numbers, found shape {matrix.shape}.")
    matrix.flags.writeable = False
    return matrix
