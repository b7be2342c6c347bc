"""What every law must do: integrate to one, and draw tokens that follow its density."""

import numpy as np
import pytest

from pde_solver.densities import (
    Ball,
    Box,
    Cap,
    Expression,
    Gaussian,
    HarmonicPerturbation,
    Mixture,
    PoissonKernel,
    Uniform,
    UniformOn,
    VonMisesFisher,
    box_quadrature,
    sphere_quadrature,
)
from pde_solver.manifolds import Euclidean, Sphere

CIRCLE, S2, S3 = Sphere(2), Sphere(3), Sphere(4)
COUNT = 20_000

SMOOTH = [
    (Uniform(), CIRCLE),
    (Uniform(), S2),
    (Uniform(), S3),
    (VonMisesFisher((1, 2), 0.0), CIRCLE),
    (VonMisesFisher((1, 2), 4.0), CIRCLE),
    (VonMisesFisher((1, -2, 2), 0.5), S2),
    (VonMisesFisher((1, -2, 2), 40.0), S2),
    (VonMisesFisher((1, 0, 2, -1), 3.0), S3),
    (PoissonKernel((0.3, -0.4)), CIRCLE),
    (PoissonKernel((0.3, -0.4, 0.1)), S2),
    (PoissonKernel((0.1, 0.2, -0.3, 0.3)), S3),
    (HarmonicPerturbation(3, 0.7), CIRCLE),
    (HarmonicPerturbation(2, -1.0, order=-1), CIRCLE),
    (HarmonicPerturbation(2, 1.0), S2),
    (HarmonicPerturbation(3, 0.8, order=2), S2),
    (HarmonicPerturbation(3, 0.8, order=-3), S2),
    (HarmonicPerturbation(2, -0.9), S3),
    (Mixture([Uniform(), VonMisesFisher((0, 0, 1), 9.0), VonMisesFisher((1, 1, 0), 5.0)], [1, 2, 5]), S2),
    (Gaussian((0.3, -0.2), [[0.5, 0.2], [0.2, 0.3]]), Euclidean(2)),
    (Gaussian(0.4, 0.3), Euclidean(1)),
    (Mixture([Gaussian(-1, 0.16), Gaussian(1, 0.25)], [0.4, 0.6]), Euclidean(1)),
]
KINKED = [
    (UniformOn(Cap((1, 1), 0.8)), CIRCLE),
    (UniformOn(Cap((1, 1, 1), 2.5)), S2),
    (UniformOn(Cap((1, 1, 1, -1), 1.0)), S3),
    (UniformOn(Box((-1, 0), (1, 0.5))), Euclidean(2)),
    (UniformOn(Ball((0.5, -0.5), 1.3)), Euclidean(2)),
    (Expression("1 + 0.9*cos(2*theta)"), CIRCLE),
    (Expression("exp(2*z)*(1 + 0.5*sin(phi))"), S2),
    (Expression("where(x4 > 0, 1, 0.2)"), S3),
    (Expression("exp(-r**2)*(x > 0)", box=((-2, -1), (2, 2))), Euclidean(2)),
]


def surface(manifold, orders=(400, 100, 30)):
    """Points (m, D) and weights (m,) of the surface measure, fine enough for the laws above."""
    if isinstance(manifold, Sphere):
        rule = sphere_quadrature(manifold, orders[manifold.dimension - 1])
    else:
        rule = box_quadrature(
            [-7] * manifold.dimension, [7] * manifold.dimension, 140 if manifold.dimension == 1 else 56
        )
    return rule.points, rule.weights[0]


@pytest.mark.parametrize(("law", "manifold"), SMOOTH, ids=str)
def test_density_integrates_to_one(law, manifold):
    points, weights = surface(manifold)
    density = law.density(points, manifold)
    assert density.shape == (len(points),)
    assert density.min() >= 0
    assert weights @ density == pytest.approx(1, abs=2e-12)
    assert law.is_normalised(manifold)


@pytest.mark.parametrize(("law", "manifold"), SMOOTH + KINKED, ids=str)
def test_samples_follow_the_density(law, manifold):
    # right values: moments and distribution functions of the density itself, by quadrature
    points, weights = surface(manifold, (4000, 200, 40))
    mass = weights * law.density(points, manifold)
    mass /= mass.sum()
    tokens = law.sample(COUNT, np.random.default_rng(5), manifold)
    assert tokens.shape == (COUNT, manifold.ambient_dimension)
    if isinstance(manifold, Sphere):
        np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1, atol=1e-14)

    # a quadrature resolves a jump of the density to about its spacing only
    slack = 2e-3 if (law, manifold) in KINKED else 1e-12
    for i in range(manifold.ambient_dimension):
        for exponent in (1, 2):
            exact = mass @ points[:, i] ** exponent
            deviation = np.sqrt(mass @ points[:, i] ** (2 * exponent) - exact**2)
            assert abs(np.mean(tokens[:, i] ** exponent) - exact) < 4 * deviation / COUNT**0.5 + slack
    for i in range(manifold.ambient_dimension - 1):
        exact = mass @ (points[:, i] * points[:, i + 1])
        deviation = np.sqrt(mass @ (points[:, i] * points[:, i + 1]) ** 2 - exact**2)
        assert abs(np.mean(tokens[:, i] * tokens[:, i + 1]) - exact) < 4 * deviation / COUNT**0.5 + slack

    direction = np.array([0.31, -0.83, 0.57, 0.44])[: manifold.ambient_dimension]
    distance = kolmogorov_smirnov(tokens @ direction, points @ direction, mass)
    assert distance < 2.23 / COUNT**0.5 + 4e-3  # 2.23: one in ten thousand; 4e-3: steps of the quadrature


def kolmogorov_smirnov(samples, points, mass):
    """The largest difference of the distribution functions of samples and of weighted points."""
    order = np.argsort(points)
    cumulative = np.cumsum(mass[order])
    grid = points[order][:: max(1, len(order) // 2000)]
    exact = cumulative[np.searchsorted(points[order], grid, side="right") - 1]
    return np.max(np.abs(np.searchsorted(np.sort(samples), grid, side="right") / len(samples) - exact))


@pytest.mark.parametrize(("law", "manifold"), SMOOTH + KINKED, ids=str)
def test_same_seed_same_tokens(law, manifold):
    first = law.sample(50, np.random.default_rng(3), manifold)
    np.random.seed(0)  # noqa: NPY002  the global state must not matter
    np.testing.assert_array_equal(first, law.sample(50, np.random.default_rng(3), manifold))
    assert law.sample(0, np.random.default_rng(3), manifold).shape == (0, manifold.ambient_dimension)


@pytest.mark.parametrize(("law", "manifold"), SMOOTH + KINKED, ids=str)
def test_repr_can_be_read_back(law, manifold):
    assert eval(repr(law)) == law


def test_points_off_the_sphere_count_as_their_projections():
    # quadrature points of flat cells lie inside the sphere
    points = sphere_quadrature(S2, 6).points
    for law in (VonMisesFisher((0, 0, 1), 5.0), PoissonKernel((0.2, 0, 0.3)), HarmonicPerturbation(2, 0.5, 1)):
        np.testing.assert_allclose(law.density(0.97 * points, S2), law.density(points, S2), rtol=1e-12)
