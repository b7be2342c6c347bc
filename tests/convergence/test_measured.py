"""The errors that a study measures, against integrals computed otherwise."""

import numpy as np
import pytest
from scipy.integrate import quad

import pde_solver as ps


def at_rest(mesh, initial, degree=3):
    """A simulation that has not moved: its density is the projected initial law."""
    model = ps.Model(mesh.manifold, ps.Linear(-np.eye(mesh.manifold.ambient_dimension)))
    return ps.Simulation(ps.DiscontinuousGalerkin(model, mesh, degree), initial, 1.0)


def test_norms_between_two_gaussians():
    a, b = ps.Gaussian([0.0], [[0.5]]), ps.Gaussian([0.3], [[0.4]])
    simulation = at_rest(ps.interval(-6.0, 6.0, 400), a)
    line = simulation.discretisation.model.manifold
    found = ps.measured(simulation, lambda x: b.density(x, line))

    def difference(x):
        return abs(a.density(np.array([[x]]), line)[0] - b.density(np.array([[x]]), line)[0])

    kinks = [-3.0, -1.0, 0.0, 0.2, 0.5, 1.0, 3.0]
    assert found.errors["L1"] == pytest.approx(quad(difference, -6, 6, points=kinks, limit=200)[0], rel=1e-5)
    assert found.errors["L2"] == pytest.approx(
        quad(lambda x: difference(x) ** 2, -6, 6, points=kinks)[0] ** 0.5, rel=1e-6
    )
    assert found.errors["Linf"] == pytest.approx(max(map(difference, np.linspace(-3, 3, 60001))), rel=1e-4)
    # W1 on the line is the L1 distance of the distribution functions
    from scipy.stats import norm

    def functions(x):
        return abs(norm.cdf(x, 0.0, 0.5**0.5) - norm.cdf(x, 0.3, 0.4**0.5))

    assert found.errors["W1"] == pytest.approx(quad(functions, -6, 6, points=kinks)[0], rel=1e-4)
    assert found.resolution == pytest.approx(12 / 400)
    assert found.unknowns == 1600


def test_the_distance_to_itself_is_of_the_order_of_the_projection():
    law = ps.VonMisesFisher((1.0, 0.0), 2.0)
    study = ps.converge(
        lambda n: ps.measured(at_rest(ps.circle(n), law, 2), lambda x: law.density(x, ps.Sphere(2))), [16, 32, 64]
    )
    assert study.order("L1") == pytest.approx(3, abs=0.2)
    # nothing of the quadrature's point distance, ~ 1e-2, is left in the distance of the laws
    assert study.last("W1") < 1e-6


def test_tokens_have_no_density():
    model = ps.Model(ps.Sphere(2), ps.Attention(1.0))
    simulation = ps.Simulation(ps.Particles(model, 10), ps.Uniform(), 1.0)
    with pytest.raises(ps.InputError, match="tokens have no density"):
        ps.measured(simulation, lambda x: x[:, 0])
