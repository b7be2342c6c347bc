import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.special import eval_chebyt, eval_chebyu, eval_gegenbauer

from pde_solver.densities import HarmonicPerturbation, sphere_quadrature
from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, velocity
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Model, Unnormalised
from pde_solver.solutions import critical_noise, growth_rate, kernel_coefficient

DATA = Path(__file__).parent.parent / "data"


def rows(name):
    with (DATA / name).open() as file:
        return [[float(entry) for entry in row] for row in list(csv.reader(file))[1:]]


def test_growth_rates():
    # right values: growth_rates.csv, 16 digits
    table = rows("growth_rates.csv")
    assert len(table) == 168
    for d, beta, degree, coefficient, unnormalised, softmax in table:
        sphere, degree = Sphere(int(d)), int(degree)
        assert kernel_coefficient(sphere, beta, degree) * np.exp(beta) == pytest.approx(coefficient, rel=1e-13, abs=0)
        assert growth_rate(sphere, Attention(beta), degree) == pytest.approx(softmax, rel=1e-13, abs=0)
        usa = Attention(beta, normaliser=Unnormalised())
        assert growth_rate(sphere, usa, degree) == pytest.approx(unnormalised, rel=1e-13, abs=0)


def test_critical_noise():
    # right values: critical_noise.csv, 16 digits; there degree one neither grows nor decays, and all others decay
    table = rows("critical_noise.csv")
    assert len(table) == 24
    for d, beta, unnormalised, softmax, *_ in table:
        sphere, usa = Sphere(int(d)), Attention(beta, normaliser=Unnormalised())
        assert critical_noise(sphere, usa) == pytest.approx(unnormalised, rel=1e-13, abs=0)
        assert critical_noise(sphere, Attention(beta)) == pytest.approx(softmax, rel=1e-13, abs=0)
        assert growth_rate(sphere, usa, 1, diffusion=unnormalised) == pytest.approx(0, abs=1e-13 * unnormalised)
        assert all(growth_rate(sphere, usa, degree, diffusion=unnormalised) < 0 for degree in range(2, 9))


@pytest.mark.parametrize("normaliser", ["softmax", "unnormalised", "L2"])
@pytest.mark.parametrize(("d", "degree", "beta"), [(2, 3, 4.0), (3, 2, 0.4), (3, 4, 3.0), (4, 2, 2.0)])
def test_growth_of_a_small_perturbation(normaliser, d, degree, beta):
    """Right values: d/dt ∫ Y f = ∫ ⟨∇Y, X[f]⟩ f with the package's own velocity; f = (1 + εY) / |S|, error O(ε²)."""
    sphere = Sphere(d)
    head = {
        "softmax": Attention(beta, weight=0.7),
        "unnormalised": Attention(beta, value=0.7 * np.eye(d), normaliser=Unnormalised(log_scale=1.0)),
        "L2": Attention(beta, weight=0.7, normaliser=L2()),
    }[normaliser]
    rule, epsilon = sphere_quadrature(sphere, {2: 40, 3: 24, 4: 10}[d]), 1e-6
    law = HarmonicPerturbation(degree, epsilon)
    measure = TokenMeasure(rule.points, rule.weights * law.density(rule.points, sphere))
    # the perturbation is a millionth: the velocity must be known relative to itself
    x = velocity(Model(sphere, head), 0.0, rule.points, measure, evaluation=Evaluation(method="dense"))[0]
    # the harmonic is a polynomial of one coordinate up to a factor: T_l' = l U_{l−1}, (C_l^ν)' = 2ν C_{l−1}^{ν+1}
    axis, nu = (0, 0.0) if d == 2 else (d - 1, d / 2 - 1)
    height = rule.points[:, axis]
    harmonic = eval_chebyt(degree, height) if d == 2 else eval_gegenbauer(degree, nu, height)
    slope = degree * eval_chebyu(degree - 1, height) if d == 2 else 2 * nu * eval_gegenbauer(degree - 1, nu + 1, height)
    rate = measure.weights[0] @ (slope * x[:, axis]) / (measure.weights[0] @ harmonic)
    assert rate == pytest.approx(growth_rate(sphere, head, degree), rel=1e-5, abs=0)


def test_limits_of_beta():
    # β → 0: c_1/β → 1/d and c_l/β → 0 else; large β: no overflow, and SA rates l(l+d−2)/β · (1 − …) stay positive
    for d in (2, 3, 7, 200):
        sphere = Sphere(d)
        assert critical_noise(sphere, Attention(0.0)) == pytest.approx(1 / d, rel=1e-14, abs=0)
        assert growth_rate(sphere, Attention(0.0), 2) == 0
        below, above = growth_rate(sphere, Attention(1 - 1e-9), 2), growth_rate(sphere, Attention(1.0), 2)
        assert below == pytest.approx(above, rel=1e-8, abs=0)
    assert 0 < critical_noise(Sphere(3), Attention(1e4)) == pytest.approx(1e-4, rel=2e-4, abs=0)
    scaled = Attention(1e4, normaliser=Unnormalised(log_scale=1e4))
    assert np.isfinite(growth_rate(Sphere(3), scaled, 3))


def test_repulsive_values_damp():
    head = Attention(2.0, value=-np.eye(3))
    assert growth_rate(Sphere(3), head, 1) < 0
    assert critical_noise(Sphere(3), head) == 0


def test_bad_arguments():
    with pytest.raises(InputError, match="known for Q = K = I only"):
        growth_rate(Sphere(2), Attention(1.0, query=np.eye(2)), 1)
    with pytest.raises(InputError, match="known for V = v I only"):
        growth_rate(Sphere(2), Attention(1.0, value=[[1, 0], [0, 2]]), 1)
    with pytest.raises(InputError, match="degree must be ≥ 1, as mass is conserved, found 0"):
        growth_rate(Sphere(2), Attention(1.0), 0)
    with pytest.raises(InputError, match="diffusion must be a finite number ≥ 0"):
        growth_rate(Sphere(2), Attention(1.0), 1, diffusion=-1)
    with pytest.raises(InputError, match="growth_rate lives on a sphere"):
        growth_rate(Euclidean(2), Attention(1.0), 1)
