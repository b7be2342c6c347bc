"""The von Mises–Fisher law: one bump on a sphere."""

from dataclasses import dataclass

import numpy as np
from scipy.special import hyp0f1, ive

from pde_solver.densities.arguments import direction, number, require_sphere
from pde_solver.densities.law import Law
from pde_solver.densities.sphere_sampling import around_axis
from pde_solver.manifolds import Manifold, Sphere


@dataclass(frozen=True)
class VonMisesFisher(Law):
    """A bump on S^{d−1}: f(x) = e^{κ⟨m, x⟩} / ∫ e^{κ⟨m, y⟩} dy.

    Args:
        mean: m, (d,), the direction of the bump; any vector but zero, it is scaled to length one.
        kappa: concentration κ ≥ 0; 0 is the uniform law.

    Raises:
        InputError: if the mean is zero or not finite, or κ negative or not finite.

    Source: Mardia and Jupp, Directional Statistics (2000), chapter 9.
    """

    mean: tuple[float, ...]
    kappa: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", direction("VonMisesFisher: mean", self.mean))
        object.__setattr__(self, "kappa", number("VonMisesFisher: kappa", self.kappa, least=0))

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """f at points (n, d): (n,); it overflows for no κ."""
        sphere = require_sphere("VonMisesFisher", manifold, len(self.mean))
        # κ(⟨m, x⟩ − 1) = −κ|x − m|²/2 keeps its digits near the mean
        squared_distance = np.sum((sphere.retract(points) - self.mean) ** 2, axis=1)
        return np.exp(-0.5 * self.kappa * squared_distance) / _scaled_integral(self.kappa, sphere)

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, d).

        Source: Wood, Simulation of the von Mises Fisher distribution, Comm. Statist. Simulation Comput. 23 (1994).
        """
        require_sphere("VonMisesFisher", manifold, len(self.mean))
        versine = _versines(count, self.kappa, manifold.dimension, rng)
        return around_axis(versine, np.array(self.mean), rng)


def _scaled_integral(kappa: float, sphere: Sphere) -> float:
    """∫ e^{κ(⟨m, y⟩ − 1)} dy over S^{d−1} = (2π)^{d/2} κ^{−ν} e^{−κ} I_ν(κ), ν = d/2 − 1."""
    half = sphere.ambient_dimension / 2
    if kappa < 1:  # the same by its power series, as κ^{−ν} I_ν(κ) is 0/0 at κ = 0
        return float(sphere.volume * hyp0f1(half, kappa**2 / 4) * np.exp(-kappa))
    return float((2 * np.pi) ** half * kappa ** (1 - half) * ive(half - 1, kappa))


def _versines(count: int, kappa: float, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Values of 1 − ⟨m, x⟩, (count,), by rejection from a transformed beta law on the sphere of this dimension."""
    b = dimension / (2 * kappa + np.hypot(2 * kappa, dimension))
    x0 = (1 - b) / (1 + b)
    accepted = np.empty(0)
    while len(accepted) < count:
        wanted = count - len(accepted)
        z = rng.beta(dimension / 2, dimension / 2, size=wanted)
        versine = 2 * b * z / (1 - (1 - b) * z)
        # log of the acceptance probability; differences from the cosine 1 taken out by hand so that no digits cancel
        log_accept = kappa * (2 * b / (1 + b) - versine)
        log_accept += dimension * np.log((2 * b / (1 + b) + x0 * versine) * (1 + b) ** 2 / (4 * b))
        accepted = np.append(accepted, versine[log_accept >= np.log1p(-rng.random(wanted))])
    return accepted
