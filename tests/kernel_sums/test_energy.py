import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.kernel_sums import energy_dissipation, interaction_energy, log_interaction_energy, velocity
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Linear, Model, Unnormalised

SYMMETRIC = np.array([[1.0, 0.3, 0.0], [0.3, -0.5, 0.2], [0.0, 0.2, 0.4]])


def tokens(count=90, d=3, seed=1):
    rng = np.random.default_rng(seed)
    weights = rng.random(count)
    return TokenMeasure(Sphere(d).retract(rng.normal(size=(count, d))), weights[None] / weights.sum())


@pytest.mark.parametrize("beta", [0.1, 4.0, 64.0])
def test_softmax_and_unnormalised_energy_from_the_double_sum(beta):
    # right values: the double sum written out
    measure, query, key = tokens(), np.eye(3)[:2], np.array([[0.0, 1, 0], [1, 0, 2]])
    scores = beta * (measure.points @ query.T) @ (measure.points @ key.T).T
    expected = measure.weights[0] @ np.exp(scores) @ measure.weights[0] / (2 * beta)
    head = Attention(beta, query, key, weight=-3.0)
    assert interaction_energy(Model(Sphere(3), head), 0.0, measure) == pytest.approx(-3 * expected, rel=1e-13)
    model = Model(Sphere(3), Attention(beta, query, key, normaliser=Unnormalised(log_scale=2.0)))
    assert interaction_energy(model, 0.0, measure) == pytest.approx(np.exp(-2.0) * expected, rel=1e-13)


def test_l2_energy_from_the_distances():
    measure, query = tokens(d=2), np.array([[1.0, 0.5]])
    distance = (measure.points @ query.T) - (measure.points @ query.T).T
    expected = measure.weights[0] @ np.exp(-1.5 * distance**2) @ measure.weights[0] / 6
    model = Model(Euclidean(2), Attention(3.0, query, query, normaliser=L2()))
    assert interaction_energy(model, 0.0, measure) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("normaliser", [Attention().normaliser, Unnormalised(log_scale=0.5), L2()])
def test_energy_without_temperature_is_the_limit_up_to_a_constant(normaliser):
    # (E_β − constant/(2β)) → E₀ with an error of order β; the constant is the kernel at β = 0
    measure, query = tokens(), 2 * np.eye(3)
    beta = 1e-5
    constant = np.exp(-normaliser.log_scale) if isinstance(normaliser, Unnormalised) else 1.0
    warm = interaction_energy(Model(Sphere(3), Attention(beta, query, normaliser=normaliser)), 0.0, measure)
    limit = interaction_energy(Model(Sphere(3), Attention(0.0, query, normaliser=normaliser)), 0.0, measure)
    assert warm - constant / (2 * beta) == pytest.approx(limit, abs=20 * beta)
    assert abs(limit) > 0.01


def test_heads_add_and_drift_does_not_count():
    measure = tokens()
    heads = [Attention(2.0), Attention(5.0, SYMMETRIC, weight=0.3)]
    total = sum(interaction_energy(Model(Sphere(3), head), 0.0, measure) for head in heads)
    model = Model(Sphere(3), heads[0] + Linear(np.eye(3)) + heads[1])
    assert interaction_energy(model, 0.0, measure) == pytest.approx(total, rel=1e-14)
    assert log_interaction_energy(model, 0.0, measure) == pytest.approx(np.log(total), rel=1e-14)
    assert interaction_energy(Model(Sphere(3), Linear(np.eye(3))), 0.0, measure) == 0.0


def test_labels_of_one_law_have_the_energy_of_one_label():
    measure = tokens()
    model = Model(Sphere(3), Attention(4.0), Labels((0.3, 0.7)))
    twice = TokenMeasure(measure.points, np.tile(measure.weights, (2, 1)))
    expected = interaction_energy(Model(Sphere(3), Attention(4.0)), 0.0, measure)
    assert interaction_energy(model, 0.0, twice) == pytest.approx(expected, rel=1e-14)


def test_known_energies():
    # one point: e^β/(2β); the uniform law on S²: sinh(β)/(2β²), here by 64 × 128 Gauss-Legendre quadrature
    one = TokenMeasure(np.array([[0.0, 0, 1]]), np.ones((1, 1)))
    model = Model(Sphere(3), Attention(4.0))
    assert interaction_energy(model, 0.0, one) == pytest.approx(np.exp(4) / 8, rel=1e-14)
    z, weights = np.polynomial.legendre.leggauss(32)
    angles = 2 * np.pi * np.arange(64) / 64
    ring = np.sqrt(1 - z**2)[:, None]
    points = np.stack([ring * np.cos(angles), ring * np.sin(angles), np.tile(z[:, None], 64)], axis=-1).reshape(-1, 3)
    uniform = TokenMeasure(points, np.repeat(weights / 128, 64)[None])
    assert interaction_energy(model, 0.0, uniform) == pytest.approx(np.sinh(4) / 32, rel=1e-13)


def test_low_temperature_overflows_the_energy_but_not_its_logarithm():
    one = TokenMeasure(np.array([[0.0, 0, 1]]), np.ones((1, 1)))
    model = Model(Sphere(3), Attention(1e4))
    assert interaction_energy(model, 0.0, one) == np.inf
    assert log_interaction_energy(model, 0.0, one) == pytest.approx(1e4 - np.log(2e4), rel=1e-15)
    assert np.isfinite(log_interaction_energy(model, 0.0, tokens()))


def test_logarithm_needs_a_positive_energy():
    for term in (Linear(np.eye(3)), Attention(0.0), Attention(1.0, weight=-1.0), Attention(1.0) + Attention(0.0)):
        with pytest.raises(InputError, match=r"log_interaction_energy: needs attention heads with weight > 0"):
            log_interaction_energy(Model(Sphere(3), term), 0.0, tokens())


GRADIENT_FLOWS = {
    "softmax": Model(Sphere(3), Attention(4.0)),
    "softmax, weight": Model(Sphere(3), Attention(4.0, weight=0.3)),
    "softmax, repulsive": Model(Sphere(3), Attention(4.0, weight=-2.0)),
    "softmax, V = QᵀK": Model(Sphere(3), Attention(4.0, SYMMETRIC, value=SYMMETRIC)),
    "softmax, β = 0": Model(Sphere(3), Attention(0.0)),
    "softmax in R³": Model(Euclidean(3), Attention(2.0)),
    "unnormalised": Model(Sphere(3), Attention(4.0, normaliser=Unnormalised())),
    "unnormalised, scaled": Model(Sphere(3), Attention(4.0, normaliser=Unnormalised(log_scale=4.0))),
    "unnormalised, β = 0": Model(Sphere(3), Attention(0.0, normaliser=Unnormalised(log_scale=1.0))),
    "unnormalised heads": Model(
        Sphere(3),
        Attention(4.0, normaliser=Unnormalised(), weight=0.5)
        + Attention(1.0, SYMMETRIC, value=SYMMETRIC, normaliser=Unnormalised(log_scale=1.0), weight=-2.0),
    ),
    "L2 on the sphere": Model(Sphere(3), Attention(4.0, normaliser=L2())),
    "labels": Model(Sphere(3), Attention(4.0), Labels((0.3, 0.7))),
    "labels, unnormalised": Model(Sphere(3), Attention(4.0, normaliser=Unnormalised()), Labels((0.5, 0.5), np.eye(2))),
}


@pytest.mark.parametrize("name", GRADIENT_FLOWS)
def test_dissipation_is_the_derivative_of_the_energy_along_the_velocity(name):
    # right values: central differences of the energy of tokens moved along their velocity, fourth order in the step.
    # Each label moves its own tokens, so each label has points of its own.
    model = GRADIENT_FLOWS[name]
    labels = model.labels.count
    single = tokens(40 * labels)
    weights = np.zeros((labels, 40 * labels))
    for label in range(labels):
        mine = slice(40 * label, 40 * (label + 1))
        weights[label, mine] = single.weights[0, mine] / single.weights[0, mine].sum()
    measure = TokenMeasure(single.points, weights)
    speed = velocity(model, 0.0, measure.points, measure)
    own = np.einsum("zn,znd->nd", weights > 0, speed)

    def energy(step):
        return interaction_energy(model, 0.0, TokenMeasure(measure.points + step * own, weights))

    h = 2e-3 / max(1.0, np.abs(own).max())
    slope = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    assert energy_dissipation(model, 0.0, measure) == pytest.approx(slope, rel=1e-8)
    assert abs(slope) > 1e-4


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (Model(Sphere(3), Attention(4.0) + Linear(np.eye(3))), "has a drift"),
        (Model(Sphere(3), Attention(4.0) + Attention(1.0)), "several heads"),
        (Model(Sphere(3), Attention(4.0, value=-np.eye(3))), "not a gradient"),
        (Model(Sphere(3), Attention(4.0, query=np.eye(3)[[1, 2, 0]])), "not a gradient"),
        (Model(Euclidean(3), Attention(4.0, normaliser=L2())), "not a gradient"),
        (Model(Sphere(3), Attention(4.0), Labels((0.5, 0.5), np.array([[1, 0], [0.5, 0.5]]))), "attend to each other"),
    ],
)
def test_dissipation_is_refused_where_it_does_not_hold(model, problem):
    measure = tokens()
    measure = TokenMeasure(measure.points, np.tile(measure.weights, (model.labels.count, 1)))
    with pytest.raises(InputError, match=problem):
        energy_dissipation(model, 0.0, measure)


def test_dissipation_vanishes_at_rest_even_where_the_energy_overflows():
    points = TokenMeasure(np.eye(3)[:1], np.ones((1, 1)))
    assert energy_dissipation(Model(Sphere(3), Attention(1e4)), 0.0, points) == 0.0
