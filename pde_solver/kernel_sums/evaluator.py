"""The velocity of a term at many points, to a tolerance: methods chosen, checked, refined."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError, RunStopped
from pde_solver.kernel_sums.choose import choose
from pde_solver.kernel_sums.evaluation import Evaluation
from pde_solver.kernel_sums.field import Field, field_of
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.over_ranks import sums_over_ranks
from pde_solver.kernel_sums.spot_check import SAMPLE, Sample, importance
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models.attention import Attention
from pde_solver.models.terms import Term
from pde_solver.parallel import allgather_rows, max_over_ranks, sum_over_lower_ranks, sum_over_ranks

#: A mean is asked to this fraction of the velocity's tolerance: the tangential part is smaller than the mean.
_MARGIN = 0.3
#: Velocities below this fraction of what attention could do need not be known relative to themselves.
_STANDSTILL = 1e-5
#: What a check may cost, as a fraction of the evaluations between two of them, and how many these may be.
_BUDGET = 0.05
_OFTENEST, _RAREST = 8, 64
#: Seconds of a check: fixed, and for each source.
_CHECK_OVERHEAD, _CHECK_PER_SOURCE = 1e-3, SAMPLE * 0.8e-9


class Evaluator:
    """Evaluates velocities and keeps what depends on points alone; one for each discretisation.

    Args:
        manifold: where the points lie.
        comm: the ranks over which points and measures are distributed.
        evaluation: tolerance and method.
    """

    def __init__(self, manifold: Manifold, comm: MPI.Comm, evaluation: Evaluation) -> None:
        self.manifold = manifold
        self.comm = comm
        self.evaluation = evaluation
        #: The largest error that a check has found and accepted, relative to the largest velocity; None before one.
        self.error: float | None = None
        #: How many powers of ten the methods work below the tolerance, and evaluations so far: what a resumed run needs.
        self.refinement = 0
        self.evaluations = 0
        self._plan: _Plan | None = None

    def __call__(
        self,
        term: Term,
        measure: TokenMeasure,
        mixing: np.ndarray,
        points: np.ndarray,
        normals: np.ndarray | None = None,
    ) -> Field:
        """P_x of the sum of a velocity's elementary terms. Collective.

        Args:
            term: the velocity in force, constant in depth.
            measure: the laws μ_z of all labels.
            mixing: (labels', labels) whom the wanted labels attend to, ν = mixing · μ.
            points: (n, D) this rank's points x. What depends on points and sources alone is kept as long as both are the
                same arrays as before.
            normals: (n, D) tangent vectors; then only ⟨normal, velocity⟩ is wanted.

        Raises:
            InputError: if a label attends to no mass, or the method that was asked for cannot be used.
            RunStopped: if it misses the tolerance.
        """
        plan = self._planned(term, measure, mixing, points, normals)
        while True:
            attended = plan.attended(measure, mixing)
            field = field_of(term, self.manifold, points, attended, normals)
            if plan.exact or self.evaluations % plan.check_every:
                break
            error = self._measured_error(plan, field, measure, mixing)
            if error <= self.evaluation.tolerance:
                self.error = error if self.error is None else max(error, self.error)
                break
            # a nan is the time loop's to find
            if not math.isfinite(error):
                break
            self.refinement += max(1, math.ceil(math.log10(error / self.evaluation.tolerance)))
            self._plan = None
            try:
                plan = self._planned(term, measure, mixing, points, normals)
            except InputError as refused:
                raise RunStopped(
                    f"velocity: {plan.names} misses the truth by {error:.1e} of the largest velocity, allowed are "
                    f"{self.evaluation.tolerance:.1e}. {refused}"
                ) from None
        self.evaluations += 1
        if len(field.values) == len(mixing):
            return field
        return replace(field, values=np.repeat(field.values, len(mixing), axis=0))  # a drift alone knows no labels

    def log_partitions(
        self, term: Term, measure: TokenMeasure, mixing: np.ndarray, points: np.ndarray
    ) -> list[np.ndarray]:
        """log ∫ e^{score(x, y)} ν_z(dy) for each head of a term, (labels', n) each. Collective; not checked.

        Args:
            term, measure, mixing, points: as for a call.
        """
        plan = self._planned(term, measure, mixing, points, None)
        attended = plan.attended(measure, mixing, partition=True)
        return [part.log_partition for part in attended if part.log_partition is not None]

    def choices(
        self,
        term: Term,
        measure: TokenMeasure,
        mixing: np.ndarray,
        points: np.ndarray,
        normals: np.ndarray | None = None,
    ) -> list[tuple[Proposal, Proposal]]:
        """For each group of heads, the method that a call would use now, and the direct sum beside it. Collective.

        Args:
            term, measure, mixing, points, normals: as for a call.
        """
        groups = self._planned(term, measure, mixing, points, normals).groups
        return [(group.proposal, group.direct) for group in groups]

    def _planned(
        self, term: Term, measure: TokenMeasure, mixing: np.ndarray, points: np.ndarray, normals: np.ndarray | None
    ) -> "_Plan":
        plan = self._plan
        fits = plan is not None and plan.is_for(term, measure, points, normals)
        if plan is None or not fits:
            tolerance = _MARGIN * self.evaluation.tolerance * 10.0**-self.refinement
            plan = _Plan(self, term, measure, mixing, points, normals, tolerance)
            self._plan = plan
        return plan

    def _measured_error(self, plan: "_Plan", field: Field, measure: TokenMeasure, mixing: np.ndarray) -> float:
        """The largest error at a few targets, relative to the largest velocity, by direct sums. Collective."""
        number = self.evaluations
        sample = plan.sample()
        mass = importance(plan.mass_near(plan.points[sample.pool]).max(axis=0))
        chosen = sample.draw(number, mass)
        points = allgather_rows(self.comm, plan.points[chosen])
        normals = None if plan.normals is None else allgather_rows(self.comm, plan.normals[chosen])
        weights = mixing @ measure.weights
        attended = []
        for head in plan.heads:
            sums = sums_over_ranks(self.comm, head, points, measure.points, weights)
            mean = sums.mean
            if normals is not None:
                mean = np.einsum("znd,nd->zn", mean, head.pulled_back(normals))
            attended.append(Attended(mean, sums.log_partition))
        right = field_of(plan.term, self.manifold, points, attended, normals).values
        first = sum_over_lower_ranks(self.comm, len(chosen))
        difference = field.values[:, chosen] - right[:, first : first + len(chosen)]
        counted = importance(plan.mass_near(plan.points[chosen]).max(axis=0)) * _length(
            difference, plan.normals, chosen
        )
        speed = _length(field.values, plan.normals, slice(None))
        largest = max_over_ranks(self.comm, np.max(speed, initial=0.0))
        scale = max(largest, _STANDSTILL * max_over_ranks(self.comm, field.rate))
        return float(max_over_ranks(self.comm, np.max(counted, initial=0.0)) / scale) if scale > 0 else 0.0


def _length(values: np.ndarray, normals: np.ndarray | None, chosen: np.ndarray | slice) -> np.ndarray:
    """|v|, or |v · n| / |n|, (labels, n)."""
    if normals is None:
        return np.linalg.norm(values, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.abs(values) / np.linalg.norm(normals[chosen], axis=-1), nan=0.0)


@dataclass(frozen=True, eq=False)
class _Group:
    """Heads that one method sums together."""

    heads: tuple[Attention, ...]
    proposal: Proposal
    direct: Proposal
    sums: Sums
    directions: list[np.ndarray] | None


class _Plan:
    """The methods for one term at one set of points over one set of sources."""

    def __init__(
        self,
        evaluator: Evaluator,
        term: Term,
        measure: TokenMeasure,
        mixing: np.ndarray,
        points: np.ndarray,
        normals: np.ndarray | None,
        tolerance: float,
    ) -> None:
        self.term, self.points, self.sources, self.normals = term, points, measure.points, normals
        self._comm = comm = evaluator.comm
        self.heads = [part for part in term.summands() if isinstance(part, Attention)]
        self.groups: list[_Group] = []
        self._sample: Sample | None = None
        if self.heads:
            _check_mass(measure, mixing)
        counts = sum_over_ranks(comm, np.array([len(points), len(measure.points)])) if self.heads else (0, 0)
        for heads in _grouped(evaluator.manifold, self.heads):
            problem = Problem(
                manifold=evaluator.manifold,
                heads=heads,
                targets=points,
                sources=measure.points,
                comm=comm,
                target_count=int(counts[0]),
                source_count=int(counts[1]),
                labels=len(measure.weights),
                tolerance=tolerance,
            )
            proposal = choose(problem, evaluator.evaluation.method)
            directions = None if normals is None else [head.pulled_back(normals) for head in heads]
            direct = choose(problem, "dense")
            self.groups.append(_Group(heads, proposal, direct, proposal.build(), directions))
        self.exact = all(group.proposal.family == "dense" for group in self.groups)
        seconds = sum(group.proposal.seconds for group in self.groups)
        check = _CHECK_OVERHEAD + _CHECK_PER_SOURCE * float(counts[1]) * len(self.heads)
        self.check_every = int(np.clip(check / (_BUDGET * seconds), _OFTENEST, _RAREST)) if seconds else 1

    @property
    def names(self) -> str:
        """The methods, for people."""
        return " and ".join(dict.fromkeys(group.proposal.name for group in self.groups))

    def is_for(self, term: Term, measure: TokenMeasure, points: np.ndarray, normals: np.ndarray | None) -> bool:
        """Whether the plan holds for these very arrays."""
        return (
            term is self.term and points is self.points and measure.points is self.sources and normals is self.normals
        )

    def sample(self) -> Sample:
        """Targets for checks; drawn up at the first. Collective."""
        if self._sample is None:
            self._sample = Sample(self._comm, self.points)
        return self._sample

    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """How much of the laws lies around points, of the first method that knows, (labels, k)."""
        group = next(group for group in self.groups if group.proposal.family != "dense")
        return group.sums.mass_near(points)

    def attended(self, measure: TokenMeasure, mixing: np.ndarray, partition: bool = False) -> list[Attended]:
        """What each head attends to, cancellation mended. Collective."""
        result: list[Attended] = []
        for group in self.groups:
            wanted = partition or any(not head.normaliser.normalised for head in group.heads)
            found = group.sums.attend(measure.weights, mixing, group.directions, partition=wanted)
            if group.proposal.family != "dense":
                found = [self._mended(*pair, group, measure, mixing) for pair in enumerate(found)]
            result += found
        return result

    def _mended(
        self, index: int, found: Attended, group: _Group, measure: TokenMeasure, mixing: np.ndarray
    ) -> Attended:
        """Direct sums where the method's own have lost their digits. Collective."""
        doubtful = np.zeros(found.mean.shape[:2], dtype=bool) if found.doubtful is None else found.doubtful
        counts = sum_over_ranks(self._comm, doubtful.sum(axis=1))
        for label in np.flatnonzero(counts):
            places = np.flatnonzero(doubtful[label])
            targets = allgather_rows(self._comm, self.points[places])
            weights = (mixing[label] @ measure.weights)[None]
            sums = sums_over_ranks(self._comm, group.heads[index], targets, measure.points, weights)
            first = sum_over_lower_ranks(self._comm, len(places))
            own = slice(first, first + len(places))
            mean = sums.mean[0, own]
            if group.directions is not None:
                mean = np.einsum("nd,nd->n", mean, group.directions[index][places])
            found.mean[label, places] = mean
            if found.log_partition is not None:
                found.log_partition[label, places] = sums.log_partition[0, own]
        return replace(found, doubtful=None)


def _grouped(manifold: Manifold, heads: Sequence[Attention]) -> list[tuple[Attention, ...]]:
    """On spheres all heads share one transform of the law; in R^d each has axes of its own."""
    if isinstance(manifold, Sphere):
        return [tuple(heads)] if heads else []
    return [(head,) for head in heads]


def _check_mass(measure: TokenMeasure, mixing: np.ndarray) -> None:
    attended = mixing @ (np.abs(measure.weights) > 0).any(axis=1).astype(float)
    attended = sum_over_ranks(measure.comm, attended)
    empty = np.flatnonzero(attended == 0)
    if len(empty):
        raise InputError(
            f"Attention: row {empty[0]} of the attended laws has no mass, all weights of its sources are zero; "
            "check the state and the mixing matrix of the labels."
        )
