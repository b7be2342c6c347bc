"""Direct sums at a few targets: the targets travel to all ranks, the sources stay where they are."""

import numpy as np
from mpi4py import MPI

from pde_solver.kernel_sums.direct import ExponentialSums, exponential_sums
from pde_solver.kernel_sums.pruned import pruned_sums
from pde_solver.models.attention import Attention
from pde_solver.parallel import allgather_rows, max_over_ranks, sum_over_lower_ranks, sum_over_ranks

#: From so many targets on it pays to look for sources that do not matter.
_MANY = 256
_PRUNED_TOLERANCE = 1e-14


def sums_over_ranks(
    comm: MPI.Comm, head: Attention, targets: np.ndarray, sources: np.ndarray, weights: np.ndarray
) -> ExponentialSums:
    """∫ e^{score(x, y)} (1, y) ν_z(dy) at this rank's targets over the sources of all ranks. Collective.

    Args:
        comm: the ranks.
        head: whose scores.
        targets: (n, D) this rank's targets, few over all ranks.
        sources: (m, D) this rank's sources.
        weights: (labels, m) their weights ≥ 0.

    Returns:
        The sums at this rank's targets.
    """
    first, count = sum_over_lower_ranks(comm, len(targets)), len(targets)
    targets = allgather_rows(comm, targets)
    labels, n, dimension = len(weights), len(targets), sources.shape[1]
    shift = np.full((labels, n), -np.inf)
    denominator = np.zeros((labels, n))
    numerator = np.zeros((labels, n, dimension))
    present = np.flatnonzero((weights != 0).any(axis=1))
    if len(present) and n:
        keys = head.keys(sources)
        arguments = head.queries(targets), keys, sources, weights[present], head.key_bias(keys)
        part = pruned_sums(*arguments, tolerance=_PRUNED_TOLERANCE) if n >= _MANY else exponential_sums(*arguments)
        shift[present], denominator[present], numerator[present] = part.shift, part.denominator, part.numerator
    common = max_over_ranks(comm, shift)
    with np.errstate(invalid="ignore"):  # a label without mass anywhere: −∞ − (−∞)
        scale = np.exp(shift - common)
    sums = np.concatenate([denominator[..., None], numerator], axis=2) * scale[..., None]
    total = sum_over_ranks(comm, sums)
    own = slice(first, first + count)
    return ExponentialSums(common[:, own], total[:, own, 0], total[:, own, 1:])
