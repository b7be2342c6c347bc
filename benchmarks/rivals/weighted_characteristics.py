"""Tokens placed by a quadrature and weighted by the initial density: high order as long as the flow is smooth."""

import numpy as np

import pde_solver as ps  # isort: skip  before MPI, whose library it checks
from mpi4py import MPI

from pde_solver.kernel_sums import Evaluator
from rivals import runge_kutta_4

ALL = np.ones((1, 1))  # everybody attends to everybody
#: Distance of the central differences; their error is about β² SHIFT² / 6.
SHIFT = 1e-3
#: Tolerance of velocities that are differenced.
DIFFERENCED = 1e-9


def placed(law: ps.Law, order: int) -> ps.TokenMeasure:
    """2 · order² tokens at Gauss–Legendre latitudes × equidistant longitudes, weighted by the density."""
    sphere = ps.Sphere(3)
    quadrature = ps.sphere_quadrature(sphere, order)
    weights = quadrature.weights * law.density(quadrature.points, sphere)
    return ps.TokenMeasure(quadrature.points, weights / weights.sum())


def follow(
    model: ps.Model, tokens: ps.TokenMeasure, stop: float, step: float = 0.1, tolerance: float = 1e-6
) -> ps.TokenMeasure:
    """Move tokens with the package's velocity by Runge–Kutta of order 4; weights stay.

    Args:
        model: a model on the sphere.
        tokens: the law at depth 0.
        stop: final depth.
        step: dt.
        tolerance: of the velocity.
    """
    x, evaluate = tokens.points, _evaluator(model, tolerance)
    for k in range(round(stop / step)):
        x = _moved(evaluate, model, x, tokens.weights, k * step, step)
    return ps.TokenMeasure(x, tokens.weights)


def follow_with_density(
    model: ps.Model, tokens: ps.TokenMeasure, density: np.ndarray, stop: float, step: float = 0.1
) -> tuple[ps.TokenMeasure, np.ndarray]:
    """The same, with the density at the moved tokens, f = f₀ / J, d log J/dt = div X.

    The divergence is wanted once a step only: Simpson's rule over pairs of steps is of order 4 as well.

    Args:
        model: a model on the sphere S².
        tokens: the law at depth 0.
        density: (n,) f₀ at the tokens.
        stop: final depth, an even number of steps.
        step: dt.
    """
    steps = round(stop / step)
    simpson = np.full(steps + 1, 2.0)
    simpson[1::2] = 4.0
    simpson[[0, -1]] = 1.0
    x, evaluate = tokens.points, _evaluator(model, DIFFERENCED)
    log_stretch = simpson[0] * divergence(model, 0.0, x, tokens.weights)
    for k in range(steps):
        x = _moved(evaluate, model, x, tokens.weights, k * step, step)
        log_stretch += simpson[k + 1] * divergence(model, (k + 1) * step, x, tokens.weights)
    return ps.TokenMeasure(x, tokens.weights), density * np.exp(-step / 3 * log_stretch)


def divergence(model: ps.Model, t: float, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """div X at the tokens (n, 3), by central differences along two tangents: it needs nothing but velocities."""
    helper = np.eye(3)[np.argmin(np.abs(x), axis=1)]
    first = np.cross(x, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    tangents = np.stack([first, np.cross(x, first)])
    ahead, behind = x + SHIFT * tangents, x - SHIFT * tangents
    targets = model.manifold.retract(np.concatenate([ahead, behind]).reshape(-1, 3))
    evaluation = ps.Evaluation(DIFFERENCED)
    fields = ps.velocity(model, t, targets, ps.TokenMeasure(x, weights), evaluation=evaluation)[0]
    fields = fields.reshape(2, 2, *x.shape)
    # the great circle through x has no curvature in the tangent plane: only the angle between the two points counts
    return np.sum((fields[0] - fields[1]) * tangents, axis=(0, 2)) / (2 * np.arctan(SHIFT))


def _evaluator(model: ps.Model, tolerance: float) -> Evaluator:
    """The package's velocity, which remembers from step to step which method keeps the tolerance."""
    return Evaluator(model.manifold, MPI.COMM_SELF, ps.Evaluation(tolerance))


def _moved(evaluate: Evaluator, model: ps.Model, x: np.ndarray, weights: np.ndarray, t: float, step: float):
    def rate(s: float, y: np.ndarray) -> np.ndarray:
        y = model.manifold.retract(y)
        return evaluate(model.velocity.at(s), ps.TokenMeasure(y, weights), ALL, y).values[0]

    return model.manifold.retract(runge_kutta_4(rate, t, x, step))
