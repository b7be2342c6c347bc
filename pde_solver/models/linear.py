"""A linear drift."""

from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError
from pde_solver.models.attention import as_matrix
from pde_solver.models.terms import Term


@dataclass(frozen=True, eq=False)
class Linear(Term):
    """An affine drift x ↦ W x + b, the same for every token: rotations, contractions, an affine feed-forward part.

    Args:
        matrix: W, (d, d); None is zero.
        offset: b, (d,); None is zero.

    Raises:
        InputError: if W or b are not finite or do not fit each other.
    """

    matrix: np.ndarray | None = None
    offset: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", as_matrix("Linear: matrix", self.matrix))
        if self.offset is not None:
            offset = as_matrix("Linear: offset", [self.offset])
            assert offset is not None
            object.__setattr__(self, "offset", offset[0])

    def drift(self, points: np.ndarray) -> np.ndarray:
        """W x + b for points (n, d)."""
        result = np.zeros_like(points) if self.matrix is None else points @ self.matrix.T
        return result if self.offset is None else result + self.offset

    def check(self, dimension: int) -> None:
        """Raise InputError if W or b cannot act on tokens of R^dimension."""
        if self.matrix is not None and self.matrix.shape != (dimension, dimension):
            raise InputError(f"Linear: matrix must be {dimension} × {dimension}, found shape {self.matrix.shape}.")
        if self.offset is not None and self.offset.shape != (dimension,):
            raise InputError(f"Linear: offset must have {dimension} entries, found shape {self.offset.shape}.")

    def __repr__(self) -> str:
        parts = [f"{n}={getattr(self, n).tolist()}" for n in ("matrix", "offset") if getattr(self, n) is not None]
        return f"Linear({', '.join(parts)})"
