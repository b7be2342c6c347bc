"""Independent tokens, moved with the package's velocity, and the density estimated from them by kernels."""

import numpy as np

import pde_solver as ps
from pde_solver.kernel_sums import exponential_sums

#: The bandwidths κ from which the oracle chooses.
BANDWIDTHS = np.geomspace(4, 4e6, 25)
#: It looks at one in 13 of the points.
THINNED = slice(None, None, 13)


def drawn(law: ps.Law, count: int, seed: int) -> ps.TokenMeasure:
    """`count` independent tokens of weight 1/count; `weighted_characteristics.follow` moves them."""
    points = law.sample(count, np.random.default_rng(seed), ps.Sphere(3))
    return ps.TokenMeasure(points, np.full((1, count), 1 / count))


def estimated_density(tokens: np.ndarray, kappa: float, points: np.ndarray) -> np.ndarray:
    """The mean of von Mises–Fisher bumps of concentration κ around the tokens, at points (n, 3)."""
    weights = np.full((1, len(tokens)), 1 / len(tokens))
    sums = exponential_sums(kappa * points, tokens, tokens[:, :1], weights)
    return kappa / (2 * np.pi * -np.expm1(-2 * kappa)) * np.exp(sums.shift[0] - kappa) * sums.denominator[0]


def best_estimate_error(tokens: np.ndarray, points: np.ndarray, measures: np.ndarray, exact: np.ndarray) -> float:
    """∫ |estimate − f| dx = 2 ∫ max(f − estimate, 0) dx, as both have mass one, with the bandwidth of an oracle.

    Args:
        tokens: (n, 3).
        points: (m, 3) points of a quadrature; they may be few where f is small.
        measures: (m,) its weights.
        exact: (m,) f there.
    """

    def error(kappa: float, some: slice) -> float:
        estimate = estimated_density(tokens, kappa, points[some])
        missing = measures[some] @ np.maximum(exact[some] - estimate, 0.0)
        return 2 * float(missing / (measures[some] @ exact[some]))

    best = min(BANDWIDTHS, key=lambda kappa: error(kappa, THINNED))
    return error(best, slice(None))
