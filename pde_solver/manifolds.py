"""Where tokens live: the unit sphere S^{d−1} (layer normalisation) or R^d."""

import math
from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError


@dataclass(frozen=True)
class Sphere:
    """The unit sphere S^{d−1} = {x ∈ R^d : |x| = 1}; `Sphere(2)` is the circle, `Sphere(3)` is S².

    Args:
        ambient_dimension: d ≥ 2.
    """

    ambient_dimension: int

    def __post_init__(self) -> None:
        _check_dimension("Sphere", self.ambient_dimension, 2)

    @property
    def dimension(self) -> int:
        """The manifold's own dimension d − 1."""
        return self.ambient_dimension - 1

    @property
    def volume(self) -> float:
        """The surface area |S^{d−1}| = 2 π^{d/2} / Γ(d/2)."""
        return 2 * math.pi ** (self.ambient_dimension / 2) / math.gamma(self.ambient_dimension / 2)

    def project(self, points: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """P_x v = v − ⟨x, v⟩ x, for points (n, d) and vectors (..., n, d)."""
        return vectors - np.einsum("nd,...nd->...n", points, vectors)[..., None] * points

    def retract(self, points: np.ndarray) -> np.ndarray:
        """The nearest points of the sphere, x / |x|, for points (..., d)."""
        return points / np.linalg.norm(points, axis=-1, keepdims=True)

    def __str__(self) -> str:
        return "the circle" if self.ambient_dimension == 2 else f"the sphere S^{self.dimension}"


@dataclass(frozen=True)
class Euclidean:
    """R^d: no constraint, so projection and retraction are the identity.

    Args:
        ambient_dimension: d ≥ 1.
    """

    ambient_dimension: int

    def __post_init__(self) -> None:
        _check_dimension("Euclidean", self.ambient_dimension, 1)

    @property
    def dimension(self) -> int:
        """The manifold's own dimension d."""
        return self.ambient_dimension

    @property
    def volume(self) -> float:
        """The volume of R^d."""
        return math.inf

    def project(self, points: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """The tangent space is everything: v."""
        return vectors

    def retract(self, points: np.ndarray) -> np.ndarray:
        """Every point is already on the manifold: x."""
        return points

    def __str__(self) -> str:
        return f"R^{self.ambient_dimension}"


Manifold = Sphere | Euclidean


def _check_dimension(name: str, dimension: object, least: int) -> None:
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < least:
        raise InputError(f"{name}: the ambient dimension must be a whole number ≥ {least}, found {dimension!r}.")
