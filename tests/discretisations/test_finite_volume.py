"""Finite volumes: positivity under the step limit, walls, entropy. Orders: see test_convergence."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from some_meshes import MESHES, bump, stirring

import pde_solver as ps


@cache
def finite_volume(name, order):
    mesh = MESHES[name]()
    return ps.FiniteVolume(stirring(mesh.manifold), mesh, order)


def rough(seed, size):
    """Cell means ≥ 0 over many orders of magnitude, a third of them zero, now and then all but one."""
    rng = np.random.default_rng(seed)
    values = np.exp(rng.normal(scale=8, size=size)) * (rng.random(size) > 0.3)
    if seed % 5 == 0:
        values[:] = 0
    values[rng.integers(size)] = 1.0
    return values


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", MESHES)
@settings(derandomize=True, database=None, max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([0.0, 3.0]))
def test_a_forward_euler_step_at_the_limit_keeps_means_positive(name, order, seed, depth):
    """What the SSP schemes need; derived in FiniteVolume.step_limit."""
    discretisation = finite_volume(name, order)
    volumes = discretisation._volumes
    state = rough(seed, len(volumes))
    state /= state @ volumes
    rate = np.empty_like(state)
    discretisation.rate(depth, state, rate)
    limit = discretisation.step_limit(depth, state)
    assert 0 < limit < np.inf
    after = state + limit * rate
    assert after.min() >= -1e-14 * state.max()
    assert after @ volumes == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("name", MESHES)
def test_the_limit_of_order_one_is_sharp(name):
    """All mass in the cell that empties fastest: at the limit it is empty, 1 % beyond it would be negative."""
    mesh = MESHES[name]()
    dimension = mesh.manifold.ambient_dimension
    drift = ps.Linear(np.eye(dimension, k=1) - np.eye(dimension, k=-1), np.linspace(0.3, 0.5, dimension))
    discretisation = ps.FiniteVolume(ps.Model(mesh.manifold, drift), mesh, 1)
    lowest = []
    for cell in range(mesh.owned_cells):
        state = np.zeros(mesh.owned_cells)
        state[cell] = 1 / discretisation._volumes[cell]
        rate = np.empty_like(state)
        discretisation.rate(0.0, state, rate)
        limit = discretisation.step_limit(0.0, state)
        assert (state + limit * rate).min() >= -1e-14 * state.max()
        lowest.append((state + 1.01 * limit * rate).min() / state.max())
    assert min(lowest) == pytest.approx(-0.01, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_wall_flux_by_hand(order):
    """Wind (1, −½), f = (2 + x)/8 on [−1, 1] × [−2, 0] with squares of side ½.

    At the right wall, height 2, f in the last cells is (2 + ¾)/8, at the lower one ∫ f dx = ½ and u = ½; nothing
    presses against the other two.
    """
    mesh = ps.rectangle((-1, -2), (1, 0), (4, 4), cell="quadrilateral")
    labels = ps.Labels((0.25, 0.75))
    model = ps.Model(ps.Euclidean(2), ps.Linear(offset=(1.0, -0.5)), labels)
    discretisation = ps.FiniteVolume(model, mesh, order)
    law, calm = ps.Expression("2 + x"), ps.Expression("1")
    state = discretisation.initial([law, calm])
    slanted, flat = 1.0 * 2 * 2.75 / 8 + 0.5 * 0.5, 1.0 * 2 / 4 + 0.5 * 2 / 4
    assert discretisation.wall_flux(0.0, state) == pytest.approx(0.25 * slanted + 0.75 * flat, abs=1e-14)


def test_there_is_no_wall_on_a_sphere():
    discretisation = finite_volume("icosphere", 2)
    assert discretisation.wall_flux(0.0, discretisation.initial(bump(ps.Sphere(3)))) == 0


@pytest.mark.parametrize(("mesh", "volume"), [("icosphere", 4 * np.pi), ("circle", 2 * np.pi), ("hexahedra", 6.0)])
def test_entropy_of_the_uniform_law(mesh, volume):
    """f = 1/|M|: ∫ f log f = −log |M|; spherical polygons add up to the whole sphere."""
    discretisation = finite_volume(mesh, 2)
    state = discretisation.initial(ps.Uniform() if mesh != "hexahedra" else ps.Expression("1"))
    assert discretisation.entropy(state) == pytest.approx([-np.log(volume)], abs=1e-13)
    assert discretisation.density_range(state) == pytest.approx((1 / volume, 1 / volume), rel=1e-13)


def test_entropy_of_a_von_mises_fisher_law():
    """∫ f log f = log(κ / (4π sinh κ)) + κ coth κ − 1 on S² (f = C e^{κ⟨c, x⟩} and the mean of ⟨c, x⟩ is coth κ − 1/κ)."""
    kappa = 2.0
    exact = np.log(kappa / (4 * np.pi * np.sinh(kappa))) + kappa / np.tanh(kappa) - 1
    model = ps.Model(ps.Sphere(3), ps.Attention(1.0))
    errors = []
    for level in (2, 3):
        discretisation = ps.FiniteVolume(model, ps.icosphere(level))
        state = discretisation.initial(ps.VonMisesFisher((1, 2, 3), kappa))
        errors.append(abs(discretisation.entropy(state)[0] - exact))
    assert errors[1] < 1e-3
    assert np.log2(errors[0] / errors[1]) > 1.8


def test_entropy_of_nothing_is_zero_not_nan():
    discretisation = finite_volume("interval", 1)
    state = np.zeros(discretisation.local_size)
    state[3] = 3.0  # cells of length 1/3
    assert discretisation.entropy(state) == pytest.approx([np.log(3)], abs=1e-14)
