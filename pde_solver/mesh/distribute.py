"""From arrays on rank 0 to a DOLFINx mesh over all ranks."""

import hashlib

import basix
import basix.ufl
import dolfinx.mesh
import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold
from pde_solver.mesh.mesh import Mesh, RawMesh
from pde_solver.parallel import on_root

_VARIANT = basix.LagrangeVariant.equispaced


def coordinate_element(cell: str, degree: int, ambient_dimension: int) -> basix.ufl._ElementBase:
    """The Lagrange element of the geometry, its nodes equally spaced as in gmsh and VTK.

    Args:
        cell: "interval", "triangle", "quadrilateral", "tetrahedron" or "hexahedron".
        degree: polynomial degree of the geometry.
        ambient_dimension: number of coordinates D.
    """
    return basix.ufl.element("Lagrange", cell, degree, _VARIANT, shape=(ambient_dimension,))


def reference_nodes(cell: str, degree: int) -> np.ndarray:
    """The nodes (nodes, cell dimension) of the coordinate element on the reference cell, in basix's order."""
    return basix.ufl.element("Lagrange", cell, degree, _VARIANT).basix_element.points


def distribute(
    comm: MPI.Comm, raw: RawMesh | None, manifold: Manifold, description: str = "", notes: tuple[str, ...] = ()
) -> Mesh:
    """Share a mesh that rank 0 holds among all ranks, with shared-facet ghosts. Collective.

    Points and cells must have been inspected: DOLFINx accepts almost everything in silence.

    Args:
        comm: the ranks.
        raw: the mesh on rank 0; what other ranks pass is ignored.
        manifold: what it is a mesh of; rank 0's is taken, as are description and notes.
        description: one line for people.
        notes: what was repaired on the way in.

    Returns:
        The distributed mesh.

    Raises:
        InputError: on all ranks, if the points do not have the manifold's ambient dimension or the cells have
            another number of nodes than their type and degree demand.
    """

    def summary() -> tuple[str, int, str, Manifold, str, tuple[str, ...]]:
        if raw is None:
            raise InputError("distribute: rank 0 must hold the mesh, found None.")
        _check_shapes(raw, manifold)
        return raw.cell, raw.degree, _digest(raw), manifold, description, tuple(notes)

    cell, degree, digest, manifold, description, notes = on_root(comm, summary)
    dimension = manifold.ambient_dimension
    element = coordinate_element(cell, degree, dimension)
    if raw is not None and comm.rank == 0:
        points = np.ascontiguousarray(raw.points, dtype=np.float64)
        cells = np.ascontiguousarray(raw.cells, dtype=np.int64)
    else:
        points = np.empty((0, dimension))
        cells = np.empty((0, len(reference_nodes(cell, degree))), dtype=np.int64)
    # Without shared-facet ghosts DOLFINx loses the facets between two ranks in silence.
    partitioner = dolfinx.mesh.create_cell_partitioner(dolfinx.mesh.GhostMode.shared_facet, 2)  # type: ignore[call-arg]
    domain = dolfinx.mesh.create_mesh(comm, cells, element, points, partitioner, 2)  # type: ignore[arg-type]
    return Mesh(domain, manifold, description, digest, notes)


def _check_shapes(raw: RawMesh, manifold: Manifold) -> None:
    dimension = manifold.ambient_dimension
    if raw.points.ndim != 2 or raw.points.shape[1] != dimension:
        raise InputError(f"mesh: points of {manifold} need shape (n, {dimension}), found {raw.points.shape}.")
    nodes = len(reference_nodes(raw.cell, raw.degree))
    if raw.cells.ndim != 2 or raw.cells.shape[1] != nodes:
        raise InputError(
            f"mesh: cells of type {raw.cell} and degree {raw.degree} need shape (n, {nodes}), found {raw.cells.shape}."
        )
    if len(raw.cells) == 0:
        raise InputError("mesh: there are no cells.")
    if raw.cells.min() < 0 or raw.cells.max() >= len(raw.points):  # DOLFINx would end the process
        raise InputError(
            f"mesh: cells name nodes {raw.cells.min()} to {raw.cells.max()}, but there are {len(raw.points)} points."
        )


def _digest(raw: RawMesh) -> str:
    # Rounded, so that the last bit of a sine on another processor does not make another mesh; + 0.0 removes −0.
    rounded = np.round(raw.points.astype("<f8"), 12) + 0.0
    digest = hashlib.sha256(f"{raw.cell} {raw.degree} {raw.points.shape} {raw.cells.shape}".encode())
    digest.update(np.ascontiguousarray(rounded))
    digest.update(np.ascontiguousarray(raw.cells, dtype="<i8"))
    return digest.hexdigest()
