"""The Poisson kernel of the ball, the family that linear attention on a sphere preserves."""

from dataclasses import dataclass

import numpy as np

from pde_solver.densities.arguments import require_sphere, vector
from pde_solver.densities.law import Law
from pde_solver.densities.sphere_sampling import uniform_on_sphere
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold


@dataclass(frozen=True)
class PoissonKernel(Law):
    """The uniform law moved by a Möbius map of the ball: f(x) = ((1 − |w|²) / |x − w|²)^{d−1} / |S^{d−1}|.

    Args:
        w: (d,) a point of the open unit ball; 0 is the uniform law, |w| → 1 a Dirac mass.

    Raises:
        InputError: if |w| ≥ 1 or w is not finite.

    Source: derived for this project; on the circle it is the wrapped Cauchy law.
    """

    w: tuple[float, ...]

    def __post_init__(self) -> None:
        w = vector("PoissonKernel: w", self.w)
        if len(w) < 2 or np.linalg.norm(w) >= 1:
            raise InputError(
                f"PoissonKernel: w must be a vector of at least two numbers with length < 1, "
                f"found {self.w!r} of length {np.linalg.norm(w):.6g}."
            )
        object.__setattr__(self, "w", w)

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """f at points (n, d): (n,)."""
        require_sphere("PoissonKernel", manifold, len(self.w))
        squared_distance = np.sum((manifold.retract(points) - self.w) ** 2, axis=1)
        return (self._gap / squared_distance) ** manifold.dimension / manifold.volume

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, d): the images w + (1 − |w|²)(y + w) / |y + w|² of uniform points y."""
        require_sphere("PoissonKernel", manifold, len(self.w))
        shifted = uniform_on_sphere(count, rng, manifold.ambient_dimension) + self.w
        return manifold.retract(self.w + self._gap * shifted / np.sum(shifted**2, axis=1, keepdims=True))

    @property
    def _gap(self) -> float:
        """1 − |w|²."""
        length = float(np.linalg.norm(self.w))
        return (1 - length) * (1 + length)
