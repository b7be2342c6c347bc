"""The only time loop: a discretised model, an initial law, and how far to go."""

from pde_solver.simulation.loop import Simulation
from pde_solver.simulation.outcome import Outcome

__all__ = ["Outcome", "Simulation"]
