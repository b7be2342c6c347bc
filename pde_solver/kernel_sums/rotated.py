"""Sums over any points in R^d: the law on a grid along the right singular vectors of QᵀK, the means along the left."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.kernel_sums.lagrange import gather, scatter, stencil
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.separable import (
    SeparableKernel,
    diagonal_of,
    largest_around,
    separable_products,
)
from pde_solver.kernel_sums.whose_mass import importance_for
from pde_solver.manifolds import Euclidean
from pde_solver.models.attention import Attention
from pde_solver.models.normalisers import L2
from pde_solver.parallel import max_over_ranks, sum_over_ranks

# KᵀK counts as diagonal in the basis of the sources if everything else is smaller than this.
_DIAGONAL = 1e-13
# Else its exponential multiplies the weights, which must not underflow.
_BIAS_RANGE = 300.0
_MOST_NODES = {1: 4000, 2: 1_500_000, 3: 2_000_000}
# Error of the mean relative to the largest |y| with spacings h of the grids: C (rate · h)^order for each axis. On the
# side of the sources that of e^η, largest in the middle of the stencil; for the targets that of tanh, the mean under two
# equal atoms at the ends of the range.
_SOURCE_ERROR = {4: 3e-2, 6: 5e-3, 8: 1.2e-3}
_TARGET_ERROR = {4: 0.12, 6: 0.3, 8: 1.5}
# Those are bounds for two atoms in opposite corners. Laws with a density came within this factor of them (bumps and
# Gaussians, β from 4 to 64); the evaluator checks, and refines where a law is not so kind.
TYPICAL = {1: 0.1, 2: 0.02, 3: 2e-3}
# Coarser grids than for this bound say nothing.
_WORST = 0.05
_ROUND_OFF = 1e-13
# Boxes are this much, in units of the spacing, within what the stencils reach.
_SLACK = 1e-5
# Calibrated by measurement.
_SECONDS_PER_CALL = 2e-4
_SECONDS_PER_PRODUCT = {1: 4e-10, 2: 5e-11, 3: 5e-11}  # on a line each matrix entry is read for one or two products
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
    scores = [_Score.of(problem, head) for head in problem.heads]
    if any(score is None for score in scores):
        return []
    plans = []
    for order in _SOURCE_ERROR:
        worst = min(problem.tolerance / TYPICAL[problem.manifold.dimension], _WORST)
        found = [_Grids.planned(score, order, worst) for score in scores if score is not None]
        grids = [grid for grid in found if grid is not None]
        if len(grids) == len(found):
            plans.append(_proposal(problem, grids))
    return sorted(plans, key=lambda plan: plan.seconds)[:1]


def _proposal(problem: Problem, grids: list["_Grids"]) -> Proposal:
    order, dimension = grids[0].order, problem.manifold.dimension
    seconds, nodes = _SECONDS_PER_CALL, 0
    stencil_work = _SECONDS_PER_STENCIL_NODE * order**dimension
    for grid in grids:
        sources, targets = grid.sources.counts, grid.targets.counts
        work = _SECONDS_PER_PRODUCT[dimension] * separable_products(list(sources), list(targets))
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

    def __init__(self, problem: Problem, grids: list["_Grids"]) -> None:
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

    def __init__(self, problem: Problem, grids: "_Grids") -> None:
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


@dataclass(frozen=True, eq=False)
class _Score:
    """Σ_k (coupling_k ξ_k η_k − square_k η_k²/2) + bias(y), ξ = Uᵀx, η = Vᵀy, and where the points of all ranks are.

    Args:
        left: U.
        right: V.
        coupling: (d,) β s_k.
        square: (d,) the part of the bias of the keys that is diagonal in η.
        head: whose bias multiplies the weights, if it is not.
        log_scale: logarithm of what that was divided by.
        sources, targets: (2, d) least and largest coordinates η and ξ.
    """

    left: np.ndarray
    right: np.ndarray
    coupling: np.ndarray
    square: np.ndarray
    head: Attention | None
    log_scale: float
    sources: np.ndarray
    targets: np.ndarray

    @staticmethod
    def of(problem: Problem, head: Attention) -> "_Score | None":
        """The score of a head; None if its bias spans too many powers of ten. Collective."""
        dimension = problem.manifold.dimension
        query = np.eye(dimension) if head.query is None else head.query
        key = np.eye(dimension) if head.key is None else head.key
        left, singular, right = np.linalg.svd(query.T @ key)
        right = right.T
        bias = head.key_bias(head.keys(problem.sources))
        square = np.zeros(dimension)
        if isinstance(head.normaliser, L2):
            diagonal = diagonal_of(right.T @ key.T @ key @ right, _DIAGONAL)
            if diagonal is not None:
                square, bias = head.beta * diagonal, None
        parts = [problem.sources @ right, problem.targets @ left]
        parts += [] if bias is None else [bias[:, None]]
        extremes = [
            sign * (sign * part).max(axis=0, initial=-np.inf) if len(part) else np.full(part.shape[1], -sign * np.inf)
            for part in parts
            for sign in (-1.0, 1.0)
        ]
        signs = np.concatenate([np.full(len(e), s) for e, s in zip(extremes, (-1.0, 1.0) * len(parts), strict=True)])
        extreme = signs * max_over_ranks(problem.comm, signs * np.concatenate(extremes))
        if not np.all(np.isfinite(extreme)):
            return None
        sources, targets = extreme[: 4 * dimension].reshape(2, 2, dimension)
        log_scale = 0.0
        if bias is not None:
            least, log_scale = extreme[4 * dimension :]
            if log_scale - least > _BIAS_RANGE:
                return None
        biased = None if bias is None else head
        return _Score(left, right, head.beta * singular, square, biased, float(log_scale), sources, targets)

    def factor(self, sources: np.ndarray) -> np.ndarray | None:
        """e^{bias − scale} at sources (m, d), if they are to be multiplied by it."""
        if self.head is None:
            return None
        bias = self.head.key_bias(self.head.keys(sources))
        return None if bias is None else np.exp(bias - self.log_scale)


@dataclass(frozen=True, eq=False)
class _Lattice:
    """A uniform grid along orthonormal axes that surrounds a box by what the stencils need.

    Args:
        axes: (d, d) the axes in columns.
        lower, upper: (d,) the box.
        spacing: (d,).
        order: nodes of a stencil along each axis.
        counts: nodes along each axis.
    """

    axes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    spacing: np.ndarray
    order: int
    counts: tuple[int, ...]

    @staticmethod
    def around(axes: np.ndarray, box: np.ndarray, spacing: np.ndarray, order: int) -> "_Lattice":
        """With at most this spacing."""
        width = box[1] - box[0]
        cells = np.maximum(np.ceil(np.minimum(width / spacing, 1e8)), 1)
        # not so fine that the round-off of coordinates counts
        finest = 1e-9 * max(np.abs(box).max(), np.finfo(float).tiny)
        spacing = np.maximum(width / (cells - 2 * _SLACK), finest)
        counts = tuple(int(n) for n in cells + order)
        return _Lattice(axes, box[0], box[1], spacing, order, counts)

    @property
    def _begin(self) -> np.ndarray:
        return self.lower - (self.order // 2 - 1 + _SLACK) * self.spacing

    def positions(self, points: np.ndarray) -> np.ndarray:
        """Points in units of the spacing from node 0; from outside the box the nearest in it."""
        margin = self.order // 2
        last = np.array(self.counts) - margin - 0.5 * _SLACK
        return np.clip((points @ self.axes - self._begin) / self.spacing, margin - 1, last)

    def nodes(self) -> list[np.ndarray]:
        """Coordinates of the nodes on each axis."""
        return [a + h * np.arange(n) for a, h, n in zip(self._begin, self.spacing, self.counts, strict=True)]


@dataclass(frozen=True, eq=False)
class _Grids:
    """The grids of one head.

    Args:
        score: its score.
        order: of interpolation.
        sources, targets: the grids.
        error: expected error of the mean relative to the largest |y|.
    """

    score: _Score
    order: int
    sources: _Lattice
    targets: _Lattice
    error: float

    @staticmethod
    def planned(score: _Score, order: int, tolerance: float) -> "_Grids | None":
        """Grids that promise the tolerance; None if they would be too large."""
        dimension = len(score.coupling)
        share = (tolerance - 2 * _ROUND_OFF) / (2 * dimension)
        if share <= 0:
            return None
        # how fast the logarithm of the kernel varies in η: at most as at a corner of the ranges
        corners = np.abs(score.coupling * score.targets[:, None] - score.square * score.sources[None])
        source_rate = corners.max(axis=(0, 1)) + np.sqrt(score.square)
        if np.allclose(score.coupling, score.square, rtol=1e-12, atol=0.0):
            # e^{−|ξ − η|²/2}, scaled: where there is mass near a target nothing counts that is many widths away
            source_rate = np.minimum(source_rate, np.sqrt(score.square) * (1 + np.sqrt(2 * np.log(1e3 / tolerance))))
        # the mean is a function of coupling · ξ, and varies as fast as the spread of η allows
        target_rate = score.coupling * 0.5 * (score.sources[1] - score.sources[0])
        # the derivative of order p of η e^{aη} is a^{p−1} (aη + p) e^{aη}
        largest = np.abs(score.sources).max()
        source_power = source_rate ** (order - 1) * (source_rate + (order / largest if largest > 0 else 0.0))
        source_error = _SOURCE_ERROR[order] * source_power
        target_error = _TARGET_ERROR[order] * target_rate**order
        with np.errstate(divide="ignore"):
            h_source, h_target = (share / source_error) ** (1 / order), (share / target_error) ** (1 / order)
        sources = _Lattice.around(score.right, score.sources, h_source, order)
        targets = _Lattice.around(score.left, score.targets, h_target, order)
        most = max(np.prod(lattice.counts, dtype=float) for lattice in (sources, targets))
        if most > _MOST_NODES[dimension]:
            return None
        error = _ROUND_OFF + float(np.sum(source_error * sources.spacing**order))
        error += float(np.sum(target_error * targets.spacing**order))
        return _Grids(score, order, sources, targets, error)
