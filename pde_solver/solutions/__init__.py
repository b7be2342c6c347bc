"""Closed forms: exact laws and rates, each with its source."""

from pde_solver.solutions.closed_form import ClosedForm, closed_form
from pde_solver.solutions.clustering_rates import clustering_rate
from pde_solver.solutions.clusters_on_circle import inter_cluster_rates, intra_cluster_rate
from pde_solver.solutions.energy_extremisers import (
    circle_minimiser,
    four_atom_state,
    maximum_energy,
    minimum_energy,
    uniform_energy,
)
from pde_solver.solutions.equiangular import equiangular_gap, equiangular_rate
from pde_solver.solutions.gaussian_closure import GaussianClosure, softmax_covariance, softmax_moments_on_the_line
from pde_solver.solutions.gaussian_layers import attention_layers_log_variance, residual_layers_log_variance
from pde_solver.solutions.growth_rates import critical_noise, growth_rate, kernel_coefficient
from pde_solver.solutions.linear_flow import LinearFlow
from pde_solver.solutions.poisson_kernel_flow import PoissonKernelFlow, mean_resultant
from pde_solver.solutions.two_clusters import two_cluster_rate, two_cluster_time

__all__ = [
    "ClosedForm",
    "GaussianClosure",
    "LinearFlow",
    "PoissonKernelFlow",
    "attention_layers_log_variance",
    "circle_minimiser",
    "closed_form",
    "clustering_rate",
    "critical_noise",
    "equiangular_gap",
    "equiangular_rate",
    "four_atom_state",
    "growth_rate",
    "inter_cluster_rates",
    "intra_cluster_rate",
    "kernel_coefficient",
    "maximum_energy",
    "mean_resultant",
    "minimum_energy",
    "residual_layers_log_variance",
    "softmax_covariance",
    "softmax_moments_on_the_line",
    "two_cluster_rate",
    "two_cluster_time",
    "uniform_energy",
]
