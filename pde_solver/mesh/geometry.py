"""What finite volumes need of a mesh: cell points, volumes, and facets with their normals."""

from dataclasses import dataclass

import basix
import numpy as np

from pde_solver.manifolds import Sphere
from pde_solver.mesh import geodesic, polyhedral
from pde_solver.mesh.mesh import Mesh


@dataclass(frozen=True, eq=False)
class FacetGeometry:
    """Cells and facets as arrays on one rank; a facet that two ranks share is the same, bit by bit, on both.

    Cells are spanned by their corner vertices: arcs and spherical polygons on the sphere, whatever the degree of
    the mesh's geometry, and straight cells in R^d. Owned cells come first, then ghosts. Facets are those of owned
    cells, sorted by the cells' places in the input; the owner of a facet is the cell that came first in the input.

    Args:
        owned: number of cells that this rank owns.
        cell_points: (cells, D) centroids; on spheres moved radially to the sphere.
        cell_volumes: (cells,) arc lengths, areas or volumes.
        owner: (facets,) local number of the cell from which the normal points.
        neighbour: (facets,) local number of the cell into which it points; −1 at walls.
        midpoints: (facets, D) centroids of the facets, on the manifold.
        normals: (facets, D) unit conormal at the midpoint from owner to neighbour, times the facet's measure.
        cell_facets: (owned, facets of a cell) facets of each owned cell, in the cell type's order.
    """

    owned: int
    cell_points: np.ndarray
    cell_volumes: np.ndarray
    owner: np.ndarray
    neighbour: np.ndarray
    midpoints: np.ndarray
    normals: np.ndarray
    cell_facets: np.ndarray

    @property
    def wall(self) -> np.ndarray:
        """(facets,) whether nothing lies behind the facet."""
        return self.neighbour < 0


def facet_geometry(mesh: Mesh) -> FacetGeometry:
    """The cell and facet geometry of this rank's share of a mesh.

    The outward normals of a cell add up to 0 in flat space, and to −dim · ∫_cell x dS on the sphere: the flux of a
    constant field e out of the cell is then exactly the integral of its divergence div P_x e = −dim · ⟨x, e⟩.

    Args:
        mesh: any mesh of a circle, of S² or of a box.

    Source: derived for this project.
    """
    topology = mesh.domain.topology
    corner_count = len(basix.topology(mesh.domain.basix_cell())[0])
    corners = np.ascontiguousarray(mesh.cell_coordinates[:, :corner_count])
    shapes = geodesic if isinstance(mesh.manifold, Sphere) else polyhedral
    points, volumes = shapes.cells(corners, mesh.cell)

    owner, neighbour, side, cell_facets = _facets(mesh)
    facet_corners = corners[owner[:, None], _local_facets(mesh)[side]]
    midpoints, normals = shapes.facets(facet_corners, points[owner], topology.dim)
    return FacetGeometry(mesh.owned_cells, points, volumes, owner, neighbour, midpoints, normals, cell_facets)


def _local_facets(mesh: Mesh) -> np.ndarray:
    """Local corner numbers (facets of a cell, corners of a facet) in basix's order."""
    return np.array(basix.topology(mesh.domain.basix_cell())[mesh.domain.topology.dim - 1])


def _facets(mesh: Mesh) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Owner, neighbour, the facet's number within its owner, and the facets of each owned cell."""
    topology = mesh.domain.topology
    dimension = topology.dim
    sides = len(_local_facets(mesh))
    topology.create_connectivity(dimension, dimension - 1)
    of_cell = topology.connectivity(dimension, dimension - 1).array.reshape(-1, sides)
    place = np.asarray(topology.original_cell_index, dtype=np.int64)

    # All (cell, side) pairs, grouped by facet; within a facet the cell that came first in the input leads.
    facet = of_cell.reshape(-1)
    cell, side = np.divmod(np.arange(len(facet)), sides)
    order = np.lexsort([place[cell], facet])
    facet, cell, side = facet[order], cell[order], side[order]
    leads = np.ones(len(facet), dtype=bool)
    leads[1:] = facet[1:] != facet[:-1]
    paired = np.zeros(len(facet), dtype=bool)
    paired[:-1] = ~leads[1:]
    owner, owner_side, number = cell[leads], side[leads], facet[leads]
    neighbour = np.where(paired, np.roll(cell, -1), -1)[leads]

    owned = mesh.owned_cells
    here = (owner < owned) | ((neighbour >= 0) & (neighbour < owned))
    owner, owner_side, number, neighbour = owner[here], owner_side[here], number[here], neighbour[here]
    neighbour_place = np.where(neighbour >= 0, place[neighbour], -1)
    order = np.lexsort([owner_side, neighbour_place, place[owner]])

    row = np.full(facet.max(initial=-1) + 1, -1)
    row[number[order]] = np.arange(len(order))
    return owner[order], neighbour[order], owner_side[order], row[of_cell[:owned]]
