import csv
from pathlib import Path

import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, velocity
from pde_solver.manifolds import Euclidean
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Model
from pde_solver.solutions.gaussian_layers import attention_layers_log_variance, residual_layers_log_variance

TABLE = Path(__file__).parent.parent / "data" / "discrete_gaussian_layers.csv"


def test_table():
    # right values: discrete_gaussian_layers.csv, thirteen digits
    with TABLE.open() as file:
        table = [[float(entry) for entry in row] for row in list(csv.reader(file))[1:]]
    assert len(table) == 18
    for gain, variance, layer, attention, closed_form, residual in table:
        head = Attention(1.0, value=[[gain]])
        found = np.exp(attention_layers_log_variance(head, variance, int(layer))[-1])
        assert found == pytest.approx(attention, rel=5e-13, abs=0)
        assert found == pytest.approx(closed_form, rel=5e-13, abs=0)
        found = np.exp(residual_layers_log_variance(head, variance, int(layer))[-1])
        assert found == pytest.approx(residual, rel=5e-13, abs=0)


@pytest.mark.parametrize("step", [None, 0.3])
@pytest.mark.parametrize(
    "head",
    [
        Attention(0.5, query=[[1.0], [2.0]], key=[[0.4], [0.3]], value=[[-1.2]], weight=0.8),
        Attention(1.5, value=[[0.9]]),
    ],
)
def test_tokens_through_layers(head, step):
    """Right values: tokens at the nodes of a Gauss–Hermite rule, moved by the package's own velocity, measured 2e-14."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights, mean, variance = weights / weights.sum(), 0.4, 0.6
    points = mean + np.sqrt(variance) * nodes[:, None]
    variances = [variance]
    for _ in range(2):
        measure = TokenMeasure(points, weights[None])
        x = velocity(Model(Euclidean(1), head), 0.0, points, measure, evaluation=Evaluation(method="dense"))[0]
        points = x if step is None else points + step * x
        variances.append(weights @ (points[:, 0] - weights @ points[:, 0]) ** 2)
    if step is None:
        found = attention_layers_log_variance(head, variance, 2)
    else:
        found = residual_layers_log_variance(head, variance, 2, step)
    np.testing.assert_allclose(np.exp(found), variances, rtol=1e-13)


def test_beyond_the_floats():
    collapse = attention_layers_log_variance(Attention(1.0), 0.8, 12)
    assert collapse[-1] == pytest.approx(3**12 * np.log(0.8), rel=1e-13, abs=0)
    assert np.all(np.isfinite(collapse))
    growth = residual_layers_log_variance(Attention(1.0), 0.8, 30)
    # s_{l+1} ≈ s_l³
    np.testing.assert_allclose(growth[21:] / growth[20:-1], 3, rtol=1e-12)
    assert np.isfinite(growth[-1])
    # repulsion with h|g|s₀ far above one: it grows as well
    wild = residual_layers_log_variance(Attention(1.0, value=[[-1.0]]), 1e3, 8)
    assert wild[1] == pytest.approx(np.log(1e3) + 2 * np.log(999), rel=1e-14, abs=0)
    assert np.isfinite(wild[-1])


def test_no_collapse_with_residuals():
    # g < 0: s_l → 1/(2 h |g| l), up to ln(l)/l: measured 1.0e-3 at l = 10⁴
    layers, step = 10**4, 0.5
    found = np.exp(residual_layers_log_variance(Attention(2.0, value=[[-1.0]]), 0.3, layers, step)[-1])
    assert found == pytest.approx(1 / (2 * step * 2 * layers), rel=2e-3, abs=0)


def test_all_tokens_coincide():
    # h g s₀ = −1 and g = 0
    assert list(residual_layers_log_variance(Attention(1.0, value=[[-1.0]]), 1.0, 2)) == [0, -np.inf, -np.inf]
    assert list(attention_layers_log_variance(Attention(0.0), 1.0, 2)) == [0, -np.inf, -np.inf]
    assert list(residual_layers_log_variance(Attention(0.0), 1.0, 2)) == [0, 0, 0]
    assert len(attention_layers_log_variance(Attention(1.0), 1.0, 0)) == 1


def test_bad_arguments():
    with pytest.raises(InputError, match="known for a single softmax head only"):
        attention_layers_log_variance(Attention(1.0, normaliser=L2()), 1.0, 3)
    with pytest.raises(InputError, match="value must be 1 × 1"):
        residual_layers_log_variance(Attention(1.0, value=np.eye(2)), 1.0, 3)
    with pytest.raises(InputError, match="variance must be > 0, found 0"):
        attention_layers_log_variance(Attention(1.0), 0.0, 3)
    with pytest.raises(InputError, match="layers must be ≥ 0, found -1"):
        attention_layers_log_variance(Attention(1.0), 1.0, -1)
    with pytest.raises(InputError, match="step must be > 0, found 0"):
        residual_layers_log_variance(Attention(1.0), 1.0, 3, 0.0)
