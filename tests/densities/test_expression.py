import numpy as np
import pytest

from pde_solver.densities import Expression
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


def test_names_on_each_manifold():
    angles = np.array([-3.0, -1.0, 0.5, 2.0])
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    np.testing.assert_allclose(Expression("theta + 4").density(circle, Sphere(2)), angles + 4)
    np.testing.assert_allclose(Expression("2 + x + y").density(circle, Sphere(2)), 2 + circle.sum(axis=1))
    polar, azimuth = np.array([0.3, 1.0, 3.0]), np.array([-3.0, 0.2, 2.0])
    sphere = np.column_stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)])
    np.testing.assert_allclose(Expression("theta").density(sphere, Sphere(3)), polar)
    np.testing.assert_allclose(Expression("phi + 4").density(sphere, Sphere(3)), azimuth + 4)
    np.testing.assert_allclose(
        Expression("2 + x1*x2 + z").density(sphere, Sphere(3)), 2 + sphere[:, 0] * sphere[:, 1] + sphere[:, 2]
    )
    space = np.array([[3.0, 4.0], [0, -2]])
    np.testing.assert_allclose(Expression("r").density(space, Euclidean(2)), [5, 2])
    np.testing.assert_allclose(Expression("2 + x5").density(np.eye(5), Sphere(5)), [2, 2, 2, 2, 3])


@pytest.mark.parametrize(
    ("formula", "manifold", "sentence"),
    [
        ("1 + thetta", Sphere(2), r"thetta is not defined on the circle; did you mean theta\?"),
        ("1 + phi", Sphere(2), "phi is not defined on the circle"),
        ("1 + z", Euclidean(2), r"z is not defined on R\^2; allowed: e, pi, r, x, x1, x2, y"),
        ("r", Sphere(3), r"r is not defined on the sphere S\^2"),
        ("x", Sphere(2), r"is -1 at the point \(-1, 0\); a density must be finite and ≥ 0"),
        ("log(x + 1)", Sphere(2), r"is -inf at the point \(-1, 0\)"),
        ("sqrt(x)", Sphere(2), r"is nan at the point \(-1, 0\)"),
    ],
)
def test_what_is_refused_on_use(formula, manifold, sentence):
    points = np.eye(manifold.ambient_dimension)
    points[1] = -points[0]
    with pytest.raises(InputError, match=sentence):
        Expression(formula).density(points, manifold)


def test_round_off_below_zero_is_zero():
    points = np.array([[-1.0, 0.0], [1.0, 0.0]])
    assert Expression("1 + x - 1e-16").density(points, Sphere(2)).tolist() == [0, 2]


def test_tokens_on_space_need_a_box():
    with pytest.raises(InputError, match=r"it must know where to look; give box=\(lower, upper\)"):
        Expression("exp(-r)").sample(3, np.random.default_rng(0), Euclidean(2))
    law = Expression("exp(-r)", box=((0, 0), (1, 2)))
    tokens = law.sample(1000, np.random.default_rng(0), Euclidean(2))
    assert np.all(tokens >= 0)
    assert np.all(tokens <= [1, 2])
    np.testing.assert_array_equal(law.density(np.array([[0.5, 0.5], [0.5, 2.5]]), Euclidean(2)) > 0, [True, False])
    with pytest.raises(InputError, match=r"Box: vectors are of length 2, but tokens live on R\^3"):
        law.sample(3, np.random.default_rng(0), Euclidean(3))
    for bad in ((0, 1, 2), 3, ((0, 0), (1,))):
        with pytest.raises(InputError, match=r"Expression: box must be|Box: lower must"):
            Expression("1", box=bad)


def test_what_cannot_be_drawn():
    with pytest.raises(InputError, match="is zero at 20,000 random points"):
        Expression("0*x").sample(3, np.random.default_rng(0), Sphere(2))
    with pytest.raises(InputError, match=r"so peaked that fewer than one draw in 10,000.*PointCloud"):
        Expression("exp(2000*(x6 - 1))").sample(3, np.random.default_rng(0), Sphere(6))
