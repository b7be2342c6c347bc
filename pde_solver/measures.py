"""Token measures: the only thing that attention sees."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

from pde_solver.parallel import allgather_rows, sum_over_ranks


@dataclass(frozen=True)
class TokenMeasure:
    """A family of discrete laws μ_z = Σ_j w_{zj} δ_{y_j}, one for each label z, on shared points.

    Cells and their masses, quadrature points and weight × density, or N tokens and 1/N: all are token
    measures. Each rank of `comm` holds its own share of the points.

    Args:
        points: (m, D) this rank's points.
        weights: (labels, m) their weights under each label's law.
        comm: the ranks over which the points are distributed.
    """

    points: np.ndarray
    weights: np.ndarray
    comm: MPI.Comm = field(default_factory=lambda: MPI.COMM_SELF)

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.weights.ndim != 2 or self.weights.shape[1] != len(self.points):
            raise ValueError(
                f"TokenMeasure: points (m, D) and weights (labels, m) do not fit, "
                f"found {self.points.shape} and {self.weights.shape}."
            )

    def mass(self) -> np.ndarray:
        """Total mass of each label's law, (labels,)."""
        return sum_over_ranks(self.comm, self.weights.sum(axis=1))

    def integrate(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """∫ f dμ_z for every label; f maps points (m, D) to (m, ...); the result is (labels, ...)."""
        return sum_over_ranks(self.comm, np.tensordot(self.weights, function(self.points), axes=(1, 0)))

    def mixed(self, mixing: np.ndarray) -> "TokenMeasure":
        """The laws ν_z = Σ_z' mixing_{zz'} μ_z' for a mixing matrix (labels', labels)."""
        return TokenMeasure(self.points, np.atleast_2d(mixing) @ self.weights, self.comm)

    def gathered(self) -> "TokenMeasure":
        """The whole measure on every rank (communicator: this rank alone)."""
        points = allgather_rows(self.comm, self.points)
        weights = allgather_rows(self.comm, self.weights.T).T
        return TokenMeasure(points, np.ascontiguousarray(weights))
