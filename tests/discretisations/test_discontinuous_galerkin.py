"""Discontinuous Galerkin: projections, limiter, mass, walls, nodes for pictures. Orders: see test_convergence."""

from functools import cache

import numpy as np
import pytest
import ufl
from hypothesis import given, settings
from hypothesis import strategies as st
from some_meshes import CURVED, FLAT, MESHES, bump, stirring

import pde_solver as ps
from pde_solver.kernel_sums import Field

from dolfinx import fem  # isort: skip  # after pde_solver, which finds its libraries


@cache
def discontinuous_galerkin(name, degree):
    mesh = MESHES[name]()
    return ps.DiscontinuousGalerkin(stirring(mesh.manifold), mesh, degree)


def means(discretisation, state):
    return np.einsum("ci,zci->zc", discretisation._mean, state.reshape(discretisation._shape))


def polynomial(dimension, degree):
    """A polynomial of this degree, positive on all boxes here, with all powers and a mixed term."""
    terms = [f"0.3*({x} + 2.5)**{degree}" for x in "xyz"[:dimension]]
    return " + ".join(["1", *terms, *(["0.05*(x + 2)*(y + 2.2)"] if degree > 1 and dimension > 1 else [])])


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("name", FLAT)
def test_polynomials_are_projected_to_themselves(name, degree):
    """P_p holds the polynomial, so its L² projection is itself; dividing by the mass is all that happens to it."""
    discretisation = discontinuous_galerkin(name, degree)
    law = ps.Expression(polynomial(discretisation.model.manifold.dimension, degree))
    state = discretisation.initial(law)
    points, measures, values = discretisation.sampled_density(state)
    exact = law.density(points, discretisation.model.manifold)
    exact /= measures @ exact
    assert np.abs(values[0] - exact).max() < 1e-12 * exact.max()
    assert discretisation.density_error(state, lambda x: exact).linf < 1e-12 * exact.max()
    # the same function at the nodes of the picture
    nodes = discretisation.cell_nodes(state)
    wanted = law.density(nodes.points.reshape(-1, 3)[:, : points.shape[1]], discretisation.model.manifold)
    found = discretisation.nodal_density(state)
    assert found.shape == (1, *nodes.points.shape[:2])
    ratio = found.reshape(-1) / wanted
    assert np.ptp(ratio) < 1e-12 * ratio.max()


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("name", CURVED)
def test_the_uniform_law_on_curved_cells(name, degree):
    """A constant is in the space on any cell, so it is projected to itself; its mass is one by construction."""
    discretisation = discontinuous_galerkin(name, degree)
    state = discretisation.initial(ps.Uniform())
    lowest, highest = discretisation.density_range(state)
    assert highest / lowest - 1 < 1e-12
    assert discretisation.measure(state).mass() == pytest.approx([1], abs=1e-14)
    # curved cells cover nearly the whole sphere
    assert highest == pytest.approx(1 / discretisation.model.manifold.volume, rel=0.02)


#: Curved cells of other degrees than the geometry of MESHES.
MORE_CURVED = {
    "curved arcs": lambda: ps.circle(13, geometry_degree=3),
    "curved triangles": lambda: ps.icosphere(1, geometry_degree=2),
    "flat triangles on the sphere": lambda: ps.icosphere(1, geometry_degree=1),
    "curved quadrilaterals": lambda: ps.cubed_sphere(2, geometry_degree=3),
}


def assembled(discretisation, state, velocity):
    """M⁻¹ (∫ f v·∇w dx − ∫ F(f⁺, f⁻) [w] dS) as UFL has it, with the quadrature of the discretisation; and ∫ f (v·n)⁺ ds."""
    domain, dimension = discretisation.mesh.domain, discretisation.model.manifold.ambient_dimension
    density_space = fem.functionspace(domain, discretisation._element)
    velocity_space = fem.functionspace(domain, ("Lagrange", {1: 2, 2: 3, 3: 3}[discretisation.degree], (dimension,)))
    f, v, w = fem.Function(density_space), fem.Function(velocity_space), ufl.TestFunction(density_space)
    f.x.array[density_space.dofmap.list] = state.reshape(discretisation._shape)[0]
    v.x.array[:] = velocity.reshape(-1)
    n = ufl.FacetNormal(domain)
    u = (ufl.dot(v("+"), n("+")) - ufl.dot(v("-"), n("-"))) / 2
    flux = (u + abs(u)) / 2 * f("+") + (u - abs(u)) / 2 * f("-")
    degree = discretisation._form_degree
    inside = ufl.dx(domain, metadata={"quadrature_degree": degree})
    between = ufl.dS(domain, metadata={"quadrature_degree": degree + 1})
    on_wall = ufl.ds(domain, metadata={"quadrature_degree": degree + 1})
    form = fem.form(f * ufl.dot(v, ufl.grad(w)) * inside - flux * (w("+") - w("-")) * between)
    residual = fem.assemble_vector(form).array[density_space.dofmap.list]
    mass = np.einsum(
        "qi,cq,qj->cij", discretisation._basis, discretisation._elements, discretisation._basis, optimize=True
    )
    outward = ufl.max_value(ufl.dot(v, n), 0)
    return np.linalg.solve(mass, residual[..., None])[..., 0], fem.assemble_scalar(fem.form(f * outward * on_wall))


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("name", [*MESHES, *MORE_CURVED])
def test_the_rate_is_the_upwind_form(name, degree):
    """Against the form itself, assembled by DOLFINx; a rough law and a rough wind, so that all terms count."""
    mesh = (MESHES | MORE_CURVED)[name]()
    discretisation = ps.DiscontinuousGalerkin(stirring(mesh.manifold), mesh, degree)
    rng = np.random.default_rng(degree)
    state = 1 + 0.01 * rng.random(discretisation.local_size)
    velocity = rng.normal(size=discretisation.velocity_points(state).shape)
    discretisation._field = lambda t, densities: Field(velocity[None], 1.0)
    rate = np.empty_like(state)
    discretisation.rate(0.0, state, rate)
    exact, wall_flux = assembled(discretisation, state, velocity)
    assert np.abs(rate.reshape(exact.shape) - exact).max() < 1e-12 * np.abs(exact).max()
    assert discretisation.wall_flux(0.0, state) == pytest.approx(wall_flux, rel=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("name", MESHES)
def test_nothing_is_lost(name, degree):
    """The flux is single-valued, on curved cells too: ∫ ∂ₜf dx = 0."""
    discretisation = discontinuous_galerkin(name, degree)
    state = discretisation.initial(bump(discretisation.model.manifold))
    rate = np.empty_like(state)
    discretisation.rate(0.0, state, rate)
    gained = means(discretisation, rate)[0] * discretisation._volumes
    assert np.abs(gained).sum() > 0.01
    assert abs(gained.sum()) < 1e-14 * np.abs(gained).sum()


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("name", MESHES)
@settings(derandomize=True, database=None, max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_limiter_keeps_means_and_removes_negative_values(name, degree, seed):
    discretisation = discontinuous_galerkin(name, degree)
    rng = np.random.default_rng(seed)
    state = np.exp(rng.normal(scale=4, size=discretisation._shape))
    state -= state.mean(axis=-1, keepdims=True)
    wanted = np.exp(rng.normal(scale=4, size=discretisation._shape[:2])) * (rng.random(discretisation._shape[:2]) > 0.2)
    state += (wanted - means(discretisation, state))[..., None]
    flat = state.reshape(-1)
    size = np.abs(state).max()
    assert discretisation.density_range(flat)[0] < 0
    discretisation.correct(flat)
    assert discretisation.density_range(flat)[0] >= -1e-14 * size
    assert np.abs(means(discretisation, flat) - wanted).max() < 1e-14 * size
    again = flat.copy()
    discretisation.correct(again)
    assert np.abs(again - flat).max() <= 1e-13 * size


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("name", MESHES)
def test_the_law_has_no_negative_weight(name, degree):
    discretisation = discontinuous_galerkin(name, degree)
    state = discretisation.initial(bump(discretisation.model.manifold))
    assert discretisation.measure(state).weights.min() > 0
    assert discretisation.sampled_density(state)[1].min() > 0


def test_wall_flux_by_hand():
    """Wind (1, −½), f = (2 + x)/8 on [−1, 1] × [−2, 0]: at x = 1 it is 3/8 over height 2; below, ∫ f dx = ½ and u = ½."""
    labels = ps.Labels((0.25, 0.75))
    model = ps.Model(ps.Euclidean(2), ps.Linear(offset=(1.0, -0.5)), labels)
    for degree in (1, 2, 3):
        discretisation = ps.DiscontinuousGalerkin(model, ps.rectangle((-1, -2), (1, 0), (3, 3)), degree)
        state = discretisation.initial([ps.Expression("2 + x"), ps.Expression("1")])
        slanted, flat = 1.0 * 2 * 3 / 8 + 0.5 * 0.5, 1.0 * 2 / 4 + 0.5 * 2 / 4
        assert discretisation.wall_flux(0.0, state) == pytest.approx(0.25 * slanted + 0.75 * flat, abs=1e-13)


def test_wind_that_blows_from_a_wall_does_not_press():
    model = ps.Model(ps.Euclidean(1), ps.Linear([[-1.0]]))
    discretisation = ps.DiscontinuousGalerkin(model, ps.interval(-1, 1, 8), 2)
    assert discretisation.wall_flux(0.0, discretisation.initial(ps.Expression("1"))) == 0
    assert discontinuous_galerkin("icosphere", 1).wall_flux(0.0, np.ones(240)) == 0


@pytest.mark.parametrize(("degree", "order", "bound"), [(1, 4, 1e-6), (2, 6, 1e-8), (3, 6, 1e-8)])
def test_entropy_of_a_von_mises_fisher_law(degree, order, bound):
    """∫ f log f = log(κ / (4π sinh κ)) + κ coth κ − 1 on S² (f = C e^{κ⟨c, x⟩} and the mean of ⟨c, x⟩ is coth κ − 1/κ).

    The projection's error is orthogonal to P_p and log f is smooth, so its order doubles to 2p + 2; geometry of degree 4
    is good for order 6.
    """
    kappa = 2.0
    exact = np.log(kappa / (4 * np.pi * np.sinh(kappa))) + kappa / np.tanh(kappa) - 1
    model = ps.Model(ps.Sphere(3), ps.Attention(1.0))
    errors = []
    for level in (2, 3):
        discretisation = ps.DiscontinuousGalerkin(model, ps.icosphere(level, geometry_degree=4), degree)
        state = discretisation.initial(ps.VonMisesFisher((1, 2, 3), kappa))
        errors.append(abs(discretisation.entropy(state)[0] - exact))
    assert errors[1] < bound
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("name", CURVED)
def test_nodal_density_on_curved_cells(name):
    """The interpolated density at the nodes of the picture is the law's up to the error of the projection."""
    discretisation = discontinuous_galerkin(name, 3)
    law = bump(discretisation.model.manifold)
    state = discretisation.initial(law)
    nodes = discretisation.cell_nodes(state)
    points = nodes.points.reshape(-1, 3)[:, : discretisation.model.manifold.ambient_dimension]
    exact = law.density(points, discretisation.model.manifold)
    assert np.abs(discretisation.nodal_density(state).reshape(-1) - exact).max() < 0.03 * exact.max()


def test_step_limit_of_a_translation_by_hand():
    """Intervals of length h, speed 2: a_p h / 2 with the inscribed diameter h."""
    for degree, stable in ((1, 0.223), (2, 0.117), (3, 0.075)):
        model = ps.Model(ps.Euclidean(1), ps.Linear(offset=(2.0,)))
        discretisation = ps.DiscontinuousGalerkin(model, ps.interval(0, 3, 6), degree)
        state = discretisation.initial(ps.Expression("1"))
        assert discretisation.step_limit(0.0, state) == pytest.approx(stable * 0.5 / 2, rel=1e-12)


def test_at_rest_there_is_no_limit():
    model = ps.Model(ps.Euclidean(1), ps.Linear(offset=(0.0,)))
    for discretisation in (
        ps.DiscontinuousGalerkin(model, ps.interval(0, 3, 6)),
        ps.FiniteVolume(model, ps.interval(0, 3, 6)),
    ):
        assert discretisation.step_limit(0.0, discretisation.initial(ps.Expression("1"))) == np.inf
