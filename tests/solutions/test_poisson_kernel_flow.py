import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from pde_solver.densities import PoissonKernel, sphere_quadrature
from pde_solver.errors import InputError
from pde_solver.kernel_sums import velocity
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Linear, Model, Softmax, Unnormalised
from pde_solver.solutions import PoissonKernelFlow, mean_resultant

DATA = Path(__file__).parent.parent / "data"


def rows(name):
    with (DATA / name).open() as file:
        return [[float(entry) for entry in row] for row in list(csv.reader(file))[1:]]


@pytest.mark.parametrize("r", [1e-9, 1e-4, 0.3, 0.9, 0.9999])
def test_mean_resultant_in_closed_form(r):
    # right values: elementary forms for d = 2, 3, 4; for d = 3 and small r its series 4r/3 (1 − r²/5 − …)
    assert mean_resultant(r, 2) == pytest.approx(r, rel=1e-15, abs=0)
    assert mean_resultant(r, 4) == pytest.approx(r * (3 - r**2) / 2, rel=1e-15, abs=0)
    if r < 1e-2:
        expected = 4 * r / 3 * (1 - r**2 / 5)
    else:
        expected = (1 + r**2) / (2 * r) - (1 - r**2) ** 2 / (4 * r**2) * np.log((1 + r) / (1 - r))
    assert mean_resultant(r, 3) == pytest.approx(expected, rel=1e-14 if r > 0.1 or r < 1e-2 else 1e-11, abs=0)


@pytest.mark.parametrize("dimension", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("r", [0.2, 0.7])
def test_mean_resultant_by_quadrature(dimension, r):
    # right values: ∫ cos a f(a) sin^{d−2} a da over the polar angle
    def weight(a):
        return ((1 - r**2) / (1 - 2 * r * np.cos(a) + r**2)) ** (dimension - 1) * np.sin(a) ** (dimension - 2)

    area = quad(lambda a: np.sin(a) ** (dimension - 2), 0, np.pi)[0]
    expected = quad(lambda a: np.cos(a) * weight(a), 0, np.pi, epsabs=1e-13)[0] / area
    assert mean_resultant(r, dimension) == pytest.approx(expected, rel=1e-11, abs=0)


def test_table_on_the_circle_and_on_spheres():
    # right values: poisson_kernel_exact.csv, 12 digits
    table = rows("poisson_kernel_exact.csv")
    assert len(table) == 21
    for d, t, r, resultant in table:
        direction = np.arange(1.0, d + 1) / np.linalg.norm(np.arange(1.0, d + 1))
        flow = PoissonKernelFlow(tuple(0.3 * direction))
        np.testing.assert_allclose(flow.w_at(t), r * direction, atol=6e-13)
        np.testing.assert_allclose(flow.mean(t), resultant * direction, atol=6e-13)


def test_wasserstein_distance_on_the_circle():
    # right values: kuramoto_W2_circle.csv, 14 digits, and the integral of the squared angle
    table = rows("kuramoto_W2_circle.csv")
    assert len(table) == 8
    flow = PoissonKernelFlow((0.0, 0.3))
    for t, _, distance in table:
        assert flow.wasserstein_to_dirac(t) == pytest.approx(distance, rel=1e-11, abs=0)
    r = np.linalg.norm(flow.w_at(2.0))
    squared = quad(lambda a: a**2 * (1 - r**2) / (1 - 2 * r * np.cos(a) + r**2) / np.pi, 0, np.pi, epsabs=1e-13)[0]
    assert flow.wasserstein_to_dirac(2.0) == pytest.approx(squared**0.5, rel=1e-12, abs=0)
    assert flow.wasserstein_to_dirac(80.0) < 1e-7


@pytest.mark.parametrize(
    ("w", "weight", "field"),
    [
        ((0.2, -0.3), 1.0, None),
        ((0.2, -0.3), 1.0, (0.5, 0.1)),
        ((0.2, -0.3, 0.1), 1.0, None),
        ((0.2, -0.3, 0.1), -0.6, (0.4, 0.0, -0.2)),
        ((0.1, -0.3, 0.1, 0.2), 0.8, (0.0, 0.3, 0.0, 0.1)),
    ],
)
def test_continuity_equation(w, weight, field):
    """d/dt ∫ φ f = ∫ ⟨∇φ, X[f]⟩ f for φ = coordinates and their squares, X from the package's model."""
    sphere = Sphere(len(w))
    flow = PoissonKernelFlow(w, weight, field)
    term = Attention(beta=0.0, weight=weight, normaliser=Softmax() if weight > 0 else Unnormalised())
    model = Model(sphere, term + Linear(offset=field) if field else term)
    rule = sphere_quadrature(sphere, {2: 100, 3: 60, 4: 30}[len(w)])
    t, h = 0.7, 1e-3

    def means(s):
        mass = rule.weights[0] * flow.density(s, rule.points)
        return np.concatenate([mass @ rule.points, mass @ rule.points**2])

    measure = TokenMeasure(rule.points, rule.weights * flow.density(t, rule.points))
    mass = measure.weights[0]
    np.testing.assert_allclose(mass @ rule.points, flow.mean(t), atol=1e-12)
    few = TokenMeasure(flow.mean(t)[None], np.ones((1, 1)))  # at β = 0 attention sees the mean alone
    x = velocity(model, t, rule.points, few)[0]
    expected = np.concatenate([mass @ x, mass @ (2 * rule.points * x)])
    difference = (means(t - 2 * h) - 8 * means(t - h) + 8 * means(t + h) - means(t + 2 * h)) / (12 * h)
    np.testing.assert_allclose(difference, expected, atol=1e-9)


def test_field_and_closed_form_agree_on_the_circle():
    # a vanishing field goes through the differential equation, no field through the closed form
    closed, integrated = PoissonKernelFlow((0.2, -0.3), 0.7), PoissonKernelFlow((0.2, -0.3), 0.7, (0.0, 0.0))
    np.testing.assert_allclose(closed.w_at(3.0), integrated.w_at(3.0), atol=1e-12)


def test_the_uniform_law_stays():
    for d in (2, 3, 5):
        np.testing.assert_array_equal(PoissonKernelFlow((0.0,) * d).w_at(5.0), 0.0)


def test_law():
    flow = PoissonKernelFlow((0.1, 0.2, 0.0))
    assert flow.law(0.0) == PoissonKernel((0.1, 0.2, 0.0))
    assert flow.sphere == Sphere(3)


def test_bad_arguments():
    with pytest.raises(InputError, match=r"w must be a vector of at least two numbers with length < 1"):
        PoissonKernelFlow((1.0, 0.0))
    with pytest.raises(InputError, match="field must have 2 entries as w has, found 3"):
        PoissonKernelFlow((0.1, 0.0), 1.0, (1, 2, 3))
    with pytest.raises(InputError, match="on the circle only"):
        PoissonKernelFlow((0.1, 0.0, 0.0)).wasserstein_to_dirac(1.0)
