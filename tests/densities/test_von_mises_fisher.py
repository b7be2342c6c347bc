import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, vonmises_fisher

from pde_solver.densities import VonMisesFisher
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


@pytest.mark.parametrize("dimension", [2, 3, 5])
@pytest.mark.parametrize("kappa", [0.3, 1.0, 30.0])
def test_density_is_scipys(dimension, kappa):
    # right values: scipy.stats.vonmises_fisher, an independent implementation
    points = np.random.default_rng(0).normal(size=(20, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    mean = points[0]
    expected = vonmises_fisher(mean, kappa).pdf(points)
    np.testing.assert_allclose(VonMisesFisher(mean, kappa).density(points, Sphere(dimension)), expected, rtol=1e-12)


def test_any_mean_but_zero_is_scaled():
    assert VonMisesFisher((0, 3, 4), 2.0) == VonMisesFisher((0, 0.6, 0.8), 2.0)
    np.testing.assert_allclose(VonMisesFisher((1e300, 1e300), 1.0).mean, 0.5**0.5)


@pytest.mark.parametrize("dimension", [2, 3, 4, 10])
def test_large_concentration_does_not_overflow(dimension):
    # right value: the Gaussian limit (κ/2π)^{(d−1)/2} at the mean, with relative error (d−1)(d−3) / 8κ + ...
    kappa, sphere = 1e5, Sphere(dimension)
    mean = np.eye(dimension)[0]
    law = VonMisesFisher(mean, kappa)
    limit = (kappa / (2 * np.pi)) ** (sphere.dimension / 2)
    correction = 1 - sphere.dimension * (dimension - 3) / (8 * kappa)
    assert law.density(mean[None], sphere)[0] == pytest.approx(limit / correction, rel=1e-8)
    assert law.density(-mean[None], sphere)[0] == 0
    tokens = law.sample(4000, np.random.default_rng(2), sphere)
    # 2κ(1 − cos) is χ² with d − 1 degrees of freedom in the limit
    assert kstest(kappa * np.sum((tokens - mean) ** 2, axis=1), "chi2", args=(sphere.dimension,)).pvalue > 1e-3


@pytest.mark.parametrize(("dimension", "kappa"), [(2, 0.0), (2, 2.0), (3, 0.0), (3, 1e-8), (4, 5.0), (8, 20.0)])
def test_polar_angle_of_samples(dimension, kappa):
    # right distribution: density of the angle ∝ e^{κ cos a} sin^{d−2} a, integrated by quad
    mean = np.ones(dimension)
    tokens = VonMisesFisher(mean, kappa).sample(3000, np.random.default_rng(4), Sphere(dimension))
    angles = np.arccos(np.clip(tokens @ mean / dimension**0.5, -1, 1))

    def weight(a):
        return np.exp(kappa * (np.cos(a) - 1)) * np.sin(a) ** (dimension - 2)

    total = quad(weight, 0, np.pi)[0]
    assert kstest([quad(weight, 0, a)[0] / total for a in angles], "uniform").pvalue > 1e-3


def test_bad_arguments():
    for bad in ((0, 0), (1,), (1, np.nan), (1, "x")):
        with pytest.raises(InputError, match="VonMisesFisher: mean must be"):
            VonMisesFisher(bad, 1.0)
    for bad in (-1, np.inf, np.nan, "1", True, None):
        with pytest.raises(InputError, match="VonMisesFisher: kappa must be a finite number ≥ 0"):
            VonMisesFisher((0, 1), bad)
    with pytest.raises(InputError, match=r"VonMisesFisher lives on a sphere, but tokens live on R\^2; try Gaussian"):
        VonMisesFisher((0, 1), 1).density(np.zeros((1, 2)), Euclidean(2))
    with pytest.raises(InputError, match=r"vectors are of length 2, but the sphere S\^2 lies in R\^3"):
        VonMisesFisher((0, 1), 1).sample(1, np.random.default_rng(0), Sphere(3))
