"""Initial laws, for meshes (a density) and for tokens (samples), and quadratures of the surface measure."""

from pde_solver.densities.expression import Expression
from pde_solver.densities.gaussian import Gaussian
from pde_solver.densities.harmonic_perturbation import HarmonicPerturbation
from pde_solver.densities.law import Law
from pde_solver.densities.mixture import Mixture
from pde_solver.densities.point_cloud import PointCloud
from pde_solver.densities.poisson_kernel import PoissonKernel
from pde_solver.densities.quadrature import box_quadrature, sphere_quadrature
from pde_solver.densities.regions import Ball, Box, Cap, Region
from pde_solver.densities.uniform import Uniform
from pde_solver.densities.uniform_on import UniformOn
from pde_solver.densities.von_mises_fisher import VonMisesFisher

__all__ = [
    "Ball",
    "Box",
    "Cap",
    "Expression",
    "Gaussian",
    "HarmonicPerturbation",
    "Law",
    "Mixture",
    "PointCloud",
    "PoissonKernel",
    "Region",
    "Uniform",
    "UniformOn",
    "VonMisesFisher",
    "box_quadrature",
    "sphere_quadrature",
]
