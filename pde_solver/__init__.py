"""Mean-field continuity equation of transformers: finite volumes, discontinuous Galerkin, particles.

>>> import pde_solver as ps
>>> model = ps.Model(ps.Sphere(3), ps.Attention(beta=4.0))
>>> print(model)
Attention(beta=4) on the sphere S^2
"""

import h5py  # noqa: F401  must come before dolfinx when numba is installed, or it breaks

try:
    import dolfinx_solver  # noqa: F401  the wheel with DOLFINx and PETSc; absent where a site has its own
except ModuleNotFoundError:
    pass

from pde_solver.densities import (
    Ball,
    Box,
    Cap,
    Expression,
    Gaussian,
    HarmonicPerturbation,
    Law,
    Mixture,
    PointCloud,
    PoissonKernel,
    Uniform,
    UniformOn,
    VonMisesFisher,
    box_quadrature,
    sphere_quadrature,
)
from pde_solver.discretisations import DiscontinuousGalerkin, FiniteVolume, Particles
from pde_solver.errors import InputError, RunStopped
from pde_solver.kernel_sums import velocity
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.mesh import Mesh, box, circle, cubed_sphere, icosphere, interval, read_mesh, rectangle
from pde_solver.models import L2, Attention, Layers, Linear, Model, Softmax, Unnormalised
from pde_solver.observing import (
    Guards,
    Snapshot,
    cluster_count,
    clusters,
    energy_dissipation,
    entropy,
    first_moment,
    interaction_energy,
    mass,
    maximum_density,
    minimum_density,
    order_parameter,
    second_moment,
    variance,
    velocity_norm,
    wall_flux,
    wasserstein,
    wasserstein_to,
)
from pde_solver.simulation import Outcome, Simulation
from pde_solver.stepping import SSP, EmbeddedRK

__version__ = "0.1.0"

__all__ = [
    "L2",
    "SSP",
    "Attention",
    "Ball",
    "Box",
    "Cap",
    "DiscontinuousGalerkin",
    "EmbeddedRK",
    "Euclidean",
    "Expression",
    "FiniteVolume",
    "Gaussian",
    "Guards",
    "HarmonicPerturbation",
    "InputError",
    "Labels",
    "Law",
    "Layers",
    "Linear",
    "Mesh",
    "Mixture",
    "Model",
    "Outcome",
    "Particles",
    "PointCloud",
    "PoissonKernel",
    "RunStopped",
    "Simulation",
    "Snapshot",
    "Softmax",
    "Sphere",
    "TokenMeasure",
    "Uniform",
    "UniformOn",
    "Unnormalised",
    "VonMisesFisher",
    "box",
    "box_quadrature",
    "circle",
    "cluster_count",
    "clusters",
    "cubed_sphere",
    "energy_dissipation",
    "entropy",
    "first_moment",
    "icosphere",
    "interaction_energy",
    "interval",
    "mass",
    "maximum_density",
    "minimum_density",
    "order_parameter",
    "read_mesh",
    "rectangle",
    "second_moment",
    "sphere_quadrature",
    "variance",
    "velocity",
    "velocity_norm",
    "wall_flux",
    "wasserstein",
    "wasserstein_to",
]
