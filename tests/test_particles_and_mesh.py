"""Tokens and densities are driven by the same Model object, and their laws agree at the tokens' own rate n^{−1/2}."""

import numpy as np
import pytest

import pde_solver as ps


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
