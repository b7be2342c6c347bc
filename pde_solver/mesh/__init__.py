"""Meshes of the circle, of S² and of boxes: built, or read from files; inspected; distributed."""

from pde_solver.mesh.boxes import box, interval, rectangle
from pde_solver.mesh.curved import circle, cubed_sphere, icosphere
from pde_solver.mesh.distribute import coordinate_element, distribute
from pde_solver.mesh.geometry import FacetGeometry, facet_geometry
from pde_solver.mesh.inspect import repair
from pde_solver.mesh.mesh import Mesh, RawMesh
from pde_solver.mesh.read import read_mesh

__all__ = [
    "FacetGeometry",
    "Mesh",
    "RawMesh",
    "box",
    "circle",
    "coordinate_element",
    "cubed_sphere",
    "distribute",
    "facet_geometry",
    "icosphere",
    "interval",
    "read_mesh",
    "rectangle",
    "repair",
]
