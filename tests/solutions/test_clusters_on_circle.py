import csv
from pathlib import Path

import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, velocity
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Model, Softmax, Unnormalised
from pde_solver.solutions.clusters_on_circle import inter_cluster_rates, intra_cluster_rate

TABLE = Path(__file__).parent.parent / "data" / "p_cluster_stability.csv"


def head(beta, normaliser):
    """Negative β by a query −I."""
    return Attention(abs(beta), query=None if beta >= 0 else -np.eye(2), normaliser=normaliser)


def test_table():
    # right values: p_cluster_stability.csv, thirteen digits; the largest and smallest are over k = 1, …, p − 1
    with TABLE.open() as file:
        table = [[float(entry) for entry in row] for row in list(csv.reader(file))[1:]]
    assert len(table) == 16
    for p, beta, largest, smallest, intra, _, softmax_largest, softmax_intra in table:
        clusters, usa, sa = int(p), head(beta, Unnormalised()), head(beta, Softmax())
        rates = inter_cluster_rates(clusters, usa)
        assert rates[0] == 0
        assert max(rates[1:]) == pytest.approx(largest, rel=5e-13, abs=0)
        assert min(rates[1:]) == pytest.approx(smallest, rel=5e-13, abs=0)
        assert intra_cluster_rate(clusters, usa) == pytest.approx(intra, rel=5e-13, abs=0)
        assert max(inter_cluster_rates(clusters, sa)[1:]) == pytest.approx(softmax_largest, rel=5e-13, abs=0)
        assert intra_cluster_rate(clusters, sa) == pytest.approx(softmax_intra, rel=5e-13, abs=0)


@pytest.mark.parametrize("clusters", [1, 2, 3, 6])
@pytest.mark.parametrize(
    "attention",
    [
        Attention(3.0),
        Attention(1.5, query=-np.eye(2), value=-0.6 * np.eye(2)),
        Attention(2.0, key=0.5 * np.eye(2), normaliser=Unnormalised(log_scale=1.0), weight=2.0),
    ],
)
def test_displaced_clusters(clusters, attention):
    """Right values: central differences of the package's own velocity, ε = 1e-4; error O(ε²), measured 2e-7."""
    model, step = Model(Sphere(2), attention), 1e-4
    at_rest = 2 * np.pi * np.arange(clusters) / clusters

    def turning(angles, targets):
        sources, points = (np.column_stack([np.cos(a), np.sin(a)]) for a in (angles, targets))
        measure = TokenMeasure(sources, np.full((1, clusters), 1 / clusters))
        x = velocity(model, 0.0, points, measure, evaluation=Evaluation(method="dense"))[0]
        return points[:, 0] * x[:, 1] - points[:, 1] * x[:, 0]

    for k, rate in enumerate(inter_cluster_rates(clusters, attention)):
        for mode in (np.cos(k * at_rest), np.sin(k * at_rest)):
            ahead, behind = (at_rest + sign * step * mode for sign in (1, -1))
            growth = (turning(ahead, ahead) - turning(behind, behind)) / (2 * step)
            np.testing.assert_allclose(growth, rate * mode, rtol=0, atol=2e-6)
    spread = (turning(at_rest, at_rest + step) - turning(at_rest, at_rest - step)) / (2 * step)
    np.testing.assert_allclose(spread, intra_cluster_rate(clusters, attention), rtol=0, atol=2e-6)


def test_closed_forms():
    # p = 2: e^{−b} and 2/(e^{2b} + 1); one cluster: −1 for softmax, −e^b else
    for beta in (-2.0, 0.0, 3.0):
        assert inter_cluster_rates(2, head(beta, Unnormalised()))[1] == pytest.approx(np.exp(-beta), rel=1e-14, abs=0)
        expected = 2 / (np.exp(2 * beta) + 1)
        assert inter_cluster_rates(2, head(beta, Softmax()))[1] == pytest.approx(expected, rel=1e-14, abs=0)
        assert intra_cluster_rate(1, head(beta, Softmax())) == pytest.approx(-1, rel=1e-15, abs=0)
        assert intra_cluster_rate(1, head(beta, Unnormalised())) == pytest.approx(-np.exp(beta), rel=1e-15, abs=0)
    # three clusters attract where b < −2/3 and tokens of a cluster come together
    assert inter_cluster_rates(3, head(-2 / 3, Unnormalised()))[1] == pytest.approx(0, abs=1e-15)
    assert inter_cluster_rates(3, head(-0.66, Unnormalised()))[1] > 0
    assert inter_cluster_rates(3, head(-0.68, Unnormalised()))[1] < 0
    assert intra_cluster_rate(3, head(-0.68, Unnormalised())) < 0
    # large β: nothing overflows
    assert np.all(np.isfinite(inter_cluster_rates(5, Attention(1e4))))
    assert intra_cluster_rate(5, Attention(1e4)) == pytest.approx(-1, rel=1e-15, abs=0)


def test_bad_arguments():
    with pytest.raises(InputError, match="there must be at least one cluster, found 0"):
        inter_cluster_rates(0, Attention(1.0))
    with pytest.raises(InputError, match=r"clusters must be a whole number, found 2\.5"):
        intra_cluster_rate(2.5, Attention(1.0))
    with pytest.raises(InputError, match="where Q and K are multiples of the identity only"):
        intra_cluster_rate(2, Attention(1.0, query=[[0, 1], [-1, 0]]))
