"""Initial laws."""

from abc import ABC, abstractmethod

import numpy as np

from pde_solver.manifolds import Manifold


class Law(ABC):
    """A probability law on a manifold, for meshes (a density) and for tokens (samples)."""

    @abstractmethod
    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """Density ≥ 0 relative to the surface measure at points (n, D): (n,). A discretisation rescales it to mass one."""

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, D)."""
