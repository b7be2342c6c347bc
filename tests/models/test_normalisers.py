import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.models import L2, Attention, Softmax, Unnormalised


def test_l2_bias_from_the_distance():
    # −β|Qx−Ky|²/2 less its term of x alone, −β|Qx|²/2, is the score that the sums see
    rng = np.random.default_rng(1)
    points, query, key = rng.normal(size=(6, 3)), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    head = Attention(3.0, query, key, normaliser=L2())
    keys = head.keys(points)
    scores = head.queries(points) @ keys.T + head.key_bias(keys)
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            expected = -1.5 * np.sum((query @ x - key @ y) ** 2) + 1.5 * np.sum((query @ x) ** 2)
            assert scores[i, j] == pytest.approx(expected, abs=1e-12)


def test_only_l2_has_a_bias():
    assert Softmax().key_bias(2.0, np.ones((3, 2))) is None
    assert Unnormalised(1.0).key_bias(2.0, np.ones((3, 2))) is None
    assert Softmax().normalised
    assert L2().normalised
    assert not Unnormalised().normalised


@pytest.mark.parametrize("scale", [np.nan, np.inf])
def test_scale_must_be_finite(scale):
    with pytest.raises(InputError, match=f"Unnormalised: log_scale must be finite, found {scale}."):
        Unnormalised(scale)
