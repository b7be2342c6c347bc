import csv
from fractions import Fraction
from math import comb, factorial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebpts2, chebval
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.special import ive

from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import Attention, Linear, Unnormalised
from pde_solver.solutions.causal import (
    correlation_profile,
    distance,
    equal_time_correlation,
    graphon,
    log_response_profile,
    response,
    response_profile,
    response_rate,
    two_time_correlation,
)

DATA = Path(__file__).parent.parent / "data"
C = (1e-6, 1e-3, 0.3, 2.0, 11.0, 50.0)
SOURCES = (1e-12, 1e-6, 0.01, 0.4, 0.9, 0.999)
SLOPES = (0.0, 1e-9, 1.0, 5.0)


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.reader(file))[1:]


def exact_volume(s, slope):
    """P(s) in high precision."""
    s, slope = mpmath.mpf(s), mpmath.mpf(slope)
    return mpmath.expm1(slope * s) / slope if slope else s


def exact_profile(c, y):
    """h(c, Y) in high precision."""
    return c * mpmath.hyp0f1(2, c * y)


def exact_correlation_profile(c, c_source, y):
    """Σ_m c^m/m! [z^{m−1}] a, a = exp(c′/(1−z) + zY), in high precision; (1−z)² a' = (c′ + Y(1−z)²) a."""
    c, c_source, y = mpmath.mpf(c), mpmath.mpf(c_source), mpmath.mpf(y)
    a, total, term = [mpmath.exp(c_source)], mpmath.mpf(0), mpmath.mpf(1)
    for n in range(int(6 * c + 6 * mpmath.sqrt(c * max(c_source, y))) + 80):
        term = term * c / (n + 1)
        total += term * a[n]
        one, two = (a[n - k] if n >= k else 0 for k in (1, 2))
        a.append((2 * n * a[n] - (n - 1) * one + c_source * a[n] + y * (a[n] - 2 * one + two)) / (n + 1))
    return total


@pytest.mark.parametrize("slope", SLOPES)
def test_response_against_mpmath(slope):
    # right values: mpmath at 40 digits; largest relative error over the grid 5.3e-15
    s = 0.999
    with mpmath.workdps(40):
        for source in (*SOURCES[:-1], 0.99899):
            last, first = exact_volume(s, slope), exact_volume(source, slope)
            weight, y = mpmath.exp(mpmath.mpf(slope) * source) / last, mpmath.log(last / first)
            assert float(graphon(s, source, slope)) == pytest.approx(float(weight), rel=2e-15, abs=0)
            assert float(distance(s, source, slope)) == pytest.approx(float(y), rel=4e-15, abs=0)
            for c in C:
                exact = float(weight * exact_profile(mpmath.mpf(c), y))
                assert float(response(c, s, source, slope)) == pytest.approx(exact, rel=2e-14, abs=0)


@pytest.mark.parametrize("slope", SLOPES)
def test_correlations_against_mpmath(slope):
    # right values: positive series in mpmath at 40 digits; largest relative error over the grid 2.6e-14
    s = 1.0
    with mpmath.workdps(40):
        for source in SOURCES:
            last, first = exact_volume(s, slope), exact_volume(source, slope)
            y = mpmath.log(last / first)
            for c, c_source in (*((c, c) for c in C), (3.0, 1e-6), (1e-6, 50.0), (20.0, 0.0), (7.0, 4.0)):
                exact = exact_correlation_profile(c, c_source, y) / last
                if slope:
                    tilted = exact_correlation_profile(mpmath.mpf(c) / 2, mpmath.mpf(c_source) / 2, 2 * y)
                    exact += 2 * mpmath.mpf(slope) * first / last * tilted
                found = float(two_time_correlation(c, c_source, s, source, slope))
                assert found == pytest.approx(float(exact), rel=1e-13, abs=0)


def test_tables():
    # right values: 15 digits and 13 digits; found to 3.1e-15 and to half a unit of the last digit
    for slope, c, source, exact in (map(float, row) for row in rows("causal_response_kernel.csv")):
        assert float(response(c, 1.0, source, slope)) == pytest.approx(exact, rel=5e-15, abs=0)
    table = rows("causal_correlations.csv")
    assert len(table) == 1152
    functions = {"retrieval_g": response, "equaltime_G": equal_time_correlation}
    for d, beta, model, degree, t, c, quantity, slope, source, exact in table:
        head = Attention(float(beta), normaliser=Unnormalised()) if model == "USA" else Attention(float(beta))
        found = response_rate(Sphere(int(d)), head, int(degree)) * float(t)
        assert found == pytest.approx(float(c), rel=2e-14, abs=0)  # 1.1e-14
        value = float(functions[quantity](found, 1.0, float(source), float(slope)))
        assert value == pytest.approx(float(exact), rel=5.1e-13, abs=0)


@pytest.mark.parametrize("slope", [0.0, 1.0, 5.0])
def test_response_solves_its_equation(slope):
    """∂_c R = k(s, s′) + ∫_{s′}^s k(s, u) R(u) du, at Chebyshev points u of [s′, 1], by one matrix exponential."""
    n, source, c = 40, 0.3, 2.5
    points = source + (1 - source) * (chebpts2(n) + 1) / 2
    nodes, weights = np.polynomial.legendre.leggauss(n)
    values = np.linalg.inv(chebval(chebpts2(n), np.eye(n)).T)  # from values to coefficients
    volterra = np.zeros((n, n))
    for i, s in enumerate(points):
        u = source + (s - source) * (nodes + 1) / 2
        basis = chebval(2 * (u - source) / (1 - source) - 1, np.eye(n)).T @ values
        volterra[i] = (weights * (s - source) / 2 * graphon(s, u, slope)) @ basis
    augmented = np.zeros((n + 1, n + 1))
    augmented[:n, :n], augmented[:n, n] = volterra, graphon(points, source, slope)
    found = expm(c * augmented)[:n, n]
    assert response(c, points, source, slope) == pytest.approx(found, rel=3e-14, abs=0)  # 5.6e-15


def test_profile_of_correlations_solves_its_equation():
    """The equation of G for λ = 0 in powers of c, exactly; B is G s, Y = log(s/s′).

    ∂_c B = 1 + ∫₀^∞ e^{−y} B + ∫₀^Y B + ∫_Y^∞ e^{Y−y} B takes polynomials in Y to polynomials in Y.
    """
    order, polynomials = 40, [[Fraction(0)]]
    for power in range(1, order):
        old = polynomials[-1]
        new = [Fraction(0)] * (power + 1)
        new[0] += (power == 1) + sum(factorial(j) * a for j, a in enumerate(old))
        for j, a in enumerate(old):
            new[j + 1] += a / (j + 1)
            for k in range(j + 1):
                new[j - k] += a * comb(j, k) * factorial(k)
        polynomials.append([a / power for a in new])
    for c in (0.1, 1.0, 2.0):
        for y in (0.0, 0.5, 3.0):
            exact = sum(float(a) * y**j * c**m for m, p in enumerate(polynomials) for j, a in enumerate(p))
            assert float(correlation_profile(c, c, y)) == pytest.approx(exact, rel=1e-14, abs=0)  # 1.0e-15


@pytest.mark.parametrize(("c", "c_source"), [(0.4, 0.4), (2.0, 2.0), (3.0, 0.5), (0.5, 3.0)])
@pytest.mark.parametrize("slope", [0.0, 1e-9, 1.0, 5.0])
def test_correlations_are_products_of_responses(c, c_source, slope):
    """I + G = e^{cK} (e^{c′K})ᵀ: G = g(s, s′) + ∫₀^{s′} g(c; s, u) g(c′; s′, u) du, by quadrature in log u."""
    s, source = 0.8, 0.35

    def product(x):
        u = source * np.exp(-x)
        return float(response(c, s, u, slope) * response(c_source, source, u, slope)) * u

    # u g g decays like e^{−x + 4√(cx)}: below 1e-17 of the whole at x = 120
    parts = [quad(product, a, b, epsabs=0, epsrel=1e-13)[0] for a, b in ((0, 5), (5, 20), (20, 50), (50, 120))]
    exact = float(response(c, s, source, slope)) + sum(parts)
    assert float(two_time_correlation(c, c_source, s, source, slope)) == pytest.approx(
        exact, rel=1e-14, abs=0
    )  # 1.2e-15
    assert two_time_correlation(c_source, c, source, s, slope) == two_time_correlation(c, c_source, s, source, slope)


@pytest.mark.parametrize("c", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("slope", [0.0, 5.0])
def test_sum_rule(c, slope):
    """∫₀^s g ds′ = e^c − 1, by quadrature in log s′; the integrand is below 1e-17 of the whole at the end."""

    def integrand(x):
        source = 0.7 * np.exp(-x)
        return float(response(c, 0.7, source, slope)) * source

    parts = [quad(integrand, a, b, epsabs=0, epsrel=1e-13)[0] for a, b in ((0, 10), (10, 30), (30, 60), (60, 150))]
    assert sum(parts) == pytest.approx(np.expm1(c), rel=1e-14, abs=0)  # 7.4e-16


def test_limits():
    c = np.array([0.0, 1e-6, 1.0, 50.0])
    assert response(c, 0.5, 0.5, 2.0) == pytest.approx(c * graphon(0.5, 0.5, 2.0), rel=1e-15, abs=0)
    diagonal = c / 0.5 * np.exp(4 * c) * (ive(0, 2 * c) - ive(1, 2 * c))
    # I₀ − I₁ cancels to 1/(4c) of itself, ive is right to a few ulp; found 3.8e-14
    assert equal_time_correlation(c, 0.5, 0.5) == pytest.approx(diagonal, rel=1e-13, abs=0)
    small = 1e-9
    assert float(equal_time_correlation(small, 0.9, 0.2, 1.0)) == pytest.approx(
        small * float(graphon(0.9, 0.2, 1.0)), rel=2e-8, abs=0
    )
    assert two_time_correlation(c, 0.0, 0.9, 0.2, 1.0) == pytest.approx(response(c, 0.9, 0.2, 1.0), rel=2e-14, abs=0)
    assert np.all(response(c, 0.2, 0.9, 1.0) == 0)
    assert np.all(two_time_correlation(0.0, c, 0.9, 0.2, 1.0) == 0)
    # steep slopes: k → λ e^{−λ(s−s′)}, Y → λ(s − s′)
    assert float(graphon(1.0, 0.999, 1e4)) == pytest.approx(1e4 * np.exp(-1e4 * 1e-3), rel=1e-11)
    assert float(distance(1.0, 0.5, 1e4)) == 5e3
    assert np.isfinite(equal_time_correlation(1.0, 1.0, 0.999, 1e4))
    assert float(distance(0.2, 0.9, 1.0)) == -float(distance(0.9, 0.2, 1.0))


def test_response_profile():
    # repulsion: h(−c, Y) in mpmath, relative to its envelope
    with mpmath.workdps(60):
        for c in (-1e-6, -1.0, -50.0):
            for y in (0.0, 1e-10, 0.5, 28.0):
                exact = float(exact_profile(mpmath.mpf(c), mpmath.mpf(y)))
                envelope = abs(c) / (1 + (abs(c) * y) ** 0.75)
                assert abs(float(response_profile(c, y)) - exact) < 1e-14 * envelope
        for c in (1e-300, 1e-6, 1.0, 50.0, 1e4):
            for y in (0.0, 1e-300, 1e-3, 28.0, 600.0):
                exact = float(mpmath.log(exact_profile(mpmath.mpf(c), mpmath.mpf(y))))
                assert float(log_response_profile(c, y)) == pytest.approx(exact, rel=1e-14, abs=1e-14)
    assert log_response_profile(0.0, 1.0) == -np.inf


def test_shapes():
    c, s, source = np.ones((4, 1, 1)), np.full((3, 1), 0.9), np.linspace(0.1, 0.8, 5)
    for found in (response(c, s, source, 1.0), two_time_correlation(c, 2.0, s, source, 1.0)):
        assert found.shape == (4, 3, 5)
    assert equal_time_correlation(0.5, 1.0, 0.3).shape == ()


def test_response_rates():
    # circle, unnormalised: n² I_n(β)/β; heads add up; β → 0: (d − 1)/d in degree one
    usa = Attention(2.0, normaliser=Unnormalised())
    for n in (1, 2, 5):
        assert response_rate(Sphere(2), usa, n) == pytest.approx(n**2 * ive(n, 2.0) * np.exp(2) / 2, rel=1e-14, abs=0)
    both = usa + Attention(1.0, weight=-0.3)
    parts = response_rate(Sphere(3), usa, 2) - 0.3 * response_rate(Sphere(3), Attention(1.0), 2)
    assert response_rate(Sphere(3), both, 2) == pytest.approx(parts, rel=1e-15, abs=0)
    for d in (2, 3, 5):
        assert response_rate(Sphere(d), Attention(0.0), 1) == pytest.approx((d - 1) / d, rel=1e-15, abs=0)


def test_bad_arguments():
    with pytest.raises(
        InputError, match=r"response_rate: known for Attention heads and sums of them only, found Linear"
    ):
        response_rate(Sphere(2), Attention(1.0) + Linear(np.eye(2)), 1)
    with pytest.raises(InputError, match="lives on a sphere"):
        response_rate(Euclidean(2), Attention(1.0), 1)
    with pytest.raises(InputError, match=r"graphon: source is a position in \(0, 1\], found 0"):
        response(1.0, 1.0, [0.5, 0.0])
    with pytest.raises(InputError, match=r"s is a position in \(0, 1\], found nan"):
        distance(np.nan, 0.5)
    with pytest.raises(InputError, match="slope must be a finite number ≥ 0, found -1"):
        graphon(1.0, 0.5, -1.0)
    with pytest.raises(InputError, match="two_time_correlation: c = a_l t must be ≥ 0, found -2"):
        equal_time_correlation(-2.0, 1.0, 0.5)
