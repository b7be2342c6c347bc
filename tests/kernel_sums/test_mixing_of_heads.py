"""Each head may let tokens attend to others in its own way: the velocity is the sum of those of the single heads."""

import numpy as np
import pytest

import pde_solver as ps
from pde_solver.kernel_sums.energy import interaction_energy

EDGES = ps.position_edges(5)
MATRICES = np.array([ps.causal_mixing(EDGES, slope=0.0), ps.causal_mixing(EDGES, slope=3.0)])
WEIGHTS = tuple(np.diff(EDGES))
HEADS = {
    2: (ps.Attention(2.0), ps.Attention(1.0, value=-0.5 * np.eye(2), normaliser=ps.Unnormalised())),
    3: (ps.Attention(2.0), ps.Attention(1.0, value=-0.5 * np.eye(3), normaliser=ps.Unnormalised(0.5))),
}


def labels(mixing):
    return ps.Labels(WEIGHTS, mixing)


def laws(manifold):
    return [ps.HarmonicPerturbation(1, 0.1 * (z + 1)) for z in range(5)]


@pytest.mark.parametrize("method", ["dense", "automatic"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_the_velocity_is_the_sum_over_heads(dimension, method):
    sphere, (one, other) = ps.Sphere(dimension), HEADS[dimension]
    mesh = ps.circle(400) if dimension == 2 else ps.icosphere(3)
    evaluation = ps.Evaluation(1e-8, method)
    both = ps.FiniteVolume(ps.Model(sphere, one + other, labels(MATRICES)), mesh, evaluation=evaluation)
    measure = both.measure(both.initial(laws(sphere)))
    points = measure.points[::7]
    found = ps.velocity(both.model, 0.0, points, measure, evaluation=evaluation)
    right = sum(
        ps.velocity(ps.Model(sphere, head, labels(matrix)), 0.0, points, measure)
        for head, matrix in zip((one, other), MATRICES, strict=True)
    )
    np.testing.assert_allclose(found, right, atol=1e-8 * np.abs(right).max())
    some = ps.velocity(both.model, 0.0, points, measure, labels=[3, 1], evaluation=evaluation)
    np.testing.assert_allclose(some, right[[3, 1]], atol=1e-8 * np.abs(right).max())


@pytest.mark.parametrize("build", [ps.FiniteVolume, ps.DiscontinuousGalerkin, ps.Particles], ids=lambda b: b.__name__)
def test_equal_matrices_are_one_matrix(build):
    one, other = HEADS[2]

    def run(mixing):
        model = ps.Model(ps.Sphere(2), one + other, labels(mixing))
        d = ps.Particles(model, count=60, seed=2) if build is ps.Particles else build(model, ps.circle(24))
        simulation = ps.Simulation(d, laws(ps.Sphere(2)), 0.3)
        simulation.run()
        return simulation.state

    np.testing.assert_allclose(run(np.array([MATRICES[0], MATRICES[0]])), run(MATRICES[0]), rtol=0, atol=1e-12)
    assert np.abs(run(MATRICES) - run(MATRICES[0])).max() > 1e-3  # and another matrix is another flow


def test_the_energy_is_the_sum_over_heads():
    sphere, (one, other) = ps.Sphere(2), (ps.Attention(2.0), ps.Attention(0.0))
    density = ps.FiniteVolume(ps.Model(sphere, one + other, labels(MATRICES)), ps.circle(60))
    measure = density.measure(density.initial(laws(sphere)))
    single = [
        interaction_energy(ps.Model(sphere, head, labels(matrix)), 0.0, measure)
        for head, matrix in zip((one, other), MATRICES, strict=True)
    ]
    assert interaction_energy(density.model, 0.0, measure) == pytest.approx(sum(single), rel=1e-12)


def test_there_must_be_a_matrix_for_each_head():
    with pytest.raises(ps.InputError, match="a matrix for each of 2 heads, and the velocity 1 heads"):
        ps.Model(ps.Sphere(2), ps.Attention(1.0), labels(MATRICES))
    layers = ps.Layers([1.0], [ps.Attention(1.0) + ps.Attention(2.0), ps.Attention(1.0)])
    with pytest.raises(ps.InputError, match="2 heads, and the velocity 1 heads"):
        ps.Model(ps.Sphere(2), layers, labels(MATRICES))
    with pytest.raises(ps.InputError, match="or one such matrix for each head"):
        labels(np.ones((2, 5, 4)))
    empty = np.array([MATRICES[0], np.tril(MATRICES[0], -1)])
    density = ps.FiniteVolume(ps.Model(ps.Sphere(2), HEADS[2][0] + HEADS[2][1], labels(empty)), ps.circle(12))
    measure = density.measure(density.initial(ps.Uniform()))
    with pytest.raises(ps.InputError, match="row 0 of the attended laws has no mass"):
        ps.velocity(density.model, 0.0, measure.points[:2], measure)
