"""The nonlocal velocity of a model at given points, as a function."""

from collections.abc import Sequence

import numpy as np

from pde_solver.kernel_sums.evaluation import Evaluation
from pde_solver.kernel_sums.evaluator import Evaluator
from pde_solver.measures import TokenMeasure
from pde_solver.models.model import Model


def velocity(
    model: Model,
    t: float,
    points: np.ndarray,
    measure: TokenMeasure,
    *,
    labels: Sequence[int] | None = None,
    evaluation: Evaluation | None = None,
) -> np.ndarray:
    """X_z[μ](x) = P_x Σ_h a_h ∫ e^{β⟨Q_h x, K_h y⟩} V_h y ν_z(dy) / Z_h + P_x (W x + b), with ν = mixing · μ.

    Collective.

    Args:
        model: manifold, terms and labels.
        t: depth.
        points: (n, D) this rank's points x.
        measure: the laws μ_z of all labels, distributed over the ranks of `measure.comm`.
        labels: the labels z wanted; all by default.
        evaluation: tolerance and method; by default direct sums, which are exact. The tolerance of other methods holds where
            there are tokens.

    Returns:
        (labels, n, D), tangent to the manifold.

    Raises:
        InputError: if a label attends to no mass, or the method cannot be used.
        RunStopped: if the method that was asked for misses the tolerance.
    """
    wanted = list(range(model.labels.count)) if labels is None else list(labels)
    mixing = np.asarray(model.labels.mixing)
    some = len(wanted) < model.labels.count
    evaluate = Evaluator(model.manifold, measure.comm, evaluation or Evaluation(method="dense"))
    values = evaluate(model.velocity.at(t), measure, mixing[..., wanted, :] if some else mixing, points).values
    return values if some or labels is None else values[wanted]
