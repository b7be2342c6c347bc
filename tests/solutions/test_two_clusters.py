import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import exp1, expi

from pde_solver.errors import InputError
from pde_solver.kernel_sums import velocity
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Model, Unnormalised
from pde_solver.solutions.two_clusters import two_cluster_rate, two_cluster_time

TABLE = Path(__file__).parent.parent / "data" / "two_cluster_time.csv"
USA = Unnormalised()


def test_table():
    # right values: two_cluster_time.csv, twelve digits
    with TABLE.open() as file:
        table = [[float(entry) for entry in row] for row in list(csv.reader(file))[1:]]
    assert len(table) == 9
    for beta, start, softmax, unnormalised in table:
        assert two_cluster_time(start, 0.1, Attention(beta)) == pytest.approx(softmax, rel=5e-12, abs=0)
        usa = Attention(beta, normaliser=USA)
        assert two_cluster_time(start, 0.1, usa) == pytest.approx(unnormalised, rel=5e-12, abs=0)


@pytest.mark.parametrize(
    ("beta", "start", "end"), [(0.5, 2.0, 0.1), (9.0, 3.0, 0.1), (9.0, 3.1, 1e-6), (20.0, 2.5, 0.3), (100.0, 3.0, 1.0)]
)
def test_times_by_exponential_integrals(beta, start, end):
    # right values: with x = −cos θ, ∫ e^{βx}/(1 − x²) dx = [e^β E₁(β(1−x)) + e^{−β} Ei(β(1+x))]/2
    def primitive(angle):
        far, near = 2 * np.cos(angle / 2) ** 2, 2 * np.sin(angle / 2) ** 2
        return (np.exp(beta) * exp1(beta * far) + np.exp(-beta) * expi(beta * near)) / 2

    integral = primitive(start) - primitive(end)
    free = np.log(np.tan(start / 2) / np.tan(end / 2))
    # measured: 1e-13
    softmax = (np.exp(beta) * integral + free) / 2
    assert two_cluster_time(start, end, Attention(beta)) == pytest.approx(softmax, rel=1e-12, abs=0)
    scaled = Attention(beta, normaliser=Unnormalised(log_scale=2.0), weight=0.5)
    assert two_cluster_time(start, end, scaled) == pytest.approx(2 * np.exp(2) * integral, rel=1e-12, abs=0)


HEADS = [
    Attention(2.0),
    Attention(2.0, query=-np.eye(2)),
    Attention(1.5, value=-0.7 * np.eye(2)),
    Attention(1.5, key=2 * np.eye(2), normaliser=Unnormalised(log_scale=1.0), weight=0.4),
]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("angle", [0.01, 1.0, 3.0])
def test_rate_of_two_tokens(head, angle):
    # right values: the package's own velocity of two tokens
    points = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    x = velocity(Model(Sphere(2), head), 0.0, points, TokenMeasure(points, np.full((1, 2), 0.5)))[0]
    turning = points[:, 0] * x[:, 1] - points[:, 1] * x[:, 0]
    assert two_cluster_rate(angle, head) == pytest.approx(turning[1] - turning[0], rel=1e-12, abs=0)


@pytest.mark.parametrize("head", HEADS)
def test_time_is_that_of_the_rate(head):
    # right values: the angle of the differential equation after that time, measured to 1e-11
    start, end = (2.5, 0.2) if two_cluster_rate(1.0, head) < 0 else (0.2, 2.5)
    t = two_cluster_time(start, end, head)
    path = solve_ivp(
        lambda _t, angle: [two_cluster_rate(angle[0], head)], (0, t), [start], method="DOP853", rtol=1e-12, atol=1e-13
    )
    assert path.y[0, -1] == pytest.approx(end, rel=1e-10, abs=0)


def test_limits():
    assert two_cluster_time(1.0, 1.0, Attention(4.0)) == 0
    assert two_cluster_time(3.0, 0.1, Attention(1e3)) == np.inf
    assert two_cluster_rate(3.0, Attention(1e3)) == 0
    # without β it is sin θ alone
    expected = np.log(np.tan(1.5) / np.tan(0.05))
    assert two_cluster_time(3.0, 0.1, Attention(0.0)) == pytest.approx(expected, rel=1e-13, abs=0)


def test_bad_arguments():
    with pytest.raises(InputError, match=r"angle must be in \[0, π\], found 4"):
        two_cluster_rate(4.0, Attention(1.0))
    with pytest.raises(InputError, match=r"start and end must be in \(0, π\), where clusters move, found 1 and 0"):
        two_cluster_time(1.0, 0.0, Attention(1.0))
    with pytest.raises(InputError, match="the angle shrinks, so that it never comes from 1 to 2"):
        two_cluster_time(1.0, 2.0, Attention(1.0))
    with pytest.raises(InputError, match="the angle grows, so that it never comes from 2 to 1"):
        two_cluster_time(2.0, 1.0, Attention(1.0, value=-np.eye(2)))
    with pytest.raises(InputError, match="the angle stays"):
        two_cluster_time(2.0, 1.0, Attention(1.0, weight=0.0))
