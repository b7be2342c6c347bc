"""Sums on tensor grids in R^d with diagonal QᵀK: one matrix product for each axis, exact for every β."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpi4py import MPI

from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.separable import (
    SECONDS_PER_PRODUCT,
    SeparableKernel,
    diagonal_of,
    largest_around,
    separable_products,
)
from pde_solver.kernel_sums.spot_check import importance_for
from pde_solver.manifolds import Euclidean
from pde_solver.models.attention import Attention
from pde_solver.models.normalisers import L2
from pde_solver.parallel import allgather_rows, max_over_ranks, sum_over_ranks

# Coordinates closer than this, relative to the largest, are one: midpoints computed in another order differ by a few ε.
_SAME = 1e-13
# QᵀK counts as diagonal if everything else is smaller than this, relative to its largest entry.
_DIAGONAL = 1e-14
# Values of the target grids over the values wanted, at most.
_WASTE = 3.0
_GROUPS = 12
_FACTOR_BYTES = 4e8
# Calibrated by measurement: a point or value copied, a call.
_SECONDS_PER_POINT = 1.5e-8
_SECONDS_PER_CALL = 1e-4


def proposals(problem: Problem) -> list[Proposal]:
    """The tensor method, if sources and targets lie on tensor grids and every head is diagonal. Collective.

    Args:
        problem: heads, targets and sources.

    Returns:
        One proposal or none.
    """
    if not isinstance(problem.manifold, Euclidean) or problem.manifold.dimension > 3:
        return []
    dimension = problem.manifold.dimension
    if any(_rates(head, dimension) is None for head in problem.heads):
        return []
    sources = _source_grid(problem)
    groups = None if sources is None else _target_groups(problem)
    if sources is None or groups is None:
        return []
    counts = [len(values) for values in sources.axes]
    factors = sum(len(group.axes[k]) * counts[k] for group in groups for k in range(dimension))
    if factors * 16 * len(problem.heads) > _FACTOR_BYTES:
        return []
    work = sum(separable_products(counts, [len(values) for values in group.axes]) for group in groups)
    points = len(problem.heads) * (1 + dimension) * problem.target_count + problem.source_count
    seconds = _SECONDS_PER_CALL * len(problem.heads) * len(groups) + problem.labels * (
        SECONDS_PER_PRODUCT[dimension] * work * len(problem.heads) + _SECONDS_PER_POINT * points
    )
    shape = " × ".join(map(str, counts))
    return [
        Proposal(
            name=f"tensor grid {shape}, targets on {len(groups)}",
            family="tensor",
            seconds=seconds,
            error=1e-13,
            communication=8 * problem.labels * problem.source_count,
            build=lambda: TensorSums(problem, sources, groups),
        )
    ]


@dataclass(frozen=True, eq=False)
class _Grid:
    """A tensor grid over all ranks, and where on it some points of this rank are.

    Args:
        axes: the values of each coordinate, ascending.
        members: (k,) which points of this rank are meant.
        places: (k, d) their places on the axes.
    """

    axes: list[np.ndarray]
    members: np.ndarray
    places: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.axes)

    @cached_property
    def flat(self) -> np.ndarray:
        return np.ravel_multi_index(tuple(self.places.T), self.shape)

    def restricted(self) -> "_Grid":
        """The part whose values this rank's members take."""
        taken = [np.unique(column, return_inverse=True) for column in self.places.T]
        axes = [values[used] for values, (used, _) in zip(self.axes, taken, strict=True)]
        return _Grid(axes, self.members, np.column_stack([place for _, place in taken]))


class TensorSums(Sums):
    """∫ e^{β Σ_k a_k x_k y_k} (1, y) ν(dy) between tensor grids, exact for every β.

    Args:
        problem: heads, targets and sources.
        sources: the grid of the sources.
        groups: grids that together hold this rank's targets.

    Source: derived for this project.
    """

    def __init__(self, problem: Problem, sources: _Grid, groups: list[_Grid]) -> None:
        self._problem = problem
        self._sources = sources
        self._flat = sources.flat
        self._groups = [group.restricted() for group in groups if len(group.members)]
        rates = [_rates(head, problem.manifold.dimension) for head in problem.heads]
        self._kernels = [
            [SeparableKernel(*rate, group.axes, sources.axes) for group in self._groups] for rate in rates if rate
        ]
        self._weights = np.zeros((problem.labels, *sources.shape))

    def attend(
        self,
        weights: np.ndarray,
        mixing: np.ndarray,
        directions: Sequence[np.ndarray] | None = None,
        *,
        partition: bool = False,
    ) -> list[Attended]:
        """What each head attends to, exact to round-off; doubtful where there is mass but sums underflow."""
        grid = np.zeros((len(weights), int(np.prod(self._sources.shape))))
        grid[:, self._flat] = weights
        grid = sum_over_ranks(self._problem.comm, grid)
        self._weights = grid.reshape(len(grid), *self._sources.shape)
        attended = (np.atleast_2d(mixing) @ grid).reshape(-1, *self._sources.shape)
        near = importance_for(self.mass_near(self._problem.targets), mixing) > self._problem.tolerance
        return [
            self._head(index, attended, None if directions is None else directions[index], partition, near)
            for index in range(len(self._problem.heads))
        ]

    def _head(
        self, index: int, weights: np.ndarray, direction: np.ndarray | None, partition: bool, near: np.ndarray
    ) -> Attended:
        labels, (count, dimension) = len(weights), self._problem.targets.shape
        mean = np.zeros((labels, count, dimension) if direction is None else (labels, count))
        log_partition = np.full((labels, count), -np.inf) if partition else None
        doubtful = np.zeros((labels, count), dtype=bool)
        for group, kernel in zip(self._groups, self._kernels[index], strict=True):
            found, own = kernel.means(weights, partition), group.members
            wanted = found.mean.reshape(labels, -1, dimension)[:, group.flat]
            mean[:, own] = wanted if direction is None else np.einsum("nd,znd->zn", direction[own], wanted)
            doubtful[:, own] = found.faint.reshape(labels, -1)[:, group.flat]
            if log_partition is not None and found.log_partition is not None:
                log_partition[:, own] = found.log_partition.reshape(labels, -1)[:, group.flat]
        doubtful &= near
        return Attended(mean, log_partition, doubtful if doubtful.any() else None)

    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """The largest weight among the nearest node and its neighbours, relative to the largest of all."""
        places = _placed(self._sources.axes, points).flat
        return largest_around(self._weights).reshape(len(self._weights), -1)[:, places]


def _rates(head: Attention, dimension: int) -> tuple[np.ndarray, np.ndarray] | None:
    """β a_k and, for L2 attention, β c_k of the score Σ_k β (a_k x_k y_k − c_k y_k²/2); None if it is not so."""
    query = np.eye(dimension) if head.query is None else head.query
    key = np.eye(dimension) if head.key is None else head.key
    coupling = diagonal_of(query.T @ key, _DIAGONAL)
    square = diagonal_of(key.T @ key, _DIAGONAL) if isinstance(head.normaliser, L2) else np.zeros(dimension)
    return None if coupling is None or square is None else (head.beta * coupling, head.beta * square)


def _source_grid(problem: Problem) -> _Grid | None:
    """The tensor grid that the sources of all ranks are, each node once; None if they are none."""
    axes = _axes(problem.comm, problem.sources, float(problem.source_count))
    if (
        not problem.source_count
        or axes is None
        or np.prod([len(values) for values in axes], dtype=float) != problem.source_count
    ):
        return None
    grid = _placed(axes, problem.sources)
    present = np.bincount(grid.flat, minlength=problem.source_count).astype(np.int32)
    return grid if np.all(sum_over_ranks(problem.comm, present) == 1) else None


def _target_groups(problem: Problem) -> list[_Grid] | None:
    """Tensor grids that hold the targets of all ranks with little waste; None if there are no such grids.

    First the exact splitting: values of a coordinate whose slices are equal belong together. Where that falls apart,
    one grid of all values.
    """
    axes = _axes(problem.comm, problem.targets, 4 * _WASTE * problem.target_count)
    if axes is None:
        return None
    whole = _placed(axes, problem.targets)
    present = np.zeros(whole.shape, dtype=np.uint8)
    present[tuple(whole.places.T)] = 1
    present = max_over_ranks(problem.comm, present).astype(bool)
    if problem.manifold.dimension == 1 or present.all():
        return [whole]
    parts = _split(present)
    if len(parts) > _GROUPS:
        return [whole] if present.size <= _WASTE * problem.target_count else None
    return [_part(whole, part) for part in parts]


def _split(present: np.ndarray) -> list[list[np.ndarray]]:
    """Index sets (one for each axis) whose products are disjoint and make up the nodes present."""
    if present.ndim == 1:
        return [[np.flatnonzero(present)]] if present.any() else []
    slices = np.packbits(present.reshape(len(present), -1), axis=1)
    _, first, kind = np.unique(slices, axis=0, return_index=True, return_inverse=True)
    if len(first) > _GROUPS:  # enough to see that it falls apart
        return [[]] * (_GROUPS + 1)
    parts = []
    for group, example in enumerate(first):
        rows = np.flatnonzero(kind == group)
        parts += [[rows, *rest] for rest in _split(present[example])]
    return parts


def _part(whole: _Grid, part: list[np.ndarray]) -> _Grid:
    """The targets whose places are in a product of index sets, on that grid."""
    inside = np.ones(len(whole.members), dtype=bool)
    for k, rows in enumerate(part):
        inside &= np.isin(whole.places[:, k], rows)
    places = [np.searchsorted(rows, whole.places[inside, k]) for k, rows in enumerate(part)]
    return _Grid(
        [values[rows] for values, rows in zip(whole.axes, part, strict=True)],
        whole.members[inside],
        np.column_stack(places),
    )


def _axes(comm: MPI.Comm, points: np.ndarray, most: float) -> list[np.ndarray] | None:
    """The values that each coordinate takes on all ranks; None if their grid has more than `most` nodes."""
    scale = float(max_over_ranks(comm, np.abs(points).max(initial=0.0)))
    if not np.isfinite(scale):
        return None
    local = [_distinct(column, _SAME * scale) for column in points.T]
    size = np.prod([max(len(values), 1) for values in local], dtype=float)
    if max_over_ranks(comm, size) > most:
        return None
    axes = [_distinct(allgather_rows(comm, values), _SAME * scale) for values in local]
    return axes if np.prod([len(values) for values in axes], dtype=float) <= most else None


def _distinct(values: np.ndarray, tolerance: float) -> np.ndarray:
    """The values in ascending order, one of each cluster."""
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], np.diff(ordered) > tolerance])] if len(ordered) else ordered


def _placed(axes: list[np.ndarray], points: np.ndarray) -> _Grid:
    places = [_nearest(values, column) for values, column in zip(axes, points.T, strict=True)]
    return _Grid(axes, np.arange(len(points)), np.column_stack(places))


def _nearest(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which of the ascending values is nearest."""
    return np.searchsorted(0.5 * (values[1:] + values[:-1]), wanted)
