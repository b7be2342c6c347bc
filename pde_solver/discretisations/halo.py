"""Cells that share a vertex, across ranks: the neighbourhoods that reconstruction and limiter look at."""

from dataclasses import dataclass, field

import basix
import numpy as np
from dolfinx import la
from dolfinx.common import IndexMap
from scipy import sparse

from pde_solver.mesh import Mesh
from pde_solver.parallel import allgather_rows


@dataclass(frozen=True, eq=False)
class VertexHalo:
    """This rank's owned cells, then every cell of another rank that shares a vertex with one of them.

    Neighbours are listed in the order of the input, so that sums over them are the same, bit by bit, on any number of ranks.

    Args:
        owned: number of owned cells.
        map: the numbering across ranks.
        first: (owned + 1,) where each cell's neighbours begin.
        neighbours: (·,) numbers of the neighbouring cells, in input order.
        number: (cells of the mesh on this rank,) the number here of each owned or ghost cell of the mesh.
    """

    owned: int
    map: IndexMap
    first: np.ndarray
    neighbours: np.ndarray
    number: np.ndarray
    _vectors: dict[int, la.Vector] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Owned cells and halo together."""
        return self.map.size_local + self.map.num_ghosts

    def filled(self, values: np.ndarray) -> np.ndarray:
        """Values (owned or more, width) of the owned cells with those of the halo appended, (size, width). Collective."""
        width = values.shape[1]
        if width not in self._vectors:  # setting up the exchange costs more than many exchanges
            self._vectors[width] = la.vector(self.map, width)
        vector = self._vectors[width]
        vector.array.reshape(-1, width)[: self.owned] = values[: self.owned]
        vector.scatter_forward()
        return vector.array.reshape(-1, width).copy()


def vertex_halo(mesh: Mesh) -> VertexHalo:
    """The halo of a distributed mesh. Collective; the exchange is of the cells at the boundaries between ranks."""
    topology = mesh.domain.topology
    cell_map, vertex_map = topology.index_map(topology.dim), topology.index_map(0)
    owned = mesh.owned_cells
    corners = len(basix.topology(mesh.domain.basix_cell())[0])
    vertices = topology.connectivity(topology.dim, 0).array.reshape(-1, corners)
    vertex = vertex_map.local_to_global(vertices[:owned].reshape(-1).astype(np.int32))
    cell = cell_map.local_range[0] + np.repeat(np.arange(owned), corners)
    place = np.repeat(mesh.input_index, corners)
    incidence = np.stack([vertex, cell, place, np.full(len(cell), mesh.comm.rank)], axis=1).astype(np.int64)

    # around a vertex cells are connected by facets, so a vertex that ranks share is a vertex of a ghost cell
    at_boundary = np.isin(vertices[:owned].reshape(-1), vertices[owned:])
    foreign = allgather_rows(mesh.comm, incidence[at_boundary])
    foreign = foreign[(foreign[:, 3] != mesh.comm.rank) & np.isin(foreign[:, 0], vertex)]
    everything = np.concatenate([incidence, foreign])

    _, column = np.unique(everything[:, 0], return_inverse=True)
    # rows of `known` are all cells around, sorted by their place in the input
    _, representative, row = np.unique(everything[:, 2], return_index=True, return_inverse=True)
    known = everything[representative]
    pairs = sparse.csr_array(
        (np.ones(len(row), dtype=np.int32), (row, column)), shape=(len(known), column.max(initial=-1) + 1)
    )
    mine = known[:, 3] == mesh.comm.rank
    ghosts = np.sort(known[~mine, 1])
    number = np.empty(len(known), dtype=np.int64)
    number[mine] = known[mine, 1] - cell_map.local_range[0]
    number[~mine] = owned + np.searchsorted(ghosts, known[~mine, 1])
    owners = known[~mine, 3][np.argsort(known[~mine, 1])].astype(np.int32)

    around = (pairs[mine] @ pairs.T).tocoo()
    cells, others = number[mine][around.coords[0]], around.coords[1]
    different = cells != number[others]
    cells, others = cells[different], others[different]
    order = np.lexsort((others, cells))
    cells, others = cells[order], others[order]

    ghost_numbers = owned + np.searchsorted(ghosts, cell_map.ghosts)
    return VertexHalo(
        owned=owned,
        map=IndexMap(mesh.comm, owned, ghosts, owners, 1203),
        first=np.searchsorted(cells, np.arange(owned + 1)),
        neighbours=number[others],
        number=np.concatenate([np.arange(owned), ghost_numbers]),
    )
