"""Which way a cell faces, and the same cell facing the other way."""

import basix
import numpy as np

from pde_solver.manifolds import Manifold, Sphere
from pde_solver.mesh.distribute import reference_nodes
from pde_solver.mesh.mesh import RawMesh
from pde_solver.mesh.polyhedral import combination, determinants


def orientation(raw: RawMesh, manifold: Manifold) -> np.ndarray:
    """det J at the nodes of each cell over (longest edge)^dimension, (cells, nodes); on spheres det (x | J).

    Positive at all nodes: the cell has positive volume, or faces outward on S², or runs counter-clockwise on the
    circle. Of both signs: it overlaps itself. Straight simplices have one value, (cells, 1).

    Args:
        raw: the mesh.
        manifold: what it is a mesh of.
    """
    nodes = reference_nodes(raw.cell, raw.degree)
    straight = raw.degree == 1 and raw.cell in ("interval", "triangle", "tetrahedron")
    where = nodes[:1] if straight else nodes
    element = basix.create_element(
        basix.ElementFamily.P, basix.CellType[raw.cell], raw.degree, basix.LagrangeVariant.equispaced
    )
    values, *gradients = np.asarray(element.tabulate(1, where))[..., 0]
    signed = np.empty((len(raw.cells), len(where)))
    corners = raw.points[raw.cells]
    for node in range(len(where)):
        rows = [combination(gradient[node], corners) for gradient in gradients]
        if isinstance(manifold, Sphere):
            rows.insert(0, combination(values[node], corners))
        signed[:, node] = determinants(np.stack(rows, axis=1))
    return signed / _longest_edge(raw)[:, None] ** manifold.dimension


def mirrored(cell: str, degree: int) -> np.ndarray:
    """The node numbers of a cell read in a mirror: first and second coordinate swapped, or an interval's ends.

    Args:
        cell: the cell type's name.
        degree: polynomial degree of the geometry.
    """
    nodes = reference_nodes(cell, degree)
    image = 1 - nodes if cell == "interval" else nodes[:, [1, 0, *range(2, nodes.shape[1])]]
    return np.linalg.norm(nodes[None] - image[:, None], axis=2).argmin(axis=1)


def _longest_edge(raw: RawMesh) -> np.ndarray:
    edges = np.array(basix.topology(basix.CellType[raw.cell])[1])
    ends = raw.points[raw.cells[:, edges]]
    return np.maximum(np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=2).max(axis=1), np.finfo(float).tiny)
