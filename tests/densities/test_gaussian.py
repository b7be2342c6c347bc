import numpy as np
import pytest
from scipy.stats import multivariate_normal

from pde_solver.densities import Gaussian
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


def test_density_is_scipys():
    # right values: scipy.stats.multivariate_normal
    mean, covariance = [0.5, -0.3, 1.0], [[0.6, 0.1, 0], [0.1, 0.3, -0.1], [0, -0.1, 0.4]]
    points = np.random.default_rng(0).normal(size=(20, 3))
    expected = multivariate_normal(mean, covariance).pdf(points)
    np.testing.assert_allclose(Gaussian(mean, covariance).density(points, Euclidean(3)), expected, rtol=1e-12)


def test_numbers_stand_for_vectors_and_multiples_of_the_identity():
    assert Gaussian(0.5, 2) == Gaussian([0.5], [[2]])
    assert Gaussian((0, 1), 2) == Gaussian((0, 1), [[2, 0], [0, 2]])


def test_bad_arguments():
    with pytest.raises(InputError, match="must be symmetric"):
        Gaussian((0, 1), [[1, 0.2], [0.1, 1]])
    with pytest.raises(InputError, match="must be positive definite, found the eigenvalue -1"):
        Gaussian((0, 1), [[1, 2], [2, 1]])
    for bad in ([[1, 0]], [[1, 0], [0, np.nan]], "x", [[1], [2, 3]]):
        with pytest.raises(InputError, match="Gaussian: covariance must be a"):
            Gaussian((0, 1), bad)
    with pytest.raises(InputError, match=r"Gaussian lives on R\^2, but tokens live on the circle; try VonMisesFisher"):
        Gaussian((0, 1)).density(np.eye(2), Sphere(2))
    with pytest.raises(InputError, match=r"Gaussian: vectors are of length 2, but tokens live on R\^3"):
        Gaussian((0, 1)).sample(1, np.random.default_rng(0), Euclidean(3))
