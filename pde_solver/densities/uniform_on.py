"""The uniform law on a bounded set."""

from dataclasses import dataclass

import numpy as np

from pde_solver.densities.law import Law
from pde_solver.densities.regions import Region
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold


@dataclass(frozen=True)
class UniformOn(Law):
    """The uniform law on a set A: f = 1_A / |A|.

    Args:
        region: the set, `Cap(center, angle)` on a sphere, `Box(lower, upper)` or `Ball(center, radius)` on R^d.

    Raises:
        InputError: if it is no such set; on use, if the manifold cannot hold it.
    """

    region: Region

    def __post_init__(self) -> None:
        if not isinstance(self.region, Region):
            raise InputError(
                "UniformOn: region must be Cap(center, angle), Box(lower, upper) or Ball(center, radius), "
                f"found {self.region!r}."
            )

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """1 / |A| inside and 0 outside at points (n, D): (n,)."""
        volume = self.region.volume(manifold)
        return np.where(self.region.contains(points), 1 / volume, 0.0)

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent uniform tokens (count, D) of the set."""
        self.region.volume(manifold)  # refuses a manifold that cannot hold the set
        return self.region.sample(count, rng)
