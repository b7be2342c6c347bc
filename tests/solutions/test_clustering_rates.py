import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import roots_gegenbauer

from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import Attention, Unnormalised
from pde_solver.solutions.clustering_rates import clustering_rate

TABLE = Path(__file__).parent.parent / "data" / "dirac_rates.csv"
USA = Unnormalised()


def mean_gaps(d, beta, normalised, depths, *, full_support):
    """E[1 − cos a] at these depths for a law of the polar angle a alone, density 1 + cos(a)/2 times that of the uniform.

    Tokens stand at equal steps of y = ln tan(a/2), where cos a = −tanh y, sin a = 1/cosh y: both ends are resolved.
    y' = a'/sin a = ∫ e^{β⟨x, y⟩}(cos a sin b c / sin a − cos b), c the cosine of the azimuth, of which the odd part is
    taken out by hand, as it is divided by sin a.
    """
    if full_support:
        y = np.arange(-12.0, 40.0, 0.2) if d == 2 else np.arange(-8.0, 20.0, 0.25)
        sizes = np.ones_like(y)
    else:
        y, sizes = np.polynomial.legendre.leggauss(40)
        y = 8.0 * y - 7.8  # up to a = 1.77, a cap
    weights = sizes * (1 - np.tanh(y) / 2) / np.cosh(y) ** (d - 1)
    weights /= weights.sum()
    azimuth, share = (np.ones(1), np.ones(1)) if d == 2 else roots_gegenbauer(10, (d - 3) / 2)
    if d == 3:
        azimuth, share = np.polynomial.chebyshev.chebgauss(10)
    azimuth, share = azimuth[azimuth > 0], share[azimuth > 0] / share[azimuth > 0].sum()

    def move(_t, y):
        cosine, sine = -np.tanh(y), 1 / np.cosh(y)
        parts = beta * np.multiply.outer(np.outer(sine, sine), azimuth)
        even = np.cosh(parts) @ share
        odd = np.sinh(parts) @ (share * azimuth)
        kernel = np.exp(beta * np.outer(cosine, cosine)) * weights
        total = (kernel * (cosine[:, None] * odd * sine / sine[:, None] - even * cosine)).sum(1)
        return total / (kernel * even).sum(1) if normalised else total

    path = solve_ivp(move, (0, depths[-1]), y, method="DOP853", rtol=1e-10, atol=1e-10, t_eval=depths)
    return np.array([weights @ (2 / (1 + np.exp(-2 * column))) for column in path.y.T])


def test_table():
    # right values: dirac_rates.csv, measured at finite depth: the rate of the cap to 1e-6, of full support to 5e-3
    with TABLE.open() as file:
        table = list(csv.reader(file))[1:]
    assert len(table) == 8
    for d, model, beta, support, measured, _, predicted in table:
        head = Attention(float(beta)) if model == "SA" else Attention(float(beta), normaliser=USA)
        rate, power = clustering_rate(Sphere(int(d)), head, full_support=support == "full")
        assert power == 0
        assert rate == pytest.approx(float(predicted), rel=0, abs=5e-9)
        assert rate == pytest.approx(float(measured), rel=2e-6 if support == "cap" else 5e-3, abs=0)


@pytest.mark.parametrize(
    ("d", "beta", "normalised", "full_support", "depths", "tolerance"),
    [
        (2, 2.0, True, True, (20.0, 22.0), 4e-6),
        (4, 1.0, True, True, (10.0, 12.0), 1.5e-4),
        (5, 1.0, True, True, (10.0, 12.0), 2e-6),
        (2, 0.5, False, True, (24.0, 26.0), 1e-6),
        (3, 0.5, False, True, (14.0, 16.0), 4e-6),
        (2, 2.0, True, False, (8.0, 9.0), 5e-6),
        (3, 1.0, False, False, (3.0, 3.5), 3e-5),
    ],
)
def test_tokens_that_cluster(d, beta, normalised, full_support, depths, tolerance):
    # right values: half the rate at which E[1 − cos a] decays, as W₂² is between 2 and π²/2 times as large; the tolerances
    # are about twice the corrections found at these depths, which decay: for d = 4 they were 6.7e-4 two units earlier
    head = Attention(beta) if normalised else Attention(beta, normaliser=USA)
    first, second = mean_gaps(d, beta, normalised, depths, full_support=full_support)
    measured = np.log(first / second) / (depths[1] - depths[0]) / 2
    rate, power = clustering_rate(Sphere(d), head, full_support=full_support)
    assert power == 0
    assert rate == pytest.approx(measured, rel=tolerance, abs=0)


def test_resonance():
    # softmax on S²: E[1 − cos a] = (A t + B) e^{−2t}, so that e^{2t} E grows by equal amounts in equal depths
    assert clustering_rate(Sphere(3), Attention(1.0), full_support=True) == (1.0, 0.5)
    depths = np.array([8.0, 10.0, 12.0])
    steps = np.diff(mean_gaps(3, 1.0, True, depths, full_support=True) * np.exp(2 * depths))
    assert steps[0] > 0
    # measured: 1 − 1.3e-3, and 1 − 0.025 two units earlier
    assert steps[1] / steps[0] == pytest.approx(1, rel=3e-3)


def test_scales():
    # twice the weight is half the depth, e^c rescales it
    double = Attention(2.0, value=2 * np.eye(2))
    assert clustering_rate(Sphere(2), double, full_support=True) == (1.0, 0.0)
    scaled = Attention(2.0, key=0.5 * np.eye(2), normaliser=Unnormalised(log_scale=3.0))
    assert clustering_rate(Sphere(2), scaled, full_support=False)[0] == pytest.approx(np.exp(-2), rel=1e-15)
    assert clustering_rate(Sphere(2), scaled, full_support=True)[0] == pytest.approx(np.exp(-4) / 2, rel=1e-15)


def test_bad_arguments():
    with pytest.raises(InputError, match="clustering_rate lives on a sphere"):
        clustering_rate(Euclidean(2), Attention(1.0), full_support=True)
    for head in (Attention(1.0, value=-np.eye(2)), Attention(1.0, query=-np.eye(2)), Attention(1.0, weight=0.0)):
        with pytest.raises(InputError, match="known where attention draws all tokens together"):
            clustering_rate(Sphere(2), head, full_support=True)
