import numpy as np
import pytest
from scipy.stats import kstest

from pde_solver.densities.rejection import sample_by_rejection
from pde_solver.errors import InputError


@pytest.mark.parametrize("envelope", [2.0, 10.0, 0.1])
def test_draws_follow_the_density_whatever_the_envelope(envelope):
    # density 2x on [0, 1] has the distribution function x²; an envelope that is too low must be noticed
    rng = np.random.default_rng(0)
    draws = sample_by_rejection(5000, rng, lambda n: rng.random((n, 1)), lambda x: 2 * x[:, 0], envelope, "here")
    assert draws.shape == (5000, 1)
    assert kstest(draws[:, 0] ** 2, "uniform").pvalue > 1e-3


def test_hopeless_rejection_ends():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"here is so peaked that fewer than one draw in 10,000 would be kept"):
        sample_by_rejection(10, rng, lambda n: rng.random((n, 1)), lambda x: 1.0 * (x[:, 0] < 1e-9), 1.0, "here")
