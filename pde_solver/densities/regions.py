"""Bounded sets on which a law can be uniform: a cap of a sphere, a box or a ball in R^d."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import gamma, pi

import numpy as np
from scipy.special import betainc, betaincinv

from pde_solver.densities.arguments import direction, number, require_euclidean, require_sphere, vector
from pde_solver.densities.sphere_sampling import around_axis, uniform_on_sphere
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere


class Region(ABC):
    """A bounded set with a known volume from which uniform points can be drawn."""

    @abstractmethod
    def volume(self, manifold: Manifold) -> float:
        """Its volume or area on the manifold.

        Raises:
            InputError: if the manifold cannot hold the set.
        """

    @abstractmethod
    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, D) lie in it, the boundary included: (n,)."""

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Independent uniform points (count, D)."""


@dataclass(frozen=True)
class Cap(Region):
    """The cap {x ∈ S^{d−1} : angle between x and c ≤ α}.

    Args:
        center: c, (d,); any vector but zero, it is scaled to length one.
        angle: α in (0, π], in radians.

    Raises:
        InputError: if the centre is zero or not finite, or the angle out of its range.
    """

    center: tuple[float, ...]
    angle: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", direction("Cap: center", self.center))
        angle = number("Cap: angle", self.angle)
        if not 0 < angle <= pi:
            raise InputError(f"Cap: angle must lie in (0, π], in radians, found {angle:g}.")
        object.__setattr__(self, "angle", angle)

    def volume(self, manifold: Manifold) -> float:
        """The cap's area, a share of |S^{d−1}| that is an incomplete beta function of sin²α."""
        sphere = require_sphere("Cap", manifold, len(self.center), instead="Box or Ball")
        return self._share * sphere.volume

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, d) lie in the cap."""
        x = Sphere(len(self.center)).retract(points)
        # twice the arc tangent, because the arc cosine loses half of the digits near 0 and π
        chord = np.linalg.norm(x - self.center, axis=1)
        return 2 * np.arctan2(chord, np.linalg.norm(x + self.center, axis=1)) <= self.angle

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Independent uniform points (count, d): the share of area inside their angle is uniform."""
        share = self._share * rng.random(count)
        near = share <= 0.5
        squared_sine = betaincinv((len(self.center) - 1) / 2, 0.5, np.where(near, 2 * share, 2 * (1 - share)))
        half_versine = np.sin(np.arcsin(np.sqrt(squared_sine)) / 2) ** 2
        return around_axis(np.where(near, 2 * half_versine, 2 - 2 * half_versine), np.array(self.center), rng)

    @property
    def _share(self) -> float:
        """The cap's share of the sphere's area."""
        half = float(betainc((len(self.center) - 1) / 2, 0.5, np.sin(self.angle) ** 2)) / 2
        return half if self.angle <= pi / 2 else 1 - half


@dataclass(frozen=True)
class Box(Region):
    """The box {x ∈ R^d : lower ≤ x ≤ upper}.

    Args:
        lower: (d,) lower corner; a number for d = 1.
        upper: (d,) upper corner.

    Raises:
        InputError: if the corners do not fit or the box is empty.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self) -> None:
        lower, upper = vector("Box: lower", self.lower), vector("Box: upper", self.upper)
        if len(lower) != len(upper) or not np.all(np.less(lower, upper)):
            raise InputError(f"Box: lower must lie below upper in each coordinate, found {lower} and {upper}.")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def volume(self, manifold: Manifold) -> float:
        """The product of the box's edges."""
        require_euclidean("Box", manifold, len(self.lower), instead="Cap")
        return float(np.prod(np.subtract(self.upper, self.lower)))

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, d) lie in the box."""
        return np.all((points >= self.lower) & (points <= self.upper), axis=1)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Independent uniform points (count, d)."""
        return rng.uniform(self.lower, self.upper, size=(count, len(self.lower)))


@dataclass(frozen=True)
class Ball(Region):
    """The ball {x ∈ R^d : |x − c| ≤ r}.

    Args:
        center: c, (d,); a number for d = 1.
        radius: r > 0.

    Raises:
        InputError: if the centre is not finite or the radius not positive.
    """

    center: tuple[float, ...]
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", vector("Ball: center", self.center))
        radius = number("Ball: radius", self.radius, least=0)
        if radius == 0:
            raise InputError("Ball: radius must be positive, found 0.")
        object.__setattr__(self, "radius", radius)

    def volume(self, manifold: Manifold) -> float:
        """π^{d/2} r^d / Γ(d/2 + 1)."""
        dimension = len(self.center)
        require_euclidean("Ball", manifold, dimension, instead="Cap")
        return pi ** (dimension / 2) * self.radius**dimension / gamma(dimension / 2 + 1)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether points (n, d) lie in the ball."""
        return np.linalg.norm(points - self.center, axis=1) <= self.radius

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Independent uniform points (count, d): uniform directions at radii r u^{1/d}."""
        directions = uniform_on_sphere(count, rng, len(self.center))
        return self.center + self.radius * rng.random((count, 1)) ** (1 / len(self.center)) * directions
