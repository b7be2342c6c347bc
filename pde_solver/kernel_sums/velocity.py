"""The nonlocal velocity of a model at given points: the one place where terms meet sums."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.kernel_sums.direct import ExponentialSums, exponential_sums
from pde_solver.manifolds import Manifold
from pde_solver.measures import TokenMeasure
from pde_solver.models.attention import Attention
from pde_solver.models.linear import Linear
from pde_solver.models.model import Model
from pde_solver.models.normalisers import Unnormalised
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
    return term_velocity(model.velocity.at(t), model.manifold, points, measure.mixed(mixing)).values


@dataclass(frozen=True)
class Field:
    """A velocity at given points, and how fast it may change.

    Args:
        values: (labels, n, D) tangent to the manifold.
        rate: Σ_h |a_h| ‖V_h‖ Z_h + ‖W‖ over the terms, with Z_h = 1 for normalised heads and else the largest
            ∫ e^{β⟨Qx,Ky⟩ − c} ν(dy) at this rank's points: 1/rate is the depth in which the law changes.
    """

    values: np.ndarray
    rate: float


# the time loop says what an infinite velocity means, in one sentence
@np.errstate(over="ignore", invalid="ignore")
def term_velocity(term: Term, manifold: Manifold, points: np.ndarray, attended: TokenMeasure) -> Field:
    """P_x of the sum of a velocity's elementary terms at given points. Collective.

    Args:
        term: the velocity in force, constant in depth.
        manifold: where the points lie.
        points: (n, D) this rank's points x.
        attended: the laws ν_z that the labels attend to, distributed over the ranks of `attended.comm`.

    Returns:
        The values (labels, n, D), tangent to the manifold, with the rate at which they may change.

    Raises:
        InputError: if a head's label attends to no mass.
    """
    total = np.zeros((len(attended.weights), *points.shape))
    rate = 0.0
    sources = attended.gathered()
    for part in term.summands():
        if isinstance(part, Attention):
            sums = head_sums(part, points, sources, sources.points)
            total += part.velocity(sums.shift, sums.denominator, sums.numerator)
            strength = abs(part.weight) * (1.0 if part.value is None else np.linalg.norm(part.value, 2))
            if isinstance(part.normaliser, Unnormalised):
                with np.errstate(divide="ignore"):
                    exponents = np.log(sums.denominator) + sums.shift - part.normaliser.log_scale
                    strength *= np.exp(exponents.max(initial=-np.inf))
            rate += strength
        elif isinstance(part, Linear):
            total += part.drift(points)
            rate += 0.0 if part.matrix is None else np.linalg.norm(part.matrix, 2)
        else:
            raise TypeError(f"no rule to evaluate a velocity term of type {type(part).__name__}")
    return Field(manifold.project(points, total), float(rate))


def head_sums(head: Attention, points: np.ndarray, sources: TokenMeasure, values: np.ndarray) -> ExponentialSums:
    """∫ e^{score(x, y)} (1, f(y)) ν_z(dy) of one head at points (n, D), for values f(y_j) (m, d) at all sources."""
    keys = head.keys(sources.points)
    return exponential_sums(head.queries(points), keys, values, sources.weights, head.key_bias(keys))
