"""Meshes from files, through meshio."""

import contextlib
import io
from os import PathLike
from pathlib import Path

import meshio
import numpy as np
from dolfinx.cpp.io import perm_vtk
from dolfinx.mesh import to_type
from meshio._helpers import reader_map
from mpi4py import MPI

from pde_solver.errors import InputError, did_you_mean
from pde_solver.manifolds import Manifold
from pde_solver.mesh.arguments import check_size
from pde_solver.mesh.distribute import distribute
from pde_solver.mesh.inspect import repair
from pde_solver.mesh.mesh import Mesh, RawMesh
from pde_solver.parallel import on_root

#: Suffixes that are read, and meshio's name of the format. Others that meshio knows may loop for ever at the end of
#: a truncated file.
_FORMATS = {
    ".msh": "gmsh",
    ".vtk": "vtk",
    ".vtu": "vtu",
    ".xdmf": "xdmf",
    ".xmf": "xdmf",
    ".stl": "stl",
    ".off": "off",
    ".ply": "ply",
    ".obj": "obj",
    ".mesh": "medit",
    ".meshb": "medit",
    ".inp": "abaqus",
    ".med": "med",
}
#: meshio's name of each kind of cell: ours, the nodes that are used, and the degree that they give.
_KINDS = {
    "line": ("interval", 2, 1),
    "line3": ("interval", 3, 2),
    "line4": ("interval", 2, 1),
    "triangle": ("triangle", 3, 1),
    "triangle6": ("triangle", 6, 2),
    "triangle7": ("triangle", 6, 2),
    "triangle10": ("triangle", 3, 1),
    "quad": ("quadrilateral", 4, 1),
    "quad8": ("quadrilateral", 4, 1),
    "quad9": ("quadrilateral", 9, 2),
    "tetra": ("tetrahedron", 4, 1),
    "tetra10": ("tetrahedron", 10, 2),
    "hexahedron": ("hexahedron", 8, 1),
    "hexahedron20": ("hexahedron", 8, 1),
    "hexahedron27": ("hexahedron", 27, 2),
}
_CELLS_OF_DIMENSION = {1: ("interval",), 2: ("triangle", "quadrilateral"), 3: ("tetrahedron", "hexahedron")}


def read_mesh(
    path: str | PathLike, manifold: Manifold, *, project: bool = False, comm: MPI.Comm = MPI.COMM_WORLD
) -> Mesh:
    """A mesh from a file: gmsh (.msh 2.2 and 4.1), VTK, VTU, XDMF, STL, OFF and what else meshio reads. Collective.

    The cells of the manifold's dimension are taken; they are inspected and, where that is safe, repaired: see the
    mesh's `notes`. The file is read on rank 0 alone.

    Args:
        path: the file; its suffix tells the format.
        manifold: what it is a mesh of.
        project: move points radially to the unit sphere, however far they are from it.
        comm: the ranks that share the mesh.

    Raises:
        InputError: if the file cannot be read, has no suitable cells or more than one kind of them, or is refused
            by `repair`; the sentence begins with the path.
    """
    raw = None

    def load() -> tuple[str, tuple[str, ...]]:
        nonlocal raw
        try:
            chosen, left_out = _chosen_cells(_read_by_meshio(Path(path)), manifold)
            raw, repairs = repair(chosen, manifold, project=project)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        name = Path(path).name
        return f"{name}, {len(raw.cells)} {raw.cell} cells, geometry degree {raw.degree}", left_out + repairs

    description, notes = on_root(comm, load)
    return distribute(comm, raw, manifold, description, notes)


def _read_by_meshio(path: Path) -> meshio.Mesh:
    if not path.exists():
        raise InputError("there is no such file.")
    if path.is_dir():
        raise InputError("this is a directory, not a mesh file.")
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise InputError(f"the suffix {suffix!r} is no mesh format that can be read; {did_you_mean(suffix, _FORMATS)}.")
    chosen = _FORMATS[suffix]
    try:
        with path.open("rb") as file:
            head = file.read(10_000)
    except OSError as error:
        raise InputError(f"the file cannot be opened: {error.strerror}.") from None
    if not head:
        raise InputError("the file is empty.")
    _check_head(chosen, head)
    # meshio's reader of the format itself: `meshio.read` prints the reason and leaves the process.
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), np.errstate(all="ignore"):
            mesh = reader_map[chosen](str(path))
    except (Exception, SystemExit) as error:
        reason = " ".join((str(error) or said.getvalue() or type(error).__name__).split())
        raise InputError(f"cannot be read as {chosen} (truncated or damaged?): {reason[:200]}") from None
    if "not closed" in said.getvalue():
        raise InputError(f"the file is truncated: {' '.join(said.getvalue().split())}")
    return mesh


def _check_head(chosen: str, head: bytes) -> None:
    """Refuse what meshio would misread, or on which it would wait for ever."""
    if chosen == "gmsh":
        version = head.partition(b"$MeshFormat")[2].split()[:1]
        if version in ([b"4"], [b"4.0"]):
            raise InputError("the gmsh format 4.0 cannot be read; save the mesh as version 4.1 or 2.2.")
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith(b"#")]
    if (chosen == "off" and len(lines) < 2) or (chosen == "ply" and b"end_header" not in head):
        raise InputError(f"cannot be read as {chosen} (truncated or damaged?): the header does not end.")


def _chosen_cells(mesh: meshio.Mesh, manifold: Manifold) -> tuple[RawMesh, tuple[str, ...]]:
    """The cells of the manifold's dimension, and a sentence on what was left out."""
    if manifold.dimension not in _CELLS_OF_DIMENSION or manifold.ambient_dimension > 3:
        raise InputError(f"there are no meshes of {manifold}, only of the circle, S², R, R² and R³; use particles.")
    allowed = _CELLS_OF_DIMENSION[manifold.dimension]
    found: dict[str, list[np.ndarray]] = {}
    for block in mesh.cells:
        if len(block.data):
            found.setdefault(block.type, []).append(np.asarray(block.data))
    wanted = [kind for kind in found if kind in _KINDS and _KINDS[kind][0] in allowed]
    if not wanted:
        there = ", ".join(f"{_total(found[kind])} {kind}" for kind in found) or "none"
        raise InputError(f"a mesh of {manifold} needs {' or '.join(allowed)} cells, found {there}.")
    if len(wanted) > 1:
        there = " and ".join(f"{_total(found[kind])} {kind}" for kind in wanted)
        raise InputError(f"all cells must be of one kind, found {there}; mesh with one kind of element of one order.")
    kind = wanted[0]
    others = [f"{_total(blocks)} {other}" for other, blocks in found.items() if other != kind]
    notes = [f"cells left out: {', '.join(others)}."] if others else []
    cell, node_count, degree = _KINDS[kind]
    data = np.concatenate(found[kind])
    check_size("the file", len(data))
    if node_count < data.shape[1]:
        notes.append(f"of the {data.shape[1]} nodes of a {kind} cell only the first {node_count} were used.")
    order = perm_vtk(to_type(cell), node_count)  # meshio numbers nodes as VTK does
    return RawMesh(np.asarray(mesh.points, dtype=float), data[:, order].astype(np.int64), cell, degree), tuple(notes)


def _total(blocks: list[np.ndarray]) -> int:
    return sum(len(block) for block in blocks)
