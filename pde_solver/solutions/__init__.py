"""Closed forms: exact laws and rates, each with its source."""

from pde_solver.solutions.causal import (
    correlation_profile,
    distance,
    equal_time_correlation,
    graphon,
    log_response_profile,
    response,
    response_profile,
    response_rate,
    two_time_correlation,
)
from pde_solver.solutions.causal_kuramoto import causal_first_moment
from pde_solver.solutions.causal_linear_response import eigenfunction, eigenfunction_growth, step_response
from pde_solver.solutions.causal_profile import (
    profile_minimum,
    recency_threshold,
    retrieval_profile,
    soft_accuracy,
    u_shape_threshold,
)
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
    "causal_first_moment",
    "circle_minimiser",
    "closed_form",
    "clustering_rate",
    "correlation_profile",
    "critical_noise",
    "distance",
    "eigenfunction",
    "eigenfunction_growth",
    "equal_time_correlation",
    "equiangular_gap",
    "equiangular_rate",
    "four_atom_state",
    "graphon",
    "growth_rate",
    "inter_cluster_rates",
    "intra_cluster_rate",
    "kernel_coefficient",
    "log_response_profile",
    "maximum_energy",
    "mean_resultant",
    "minimum_energy",
    "profile_minimum",
    "recency_threshold",
    "residual_layers_log_variance",
    "response",
    "response_profile",
    "response_rate",
    "retrieval_profile",
    "soft_accuracy",
    "softmax_covariance",
    "softmax_moments_on_the_line",
    "step_response",
    "two_cluster_rate",
    "two_cluster_time",
    "two_time_correlation",
    "u_shape_threshold",
    "uniform_energy",
]
