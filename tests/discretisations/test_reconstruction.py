"""Limited linear reconstruction at facets, and upwind fluxes, by themselves."""

import numpy as np
import pytest
from some_meshes import CURVED, FLAT, MESHES, bump, stirring

import pde_solver as ps
from pde_solver.discretisations.halo import vertex_halo
from pde_solver.discretisations.least_squares import least_squares, tangent_differences, tangent_frames
from pde_solver.discretisations.reconstruction import GROUP, LANES, facet_kernels, in_lanes
from pde_solver.mesh import facet_geometry

#: Weights and offsets are stored in single precision: relative to the largest difference between neighbours.
SINGLE = 1e-6


def limited_facet_values(mesh, density):
    """Facet values and least-squares ones before they are limited, (cells, facets) each, in double precision and by NumPy.

    Facets are in the cell type's order.
    """
    halo, geometry, manifold = vertex_halo(mesh), facet_geometry(mesh), mesh.manifold
    points = geometry.cell_points
    frames = tangent_frames(manifold, points)
    weights = least_squares(halo.first, tangent_differences(halo.first, halo.neighbours, points, points, frames))
    midpoints = geometry.midpoints[geometry.cell_facets]
    limited, plain = np.empty(midpoints.shape[:2]), np.empty(midpoints.shape[:2])
    for cell in range(mesh.owned_cells):
        its = slice(halo.first[cell], halo.first[cell + 1])
        differences = density[halo.neighbours[its]] - density[cell]
        arms = (midpoints[cell] - midpoints[cell].mean(axis=0)) @ frames[cell].T
        steps = arms @ (differences @ weights[its])
        room = np.where(steps > 0, max(differences.max(initial=0), 0), min(differences.min(initial=0), 0))
        moving = np.abs(steps) > 1e-13 * np.abs(density).max()
        y = np.minimum(room[moving] / steps[moving], 1.5).min(initial=1.5)
        limited[cell], plain[cell] = density[cell] + (y - 4 * y**3 / 27) * steps, density[cell] + steps
    return limited, plain


def facet_values(finite_volume, density):
    """What the kernel finds, (cells, facets); facets in the order of the discretisation."""
    blocks = np.arange(len(finite_volume._ready))
    values = finite_volume._facet_values.array
    around = (density, *finite_volume._neighbourhoods, finite_volume._offsets)
    finite_volume._reconstruct(blocks, *around, finite_volume._owned, finite_volume._work, values)
    return values.reshape(finite_volume._owned, -1).copy()


def reconstructed(name, values):
    """A finite volume of order 2, densities at its points, their facet values, and the cells around each cell."""
    mesh = MESHES[name]()
    finite_volume = ps.FiniteVolume(stirring(mesh.manifold), mesh)
    density = values(finite_volume._points)
    halo = vertex_halo(mesh)
    around = [np.append(halo.neighbours[halo.first[c] : halo.first[c + 1]], c) for c in range(halo.owned)]
    return finite_volume, density, facet_values(finite_volume, density), around


def rough(points):
    rng = np.random.default_rng(3)
    return rng.exponential(size=len(points)) ** 3 * (rng.random(len(points)) > 0.3)


@pytest.mark.parametrize("data", [rough, lambda points: np.exp(points.sum(axis=1))])
@pytest.mark.parametrize("name", MESHES)
def test_facet_values_are_those_of_the_formula(name, data):
    """Sorted within each cell, because the two orders of its facets differ."""
    finite_volume, density, found, _ = reconstructed(name, data)
    limited, plain = limited_facet_values(finite_volume.mesh, density)
    assert np.abs(limited - plain).max() > 1e-6  # the limiter has something to do
    assert np.abs(np.sort(found, axis=1) - np.sort(limited, axis=1)).max() < SINGLE * np.ptp(density)


@pytest.mark.parametrize("name", MESHES)
def test_limited_facet_values_stay_in_the_neighbours_range(name):
    """To round-off in double precision, although weights and offsets are rounded to single."""
    _, density, found, around = reconstructed(name, rough)
    for cell, cells in enumerate(around):
        slack = 1e-15 * density[cells].max()
        assert found[cell].min() >= density[cells].min() - slack
        assert found[cell].max() <= density[cells].max() + slack
        # facet values average to the mean: what the step limit rests on
        assert found[cell].mean() == pytest.approx(density[cell], abs=1e-15 * density[cells].max())


@pytest.mark.parametrize("name", FLAT)
def test_linear_data_are_not_limited_away_from_the_walls(name):
    """On a uniform mesh a linear function's facet values lie well inside its neighbours' range: y ≥ 3/2."""
    slope = np.array([0.7, -1.3, 2.1])
    finite_volume, density, found, around = reconstructed(name, lambda x: 10 + x @ slope[: x.shape[1]])
    wall = (finite_volume._sides == 0).any(axis=1)
    wide = ~np.array([wall[cells].any() for cells in around])  # and not beside a cell at a wall
    if not wide.any():
        wide = ~wall
    assert wide.any()
    exact = 10 + finite_volume._midpoints[finite_volume._cell_facets] @ slope[: finite_volume._points.shape[1]]
    assert np.abs(found - exact)[wide].max() < SINGLE * np.ptp(density)


@pytest.mark.parametrize("name", MESHES)
def test_constants_are_reconstructed_exactly(name):
    _, density, found, _ = reconstructed(name, lambda points: np.full(len(points), 0.3))
    assert np.array_equal(found, np.broadcast_to(density[:, None], found.shape))


def test_a_lone_peak_is_flattened():
    """At an extremum Δ = 0 on one side, so the limiter takes the whole gradient away."""
    for name in MESHES:
        _, density, found, _ = reconstructed(name, lambda points: (np.arange(len(points)) == 4) * 1.0)
        assert np.array_equal(found[np.argmax(density)], np.ones(found.shape[1]))


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


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("order", [1, 2])
def test_what_leaves_one_cell_enters_the_other_bit_by_bit(name, order):
    """With u ≠ 0 at one facet only and cells of volume 1, the two rates are ±u times the value on the upwind side."""
    mesh = MESHES[name]()
    finite_volume = ps.FiniteVolume(stirring(mesh.manifold), mesh, order)
    finite_volume._volumes = np.ones(mesh.owned_cells)
    rng = np.random.default_rng(5)
    state = rng.random(mesh.owned_cells)
    values = facet_values(finite_volume, state) if order == 2 else state[:, None] + 0 * finite_volume._sides
    facets = len(finite_volume._midpoints)
    rate = np.empty_like(state)
    for facet in rng.choice(facets, 12):
        cells, sides = np.nonzero(finite_volume._cell_facets == facet)
        u = np.zeros((1, facets))
        u[0, facet] = rng.normal()
        finite_volume._normal_velocity = lambda t, state, u=u: u
        finite_volume.rate(0.0, state, rate)
        if len(cells) == 1:
            assert not rate.any()  # a wall
            continue
        out = finite_volume._sides[cells, sides] * u[0, facet]  # the speed at which each of the two loses
        upwind = values[cells, sides][np.argmax(out)]
        assert rate[cells].tolist() == (-out * upwind).tolist()
        assert np.count_nonzero(rate) == 2


@pytest.mark.parametrize("u", [2.0, -2.0])
def test_two_cells_by_hand(u):
    """Wall | 3 | 5 | wall, cells of volume 1 and 2. The upwind value is 3 or 5; the walls let nothing through, whatever
    u is there; a step of |c| / |u| empties the cell that is left."""
    first_order_rate, smallest_step = facet_kernels(2)
    facets = np.array([[0, 1], [1, 2]], dtype=np.int32)
    sides = np.array([[0, 1], [-1, 0]], dtype=np.int8)
    opposite = np.array([[0, 1], [0, 1]], dtype=np.int32)
    volumes, velocity, rate = np.array([1.0, 2.0]), np.array([np.nan, u, np.inf]), np.empty(2)
    first_order_rate(np.array([3.0, 5.0]), velocity, facets, sides, opposite, volumes, rate)
    flux = u * (3.0 if u > 0 else 5.0)
    assert rate.tolist() == [-flux, flux / 2]
    for order, sharpness in ((1, 1), (2, 2)):  # order 2 has to think of both its facets
        step = smallest_step(order, velocity, facets, sides, volumes)
        assert step == (volumes[0] if u > 0 else volumes[1]) / 2.0 / sharpness


@pytest.mark.parametrize(("u", "limit"), [(0.0, np.inf), (np.nan, np.inf), (np.inf, 0.0)])
def test_step_of_velocities_that_are_no_numbers(u, limit):
    """Nothing moves: no limit. What a nan does is seen in the density; infinite speed leaves no step at all."""
    facets = np.array([[0, 1]], dtype=np.int32)
    sides = np.array([[0, 1]], dtype=np.int8)
    for order in (1, 2):
        assert facet_kernels(2)[1](order, np.array([1.0, u]), facets, sides, np.ones(1)) == limit


def test_lanes_hold_each_cells_neighbours_in_their_order():
    rng = np.random.default_rng(8)
    counts = rng.integers(1, 7, size=LANES + 5)
    counts[LANES:] = 2  # the second block needs fewer rows
    first = np.append(0, np.cumsum(counts))
    neighbours, weights = rng.integers(0, LANES + 5, size=first[-1]), rng.normal(size=(first[-1], 3))
    first_row, placed, stored = in_lanes(first, neighbours, weights)
    assert first_row.tolist() == [0, 2 * GROUP, 3 * GROUP]
    for cell, count in enumerate(counts):
        block, lane = divmod(cell, LANES)
        rows = slice(first_row[block], first_row[block] + count)
        assert placed[rows, lane].tolist() == neighbours[first[cell] : first[cell + 1]].tolist()
        assert np.array_equal(stored[rows, :, lane], weights[first[cell] : first[cell + 1]].astype(np.float32))
        spare = slice(rows.stop, first_row[block + 1])
        assert (placed[spare, lane] == cell).all()
        assert not stored[spare, :, lane].any()
