"""The uniform law."""

from dataclasses import dataclass

import numpy as np

from pde_solver.densities.law import Law
from pde_solver.densities.sphere_sampling import uniform_on_sphere
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere


@dataclass(frozen=True)
class Uniform(Law):
    """The uniform law: f = 1 / |S^{d−1}| on a sphere; on the mesh of a box, the same everywhere."""

    def is_normalised(self, manifold: Manifold) -> bool:
        """On a sphere only."""
        return isinstance(manifold, Sphere)

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """1 / |S^{d−1}| on a sphere, 1 on R^d (to be rescaled on a bounded mesh), at points (n, D): (n,)."""
        return np.full(len(points), 1 / manifold.volume if isinstance(manifold, Sphere) else 1.0)

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent uniform tokens (count, D).

        Raises:
            InputError: on R^d, where there is no uniform law.
        """
        if not isinstance(manifold, Sphere):
            raise InputError(
                f"Uniform: there is no uniform law on all of {manifold} to draw tokens from; "
                "name a bounded set, for example UniformOn(Box(lower, upper)) or UniformOn(Ball(center, radius))."
            )
        return uniform_on_sphere(count, rng, manifold.ambient_dimension)
