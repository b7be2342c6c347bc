"""Meshes: what a file or a builder gives (RawMesh), and what is distributed over ranks (Mesh)."""

from dataclasses import dataclass

import dolfinx
import numpy as np
from mpi4py import MPI

from pde_solver.manifolds import Manifold


@dataclass(frozen=True)
class RawMesh:
    """Points and cells as arrays, on rank 0, before anything is checked.

    Args:
        points: (points, D) node coordinates.
        cells: (cells, nodes) node numbers of each cell in DOLFINx's (basix) Lagrange order.
        cell: "interval", "triangle", "quadrilateral", "tetrahedron" or "hexahedron".
        degree: polynomial degree of the geometry.
    """

    points: np.ndarray
    cells: np.ndarray
    cell: str
    degree: int = 1


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh of a manifold, distributed with shared-facet ghosts.

    Args:
        domain: the DOLFINx mesh.
        manifold: what it is a mesh of.
        description: one line for people, for example "icosphere, level 3, geometry degree 2".
        digest: a hash of points and cells in input order, the same for any number of ranks.
        notes: what was repaired on the way in, one sentence each.
    """

    domain: dolfinx.mesh.Mesh
    manifold: Manifold
    description: str
    digest: str
    notes: tuple[str, ...] = ()

    @property
    def comm(self) -> MPI.Comm:
        """The ranks that share the mesh."""
        return self.domain.comm

    @property
    def cell(self) -> str:
        """The cell type's name."""
        return self.domain.basix_cell().name

    @property
    def geometry_degree(self) -> int:
        """Polynomial degree of the geometry."""
        return self.domain.geometry.cmaps[0].degree

    @property
    def cell_count(self) -> int:
        """Cells over all ranks."""
        return self.domain.topology.index_map(self.domain.topology.dim).size_global

    @property
    def owned_cells(self) -> int:
        """Cells that this rank owns; they are numbered first, ghosts after them."""
        return self.domain.topology.index_map(self.domain.topology.dim).size_local

    @property
    def cell_coordinates(self) -> np.ndarray:
        """(cells with ghosts, nodes, D) coordinates of the nodes of each cell, in basix's Lagrange order."""
        geometry = self.domain.geometry
        return geometry.x[geometry.dofmaps[0]][..., : self.manifold.ambient_dimension]

    @property
    def input_index(self) -> np.ndarray:
        """(owned cells,) place of each owned cell in the order of the input."""
        return np.asarray(self.domain.topology.original_cell_index[: self.owned_cells], dtype=np.int64)
