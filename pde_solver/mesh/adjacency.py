"""How the cells of a mesh meet: closed, each facet between at most two cells, nothing folded or covered twice."""

import basix
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.mesh import geodesic, polyhedral
from pde_solver.mesh.mesh import RawMesh

_FACET_NAMES = {0: "vertex", 1: "edge", 2: "face"}


def groups(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with the same numbers, in any order: group of each row (n,), and how many rows each group has.

    Args:
        rows: (n, k) node numbers.
    """
    rows = np.sort(rows, axis=1)
    order = np.lexsort(rows.T)
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[order][1:] != rows[order][:-1]).any(axis=1)
    group = np.empty(len(rows), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return group, np.bincount(group)


def check_adjacency(raw: RawMesh, manifold: Manifold, notes: list[str]) -> None:
    """Check the facets of an oriented mesh, and note if it falls into several parts.

    Args:
        raw: the mesh.
        manifold: what it is a mesh of.
        notes: a sentence is added here if the mesh has several parts.

    Raises:
        InputError: if a facet belongs to three cells; a sphere or circle is not closed, or covered more than once; a
            cell folds over its neighbour.
    """
    corner_table, facet_table = (
        np.array(basix.topology(basix.CellType[raw.cell])[d]) for d in (0, manifold.dimension - 1)
    )
    corners = raw.cells[:, : len(corner_table)]
    facets = corners[:, facet_table].reshape(-1, facet_table.shape[1])
    group, count = groups(facets)
    facet_name = _FACET_NAMES[manifold.dimension - 1]
    if (count > 2).any():
        at = np.flatnonzero(count[group] > 2)
        raise InputError(
            f"mesh: {np.count_nonzero(count > 2)} {facet_name}(s) belong to more than two cells, the first to cells "
            f"{_cells_of(group, group[at[0]], facet_table)} (counted from 0)."
        )
    if isinstance(manifold, Sphere) and (count < 2).any():
        at = np.flatnonzero(count[group] < 2)
        raise InputError(
            f"mesh: a mesh of {manifold} must be closed, but {len(at)} {facet_name}(s) belong to one cell only, "
            f"the first to cell {at[0] // len(facet_table)} (counted from 0)."
        )
    order = np.argsort(group, kind="stable")
    twice = np.flatnonzero(count == 2)
    first = np.concatenate([[0], np.cumsum(count)])[twice]
    one, other = order[first], order[first + 1]
    pairs = np.column_stack([one, other]) // len(facet_table)

    shapes = geodesic if isinstance(manifold, Sphere) else polyhedral
    centres, volumes = shapes.cells(raw.points[corners], raw.cell)
    midpoints, normals = shapes.facets(raw.points[facets[one]], centres[pairs[:, 0]], manifold.dimension)
    folded = ((centres[pairs[:, 1]] - midpoints) * normals).sum(axis=1) <= 0
    if folded.any():
        cell, neighbour = pairs[folded][0]
        raise InputError(
            f"mesh: at {np.count_nonzero(folded)} {facet_name}(s) two cells lie on the same side, the first between "
            f"cells {cell} and {neighbour} (counted from 0): the mesh is folded."
        )
    if isinstance(manifold, Sphere) and abs(volumes.sum() / manifold.volume - 1) > 1e-6:
        raise InputError(f"mesh: the cells cover {manifold} {volumes.sum() / manifold.volume:.6g} times, not once.")
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(raw.cells),) * 2)
    parts, _ = connected_components(links, directed=False)
    if parts > 1:
        notes.append(f"the mesh falls into {parts} parts that share no {facet_name}: no mass flows between them.")


def _cells_of(group: np.ndarray, wanted: int, facet_table: np.ndarray) -> str:
    cells = np.flatnonzero(group == wanted) // len(facet_table)
    return f"{', '.join(map(str, cells[:-1]))} and {cells[-1]}"
