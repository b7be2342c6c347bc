import csv
import json
from pathlib import Path

import numpy as np
import pytest

from pde_solver.densities import Gaussian, VonMisesFisher, box_quadrature
from pde_solver.errors import InputError
from pde_solver.kernel_sums import velocity
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Layers, Linear, Model, Softmax, Unnormalised
from pde_solver.solutions import GaussianClosure, softmax_covariance, softmax_moments_on_the_line
from pde_solver.solutions.gaussian_closure import _affine_velocity

DATA = Path(__file__).parent.parent / "data"


def cases():
    """The closures of gaussian_cases.csv; A = β QᵀK enters as key A, so that the score is ⟨x, A y⟩."""
    with (DATA / "gaussian_cases.csv").open() as file:
        for row in csv.DictReader(file):
            d = int(row["d"])
            heads = [head.split(";") for head in row["heads (V;A)"].split("|")]
            if row["kind"] == "l2":
                terms = [Attention(1.0, value=json.loads(v), normaliser=L2()) for v, _ in heads]
            else:
                terms = [Attention(1.0, key=json.loads(a), value=json.loads(v)) for v, a in heads]
            matrix = json.loads(row["W"]) if d == 1 else None
            offset = json.loads(row["b"]) if d == 1 else None
            model = Model(Euclidean(d), sum(terms[1:], start=terms[0]) + Linear(matrix, offset))
            initial = Gaussian(json.loads(row["m0"]), json.loads(row["S0"]))
            yield row["case"], GaussianClosure(model, initial, float(row["kappa"]))


CASES = dict(cases())


@pytest.mark.parametrize("name", CASES)
def test_table(name):
    # right values: gaussian_reference.csv, 13 digits
    closure, d, found = CASES[name], len(CASES[name].initial.mean), 0
    with (DATA / "gaussian_reference.csv").open() as file:
        for case, t, *values in list(csv.reader(file))[1:]:
            if case == name:
                mean, covariance = closure.moments(float(t))
                expected = np.array(values, dtype=float)
                np.testing.assert_allclose(mean, expected[:d], rtol=1e-11, atol=1e-13)
                np.testing.assert_allclose(covariance.ravel(), expected[d:], rtol=1e-11, atol=1e-13)
                found += 1
    assert found == 5


def test_all_cases_are_there():
    assert sorted(CASES) == ["G1a", "G1b", "G1c", "G1d", "G1e", "G1f", "G2a", "G2b", "G2c", "G2d", "G3a"]


@pytest.mark.parametrize("normaliser", [Softmax(), L2()])
def test_velocity_at_a_gaussian_is_affine(normaliser):
    """Right values: kernel sums over a quadrature of the Gaussian, with Q and K rectangular."""
    rng = np.random.default_rng(3)
    head = Attention(
        1.3, query=0.4 * rng.normal(size=(3, 2)), key=0.4 * rng.normal(size=(3, 2)), value=rng.normal(size=(2, 2)),
        normaliser=normaliser, weight=0.7,
    )  # fmt: skip
    law, space = Gaussian((0.5, -0.3), [[0.6, 0.1], [0.1, 0.3]]), Euclidean(2)
    rule = box_quadrature((-9, -9), (9, 9), 30, order=6)
    measure = TokenMeasure(rule.points, rule.weights * law.density(rule.points, space))
    points = rng.normal(size=(12, 2))
    expected = velocity(Model(space, head), 0.0, points, measure)[0]
    J, c = _affine_velocity(head, np.array(law.mean), np.array(law.covariance))
    np.testing.assert_allclose(points @ J.T + c, expected, atol=1e-10)


def test_closed_forms():
    # V = v I, any A: the covariance; d = 1: both moments; each against the differential equation
    a = np.array([[-1.0, -0.8], [0.4, -0.5]])
    model = Model(Euclidean(2), Attention(1.0, key=a, value=0.8 * np.eye(2)))
    initial = Gaussian((0.5, -0.3), [[0.6, 0.1], [0.1, 0.3]])
    expected = softmax_covariance(1.7, 0.8, a, np.array(initial.covariance))
    np.testing.assert_allclose(GaussianClosure(model, initial).moments(1.7)[1], expected, rtol=1e-12)
    line = Model(Euclidean(1), Attention(0.6, value=[[1.5]]))
    mean, covariance = GaussianClosure(line, Gaussian(0.4, 0.2)).moments(2.0)
    expected_mean, expected_variance = softmax_moments_on_the_line(2.0, 1.5, 0.6, 0.4, 0.2)
    assert mean[0] == pytest.approx(expected_mean, rel=1e-12, abs=0)
    assert covariance[0, 0] == pytest.approx(expected_variance, rel=1e-12, abs=0)


def test_noise_and_drift_on_the_line():
    # va = −1 with noise κ: s = √κ tanh(2√κ t + artanh(s₀/√κ)); va = −1 with drift w x: logistic towards w
    model = Model(Euclidean(1), Attention(1.0, value=[[-1.0]]))
    variance = GaussianClosure(model, Gaussian(0.3, 0.05), diffusion=0.1).moments(1.5)[1][0, 0]
    assert variance == pytest.approx(
        0.1**0.5 * np.tanh(2 * 0.1**0.5 * 1.5 + np.arctanh(0.05 / 0.1**0.5)), rel=1e-12, abs=0
    )
    model = Model(Euclidean(1), Attention(1.0, value=[[-1.0]]) + Linear([[0.5]]))
    variance = GaussianClosure(model, Gaussian(0.3, 0.05)).moments(1.5)[1][0, 0]
    assert variance == pytest.approx(0.5 / (1 + (0.5 / 0.05 - 1) * np.exp(-1.5)), rel=1e-12, abs=0)


def test_blow_up():
    # d = 1: 1 / (2 v a s₀) = 2
    closure = CASES["G1c"]
    assert closure.blow_up == pytest.approx(2, rel=1e-14, abs=0)
    assert closure.moments(1.999)[1][0, 0] == pytest.approx(0.25 / (1 - 1.999 / 2), rel=1e-9, abs=0)
    with pytest.raises(InputError, match="the covariance blows up at t = 2; there is no law at t = 2"):
        closure.moments(2.0)
    assert CASES["G1a"].blow_up == np.inf
    assert CASES["G2a"].blow_up == np.inf
    for name in ("G1d", "G1e", "G1f", "G2c", "G2d"):
        assert CASES[name].blow_up is None


def test_blow_up_without_a_closed_form_ends_with_a_sentence():
    model = Model(Euclidean(1), Attention(1.0) + Linear([[0.5]]))
    with pytest.raises(InputError, match=r"the covariance blows up near t = 1.0\d+; there is no law at t = 3"):
        # s' = 2 s² + s, so 1/s + 2 = (1/s₀ + 2) e^{−t}: blow-up at log(1 + 1/(2 s₀)) = log(3)
        GaussianClosure(model, Gaussian(0.0, 0.25)).moments(3.0)


def test_layers_are_integrated_one_after_the_other():
    first, second = Attention(1.0, value=[[-1.0]]), Attention(0.5, value=[[0.4]])
    layered = GaussianClosure(Model(Euclidean(1), Layers((0.8,), (first, second))), Gaussian(0.5, 0.3))
    middle = GaussianClosure(Model(Euclidean(1), first), Gaussian(0.5, 0.3)).law(0.8)
    end = GaussianClosure(Model(Euclidean(1), second), middle).moments(0.7)
    found = layered.moments(1.5)
    np.testing.assert_allclose(found[0], end[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], end[1], rtol=1e-12)
    assert layered.blow_up is None


def test_splitting_a_head_changes_nothing():
    a, v = np.array([[0.5, 0.2], [-0.1, 0.3]]), np.array([[-1, 0.2], [0.4, -0.6]])
    initial = Gaussian((0.5, -0.3), 0.4)
    whole = GaussianClosure(Model(Euclidean(2), Attention(1.0, key=a, value=v)), initial)
    split = GaussianClosure(
        Model(Euclidean(2), Attention(1.0, key=a, value=v, weight=0.3) + Attention(1.0, key=a, value=0.7 * v)), initial
    )
    np.testing.assert_allclose(whole.moments(1.0)[1], split.moments(1.0)[1], rtol=1e-13)


def test_density_is_the_law_s():
    closure = CASES["G2c"]
    points = np.random.default_rng(0).normal(size=(5, 2))
    expected = Gaussian(*closure.moments(1.0)).density(points, Euclidean(2))
    np.testing.assert_allclose(closure.density(1.0, points), expected, rtol=1e-13)


def test_what_is_refused():
    gaussian = Gaussian((0.0, 0.0), 1.0)
    with pytest.raises(InputError, match="unnormalised attention does not preserve Gaussians"):
        GaussianClosure(Model(Euclidean(2), Attention(normaliser=Unnormalised())), gaussian)
    with pytest.raises(InputError, match=r"Gaussians live on R\^d, but tokens live on the circle"):
        GaussianClosure(Model(Sphere(2), Attention()), gaussian)
    with pytest.raises(InputError, match=r"the initial law must be a Gaussian on R\^3"):
        GaussianClosure(Model(Euclidean(3), Attention()), gaussian)
    with pytest.raises(InputError, match="the initial law must be a Gaussian"):
        GaussianClosure(Model(Euclidean(2), Attention()), VonMisesFisher((0, 1), 1.0))
    with pytest.raises(InputError, match="use one label"):
        GaussianClosure(Model(Euclidean(2), Attention(), Labels((0.5, 0.5))), gaussian)
    with pytest.raises(InputError, match="diffusion must be a finite number ≥ 0"):
        GaussianClosure(Model(Euclidean(2), Attention()), gaussian, diffusion=-1.0)
