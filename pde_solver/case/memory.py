"""How much memory a case takes, from counts alone: known before anything is built, and refused if it is not there."""

import math
import os
import socket
import zlib
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.case.discretisation_tables import DiscontinuousGalerkin, FiniteVolume, IndependentTokens
from pde_solver.case.settings import Settings
from pde_solver.errors import InputError
from pde_solver.mesh.arguments import BYTES_PER_CELL
from pde_solver.parallel import allgather_rows

#: Vectors of the length of the state that a time scheme, a limiter and a velocity hold at once.
VECTORS = 16
#: Numbers that finite volumes keep for each cell: neighbours, facets, velocity stencils; resident memory on 327,680 triangles.
NUMBERS_PER_CELL = 115
#: Dimensions of the shapes of cells.
_DIMENSIONS = {"interval": 1, "triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 3}


def expected_memory(settings: Settings, size: tuple[int, str] | None = None) -> float:
    """Bytes of the mesh while it is built and of all unknowns and sources, over all ranks.

    Args:
        settings: the case.
        size: how many cells of which shape; by default what the settings say, which do not know a file.
    """
    if size is None and settings.mesh is not None:
        size = settings.mesh.size()
    count, shape = size or (0, "triangle")
    return BYTES_PER_CELL * count + memory_of_unknowns(settings, count, shape)


def memory_of_unknowns(settings: Settings, cells: int, shape: str) -> float:
    """Bytes of all unknowns and sources without the mesh, over all ranks.

    Args:
        settings: the case.
        cells: how many cells; not used for tokens.
        shape: what cells are.
    """
    table, manifold = settings.discretisation, settings.model.place()
    labels = 1 if settings.labels is None else settings.labels.count
    if isinstance(table, FiniteVolume):
        return 8.0 * (labels * VECTORS * (1 + manifold.ambient_dimension) + NUMBERS_PER_CELL) * cells
    if isinstance(table, DiscontinuousGalerkin):
        nodes = _nodes(shape, table.degree)
        # each cell has its own inverse of the mass matrix, and about as many sources as unknowns
        return 8.0 * (labels * VECTORS * (1 + manifold.ambient_dimension) * nodes + nodes**2) * cells
    if isinstance(table, IndependentTokens):
        tokens = table.count
    elif table.cells is None:
        tokens = 2 * table.quadrature_order ** (manifold.ambient_dimension - 1)
    else:
        tokens = math.prod(table.cells) * table.quadrature_order**manifold.ambient_dimension
    return 8.0 * VECTORS * (manifold.ambient_dimension + 1) * labels * tokens


def _nodes(shape: str, degree: int) -> int:
    """Dimension of the polynomials of a degree on a cell: all of it on simplices, in each coordinate on the others."""
    dimension = _DIMENSIONS[shape]
    tensor = shape in ("quadrilateral", "hexahedron")
    return (degree + 1) ** dimension if tensor else math.comb(degree + dimension, dimension)


def check_memory(comm: MPI.Comm, needed: float) -> None:
    """Refuse what would exhaust the memory. Collective.

    Args:
        comm: the ranks that share the work.
        needed: bytes over all ranks.

    Raises:
        InputError: on all ranks, if their machines have less.
    """
    available = available_memory(comm)
    if needed > available:
        raise InputError(
            f"memory: the case takes about {megabytes(needed)} for its mesh, unknowns and sources, and "
            f"{megabytes(available)} are available here; take a coarser mesh, fewer tokens, or more machines."
        )


def available_memory(comm: MPI.Comm) -> float:
    """Bytes that the machines of all ranks together have to spare; each machine counts once. Collective."""
    machine = zlib.crc32(socket.gethostname().encode())
    found = allgather_rows(comm, np.array([[machine, _available_here()]], dtype=float))
    _, first = np.unique(found[:, 0], return_index=True)
    return float(found[first, 1].sum())


def _available_here() -> float:
    """What Linux says is available without swapping; elsewhere, all physical memory."""
    counts = Path("/proc/meminfo")
    if counts.exists():
        for line in counts.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return 1024.0 * int(value.split()[0])
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def megabytes(count: float) -> str:
    """Bytes for people: "1,234 MB"."""
    return f"{max(math.ceil(count / 1e6), 1):,} MB"
