"""Sums of exponentials over a token measure, behind one interface."""

from pde_solver.kernel_sums.direct import ExponentialSums, exponential_sums
from pde_solver.kernel_sums.velocity import term_velocity, velocity

__all__ = ["ExponentialSums", "exponential_sums", "term_velocity", "velocity"]
