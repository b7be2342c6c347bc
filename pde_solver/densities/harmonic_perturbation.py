"""The uniform law with one harmonic added: the start of a measurement of growth rates."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import eval_gegenbauer, sph_legendre_p

from pde_solver.densities.arguments import number, require_sphere, whole_number
from pde_solver.densities.law import Law
from pde_solver.densities.rejection import sample_by_rejection
from pde_solver.densities.sphere_sampling import uniform_on_sphere
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere


@dataclass(frozen=True)
class HarmonicPerturbation(Law):
    """The uniform law with one harmonic: f = (1 + ε Y) / |S^{d−1}|, scaled so that max |Y| = 1.

    On the circle Y is cos(lθ) for order 0 and sin(lθ) for order −1. On S² it is the real spherical harmonic of
    degree l and order m about the z axis, with cos(mφ) for m ≥ 0 and sin(|m|φ) for m < 0. On higher spheres only the
    order 0 is there: the Gegenbauer polynomial of degree l in the last coordinate.

    Args:
        degree: l ≥ 1.
        amplitude: ε in [−1, 1].
        order: m.

    Raises:
        InputError: if a number is out of its range; on use, if the manifold has no such order.
    """

    degree: int
    amplitude: float
    order: int = 0

    def __post_init__(self) -> None:
        degree = whole_number("HarmonicPerturbation: degree", self.degree)
        amplitude = number("HarmonicPerturbation: amplitude", self.amplitude)
        order = whole_number("HarmonicPerturbation: order", self.order)
        if degree < 1:
            raise InputError(f"HarmonicPerturbation: degree must be ≥ 1, found {degree}.")
        if abs(amplitude) > 1:
            raise InputError(
                f"HarmonicPerturbation: amplitude must lie in [-1, 1], or the density is negative, found {amplitude:g}."
            )
        if abs(order) > degree:
            raise InputError(
                f"HarmonicPerturbation: order must lie in [-{degree}, {degree}] (the degree), found {order}."
            )
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "amplitude", amplitude)
        object.__setattr__(self, "order", order)

    def harmonic(self, points: np.ndarray, sphere: Sphere) -> np.ndarray:
        """Y at points (n, d): (n,), with max |Y| = 1.

        Raises:
            InputError: if the sphere has no such order.
        """
        x = sphere.retract(points)
        if sphere.ambient_dimension == 2:
            self._require_order(sphere, (-1, 0))
            angle = self.degree * np.arctan2(x[:, 1], x[:, 0])
            return np.cos(angle) if self.order == 0 else np.sin(angle)
        if sphere.ambient_dimension == 3:
            polar = np.arctan2(np.hypot(x[:, 0], x[:, 1]), x[:, 2])
            order = abs(self.order)
            azimuth = order * np.arctan2(x[:, 1], x[:, 0])
            around = np.cos(azimuth) if self.order >= 0 else np.sin(azimuth)
            return _legendre(self.degree, order, polar) * around / _largest_legendre(self.degree, order)
        self._require_order(sphere, (0,))
        alpha = sphere.ambient_dimension / 2 - 1
        return eval_gegenbauer(self.degree, alpha, x[:, -1]) / eval_gegenbauer(self.degree, alpha, 1.0)

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """f at points (n, d): (n,)."""
        sphere = require_sphere("HarmonicPerturbation", manifold, instead="Expression")
        # the maximum guards against round-off where f touches zero
        return np.maximum(1 + self.amplitude * self.harmonic(points, sphere), 0) / sphere.volume

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, d), by rejection; at least every other draw is kept."""
        sphere = require_sphere("HarmonicPerturbation", manifold, instead="Expression")
        return sample_by_rejection(
            count,
            rng,
            propose=lambda n: uniform_on_sphere(n, rng, sphere.ambient_dimension),
            density=lambda points: 1 + self.amplitude * self.harmonic(points, sphere),
            envelope=1 + abs(self.amplitude) * (1 + 1e-9),
            where="HarmonicPerturbation",
        )

    def _require_order(self, sphere: Sphere, allowed: tuple[int, ...]) -> None:
        if self.order not in allowed:
            orders = " or ".join(str(order) for order in allowed)
            raise InputError(f"HarmonicPerturbation: on {sphere} the order must be {orders}, found {self.order}.")


def _legendre(degree: int, order: int, polar: np.ndarray) -> np.ndarray:
    """The normalised associated Legendre function P_l^m(cos θ)."""
    return np.asarray(sph_legendre_p(degree, order, polar))[0]


@cache
def _largest_legendre(degree: int, order: int) -> float:
    """max over θ of |P_l^m(cos θ)|: the best of a dense scan, refined."""
    angles = np.linspace(0, np.pi / 2, 50 * degree + 1)
    values = np.abs(_legendre(degree, order, angles))
    best = int(np.argmax(values))
    refined = minimize_scalar(
        lambda angle: -abs(float(_legendre(degree, order, np.array(angle)))),
        bounds=(angles[max(best - 1, 0)], angles[min(best + 1, len(angles) - 1)]),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return max(float(values[best]), -float(refined.fun))
