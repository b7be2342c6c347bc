"""The methods for one term at one set of points over one set of sources, chosen and built."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pde_solver.errors import InputError
from pde_solver.kernel_sums.choose import choose
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.over_ranks import sums_over_ranks
from pde_solver.kernel_sums.spot_check import SAMPLE, Sample
from pde_solver.labels import mixing_of_head
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models.attention import Attention
from pde_solver.models.terms import Term
from pde_solver.parallel import sum_over_ranks

#: What a check may cost, as a fraction of the evaluations between two of them, and how many these may be.
_BUDGET = 0.05
_OFTENEST, _RAREST = 8, 64
#: Seconds of a check: fixed, and for each source.
_CHECK_OVERHEAD, _CHECK_PER_SOURCE = 1e-3, SAMPLE * 0.8e-9


@dataclass(frozen=True, eq=False)
class Group:
    """Heads that one method sums together."""

    heads: tuple[Attention, ...]
    first: int  # the place of its first head among all
    proposal: Proposal
    direct: Proposal
    sums: Sums
    directions: list[np.ndarray] | None


class Plan:
    """The methods for one term at one set of points over one set of sources. Made on all ranks together.

    Args:
        manifold: where points and sources lie.
        method: what the user asked for.
        tolerance: that of the means, relative to the largest |x|.
        term: the velocity in force.
        measure: the laws; only where their sources lie and which of them have mass is looked at.
        mixing: (labels', labels) whom the wanted labels attend to, or one such matrix for each head.
        points: (n, D) this rank's targets.
        normals: (n, D) if only products with them are wanted.

    Raises:
        InputError: if a label attends to no mass, or the method cannot be used.
    """

    def __init__(
        self,
        manifold: Manifold,
        method: str,
        tolerance: float,
        term: Term,
        measure: TokenMeasure,
        mixing: np.ndarray,
        points: np.ndarray,
        normals: np.ndarray | None,
    ) -> None:
        self.term, self.points, self.sources, self.normals = term, points, measure.points, normals
        self._comm = comm = measure.comm
        self.heads = [part for part in term.summands() if isinstance(part, Attention)]
        self.groups: list[Group] = []
        self._sample: Sample | None = None
        if self.heads:
            _check_mass(measure, mixing)
        # positions that are not finite have no place on a grid; direct sums turn them into nan, which the time loop finds
        finite = np.isfinite(points).all() and np.isfinite(measure.points).all()
        counts = sum_over_ranks(comm, np.array([len(points), len(measure.points), not finite]))
        method = "dense" if counts[2] else method
        for heads in _grouped(manifold, self.heads, apart=mixing.ndim == 3):
            first = sum(len(group.heads) for group in self.groups)
            problem = Problem(
                manifold=manifold,
                heads=heads,
                targets=points,
                sources=measure.points,
                comm=comm,
                target_count=int(counts[0]),
                source_count=int(counts[1]),
                labels=len(measure.weights),
                tolerance=tolerance,
            )
            proposal = choose(problem, method)
            directions = None if normals is None else [head.pulled_back(normals) for head in heads]
            direct = choose(problem, "dense")
            self.groups.append(Group(heads, first, proposal, direct, proposal.build(), directions))
        self.families = tuple(group.proposal.family for group in self.groups)
        self.exact = set(self.families) <= {"dense"}
        seconds = sum(group.proposal.seconds for group in self.groups)
        check = _CHECK_OVERHEAD + _CHECK_PER_SOURCE * float(counts[1]) * len(self.heads)
        self.check_every = int(np.clip(check / (_BUDGET * seconds), _OFTENEST, _RAREST)) if seconds else 1

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
            own = mixing_of_head(mixing, group.first)
            found = group.sums.attend(measure.weights, own, group.directions, partition=wanted)
            if group.proposal.family != "dense":
                found = [self._mended(*pair, group, measure, own) for pair in enumerate(found)]
            result += found
        return result

    def _mended(self, index: int, found: Attended, group: Group, measure: TokenMeasure, mixing: np.ndarray) -> Attended:
        """Direct sums where the method's own have lost their digits. Collective."""
        doubtful = np.zeros(found.mean.shape[:2], dtype=bool) if found.doubtful is None else found.doubtful
        counts = sum_over_ranks(self._comm, doubtful.sum(axis=1))
        for label in np.flatnonzero(counts):
            places = np.flatnonzero(doubtful[label])
            weights = (mixing[label] @ measure.weights)[None]
            sums = sums_over_ranks(self._comm, group.heads[index], self.points[places], measure.points, weights)
            mean = sums.mean[0]
            if group.directions is not None:
                mean = np.einsum("nd,nd->n", mean, group.directions[index][places])
            found.mean[label, places] = mean
            if found.log_partition is not None:
                found.log_partition[label, places] = sums.log_partition[0]
        return replace(found, doubtful=None)


def _grouped(manifold: Manifold, heads: Sequence[Attention], apart: bool) -> list[tuple[Attention, ...]]:
    """On spheres all heads that attend alike share one transform of the law; in R^d each has axes of its own."""
    if isinstance(manifold, Sphere) and not apart:
        return [tuple(heads)] if heads else []
    return [(head,) for head in heads]


def _check_mass(measure: TokenMeasure, mixing: np.ndarray) -> None:
    attended = mixing @ (measure.weights != 0).any(axis=1).astype(float)  # a nan is the time loop's to find
    attended = (
        sum_over_ranks(measure.comm, attended).min(axis=0)
        if mixing.ndim == 3
        else sum_over_ranks(measure.comm, attended)
    )
    empty = np.flatnonzero(attended == 0)
    if len(empty):
        raise InputError(
            f"Attention: row {empty[0]} of the attended laws has no mass, all weights of its sources are zero; "
            "check the state and the mixing matrix of the labels."
        )
