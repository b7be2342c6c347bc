import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.mesh import RawMesh, circle, icosphere, repair
from pde_solver.mesh.orientation import mirrored, orientation

OCTAHEDRON = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]], dtype=float)
FACES = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]])
SQUARE = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=float)


def octahedron(points=OCTAHEDRON, cells=FACES):
    return RawMesh(np.array(points, dtype=float), np.array(cells), "triangle")


def changed(array, index, value):
    array = np.array(array, dtype=float if isinstance(value, float) else array.dtype)
    array[index] = value
    return array


def test_a_good_mesh_is_left_alone():
    raw, notes = repair(octahedron(), Sphere(3))
    assert notes == ()
    assert np.array_equal(raw.points, OCTAHEDRON)
    assert np.array_equal(raw.cells, FACES)


REFUSED = {
    "nan": (octahedron(changed(OCTAHEDRON, (2, 1), np.nan)), "cells 0, 1, 2 and 3 (counted from 0): coordinates"),
    "infinite": (octahedron(changed(OCTAHEDRON, (5, 1), np.inf)), "cells 4, 5, 6 and 7 (counted from 0): coordinates"),
    "out of range": (octahedron(cells=changed(FACES, (3, 1), 6)), "cell 3 (counted from 0): node numbers out of range"),
    "negative": (octahedron(cells=changed(FACES, (3, 1), -1)), "cell 3 (counted from 0): node numbers out of range"),
    "no cells": (octahedron(cells=np.empty((0, 3), dtype=int)), "there are no triangle cells"),
    "no points": (octahedron(points=np.empty((0, 3))), "there are no points"),
    "wrong width": (octahedron(cells=np.arange(4)[None]), "have 3 nodes, found an array (1, 4)"),
    "degenerate": (octahedron(cells=changed(FACES, 3, [4, 4, 2])), "cell 3 (counted from 0): no volume"),
    "duplicate": (octahedron(cells=[*FACES, [2, 0, 1]]), "cells 0 and 8 (counted from 0): the same cell twice"),
    "open": (octahedron(cells=FACES[:-1]), "must be closed, but 3 edge(s) belong to one cell only"),
    "edge of three cells": (
        octahedron([*OCTAHEDRON, np.array([0.6, 0.8, 0])], [*FACES, [0, 2, 6]]),
        "1 edge(s) belong to more than two cells, the first to cells 0, 3 and 8",
    ),
    "radius two": (octahedron(2 * OCTAHEDRON), "they are 2 to 2 from the origin; centre and scale the mesh"),
    "plane points": (octahedron(OCTAHEDRON[:, :2]), "points of a mesh of the sphere S^2 have 3 coordinates, found 2"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_faults_of_spheres_are_refused(fault):
    raw, sentence = REFUSED[fault]
    with pytest.raises(InputError) as caught:
        repair(raw, Sphere(3))
    assert sentence in str(caught.value)


def test_many_bad_cells_are_counted():
    with pytest.raises(InputError, match=r"cells 0, 1, 2, 3, 4, … \(8 in all"):
        repair(octahedron(np.full_like(OCTAHEDRON, np.nan)), Sphere(3))


def test_mixed_orientation_is_turned_outward():
    cells = FACES.copy()
    cells[[1, 4, 6]] = cells[[1, 4, 6]][:, [1, 0, 2]]
    raw, notes = repair(octahedron(cells=cells), Sphere(3))
    assert notes == ("3 of 8 cells were turned so that all have the same orientation.",)
    assert (np.linalg.det(raw.points[raw.cells]) > 0).all()


def test_orphans_are_dropped_and_the_numbering_kept():
    points = np.insert(OCTAHEDRON, 2, [0, 0, 0], axis=0)
    cells = np.where(FACES >= 2, FACES + 1, FACES)
    raw, notes = repair(octahedron(points, cells), Sphere(3))
    assert notes == ("1 node that no cell uses was dropped.",)
    assert np.array_equal(raw.points, OCTAHEDRON)
    assert np.array_equal(raw.cells, FACES)


def test_duplicated_vertices_are_merged():
    rng = np.random.default_rng(0)
    soup = OCTAHEDRON[FACES].reshape(-1, 3) + 1e-12 * rng.uniform(-1, 1, (24, 3))
    raw, notes = repair(octahedron(soup, np.arange(24).reshape(8, 3)), Sphere(3))
    assert notes[0] == "18 duplicated vertices were merged."
    assert len(raw.points) == 6


def test_rounded_points_are_moved_to_the_sphere_with_a_note():
    raw, notes = repair(octahedron(OCTAHEDRON * (1 + 3e-6)), Sphere(3))
    assert notes == ("points up to 3e-06 off the unit sphere were moved to it.",)
    assert np.abs(np.linalg.norm(raw.points, axis=1) - 1).max() < 1e-15


def test_projection_when_asked():
    raw, notes = repair(octahedron(2 * OCTAHEDRON + [0.3, 0, 0]), Sphere(3), project=True)
    assert "moved to it" in notes[0]
    assert np.abs(np.linalg.norm(raw.points, axis=1) - 1).max() < 1e-15
    with pytest.raises(InputError, match="origin"):
        repair(octahedron(OCTAHEDRON - [1, 0, 0]), Sphere(3), project=True)
    with pytest.raises(InputError, match=r"cover the sphere S\^2|same side|no volume"):
        repair(octahedron(OCTAHEDRON - [1.5, 0, 0]), Sphere(3), project=True)
    with pytest.raises(InputError, match="the manifold is R"):
        repair(RawMesh(SQUARE, np.array([[0, 1, 2, 3]]), "quadrilateral"), Euclidean(2), project=True)


def test_a_sphere_covered_twice_is_refused():
    turn = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    points = np.concatenate([OCTAHEDRON, OCTAHEDRON @ turn.T @ turn.T[[2, 0, 1]]])
    with pytest.raises(InputError, match="2 times, not once"):
        repair(octahedron(points, np.concatenate([FACES, FACES + 6])), Sphere(3))


def test_circle():
    angles = 2 * np.pi * np.arange(6) / 6
    points = np.column_stack([np.cos(angles), np.sin(angles), np.full(6, 0.25)])
    lines = np.column_stack([np.arange(6), np.roll(np.arange(6), -1)])
    lines[2] = lines[2, ::-1]
    raw, notes = repair(RawMesh(points, lines, "interval"), Sphere(2))
    assert notes == (
        "the constant coordinate z = 0.25 was dropped.",
        "1 of 6 cells were turned so that all have the same orientation.",
    )
    assert raw.points.shape == (6, 2)
    with pytest.raises(InputError, match=r"2 vertex\(s\) belong to one cell only"):
        repair(RawMesh(points, lines[:-1], "interval"), Sphere(2))
    with pytest.raises(InputError, match=r"z varies from 0 to 0\.1"):
        repair(RawMesh(points + np.outer(np.arange(6) == 3, [0, 0, 0.1]) - [0, 0, 0.25], lines, "interval"), Sphere(2))


def test_boxes():
    _, notes = repair(RawMesh(SQUARE, np.array([[0, 1, 2], [1, 2, 3]]), "triangle"), Euclidean(2))
    assert notes == ("1 of 2 cells were turned so that all have the same orientation.",)
    with pytest.raises(InputError, match=r"cell 0 \(counted from 0\): tangled"):
        repair(RawMesh(SQUARE, np.array([[0, 1, 3, 2]]), "quadrilateral"), Euclidean(2))
    with pytest.raises(InputError, match="folded"):
        repair(RawMesh(np.array([*SQUARE, [0.2, 0.3]]), np.array([[0, 1, 2], [1, 2, 4]]), "triangle"), Euclidean(2))
    apart = np.concatenate([SQUARE, SQUARE + np.array([3, 0])])
    _, notes = repair(RawMesh(apart, np.array([[0, 1, 2, 3], [4, 5, 6, 7]]), "quadrilateral"), Euclidean(2))
    assert notes == ("the mesh falls into 2 parts that share no edge: no mass flows between them.",)


@pytest.mark.parametrize("cell", ["interval", "triangle", "quadrilateral", "tetrahedron", "hexahedron"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_mirrored_cells_have_the_opposite_sign(cell, degree):
    from pde_solver.mesh.distribute import reference_nodes

    nodes = reference_nodes(cell, degree)
    manifold = Euclidean(nodes.shape[1])
    numbers = np.arange(len(nodes))[None]
    assert (orientation(RawMesh(nodes, numbers, cell, degree), manifold) > 0).all()
    turned = numbers[:, mirrored(cell, degree)]
    assert (orientation(RawMesh(nodes, turned, cell, degree), manifold) < 0).all()


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(data=st.data(), degree=st.integers(1, 2))
def test_turned_split_and_shuffled_meshes_are_restored(data, degree):
    mesh = data.draw(st.sampled_from([icosphere(0, geometry_degree=degree), circle(5, geometry_degree=degree)]))
    dimension = mesh.manifold.ambient_dimension
    cells = mesh.domain.geometry.dofmaps[0].astype(np.int64)
    points = mesh.domain.geometry.x[:, :dimension]
    turn = np.array(data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))))
    shuffled = cells.copy()
    shuffled[turn] = shuffled[turn][:, mirrored(mesh.cell, degree)]
    soup = RawMesh(
        points[shuffled].reshape(-1, dimension), np.arange(cells.size).reshape(cells.shape), mesh.cell, degree
    )
    raw, notes = repair(soup, mesh.manifold)
    assert len(raw.points) == len(points)
    assert np.array_equal(
        np.sort(raw.points[raw.cells].sum(axis=1), axis=0).round(12),
        np.sort(points[cells].sum(axis=1), axis=0).round(12),
    )
    assert (orientation(raw, mesh.manifold) > 0).all()
    assert len(notes) == 1 + turn.any()
