import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pde_solver.densities import Gaussian, Uniform, VonMisesFisher, sphere_quadrature
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import Linear
from pde_solver.solutions import LinearFlow

DATA = Path(__file__).parent.parent / "data"
OMEGA = np.array([[0, -0.7, 0.2], [0.7, 0, -0.4], [-0.2, 0.4, 0]])
GENERAL = np.array([[0.5, 0.3, -0.2], [0.1, -0.4, 0.6], [-0.3, 0.2, 0.1]])


def test_a_rotation_moves_the_mean_of_a_bump():
    # right values: a rotated von Mises–Fisher law has the rotated mean; about z by the angle 0.7 t
    rotation = Linear([[0, -0.7, 0], [0.7, 0, 0], [0, 0, 0]])
    flow = LinearFlow(Sphere(3), rotation, VonMisesFisher((1, 0, 1), 3.0))
    points, t = sphere_quadrature(Sphere(3), 20).points, 1.3
    expected = VonMisesFisher((np.cos(0.7 * t), np.sin(0.7 * t), 1), 3.0).density(points, Sphere(3))
    np.testing.assert_allclose(flow.density(t, points), expected, rtol=1e-12)


@pytest.mark.parametrize("matrix", [OMEGA, GENERAL])
def test_mass_and_means_on_the_sphere(matrix):
    # right values: the law moves with its tokens, so that means over f_t are means of the flow over f_0
    flow, rule = (
        LinearFlow(Sphere(3), Linear(matrix), VonMisesFisher((0, 1, 1), 2.0)),
        sphere_quadrature(Sphere(3), 100),
    )
    start = rule.weights[0] * flow.density(0.0, rule.points)
    later = rule.weights[0] * flow.density(1.5, rule.points)
    assert later.sum() == pytest.approx(1, abs=1e-12)
    moved = flow.flow(1.5, rule.points)
    np.testing.assert_allclose(later @ rule.points, start @ moved, atol=1e-12)
    np.testing.assert_allclose(later @ rule.points**2, start @ moved**2, atol=1e-12)


@pytest.mark.parametrize("manifold", [Sphere(3), Euclidean(3)])
def test_flow_solves_the_equation_of_motion(manifold):
    # right values: numerical integration of x' = P_x (W x + b)
    drift = Linear(GENERAL, None if manifold == Sphere(3) else [0.3, -0.1, 0.5])
    start = np.array([[0.6, 0.0, -0.8]])

    def rate(_, x):
        return manifold.project(x[None], drift.drift(x[None]))[0]

    expected = solve_ivp(rate, (0, 2), start[0], method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    np.testing.assert_allclose(LinearFlow(manifold, drift, Uniform()).flow(2.0, start)[0], expected, atol=1e-10)


def test_moments_of_the_projected_flow():
    # right values: acg_moments_S2.csv, the angular central Gaussian law, 12 digits
    flow, rule = LinearFlow(Sphere(3), Linear(np.diag([1, 0.5, 0])), Uniform()), sphere_quadrature(Sphere(3), 100)
    with (DATA / "acg_moments_S2.csv").open() as file:
        rows = [[float(entry) for entry in row] for row in list(csv.reader(file))[1:]]
    assert len(rows) == 3
    for t, *moments in rows:
        mass = rule.weights[0] * flow.density(t, rule.points)
        np.testing.assert_allclose(mass @ rule.points**2, moments, atol=1e-12)


def test_gaussian_under_an_affine_drift():
    # right values: m' = W m + b, S' = W S + S Wᵀ integrated; the density agrees with the law of these moments
    matrix, offset = GENERAL[:2, :2], np.array([0.3, -0.5])
    initial = Gaussian((0.5, -0.3), [[0.6, 0.1], [0.1, 0.3]])
    flow = LinearFlow(Euclidean(2), Linear(matrix, offset), initial)

    def rate(_, state):
        change = matrix @ state[2:].reshape(2, 2)
        return np.concatenate([matrix @ state[:2] + offset, (change + change.T).ravel()])

    state = np.concatenate([initial.mean, np.ravel(initial.covariance)])
    state = solve_ivp(rate, (0, 1.7), state, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    law = flow.gaussian(1.7)
    np.testing.assert_allclose(law.mean, state[:2], atol=1e-11)
    np.testing.assert_allclose(np.ravel(law.covariance), state[2:], atol=1e-11)
    points = np.random.default_rng(0).normal(size=(30, 2))
    np.testing.assert_allclose(flow.density(1.7, points), law.density(points, Euclidean(2)), rtol=1e-11)


def test_a_translation():
    flow = LinearFlow(Euclidean(1), Linear(offset=[2.0]), Gaussian(0.5, 0.3))
    assert flow.gaussian(1.5) == Gaussian(3.5, 0.3)


def test_bad_arguments():
    with pytest.raises(InputError, match="a drift with an offset has no such closed form"):
        LinearFlow(Sphere(2), Linear(offset=[1.0, 0]), Uniform())
    with pytest.raises(InputError, match="Linear: matrix must be 2 × 2"):
        LinearFlow(Sphere(2), Linear(GENERAL), Uniform())
    with pytest.raises(InputError, match="only a Gaussian stays a Gaussian"):
        LinearFlow(Sphere(3), Linear(OMEGA), Uniform()).gaussian(1.0)
