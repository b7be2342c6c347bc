"""Meshes of intervals, rectangles and boxes, which stand for R, R² and R³ with no-flux walls."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError, did_you_mean
from pde_solver.manifolds import Euclidean
from pde_solver.mesh.arguments import check_size, corners, whole_number, whole_numbers
from pde_solver.mesh.distribute import distribute
from pde_solver.mesh.mesh import Mesh, RawMesh


def interval(lower: float, upper: float, cells: int, *, comm: MPI.Comm = MPI.COMM_WORLD) -> Mesh:
    """A mesh of [lower, upper] by equal cells.

    Args:
        lower: left end.
        upper: right end, > lower.
        cells: number of cells, ≥ 1.
        comm: the ranks that share the mesh.

    Raises:
        InputError: if an argument is out of range.
    """
    low, high = corners("interval", lower, upper, 1)
    count = whole_number("interval: cells", cells, 1)
    check_size(f"interval: cells = {count}", count)
    raw = None
    if comm.rank == 0:
        first = np.arange(count)
        raw = RawMesh(_lattice(low, high, (count,)), np.column_stack([first, first + 1]), "interval")
    return distribute(comm, raw, Euclidean(1), f"interval [{low[0]:g}, {high[0]:g}], {count} cells")


def rectangle(
    lower: Sequence[float],
    upper: Sequence[float],
    cells: Sequence[int],
    *,
    cell: str = "triangle",
    comm: MPI.Comm = MPI.COMM_WORLD,
) -> Mesh:
    """A mesh of [lower₀, upper₀] × [lower₁, upper₁] by a grid, each square cut in two if cells are triangles.

    The diagonals alternate like the colours of a chessboard, so that no direction is preferred.

    Args:
        lower: the lower left corner.
        upper: the upper right corner.
        cells: squares along each axis (nx, ny).
        cell: "triangle" or "quadrilateral".
        comm: the ranks that share the mesh.

    Raises:
        InputError: if an argument is out of range.
    """
    _check_cell("rectangle", cell, ("triangle", "quadrilateral"))
    low, high = corners("rectangle", lower, upper, 2)
    counts = whole_numbers("rectangle: cells", cells, 2)
    size = counts[0] * counts[1] * (2 if cell == "triangle" else 1)
    check_size(f"rectangle: cells = {counts}", size)
    raw = None
    if comm.rank == 0:
        grid = _grid_cells(counts)
        if cell == "triangle":
            even = np.indices(counts).sum(axis=0).reshape(-1, 1, 1) % 2 == 0
            halves = np.where(even, [[0, 1, 3], [0, 3, 2]], [[0, 1, 2], [1, 3, 2]])
            grid = np.take_along_axis(grid, halves.reshape(-1, 6), axis=1).reshape(-1, 3)
        raw = RawMesh(_lattice(low, high, counts), grid, cell)
    return distribute(comm, raw, Euclidean(2), f"rectangle {_span(low, high)}, {size} {cell} cells")


def box(
    lower: Sequence[float],
    upper: Sequence[float],
    cells: Sequence[int],
    *,
    cell: str = "tetrahedron",
    comm: MPI.Comm = MPI.COMM_WORLD,
) -> Mesh:
    """A mesh of a box in R³ by a grid, each cube cut in six if cells are tetrahedra.

    The six tetrahedra of a cube go from its lowest to its highest corner, one along each order of the axes.
    Source: H. W. Kuhn, IBM J. Res. Dev. 4 (1960) 518–524.

    Args:
        lower: the corner with the smallest coordinates.
        upper: the corner with the largest coordinates.
        cells: cubes along each axis (nx, ny, nz).
        cell: "tetrahedron" or "hexahedron".
        comm: the ranks that share the mesh.

    Raises:
        InputError: if an argument is out of range.
    """
    _check_cell("box", cell, ("tetrahedron", "hexahedron"))
    low, high = corners("box", lower, upper, 3)
    counts = whole_numbers("box: cells", cells, 3)
    size = counts[0] * counts[1] * counts[2] * (6 if cell == "tetrahedron" else 1)
    check_size(f"box: cells = {counts}", size)
    raw = None
    if comm.rank == 0:
        grid = _grid_cells(counts)
        if cell == "tetrahedron":
            grid = grid[:, _kuhn_simplices()].reshape(-1, 4)
        raw = RawMesh(_lattice(low, high, counts), grid, cell)
    return distribute(comm, raw, Euclidean(3), f"box {_span(low, high)}, {size} {cell} cells")


def _check_cell(where: str, cell: object, allowed: tuple[str, ...]) -> None:
    if cell not in allowed:
        raise InputError(f"{where}: cell {cell!r} is unknown; {did_you_mean(str(cell), allowed)}.")


def _span(low: np.ndarray, high: np.ndarray) -> str:
    return " × ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high, strict=True))


def _lattice(low: np.ndarray, high: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Grid points (points, D), the last coordinate runs fastest."""
    axes = [np.linspace(a, b, count + 1) for a, b, count in zip(low, high, counts, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))


def _grid_cells(counts: tuple[int, ...]) -> np.ndarray:
    """Corners (cells, 2^D) of each grid cell; corner number = Σ bit_axis 2^axis, as basix numbers them."""
    dimension = len(counts)
    nodes = np.arange(np.prod(np.array(counts) + 1)).reshape(np.array(counts) + 1)
    corner_nodes = []
    for corner in range(2**dimension):
        shifts = [corner >> axis & 1 for axis in range(dimension)]
        window = tuple(slice(shift, shift + count) for shift, count in zip(shifts, counts, strict=True))
        corner_nodes.append(nodes[window].reshape(-1))
    return np.column_stack(corner_nodes)


def _kuhn_simplices() -> np.ndarray:
    """Corner numbers (6, 4) of the tetrahedra of a cube, each with positive volume."""
    tetrahedra = []
    for order in permutations(range(3)):
        path = [0, 1 << order[0], (1 << order[0]) | (1 << order[1]), 7]
        odd = np.linalg.det(np.eye(3)[list(order)]) < 0
        tetrahedra.append([path[0], path[2], path[1], path[3]] if odd else path)
    return np.array(tetrahedra)
