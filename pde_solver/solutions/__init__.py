"""Closed forms: exact laws and rates, each with its source."""

from pde_solver.solutions.gaussian_closure import GaussianClosure, softmax_covariance, softmax_moments_on_the_line
from pde_solver.solutions.growth_rates import critical_noise, growth_rate, kernel_coefficient
from pde_solver.solutions.linear_flow import LinearFlow
from pde_solver.solutions.poisson_kernel_flow import PoissonKernelFlow, mean_resultant

__all__ = [
    "GaussianClosure",
    "LinearFlow",
    "PoissonKernelFlow",
    "critical_noise",
    "growth_rate",
    "kernel_coefficient",
    "mean_resultant",
    "softmax_covariance",
    "softmax_moments_on_the_line",
]
