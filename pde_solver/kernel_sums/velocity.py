"""The nonlocal velocity of a model at given points: the one place where terms meet sums."""

from collections.abc import Sequence

import numpy as np

from pde_solver.kernel_sums.direct import ExponentialSums, exponential_sums
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

    Collective.

    Args:
        model: manifold, terms and labels.
        t: depth.
        points: (n, D) this rank's points x.
        measure: the laws μ_z of all labels, distributed over the ranks of `measure.comm`.
        labels: the labels z wanted; all by default.

    Returns:
        (labels, n, D), tangent to the manifold.

    Raises:
        InputError: if a label attends to no mass.
    """
    mixing = np.asarray(model.labels.mixing)
    mixing = mixing if labels is None else mixing[list(labels)]
    return term_velocity(model.velocity.at(t), model.manifold, points, measure.mixed(mixing))


def term_velocity(term: Term, manifold: Manifold, points: np.ndarray, attended: TokenMeasure) -> np.ndarray:
    """P_x of the sum of a velocity's elementary terms at given points. Collective.

    Args:
        term: the velocity in force, constant in depth.
        manifold: where the points lie.
        points: (n, D) this rank's points x.
        attended: the laws ν_z that the labels attend to, distributed over the ranks of `attended.comm`.

    Returns:
        (labels, n, D), tangent to the manifold.

    Raises:
        InputError: if a head's label attends to no mass.
    """
    total = np.zeros((len(attended.weights), *points.shape))
    sources = attended.gathered()
    for part in term.summands():
        if isinstance(part, Attention):
            sums = head_sums(part, points, sources, sources.points)
            total += part.velocity(sums.shift, sums.denominator, sums.numerator)
        elif isinstance(part, Linear):
            total += part.drift(points)
        else:
            raise TypeError(f"no rule to evaluate a velocity term of type {type(part).__name__}")
    return manifold.project(points, total)


def head_sums(head: Attention, points: np.ndarray, sources: TokenMeasure, values: np.ndarray) -> ExponentialSums:
    """∫ e^{score(x, y)} (1, f(y)) ν_z(dy) of one head at points (n, D), for values f(y_j) (m, d) at all sources."""
    keys = head.keys(sources.points)
    return exponential_sums(head.queries(points), keys, values, sources.weights, head.key_bias(keys))
