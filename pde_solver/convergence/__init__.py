"""Convergence studies: any callable at several resolutions, its errors, the observed orders, a table and a picture."""

from pde_solver.convergence.measured import distance_of_laws, measured
from pde_solver.convergence.study import Measurement, Study, converge

__all__ = ["Measurement", "Study", "converge", "distance_of_laws", "measured"]
