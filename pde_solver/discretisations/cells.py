"""Reference cells: quadrature, coordinates and surface elements of this rank's cells, and their nodes for pictures."""

import basix
import dolfinx
import numpy as np
from scipy.spatial import cKDTree

from pde_solver.densities import PointCloud
from pde_solver.discretisations.base import CellNodes
from pde_solver.mesh import Mesh
from pde_solver.parallel import min_over_ranks

#: VTK's numbers of the cell types, linear and Lagrange.
_VTK_LINEAR = {"interval": 3, "triangle": 5, "quadrilateral": 9, "tetrahedron": 10, "hexahedron": 12}
_VTK_LAGRANGE = {"interval": 68, "triangle": 69, "quadrilateral": 70, "tetrahedron": 71, "hexahedron": 72}


def coordinates(mesh: Mesh, reference: np.ndarray) -> np.ndarray:
    """Where reference points (q, tdim) lie in each owned cell, (cells, q, D)."""
    nodes, values, _ = _geometry(mesh, reference)
    return np.einsum("qn,cnd->cqd", values, nodes)


def surface_element(mesh: Mesh, reference: np.ndarray) -> np.ndarray:
    """√det(JᵀJ) of each owned cell's map at reference points (q, tdim), (cells, q)."""
    nodes, _, derivatives = _geometry(mesh, reference)
    jacobian = np.einsum("tqn,cnd->cqdt", derivatives, nodes)
    return np.sqrt(np.linalg.det(np.einsum("cqds,cqdt->cqst", jacobian, jacobian)))


def _geometry(mesh: Mesh, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes (cells, n, D), and the coordinate element's values (q, n) and first derivatives (tdim, q, n)."""
    geometry = mesh.domain.geometry
    nodes = geometry.x[geometry.dofmaps[0][: mesh.owned_cells], : mesh.manifold.ambient_dimension]
    element = basix.create_element(
        basix.ElementFamily.P,
        mesh.domain.basix_cell(),
        mesh.geometry_degree,
        basix.LagrangeVariant(geometry.cmaps[0].variant),
    )
    table = element.tabulate(1, reference)[..., 0]
    return nodes, table[0], table[1:]


def corner_nodes(mesh: Mesh) -> CellNodes:
    """The corners of this rank's cells, as VTK's linear cells."""
    corners = _in_vtk_order(mesh, basix.geometry(mesh.domain.basix_cell()))
    return CellNodes(_padded(coordinates(mesh, corners)), _VTK_LINEAR[mesh.cell], mesh.input_index)


def lattice(mesh: Mesh, degree: int) -> np.ndarray:
    """Equispaced reference points of a Lagrange cell of this degree, in VTK's order, (nodes, tdim)."""
    element = basix.create_element(
        basix.ElementFamily.P, mesh.domain.basix_cell(), degree, basix.LagrangeVariant.equispaced
    )
    return _in_vtk_order(mesh, element.points)


def lattice_nodes(mesh: Mesh, degree: int) -> CellNodes:
    """The lattice points of this rank's cells, as VTK's Lagrange cells."""
    return CellNodes(_padded(coordinates(mesh, lattice(mesh, degree))), _VTK_LAGRANGE[mesh.cell], mesh.input_index)


def _in_vtk_order(mesh: Mesh, points: np.ndarray) -> np.ndarray:
    place = dolfinx.cpp.io.perm_vtk(mesh.domain.topology.cell_type, len(points))
    ordered = np.empty_like(points)
    ordered[np.asarray(place, dtype=np.intp)] = points
    return ordered


def _padded(points: np.ndarray) -> np.ndarray:
    return np.concatenate([points, np.zeros((*points.shape[:-1], 3 - points.shape[-1]))], axis=-1)


def deposit(mesh: Mesh, cell_points: np.ndarray, cloud: PointCloud) -> np.ndarray:
    """The mass that each owned cell gets when every token goes to the cell whose point is nearest, (cells,).

    Collective. Of cells that are equally near, the first in the input gets the token, on any number of ranks.

    Raises:
        InputError: if the tokens are not on the manifold.
    """
    tokens = cloud.tokens_on(mesh.manifold)
    tree = cKDTree(cell_points)
    distance = min_over_ranks(mesh.comm, tree.query(tokens)[0])
    near = tree.query_ball_point(tokens, distance * (1 + 1e-12))
    token = np.repeat(np.arange(len(tokens)), [len(cells) for cells in near])
    cell = np.array([c for cells in near for c in cells], dtype=np.int64)
    first = np.full(len(tokens), mesh.cell_count)
    np.minimum.at(first, token, mesh.input_index[cell])
    mine = mesh.input_index[cell] == min_over_ranks(mesh.comm, first)[token]
    return np.bincount(cell[mine], cloud.weights[token[mine]], minlength=len(cell_points))
