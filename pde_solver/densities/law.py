"""What an initial law must be able to do."""

from abc import ABC, abstractmethod

import numpy as np

from pde_solver.manifolds import Manifold


class Law(ABC):
    """A probability law on a manifold, for meshes (a density) and for tokens (samples)."""

    @abstractmethod
    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """Density ≥ 0 relative to the surface measure at points (n, D): (n,). A discretisation rescales it to mass one.

        On a sphere, points a little off it (on the flat cells of a mesh) count as their projections x / |x|.
        """

    def is_normalised(self, manifold: Manifold) -> bool:
        """Whether `density` integrates to one on the manifold; where it does not, only its shape counts."""
        return True

    def at(self, position: float) -> "Law":
        """The law of tokens whose label is a position s in (0, 1]; the same for all unless the law says otherwise."""
        return self

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, D), drawn from `rng` alone: the same seed gives the same tokens everywhere."""
