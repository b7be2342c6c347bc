"""Meshes from files: repaired where that is safe, refused with cell numbers where it is not.

DOLFINx accepts almost everything in silence, and a node number out of range ends the process; so this looks first,
with NumPy on rank 0.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.mesh.adjacency import check_adjacency, groups
from pde_solver.mesh.distribute import reference_nodes
from pde_solver.mesh.mesh import RawMesh
from pde_solver.mesh.orientation import mirrored, orientation

#: Vertices nearer than this times the extent of the mesh are the same vertex.
SAME_VERTEX = 1e-10
#: Points nearer to the sphere than this are on it but for the digits of the file (six, or single precision).
ROUNDING_OF_FILES = 1e-5
#: Cells with less volume than this times (longest edge)^dimension have none.
NO_VOLUME = 1e-10


def repair(raw: RawMesh, manifold: Manifold, *, project: bool = False) -> tuple[RawMesh, tuple[str, ...]]:
    """A mesh that is fit to be distributed, and what was done to it.

    Nodes without cells are dropped, constant coordinates beyond the manifold's are dropped, duplicated vertices are
    merged, and cells are turned: outward on the sphere, counter-clockwise on the circle, with positive volume in R^d.

    Args:
        raw: the mesh as it came; not changed.
        manifold: what it should be a mesh of.
        project: move points radially to the unit sphere, however far they are from it.

    Returns:
        The repaired mesh, and one sentence for each repair.

    Raises:
        InputError: for points that are not finite or not on the sphere; for cells that are none, out of range,
            degenerate, tangled, duplicate or folded over a neighbour; for a sphere or circle that is not closed or
            covered more than once; for a facet of three cells. With the numbers of the first such cells.
    """
    notes: list[str] = []
    _check_indices(raw)
    raw = _without_orphans(raw, notes)
    raw = _in_ambient_dimension(raw, manifold, notes)
    raw = _with_merged_vertices(raw, notes)
    if isinstance(manifold, Sphere):
        raw = _on_sphere(raw, project, notes)
    elif project:
        raise InputError(f"mesh: project = True moves points to the unit sphere, but the manifold is {manifold}.")
    raw = _oriented(raw, manifold, notes)
    check_adjacency(raw, manifold, notes)
    return raw, tuple(notes)


def listed(numbers: np.ndarray) -> str:
    """ "cells 3, 5 and 8", or the first five of many and how many there are; counted from 0."""
    some = [str(number) for number in numbers[:5]]
    if len(numbers) > 5:
        return f"cells {', '.join(some)}, … ({len(numbers)} in all, counted from 0)"
    if len(some) == 1:
        return f"cell {some[0]} (counted from 0)"
    return f"cells {', '.join(some[:-1])} and {some[-1]} (counted from 0)"


def _check_indices(raw: RawMesh) -> None:
    nodes = len(reference_nodes(raw.cell, raw.degree))
    if raw.points.ndim != 2 or len(raw.points) == 0:
        raise InputError("mesh: there are no points.")
    if raw.cells.size == 0:
        raise InputError(f"mesh: there are no {raw.cell} cells.")
    if raw.cells.ndim != 2 or raw.cells.shape[1] != nodes:
        raise InputError(
            f"mesh: {raw.cell} cells of degree {raw.degree} have {nodes} nodes, found an array {raw.cells.shape}."
        )
    outside = ((raw.cells < 0) | (raw.cells >= len(raw.points))).any(axis=1)
    if outside.any():
        raise InputError(
            f"mesh: {listed(np.flatnonzero(outside))}: node numbers out of range, there are {len(raw.points)} points."
        )
    broken = ~(np.abs(raw.points) < 1e100).all(axis=1)[raw.cells].all(axis=1)
    if broken.any():
        raise InputError(f"mesh: {listed(np.flatnonzero(broken))}: coordinates are not numbers of a sensible size.")


def _without_orphans(raw: RawMesh, notes: list[str]) -> RawMesh:
    used = np.zeros(len(raw.points), dtype=bool)
    used[raw.cells] = True
    if used.all():
        return raw
    orphans = int(np.count_nonzero(~used))
    notes.append(f"{orphans} node{'s' * (orphans > 1)} that no cell uses {'were' if orphans > 1 else 'was'} dropped.")
    return replace(raw, points=raw.points[used], cells=(np.cumsum(used) - 1)[raw.cells])


def _in_ambient_dimension(raw: RawMesh, manifold: Manifold, notes: list[str]) -> RawMesh:
    dimension = manifold.ambient_dimension
    found = raw.points.shape[1]
    if found < dimension:
        raise InputError(f"mesh: points of a mesh of {manifold} have {dimension} coordinates, found {found}.")
    for axis in range(dimension, found):
        name = "xyz"[axis] if axis < 3 else f"x{axis}"
        column = raw.points[:, axis]
        extent = np.ptp(raw.points[:, :dimension], axis=0).max()
        if np.ptp(column) > 1e-10 * extent:
            raise InputError(
                f"mesh: a mesh of {manifold} has {dimension} coordinate{'s' * (dimension > 1)}, but {name} varies from "
                f"{column.min():g} to {column.max():g}; turn the mesh so that {name} is constant."
            )
        notes.append(f"the constant coordinate {name} = {column[0]:g} was dropped.")
    return replace(raw, points=np.ascontiguousarray(raw.points[:, :dimension], dtype=float))


def _with_merged_vertices(raw: RawMesh, notes: list[str]) -> RawMesh:
    count = len(raw.points)
    extent = np.ptp(raw.points, axis=0).max()
    pairs = cKDTree(raw.points).query_pairs(SAME_VERTEX * extent, output_type="ndarray")
    if len(pairs) == 0:
        return raw
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    _, label = connected_components(links, directed=False)
    # labels in the order of the first point of each, so that the numbering is kept
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    merged = count - len(first)
    notes.append(f"{merged} duplicated {'vertices were' if merged > 1 else 'vertex was'} merged.")
    return replace(raw, points=raw.points[np.sort(first)], cells=place[number][raw.cells])


def _on_sphere(raw: RawMesh, project: bool, notes: list[str]) -> RawMesh:
    distance = np.linalg.norm(raw.points, axis=1)
    deviation = np.abs(distance - 1).max()
    if deviation > ROUNDING_OF_FILES and not project:
        raise InputError(
            f"mesh: the points must lie on the unit sphere, but they are {distance.min():.6g} to {distance.max():.6g} "
            f"from the origin; centre and scale the mesh, or pass project=True to move the points radially."
        )
    if distance.min() <= 1e-6 * distance.max():
        raise InputError("mesh: a point in the origin cannot be moved radially to the unit sphere; centre the mesh.")
    if deviation > 1e-13:
        notes.append(f"points up to {deviation:.2g} off the unit sphere were moved to it.")
    return replace(raw, points=raw.points / distance[:, None])


def _oriented(raw: RawMesh, manifold: Manifold, notes: list[str]) -> RawMesh:
    signed = orientation(raw, manifold)
    flat = (np.abs(signed) <= NO_VOLUME).any(axis=1)
    if flat.any():
        raise InputError(f"mesh: {listed(np.flatnonzero(flat))}: no volume, or a corner without an angle.")
    tangled = (signed > 0).any(axis=1) & (signed < 0).any(axis=1)
    if tangled.any():
        raise InputError(f"mesh: {listed(np.flatnonzero(tangled))}: tangled (they overlap themselves).")
    corner_count = len(reference_nodes(raw.cell, 1))
    number, count = groups(raw.cells[:, :corner_count])
    if (count > 1).any():
        doubled = np.flatnonzero(count[number] > 1)
        raise InputError(f"mesh: {listed(doubled)}: the same cell twice.")
    backward = signed[:, 0] < 0
    if not backward.any():
        return raw
    cells = raw.cells.copy()
    cells[backward] = cells[backward][:, mirrored(raw.cell, raw.degree)]
    turned = np.count_nonzero(backward)
    notes.append(f"{turned} of {len(cells)} cells were turned so that all have the same orientation.")
    return replace(raw, cells=cells)
