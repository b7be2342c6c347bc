"""Reference cells: coordinates, surface elements, nodes in VTK's order, and tokens dealt out to cells. Ranks: see tests/mpi."""

import numpy as np
import pytest
from some_meshes import FLAT, MESHES

import pde_solver as ps
from pde_solver.discretisations.cells import coordinates, corner_nodes, deposit, lattice_nodes, surface_element
from pde_solver.mesh import facet_geometry

#: VTK's numbers, from vtkCellType.h.
LINEAR = {"interval": 3, "triangle": 5, "quadrilateral": 9, "tetrahedron": 10, "hexahedron": 12}
LAGRANGE = {"interval": 68, "triangle": 69, "quadrilateral": 70, "tetrahedron": 71, "hexahedron": 72}


def nodes_of_a_cell(cell, degree):
    dimension = {"interval": 1, "triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 3}[cell]
    tensor = cell in ("quadrilateral", "hexahedron")
    per_axis = degree + 1
    if tensor or dimension == 1:
        return per_axis**dimension
    return per_axis * (per_axis + 1) // 2 * (1 if dimension == 2 else per_axis + 2) // (1 if dimension == 2 else 3)


def straight_in_vtk(nodes, k):
    """How far VTK's own interpolation of a cell is from the affine map of its corners, at random points."""
    vtk = pytest.importorskip("vtk")
    grid, points = vtk.vtkUnstructuredGrid(), vtk.vtkPoints()
    points.SetDataTypeToDouble()
    for point in nodes.points[k]:
        points.InsertNextPoint(point)
    grid.SetPoints(points)
    grid.InsertNextCell(nodes.vtk_type, len(nodes.points[k]), range(len(nodes.points[k])))
    cell = grid.GetCell(0)
    simplex = nodes.vtk_type in (
        LINEAR["triangle"],
        LINEAR["tetrahedron"],
        LAGRANGE["triangle"],
        LAGRANGE["tetrahedron"],
    )
    dimension = cell.GetCellDimension()
    corners = nodes.points[k]
    axes = {1: [1], 2: [1, 2 if simplex else 3], 3: [1, 2 if simplex else 3, 3 if simplex else 4]}[dimension]
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(5):
        place = rng.dirichlet(np.ones(dimension + 1))[1:] if simplex else rng.random(dimension)
        found, weights = [0.0] * 3, [0.0] * len(corners)
        cell.EvaluateLocation(vtk.mutable(0), [*place, 0, 0][:3], found, weights)
        wanted = corners[0] + place @ (corners[axes] - corners[0])
        worst = max(worst, np.abs(np.array(found) - wanted).max())
    return worst


@pytest.mark.parametrize("name", FLAT)
def test_nodes_are_in_vtk_order(name):
    """VTK interpolates through the nodes: unless each is where VTK expects it, the result is not the affine map."""
    mesh = MESHES[name]()
    corners = corner_nodes(mesh)
    assert corners.vtk_type == LINEAR[mesh.cell]
    assert straight_in_vtk(corners, 0) < 1e-14
    for degree in (1, 2, 3):
        nodes = lattice_nodes(mesh, degree)
        assert nodes.vtk_type == LAGRANGE[mesh.cell]
        assert nodes.points.shape == (mesh.owned_cells, nodes_of_a_cell(mesh.cell, degree), 3)
        assert np.array_equal(nodes.index, mesh.input_index)
        for k in (0, mesh.owned_cells - 1):
            assert straight_in_vtk(nodes, k) < 1e-13


@pytest.mark.parametrize("name", ["circle", "icosphere", "cubed sphere"])
def test_nodes_of_curved_cells_lie_on_the_sphere(name):
    mesh = MESHES[name]()
    nodes = lattice_nodes(mesh, mesh.geometry_degree)
    assert np.abs(np.linalg.norm(nodes.points, axis=-1) - 1).max() < 1e-14


@pytest.mark.parametrize("name", FLAT)
def test_coordinates_and_surface_elements_of_straight_cells(name):
    """The middle of the reference cell goes to the mean of the corners; the element times its volume is the cell's."""
    mesh = MESHES[name]()
    simplex = mesh.cell in ("interval", "triangle", "tetrahedron")
    dimension = mesh.manifold.dimension
    middle = np.full((1, dimension), 1 / (dimension + 1) if simplex else 0.5)
    reference_volume = {"triangle": 1 / 2, "tetrahedron": 1 / 6}.get(mesh.cell, 1.0)
    geometry = facet_geometry(mesh)
    assert np.abs(coordinates(mesh, middle)[:, 0] - geometry.cell_points).max() < 1e-14
    assert np.abs(surface_element(mesh, middle)[:, 0] * reference_volume / geometry.cell_volumes - 1).max() < 1e-13


@pytest.mark.parametrize("name", MESHES)
def test_every_token_goes_to_the_nearest_cell(name):
    mesh = MESHES[name]()
    points = facet_geometry(mesh).cell_points
    rng = np.random.default_rng(2)
    tokens = mesh.manifold.retract(
        points[rng.integers(len(points), size=300)] + 0.1 * rng.normal(size=(300, points.shape[1]))
    )
    weights = rng.exponential(size=300)
    found = deposit(mesh, points, ps.PointCloud(tokens, weights))
    wanted = np.zeros(len(points))
    nearest = np.linalg.norm(points[None] - tokens[:, None], axis=2).argmin(axis=1)
    np.add.at(wanted, nearest, weights / weights.sum())
    assert found.sum() == pytest.approx(1, abs=1e-14)
    assert np.abs(found - wanted).max() < 1e-15


def test_of_cells_that_are_equally_near_the_first_in_the_input_gets_the_token():
    mesh = ps.rectangle((-1, -1), (1, 1), (4, 4), cell="quadrilateral")
    points = facet_geometry(mesh).cell_points
    corner = np.array([[0.0, 0.0]])
    around = np.flatnonzero(np.abs(points).max(axis=1) < 0.5)
    assert len(around) == 4
    found = deposit(mesh, points, ps.PointCloud(corner))
    assert mesh.input_index[found.argmax()] == mesh.input_index[around].min()
    assert found.max() == 1
