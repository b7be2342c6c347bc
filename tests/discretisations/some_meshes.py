"""One small mesh of every cell type, and laws and models that live on them."""

import numpy as np

import pde_solver as ps

MESHES = {
    "circle": lambda: ps.circle(24),
    "icosphere": lambda: ps.icosphere(1),
    "cubed sphere": lambda: ps.cubed_sphere(3),
    "interval": lambda: ps.interval(-1, 2, 9),
    "triangles": lambda: ps.rectangle((-1, -2), (1, 0), (4, 5)),
    "quadrilaterals": lambda: ps.rectangle((-1, -2), (1, 0), (4, 5), cell="quadrilateral"),
    "tetrahedra": lambda: ps.box((0, 0, 0), (1, 2, 3), (2, 3, 3)),
    "hexahedra": lambda: ps.box((0, 0, 0), (1, 2, 3), (3, 3, 4), cell="hexahedron"),
}
FLAT = ["interval", "triangles", "quadrilaterals", "tetrahedra", "hexahedra"]
CURVED = ["circle", "icosphere", "cubed sphere"]

#: Everything that has a density, by a short name.
METHODS = {
    "FV1": lambda model, mesh: ps.FiniteVolume(model, mesh, order=1),
    "FV2": lambda model, mesh: ps.FiniteVolume(model, mesh, order=2),
    "DG1": lambda model, mesh: ps.DiscontinuousGalerkin(model, mesh, degree=1),
    "DG2": lambda model, mesh: ps.DiscontinuousGalerkin(model, mesh, degree=2),
    "DG3": lambda model, mesh: ps.DiscontinuousGalerkin(model, mesh, degree=3),
}


def stirring(manifold, labels=None):
    """Attention that pulls together and a drift that turns and pushes, so that velocities have all signs."""
    dimension = manifold.ambient_dimension
    matrix = np.triu(np.full((dimension, dimension), 0.7), 1)
    drift = ps.Linear(matrix - matrix.T - 0.3 * np.eye(dimension), np.linspace(0.5, -0.4, dimension))
    return ps.Model(manifold, ps.Attention(2.0) + drift, labels or ps.Labels())


def bump(manifold):
    """A smooth law that is positive everywhere."""
    dimension = manifold.ambient_dimension
    if isinstance(manifold, ps.Sphere):
        return ps.VonMisesFisher(np.arange(1.0, dimension + 1), 1.5)
    return ps.Gaussian(np.full(dimension, 0.3), 0.6 * np.eye(dimension))
