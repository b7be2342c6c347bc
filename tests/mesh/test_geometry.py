import math

import numpy as np
import pytest
from mpi4py import MPI

from pde_solver.manifolds import Euclidean
from pde_solver.mesh import (
    RawMesh,
    box,
    circle,
    cubed_sphere,
    distribute,
    facet_geometry,
    icosphere,
    interval,
    rectangle,
)
from pde_solver.mesh.geodesic import cells as spherical_cells
from pde_solver.mesh.polyhedral import cells as straight_cells

MESHES = {
    "circle": lambda: circle(7),
    "icosphere": lambda: icosphere(2),
    "cubed sphere": lambda: cubed_sphere(5, geometry_degree=3),
    "interval": lambda: interval(-1, 2, 5),
    "triangles": lambda: rectangle((-1, -2), (1, 0), (3, 4)),
    "quadrilaterals": lambda: rectangle((-1, -2), (1, 0), (3, 4), cell="quadrilateral"),
    "tetrahedra": lambda: box((0, 0, 0), (1, 2, 3), (2, 3, 4)),
    "hexahedra": lambda: box((0, 0, 0), (1, 2, 3), (2, 3, 4), cell="hexahedron"),
}
VOLUMES = {
    "circle": 2 * math.pi,
    "icosphere": 4 * math.pi,
    "cubed sphere": 4 * math.pi,
    "interval": 3,
    "triangles": 4,
    "quadrilaterals": 4,
    "tetrahedra": 6,
    "hexahedra": 6,
}


def outward_sums(geometry):
    sums = np.zeros_like(geometry.cell_points)
    np.add.at(sums, geometry.owner, geometry.normals)
    inner = ~geometry.wall
    np.add.at(sums, geometry.neighbour[inner], -geometry.normals[inner])
    return sums


@pytest.mark.parametrize("name", MESHES)
def test_volumes_add_up(name):
    geometry = facet_geometry(MESHES[name]())
    assert abs(geometry.cell_volumes.sum() / VOLUMES[name] - 1) < 1e-14
    assert (geometry.cell_volumes > 0).all()


@pytest.mark.parametrize("name", ["interval", "triangles", "quadrilaterals", "tetrahedra", "hexahedra"])
def test_flat_cells_are_closed(name):
    geometry = facet_geometry(MESHES[name]())
    assert np.abs(outward_sums(geometry)).max() < 1e-15
    # divergence theorem for the field x: Σ ⟨midpoint, normal⟩ = D · volume
    flux = (geometry.midpoints * geometry.normals).sum(axis=1)
    total = np.bincount(geometry.owner, flux, geometry.owned)
    inner = ~geometry.wall
    total -= np.bincount(geometry.neighbour[inner], flux[inner], geometry.owned)
    dimension = geometry.midpoints.shape[1]
    assert np.allclose(total, dimension * geometry.cell_volumes, atol=1e-14)


@pytest.mark.parametrize(("name", "dimension"), [("circle", 1), ("icosphere", 2), ("cubed sphere", 2)])
def test_spherical_cells_obey_the_divergence_theorem(name, dimension):
    # Σ normals = −dim ∫ x dS (flux of a constant field), so that it is radial at the centroid to round-off
    mesh = MESHES[name]()
    geometry = facet_geometry(mesh)
    sums = outward_sums(geometry)
    assert np.abs(mesh.manifold.project(geometry.cell_points, sums)).max() < 1e-15
    mean = np.linalg.norm(sums, axis=1) / (dimension * geometry.cell_volumes)
    assert (mean < 1).all()  # |∫ x dS| < ∫ dS
    assert np.abs(outward_sums(geometry).sum(axis=0)).max() < 1e-13  # ∫ x dS over the whole sphere


def test_sums_of_normals_vanish_with_h():
    size = [np.linalg.norm(outward_sums(facet_geometry(icosphere(level))), axis=1).max() for level in (2, 3)]
    assert abs(math.log2(size[0] / size[1]) - 2) < 0.2  # two powers of h, the area of a cell


@pytest.mark.parametrize("name", MESHES)
def test_facets(name):
    mesh = MESHES[name]()
    geometry = facet_geometry(mesh)
    walls = geometry.wall
    assert walls.sum() == {
        "interval": 2,
        "triangles": 14,
        "quadrilaterals": 14,
        "tetrahedra": 104,
        "hexahedra": 52,
    }.get(name, 0)
    inner = ~walls
    step = geometry.cell_points[geometry.neighbour[inner]] - geometry.cell_points[geometry.owner[inner]]
    assert ((step * geometry.normals[inner]).sum(axis=1) > 0).all()
    outward = geometry.midpoints[walls] - geometry.cell_points[geometry.owner[walls]]
    assert ((outward * geometry.normals[walls]).sum(axis=1) > 0).all()
    place = mesh.input_index
    assert (place[geometry.owner[inner]] < place[geometry.neighbour[inner]]).all()
    assert (np.diff(place[geometry.owner]) >= 0).all()
    for side in geometry.cell_facets.T:
        assert (
            (geometry.owner[side] == np.arange(geometry.owned))
            | (geometry.neighbour[side] == np.arange(geometry.owned))
        ).all()
    if mesh.manifold.volume < math.inf:
        assert np.abs(np.linalg.norm(geometry.midpoints, axis=1) - 1).max() < 1e-15
        assert np.abs((geometry.midpoints * geometry.normals).sum(axis=1)).max() < 1e-15


def test_spherical_octant_and_cube_face():
    # octant: area 4π/8, ∫ x dS = (π/4, π/4, π/4); face of a cube: 4π/6; each by symmetry
    centre, area = spherical_cells(np.eye(3)[None], "triangle")
    assert np.allclose(area, math.pi / 2, rtol=1e-15)
    assert np.allclose(centre, 1 / math.sqrt(3), rtol=1e-15)
    face = np.array([[-1, -1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, 1]]) / math.sqrt(3)
    centre, area = spherical_cells(face[None], "quadrilateral")
    assert np.allclose(area, 4 * math.pi / 6, rtol=1e-15)
    assert np.allclose(centre, [0, 0, 1], atol=1e-15)


def test_tiny_spherical_triangle_keeps_its_digits():
    # a right triangle with legs h has area h²/2 (1 + O(h²)), here to eight digits although 1 − cos h is lost
    h = 1e-6
    corners = np.array([[0, 0, 1], [math.sin(h), 0, math.cos(h)], [0, math.sin(h), math.cos(h)]])
    assert abs(spherical_cells(corners[None], "triangle")[1][0] / (h * h / 2) - 1) < 1e-8


def test_skew_cells_have_exact_volume_and_centroid():
    # trapezium with corners (0,0), (2,0), (0,1), (1,1): area 3/2, centroid (7/9, 4/9) by splitting it in triangles
    corners = np.array([[[0, 0], [2, 0], [0, 1], [1, 1]]], dtype=float)
    centre, area = straight_cells(corners, "quadrilateral")
    assert np.allclose(area, 1.5, rtol=1e-15)
    assert np.allclose(centre, [[7 / 9, 4 / 9]], rtol=1e-14)
    # frustum between squares of side 2 and 1 at distance 3: volume 3/3 (4 + 2 + 1) = 7, centroid at height
    # 3/4 (4 + 2·2 + 3·1)/(4 + 2 + 1) = 33/28
    square = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    frustum = np.concatenate([np.column_stack([square, np.zeros(4)]), np.column_stack([square / 2, np.full(4, 3)])])
    centre, volume = straight_cells(frustum[None], "hexahedron")
    assert np.allclose(volume, 7, rtol=1e-14)
    assert np.allclose(centre, [[0, 0, 33 / 28]], atol=1e-14)


def test_skew_hexahedra_fit_without_gaps():
    # a box with its inner grid points moved: faces are no longer plane, volumes must still fill the box
    points = np.stack(np.meshgrid(*[np.linspace(0, 1, 4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    inner = ((points > 0.1) & (points < 0.9)).all(axis=1)
    points[inner] += 0.08 * np.random.default_rng(1).uniform(-1, 1, (inner.sum(), 3))
    regular = box((0, 0, 0), (1, 1, 1), (3, 3, 3), cell="hexahedron")
    cells = np.rint(3 * regular.cell_coordinates).astype(int) @ [16, 4, 1]
    geometry = facet_geometry(distribute(MPI.COMM_SELF, RawMesh(points, cells, "hexahedron"), Euclidean(3)))
    assert abs(geometry.cell_volumes.sum() - 1) < 1e-14
    assert np.abs(outward_sums(geometry)).max() < 1e-15
