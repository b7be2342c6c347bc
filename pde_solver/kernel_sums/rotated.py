"""Sums over any points in R^d: the law on a grid along the right singular vectors of QᵀK, the means along the left."""

from collections.abc import Sequence

import numpy as np

from pde_solver.kernel_sums.diagonal_score import DiagonalScore
from pde_solver.kernel_sums.lagrange import ORDERS, gather, scatter, stencil
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.rotated_grids import RotatedGrids
from pde_solver.kernel_sums.separable import SECONDS_PER_PRODUCT, SeparableKernel, largest_around, separable_products
from pde_solver.kernel_sums.spot_check import importance_for
from pde_solver.manifolds import Euclidean
from pde_solver.parallel import sum_over_ranks

# The errors of the grids are bounds for two atoms in opposite corners. Laws with a density came within this factor of
# them (bumps and Gaussians, β from 4 to 64); the evaluator checks, and refines where a law is not so kind.
TYPICAL = {1: 0.1, 2: 0.02, 3: 2e-3}
# Coarser grids than for this bound say nothing.
_WORST = 0.05
# Calibrated by measurement.
_SECONDS_PER_CALL = 2e-4
_SECONDS_PER_NODE = 2.5e-8
_SECONDS_PER_POINT = 1.5e-8
_SECONDS_PER_STENCIL_NODE = 6e-10


def proposals(problem: Problem) -> list[Proposal]:
    """The cheapest rotated grids that promise the tolerance, for any heads and points in R, R² and R³. Collective.

    Args:
        problem: heads, targets and sources.

    Returns:
        One proposal, or none where the grids would be too large.
    """
    if not isinstance(problem.manifold, Euclidean) or problem.manifold.dimension > 3:
        return []
    if not problem.source_count or not problem.target_count:
        return []
    scores = [DiagonalScore.of(problem, head) for head in problem.heads]
    if any(score is None for score in scores):
        return []
    plans = []
    for order in ORDERS[1:]:
        worst = min(problem.tolerance / TYPICAL[problem.manifold.dimension], _WORST)
        found = [RotatedGrids.planned(score, order, worst) for score in scores if score is not None]
        grids = [grid for grid in found if grid is not None]
        if len(grids) == len(found):
            plans.append(_proposal(problem, grids))
    return sorted(plans, key=lambda plan: plan.seconds)[:1]


def _proposal(problem: Problem, grids: list[RotatedGrids]) -> Proposal:
    order, dimension = grids[0].order, problem.manifold.dimension
    seconds, nodes = _SECONDS_PER_CALL, 0
    stencil_work = _SECONDS_PER_STENCIL_NODE * order**dimension
    for grid in grids:
        sources, targets = grid.sources.counts, grid.targets.counts
        work = SECONDS_PER_PRODUCT[dimension] * separable_products(list(sources), list(targets))
        work += _SECONDS_PER_NODE * (np.prod(sources) + (1 + dimension) * np.prod(targets))
        work += (_SECONDS_PER_POINT + stencil_work) * problem.source_count
        work += (_SECONDS_PER_POINT + 2 * stencil_work) * problem.target_count
        seconds += float(work) * problem.labels
        nodes += int(np.prod(sources))
    shape = " × ".join(map(str, grids[0].sources.counts))
    return Proposal(
        name=f"rotated grid {shape}, order {order}",
        family="rotated",
        seconds=seconds,
        error=TYPICAL[dimension] * max(grid.error for grid in grids),
        communication=8 * problem.labels * nodes,
        build=lambda: RotatedSums(problem, grids),
    )


class RotatedSums(Sums):
    """⟨x, QᵀK y⟩ = Σ_k s_k ξ_k η_k with QᵀK = U S Vᵀ, ξ = Uᵀx, η = Vᵀy: a separable kernel between two grids.

    The law is scattered to nodes η, its means are found at nodes ξ and interpolated to the targets. Sums may differ by
    any number of powers of ten from node to node; interpolation of e^{s η ξ} in η has a relative error, the same for
    all, and the mean is smooth in ξ.

    Args:
        problem: heads, targets and sources.
        grids: the grids of each head.

    Source: derived for this project.
    """

    def __init__(self, problem: Problem, grids: list[RotatedGrids]) -> None:
        self._problem = problem
        self._heads = [_BoundHead(problem, grid) for grid in grids]
        first = grids[0].sources
        self._weights = np.zeros((problem.labels, *first.counts))

    def attend(
        self,
        weights: np.ndarray,
        mixing: np.ndarray,
        directions: Sequence[np.ndarray] | None = None,
        *,
        partition: bool = False,
    ) -> list[Attended]:
        """What each head attends to; doubtful where there is mass but sums underflow."""
        local = [head.scattered(weights).reshape(len(weights), -1) for head in self._heads]
        sizes = np.cumsum([part.shape[1] for part in local])
        summed = sum_over_ranks(self._problem.comm, np.concatenate(local, axis=1) if len(local) > 1 else local[0])
        laws = np.split(summed, sizes[:-1], axis=1)
        first = self._heads[0].grids.sources
        self._weights = laws[0].reshape(len(weights), *first.counts)
        near = importance_for(self.mass_near(self._problem.targets), mixing) > self._problem.tolerance
        mixing = np.atleast_2d(mixing)
        return [
            head.attended(mixing @ law, None if directions is None else directions[index], partition, near)
            for index, (head, law) in enumerate(zip(self._heads, laws, strict=True))
        ]

    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """The largest weight among the nearest node and its neighbours, relative to the largest of all."""
        lattice = self._heads[0].grids.sources
        nearest = np.rint(lattice.positions(points)).astype(np.int64)
        places = np.ravel_multi_index(tuple(nearest.T), lattice.counts, mode="clip")
        return largest_around(self._weights).reshape(len(self._weights), -1)[:, places]


class _BoundHead:
    """One head with its grids, the stencils of this rank's points and the kernel to the nodes that they need."""

    def __init__(self, problem: Problem, grids: RotatedGrids) -> None:
        self.grids = grids
        sources, targets = grids.sources, grids.targets
        self._source_stencil = stencil(sources.positions(problem.sources), grids.order)
        base, self._offset = stencil(targets.positions(problem.targets), grids.order)
        first = base.min(axis=0) if len(base) else np.zeros(len(targets.counts), dtype=np.int32)
        self._base = np.ascontiguousarray(base - first)
        counts = self._base.max(axis=0, initial=0) + grids.order
        axes = [nodes[begin : begin + n] for nodes, begin, n in zip(targets.nodes(), first, counts, strict=True)]
        self._kernel = SeparableKernel(grids.score.coupling, grids.score.square, axes, sources.nodes())
        self._factor = grids.score.factor(problem.sources)

    def scattered(self, weights: np.ndarray) -> np.ndarray:
        """This rank's part of the laws on the grid of the sources, (labels, nodes...)."""
        result = np.zeros((len(weights), *self.grids.sources.counts))
        weights = weights if self._factor is None else weights * self._factor
        for row, grid in zip(np.ascontiguousarray(weights), result, strict=True):
            scatter(self.grids.order, *self._source_stencil, row, grid)
        return result

    def attended(self, laws: np.ndarray, direction: np.ndarray | None, partition: bool, near: np.ndarray) -> Attended:
        """The means at this rank's targets under laws (labels, nodes)."""
        order, score, lattice = self.grids.order, self.grids.score, self.grids.sources
        labels, (count, dimension) = len(laws), self._base.shape
        found = self._kernel.means(laws.reshape(labels, *lattice.counts), partition)
        means = np.clip(found.mean, lattice.lower, lattice.upper, out=found.mean)
        mean = np.empty((labels, count, dimension) if direction is None else (labels, count))
        log_partition = np.empty((labels, count)) if partition else None
        doubtful = np.zeros((labels, count), dtype=bool)
        turned = None if direction is None else direction @ score.right
        for label in range(labels):
            columns = [means[label]]
            if found.log_partition is not None:
                # −∞ would spoil its neighbours; where it counts it is doubtful
                logarithm = found.log_partition[label]
                columns.append(np.where(found.faint[label], 0.0, logarithm)[..., None])
            if found.faint[label].any():
                columns.append(found.faint[label].astype(float)[..., None])
            fields = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=-1)
            out = np.empty((count, fields.shape[-1]))
            gather(order, self._base, self._offset, np.ascontiguousarray(fields), out)
            values = out[:, :dimension]
            mean[label] = values @ score.right.T if turned is None else np.einsum("nd,nd->n", turned, values)
            if log_partition is not None:
                log_partition[label] = out[:, dimension] + score.log_scale
            if found.faint[label].any():
                doubtful[label] = np.abs(out[:, -1]) > 1e-12
        doubtful &= near
        return Attended(mean, log_partition, doubtful if doubtful.any() else None)
