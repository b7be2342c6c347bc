from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from pde_solver.densities import (
    Ball,
    Box,
    Expression,
    Gaussian,
    HarmonicPerturbation,
    Mixture,
    PointCloud,
    PoissonKernel,
    Uniform,
    UniformOn,
    VonMisesFisher,
    box_quadrature,
    sphere_quadrature,
)
from pde_solver.errors import InputError
from pde_solver.kernel_sums import velocity
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Layers, Linear, Model, Softmax, Term, Unnormalised
from pde_solver.solutions import ClosedForm, GaussianClosure, PoissonKernelFlow, closed_form

CIRCLE, S2, S3 = Sphere(2), Sphere(3), Sphere(4)
LINE, PLANE = Euclidean(1), Euclidean(2)
SPIN = np.array([[0.0, -1.0, 0.2], [1.0, 0.0, 0.5], [-0.2, -0.5, 0.0]])
TURN = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
SHEAR = np.array([[0.2, 0.7], [-0.1, -0.4]])
BUMP = VonMisesFisher((1.0, 2.0, -1.0), 1.5)
KERNEL = PoissonKernel((0.2, -0.1, 0.15))


def moments(points):
    """Test functions φ at points (n, D): (functions, n)."""
    first = points.T
    second = np.array([first[i] * first[j] for i in range(len(first)) for j in range(i + 1)])
    return np.concatenate([np.ones((1, len(points))), first, second, np.sin(2 * first + 0.3), first**3])


def characteristics(model, initial, start, t, rule):
    """∫ φ f(t) by tokens at the points of a quadrature, which follow the package's velocity from `start` to t."""
    weights = rule.weights * initial.density(rule.points, model.manifold)
    weights /= weights.sum()
    stops = [start, *(b for b in model.velocity.breakpoints if start < b < t), t]
    points = rule.points
    for begin, end in pairwise(stops):

        def rate(_, state, begin=begin):
            tokens = model.manifold.retract(state.reshape(rule.points.shape))
            return velocity(model, begin, tokens, TokenMeasure(tokens, weights))[0].ravel()

        result = solve_ivp(rate, (begin, end), points.ravel(), method="DOP853", rtol=1e-11, atol=1e-12)
        points = model.manifold.retract(result.y[:, -1].reshape(rule.points.shape))
    return moments(points) @ weights[0]


def integrals(solution, t, rule):
    """∫ φ f(t) by a quadrature of the surface measure."""
    return moments(rule.points) @ (rule.weights[0] * solution.density(t, rule.points))


def average(value=None, weight=1.0, normaliser=None):
    """A head at β = 0, with Q and K that must not matter."""
    query = None if value is None else np.arange(1.0, 1 + np.size(value)).reshape(np.shape(value))
    return Attention(0.0, query=query, value=value, weight=weight, normaliser=normaliser or Softmax())


IDLE_HEAD = Attention(3.0, weight=0.0)
IDLE = IDLE_HEAD + Attention(2.0, value=np.zeros((3, 3)))
ON_S2 = {
    "rotation": (S2, Linear(SPIN) + IDLE, BUMP, "rigid rotation"),
    "projected": (S2, Linear(SPIN) + Linear(np.diag([0.6, -0.2, 0.1])), BUMP, "linear flow"),
    "formula": (S2, Linear(SPIN), Expression("2 + x*y + exp(z)"), "rigid rotation"),
    "layered drift": (S2, Layers((0.9, 1.3), (Linear(SPIN), Linear(np.diag([1.0, 0, 0])), IDLE)), BUMP, "linear flow"),
    "layers beside a drift": (
        S2,
        Layers((0.9,), (Linear(SPIN), Linear(np.diag([1.0, 0, 0])))) + Linear(0.4 * TURN),
        BUMP,
        "linear flow",
    ),
    "kernel": (S2, average(weight=0.8), KERNEL, "Poisson kernel flow"),
    "kernel, many heads": (
        S2,
        average(np.diag([1.0, 0.5, 0.5]))
        + average(np.diag([0.0, 0.5, 0.5]), -0.4, L2())
        + average(np.diag([0.0, -0.3, -0.3]), 1.0)
        + average(np.diag([-1.0, 0.0, 0.0]), np.exp(0.7), Unnormalised(0.7))
        + average(np.eye(3), -0.5, Unnormalised(-0.3))
        + Linear(2 * np.eye(3), [0.3, 0.1, -0.2]),
        KERNEL,
        "Poisson kernel flow",
    ),
    "kernel in a field": (S2, Linear(offset=[0.5, 0.2, 0.0]), KERNEL, "Poisson kernel flow"),
    "kernel, layers": (
        S2,
        Layers((0.8, 1.2), (average(), average(weight=-2.0) + Linear(offset=[0.0, 1.0, 0.0]), Linear(0.0 * SPIN))),
        KERNEL,
        "Poisson kernel flow",
    ),
    "uniform in a field": (S2, average() + Linear(offset=[0.5, 0.2, 0.0]), Uniform(), "Poisson kernel flow"),
    "uniform, plain": (S2, Attention(4.0) + Linear(SPIN), Uniform(), "uniform law at rest"),
    "uniform, turned": (
        S2,
        Attention(2.0, query=0.5 * TURN, value=TURN.T + 0.3 * SPIN @ TURN.T, normaliser=Unnormalised()),
        PoissonKernel((0.0, 0.0, 0.0)),
        "uniform law at rest",
    ),
    "uniform, V inverse to A": (
        S2,
        Attention(1.0, np.diag([1.0, 2, 2]), value=np.diag([1.0, 0.5, 0.5])),
        Uniform(),
        "uniform law at rest",
    ),
    "uniform, L2": (
        S2,
        Attention(2.0, TURN, 0.7 * TURN, SPIN, L2()) + average(np.diag([1.0, 2, 3])),
        VonMisesFisher((1.0, 0.0, 0.0), 0.0),
        "uniform law at rest",
    ),
}


@pytest.mark.parametrize("name", ON_S2)
def test_on_a_sphere_against_characteristics(name):
    # right values: tokens at quadrature points, integrated to 1e-11; the largest difference measured is 2e-12
    manifold, term, initial, kind = ON_S2[name]
    start, t = 0.6, 1.5
    model = Model(manifold, term)
    solution = closed_form(model, initial, start)
    assert isinstance(solution, ClosedForm)
    assert solution.name == kind
    found = integrals(solution, t, sphere_quadrature(manifold, 40))
    right = characteristics(model, initial, start, t, sphere_quadrature(manifold, 24))
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-11)


GAUSSIAN = Gaussian([0.4, -0.3], [[0.5, 0.1], [0.1, 0.3]])
HUMP = Expression("(1 - x**2)**9 * (1 - y**2)**9 * (2 + x)", box=((-1.0, -1.0), (1.0, 1.0)))
SCALED = Attention(0.5, key=np.array([[0.3, 0.2], [-0.1, 0.4]]), value=-0.5 * np.eye(2))
ON_PLANE = {
    "affine": (Linear(SHEAR, [0.5, 0.0]) + Linear(offset=[0.0, 1.0]), GAUSSIAN, "linear flow"),
    "mixture": (Linear(SHEAR), Mixture([GAUSSIAN, Gaussian([0.0, 0.5], 0.4)], [1, 2]), "linear flow"),
    "rigid": (Linear([[0.0, -2.0], [2.0, 0.0]], [1.0, 0.0]), GAUSSIAN, "rigid motion"),
    "translation": (Linear(offset=[1.0, 0.0]), HUMP, "translation"),
    "formula": (Linear(SHEAR, [0.5, 0.0]), HUMP, "linear flow"),
    "softmax": (SCALED + Linear(-0.3 * np.eye(2), [0.2, 0.1]), GAUSSIAN, "Gaussian closure"),
    "L2": (
        Attention(0.8, value=SHEAR, normaliser=L2()) + Attention(0.0, normaliser=Unnormalised(0.4)),
        GAUSSIAN,
        "Gaussian closure",
    ),
    "layers": (
        Layers((-0.2, 0.9, 1.2), (Linear(SHEAR), SCALED, Linear(SHEAR), SCALED + SCALED)) + Linear(offset=[0.3, 0.0]),
        GAUSSIAN,
        "Gaussian closure",
    ),
}


@pytest.mark.parametrize("name", ON_PLANE)
def test_on_the_plane_against_characteristics(name):
    # right values: tokens at quadrature points; the largest difference measured is 3e-8, the error of the tokens' rule
    term, initial, kind = ON_PLANE[name]
    start, t = 0.6, 1.5
    model = Model(PLANE, term)
    solution = closed_form(model, initial, start)
    assert solution.name == kind
    half, cells = (1.0, 2) if isinstance(initial, Expression) else (6.0, 6)
    found = integrals(solution, t, box_quadrature([-9.0] * 2, [9.0] * 2, 72, 5))
    right = characteristics(model, initial, start, t, box_quadrature([-half] * 2, [half] * 2, cells, 9))
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("manifold", "term", "initial", "kind", "order"),
    [
        (CIRCLE, Linear([[0.3, -1.0], [1.0, 0.0]]), VonMisesFisher((1.0, 1.0), 2.0), "linear flow", 60),
        (CIRCLE, average() + Linear(offset=[0.2, -0.4]), PoissonKernel((0.3, 0.2)), "Poisson kernel flow", 60),
        (S3, average(weight=-1.5), PoissonKernel((0.1, 0.2, 0.0, -0.2)), "Poisson kernel flow", 12),
        (S3, Attention(1.0), Uniform(), "uniform law at rest", 10),
    ],
)
def test_on_other_spheres_against_characteristics(manifold, term, initial, kind, order):
    # the largest difference measured is 4e-10, on S³, where the tokens' rule is coarse
    solution = closed_form(Model(manifold, term), initial, -0.5)
    assert solution.name == kind
    right = characteristics(Model(manifold, term), initial, -0.5, 0.4, sphere_quadrature(manifold, order))
    found = integrals(solution, 0.4, sphere_quadrature(manifold, 2 * order))
    np.testing.assert_allclose(found, right, rtol=0, atol=2e-9)


def test_softmax_on_the_line_in_closed_form():
    # right values: s = s₀ / (1 − 2 v a s₀ t), m = m₀ e^{vt} √(s/s₀)
    solution = closed_form(Model(LINE, Attention(0.5, value=[[-1.0]])), Gaussian([0.7], 0.8), start=1.0)
    x, s = np.linspace(-3, 3, 11)[:, None], 0.8 / (1 + 2 * 0.5 * 0.8 * 2)
    m = 0.7 * np.exp(-2) * np.sqrt(s / 0.8)
    right = np.exp(-((x[:, 0] - m) ** 2) / (2 * s)) / np.sqrt(2 * np.pi * s)
    np.testing.assert_allclose(solution.density(3.0, x), right, rtol=1e-11)


RNG_POINTS = Sphere(3).retract(np.random.default_rng(5).normal(size=(40, 3)))


@pytest.mark.parametrize("name", ON_S2)
def test_density_at_the_start_is_the_initial_one(name):
    manifold, term, initial, _ = ON_S2[name]
    density = closed_form(Model(manifold, term), initial, 0.6).density
    right = initial.density(RNG_POINTS, manifold)
    # a formula is known up to a factor
    right = right / (4 * np.pi * (2 + np.sinh(1))) if name == "formula" else right
    np.testing.assert_allclose(density(0.6, RNG_POINTS), right, rtol=1e-13)


@pytest.mark.parametrize("name", ["rotation", "kernel", "kernel, many heads", "uniform in a field"])
def test_only_the_depth_since_the_start_counts_without_layers(name):
    manifold, term, initial, _ = ON_S2[name]
    first, second = (closed_form(Model(manifold, term), initial, start) for start in (0.0, 2.0))
    np.testing.assert_allclose(first.density(0.75, RNG_POINTS), second.density(2.75, RNG_POINTS), rtol=1e-12)


def test_layers_before_the_start_do_not_count():
    layers = Layers((0.5, 2.0), (Attention(1.0), Linear(SPIN), Linear(2 * SPIN)))
    with pytest.raises(InputError, match="no exact law is known"):
        closed_form(Model(S2, layers), BUMP, 0.4)
    for start in (0.5, 1.0):
        found = closed_form(Model(S2, layers), BUMP, start).density(2.5, RNG_POINTS)
        right = closed_form(Model(S2, Linear(SPIN)), BUMP).density(2.0 - start + 1.0, RNG_POINTS)
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_solutions_agree_where_two_apply():
    points = np.random.default_rng(1).normal(size=(50, 2))
    plane = Model(PLANE, Linear(SHEAR, [0.5, 0.2]))
    flow = closed_form(plane, GAUSSIAN)
    assert flow.name == "linear flow"
    np.testing.assert_allclose(
        flow.density(1.3, points), GaussianClosure(plane, GAUSSIAN).density(1.3, points), rtol=1e-11
    )
    # a head whose velocity is nothing but a V m: with m = 0, S moves by the drift alone
    centred = Gaussian([0.0, 0.0], GAUSSIAN.covariance)
    closure = closed_form(Model(PLANE, Linear(SHEAR) + Attention(0.0)), centred)
    assert closure.name == "Gaussian closure"
    np.testing.assert_allclose(
        closure.density(1.3, points), closed_form(Model(PLANE, Linear(SHEAR)), centred).density(1.3, points), rtol=1e-11
    )
    # a uniform law at rest is a Poisson kernel with w = 0
    rest = closed_form(Model(S2, average()), Uniform())
    assert rest.name == "uniform law at rest"
    kernel = PoissonKernelFlow((0.0, 0.0, 0.0)).density(3.0, RNG_POINTS)
    np.testing.assert_allclose(rest.density(3.0, RNG_POINTS), kernel, rtol=1e-14)
    # a rotated Poisson kernel is the kernel of the rotated w
    turned = PoissonKernel(tuple(expm(0.9 * SPIN) @ KERNEL.w))
    found = closed_form(Model(S2, Linear(SPIN)), KERNEL).density(0.9, RNG_POINTS)
    np.testing.assert_allclose(found, turned.density(RNG_POINTS, S2), rtol=1e-13)


@pytest.mark.parametrize(
    ("manifold", "term", "initial", "name"),
    [
        (S2, IDLE, BUMP, "law at rest"),
        (S2, Linear(3 * np.eye(3)), BUMP, "law at rest"),
        (S2, Linear(SPIN + 3 * np.eye(3)), BUMP, "rigid rotation"),
        (PLANE, Linear(offset=[0.0, 1.0]), UniformOn(Box([0.0, 0.0], [1.0, 2.0])), "translation"),
        (PLANE, Linear(3 * np.eye(2)), GAUSSIAN, "linear flow"),
        (PLANE, Linear([[0.0, 1.0], [-1.0, 0.0]]), UniformOn(Ball([0.0, 0.0], 1.0)), "rigid rotation"),
    ],
)
def test_names_of_drifts(manifold, term, initial, name):
    assert closed_form(Model(manifold, term), initial).name == name


def test_unnormalised_attention_of_one_label_that_sees_the_law_twice():
    # right value: ν = 2 μ doubles unnormalised attention and leaves softmax alone
    labels = Labels(mixing=np.array([[2.0]]))
    for normaliser, factor in ((Unnormalised(0.3), 2 * np.exp(-0.3)), (Softmax(), 1.0)):
        model = Model(S2, average(normaliser=normaliser), labels)
        found = closed_form(model, KERNEL).density(0.7, RNG_POINTS)
        np.testing.assert_allclose(found, PoissonKernelFlow(KERNEL.w, factor).density(0.7, RNG_POINTS), rtol=1e-13)


@pytest.mark.parametrize(
    ("model", "initial"),
    [
        (Model(S2, Attention(1.0)), KERNEL),
        (Model(S2, average()), BUMP),
        (Model(S2, average()), HarmonicPerturbation(1, 0.2)),
        (Model(S2, average(np.diag([1.0, 1.0, 1.1]))), KERNEL),
        (Model(S2, average() + Linear(SPIN)), KERNEL),
        (Model(S2, Linear(offset=[1.0, 0.0, 0.0])), BUMP),
        (Model(S2, Attention(1.0) + Linear(offset=[1.0, 0.0, 0.0])), Uniform()),
        (Model(S2, Attention(1.0) + Linear(np.diag([1.0, 0.0, 0.0]))), Uniform()),
        (Model(S2, Attention(1.0, query=np.diag([1.0, 1.0, 1.1]))), Uniform()),
        (Model(S2, Attention(1.0, value=np.diag([1.0, 1.0, 1.1]))), Uniform()),
        (
            Model(S2, Attention(1.0, np.diag([1.0, 2, 2]), value=(np.eye(3) + SPIN) @ np.diag([1.0, 0.5, 0.5]))),
            Uniform(),
        ),
        (Model(S2, Attention(1.0, np.diag([0.5, 1, 1]), np.diag([2.0, 1, 1]), normaliser=L2())), Uniform()),
        (Model(S2, Linear(SPIN)), PointCloud(np.eye(3))),
        (Model(S2, Linear(SPIN), Labels([0.5, 0.5])), BUMP),
        (Model(S2, Linear(SPIN), Labels(mixing=np.zeros((1, 1)))), BUMP),
        (Model(S2, Layers((1.0,), (average(), Linear(SPIN)))), KERNEL),
        (Model(S2, Linear(SPIN) + Term()), BUMP),
        (Model(S2, Attention(1.0) + Term()), Uniform()),
        (Model(S2, average() + Term()), KERNEL),
        (Model(PLANE, Attention(1.0) + Term()), GAUSSIAN),
        (Model(PLANE, Attention(1.0, normaliser=Unnormalised())), GAUSSIAN),
        (Model(PLANE, Attention(1.0)), Mixture([GAUSSIAN, GAUSSIAN])),
        (Model(PLANE, Linear(SHEAR)), Uniform()),
        (Model(PLANE, Linear(SHEAR)), Expression("exp(-x**2 - y**2)")),
    ],
)
def test_what_is_not_known_is_refused_in_one_sentence(model, initial):
    with pytest.raises(InputError) as refusal:
        closed_form(model, initial)
    sentence = str(refusal.value)
    assert sentence.startswith(f"closed_form: no exact law is known for {model}, from {initial!r}; known are")
    assert sentence.endswith('take another reference ("finest" or "particles").')


def test_a_head_of_matrices_that_cancel_lets_the_uniform_law_rest():
    # QᵀK = I although neither Q nor K is a multiple of I; L2 attention, refused above, sees |Ky| too
    head = Attention(1.0, np.diag([0.5, 1, 1]), np.diag([2.0, 1, 1]))
    assert closed_form(Model(S2, head), Uniform()).name == "uniform law at rest"


def test_a_law_of_another_manifold_is_refused_in_its_own_words():
    with pytest.raises(InputError, match=r"^PoissonKernel: vectors are of length 2"):
        closed_form(Model(S2, average()), PoissonKernel((0.1, 0.2)))
    with pytest.raises(InputError, match=r"^Gaussian lives on R\^2"):
        closed_form(Model(S2, Linear(SPIN)), GAUSSIAN)


@pytest.mark.parametrize(
    ("manifold", "formula", "mass"),
    [
        (CIRCLE, "3 + cos(theta) + abs(x)", 6 * np.pi + 4),
        (S2, "1 + 0.5*sin(theta) + 0.1*cos(phi)", 4 * np.pi + np.pi**2 / 2),
        (S3, "2 + x4 + x1**2", 2.25 * 2 * np.pi**2),
    ],
)
def test_a_formula_is_scaled_to_mass_one(manifold, formula, mass):
    # right values: integrals by hand; a mass is taken when two quadratures agree to 1e-9
    points = np.eye(manifold.ambient_dimension)
    found = closed_form(Model(manifold, IDLE_HEAD), Expression(formula)).density(0.0, points)
    np.testing.assert_allclose(found * mass, Expression(formula).density(points, manifold), rtol=1e-9)


@pytest.mark.parametrize("formula", ["where(x > 0.3, 1, 0)", "where(x > 1.5, 1, 0)"])
def test_a_formula_whose_mass_is_not_found_is_refused(formula):
    for model in (Model(CIRCLE, Linear(SPIN[:2, :2])), Model(S2, Linear(SPIN))):
        with pytest.raises(InputError, match=r"the mass of Expression.* is not found to 1e-09 by quadrature"):
            closed_form(model, Expression(formula))


def test_depths_without_a_density():
    with pytest.raises(InputError, match=r"known from depth 1 on, found t = 0.5"):
        closed_form(Model(S2, Linear(SPIN)), BUMP, 1.0).density(0.5, RNG_POINTS)
    blow_up = closed_form(Model(LINE, Attention(0.5)), Gaussian([0.0], 1.0), 1.0)  # at t − 1 = 1 / (2 a s₀)
    assert np.all(blow_up.density(1.9, np.zeros((1, 1))) > 0)
    with pytest.raises(InputError, match=r"no density at depth 2.5 .*from 1 on.*blows up at t = 1"):
        blow_up.density(2.5, np.zeros((1, 1)))
    with pytest.raises(InputError, match=r"no density at depth 100 .*Poisson kernel is a Dirac mass"):
        closed_form(Model(CIRCLE, average()), PoissonKernel((0.3, 0.0))).density(100.0, np.eye(2))
    with pytest.raises(InputError, match=r"no density at depth 100 .*Poisson kernel is a Dirac mass"):
        closed_form(Model(S2, average()), KERNEL).density(100.0, RNG_POINTS)
    with pytest.raises(InputError, match=r"start must be a finite number"):
        closed_form(Model(S2, Linear(SPIN)), BUMP, np.nan)
