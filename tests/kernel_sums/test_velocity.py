from pathlib import Path

import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.kernel_sums import velocity
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Linear, Model, Unnormalised


def tokens(count=130, d=3, labels=1, seed=1):
    rng = np.random.default_rng(seed)
    points = Sphere(d).retract(rng.normal(size=(count, d))) if d > 1 else rng.normal(size=(count, d))
    weights = rng.random((labels, count))
    return TokenMeasure(points, weights / weights.sum(axis=1, keepdims=True))


def matrix(rows, columns, seed):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def of(term, measure, manifold=None, **options):
    manifold = manifold or Sphere(measure.points.shape[1])
    return velocity(Model(manifold, term), 0.0, measure.points, measure, **options)


def test_softmax_from_the_formula():
    # right values: the formula written out with dense arrays
    measure = tokens()
    query, key, value = matrix(2, 3, 1), matrix(2, 3, 2), matrix(3, 3, 3)
    found = of(Attention(3.0, query, key, value, weight=0.7), measure)[0]
    terms = np.exp(3.0 * (measure.points @ query.T) @ (measure.points @ key.T).T) * measure.weights
    mean = 0.7 * (terms @ measure.points) @ value.T / terms.sum(axis=1, keepdims=True)
    expected = mean - np.sum(mean * measure.points, axis=1, keepdims=True) * measure.points
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_unnormalised_and_its_scale():
    measure = tokens()
    terms = np.exp(3.0 * measure.points @ measure.points.T) * measure.weights
    expected = Sphere(3).project(measure.points, terms @ measure.points)
    np.testing.assert_allclose(of(Attention(3.0, normaliser=Unnormalised()), measure)[0], expected, rtol=0, atol=1e-12)
    scaled = of(Attention(3.0, normaliser=Unnormalised(log_scale=3.0)), measure)[0]
    np.testing.assert_allclose(scaled, np.exp(-3.0) * expected, rtol=0, atol=1e-13)
    huge = of(Attention(1e4, normaliser=Unnormalised(log_scale=1e4)), measure)
    assert np.all(np.isfinite(huge))


def test_l2_from_the_distances():
    measure = tokens(d=2)
    query, key = matrix(3, 2, 1), matrix(3, 2, 2)
    difference = (measure.points @ query.T)[:, None] - (measure.points @ key.T)[None]
    terms = np.exp(-2.5 * np.sum(difference**2, axis=2)) * measure.weights
    expected = (terms @ measure.points) / terms.sum(axis=1, keepdims=True)
    found = of(Attention(5.0, query, key, normaliser=L2()), measure, Euclidean(2))[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_infinite_temperature_is_the_mean():
    measure = tokens()
    mean = measure.weights @ measure.points
    expected = Sphere(3).project(measure.points, np.broadcast_to(mean, measure.points.shape))
    np.testing.assert_allclose(of(Attention(0.0), measure)[0], expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(of(Attention(1e-9), measure)[0], expected, rtol=0, atol=1e-8)


def test_zero_temperature_is_the_nearest_token():
    # β = 10⁴ on well separated tokens: each attends to itself, so nothing moves; with Q = −I to its antipode
    points = np.vstack([np.eye(3), -np.eye(3)])
    measure = TokenMeasure(points, np.full((1, 6), 1 / 6))
    np.testing.assert_allclose(of(Attention(1e4), measure, Euclidean(3))[0], points, rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        of(Attention(1e4, query=-np.eye(3)), measure, Euclidean(3))[0], -points, rtol=0, atol=1e-15
    )


def test_two_heads_of_half_the_weight_are_one_and_order_does_not_matter():
    measure = tokens()
    head, other = Attention(4.0), Attention(2.0, value=matrix(3, 3, 1), normaliser=Unnormalised())
    halves = Attention(4.0, weight=0.5) + Attention(4.0, weight=0.5)
    np.testing.assert_allclose(of(halves, measure), of(head, measure), rtol=0, atol=1e-15)
    drift = Linear(matrix(3, 3, 2), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(of(head + other + drift, measure), of(drift + other + head, measure), rtol=0, atol=1e-14)
    total = of(head, measure) + of(other, measure) + of(drift, measure)
    np.testing.assert_allclose(of(head + other + drift, measure), total, rtol=0, atol=1e-14)


@pytest.mark.parametrize("beta", [0.0, 4.0, 1e3])
def test_rotations_commute_with_attention(beta):
    measure = tokens()
    rotation = np.linalg.qr(matrix(3, 3, 5))[0]
    turned = TokenMeasure(measure.points @ rotation.T, measure.weights)
    expected = of(Attention(beta), measure)[0] @ rotation.T
    np.testing.assert_allclose(of(Attention(beta), turned)[0], expected, rtol=0, atol=1e-14 + 1e-15 * beta)


def test_velocity_is_tangent():
    measure = tokens(d=4)
    found = of(Attention(8.0, value=matrix(4, 4, 1)) + Linear(matrix(4, 4, 2)), measure)[0]
    assert np.abs(np.sum(found * measure.points, axis=1)).max() < 1e-14


def test_labels_attend_to_their_mixture():
    # right values: one label at a time, attending to the mixture written out
    measure = tokens(labels=3)
    mixing = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
    model = Model(Sphere(3), Attention(6.0), Labels((0.2, 0.3, 0.5), mixing))
    together = velocity(model, 0.0, measure.points, measure)
    for label in range(3):
        mixture = TokenMeasure(measure.points, (mixing[label] @ measure.weights)[None])
        np.testing.assert_allclose(together[label], of(Attention(6.0), mixture)[0], rtol=0, atol=1e-14)
    chosen = velocity(model, 0.0, measure.points, measure, labels=[2, 0])
    np.testing.assert_allclose(chosen, together[[2, 0]], rtol=0, atol=1e-15)
    assert velocity(model, 0.0, measure.points, measure, labels=[]).shape == (0, 130, 3)


def test_labels_far_apart_at_low_temperature():
    # label 0 lives at e₁ and label 1 at −e₁, each attends to itself: every token sees its own cluster's mean
    rng = np.random.default_rng(1)
    cluster = Sphere(3).retract(np.array([1.0, 0, 0]) + 1e-3 * rng.normal(size=(50, 3)))
    weights = np.zeros((2, 100))
    weights[0, :50] = weights[1, 50:] = 1 / 50
    measure = TokenMeasure(np.vstack([cluster, -cluster]), weights)
    for normaliser in (Attention().normaliser, Unnormalised(log_scale=1e4)):
        model = Model(Sphere(3), Attention(1e4, normaliser=normaliser), Labels((0.5, 0.5), np.eye(2)))
        found = velocity(model, 0.0, measure.points, measure)
        assert np.all(np.isfinite(found))
        for label in range(2):
            alone = TokenMeasure(measure.points, weights[label][None])
            expected = of(Attention(1e4, normaliser=normaliser), alone)[0]
            np.testing.assert_allclose(found[label], expected, rtol=1e-10, atol=1e-11)


def test_a_label_that_attends_to_nothing_is_refused():
    measure = tokens(labels=2)
    model = Model(Sphere(3), Attention(1.0), Labels((0.5, 0.5), np.array([[1.0, 0], [0, 0]])))
    with pytest.raises(InputError, match="row 1 of the attended laws has no mass"):
        velocity(model, 0.0, measure.points, measure)
    assert velocity(model, 0.0, measure.points, measure, labels=[0]).shape == (1, 130, 3)


@pytest.mark.parametrize("ranks", [2, 3])  # with 3 the last has no tokens
def test_ranks_agree_with_one(on_ranks, ranks):
    done = on_ranks(Path(__file__).with_name("mpi_velocity.py"), ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("agree") == ranks
