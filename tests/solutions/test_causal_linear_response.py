import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ive
from scipy.stats import ncx2

from pde_solver.errors import InputError
from pde_solver.solutions.causal import distance, graphon, response
from pde_solver.solutions.causal_linear_response import eigenfunction, eigenfunction_growth, step_response

TABLE = Path(__file__).parent.parent / "data" / "causal_linear_response.csv"


def test_table():
    # right values: causal_linear_response.csv, 13 digits; found to half a unit of the last digit
    with TABLE.open() as file:
        table = list(csv.reader(file))[1:]
    assert len(table) == 200
    for data, *numbers in table:
        slope, c, s, exact = map(float, numbers)
        if data.startswith("q=P(s)^"):
            power = float(data.removeprefix("q=P(s)^"))
            found = eigenfunction_growth(c, power) * eigenfunction(s, power, slope)
        else:
            found = step_response(c, s, float(data.removeprefix("q=1_(s<=").removesuffix(")")), slope)
        assert float(found) == pytest.approx(exact, rel=5.1e-13, abs=0)


@pytest.mark.parametrize("slope", [0.0, 1e-9, 1.0, 5.0])
@pytest.mark.parametrize("power", [-0.5, 0.0, 1.0, 2.5])
def test_eigenfunctions(slope, power):
    """∫₀^s k_λ(s, s′) q(s′) ds′ = q(s)/(p + 1), and ∫₀^s g q ds′ = (e^{c/(p+1)} − 1) q(s): quadrature in log s′."""
    s, c = 0.8, 1.5

    def integral(kernel):
        def integrand(x):
            source = s * np.exp(-x)
            return float(kernel(source) * eigenfunction(source, power, slope)) * source

        # the slowest decays like e^{−x/2 + 2√(cx)}: below 1e-16 of the whole at x = 150
        return sum(quad(integrand, a, b, epsabs=0, epsrel=1e-13)[0] for a, b in ((0, 5), (5, 30), (30, 150)))

    value = float(eigenfunction(s, power, slope))
    average = integral(lambda source: graphon(s, source, slope))
    assert average == pytest.approx(value / (power + 1), rel=1e-14, abs=0)  # 1.1e-15
    grown = integral(lambda source: response(c, s, source, slope))
    assert grown == pytest.approx((float(eigenfunction_growth(c, power)) - 1) * value, rel=1e-14, abs=0)  # 1.4e-15


@pytest.mark.parametrize("c", [1e-6, 0.5, 8.0, 50.0])
@pytest.mark.parametrize(
    ("s", "edge", "slope"), [(1.0, 0.999, 0.0), (0.9, 0.3, 1.0), (1.0, 1e-3, 5.0), (1.0, 1e-12, 0.0)]
)
def test_step_is_an_integral_of_responses(c, s, edge, slope):
    """∫₀^{s₀} g(c; s, u) du by quadrature in log u."""

    def integrand(x):
        u = edge * np.exp(-x)
        return float(response(c, s, u, slope)) * u

    ends = ((0, 5), (5, 15), (15, 30), (30, 60), (60, 120), (120, 280))
    exact = sum(quad(integrand, a, b, epsabs=0, epsrel=1e-13, limit=200)[0] for a, b in ends)
    assert float(step_response(c, s, edge, slope)) == pytest.approx(exact, rel=2e-14, abs=0)  # 3.8e-15


def test_step_is_a_marcum_function():
    # the formula of the docstring; Q₁(a, b) is the tail of a non-central χ² law; found 2.1e-15
    c, s, edge = np.array([0.2, 1.0, 6.0])[:, None], np.array([0.3, 0.6, 1.0]), 0.2
    far = distance(s, edge, 1.0)
    marcum = ncx2.sf(2 * far, 2, 2 * c)
    bessel = np.exp(-((np.sqrt(c) - np.sqrt(far)) ** 2)) * ive(0, 2 * np.sqrt(c * far))
    assert step_response(c, s, edge, 1.0) == pytest.approx(np.exp(c) * (marcum - bessel), rel=2e-14, abs=0)


def test_ends_of_a_step():
    c = np.array([0.0, 1e-6, 1.0, 50.0])
    assert np.all(step_response(c, 0.4, 0.4) == np.exp(c))
    assert np.all(step_response(c, 0.1, 0.4, 3.0) == np.exp(c))
    # just beyond the edge only the past is seen: e^c − 1
    assert step_response(c, 0.4 * (1 + 1e-15), 0.4) == pytest.approx(np.expm1(c), rel=1e-14, abs=0)
    assert step_response(c[:, None], np.linspace(0.1, 1, 5), 0.4).shape == (4, 5)


def test_bad_arguments():
    with pytest.raises(InputError, match=r"eigenfunction_growth: power must be > −1, .* found -1"):
        eigenfunction_growth(1.0, -1.0)
    with pytest.raises(InputError, match="step_response: c = a_l t must be ≥ 0"):
        step_response(-1.0, 1.0, 0.5)
    with pytest.raises(InputError, match="is a position in"):
        step_response(1.0, 1.0, 0.0)
