from math import gamma, pi, prod

import numpy as np
import pytest

from pde_solver.densities import VonMisesFisher, box_quadrature, sphere_quadrature
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


def monomial(exponents):
    """∫ ∏ x_i^{k_i} over S^{d−1} = 2 ∏ Γ((k_i+1)/2) / Γ(Σ (k_i+1)/2) for even k_i (Folland, Am. Math. Mon. 108)."""
    if any(k % 2 for k in exponents):
        return 0.0
    halves = [(k + 1) / 2 for k in exponents]
    return 2 * prod(gamma(h) for h in halves) / gamma(sum(halves))


@pytest.mark.parametrize(
    "exponents", [(0, 0), (4, 2), (3, 4), (0, 0, 0), (2, 2, 4), (1, 2, 2), (2, 4, 2, 2), (2, 2, 2, 2, 2)]
)
def test_sphere_quadrature_is_exact_for_polynomials(exponents):
    rule = sphere_quadrature(Sphere(len(exponents)), 6)
    found = rule.integrate(lambda points: np.prod(points ** np.array(exponents), axis=1))
    assert found[0] == pytest.approx(monomial(exponents), rel=1e-13, abs=1e-14)
    assert len(rule.points) == 2 * 6 ** (len(exponents) - 1)
    np.testing.assert_allclose(np.linalg.norm(rule.points, axis=1), 1, atol=1e-15)


def test_degree_of_exactness_is_sharp():
    for order in (3, 4):
        rule = sphere_quadrature(Sphere(3), order)
        error = [
            abs(rule.integrate(lambda x, k=k: x[:, 2] ** k)[0] - 4 * pi / (k + 1)) for k in (2 * order - 2, 2 * order)
        ]
        assert error[0] < 1e-14 * 10
        assert error[1] > 1e-3


def test_box_quadrature():
    rule = box_quadrature((0, -1), (2, 1), (3, 5), order=3)
    assert rule.points.shape == (3 * 5 * 9, 2)
    assert rule.mass()[0] == pytest.approx(4, rel=1e-14, abs=0)
    # ∫₀² x⁵ dx ∫₋₁¹ y⁴ dy
    assert rule.integrate(lambda p: p[:, 0] ** 5 * p[:, 1] ** 4)[0] == pytest.approx(2**6 / 6 * 2 / 5, rel=1e-13, abs=0)
    line = box_quadrature(0, pi, 10)
    assert line.integrate(lambda p: np.sin(p[:, 0]))[0] == pytest.approx(2, rel=1e-12, abs=0)


def test_weighted_tokens_of_a_law():
    # μ = weights × density: a token measure of mass one whose mean is coth κ − 1/κ
    law, rule = VonMisesFisher((0, 0, 1), 3.0), sphere_quadrature(Sphere(3), 20)
    mass = rule.weights[0] * law.density(rule.points, Sphere(3))
    assert mass @ rule.points[:, 2] == pytest.approx(1 / np.tanh(3) - 1 / 3, rel=1e-13, abs=0)


def test_bad_arguments():
    with pytest.raises(InputError, match=r"lives on a sphere, but tokens live on R\^2; try box_quadrature"):
        sphere_quadrature(Euclidean(2), 3)
    with pytest.raises(InputError, match="order must be ≥ 1, found 0"):
        sphere_quadrature(Sphere(2), 0)
    with pytest.raises(InputError, match="cells must be one number, or one for each of 2 axes"):
        box_quadrature((0, 0), (1, 1), (1, 2, 3))
    with pytest.raises(InputError, match="cells must be a whole number"):
        box_quadrature((0, 0), (1, 1), (1.5, 2))
