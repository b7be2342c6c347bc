"""Sums of exponentials over a token measure, behind one interface."""

from pde_solver.kernel_sums.choose import METHODS
from pde_solver.kernel_sums.direct import ExponentialSums, exponential_sums
from pde_solver.kernel_sums.energy import energy_dissipation, interaction_energy, log_interaction_energy
from pde_solver.kernel_sums.evaluation import Evaluation
from pde_solver.kernel_sums.evaluator import Evaluator
from pde_solver.kernel_sums.field import Field
from pde_solver.kernel_sums.method import Proposal
from pde_solver.kernel_sums.velocity import velocity

__all__ = [
    "METHODS",
    "Evaluation",
    "Evaluator",
    "ExponentialSums",
    "Field",
    "Proposal",
    "energy_dissipation",
    "exponential_sums",
    "interaction_energy",
    "log_interaction_energy",
    "velocity",
]
