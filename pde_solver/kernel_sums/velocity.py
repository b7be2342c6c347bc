"""The nonlocal velocity of a model at given points: the one place where terms meet sums."""

from collections.abc import Sequence

import numpy as np

from pde_solver.kernel_sums.direct import exponential_sums
from pde_solver.manifolds import Manifold
from pde_solver.measures import TokenMeasure
from pde_solver.models.attention import Attention
from pde_solver.models.linear import Linear
from pde_solver.models.model import Model
from pde_solver.models.terms import Term


def velocity(
    model: Model,
    t: float,
    points: np.ndarray,
    measure: TokenMeasure,
    *,
    labels: Sequence[int] | None = None,
) -> np.ndarray:
    """X_z[μ](x) = P_x Σ_h a_h ∫ e^{β⟨Q_h x, K_h y⟩} V_h y ν_z(dy) / Z_h + P_x (W x + b), with ν = mixing · μ.

    Args:
        model: manifold, terms and labels.
        t: depth.
        points: (n, D) this rank's points x.
        measure: the laws μ_z of all labels, distributed over the ranks of `measure.comm`.
        labels: the labels z wanted; all by default.

    Returns:
        (labels, n, D), tangent to the manifold.
    """
    mixing = model.labels.mixing if labels is None else model.labels.mixing[list(labels)]
    return term_velocity(model.velocity.at(t), model.manifold, points, measure.mixed(mixing))


def term_velocity(term: Term, manifold: Manifold, points: np.ndarray, attended: TokenMeasure) -> np.ndarray:
    """P_x of the sum of the elementary terms at points (n, D), attending to given laws: (labels, n, D)."""
    total = np.zeros((len(attended.weights), *points.shape))
    sources = attended.gathered()
    for part in term.summands():
        if isinstance(part, Attention):
            keys = part.keys(sources.points)
            sums = exponential_sums(part.queries(points), keys, sources.points, sources.weights, part.key_bias(keys))
            total += part.velocity(sums.shift, sums.denominator, sums.numerator)
        elif isinstance(part, Linear):
            total += part.drift(points)
        else:
            raise TypeError(f"no rule to evaluate a velocity term of type {type(part).__name__}")
    return manifold.project(points, total)
