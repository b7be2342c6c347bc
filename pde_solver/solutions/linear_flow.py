"""Any law under a linear drift: rigid rotation, translation, contraction, and the projected flow on a sphere."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from pde_solver.densities import Gaussian, Law
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.models.linear import Linear


@dataclass(frozen=True, eq=False)
class LinearFlow:
    """The law at depth t of tokens that move by x' = P_x (W x + b), from any initial law f₀.

    On R^d, x(t) = e^{Wt} x₀ + c(t), so f(t, x) = e^{−t tr W} f₀(e^{−Wt}(x − c)).
    On S^{d−1} with b = 0, x(t) = e^{Wt} x₀ / |e^{Wt} x₀|, so f(t, x) = e^{−t tr W} |y|^{−d} f₀(y / |y|), y = e^{−Wt} x;
    for a skew W this is the rigid rotation f₀(e^{−Wt} x).

    Args:
        manifold: where tokens live.
        drift: W and b.
        initial: f₀.

    Raises:
        InputError: if the drift does not fit the manifold, or has an offset on a sphere.

    Source: derived for this project (change of variables along the characteristics).
    """

    manifold: Manifold
    drift: Linear
    initial: Law

    def __post_init__(self) -> None:
        self.drift.check(self.manifold.ambient_dimension)
        if isinstance(self.manifold, Sphere) and self.drift.offset is not None and np.any(self.drift.offset):
            raise InputError(
                "LinearFlow: on a sphere a drift with an offset has no such closed form; leave the offset out."
            )

    def flow(self, t: float, points: np.ndarray) -> np.ndarray:
        """Where tokens that start at points (n, D) are at depth t, (n, D)."""
        matrix, shift = self._propagator(t)
        return self.manifold.retract(points @ matrix.T + shift)

    def density(self, t: float, points: np.ndarray) -> np.ndarray:
        """f(t, x) relative to the surface measure at points (n, D): (n,)."""
        matrix, shift = self._propagator(t)
        origins = np.linalg.solve(matrix, (self.manifold.retract(points) - shift).T).T
        jacobian = np.full(len(points), np.linalg.det(matrix))
        if isinstance(self.manifold, Sphere):
            jacobian *= np.linalg.norm(origins, axis=1) ** self.manifold.ambient_dimension
        return self.initial.density(self.manifold.retract(origins), self.manifold) / jacobian

    def gaussian(self, t: float) -> Gaussian:
        """The law at depth t of a Gaussian: N(e^{Wt} m + c, e^{Wt} S e^{Wᵀt}).

        Raises:
            InputError: if the initial law is no Gaussian.
        """
        if not isinstance(self.initial, Gaussian):
            raise InputError(f"LinearFlow: only a Gaussian stays a Gaussian, found {self.initial!r}.")
        matrix, shift = self._propagator(t)
        return Gaussian(matrix @ self.initial.mean + shift, matrix @ np.array(self.initial.covariance) @ matrix.T)

    def _propagator(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """e^{Wt} and c(t) = ∫₀ᵗ e^{Ws} b ds, both from the exponential of [[W, b], [0, 0]]."""
        d = self.manifold.ambient_dimension
        generator = np.zeros((d + 1, d + 1))
        if self.drift.matrix is not None:
            generator[:d, :d] = self.drift.matrix
        if self.drift.offset is not None:
            generator[:d, d] = self.drift.offset
        exponential = expm(t * generator)
        return exponential[:d, :d], exponential[:d, d]
