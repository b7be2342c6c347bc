"""Meshes of the unit circle and of S², with straight or curved cells."""

import math

import numpy as np
from mpi4py import MPI

from pde_solver.manifolds import Sphere
from pde_solver.mesh.arguments import check_size, whole_number
from pde_solver.mesh.distribute import distribute, reference_nodes
from pde_solver.mesh.mesh import Mesh, RawMesh

#: Highest polynomial degree of the geometry that is offered.
MOST_DEGREE = 5


def circle(cells: int = 128, *, geometry_degree: int = 3, comm: MPI.Comm = MPI.COMM_WORLD) -> Mesh:
    """A mesh of the unit circle by equal arcs, nodes at the angles 2πi / (cells · degree).

    Args:
        cells: number of arcs, ≥ 3.
        geometry_degree: polynomial degree of the curved cells, 1 to 5; a cell's distance to the circle is
            O(h^{degree + 1}), one order better for even degrees.
        comm: the ranks that share the mesh.

    Raises:
        InputError: if an argument is out of range.
    """
    cells = whole_number("circle: cells", cells, 3)
    degree = whole_number("circle: geometry_degree", geometry_degree, 1, MOST_DEGREE)
    check_size(f"circle: cells = {cells}", cells)
    raw = None
    if comm.rank == 0:
        count = cells * degree
        angles = 2 * math.pi * np.arange(count) / count
        # basix: the two end nodes first, then the inner ones from left to right
        local = np.array([0, degree, *range(1, degree)])
        raw = RawMesh(
            np.column_stack([np.cos(angles), np.sin(angles)]),
            (degree * np.arange(cells)[:, None] + local) % count,
            "interval",
            degree,
        )
    return distribute(comm, raw, Sphere(2), f"circle, {cells} cells, geometry degree {degree}")


def icosphere(level: int = 3, *, geometry_degree: int = 2, comm: MPI.Comm = MPI.COMM_WORLD) -> Mesh:
    """A mesh of S² by 20 · 4^level triangles: the icosahedron, refined by edge midpoints moved to the sphere.

    Args:
        level: number of refinements, 0 to 10.
        geometry_degree: polynomial degree of the curved cells, 1 to 5.
        comm: the ranks that share the mesh.

    Raises:
        InputError: if an argument is out of range.
    """
    level = whole_number("icosphere: level", level, 0, 30)
    degree = whole_number("icosphere: geometry_degree", geometry_degree, 1, MOST_DEGREE)
    check_size(f"icosphere: level = {level}", 20 * 4**level)
    raw = None
    if comm.rank == 0:
        points, cells = _icosahedron()
        for _ in range(level):
            points, cells = _refined(points, cells)
        raw = RawMesh(*_with_degree(points, cells, degree), "triangle", degree)
    return distribute(comm, raw, Sphere(3), f"icosphere, level {level}, geometry degree {degree}")


def cubed_sphere(cells: int = 16, *, geometry_degree: int = 2, comm: MPI.Comm = MPI.COMM_WORLD) -> Mesh:
    """A mesh of S² by 6 · cells² quadrilaterals: the cube with equal angles along each face's axes.

    A point (a, b, c) of the surface of the cube [−1, 1]³ goes to the direction (tan πa/4, tan πb/4, tan πc/4).
    Source: C. Ronchi, R. Iacono, P. S. Paolucci, J. Comput. Phys. 124 (1996) 93–114, section 2.

    Args:
        cells: number of cells n along each edge of the cube, ≥ 1.
        geometry_degree: polynomial degree of the curved cells, 1 to 5.
        comm: the ranks that share the mesh.

    Raises:
        InputError: if an argument is out of range.
    """
    count = whole_number("cubed_sphere: cells", cells, 1)
    degree = whole_number("cubed_sphere: geometry_degree", geometry_degree, 1, MOST_DEGREE)
    check_size(f"cubed_sphere: cells = {count}", 6 * count**2)
    raw = RawMesh(*_cube_surface(count, degree), "quadrilateral", degree) if comm.rank == 0 else None
    return distribute(comm, raw, Sphere(3), f"cubed sphere, {count} cells a side, geometry degree {degree}")


def _normalised(points: np.ndarray) -> np.ndarray:
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def _icosahedron() -> tuple[np.ndarray, np.ndarray]:
    """Vertices (12, 3) on the sphere and outward triangles (20, 3)."""
    golden = (1 + math.sqrt(5)) / 2
    rectangle = np.array([[0, s, t * golden] for s in (-1, 1) for t in (-1, 1)])
    points = np.concatenate([np.roll(rectangle, shift, axis=1) for shift in range(3)])
    # Two vertices are neighbours at distance 2; a triangle is three of them, turned so that it faces outward.
    near = np.isclose(np.linalg.norm(points[:, None] - points[None], axis=2), 2)
    triangles = np.array(
        [(i, j, k) for i in range(12) for j in range(i) for k in range(j) if near[i, j] and near[j, k] and near[i, k]]
    )
    inward = np.linalg.det(points[triangles]) < 0
    triangles[inward] = triangles[inward][:, [0, 2, 1]]
    return _normalised(points), triangles


def _edges(cells: np.ndarray, local_edges: np.ndarray, point_count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges (edges, 2) from lower to higher node; edge of each cell (cells, local edges); which run backwards."""
    ends = cells[:, local_edges]
    low, high = ends.min(axis=2), ends.max(axis=2)
    keys, number = np.unique(low * point_count + high, return_inverse=True)
    edges = np.column_stack([keys // point_count, keys % point_count])
    return edges, number.reshape(low.shape), ends[:, :, 0] > ends[:, :, 1]


#: Local edges of a triangle in basix's order: edge i lies opposite to vertex i.
_TRIANGLE_EDGES = np.array([[1, 2], [0, 2], [0, 1]])


def _refined(points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triangle cut into four by its edge midpoints, moved to the sphere."""
    edges, number, _ = _edges(cells, _TRIANGLE_EDGES, len(points))
    midpoints = _normalised(points[edges].sum(axis=1))
    a, b, c = cells.T
    opposite_a, opposite_b, opposite_c = (len(points) + number).T
    quarters = [
        (a, opposite_c, opposite_b),
        (opposite_c, b, opposite_a),
        (opposite_b, opposite_a, c),
        (opposite_a, opposite_b, opposite_c),
    ]
    children = np.array(quarters).transpose(2, 0, 1).reshape(-1, 3)
    return np.concatenate([points, midpoints]), children


def _with_degree(points: np.ndarray, cells: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of curved triangles: the points of the flat triangle's lattice, moved radially to the sphere.

    A node on an edge is made once, from its edge, so that the triangles on both sides share it.
    """
    if degree == 1:
        return points, cells
    edges, number, backwards = _edges(cells, _TRIANGLE_EDGES, len(points))
    inner = degree - 1
    fraction = np.arange(1, degree)[:, None] / degree
    ends = points[edges][:, :, None, :]
    edge_points = _normalised((1 - fraction) * ends[:, 0] + fraction * ends[:, 1]).reshape(-1, 3)

    along = np.where(backwards[..., None], np.arange(inner)[::-1], np.arange(inner))
    edge_nodes = len(points) + inner * number[..., None] + along

    lattice = reference_nodes("triangle", degree)[3 + 3 * inner :]
    weights = np.column_stack([1 - lattice.sum(axis=1), lattice])
    inside_points = _normalised(np.einsum("kv,cvd->ckd", weights, points[cells])).reshape(-1, 3)
    first = len(points) + len(edge_points)
    inside_nodes = first + np.arange(len(inside_points)).reshape(len(cells), -1)

    nodes = np.concatenate([cells, edge_nodes.reshape(len(cells), -1), inside_nodes], axis=1)
    return np.concatenate([points, edge_points, inside_points]), nodes


def _cube_surface(count: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on the sphere and cells of the equiangular cube, from integer lattice points of the cube's surface."""
    size = count * degree
    # whole numbers −size … size in steps of two, so that points of two faces are equal exactly
    axis = 2 * np.arange(size + 1) - size
    across, along = (grid.reshape(-1) for grid in np.meshgrid(axis, axis, indexing="ij"))
    faces = []
    for direction in range(3):
        for side in (-1, 1):
            face = np.empty((len(across), 3), dtype=np.int64)
            face[:, direction] = side * size
            # (across, along, direction) turns right-handed on the upper side, so that cells face outward
            face[:, (direction + 1) % 3] = across if side > 0 else along
            face[:, (direction + 2) % 3] = along if side > 0 else across
            faces.append(face)
    lattice = np.concatenate(faces) + size
    keys, number = np.unique(lattice @ np.array([1, 2 * size + 1, (2 * size + 1) ** 2]), return_inverse=True)
    unique = np.stack([keys % (2 * size + 1), keys // (2 * size + 1) % (2 * size + 1), keys // (2 * size + 1) ** 2], 1)
    points = _normalised(np.tan(math.pi / 4 * (unique - size) / size))

    reference = reference_nodes("quadrilateral", degree)
    offset = np.rint(reference * degree).astype(np.int64)
    corner = degree * np.arange(count)
    first = (corner[:, None] * (size + 1) + corner[None, :]).reshape(-1)
    in_face = first[:, None] + offset[:, 0] * (size + 1) + offset[:, 1]
    per_face = (size + 1) ** 2
    return points, number.reshape(-1)[np.concatenate([in_face + face * per_face for face in range(6)])]
