"""Each rival of the time-to-accuracy benchmark solves a small problem right."""

import sys
from pathlib import Path

import numpy as np
import pytest

import pde_solver as ps

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from rivals import independent_tokens, published_loop, reference, spherical_harmonics, weighted_characteristics
from rivals.refined_sphere import refined_sphere

BETA = 2.0
SPHERE = ps.Sphere(3)
MODEL = ps.Model(SPHERE, ps.Attention(beta=BETA))
LAW = ps.Mixture([ps.VonMisesFisher((1, 0, 0.3), 2.0), ps.VonMisesFisher((-0.3, 0.9, 0.4), 3.0)], [0.6, 0.4])
STOP = 0.8


@pytest.fixture(scope="module")
def exact():
    return reference.solve(weighted_characteristics.placed(LAW, 26), BETA, STOP, 0.05)


def distance(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


def test_two_tokens_by_the_published_loop():
    # right value: the angle θ between two tokens obeys dθ/dt = −2 sin θ / (e^{β(1 − cos θ)} + 1)
    angle, step = 2.0, 1e-3
    tokens = np.array([[1.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]])
    moved = published_loop.follow(tokens, BETA, 1.0, step)
    for _ in range(1000):
        angle -= step * 2 * np.sin(angle) / (np.exp(BETA * (1 - np.cos(angle))) + 1)
    assert np.arccos(moved[0] @ moved[1]) == pytest.approx(angle, abs=1e-6)


def test_the_published_loop_is_of_first_order():
    start = independent_tokens.drawn(LAW, 50, 0).points
    fine = published_loop.follow(start, BETA, 0.8, 0.0125)
    errors = [np.abs(published_loop.follow(start, BETA, 0.8, dt) - fine).max() for dt in (0.1, 0.05)]
    assert 2.1 < errors[0] / errors[1] < 2.6  # 7/3, as the finest has an error too


def test_weighted_characteristics(exact):
    start = weighted_characteristics.placed(LAW, 10)
    moved, density = weighted_characteristics.follow_with_density(MODEL, start, LAW.density(start.points, SPHERE), STOP)
    assert distance(reference.moments(moved), exact.moments_at(STOP)) < 6e-5
    assert moved.weights[0] @ np.abs(1 - exact.density(LAW, STOP, moved.points) / density) < 1.5e-6
    without = weighted_characteristics.follow(MODEL, start, STOP)
    np.testing.assert_array_equal(without.points, moved.points)


def test_weighted_characteristics_are_of_fourth_order_in_time():
    start = weighted_characteristics.placed(LAW, 8)
    density = LAW.density(start.points, SPHERE)
    (fine, exact), *coarse = (
        weighted_characteristics.follow_with_density(MODEL, start, density, 1.6, step) for step in (0.025, 0.4, 0.2)
    )
    assert 11 < np.abs(coarse[0][0].points - fine.points).max() / np.abs(coarse[1][0].points - fine.points).max() < 22
    assert 9 < np.abs(coarse[0][1] - exact).max() / np.abs(coarse[1][1] - exact).max() < 25


def test_divergence_of_tokens_at_one_place():
    # right value: X = P_x e for any β, and div P_x e = −2⟨x, e⟩
    x = weighted_characteristics.placed(LAW, 5).points
    source = np.array([[0.0, 0.6, 0.8]])
    found = _divergence_for(x, source)
    np.testing.assert_allclose(found, -2 * x @ source[0], atol=2e-6)


def _divergence_for(x, source):
    points = np.concatenate([x, source])
    weights = np.zeros((1, len(points)))
    weights[0, -1] = 1.0
    return weighted_characteristics.divergence(MODEL, 0.0, points, weights)[:-1]


@pytest.mark.parametrize(("degree", "of_moments", "of_density"), [(8, 5e-5, 1e-2), (16, 8e-8, 3e-6)])
def test_spherical_harmonics(exact, degree, of_moments, of_density):
    harmonics = spherical_harmonics.Harmonics(degree, 3 * (degree + 1) // 2)
    density = LAW.density(harmonics.points, SPHERE)
    outcome = spherical_harmonics.solve(harmonics, density, BETA, STOP, 0.05)
    assert not outcome.broken
    assert distance(reference.real_moments(outcome.coefficients), exact.moments_at(STOP)) < of_moments
    found = harmonics.values(outcome.coefficients[..., None]).ravel()
    assert harmonics.weights @ np.abs(found - exact.density(LAW, STOP, harmonics.points)) < of_density


def test_spherical_harmonics_say_that_they_blow_up():
    harmonics = spherical_harmonics.Harmonics(6, 10)
    density = LAW.density(harmonics.points, SPHERE)
    outcome = spherical_harmonics.solve(harmonics, density, 4.0, 10.0, 0.1)
    assert outcome.broken
    assert outcome.t < 10.0


def test_gradients_and_weak_divergence_are_adjoint():
    # right value: −∫ ∇f·∇Ȳ_lm = Δ's eigenvalue −l(l + 1) times f_lm
    harmonics = spherical_harmonics.Harmonics(7, 9)
    coefficients = harmonics.coefficients(LAW.density(harmonics.points, SPHERE).reshape(1, 9, 18))
    again = harmonics.coefficients(harmonics.values(coefficients))
    np.testing.assert_allclose(again, coefficients, atol=1e-14)
    degrees = np.arange(8.0)[None, :, None]
    found = harmonics.weak_divergence(*harmonics.gradients(coefficients))
    np.testing.assert_allclose(found, degrees * (degrees + 1) * coefficients, atol=1e-13)


def test_independent_tokens(exact):
    tokens = weighted_characteristics.follow(MODEL, independent_tokens.drawn(LAW, 2000, 1), STOP)
    assert distance(reference.moments(tokens), exact.moments_at(STOP)) < 0.15
    grid = ps.sphere_quadrature(SPHERE, 20)
    density = exact.density(LAW, STOP, grid.points)
    best = independent_tokens.best_estimate_error(tokens.points, grid.points, grid.weights[0], density)
    assert best < 0.2
    for kappa in (5.0, 500.0):
        estimate = independent_tokens.estimated_density(tokens.points, kappa, grid.points)
        assert best < grid.weights[0] @ np.abs(estimate - density)


def test_kernel_estimate_of_one_token_is_its_bump():
    mean = SPHERE.retract(np.array([[1.0, -2.0, 0.5]]))
    points = ps.sphere_quadrature(SPHERE, 6).points
    expected = ps.VonMisesFisher(tuple(mean[0]), 30.0).density(points, SPHERE)
    np.testing.assert_allclose(independent_tokens.estimated_density(mean, 30.0, points), expected, rtol=1e-12)


def test_reference_keeps_mass_and_does_not_depend_on_its_tokens(exact):
    grid = ps.sphere_quadrature(SPHERE, 30)
    density = exact.density(LAW, STOP, grid.points)
    assert grid.weights[0] @ density == pytest.approx(1, abs=1e-6)
    other = reference.solve(weighted_characteristics.placed(LAW, 20), BETA, STOP, 0.1)
    assert distance(other.moments_at(STOP), exact.moments_at(STOP)) < 1e-6


def test_moments_of_tokens_and_of_coefficients_agree():
    harmonics = spherical_harmonics.Harmonics(4, 30)
    density = LAW.density(harmonics.points, SPHERE)
    coefficients = harmonics.coefficients(density.reshape(1, 30, 60))[..., 0]
    tokens = ps.TokenMeasure(harmonics.points, (density * harmonics.weights)[None])
    np.testing.assert_allclose(reference.real_moments(coefficients), reference.moments(tokens), atol=1e-14)


def test_refined_sphere_holds_a_narrow_bump():
    law = ps.VonMisesFisher((0.2, 0.5, -1.0), 1e4)
    tokens = independent_tokens.drawn(law, 4000, 0)
    sphere = refined_sphere(lambda points: law.density(points, SPHERE), tokens, coarsest=2, finest=12, share=2e-3)
    assert sphere.measures.sum() == pytest.approx(4 * np.pi, abs=1e-12)
    assert sphere.measures @ sphere.values == pytest.approx(1, abs=1e-2)
    mesh = ps.FiniteVolume(MODEL, ps.icosphere(2))
    points, volumes, _ = mesh.sampled_density(mesh.initial(ps.Uniform()))
    # right value: a bump that holds no room lies under no uniform density, |f − exact| has mass 1 + 1
    assert sphere.error_of_cells(2, points, np.full(len(points), 1 / (4 * np.pi))) == pytest.approx(2, abs=1e-2)
    # in the cell that holds it all but the height 1/|c| is missing
    nearest = np.argmax(points @ SPHERE.retract(np.array([0.2, 0.5, -1.0])))
    means = np.zeros(len(points))
    means[nearest] = 1 / volumes[nearest]
    kept = sphere.measures @ np.minimum(sphere.values, 1 / volumes[nearest])
    assert sphere.error_of_cells(2, points, means) == pytest.approx(2 - 2 * kept, abs=1e-2)
