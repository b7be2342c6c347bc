import csv
from pathlib import Path

import numpy as np
import pytest

from pde_solver.densities import sphere_quadrature
from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, velocity
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Model, Unnormalised
from pde_solver.solutions.energy_extremisers import (
    circle_minimiser,
    four_atom_state,
    maximum_energy,
    minimum_energy,
    uniform_energy,
)

TABLE = Path(__file__).parent.parent / "data" / "energy_minimiser_D.csv"
RESOLVED = [0.3, 0.5, 0.9, 1.0, 1.1, 2.0, 1 / 0.3]


def energy(points, weights, matrix):
    return weights @ np.exp(points @ np.asarray(matrix) @ points.T) @ weights


def random_laws(dimension, count):
    """Laws of a few atoms, with random weights."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        points = rng.standard_normal((rng.integers(1, 6), dimension))
        yield points / np.linalg.norm(points, axis=1, keepdims=True), rng.dirichlet(np.full(len(points), 0.5))


def on_the_circle(second, nodes=256):
    """The minimiser as tokens at equal angles, weighted by its density; and the density times 2π."""
    angles = 2 * np.pi * np.arange(nodes) / nodes
    _, coefficients = circle_minimiser(second)
    density = 1 + 2 * np.cos(2 * np.outer(angles, np.arange(1, len(coefficients) + 1))) @ coefficients
    return np.column_stack([np.cos(angles), np.sin(angles)]), density / nodes, density


def test_uniform_energy():
    # right values: elementary forms, and a double sum over a quadrature
    assert uniform_energy(Sphere(2)) == pytest.approx(1.26606587775201, rel=1e-14, abs=0)
    assert uniform_energy(Sphere(3)) == pytest.approx(np.sinh(1), rel=1e-14, abs=0)
    assert uniform_energy(Sphere(4)) == pytest.approx(1.13031820798497, rel=1e-14, abs=0)
    for d, order in ((2, 40), (3, 20), (4, 12)):
        rule = sphere_quadrature(Sphere(d), order)
        for multiple in (0.5, -1.5):
            expected = energy(rule.points, rule.weights[0] / rule.weights.sum(), multiple * np.eye(d))
            assert uniform_energy(Sphere(d), multiple) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("matrix", "extreme"),
    [
        (np.eye(2), "both"),
        (-np.eye(3), "both"),
        (-np.diag([0.3, 1.2, 2.0]), "both"),
        (np.diag([1.0, 0.5]), "maximum"),
        ([[1.0, 0.8], [0.8, -0.5]], "maximum"),
        ([[0.2, 0.5], [0.5, -1.0]], "minimum"),
    ],
)
def test_bounds(matrix, extreme):
    # 400 random laws stay within; the laws that attain the bounds are checked by their energy
    matrix = np.asarray(matrix)
    d = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    energies = [energy(points, weights, matrix) for points, weights in random_laws(d, 400)]
    if extreme != "minimum":
        bound = maximum_energy(matrix)
        assert max(energies) <= bound * (1 + 1e-14)
        points = vectors[:, [-1]].T if values[-1] > 0 else np.array([vectors[:, 0], -vectors[:, 0]])
        weights = np.full(len(points), 1 / len(points))
        assert energy(points, weights, matrix) == pytest.approx(bound, rel=1e-14, abs=0)
    if extreme != "maximum":
        bound = minimum_energy(matrix)
        assert min(energies) >= bound * (1 - 1e-14)
        if values[0] < 0:
            assert energy(vectors[:, [0]].T, np.ones(1), matrix) == pytest.approx(bound, rel=1e-14, abs=0)


def test_values():
    assert maximum_energy(-np.eye(2)) == pytest.approx(1.54308063481524, rel=1e-14, abs=0)
    assert minimum_energy(-np.eye(2)) == pytest.approx(np.exp(-1), rel=1e-14, abs=0)
    assert minimum_energy([[1, 0], [0, 1]]) == uniform_energy(Sphere(2))
    assert maximum_energy(np.diag([1.0, 3.0])) == pytest.approx(np.exp(3), rel=1e-14, abs=0)


def test_table_of_minimisers():
    # right values: energy_minimiser_D.csv: energy to 16 digits, coefficients to 12, densities to 10, but for d₂ = 0.5,
    # where the densities of the table come from 14 coefficients and are right to 1.9e-6 and 1.6e-7 of themselves
    with TABLE.open() as file:
        table = [[float(entry) for entry in row] for row in list(csv.reader(file))[1:]]
    assert len(table) == 3
    for second, least, *coefficients, at_zero, at_right_angle, _ in table:
        found_energy, found = circle_minimiser(second)
        assert found_energy == pytest.approx(least, rel=3e-15, abs=0)
        np.testing.assert_allclose(found[:3], coefficients, rtol=3e-12)
        error = 2e-6 if second == 0.5 else 5e-10
        assert at_ends(found) == pytest.approx((at_zero, at_right_angle), rel=error, abs=0)


def at_ends(coefficients):
    """2π times the density at the angles 0 and π/2."""
    signs = (-1.0) ** np.arange(1, len(coefficients) + 1)
    return 1 + 2 * coefficients.sum(), 1 + 2 * signs @ coefficients


def test_densities_of_minimisers():
    # right values: 36 coefficients from the same system in 60-digit arithmetic; the tolerances are what c_21, … add
    for second, ends, error in (
        (0.3, (0.00673046993, 5.120295714), 3e-5),
        (0.5, (0.123403497768, 2.90662800805), 1e-9),
        (2.0, (3.03636627369, 0.110553808017), 2e-9),
    ):
        np.testing.assert_allclose(at_ends(circle_minimiser(second)[1]), ends, rtol=0, atol=error)


@pytest.mark.parametrize("second", RESOLVED)
def test_minimiser_by_direct_sums(second):
    # right values: the potential of the density, by the trapezium rule (exact here to round-off), is the energy everywhere
    points, weights, density = on_the_circle(second)
    least, coefficients = circle_minimiser(second)
    potential = np.exp(points @ np.diag([1.0, second]) @ points.T) @ weights
    np.testing.assert_allclose(potential, least, rtol=2e-13)
    assert energy(points, weights, np.diag([1.0, second])) == pytest.approx(least, rel=1e-13, abs=0)
    assert density.min() > 0  # so that it is a law, and the minimiser
    # what is left out: c_j falls by (1 − d₂)/(1 + d₂) each time; 1e-5 at the ends, 1e-9 for d₂ = 1/2
    assert abs(coefficients[-1]) < 1.5e-5
    # it stands still under the flow that climbs the energy
    head = Attention(1.0, key=np.diag([1.0, second]), value=np.diag([1.0, second]), normaliser=Unnormalised())
    measure = TokenMeasure(points, weights[None])
    x = velocity(Model(Sphere(2), head), 0.0, points, measure, evaluation=Evaluation(method="dense"))
    assert np.abs(x).max() < 1e-12


@pytest.mark.parametrize("second", [0.5, 0.9, 1.1])
def test_minimiser_by_the_transform_of_the_kernel(second):
    # right values: least squares with the kernel's Fourier coefficients by FFT, right to 1e-16 of the largest; measured:
    # energy 1e-15, first coefficients 1e-9 (d₂ = 0.5) and better
    nodes, modes = 64, 7
    points = np.column_stack([f(2 * np.pi * np.arange(nodes) / nodes) for f in (np.cos, np.sin)])
    transform = np.fft.fft2(np.exp(points @ np.diag([1.0, second]) @ points.T)).real / nodes**2
    j = np.arange(modes)
    system = transform[np.ix_(2 * j, 2 * j)] + transform[np.ix_(2 * j, -2 * j)]
    system[:, 0] /= 2
    right = np.zeros(modes)
    right[0] = 1
    solution = np.linalg.solve(system, right)
    least, coefficients = circle_minimiser(second)
    assert least == pytest.approx(1 / solution[0], rel=1e-13, abs=0)
    np.testing.assert_allclose(coefficients[:2], solution[1:3] / solution[0], rtol=0, atol=1e-6)


def test_four_atoms():
    # right values: the conventions' reference digits, the velocity of four tokens, and E larger than the minimum
    for second, squared in ((0.25, 0.057881756679633), (0.5, 0.19370612263414), (0.75, 0.35209663906164), (2.0, None)):
        found, its_energy = four_atom_state(second)
        if squared is not None:
            assert found == pytest.approx(squared, rel=5e-14, abs=0)
        signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        points, matrix = signs * np.sqrt([found, 1 - found]), np.diag([1.0, second])
        head = Attention(1.0, key=matrix, value=matrix, normaliser=Unnormalised())
        x = velocity(Model(Sphere(2), head), 0.0, points, TokenMeasure(points, np.full((1, 4), 0.25)))
        assert np.abs(x).max() < 1e-15
        assert its_energy == pytest.approx(energy(points, np.full(4, 0.25), matrix), rel=1e-14, abs=0)
        if second != 0.25:
            assert its_energy > circle_minimiser(second)[0]
    assert four_atom_state(0.5)[1] == pytest.approx(1.1027402971218, rel=5e-14, abs=0)


def test_bad_arguments():
    with pytest.raises(InputError, match="matrix must be symmetric"):
        maximum_energy([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(InputError, match=r"matrix must be d × d with d ≥ 2, found shape \(1, 2\)"):
        minimum_energy([[1.0, 0.5]])
    with pytest.raises(InputError, match="found eigenvalues from -2 to 1"):
        maximum_energy(np.diag([-2.0, 1.0]))
    with pytest.raises(InputError, match=r"found eigenvalues from 1 to 2; for D = diag\(1, d₂\) on the circle try"):
        minimum_energy(np.diag([2.0, 1.0]))
    with pytest.raises(InputError, match=r"second must be in \[0.3, 3.333\]"):
        circle_minimiser(0.1)
    with pytest.raises(InputError, match="four_atom_state: second must be > 0, found 0"):
        four_atom_state(0.0)
