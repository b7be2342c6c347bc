"""What a quantity sees of a running simulation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpi4py import MPI

from pde_solver.discretisations.base import Discretisation
from pde_solver.measures import TokenMeasure
from pde_solver.models.model import Model
from pde_solver.models.terms import Term


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One moment of a simulation. Quantities are functions of it, and most of them of its measure alone.

    Args:
        t: depth.
        step: steps taken so far.
        state: this rank's unknowns.
        discretisation: what the unknowns mean.
    """

    t: float
    step: int
    state: np.ndarray
    discretisation: Discretisation

    @property
    def model(self) -> Model:
        """The model that is solved."""
        return self.discretisation.model

    @property
    def term(self) -> Term:
        """The velocity in force at this depth."""
        return self.model.velocity.at(self.t)

    @property
    def comm(self) -> MPI.Comm:
        """The ranks that share the state."""
        return self.discretisation.comm

    @cached_property
    def measure(self) -> TokenMeasure:
        """The laws μ_z of all labels, weights (labels, m), distributed."""
        return self.discretisation.measure(self.state)

    @cached_property
    def law(self) -> TokenMeasure:
        """The law of a token whatever its label, Σ_z π_z μ_z: weights (1, m), distributed."""
        return self.measure.mixed(np.array([self.model.labels.weights]))
