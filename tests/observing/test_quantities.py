"""Quantities of laws whose integrals are known."""

import numpy as np
import pytest
from observing_fakes import Tokens, circle_cells, square_cells
from scipy.special import iv

import pde_solver as ps
from pde_solver.densities import Law
from pde_solver.errors import InputError
from pde_solver.kernel_sums import velocity
from pde_solver.labels import Labels
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Linear, Model, Softmax, Unnormalised
from pde_solver.observing import (
    QUANTITIES,
    by_name,
    default_quantities,
    energy_dissipation,
    entropy,
    first_moment,
    interaction_energy,
    mass,
    maximum_density,
    minimum_density,
    order_parameter,
    second_moment,
    variance,
    velocity_norm,
    wall_flux,
    wasserstein_to,
)

KAPPA = 1.5


def von_mises(cells):
    """f ∝ e^{κ cos θ} on the circle; the midpoint rule is exact to round-off for it."""
    return cells.snapshot(cells.state(lambda x: np.exp(KAPPA * x[:, 0])))


def test_density_on_the_circle():
    """von Mises: normaliser 2π I₀, mean I₁/I₀, E cos² = (1 + I₂/I₀)/2, entropy κ I₁/I₀ − log(2π I₀)."""
    snapshot = von_mises(circle_cells(128))
    i0, i1, i2 = iv([0, 1, 2], KAPPA)
    edge = np.cos(np.pi / 128)  # centres of the outermost cells
    assert mass(snapshot) == pytest.approx(1, abs=1e-14)
    assert minimum_density(snapshot) == pytest.approx(np.exp(-KAPPA * edge) / (2 * np.pi * i0), rel=1e-12)
    assert maximum_density(snapshot) == pytest.approx(np.exp(KAPPA * edge) / (2 * np.pi * i0), rel=1e-12)
    assert entropy(snapshot) == pytest.approx(KAPPA * i1 / i0 - np.log(2 * np.pi * i0), rel=1e-12)
    assert first_moment(snapshot) == pytest.approx([i1 / i0, 0], abs=1e-14)
    assert order_parameter(snapshot) == pytest.approx(i1 / i0, rel=1e-13)
    assert second_moment(snapshot) == pytest.approx(np.diag([1 + i2 / i0, 1 - i2 / i0]) / 2, abs=1e-14)
    assert variance(snapshot) == pytest.approx(1 - (i1 / i0) ** 2, rel=1e-12)
    assert wall_flux(snapshot) == 0.25


@pytest.mark.parametrize(
    "points", [np.tile([0.6, 0.0, 0.8], (4, 1)), np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])]
)
def test_tokens(points):
    tokens = Tokens(Model(Sphere(3), Attention(beta=2.0)), 4)
    snapshot = tokens.snapshot(tokens.state(points))
    collapsed = points[0, 2] == 0.8
    assert mass(snapshot) == 1
    assert order_parameter(snapshot) == pytest.approx(1.0 if collapsed else 0.0, abs=1e-15)
    assert variance(snapshot) == pytest.approx(0.0 if collapsed else 1.0, abs=1e-15)
    assert np.isnan([minimum_density(snapshot), maximum_density(snapshot), entropy(snapshot)]).all()
    assert velocity_norm(snapshot) == pytest.approx(0.0, abs=1e-14)  # both configurations are stationary


def test_velocity_norm():
    """β = 0: X = P_x m with the mean m of the law, so ∫ |X|² = ∫ |m|² − ⟨x, m⟩² = R² E sin²."""
    model = Model(Sphere(2), Attention(beta=0.0))
    i0, i1, i2 = iv([0, 1, 2], KAPPA)
    expected = i1 / i0 * np.sqrt((1 - i2 / i0) / 2)
    assert velocity_norm(von_mises(circle_cells(64, model))) == pytest.approx(expected, rel=1e-12)
    spin = Model(Sphere(2), Linear([[0, -3], [3, 0]]))
    assert velocity_norm(von_mises(circle_cells(64, spin))) == pytest.approx(3, rel=1e-13)


@pytest.mark.parametrize("normaliser", [Softmax(), Unnormalised(log_scale=2.0)])
def test_energy_and_its_rate(normaliser):
    """Two antipodal tokens: E = (e^β + e^−β)/4β, over e^c if unnormalised. And E grows at the recorded rate: move the
    tokens by ± 1e-5 times their velocity and difference."""
    beta, scale = 2.0, np.exp(-getattr(normaliser, "log_scale", 0.0))
    tokens = Tokens(Model(Sphere(3), Attention(beta, normaliser=normaliser)), 2)
    pair = tokens.snapshot(tokens.state(np.array([[0.0, 0, 1], [0, 0, -1]])))
    assert interaction_energy(pair) == pytest.approx(np.cosh(beta) / (2 * beta) * scale, rel=1e-13)
    assert energy_dissipation(pair) == pytest.approx(0, abs=1e-14)

    tokens = Tokens(tokens.model, 20)
    points = Sphere(3).retract(np.random.default_rng(8).standard_normal((20, 3)))
    snapshot = tokens.snapshot(tokens.state(points))
    field = velocity(tokens.model, 0.0, points, snapshot.measure)[0]
    ahead, behind = (
        interaction_energy(tokens.snapshot(tokens.state(Sphere(3).retract(points + step * field))))
        for step in (1e-5, -1e-5)
    )
    assert energy_dissipation(snapshot) == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


def test_labels_mix_by_their_masses():
    """Labels of masses 1/4 and 3/4 sitting at e₁ and e₂; each turns towards the mean (1/4, 3/4) at β = 0."""
    model = Model(Sphere(2), Attention(beta=0.0), Labels(weights=(0.25, 0.75)))
    cells = circle_cells(4, model)  # centres at 45°, 135°, ...
    state = np.zeros((2, 4))
    state[0, 0] = state[1, 1] = 1 / cells.volumes[0]
    snapshot = cells.snapshot(state.ravel())
    a, b = cells.points[:2]
    assert mass(snapshot) == pytest.approx([1, 1])
    assert first_moment(snapshot) == pytest.approx(0.25 * a + 0.75 * b)
    # a ⊥ b: X_a = ¾ b, X_b = ¼ a
    assert velocity_norm(snapshot) == pytest.approx(np.sqrt(0.25 * 0.75**2 + 0.75 * 0.25**2))
    assert entropy(snapshot) == pytest.approx(-np.log(cells.volumes[0]))


class Uniform(Law):
    def density(self, points, manifold):
        return np.ones(len(points))

    def sample(self, count, rng, manifold):
        return manifold.retract(rng.standard_normal((count, manifold.ambient_dimension)))


def test_distance_to_a_measure_and_to_a_law():
    cells = circle_cells(500)
    uniform = cells.snapshot(cells.state(lambda x: 1.0))
    dirac = TokenMeasure(np.array([[1.0, 0.0]]), np.ones((1, 1)))
    assert wasserstein_to(dirac)(uniform) == pytest.approx(np.pi / np.sqrt(3), abs=1e-4)  # second moment of an angle
    assert wasserstein_to(dirac, p=1)(uniform) == pytest.approx(np.pi / 2, abs=1e-4)
    assert wasserstein_to(Uniform())(uniform) < 1e-7
    # f = (1 + a cos θ)/2π to uniform, p = 1: ∫ |F − median| with F = a sin θ/2π, so 2a/π
    tilted = cells.snapshot(cells.state(lambda x: 1 + 0.3 * x[:, 0]))
    assert wasserstein_to(Uniform(), p=1)(tilted) == pytest.approx(0.6 / np.pi, abs=1e-4)


def test_distance_of_tokens_to_a_law_is_the_error_of_two_samples():
    """The empirical law of n independent angles is ~ n^{−1/2} from the uniform one: about 0.03 for n = 1000."""
    tokens = Tokens(Model(Sphere(2), Attention()), 1000)
    sample = Uniform().sample(1000, np.random.default_rng(5), Sphere(2))
    snapshot = tokens.snapshot(tokens.state(sample))
    assert 0.005 < wasserstein_to(Uniform(), samples=100_000)(snapshot) < 0.15
    assert np.array_equal(snapshot.state, sample.ravel())


def test_names():
    assert all(by_name(name).__name__ == name for name in QUANTITIES)
    assert wasserstein_to(Uniform(), p=1).__name__ == "wasserstein_1_to_target"
    assert wasserstein_to(Uniform(), name="to_uniform").__name__ == "to_uniform"
    with pytest.raises(InputError, match="unknown quantity 'entropi'; did you mean entropy"):
        by_name("entropi")
    with pytest.raises(InputError, match="target must be a law or a token measure"):
        wasserstein_to("uniform")


def test_defaults_apply():
    """Every default gives finite numbers; tokens are not asked for a density, and spheres not for walls."""
    square = square_cells(10)
    tokens = Tokens(Model(Sphere(3), Attention(beta=2.0)), 6)
    cases = [
        (circle_cells(16), circle_cells(16).state(lambda x: 1.0)),
        (square, square.state(lambda x: 1.0)),
        (tokens, tokens.state(np.eye(3)[[0, 1, 2, 0, 1, 2]])),
    ]
    names = []
    for discretisation, state in cases:
        quantities = default_quantities(discretisation)
        names.append({quantity.__name__ for quantity in quantities})
        for quantity in quantities:
            assert np.all(np.isfinite(quantity(discretisation.snapshot(state)))), quantity.__name__
    circle, plane, particles = names
    assert plane - circle == {"wall_flux"}
    assert circle - particles == {"minimum_density", "maximum_density", "entropy"}


def test_each_label_has_an_order_parameter_of_its_own():
    labels = ps.position_labels(3)
    model = ps.Model(ps.Sphere(2), ps.Attention(1.0), labels)
    laws = [ps.PoissonKernel((r, 0.0)) for r in (0.1, 0.2, 0.3)]
    simulation = ps.Simulation(ps.DiscontinuousGalerkin(model, ps.circle(64), 3), laws, 1.0)
    # the mean of a Poisson kernel on the circle is w
    assert ps.label_order_parameters(simulation.snapshot) == pytest.approx([0.1, 0.2, 0.3], abs=1e-9)
    one = ps.Simulation(ps.Particles(ps.Model(ps.Sphere(2), ps.Attention(1.0)), 50), ps.Uniform(), 1.0).snapshot
    assert ps.label_order_parameters(one) == pytest.approx([ps.order_parameter(one)], abs=1e-15)
