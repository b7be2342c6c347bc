"""Cells that share a vertex, across ranks: the neighbourhoods that reconstruction and limiter look at."""

from dataclasses import dataclass

import basix
import numpy as np
from dolfinx import la
from dolfinx.common import IndexMap
from scipy import sparse

from pde_solver.mesh import Mesh
from pde_solver.parallel import allgather_rows


class GhostExchange:
    """Values of this rank's cells and, after them, those of the ghosts: copies of cells of other ranks.

    Args:
        map: the numbering across ranks.
    """

    def __init__(self, map: IndexMap) -> None:
        self._map = map
        self._vectors: dict[int, la.Vector] = {}
        asked = la.vector(map, 1)
        asked.array[:] = np.arange(self.size) >= self.owned
        asked.scatter_reverse(la.InsertMode.add)
        #: Owned cells that are ghosts elsewhere.
        self.sent = np.flatnonzero(asked.array[: self.owned])

    @property
    def owned(self) -> int:
        """How many cells are this rank's own."""
        return self._map.size_local

    @property
    def size(self) -> int:
        """Owned cells and ghosts together."""
        return self._map.size_local + self._map.num_ghosts

    def vector(self, width: int) -> la.Vector:
        """The array for `width` numbers a cell, always the same one; its `scatter_forward` fills in the ghosts."""
        if width not in self._vectors:  # setting up the exchange costs more than many exchanges
            self._vectors[width] = la.vector(self._map, width)
        return self._vectors[width]

    def with_ghosts(self, values: np.ndarray) -> np.ndarray:
        """Values (owned,) with those of the ghosts appended, until the next call. Collective.

        The values themselves where there are no other ranks: a stage has no time for a copy.
        """
        if self._map.comm.size == 1:  # not: no ghosts here, since setting up a vector is collective
            return values
        vector = self.vector(1)
        vector.array[: self.owned] = values
        vector.scatter_forward()
        return vector.array

    def filled(self, values: np.ndarray) -> np.ndarray:
        """A copy of values (owned or more, width) with those of the ghosts appended, (size, width). Collective."""
        vector = la.vector(self._map, values.shape[1])
        filled = vector.array.reshape(self.size, values.shape[1])
        filled[: self.owned] = values[: self.owned]
        vector.scatter_forward()
        return filled.copy()


@dataclass(frozen=True, eq=False)
class VertexHalo:
    """This rank's owned cells, then every cell of another rank that shares a vertex with one of them.

    Neighbours are listed in the order of the input, so that sums over them are the same, bit by bit, on any number of ranks.

    Args:
        exchange: values of the owned cells for the halo.
        first: (owned + 1,) where each cell's neighbours begin.
        neighbours: (·,) numbers of the neighbouring cells, in input order.
        number: (cells of the mesh on this rank,) the number here of each owned or ghost cell of the mesh.
    """

    exchange: GhostExchange
    first: np.ndarray
    neighbours: np.ndarray
    number: np.ndarray

    @property
    def owned(self) -> int:
        """How many cells are this rank's own."""
        return self.exchange.owned

    def filled(self, values: np.ndarray) -> np.ndarray:
        """Values (owned or more, width) of the owned cells with those of the halo appended. Collective."""
        return self.exchange.filled(values)


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
    number = np.empty(len(known), dtype=np.int32)
    number[mine] = known[mine, 1] - cell_map.local_range[0]
    number[~mine] = owned + np.searchsorted(ghosts, known[~mine, 1])
    owners = known[~mine, 3][np.argsort(known[~mine, 1])].astype(np.int32)

    rows = np.flatnonzero(mine)
    rows = rows[np.argsort(number[rows])]
    around = pairs[rows] @ pairs.T
    around.sort_indices()  # by the place in the input
    others = number[around.indices]
    different = others != np.repeat(np.arange(owned), np.diff(around.indptr))

    ghost_numbers = owned + np.searchsorted(ghosts, cell_map.ghosts)
    return VertexHalo(
        exchange=GhostExchange(IndexMap(mesh.comm, owned, ghosts, owners, 1203)),
        first=around.indptr.astype(np.int64) - np.arange(owned + 1),  # each cell shares its vertices with itself
        neighbours=others[different],
        number=np.concatenate([np.arange(owned), ghost_numbers]).astype(np.int32),
    )
