"""The linear algebra of the limited linear reconstruction, and the upwind divergence, by themselves."""

import numpy as np
import pytest
from some_meshes import CURVED, FLAT, MESHES, bump, stirring

import pde_solver as ps
from pde_solver.discretisations.halo import vertex_halo
from pde_solver.discretisations.reconstruction import least_squares, limited_gradients, upwind_divergence
from pde_solver.mesh import facet_geometry


def weights(mesh):
    """Neighbourhoods, least-squares weights, and the cells' points."""
    halo, points = vertex_halo(mesh), facet_geometry(mesh).cell_points
    cell = np.repeat(np.arange(halo.owned), np.diff(halo.first))
    differences = mesh.manifold.project(points[cell], points[halo.neighbours] - points[cell])
    return halo, least_squares(halo.first, differences), cell, points


def gradients(values, halo, coefficients, cell):
    result = np.zeros((halo.owned, coefficients.shape[1]))
    np.add.at(result, cell, coefficients * (values[halo.neighbours] - values[cell])[:, None])
    return result


@pytest.mark.parametrize("name", FLAT)
def test_least_squares_is_exact_for_linear_functions_even_in_corners(name):
    """A linear function's gradient is its slope, whatever the neighbours are, as long as they span the space."""
    mesh = MESHES[name]()
    halo, coefficients, cell, points = weights(mesh)
    slope = np.array([0.7, -1.3, 2.1])[: points.shape[1]]
    found = gradients(points @ slope + 0.4, halo, coefficients, cell)
    assert np.abs(found - slope).max() < 1e-12


def spherical_errors(mesh):
    """|∇⟨e, x⟩ − P_x e| of each cell for the least-squares gradient."""
    halo, coefficients, cell, points = weights(mesh)
    direction = np.array([0.3, -0.5, 0.8])[: points.shape[1]]
    found = gradients(points @ direction, halo, coefficients, cell)
    assert np.abs(np.einsum("cd,cd->c", found, points)).max() < 1e-12  # tangential
    return np.linalg.norm(found - mesh.manifold.project(points, np.broadcast_to(direction, points.shape)), axis=1)


@pytest.mark.parametrize(("mesh", "resolutions"), [(ps.icosphere, (4, 5)), (ps.cubed_sphere, (16, 32))])
def test_least_squares_on_the_sphere(mesh, resolutions):
    """⟨e, x⟩ curves by −½|Δ|²⟨e, x⟩, which costs ½ |Σ c |Δ|²|: O(h²) where a cell's neighbours lie symmetrically.

    That is nearly everywhere; along the edges of the icosahedron or cube, where the grids of two faces meet, it is O(h).
    """
    coarse, fine = (spherical_errors(mesh(resolution)) for resolution in resolutions)
    assert np.log2(np.median(coarse) / np.median(fine)) > 1.8
    assert np.log2(coarse.max() / fine.max()) > 0.8
    assert np.median(fine) < 1e-4
    assert fine.max() < 1e-2


def test_least_squares_on_the_circle():
    """Two neighbours at equal distances: the curvature cancels, but the chord is shorter than the arc, once projected.

    The difference quotient along the tangent is (⟨e, y₊⟩ − ⟨e, y₋⟩) / (2 sin h) = ⟨e, τ⟩ exactly.
    """
    assert spherical_errors(ps.circle(24)).max() < 1e-13


def reconstructed(name, values):
    """A finite volume of order 2, its limited gradients of given cell values, and the plain least-squares ones."""
    mesh = MESHES[name]()
    finite_volume = ps.FiniteVolume(stirring(mesh.manifold), mesh)
    halo, coefficients, cell, points = weights(mesh)
    density = values(points)
    limited = np.zeros((halo.size, points.shape[1]))
    limited_gradients(
        density,
        halo.first,
        halo.neighbours,
        coefficients,
        finite_volume._first_facet,
        finite_volume._offsets,
        limited,
    )
    return finite_volume, density, limited, gradients(density, halo, coefficients, cell), halo


@pytest.mark.parametrize("name", MESHES)
def test_limited_facet_values_stay_in_the_neighbours_range(name):
    rng = np.random.default_rng(3)
    rough = lambda points: rng.exponential(size=len(points)) ** 3 * (rng.random(len(points)) > 0.3)  # noqa: E731
    finite_volume, density, limited, plain, halo = reconstructed(name, rough)
    assert np.any(np.abs(limited - plain) > 1e-6)  # the limiter has something to do
    facet_values = density[finite_volume._cells] + np.einsum(
        "kd,kd->k", limited[finite_volume._cells], finite_volume._offsets
    )
    for cell in range(halo.owned):
        around = np.append(density[halo.neighbours[halo.first[cell] : halo.first[cell + 1]]], density[cell])
        own = facet_values[finite_volume._first_facet[cell] : finite_volume._first_facet[cell + 1]]
        slack = 1e-14 * around.max()
        assert own.min() >= around.min() - slack
        assert own.max() <= around.max() + slack
        # offsets add up to zero, so the facet values average to the mean: what the step limit rests on
        assert own.mean() == pytest.approx(density[cell], abs=1e-13 * around.max())


@pytest.mark.parametrize("name", FLAT)
def test_linear_data_are_not_limited_away_from_the_walls(name):
    """On a uniform mesh a linear function's facet values lie well inside its neighbours' range: y ≥ 3/2."""
    slope = np.array([0.7, -1.3, 2.1])
    finite_volume, _, limited, plain, _ = reconstructed(name, lambda x: 10 + x @ slope[: x.shape[1]])
    wall = np.zeros(len(plain), dtype=bool)
    wall[finite_volume._cells[finite_volume._neighbour[finite_volume._facets] < 0]] = True
    vertices = finite_volume.mesh.domain.topology.connectivity(finite_volume.mesh.domain.topology.dim, 0).array
    vertices = vertices.reshape(len(plain), -1)
    inner = ~np.isin(vertices, vertices[wall]).any(axis=1)  # and not beside a cell at a wall
    wide = inner if inner.any() else ~wall
    assert wide.any()
    assert np.abs(limited[wide] - plain[wide]).max() < 1e-12


def test_a_lone_peak_is_flattened():
    """At an extremum Δ = 0 on one side, so the limiter takes the whole gradient away."""
    peak = lambda points: (np.arange(len(points)) == 12) * 1.0  # noqa: E731
    for name in MESHES:
        _, density, limited, plain, _ = reconstructed(name, peak)
        top = int(np.argmax(density))
        assert np.abs(limited[top]).max() == 0 or np.abs(plain[top]).max() < 1e-12


@pytest.mark.parametrize("name", [*FLAT, *CURVED])
@pytest.mark.parametrize("order", [1, 2])
def test_nothing_is_lost_and_nothing_crosses_a_wall(name, order):
    mesh = MESHES[name]()
    finite_volume = ps.FiniteVolume(stirring(mesh.manifold), mesh, order)
    state = finite_volume.initial(bump(mesh.manifold))
    rate = np.empty_like(state)
    finite_volume.rate(0.0, state, rate)
    assert np.abs(rate).max() > 0.01
    assert abs(rate @ finite_volume._volumes) < 1e-15 * np.abs(rate) @ finite_volume._volumes


def test_upwind_divergence_of_two_cells_by_hand():
    """Wall | 3 | 5 | wall, unit cells. u = 2 to the right takes the left value at the facet 3 + ½·1; u = −2 the right
    value 5 − ½·(−4) = 7; the walls at both ends let nothing through, whatever u is there."""
    density, slopes = np.array([3.0, 5.0]), np.array([[1.0], [-4.0]])
    owner, neighbour = np.array([0, 0, 1]), np.array([-1, 1, -1])
    owner_offset, neighbour_offset = np.array([[-0.5], [0.5], [0.5]]), np.array([[0.0], [-0.5], [0.0]])
    for u, flux in ((2.0, 2 * 3.5), (-2.0, -2 * 7.0)):
        divergence = np.zeros(2)
        velocity = np.array([9.0, u, 9.0])
        upwind_divergence(density, slopes, owner, neighbour, owner_offset, neighbour_offset, velocity, 2, divergence)
        assert divergence.tolist() == [flux, -flux]
