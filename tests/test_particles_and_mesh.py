"""Tokens and densities are driven by the same Model object, and their laws agree at the tokens' own rate n^{−1/2}."""

import numpy as np
import pytest

import pde_solver as ps


def test_law_of_tokens_converges_to_the_mesh_solution():
    """W₁ on the circle (exact) between n tokens and the mesh solution, root mean square over seeds, for three n."""
    model = ps.Model(ps.Sphere(2), ps.Attention(4.0))
    law = ps.Mixture([ps.VonMisesFisher((1.0, 0.0), 3.0), ps.VonMisesFisher((-0.6, 0.8), 5.0)], [0.5, 0.5])
    mesh = ps.Simulation(ps.DiscontinuousGalerkin(model, ps.circle(128), 3), law, 1.0)
    mesh.run()
    sizes = [100, 400, 1600]
    distances = []
    for n in sizes:
        found = []
        for seed in range(12):
            tokens = ps.Simulation(ps.Particles(model, count=n, seed=seed), law, 1.0)
            tokens.run()
            found.append(ps.wasserstein(tokens.snapshot.law, mesh.snapshot.law, model.manifold, p=1))
        distances.append(np.sqrt(np.mean(np.square(found))))
    slope = np.polyfit(np.log(sizes), np.log(distances), 1)[0]
    print(distances, slope)
    # 12 seeds: the logarithm of each root mean square has a standard error of about 0.2, the slope one of 0.1
    assert slope == pytest.approx(-0.5, abs=0.25)
    assert distances[-1] < 0.06


def test_quadrature_weighted_tokens_agree_to_many_digits():
    """While the law is smooth, tokens weighted by a quadrature are far more accurate than independent ones."""
    model = ps.Model(ps.Sphere(3), ps.Attention(4.0))
    law = ps.VonMisesFisher((0.0, 0.0, 1.0), 2.0)
    quadrature = ps.sphere_quadrature(model.manifold, 24)
    tokens = ps.Simulation(ps.Particles(model, quadrature=quadrature), law, 1.0)
    tokens.run()
    mesh = ps.Simulation(ps.DiscontinuousGalerkin(model, ps.icosphere(3), 2), law, 1.0)
    mesh.run()
    first, second = (s.snapshot.law.integrate(lambda x: x)[0] for s in (tokens, mesh))
    assert np.abs(first - second).max() < 3e-6


def test_tokens_stay_on_the_sphere_and_keep_the_order():
    """Retraction once per step leaves Runge–Kutta's order: a rigid rotation by SSP(3), errors at two step sizes."""
    turn = np.array([[0.0, -1.0, 0.3], [1.0, 0.0, -0.5], [-0.3, 0.5, 0.0]])
    model = ps.Model(ps.Sphere(3), ps.Attention(2.0) + ps.Linear(turn))

    def run(step):
        simulation = ps.Simulation(
            ps.Particles(model, count=64, seed=1), ps.Uniform(), 1.0, scheme=ps.SSP(3, step=step)
        )
        simulation.run()
        points = simulation.snapshot.measure.points
        assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-14
        return points

    finest = run(1 / 64)
    errors = [np.abs(run(step) - finest).max() for step in (1 / 4, 1 / 8)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3, abs=0.5)


def test_many_tokens_keep_the_fast_sums_through_a_run():
    # inside a step tokens leave the sphere by a little: fast and direct sums must mean the same velocity there
    model = ps.Model(ps.Sphere(3), ps.Attention(16.0))
    particles = ps.Particles(model, count=6000, seed=1)
    simulation = ps.Simulation(particles, ps.VonMisesFisher((0, 0, 1), kappa=2.0), stop=0.6)
    outcome = simulation.run()
    assert [chosen.family for chosen, _ in particles.velocity_methods(simulation.state)] == ["sphere"]
    assert outcome.velocity_error < 1e-6
    direct = ps.Particles(model, count=6000, seed=1, evaluation=ps.Evaluation(method="dense"))
    right = ps.Simulation(direct, ps.VonMisesFisher((0, 0, 1), kappa=2.0), stop=0.6)
    assert right.run().velocity_error is None
    np.testing.assert_allclose(simulation.snapshot.measure.points, right.snapshot.measure.points, rtol=0, atol=1e-5)
