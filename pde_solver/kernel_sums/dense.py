"""The direct sum as a method: every target sums over every source, on any manifold."""

from collections.abc import Sequence

import numpy as np

from pde_solver.kernel_sums.direct import exponential_sums
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.parallel import allgather_rows

#: Seconds of a call with no pairs, and of a pair for up to 4 features with and without further columns (measured).
_OVERHEAD = 60e-6
_PER_PAIR = 0.45e-9
_PER_FURTHER_PRODUCT = 0.09e-9


def proposals(problem: Problem) -> list[Proposal]:
    """The direct sum is always possible."""
    pairs = float(problem.target_count) * problem.source_count
    dimension = problem.manifold.ambient_dimension
    seconds = 0.0
    for head in problem.heads:
        features = dimension if head.key is None else len(head.key)
        further = max(features - 3, 0) + problem.labels * (1 + dimension) - 4
        seconds += _OVERHEAD + pairs * (_PER_PAIR + _PER_FURTHER_PRODUCT * max(further, 0))
    return [
        Proposal(
            name=f"direct sum of {problem.target_count:,} × {problem.source_count:,} pairs",
            family="dense",
            seconds=seconds,
            error=0.0,
            communication=8 * problem.labels * problem.source_count // problem.comm.size,
            build=lambda: DenseSums(problem),
        )
    ]


class DenseSums(Sums):
    """Exact up to round-off; each rank gathers the sources of all and sums for its own targets."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._sources = allgather_rows(problem.comm, problem.sources)
        self._queries = [head.queries(problem.targets) for head in problem.heads]
        self._keys = [head.keys(self._sources) for head in problem.heads]

    def attend(
        self,
        weights: np.ndarray,
        mixing: np.ndarray,
        directions: Sequence[np.ndarray] | None = None,
        *,
        partition: bool = False,
    ) -> list[Attended]:
        """What each head attends to. Collective."""
        attended = allgather_rows(self._problem.comm, (mixing @ weights).T).T
        result = []
        for index, head in enumerate(self._problem.heads):
            keys = self._keys[index]
            sums = exponential_sums(self._queries[index], keys, self._sources, attended, head.key_bias(keys))
            mean = sums.mean
            if directions is not None:
                mean = np.einsum("znd,nd->zn", mean, directions[index])
            result.append(Attended(mean, sums.log_partition if partition else None))
        return result

    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """1 everywhere: nothing here depends on where the mass is."""
        return np.ones((self._problem.labels, len(points)))
