"""Sums of exponentials over a token measure, behind one interface."""

from pde_solver.kernel_sums.direct import ExponentialSums, exponential_sums
from pde_solver.kernel_sums.energy import energy_dissipation, interaction_energy, log_interaction_energy
from pde_solver.kernel_sums.velocity import Field, term_velocity, velocity

__all__ = [
    "ExponentialSums",
    "Field",
    "energy_dissipation",
    "exponential_sums",
    "interaction_energy",
    "log_interaction_energy",
    "term_velocity",
    "velocity",
]
