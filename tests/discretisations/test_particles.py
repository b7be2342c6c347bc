"""Tokens: where they start, what they weigh, how they move. Ranks: see tests/mpi."""

import numpy as np
import pytest

import pde_solver as ps

SPHERE = ps.Sphere(3)


def test_independent_tokens_weigh_the_same_and_follow_the_seed():
    model = ps.Model(SPHERE, ps.Attention(2.0))
    law = ps.VonMisesFisher((0, 0, 1), 3.0)
    first, again, other = (ps.Particles(model, count=50, seed=seed) for seed in (1, 1, 2))
    measure = first.measure(first.initial(law))
    assert np.array_equal(measure.weights, np.full((1, 50), 1 / 50))
    assert np.array_equal(first.initial(law), again.initial(law))
    assert not np.array_equal(first.initial(law), other.initial(law))
    # drawn from numpy's default generator, one law after the other
    assert np.array_equal(measure.points, law.sample(50, np.random.default_rng(1), SPHERE))


def test_labels_draw_their_own_tokens_and_do_not_weigh_for_each_other():
    labels = ps.Labels((0.5, 0.5))
    particles = ps.Particles(ps.Model(SPHERE, ps.Attention(2.0), labels), count=4, seed=3)
    measure = particles.measure(particles.initial(ps.Uniform()))
    assert measure.points.shape == (8, 3)
    assert len(np.unique(measure.points[:, 0])) == 8
    assert np.array_equal(measure.weights, np.kron(np.eye(2), np.full(4, 0.25)))


def test_quadrature_weights_are_density_times_weight():
    """The mean of a von Mises–Fisher law on S² is coth κ − 1/κ along its axis; a quadrature of high order finds it."""
    kappa = 2.0
    quadrature = ps.sphere_quadrature(SPHERE, 20)
    particles = ps.Particles(ps.Model(SPHERE, ps.Attention(2.0)), quadrature=quadrature)
    law = ps.VonMisesFisher((0, 0, 1), kappa)
    measure = particles.measure(particles.initial(law))
    wanted = quadrature.weights[0] * law.density(quadrature.points, SPHERE)
    assert np.abs(measure.weights[0] - wanted / wanted.sum()).max() < 1e-16
    assert measure.mass() == pytest.approx([1], abs=1e-14)
    assert measure.integrate(lambda x: x)[0] == pytest.approx([0, 0, 1 / np.tanh(kappa) - 1 / kappa], abs=1e-12)


def test_two_tokens_by_hand():
    """Softmax on two tokens at angle α on the circle: dx₁ = P₁ (e^{β cos α} x₂) / (e^β + e^{β cos α}): speed along the arc."""
    beta, angle = 1.7, 2.0
    model = ps.Model(ps.Sphere(2), ps.Attention(beta))
    particles = ps.Particles(model, count=2)
    state = particles.initial(ps.PointCloud([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
    rate = np.empty_like(state)
    particles.rate(0.0, state, rate)
    pull = np.exp(beta * np.cos(angle)) / (np.exp(beta) + np.exp(beta * np.cos(angle))) * np.sin(angle)
    expected = [0, pull, 0, pull * np.sin(angle), -pull * np.cos(angle), 0]  # the weight does not change
    assert rate == pytest.approx(expected, abs=1e-15)
    assert particles.velocity_rate(0.0, state) == pytest.approx(1)
    assert particles.step_limit(0.0, state) == np.inf


def test_correction_retracts_tokens_and_leaves_weights():
    particles = ps.Particles(ps.Model(SPHERE, ps.Attention(2.0)), count=10)
    state = particles.initial(ps.Uniform())
    moved = (state.reshape(10, 4) * [1.1, 1.1, 1.1, 1]).reshape(-1)
    particles.correct(moved)
    assert np.abs(moved - state).max() < 1e-15
    free = ps.Particles(ps.Model(ps.Euclidean(3), ps.Attention(2.0)), count=10)
    free.correct(far := 1.1 * state)
    assert np.array_equal(far, 1.1 * state)


def test_tokens_have_no_density():
    particles = ps.Particles(ps.Model(SPHERE, ps.Attention(2.0)), count=3)
    state = particles.initial(ps.Uniform())
    assert np.isnan(particles.density_range(state)).all()
    assert np.isnan(particles.entropy(state)).all()
    assert particles.wall_flux(0.0, state) == 0
    with pytest.raises(ps.InputError, match="tokens have no density to sample; compare laws by a Wasserstein distance"):
        particles.sampled_density(state)
    nodes = particles.cell_nodes(state)
    assert nodes.vtk_type == 1
    assert np.array_equal(nodes.points[:, 0], state.reshape(3, 4)[:, :3])
    assert nodes.index.tolist() == [0, 1, 2]


def test_pictures_of_more_than_three_dimensions_show_the_first_three():
    particles = ps.Particles(ps.Model(ps.Sphere(5), ps.Attention(2.0)), count=3)
    state = particles.initial(ps.Uniform())
    assert np.array_equal(particles.cell_nodes(state).points[:, 0], state.reshape(3, 6)[:, :3])


def test_a_measure_does_not_change_with_the_state():
    particles = ps.Particles(ps.Model(SPHERE, ps.Attention(2.0)), count=3)
    state = particles.initial(ps.Uniform())
    measure = particles.measure(state)
    before = measure.points.copy()
    state[:] = 0
    assert np.array_equal(measure.points, before)


@pytest.mark.parametrize("count", [0, -3, 2.5, True, "many"])
def test_count_must_be_a_whole_number(count):
    with pytest.raises(ps.InputError, match="Particles: count must be a whole number ≥ 1, found"):
        ps.Particles(ps.Model(SPHERE, ps.Attention(2.0)), count=count)


def test_quadratures_must_fit():
    quadrature = ps.sphere_quadrature(ps.Sphere(2), 5)
    with pytest.raises(ps.InputError, match="quadrature's points have 2 coordinates, the model's tokens 3"):
        ps.Particles(ps.Model(SPHERE, ps.Attention(2.0)), quadrature=quadrature)


def test_a_law_without_mass_on_the_quadrature_is_refused():
    particles = ps.Particles(ps.Model(ps.Euclidean(1), ps.Attention(1.0)), quadrature=ps.box_quadrature(-1.0, 1.0, 10))
    with pytest.raises(
        ps.InputError, match="Particles: the initial density must be finite and ≥ 0, with a positive mass"
    ):
        particles.initial(ps.UniformOn(ps.Box(5.0, 6.0)))
