"""From what the heads attend to to the velocity: values, drifts, projection."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.kernel_sums.method import Attended
from pde_solver.manifolds import Manifold
from pde_solver.models.attention import Attention
from pde_solver.models.linear import Linear
from pde_solver.models.normalisers import Unnormalised
from pde_solver.models.terms import Term


@dataclass(frozen=True)
class Field:
    """A velocity at given points, and how fast it may change.

    Args:
        values: (labels, n, D) tangent to the manifold; or (labels, n), its products with given normals.
        rate: Σ_h |a_h| ‖V_h‖ Z_h + ‖W‖ over the terms, with Z_h = 1 for normalised heads and else the largest
            ∫ e^{β⟨Qx,Ky⟩ − c} ν(dy) at this rank's points: 1/rate is the depth in which the law changes.
    """

    values: np.ndarray
    rate: float


@np.errstate(over="ignore", invalid="ignore")  # the time loop says what an infinite velocity means, in one sentence
def field_of(
    term: Term, manifold: Manifold, points: np.ndarray, attended: Sequence[Attended], normals: np.ndarray | None = None
) -> Field:
    """P_x Σ_h a_h Z_h V_h mean_h + P_x (W x + b).

    Args:
        term: the velocity in force.
        manifold: where the points lie.
        points: (n, D) the points x.
        attended: what each attention head of the term attends to there; with normals, along their pull-backs.
        normals: (n, D) tangent vectors; then only ⟨normal, velocity⟩ is formed.

    Raises:
        TypeError: for a kind of term that has no rule.
    """
    total: np.ndarray | None = None
    rate = 0.0
    found = iter(attended)
    for part in term.summands():
        if isinstance(part, Attention):
            means = next(found)
            value = means.mean if normals is not None else part.values(means.mean)
            largest = 1.0
            if isinstance(part.normaliser, Unnormalised):
                assert means.log_partition is not None
                factor = part.normaliser.factor(means.log_partition)
                value = (factor if normals is not None else factor[..., None]) * value
                largest = float(np.max(factor, initial=0.0))
            rate += abs(part.weight) * _norm(part.value) * largest
        elif isinstance(part, Linear):
            drift = part.drift(points)
            value = (drift if normals is None else np.einsum("nd,nd->n", normals, drift))[None]
            rate += 0.0 if part.matrix is None else _norm(part.matrix)
        else:
            raise TypeError(f"no rule to evaluate a velocity term of type {type(part).__name__}")
        total = value if total is None else total + value
    assert total is not None  # a term has summands
    return Field(manifold.project(points, total) if normals is None else total, rate)


def _norm(matrix: np.ndarray | None) -> float:
    return 1.0 if matrix is None else float(np.linalg.norm(matrix, 2))
