"""The solution that all methods are measured against: weighted characteristics by the ten thousand, and back again.

The kernel e^{β⟨x,y⟩} sees only the law's harmonics up to a degree L (20 for β = 4 and 1e-12). So the law of any number
of tokens acts like one of few weighted points, the nodes of a quadrature of degree 2L. These weights are kept for all
depths: they are the velocity at any point and depth, and the density at x is found by going back along its characteristic,
f(t, x) = f₀(x₀) e^{−∫ div X}.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import sph_harm_y, spherical_in

import pde_solver as ps
from pde_solver.kernel_sums import exponential_sums
from rivals import runge_kutta_4
from rivals.spherical_harmonics import Harmonics

#: Degree of the harmonics that the compressed law carries; i_24(4) / i_0(4) is 1e-16.
DEGREE = 24
#: Points that are followed back at once.
BATCH = 20_000


def moments(tokens: ps.TokenMeasure) -> np.ndarray:
    """The 24 real spherical-harmonic moments of degree 1 to 4."""
    x, y, z = tokens.points.T
    polar, azimuth = np.arctan2(np.hypot(x, y), z), np.arctan2(y, x)
    means = np.zeros((5, 5), complex)
    for degree in range(1, 5):
        for order in range(degree + 1):
            means[order, degree] = tokens.weights[0] @ sph_harm_y(degree, order, polar, azimuth).conj()
    return real_moments(means)


def real_moments(coefficients: np.ndarray) -> np.ndarray:
    """The same from coefficients (m, l), m ≥ 0, of the density."""
    rows = []
    for degree in range(1, 5):
        pairs = np.sqrt(2) * coefficients[1 : degree + 1, degree]
        rows += [coefficients[:1, degree].real, pairs.real, pairs.imag]
    return np.concatenate(rows)


@dataclass(frozen=True)
class Reference:
    """A solution known at all depths k · step.

    Args:
        beta: inverse temperature.
        step: spacing of depths.
        charges: (depths, nodes) weights, some negative, of the points that act like the law.
        moments: (depths, 24) its moments.
        tokens: the law at the last depth.
    """

    beta: float
    step: float
    charges: np.ndarray
    moments: np.ndarray
    tokens: ps.TokenMeasure

    def moments_at(self, t: float) -> np.ndarray:
        """The 24 moments at a depth that is a multiple of the step."""
        return self.moments[round(t / self.step)]

    def density(self, law: ps.Law, t: float, points: np.ndarray) -> np.ndarray:
        """f(t, x) at points (n, 3), t an even multiple of the step."""
        nodes = _nodes().points
        values = np.empty(len(points))

        def backwards(s: float, state: np.ndarray) -> np.ndarray:
            velocity, divergence = _drift(self.beta, state[:, :3], nodes, self.charges[round((t - s) / self.step)])
            return np.column_stack([-velocity, -divergence])

        for start in range(0, len(points), BATCH):
            batch = points[start : start + BATCH]
            state = np.column_stack([batch, np.zeros(len(batch))])
            for k in range(round(t / (2 * self.step))):
                state = runge_kutta_4(backwards, 2 * k * self.step, state, 2 * self.step)
                state[:, :3] /= np.linalg.norm(state[:, :3], axis=1, keepdims=True)
            values[start : start + BATCH] = law.density(state[:, :3], ps.Sphere(3)) * np.exp(state[:, 3])
        return values


def solve(tokens: ps.TokenMeasure, beta: float, stop: float, step: float) -> Reference:
    """Follow weighted tokens, Runge–Kutta of order 4, and keep the law's action and moments after each step."""
    harmonics = _nodes()
    kernel = 4 * np.pi * np.exp(-beta) * spherical_in(np.arange(DEGREE + 1), beta)[None, :, None]
    # harmonics that the kernel does not see stay out: they would be rounding errors alone
    inverse = np.where(kernel > 1e-15 * kernel[:, :1], 1 / kernel, 0.0)

    def charges(x: np.ndarray) -> np.ndarray:
        sums = exponential_sums(beta * harmonics.points, x, x[:, :1], tokens.weights)
        potential = (np.exp(sums.shift - beta) * sums.denominator).reshape(1, DEGREE + 1, -1)
        return harmonics.values(harmonics.coefficients(potential) * inverse).ravel() * harmonics.weights

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        sums = exponential_sums(beta * x, harmonics.points, harmonics.points, charges(x)[None])
        return ps.Sphere(3).project(x, sums.numerator[0] / sums.denominator[0][:, None])

    x = tokens.points
    kept, means = [charges(x)], [moments(tokens)]
    for k in range(round(stop / step)):
        x = ps.Sphere(3).retract(runge_kutta_4(rate, k * step, x, step))
        kept.append(charges(x))
        means.append(moments(ps.TokenMeasure(x, tokens.weights)))
    return Reference(beta, step, np.array(kept), np.array(means), ps.TokenMeasure(x, tokens.weights))


def _nodes() -> Harmonics:
    """Quadrature nodes on which harmonics up to DEGREE are orthogonal."""
    return Harmonics(DEGREE, DEGREE + 1)


def _drift(beta: float, x: np.ndarray, nodes: np.ndarray, charges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X and div X = β tr(P_x C P_x) − 2⟨x, m⟩ at points (n, 3), m and C the mean and covariance of the attention at x."""
    rows, columns = np.triu_indices(3)
    values = np.hstack([nodes, nodes[:, rows] * nodes[:, columns]])
    sums = exponential_sums(beta * x, nodes, values, charges[None])
    mean, second = np.split(sums.numerator[0] / sums.denominator[0][:, None], [3], axis=1)
    along = np.sum(mean * x, axis=1)
    along_squared = np.sum(np.where(rows == columns, 1.0, 2.0) * second * x[:, rows] * x[:, columns], axis=1)
    # the trace of the second moments is 1, as all |y| = 1
    covariance = 1 - along_squared - (np.sum(mean**2, axis=1) - along**2)
    return mean - along[:, None] * x, beta * covariance - 2 * along
