import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.mesh import RawMesh, box, interval, rectangle
from pde_solver.mesh.adjacency import check_adjacency
from pde_solver.mesh.orientation import orientation


def as_raw(mesh):
    geometry = mesh.domain.geometry
    return RawMesh(geometry.x[:, : mesh.manifold.ambient_dimension], geometry.dofmaps[0], mesh.cell)


BOXES = [
    (lambda: interval(-1, 2, 7), 7, "interval"),
    (lambda: rectangle((-1, 0), (2, 1), (3, 4)), 24, "triangle"),
    (lambda: rectangle((-1, 0), (2, 1), (3, 4), cell="quadrilateral"), 12, "quadrilateral"),
    (lambda: box((0, 0, 0), (1, 2, 3), (2, 3, 4)), 144, "tetrahedron"),
    (lambda: box((0, 0, 0), (1, 2, 3), (2, 3, 4), cell="hexahedron"), 24, "hexahedron"),
]


@pytest.mark.parametrize(("make", "cells", "cell"), BOXES)
def test_boxes_are_well_formed(make, cells, cell):
    mesh = make()
    assert (mesh.cell_count, mesh.cell) == (cells, cell)
    raw, notes = as_raw(mesh), []
    assert (orientation(raw, mesh.manifold) > 0).all()
    check_adjacency(raw, mesh.manifold, notes)  # conforming: nothing folded, no facet of three cells
    assert not notes  # in one part


def test_triangles_have_no_preferred_diagonal():
    mesh = rectangle((0, 0), (1, 1), (4, 4))
    x = mesh.cell_coordinates
    edges = (x[:, [1, 2, 0]] - x)[:, :, :2].reshape(-1, 2)
    slope = np.sign(edges[:, 0] * edges[:, 1])
    assert (slope > 0).sum() == (slope < 0).sum() == 16


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: interval(1, 1, 3), "interval: lower must be below upper, found 1 and 1."),
        (lambda: interval(0, float("nan"), 3), "interval: upper must be one finite number, found nan."),
        (lambda: interval(0, 1, 0), "interval: cells must be a whole number ≥ 1, found 0."),
        (lambda: interval("a", 1, 1), "interval: lower must be one finite number, found 'a'."),
        (lambda: rectangle((0, 3), (1, 2), (3, 3)), "rectangle: lower must be below upper in coordinate 1"),
        (lambda: rectangle((0, 0), (1, 2), (3, 0)), "rectangle: cells must be a whole number ≥ 1, found 0."),
        (lambda: rectangle((0, 0), (1, 2), 3), "rectangle: cells must be 2 whole numbers ≥ 1"),
        (lambda: rectangle((0, 0, 0), (1, 2), (3, 3)), "rectangle: lower must be 2 finite numbers"),
        (lambda: rectangle((0, 0), (1, 2), (3, 3), cell="triangel"), "did you mean triangle?"),
        (lambda: box((0, 0, 0), (1, 2, 3), (3, 3)), "box: cells must be 3 whole numbers ≥ 1"),
        (lambda: box((0, 0, 0), (1, 1, 1), (300, 300, 300)), "would make 162,000,000 cells, which take about 98 GB"),
        (lambda: box((0, 0, 0), (1, 1, 1), (1, 1, 1), cell="prism"), "allowed: hexahedron, tetrahedron"),
    ],
)
def test_bad_arguments(make, sentence):
    with pytest.raises(InputError) as caught:
        make()
    assert sentence in str(caught.value)
