"""The velocity of a term at many points, to a tolerance: methods chosen, checked, refined."""

import math
from dataclasses import replace

import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError, RunStopped
from pde_solver.kernel_sums.evaluation import Evaluation
from pde_solver.kernel_sums.field import Field, field_of
from pde_solver.kernel_sums.method import Attended, Proposal
from pde_solver.kernel_sums.over_ranks import sums_over_ranks
from pde_solver.kernel_sums.plan import Plan
from pde_solver.kernel_sums.spot_check import importance_for
from pde_solver.labels import mixing_of_head
from pde_solver.manifolds import Manifold
from pde_solver.measures import TokenMeasure
from pde_solver.models.terms import Term
from pde_solver.parallel import max_over_ranks

#: A mean is asked to this fraction of the velocity's tolerance: the tangential part is smaller than the mean.
_MARGIN = 0.3
#: Velocities below this fraction of what attention could do need not be known relative to themselves.
_STANDSTILL = 1e-5
#: An error found at a few targets is accepted up to this fraction of the tolerance: elsewhere it may be larger.
_ACCEPTED = 0.5
#: After so many checks in a row whose error is below this fraction of the tolerance, the refinement is taken back by one.
_EASY_CHECKS, _EASY = 4, 1e-2


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
        #: The largest error, relative to the largest velocity, that a check has found in velocities that were used, or None.
        self.error: float | None = None
        #: How many powers of ten the methods work below the tolerance.
        self.refinement = 0
        self._plan: Plan | None = None
        self._checks = 0
        self._until_check = 0
        self._easy = 0
        self._checked: tuple[Term, tuple[str, ...]] | None = None
        self._resumed = False

    @property
    def progress(self) -> np.ndarray:
        """What a resumed run must know to go on in the same way: refinement, checks so far and when the next is due, error."""
        error = np.nan if self.error is None else self.error
        return np.array([self.refinement, self._checks, self._until_check, self._easy, error])

    @progress.setter
    def progress(self, progress: np.ndarray) -> None:
        self.refinement, self._checks, self._until_check, self._easy = (int(number) for number in progress[:4])
        self.error = None if np.isnan(progress[4]) else float(progress[4])
        self._resumed = self._checks > 0

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
            mixing: (labels', labels) whom the wanted labels attend to, ν = mixing · μ; or one such matrix for each head.
            points: (n, D) this rank's points x. What depends on points and sources alone is kept as long as both are the
                same arrays as before, so they must not be changed in place.
            normals: (n, D) tangent vectors; then only ⟨normal, velocity⟩ is wanted.

        Raises:
            InputError: if a label attends to no mass, or the method that was asked for cannot be used.
            RunStopped: if it misses the tolerance.
        """
        field = self._evaluated(term, measure, mixing, points, normals)
        wanted = mixing.shape[-2]
        if len(field.values) == wanted:
            return field
        return replace(field, values=np.repeat(field.values, wanted, axis=0))  # a drift alone knows no labels

    def _evaluated(
        self, term: Term, measure: TokenMeasure, mixing: np.ndarray, points: np.ndarray, normals: np.ndarray | None
    ) -> Field:
        """A velocity that is checked if it is time, and evaluated again by a finer method until the check is passed."""
        found_before: float | None = None
        while True:
            try:
                plan = self._planned(term, measure, mixing, points, normals)
            except InputError as refused:
                if found_before is None:
                    raise
                raise RunStopped(
                    f"velocity: its error is {found_before:.1e} of the largest velocity, allowed are "
                    f"{self.evaluation.tolerance:.1e}. {refused}"
                ) from None
            field = field_of(term, self.manifold, points, plan.attended(measure, mixing), normals)
            if self._resumed:  # what acts now was checked before the run was interrupted
                self._checked, self._resumed = (term, plan.families), False
            known = self._checked is not None and self._checked[0] is term and self._checked[1] == plan.families
            used = known and found_before is None
            self._until_check -= 1
            if used and self._until_check > 0:
                return field
            self._until_check = _coprime(plan.check_every, len(measure.weights))
            self._checked = (term, plan.families)
            if plan.exact:
                self._relax(easy=self.refinement > 0)
                return field
            error = self._measured_error(plan, field, measure, mixing)
            self._checks += 1
            if not math.isfinite(error):  # the time loop's to find
                return field
            accepted = error <= _ACCEPTED * self.evaluation.tolerance
            if accepted or used:  # else nobody has seen such a velocity
                self.error = error if self.error is None else max(error, self.error)
            if accepted:
                self._relax(easy=error < _EASY * self.evaluation.tolerance)
                return field
            found_before, self._easy = error, 0
            self.refinement += max(1, math.ceil(math.log10(error / (_ACCEPTED * self.evaluation.tolerance))))
            self._plan = None

    def _relax(self, easy: bool) -> None:
        """Take the refinement back by one after many checks without need for it."""
        self._easy = self._easy + 1 if easy else 0
        if self._easy >= _EASY_CHECKS and self.refinement > 0:
            self._easy = 0
            self.refinement -= 1
            self._plan = self._checked = None  # the next evaluation is checked

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
    ) -> Plan:
        plan = self._plan
        fits = plan is not None and plan.is_for(term, measure, points, normals)
        if plan is None or not fits:
            tolerance = _MARGIN * self.evaluation.tolerance * 10.0**-self.refinement
            plan = Plan(self.manifold, self.evaluation.method, tolerance, term, measure, mixing, points, normals)
            self._plan = plan
        return plan

    def _measured_error(self, plan: Plan, field: Field, measure: TokenMeasure, mixing: np.ndarray) -> float:
        """The largest error at a few targets, relative to the largest velocity of tokens, by direct sums. Collective."""
        sample = plan.sample()
        pool = sample.pool
        counted_in_pool = importance_for(plan.mass_near(plan.points[pool]), mixing)
        chosen = sample.draw(self._checks, counted_in_pool.max(axis=0))
        points = plan.points[chosen]
        normals = None if plan.normals is None else plan.normals[chosen]
        attended = []
        for place, head in enumerate(plan.heads):
            weights = mixing_of_head(mixing, place) @ measure.weights
            sums = sums_over_ranks(self.comm, head, points, measure.points, weights)
            mean = sums.mean
            if normals is not None:
                mean = np.einsum("znd,nd->zn", mean, head.pulled_back(normals))
            attended.append(Attended(mean, sums.log_partition))
        right = field_of(plan.term, self.manifold, points, attended, normals).values
        difference = field.values[:, chosen] - right
        counted = _length(difference, normals) * importance_for(plan.mass_near(points), mixing)
        # the largest velocity where there are tokens
        normals_in_pool = None if plan.normals is None else plan.normals[pool]
        speed = counted_in_pool * _length(field.values[:, pool], normals_in_pool)
        largest = max_over_ranks(self.comm, np.max(speed, initial=0.0))
        scale = max(largest, _STANDSTILL * max_over_ranks(self.comm, field.rate))
        return float(max_over_ranks(self.comm, np.max(counted, initial=0.0)) / scale) if scale > 0 else 0.0


def _length(values: np.ndarray, normals: np.ndarray | None) -> np.ndarray:
    """|v|, or |v · n| / |n|, (labels, n)."""
    if normals is None:
        return np.linalg.norm(values, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.abs(values) / np.linalg.norm(normals, axis=-1), nan=0.0)


def _coprime(period: int, labels: int) -> int:
    """A period without a factor in common with the labels, which may be evaluated in turn: each is checked now and then."""
    while math.gcd(period, labels) > 1:
        period += 1
    return period
