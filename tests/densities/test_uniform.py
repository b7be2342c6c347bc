import numpy as np
import pytest

from pde_solver.densities import Ball, Box, Cap, Uniform, UniformOn
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


def test_no_uniform_law_on_all_of_space():
    with pytest.raises(InputError, match=r"no uniform law on all of R\^2.*UniformOn\(Box\(lower, upper\)\)"):
        Uniform().sample(3, np.random.default_rng(0), Euclidean(2))
    # on the mesh of a box it is the constant that the mesh rescales
    np.testing.assert_array_equal(Uniform().density(np.zeros((3, 2)), Euclidean(2)), 1.0)
    assert not Uniform().is_normalised(Euclidean(2))


def test_uniform_on_needs_a_region_that_the_manifold_can_hold():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"region must be Cap.*found \(0, 1\)"):
        UniformOn((0, 1))
    with pytest.raises(InputError, match=r"Box lives on R\^2, but tokens live on the circle; try Cap"):
        UniformOn(Box((0, 0), (1, 1))).sample(3, rng, Sphere(2))
    with pytest.raises(InputError, match=r"Ball lives on R\^2, but tokens live on the circle; try Cap"):
        UniformOn(Ball((0, 0), 1)).density(np.zeros((1, 2)), Sphere(2))
    with pytest.raises(InputError, match=r"Cap lives on a sphere, but tokens live on R\^2; try Box or Ball"):
        UniformOn(Cap((0, 1), 1)).sample(3, rng, Euclidean(2))
    with pytest.raises(InputError, match=r"Cap: vectors are of length 2, but the sphere S\^2 lies in R\^3"):
        UniformOn(Cap((0, 1), 1)).sample(3, rng, Sphere(3))
