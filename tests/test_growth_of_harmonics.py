"""A small harmonic on the uniform law grows at the rate of the linearised equation.

Exact rates: `tests/data/growth_rates.csv` (derived for this project from the Funk–Hecke formula).
"""

import csv
from pathlib import Path

import numpy as np
import pytest

import pde_solver as ps

ROWS = list(csv.DictReader((Path(__file__).parent / "data" / "growth_rates.csv").open()))


def exact_rate(dimension, beta, degree, unnormalised):
    for row in ROWS:
        if (int(row["d"]), float(row["beta"]), int(row["l"])) == (dimension, beta, degree):
            column = "lambda_USA_kappa0" if unnormalised else next(name for name in row if name.startswith("lambda_SA"))
            return float(row[column])
    raise KeyError((dimension, beta, degree))


def harmonic(points, degree):
    """cos(lθ) on the circle, P_l(z) on S²."""
    if points.shape[1] == 2:
        return np.cos(degree * np.arctan2(points[:, 1], points[:, 0]))
    return np.polynomial.legendre.legval(points[:, 2], np.eye(degree + 1)[degree])


def measured_rate(discretisation, degree, rate, amplitude=1e-4):
    """log of the growth of ∫ Y f over a depth in which it grows by about e^{0.3}; ±amplitude takes second order out."""
    stop = 0.3 / rate
    growth = []
    for sign in (1, -1):
        law = ps.HarmonicPerturbation(degree, sign * amplitude)
        simulation = ps.Simulation(discretisation, law, stop, scheme=ps.SSP(4, cfl=0.5))
        record = simulation.record(lambda s: s.law.integrate(lambda x: harmonic(x, degree))[0], at=[0.0, stop])
        simulation.run()
        growth.append(record.values)
    odd = growth[0] - growth[1]
    return np.log(odd[1] / odd[0]) / stop


@pytest.fixture(scope="module")
def circle():
    return ps.circle(128, geometry_degree=3)


@pytest.fixture(scope="module")
def sphere():
    return ps.icosphere(3, geometry_degree=2)


@pytest.mark.parametrize("unnormalised", [False, True], ids=["SA", "USA"])
@pytest.mark.parametrize(("beta", "degree"), [(1.0, 1), (1.0, 3), (4.0, 1), (4.0, 2), (4.0, 5), (16.0, 4)])
def test_circle(circle, beta, degree, unnormalised):
    normaliser = ps.Unnormalised() if unnormalised else ps.Softmax()
    model = ps.Model(ps.Sphere(2), ps.Attention(beta, normaliser=normaliser))
    exact = exact_rate(2, beta, degree, unnormalised)
    found = measured_rate(ps.DiscontinuousGalerkin(model, circle, degree=3), degree, exact)
    assert found == pytest.approx(exact, rel=2e-8)


# degree 6 and up are seeded by the icosahedron's own symmetry
@pytest.mark.parametrize("unnormalised", [False, True], ids=["SA", "USA"])
@pytest.mark.parametrize(("beta", "degree"), [(1.0, 1), (1.0, 2), (4.0, 2), (4.0, 4)])
def test_sphere(sphere, beta, degree, unnormalised):
    normaliser = ps.Unnormalised() if unnormalised else ps.Softmax()
    model = ps.Model(ps.Sphere(3), ps.Attention(beta, normaliser=normaliser))
    exact = exact_rate(3, beta, degree, unnormalised)
    found = measured_rate(ps.DiscontinuousGalerkin(model, sphere, degree=2), degree, exact)
    assert found == pytest.approx(exact, rel=3e-5)
