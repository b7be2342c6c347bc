"""Gaussians stay Gaussian under softmax and L2 attention on R^d: moments of the mesh solution against the exact ones.

Exact moments: `tests/data/gaussian_reference.csv`, parameters `tests/data/gaussian_cases.csv` (derived for this project). The boxes
hold the Gaussians to about 6 standard deviations at all depths, so that cutting them off costs less than 1e-6.
"""

import ast
import csv
from pathlib import Path

import numpy as np
import pytest

import pde_solver as ps

DATA = Path(__file__).parent / "data"


def case(name):
    """The model and the initial Gaussian of one row of the table."""
    row = next(r for r in csv.DictReader((DATA / "gaussian_cases.csv").open()) if r["case"] == name)
    assert float(row["kappa"]) == 0
    dimension = int(row["d"])
    velocity = None
    for head in row["heads (V;A)"].split("|"):
        value, form = head.split(";")
        if row["kind"] == "l2":
            term = ps.Attention(
                1.0,
                value=ast.literal_eval(value.strip()) if value.strip().startswith("[") else None,
                normaliser=ps.L2(),
            )
        else:
            # the score of the table is xᵀ A y, so A is the query's transpose with K = I
            query = np.array(ast.literal_eval(form.strip())).T
            term = ps.Attention(1.0, query=query, value=ast.literal_eval(value.strip()))
        velocity = term if velocity is None else velocity + term
    matrix, offset = np.array(ast.literal_eval(row["W"])), np.array(ast.literal_eval(row["b"]))
    if np.any(matrix) or np.any(offset):
        velocity = velocity + ps.Linear(matrix, offset)
    model = ps.Model(ps.Euclidean(dimension), velocity)
    return model, ps.Gaussian(ast.literal_eval(row["m0"]), ast.literal_eval(row["S0"]))


def exact_moments(name, t, dimension):
    for line in (DATA / "gaussian_reference.csv").read_text().splitlines():
        cells = line.split(",")
        if cells[0] == name and float(cells[1]) == t:
            numbers = np.array([float(cell) for cell in cells[2:]])
            return numbers[:dimension], numbers[dimension:].reshape(dimension, dimension)
    raise KeyError((name, t))


def moment_error(name, discretise, t):
    """Largest error of the mean and the covariance at depth t."""
    model, initial = case(name)
    discretisation = discretise(model)
    simulation = ps.Simulation(discretisation, initial, t)
    outcome = simulation.run()
    assert outcome.mass_error < 1e-12
    assert outcome.minimum >= 0
    assert outcome.wall_mass < 1e-6
    law = simulation.snapshot.law
    mean = law.integrate(lambda x: x)[0]
    covariance = law.integrate(lambda x: np.einsum("mi,mj->mij", x, x))[0] - np.outer(mean, mean)
    exact_mean, exact_covariance = exact_moments(name, t, model.manifold.ambient_dimension)
    return max(np.abs(mean - exact_mean).max(), np.abs(covariance - exact_covariance).max())


def galerkin(mesh, degree):
    return lambda model: ps.DiscontinuousGalerkin(model, mesh, degree=degree)


@pytest.mark.parametrize("name", ["G2a", "G2b", "G2c"])
def test_plane(name):
    def mesh(n):
        return ps.rectangle((-4.6, -5.4), (5.4, 4.2), (n, n), cell="quadrilateral")

    coarse = moment_error(name, galerkin(mesh(12), 2), 1.0)
    fine = moment_error(name, galerkin(mesh(24), 2), 1.0)
    print(f"{name}: {coarse:.2e} {fine:.2e}")
    assert fine < 1e-4
    assert fine < coarse / 4


def test_space():
    def mesh(n):
        return ps.box((-3.75, -3.85, -3.0), (4.35, 3.45, 3.8), (n, n, n), cell="hexahedron")

    coarse = moment_error("G3a", galerkin(mesh(6), 2), 0.5)
    fine = moment_error("G3a", galerkin(mesh(12), 2), 0.5)
    print(f"G3a: {coarse:.2e} {fine:.2e}")
    assert fine < 1e-4
    assert fine < coarse / 2
