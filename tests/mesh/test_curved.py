import math
import time

import basix
import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.mesh import circle, cubed_sphere, icosphere
from pde_solver.mesh.distribute import reference_nodes


def area_and_distance(mesh):
    """Area of the curved cells and the L2 norm of |x| − 1 over them, by Gauss quadrature of the isoparametric map."""
    cell, variant = basix.CellType[mesh.cell], basix.LagrangeVariant.equispaced
    points, weights = basix.make_quadrature(cell, 14)
    element = basix.create_element(basix.ElementFamily.P, cell, mesh.geometry_degree, variant)
    table = np.asarray(element.tabulate(1, points))[..., 0]
    nodes = mesh.cell_coordinates
    x = np.einsum("qv,cvd->cqd", table[0], nodes)
    jacobian = np.einsum("aqv,cvd->cqad", table[1:], nodes)
    gram = np.linalg.det(jacobian @ jacobian.swapaxes(2, 3))
    measure = np.sqrt(gram) * weights
    return measure.sum(), math.sqrt((measure * (np.linalg.norm(x, axis=2) - 1) ** 2).sum())


# Orders of polynomial interpolation of a smooth map: the distance to the sphere is O(h^{g+1}), and O(h^{g+2}) for even
# g where the nodes lie symmetrically along great circles; the area is O(h^{g+1}) for odd, O(h^{g+2}) for even g.
@pytest.mark.parametrize(
    ("build", "coarse", "degree", "area_order", "distance_order", "distance_bound"),
    [
        (circle, 16, 1, 2, 2, 4e-2),
        (circle, 16, 2, 4, 4, 8e-5),
        (circle, 16, 3, 4, 4, 2e-5),
        (circle, 16, 4, 6, 6, 5e-8),
        (circle, 16, 5, 6, 6, 7e-9),
        (icosphere, 2, 1, 2, 2, 5e-2),
        (icosphere, 2, 2, 4, 4, 2e-4),
        (icosphere, 2, 3, 4, 4, 1e-4),
        (cubed_sphere, 8, 1, 2, 2, 3e-2),
        (cubed_sphere, 8, 2, 4, 3, 1e-4),
        (cubed_sphere, 8, 3, 4, 4, 3e-6),
    ],
)
def test_curved_cells_approach_the_sphere(build, coarse, degree, area_order, distance_order, distance_bound):
    fine = coarse + 1 if build is icosphere else 2 * coarse
    meshes = [build(size, geometry_degree=degree) for size in (coarse, fine)]
    volume = meshes[0].manifold.volume
    (area, distance), (fine_area, fine_distance) = map(area_and_distance, meshes)
    assert distance < distance_bound
    assert abs(math.log2(distance / fine_distance) - distance_order) < 0.2
    assert abs(math.log2(abs(area - volume) / abs(fine_area - volume)) - area_order) < 0.2


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_icosphere_nodes_lie_where_the_element_says(degree):
    mesh = icosphere(1, geometry_degree=degree)
    nodes = mesh.cell_coordinates
    lattice = reference_nodes("triangle", degree)
    flat = np.einsum("kv,cvd->ckd", np.column_stack([1 - lattice.sum(axis=1), lattice]), nodes[:, :3])
    assert np.abs(nodes - flat / np.linalg.norm(flat, axis=2, keepdims=True)).max() < 1e-15
    # Each node of an edge exists once, so that neighbours agree: V + E (g − 1) + F (g − 1)(g − 2)/2, with V − E + F = 2.
    faces, edges, vertices = 80, 120, 42
    expected = vertices + edges * (degree - 1) + faces * (degree - 1) * (degree - 2) // 2
    assert mesh.domain.geometry.index_map().size_global == expected == len(mesh.domain.geometry.x)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_cubed_sphere_is_equiangular_and_joined(degree):
    mesh = cubed_sphere(4, geometry_degree=degree)
    x = mesh.domain.geometry.x
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-15
    assert len(x) == 6 * (4 * degree) ** 2 + 2  # Euler: V = F + 2 for quadrilaterals
    on_top = x[(x[:, 2] > 0.999 * np.abs(x).max(axis=1)) & (np.abs(x[:, 1]) < 1e-12)]
    angles = np.sort(np.arctan2(on_top[:, 0], on_top[:, 2]))
    assert np.allclose(angles, np.linspace(-math.pi / 4, math.pi / 4, 4 * degree + 1), atol=1e-14)


def test_circle_nodes_by_angle():
    mesh = circle(5, geometry_degree=3)
    x = mesh.cell_coordinates
    angles = np.unwrap(np.arctan2(x[..., 1], x[..., 0])[:, [0, 2, 3, 1]], axis=1)
    assert np.allclose(np.diff(angles, axis=1), 2 * math.pi / 15, atol=1e-14)


@pytest.mark.parametrize(("level", "cells"), [(0, 20), (1, 80), (3, 1280)])
def test_icosphere_counts(level, cells):
    assert icosphere(level).cell_count == cells


def test_cells_face_outward():
    for mesh in (icosphere(1), cubed_sphere(3)):
        x = mesh.cell_coordinates
        assert (np.linalg.det(x[:, :3]) > 0).all()


def test_names_and_digests_tell_meshes_apart():
    meshes = [icosphere(1), icosphere(2), icosphere(1, geometry_degree=1), cubed_sphere(4), circle(80)]
    assert len({mesh.digest for mesh in meshes}) == len({mesh.description for mesh in meshes}) == 5
    assert icosphere(1).digest == meshes[0].digest


def test_building_is_quick():
    start = time.perf_counter()
    icosphere(6)
    assert (
        time.perf_counter() - start < 5
    )  # 0.45 s measured, of which 0.08 s is ours; the rest of the machine may be busy


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: icosphere(-1), "icosphere: level must be a whole number from 0 to 30, found -1"),
        (lambda: icosphere(2.0), "icosphere: level must be a whole number from 0 to 30, found 2.0"),
        (lambda: icosphere(True), "found True"),
        (lambda: icosphere(1, geometry_degree=0), "icosphere: geometry_degree must be a whole number from 1 to 5"),
        (lambda: icosphere(11), "icosphere: level = 11 would make 83,886,080 cells"),
        (lambda: icosphere(10**6), "from 0 to 30, found 1000000"),
        (lambda: circle(2), "circle: cells must be a whole number ≥ 3, found 2"),
        (lambda: circle("many"), "circle: cells must be a whole number ≥ 3, found 'many'"),
        (lambda: circle(8, geometry_degree=6), "from 1 to 5, found 6"),
        (lambda: cubed_sphere(0), "cubed_sphere: cells must be a whole number ≥ 1, found 0"),
        (lambda: cubed_sphere(10_000), "at most 64,000,000 are allowed"),
    ],
)
def test_bad_arguments(make, sentence):
    with pytest.raises(InputError) as caught:
        make()
    assert sentence in str(caught.value)
