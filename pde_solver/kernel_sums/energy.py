"""The interaction energy that attention climbs, and how fast it does."""

import numpy as np

from pde_solver.errors import InputError
from pde_solver.kernel_sums.evaluation import Evaluation
from pde_solver.kernel_sums.evaluator import Evaluator
from pde_solver.labels import mixing_of_head
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models.attention import Attention
from pde_solver.models.model import Model
from pde_solver.models.normalisers import L2, Softmax, Unnormalised
from pde_solver.models.terms import Sum, Term
from pde_solver.parallel import max_over_ranks, sum_over_ranks

#: Energies are differenced and compared: they are summed to more digits than velocities.
_EVALUATION = Evaluation(tolerance=1e-9)


def interaction_energy(model: Model, t: float, measure: TokenMeasure) -> float:
    """E(μ) = Σ_h a_h/(2β_h) Σ_z π_z ∬ k_h(x, y) μ_z(dx) ν_z(dy) over heads h and labels z, ν = mixing · μ. Collective.

    The kernel k is e^{β⟨Qx,Ky⟩} for softmax attention, e^{β⟨Qx,Ky⟩−c} for unnormalised attention with
    `log_scale` c, and e^{−β|Qx−Ky|²/2} for L2 attention. For β = 0 the head contributes the limit of
    a (∬ k − ∬ e^{−c})/(2β), that is a e^{−c} ½ ∬ ⟨Qx,Ky⟩, or −a ¼ ∬ |Qx−Ky|² for L2 attention: the energy up
    to a constant. A linear drift contributes nothing. Values V do not enter.

    Args:
        model: terms and labels.
        t: depth.
        measure: the laws μ_z of all labels, distributed.

    Returns:
        The energy; infinite where it exceeds the floats (β > 700 or so): see `log_interaction_energy`.

    Source: Geshkovski, Letrouit, Polyanskiy, Rigollet (arXiv:2312.10794) for Q = K = V = I; the rest is its direct
    extension.
    """
    heads, mixing = _heads(model, t), np.asarray(model.labels.mixing)
    energy = 0.0
    for place, head in enumerate(heads):
        if head.beta == 0:
            energy += head.weight * _energy_without_temperature(model, head, measure, mixing_of_head(mixing, place))
    warm = [place for place, head in enumerate(heads) if head.beta > 0]
    own = mixing if mixing.ndim == 2 else mixing[warm]
    with np.errstate(over="ignore"):
        logarithms = _log_interactions(model, [heads[place] for place in warm], measure, own)
        for place, logarithm in zip(warm, logarithms, strict=True):
            energy += heads[place].weight * float(np.exp(logarithm)) / (2 * heads[place].beta)
    return energy


def log_interaction_energy(model: Model, t: float, measure: TokenMeasure) -> float:
    """log E(μ) of `interaction_energy`, which does not overflow however large β is. Collective.

    Args:
        model: terms and labels.
        t: depth.
        measure: the laws μ_z of all labels, distributed.

    Raises:
        InputError: unless there is an attention head and all have weight > 0 and β > 0, so that E > 0.
    """
    heads = _heads(model, t)
    if not heads or any(head.weight <= 0 or head.beta == 0 for head in heads):
        raise InputError(
            "log_interaction_energy: needs attention heads with weight > 0 and beta > 0, for a positive energy, "
            f"found {model.velocity.at(t)}; use interaction_energy."
        )
    found = _log_interactions(model, heads, measure, np.asarray(model.labels.mixing))
    weights = [np.log(head.weight / (2 * head.beta)) for head in heads]
    return float(np.logaddexp.reduce(np.add(found, weights)))


def energy_dissipation(model: Model, t: float, measure: TokenMeasure) -> float:
    """dE/dt of `interaction_energy` along the flow: Σ_z π_z ∫ |X_z|² dμ_z, or Σ_z π_z ∫ Z_z |X_z|² dμ_z if normalised.

    Here Z_z(x) = ∫ k(x, y) ν_z(dy), and X is the velocity. Exact where the velocity is the gradient of the energy
    (over Z): any number of unnormalised heads, or one softmax head, with V = QᵀK symmetric, or one L2 head with
    Q = K = V = I on a sphere; labels that attend to each other alike (π_z mixing_{zz'} symmetric); no drift.
    Collective.

    Args:
        model: manifold, terms and labels.
        t: depth.
        measure: the laws μ_z of all labels, distributed.

    Raises:
        InputError: where the identity does not hold.

    Source: model of arXiv:2312.10794; softmax, heads and labels derived for this project.
    """
    _check_gradient_flow(model, t)
    term, heads = model.velocity.at(t), _heads(model, t)
    evaluate = Evaluator(model.manifold, measure.comm, _EVALUATION)
    velocity = evaluate(term, measure, np.asarray(model.labels.mixing), measure.points).values
    rate = np.asarray(model.labels.weights)[:, None] * measure.weights * np.einsum("znd,znd->zn", velocity, velocity)
    if not heads[0].normaliser.normalised:
        return float(sum_over_ranks(measure.comm, rate.sum()))
    log_partition = _log_partitions(model, heads, measure, np.asarray(model.labels.mixing))[0]
    top = max_over_ranks(measure.comm, np.max(log_partition, initial=-np.inf))
    scaled = float(sum_over_ranks(measure.comm, (rate * np.exp(log_partition - top)).sum()))
    with np.errstate(over="ignore"):
        return scaled * float(np.exp(top)) if scaled else 0.0


def _heads(model: Model, t: float) -> list[Attention]:
    return [part for part in model.velocity.at(t).summands() if isinstance(part, Attention)]


def _log_partitions(
    model: Model, heads: list[Attention], measure: TokenMeasure, mixing: np.ndarray
) -> list[np.ndarray]:
    """log ∫ k(x, y) ν_z(dy) of each head at this rank's points, (labels, n)."""
    term: Term = Sum(tuple(heads))
    evaluate = Evaluator(model.manifold, measure.comm, _EVALUATION)
    found = evaluate.log_partitions(term, measure, mixing, measure.points)
    return [part + _target_exponent(head, measure.points) for head, part in zip(heads, found, strict=True)]


def _target_exponent(head: Attention, points: np.ndarray) -> np.ndarray | float:
    """What the logarithm of the kernel has beyond the score, which leaves out terms of the target alone."""
    match head.normaliser:
        case Softmax():
            return 0.0
        case Unnormalised(log_scale):
            return -log_scale
        case L2():
            return -0.5 * head.beta * (_query_points(head, points) ** 2).sum(axis=1)


def _query_points(head: Attention, points: np.ndarray) -> np.ndarray:
    return points if head.query is None else points @ head.query.T


def _log_interactions(model: Model, heads: list[Attention], measure: TokenMeasure, mixing: np.ndarray) -> list[float]:
    """log Σ_z π_z ∬ k(x, y) μ_z(dx) ν_z(dy) of each head."""
    weights = np.asarray(model.labels.weights)[:, None] * measure.weights
    logarithms = []
    for log_partition in _log_partitions(model, heads, measure, mixing) if heads else []:
        top = max_over_ranks(measure.comm, np.max(log_partition, initial=-np.inf, where=weights != 0))
        total = sum_over_ranks(measure.comm, (weights * np.exp(np.minimum(log_partition - top, 0))).sum())
        logarithms.append(float(top + np.log(total)))
    return logarithms


def _energy_without_temperature(model: Model, head: Attention, measure: TokenMeasure, mixing: np.ndarray) -> float:
    """½ Σ_z π_z ∬ ⟨Qx, Ky⟩ μ_z(dx) ν_z(dy), or −¼ Σ_z π_z ∬ |Qx − Ky|² μ_z(dx) ν_z(dy) for L2 attention."""
    weights = np.asarray(model.labels.weights)
    attended = measure.mixed(mixing)

    def moments(law: TokenMeasure, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        together = law.weights @ np.column_stack([np.ones(len(rows)), (rows**2).sum(axis=1), rows])
        mass_square_mean = sum_over_ranks(law.comm, together)
        return mass_square_mean[:, 0], mass_square_mean[:, 1], mass_square_mean[:, 2:]

    mass, square, mean = moments(measure, _query_points(head, measure.points))
    attended_mass, attended_square, attended_mean = moments(attended, head.keys(measure.points))
    energy = 0.5 * np.einsum("zk,zk->z", mean, attended_mean)
    match head.normaliser:
        case Unnormalised(log_scale):
            energy = np.exp(-log_scale) * energy
        case L2():
            energy = energy - 0.25 * (square * attended_mass + mass * attended_square)
    return float(weights @ energy)


def _check_gradient_flow(model: Model, t: float) -> None:
    term = model.velocity.at(t)
    heads = _heads(model, t)
    mixing = np.asarray(model.labels.weights)[:, None] * model.labels.mixing
    if len(heads) < len(term.summands()):
        problem = "the velocity has a drift"
    elif len(heads) > 1 and any(head.normaliser.normalised for head in heads):
        problem = "there are several heads and not all are unnormalised"
    elif not np.allclose(mixing, np.swapaxes(mixing, -1, -2), rtol=1e-12, atol=0):
        problem = "the labels do not attend to each other alike"
    elif not all(_is_gradient(head, model) for head in heads):
        problem = "a head is not a gradient (V = QᵀK symmetric; for L2 attention Q = K = V = I on a sphere)"
    else:
        return
    raise InputError(
        f"energy_dissipation: the rate of the interaction energy is known only for gradient flows; here {problem}. "
        "Record interaction_energy and difference it."
    )


def _is_gradient(head: Attention, model: Model) -> bool:
    if isinstance(head.normaliser, L2):
        return isinstance(model.manifold, Sphere) and head.query is head.key is head.value is None
    identity = np.eye(model.manifold.ambient_dimension)
    query, key, value = (identity if m is None else m for m in (head.query, head.key, head.value))
    form = query.T @ key
    scale = np.abs(form).max()
    return bool(
        np.allclose(form, form.T, rtol=0, atol=1e-12 * scale) and np.allclose(form, value, rtol=0, atol=1e-12 * scale)
    )
