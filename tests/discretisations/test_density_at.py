"""Densities at any points: those of the samples, close to exact ones elsewhere, the same on any number of ranks."""

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from some_meshes import CURVED, FLAT, MESHES, METHODS, bump, stirring

import pde_solver as ps
from pde_solver.discretisations.cells import coordinates
from pde_solver.discretisations.locate import INSIDE, locate
from pde_solver.mesh import RawMesh, distribute

FILES = Path(__file__).parents[2] / "meshes"
TWO = ps.Labels((0.3, 0.7))

ALL_MESHES = (
    MESHES
    | {f"icosphere of degree {g}": lambda g=g: ps.icosphere(1, geometry_degree=g) for g in (1, 3)}
    | {f"cubed sphere of degree {g}": lambda g=g: ps.cubed_sphere(2, geometry_degree=g) for g in (1, 3)}
    | {"circle of degree 1": lambda: ps.circle(5, geometry_degree=1)}
    | {"six large cells": lambda: ps.cubed_sphere(1, geometry_degree=3)}
    | {
        name: lambda name=name: ps.read_mesh(FILES / name, ps.Sphere(3))
        for name in ("sphere_msh22.msh", "octahedron.off", "sphere_quads_order2.msh")
    }
    | {"disc_order2.msh": lambda: ps.read_mesh(FILES / "disc_order2.msh", ps.Euclidean(2))}
    | {"box_order2.msh": lambda: ps.read_mesh(FILES / "box_order2.msh", ps.Euclidean(3))}
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mesh", ALL_MESHES)
def test_at_the_samples_it_is_the_sample(mesh, method):
    """A random state, which jumps at every facet: a wrong cell or a wrong point in it would be an error of order 1."""
    mesh = ALL_MESHES[mesh]()
    discretisation = METHODS[method](stirring(mesh.manifold, TWO), mesh)
    state = np.random.default_rng(0).random(discretisation.local_size)
    points, _, samples = discretisation.sampled_density(state)
    values = discretisation.density_at(state, points)
    # measured: at most 1.1e-14 (Newton's last step is below 1e-8, so its error is round-off)
    assert np.abs(values - samples).max() < 1e-13 * np.abs(samples).max()


class Waves(ps.Law):
    """Π_i (1 + ½ cos πx_i), of mass one on the unit cube."""

    def density(self, points, manifold):
        return np.prod(1 + 0.5 * np.cos(np.pi * points), axis=1)

    def sample(self, count, rng, manifold):
        raise NotImplementedError


REFINED = {
    "circle": [lambda: ps.circle(24), lambda: ps.circle(48)],
    "icosphere": [lambda: ps.icosphere(2, geometry_degree=3), lambda: ps.icosphere(3, geometry_degree=3)],
    "cubed sphere": [lambda: ps.cubed_sphere(6, geometry_degree=3), lambda: ps.cubed_sphere(12, geometry_degree=3)],
    "interval": [lambda: ps.interval(0, 1, 20), lambda: ps.interval(0, 1, 40)],
    "triangles": [lambda n=n: ps.rectangle((0, 0), (1, 1), (n, n)) for n in (10, 20)],
    "quadrilaterals": [lambda n=n: ps.rectangle((0, 0), (1, 1), (n, n), cell="quadrilateral") for n in (10, 20)],
    "tetrahedra": [lambda n=n: ps.box((0, 0, 0), (1, 1, 1), (n, n, n)) for n in (4, 8)],
    "hexahedra": [lambda n=n: ps.box((0, 0, 0), (1, 1, 1), (n, n, n), cell="hexahedron") for n in (4, 8)],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", REFINED)
def test_between_the_samples_it_has_the_order_of_the_method(family, method):
    """The initial state of a smooth law at random points."""
    errors = []
    for build in REFINED[family]:
        mesh = build()
        manifold, rng = mesh.manifold, np.random.default_rng(8)
        sphere = isinstance(manifold, ps.Sphere)
        law = bump(manifold) if sphere else Waves()
        shape = (3000, manifold.ambient_dimension)
        points = manifold.retract(rng.normal(size=shape)) if sphere else rng.random(shape)
        discretisation = METHODS[method](stirring(manifold), mesh)
        values = discretisation.density_at(discretisation.initial(law), points)[0]
        errors.append((np.sqrt(np.mean((values - law.density(points, manifold)) ** 2)), discretisation.cell_size))
    (coarse, h), (fine, smaller) = errors
    order = np.log(coarse / fine) / np.log(h / smaller)
    print(f"{family}, {method}: error {fine:.1e}, order {order:.2f}")
    assert order > discretisation.order - 0.15


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mesh", CURVED)
def test_a_constant_is_one_everywhere_on_a_sphere(mesh, method):
    """No gaps: not at corners, on edges and at poles, and whatever the length of a point."""
    mesh = MESHES[mesh]()
    manifold = mesh.manifold
    dimension = manifold.ambient_dimension
    discretisation = METHODS[method](stirring(manifold), mesh)
    corners = mesh.cell_coordinates.reshape(-1, dimension)
    edges = (mesh.cell_coordinates[:, 0] + mesh.cell_coordinates[:, 1]) / 2
    random = np.random.default_rng(3).normal(size=(5000, dimension))
    points = np.concatenate([corners, edges, np.eye(dimension), -np.eye(dimension), random])
    values = discretisation.density_at(np.ones(discretisation.local_size), points)
    assert np.abs(values - 1).max() < 1e-13  # polynomials that add up to one; measured: 1.3e-15


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mesh", FLAT)
def test_boxes_end_at_their_walls(mesh, method):
    mesh = MESHES[mesh]()
    low, high = (
        f(mesh.cell_coordinates.reshape(-1, mesh.manifold.ambient_dimension), axis=0) for f in (np.min, np.max)
    )
    discretisation = METHODS[method](stirring(mesh.manifold), mesh)
    points = low + (high - low) * np.random.default_rng(3).uniform(-0.5, 1.5, (4000, len(low)))
    walls = points.clip(low, high)
    inside = np.all(points == walls, axis=1)
    state = np.ones(discretisation.local_size)
    assert 0 < inside.sum() < len(points)
    assert np.abs(discretisation.density_at(state, points)[0] - inside).max() < 1e-13
    assert np.abs(discretisation.density_at(state, walls)[0] - 1).max() < 1e-13  # walls, edges and corners belong to it
    a_little_outside = np.array([low - 1e-8, high + 1e-8, low - 1e6])
    assert np.array_equal(discretisation.density_at(state, a_little_outside), np.zeros((1, 3)))


def test_where_cells_meet_the_first_in_the_input_has_the_point():
    mesh = ps.rectangle((0, 0), (2, 1), (2, 1), cell="quadrilateral")
    volumes = ps.FiniteVolume(stirring(mesh.manifold), mesh, order=1)
    state = volumes.from_rows(np.array([[5.0], [7.0]]))
    points = np.array([[1.0, 0.3], [1 - 1e-13, 0.0], [1 + 1e-13, 1.0], [1 - 1e-6, 0.3], [1 + 1e-6, 0.3]])
    assert volumes.density_at(state, points).tolist() == [[5.0, 5.0, 5.0, 5.0, 7.0]]


def test_order_two_is_linear_in_a_cell_and_never_negative():
    """On a linear density away from the walls the limiter changes nothing; beside a jump to zero it cuts."""
    mesh = ps.interval(0, 3, 10)
    volumes = ps.FiniteVolume(stirring(mesh.manifold), mesh, order=2)
    x = np.linspace(0.6, 2.4, 101)[:, None]
    middles = np.sort(volumes.sampled_density(np.zeros(10))[0], axis=0)
    state = volumes.from_rows(1 + 2 * middles)
    # the method keeps its weights in single precision, 6e-8 of the differences, which are up to 0.3; measured: 7e-9
    assert np.abs(volumes.density_at(state, x)[0] - (1 + 2 * x[:, 0])).max() < 2e-8

    sphere = ps.icosphere(2)
    volumes = ps.FiniteVolume(stirring(sphere.manifold), sphere, order=2)
    state = np.random.default_rng(1).random(volumes.local_size) ** 8
    points = sphere.cell_coordinates.reshape(-1, 3)
    assert volumes.density_at(state, points).min() >= 0


def test_cells_may_be_curved_stretched_graded_and_skewed():
    """Points that are put into known cells are found there, at the same place of the reference cell."""
    rng = np.random.default_rng(1)
    x = np.geomspace(1e-4, 1, 40)  # cells 3e-5 to 0.2 long, all 1/3 wide
    grid = np.stack(np.meshgrid(x, np.linspace(0, 1, 4), indexing="ij"), axis=-1).reshape(-1, 2)
    first = (4 * np.arange(39)[:, None] + np.arange(3)).reshape(-1, 1)
    squares = first + np.array([0, 4, 1, 5])
    triangles = squares[:, [[0, 1, 3], [0, 3, 2]]].reshape(-1, 3)
    moved = np.indices((21, 21)).reshape(2, -1).T.astype(float)
    inner = ((moved > 0) & (moved < 20)).all(axis=1)
    moved[inner] += rng.uniform(-0.33, 0.33, (inner.sum(), 2))
    skewed = (21 * np.arange(20)[:, None] + np.arange(20)).reshape(-1, 1) + np.array([0, 21, 1, 22])
    plane = ps.Euclidean(2)
    meshes = [
        distribute(MPI.COMM_SELF, RawMesh(grid, triangles, "triangle"), plane),
        distribute(MPI.COMM_SELF, RawMesh(moved, skewed, "quadrilateral"), plane),
        ps.read_mesh(FILES / "disc_order2.msh", plane),
    ]
    for mesh in meshes:
        reference = rng.random((30, 2)) / 2  # inside triangles as well
        points = coordinates(mesh, reference).reshape(-1, 2)
        found = locate(mesh, points, mesh.geometry_degree)
        assert np.array_equal(found.cell, np.repeat(np.arange(mesh.cell_count), 30))
        assert np.all(found.violation == INSIDE)
        # measured: 1.4e-14; the short cells lie near 0, where coordinates are rounded to less
        assert np.abs(found.reference - np.tile(reference, (mesh.cell_count, 1))).max() < 1e-12


def test_the_size_of_a_cell():
    model = stirring(ps.Euclidean(3))
    volumes = ps.FiniteVolume(model, ps.box((0, 0, 0), (1, 2, 3), (2, 4, 6), cell="hexahedron"))
    assert volumes.cell_size == pytest.approx(0.5, rel=1e-14)
    for cells in (30, 60):  # the circle is interpolated by cubics; measured: 5.4e-4 h⁴
        on_circle = ps.DiscontinuousGalerkin(stirring(ps.Sphere(2)), ps.circle(cells), degree=1)
        h = 2 * np.pi / cells
        assert on_circle.cell_size == pytest.approx(h, rel=6e-4 * h**4)
    on_sphere = ps.FiniteVolume(stirring(ps.Sphere(3)), ps.icosphere(1))
    assert on_sphere.cell_size == pytest.approx(np.sqrt(4 * np.pi / 80), rel=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_no_points_and_wrong_points(method):
    mesh = MESHES["icosphere"]()
    discretisation = METHODS[method](stirring(mesh.manifold, TWO), mesh)
    state = discretisation.initial(ps.Uniform())
    assert discretisation.density_at(state, np.empty((0, 3))).shape == (2, 0)
    with pytest.raises(ps.InputError, match=r"points of the sphere S\^2 need shape \(n, 3\), found \(4, 2\)"):
        discretisation.density_at(state, np.ones((4, 2)))
    with pytest.raises(ps.InputError, match="density_at: points must be an array of numbers, found 'pole'"):
        discretisation.density_at(state, "pole")
    for wrong in ([np.nan, 0, 1], [0, 0, 0], [np.inf, 1, 1]):
        with pytest.raises(ps.InputError, match=r"points must be finite, and on spheres not at the origin.* row 1"):
            discretisation.density_at(state, [[0, 0, 1], wrong])


def test_tokens_have_no_density():
    particles = ps.Particles(stirring(ps.Sphere(3)), count=5)
    with pytest.raises(ps.InputError, match="Particles: tokens have no density to evaluate"):
        particles.density_at(particles.initial(ps.Uniform()), np.eye(3))


@pytest.mark.parametrize("ranks", [2, 3])  # with 3 the last asks for no points
def test_ranks_agree_with_one(on_ranks, ranks):
    done = on_ranks(Path(__file__).with_name("mpi_density_at.py"), ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("agree") == ranks
