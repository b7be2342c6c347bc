import csv
from pathlib import Path

import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere
from pde_solver.models import Attention
from pde_solver.solutions.causal import graphon, response_rate
from pde_solver.solutions.causal_kuramoto import causal_first_moment
from pde_solver.solutions.causal_linear_response import eigenfunction, eigenfunction_growth
from pde_solver.solutions.poisson_kernel_flow import PoissonKernelFlow

TABLE = Path(__file__).parent.parent / "data" / "causal_OA_beta0.csv"


def ramp(s):
    return 0.2 + 0.5 * s


def spiral(s):
    return (0.1 + 0.6 * s) * np.exp(2j * s)


def test_table():
    # right values: causal_OA_beta0.csv, eleven digits; found to 4.3e-12, half a unit of the last digit
    nodes, weights = np.polynomial.legendre.leggauss(20)
    with TABLE.open() as file:
        table = np.array(list(csv.reader(file))[1:], dtype=float)
    assert len(table) == 5
    found = causal_first_moment(table[:, 0], np.r_[0, 0.5, 1, (nodes + 1) / 2], ramp)
    assert found[:, :3] == pytest.approx(table[:, 1:4], rel=0, abs=5.1e-12)
    assert found[:, 3:] @ weights / 2 == pytest.approx(table[:, 4], rel=0, abs=5.1e-12)


@pytest.mark.parametrize("slope", [0.0, 1.0, 5.0, 60.0])
def test_equation(slope):
    """∂ₜα = (m − m̄ α²)/2: five-point differences in t, and m by a Gauss rule of α over earlier labels."""
    t, step, s = 1.5, 0.02, np.array([0.1, 0.7, 1.0])
    before, less, alpha, more, after = causal_first_moment(t + step * np.arange(-2, 3), s, spiral, slope)
    nodes, weights = np.polynomial.legendre.leggauss(150)
    earlier = np.outer(s, (nodes + 1) / 2)
    seen = causal_first_moment(t, earlier.ravel(), spiral, slope).reshape(earlier.shape)
    m = s / 2 * ((graphon(s[:, None], earlier, slope) * seen) @ weights)
    rate = (8 * (more - less) - (after - before)) / (12 * step)
    # the differences are wrong by step⁴ α⁽⁵⁾/30; found 3.1e-10
    assert rate == pytest.approx((m - np.conj(m) * alpha**2) / 2, rel=0, abs=1e-9)


def test_alike_labels():
    # one law for all labels evolves as if nothing were masked; found to 7e-15
    for slope in (0.0, 2.0):
        found = causal_first_moment([0.0, 1.0, 5.0], [0.0, 0.4, 1.0], lambda s: 0.3j, slope)
        flow = PoissonKernelFlow((0.0, 0.3))
        exact = [[1j * flow.w_at(t)[1]] * 3 for t in (0.0, 1.0, 5.0)]
        assert found == pytest.approx(np.array(exact), abs=1e-13)


def test_small_moments_grow_like_eigenfunctions():
    # α = ε q: relative departure O(α²), found 3.1e-9
    slope, epsilon, t, s = 2.0, 1e-5, 3.0, np.array([0.2, 0.9])
    rate = response_rate(Sphere(2), Attention(0.0), 1)
    for power in (0, 1, 2):
        found = causal_first_moment(t, s, lambda u, p=power: epsilon * eigenfunction(u, p, slope), slope)
        exact = epsilon * eigenfunction_growth(rate * t, power) * eigenfunction(s, power, slope)
        assert found == pytest.approx(exact, rel=1e-8, abs=0)


def test_shapes():
    assert causal_first_moment(1.0, 0.5, ramp).shape == ()
    assert causal_first_moment([0.0, 1.0], 0.5, ramp).shape == (2,)
    assert causal_first_moment(1.0, [0.5, 0.6, 1.0], spiral).shape == (3,)
    assert causal_first_moment(1.0, 0.5, ramp).dtype == float


def test_bad_arguments():
    with pytest.raises(InputError, match="initial must be a smooth function"):
        causal_first_moment(1.0, 0.5, lambda s: np.where(s < 0.4, 0.1, 0.2))
    with pytest.raises(InputError, match="t must be depths ≥ 0 in ascending order"):
        causal_first_moment([1.0, 0.5], 0.5, ramp)
    with pytest.raises(InputError, match=r"s must be labels in \[0, 1\], found 1.5"):
        causal_first_moment(1.0, 1.5, ramp)
    with pytest.raises(InputError, match=r"one \|α₀\| < 1 for each label"):
        causal_first_moment(1.0, 0.5, lambda s: 1.0 + s)
