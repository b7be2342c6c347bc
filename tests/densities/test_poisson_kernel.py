import numpy as np
import pytest

from pde_solver.densities import PoissonKernel
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


def test_fourier_coefficients_on_the_circle():
    # the Poisson kernel of the disc: ∫ e^{ikθ} f dθ = (|w| e^{i arg w})^k
    angles = 2 * np.pi * np.arange(256) / 256
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    mass = PoissonKernel((0.3, -0.4)).density(points, Sphere(2)) * 2 * np.pi / 256
    for k in range(5):
        assert mass @ np.exp(1j * k * angles) == pytest.approx((0.3 - 0.4j) ** k, abs=1e-13)


def test_samples_of_a_sharp_kernel():
    # on the circle, E e^{iθ} = w, with E |e^{iθ} − w|² = 1 − |w|²
    w = np.array([0.999, 0.0])
    tokens = PoissonKernel(tuple(w)).sample(20_000, np.random.default_rng(0), Sphere(2))
    assert np.linalg.norm(tokens.mean(axis=0) - w) < 4 * ((1 - w @ w) / 20_000) ** 0.5


def test_bad_arguments():
    for bad in ((1, 0), (0.8, 0.8), (0.5,)):
        with pytest.raises(InputError, match="at least two numbers with length < 1"):
            PoissonKernel(bad)
    with pytest.raises(InputError, match="w must be a vector of finite numbers"):
        PoissonKernel((0.1, np.nan))
    with pytest.raises(InputError, match="lives on a sphere"):
        PoissonKernel((0.1, 0)).density(np.eye(2), Euclidean(2))
