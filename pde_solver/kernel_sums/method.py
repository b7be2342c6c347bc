"""What a method of summation is: heads, targets and sources go in, what the heads attend to comes out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from pde_solver.manifolds import Manifold
from pde_solver.models.attention import Attention


@dataclass(frozen=True, eq=False)
class Problem:
    """Heads that are to be evaluated at the same targets over the same sources.

    Args:
        manifold: where targets and sources lie.
        heads: the heads.
        targets: (n, D) this rank's targets x.
        sources: (m, D) this rank's sources y.
        comm: the ranks over which both are distributed.
        target_count: targets over all ranks.
        source_count: sources over all ranks.
        labels: how many labels there are.
        tolerance: largest error of a head's mean attention, relative to the largest |x| of a source.
    """

    manifold: Manifold
    heads: tuple[Attention, ...]
    targets: np.ndarray
    sources: np.ndarray
    comm: MPI.Comm
    target_count: int
    source_count: int
    labels: int
    tolerance: float


@dataclass(frozen=True, eq=False)
class Attended:
    """What one head attends to at this rank's targets.

    Args:
        mean: (labels', n, D) ∫ e^{score} y ν(dy) / ∫ e^{score} ν(dy); or (labels', n), its products with given directions.
        log_partition: (labels', n) log ∫ e^{score} ν(dy); None where it was not asked for.
        doubtful: (labels', n) where the sum over the law may have lost its digits although there is mass near the target;
            None where there is no such target on this rank.
    """

    mean: np.ndarray
    log_partition: np.ndarray | None = None
    doubtful: np.ndarray | None = None


class Sums(ABC):
    """A method bound to a problem: what depends on targets and sources alone has been computed."""

    @abstractmethod
    def attend(
        self,
        weights: np.ndarray,
        mixing: np.ndarray,
        directions: Sequence[np.ndarray] | None = None,
        *,
        partition: bool = False,
    ) -> list[Attended]:
        """What each head of the problem attends to. Collective.

        Args:
            weights: (labels, m) weights of this rank's sources under each label's law μ_z.
            mixing: (labels', labels) whom the wanted labels attend to, ν = mixing · μ.
            directions: for each head (n, D); then only the products ⟨direction_i, mean_i⟩ are wanted.
            partition: whether the logarithm of the partition function is wanted.
        """

    @abstractmethod
    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """How much of each label's law of the last call lies around points (k, D), (labels, k), the most being 1.

        Around means within the resolution of the method.
        """


@dataclass(frozen=True, eq=False)
class Proposal:
    """A method that could solve a problem, and what it promises.

    Args:
        name: the method and its parameters, for people.
        family: "dense", "circle", "sphere", "tensor" or "rotated": what the user can ask for.
        seconds: expected time of one evaluation on one core.
        error: expected largest error of the mean attention, relative to the largest |x| of a source.
        communication: bytes that each rank contributes to collectives in one evaluation.
        build: makes the sums. Collective.
    """

    name: str
    family: str
    seconds: float
    error: float
    communication: int
    build: Callable[[], Sums]
