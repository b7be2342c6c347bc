import numpy as np
import pytest

from pde_solver.densities import Expression, Mixture, Uniform, VonMisesFisher
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


def test_weights_are_scaled_and_default_to_equal():
    laws = [Uniform(), VonMisesFisher((0, 1), 1.0)]
    assert Mixture(laws, [1, 3]).weights == (0.25, 0.75)
    assert Mixture(laws).weights == (0.5, 0.5)


def test_share_of_tokens():
    # binomial: 0.25 ± 4 √(0.25 · 0.75 / n)
    law = Mixture([VonMisesFisher((0, 1), 1e4), VonMisesFisher((0, -1), 1e4)], [1, 3])
    tokens = law.sample(10_000, np.random.default_rng(0), Sphere(2))
    assert abs(np.mean(tokens[:, 1] > 0) - 0.25) < 4 * (0.25 * 0.75 / 10_000) ** 0.5


def test_bad_arguments():
    bump = VonMisesFisher((0, 1), 1.0)
    for bad in ([], [bump, 3]):
        with pytest.raises(InputError, match="Mixture: laws must be a list of at least one law"):
            Mixture(bad)
    for bad in ([1], [1, -1], [0, 0], [1, np.nan]):
        with pytest.raises(InputError, match="Mixture: "):
            Mixture([bump, bump], bad)


def test_a_law_known_up_to_a_factor_is_refused():
    with pytest.raises(InputError, match=r'Expression\("1 \+ x"\) is known only up to a factor.*as one Expression'):
        Mixture([Expression("1 + x"), Uniform()]).density(np.eye(2), Sphere(2))
    with pytest.raises(InputError, match=r"Uniform\(\) is known only up to a factor on R\^2"):
        Mixture([Uniform()]).sample(1, np.random.default_rng(0), Euclidean(2))
