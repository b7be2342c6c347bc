"""Nonlinear runs against exact values, and the structure that every run must keep."""

import csv
from pathlib import Path

import numpy as np
import pytest

import pde_solver as ps

DATA = Path(__file__).parent / "data"


def rows(name):
    return list(csv.reader((DATA / name).open()))[1:]


def two_bumps(dimension):
    first, second = np.eye(dimension)[0], np.eye(dimension)[1]
    return ps.Mixture([ps.VonMisesFisher(first, 4.0), ps.VonMisesFisher(second, 6.0)], [0.6, 0.4])


def angle_of_mean(simulation):
    mean = simulation.snapshot.law.integrate(lambda x: x)[0]
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize(
    ("dimension", "mesh", "degree", "tolerance"),
    [(2, lambda: ps.circle(128), 3, 2e-9), (3, lambda: ps.icosphere(3), 2, 3e-6)],
    ids=["circle", "sphere"],
)
def test_poisson_kernels(dimension, mesh, degree, tolerance):
    """β = 0: the mean resultant of `poisson_kernel_exact.csv` (derived for this project)."""
    w = 0.3 * np.eye(dimension)[0]
    model = ps.Model(ps.Sphere(dimension), ps.Attention(beta=0.0))
    simulation = ps.Simulation(ps.DiscontinuousGalerkin(model, mesh(), degree), ps.PoissonKernel(w), 3.0)
    found = simulation.record(ps.order_parameter, every=1.0)
    simulation.run()
    exact = [float(row[3]) for row in rows("poisson_kernel_exact.csv") if row[0] == str(dimension)][:4]
    assert found.values == pytest.approx(exact, abs=tolerance)


def test_mixture_on_the_line():
    """x' = softmax mean − x, β = 1, from two Gaussians: `runs_R1_mixture.csv` (derived for this project)."""
    model = ps.Model(ps.Euclidean(1), ps.Attention(beta=1.0) + ps.Linear([[-1.0]]))
    law = ps.Mixture([ps.Gaussian([-1.0], [[0.16]]), ps.Gaussian([1.0], [[0.25]])], [0.4, 0.6])
    exact = {
        float(row[1]): [float(cell) for cell in row[2:6]] for row in rows("runs_R1_mixture.csv") if row[0] == "1.0"
    }

    def run(cells):
        # errors far below the velocity's usual tolerance are measured
        evaluation = ps.Evaluation(tolerance=1e-10)
        density = ps.DiscontinuousGalerkin(model, ps.interval(-4.0, 4.0, cells), 2, evaluation)
        simulation = ps.Simulation(density, law, 3.0)
        found = simulation.record(lambda s: s.law.integrate(lambda x: x ** np.arange(1, 5))[0], at=sorted(exact))
        simulation.run()
        return np.abs(found.values - np.array([exact[t] for t in sorted(exact)])).max()

    coarse, fine = run(160), run(320)
    print(f"mixture: {coarse:.2e} {fine:.2e}")
    assert fine < 2e-9
    assert fine < coarse / 8


def discretisations(model):
    return [
        ps.FiniteVolume(model, ps.icosphere(2), order=1),
        ps.FiniteVolume(model, ps.icosphere(2), order=2),
        ps.DiscontinuousGalerkin(model, ps.icosphere(1), degree=1),
        ps.DiscontinuousGalerkin(model, ps.icosphere(1), degree=2),
        ps.DiscontinuousGalerkin(model, ps.cubed_sphere(7), degree=3),
    ]


@pytest.mark.parametrize("normaliser", [ps.Softmax(), ps.Unnormalised(log_scale=2.0)], ids=["SA", "USA"])
def test_mass_positivity_and_energy(normaliser):
    """From smooth to clustered on coarse meshes: mass to 1e-12, density ≥ 0 at every record, the energy never falls."""
    model = ps.Model(ps.Sphere(3), ps.Attention(4.0, normaliser=normaliser))
    for discretisation in discretisations(model):
        simulation = ps.Simulation(discretisation, two_bumps(3), 3.0)
        energy = simulation.record(ps.interaction_energy, every=0.25)
        lowest = simulation.record(ps.minimum_density, every=0.25)
        mass = simulation.record(ps.mass, every=0.25)
        simulation.run()
        assert np.abs(mass.values - 1).max() < 1e-12, discretisation.name
        assert lowest.values.min() >= 0, discretisation.name
        assert energy.values[-1] > 1.3 * energy.values[0], discretisation.name
        assert np.diff(energy.values).min() > -1e-12, discretisation.name


def test_the_energy_falls_only_where_the_mesh_is_too_coarse():
    """When the whole law has fallen into a few cells of degree 3 the energy wavers; that goes away under refinement."""
    model = ps.Model(ps.Sphere(3), ps.Attention(4.0))

    def largest_fall(cells):
        simulation = ps.Simulation(ps.DiscontinuousGalerkin(model, ps.cubed_sphere(cells), 3), two_bumps(3), 3.0)
        energy = simulation.record(ps.interaction_energy, every=0.25)
        simulation.run()
        return max(0.0, -np.diff(energy.values).min())

    coarse, fine = largest_fall(4), largest_fall(7)
    print(f"largest fall of the energy: {coarse:.2e} {fine:.2e}")
    assert coarse > 0
    assert fine == 0


@pytest.mark.parametrize("kind", ["finite volume", "discontinuous Galerkin"])
def test_rotation_equivariance(kind):
    """A rotated initial law gives the rotated solution: the mesh breaks it by no more than its error, which falls."""
    angle = 0.7
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    model = ps.Model(ps.Sphere(3), ps.Attention(4.0))

    def second_moment(law, level):
        mesh = ps.icosphere(level)
        d = ps.FiniteVolume(model, mesh) if kind == "finite volume" else ps.DiscontinuousGalerkin(model, mesh, 2)
        simulation = ps.Simulation(d, law, 1.0)
        simulation.run()
        return simulation.snapshot.law.integrate(lambda x: np.einsum("mi,mj->mij", x, x))[0]

    def defect(level):
        law = two_bumps(3)
        turned = ps.Mixture(
            [ps.VonMisesFisher(turn @ np.eye(3)[0], 4.0), ps.VonMisesFisher(turn @ np.eye(3)[1], 6.0)], [0.6, 0.4]
        )
        return np.abs(turn @ second_moment(law, level) @ turn.T - second_moment(turned, level)).max()

    coarse, fine = defect(1), defect(2)
    print(f"equivariance, {kind}: {coarse:.2e} {fine:.2e}")
    assert fine < (1e-3 if kind == "finite volume" else 3e-6)
    assert fine < coarse / 2


def test_uniform_law_is_stationary():
    for d in discretisations(ps.Model(ps.Sphere(3), ps.Attention(4.0))):
        simulation = ps.Simulation(d, ps.Uniform(), 1.0)
        before = simulation.state.copy()
        simulation.run()
        # the mesh is not exactly isotropic: the residual velocity is its quadrature error
        assert np.abs(simulation.state * 4 * np.pi - before * 4 * np.pi).max() < 0.02


def test_layers_jump_where_they_should():
    """Rotation one way for t < 0.3, the other way after: back at the start at t = 0.6, to round-off in the tokens."""
    turn = ps.Linear([[0.0, -1.0], [1.0, 0.0]])
    back = ps.Linear([[0.0, 1.0], [-1.0, 0.0]])
    model = ps.Model(ps.Sphere(2), ps.Layers([0.3], [turn, back]))
    particles = ps.Particles(model, count=50, seed=3)
    simulation = ps.Simulation(particles, ps.Uniform(), 0.6, scheme=ps.EmbeddedRK(5, tolerance=1e-12))
    before = simulation.state.copy()
    half = simulation.record(lambda s: np.abs(s.state - before).max(), at=[0.3])
    simulation.run()
    assert half.values[0] > 0.2
    assert np.abs(simulation.state - before).max() < 1e-11


def test_two_labels_that_see_everybody_are_one_mixture():
    """Two populations with masses 0.3 and 0.7 that attend to all tokens: their mixture solves the encoder's equation."""
    attention = ps.Attention(3.0)
    mesh = ps.circle(48)
    parts = [ps.VonMisesFisher((1.0, 0.0), 3.0), ps.VonMisesFisher((0.0, 1.0), 2.0)]
    one = ps.Model(ps.Sphere(2), attention)
    two = ps.Model(ps.Sphere(2), attention, ps.Labels((0.3, 0.7)))
    for build in (ps.FiniteVolume, ps.DiscontinuousGalerkin):
        single = ps.Simulation(build(one, mesh), ps.Mixture(parts, [0.3, 0.7]), 1.0)
        single.run()
        double = ps.Simulation(build(two, mesh), parts, 1.0)
        double.run()
        mixed = np.array([0.3, 0.7]) @ double.state.reshape(2, -1)
        # the limiter of finite volumes is not linear in the density, so there it is equal up to the scheme's error
        assert np.abs(mixed - single.state).max() < (2e-2 if build is ps.FiniteVolume else 1e-6)
