"""The Gaussian law on R^d."""

from dataclasses import dataclass

import numpy as np

from pde_solver.densities.arguments import require_euclidean, vector
from pde_solver.densities.law import Law
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold


@dataclass(frozen=True)
class Gaussian(Law):
    """The Gaussian N(m, S) on R^d: f(x) = e^{−⟨x − m, S⁻¹(x − m)⟩/2} / √det(2πS).

    Args:
        mean: m, (d,); a number for d = 1.
        covariance: S, (d, d) symmetric positive definite; a number s stands for s I.

    Raises:
        InputError: if m and S do not fit, or S is not symmetric positive definite.
    """

    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]

    def __init__(self, mean: object, covariance: object = 1.0) -> None:
        found = vector("Gaussian: mean", mean)
        object.__setattr__(self, "mean", found)
        object.__setattr__(self, "covariance", _covariance(covariance, len(found)))

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """f at points (n, d): (n,)."""
        self._require(manifold)
        root = np.linalg.cholesky(np.array(self.covariance))
        whitened = np.linalg.solve(root, (points - self.mean).T)
        log_factor = np.sum(np.log(np.diag(root))) + 0.5 * len(self.mean) * np.log(2 * np.pi)
        return np.exp(-0.5 * np.sum(whitened**2, axis=0) - log_factor)

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, d)."""
        self._require(manifold)
        normal = rng.standard_normal((count, len(self.mean)))
        return self.mean + normal @ np.linalg.cholesky(np.array(self.covariance)).T

    def _require(self, manifold: Manifold) -> None:
        require_euclidean("Gaussian", manifold, len(self.mean), instead="VonMisesFisher")


def _covariance(value: object, dimension: int) -> tuple[tuple[float, ...], ...]:
    try:
        matrix = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"Gaussian: covariance must be a matrix of numbers, found {value!r}.") from None
    if matrix.ndim == 0:
        matrix = matrix * np.eye(dimension)
    if matrix.shape != (dimension, dimension) or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"Gaussian: covariance must be a finite {dimension} × {dimension} matrix, as the mean has "
            f"{dimension} entries, or one number, found {value!r}."
        )
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-12 * np.abs(matrix).max()):
        raise InputError(f"Gaussian: covariance must be symmetric, found {matrix.tolist()}.")
    matrix = (matrix + matrix.T) / 2
    smallest = np.linalg.eigvalsh(matrix)[0]
    if smallest <= 0:
        raise InputError(f"Gaussian: covariance must be positive definite, found the eigenvalue {smallest:.3g}.")
    return tuple(tuple(float(entry) for entry in row) for row in matrix)
