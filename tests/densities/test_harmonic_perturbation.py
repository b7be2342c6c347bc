import numpy as np
import pytest

from pde_solver.densities import HarmonicPerturbation, sphere_quadrature
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere

POINTS = sphere_quadrature(Sphere(3), 150).points
X, Y, Z = POINTS.T


@pytest.mark.parametrize(
    ("degree", "order", "expected"),
    [
        # the real spherical harmonics as polynomials, scaled to the maximum one
        (1, 0, Z),
        (1, 1, -X),
        (2, 0, (3 * Z**2 - 1) / 2),
        (2, 1, -2 * X * Z),
        (2, -1, -2 * Y * Z),
        (2, 2, X**2 - Y**2),
        (2, -2, 2 * X * Y),
        (3, 0, (5 * Z**3 - 3 * Z) / 2),
        (3, 2, (X**2 - Y**2) * Z / (2 / 3**1.5)),
    ],
)
def test_harmonics_on_the_sphere(degree, order, expected):
    found = HarmonicPerturbation(degree, 1.0, order).harmonic(POINTS, Sphere(3))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 5, 19, 40])
def test_maximum_is_one(order):
    polar = np.linspace(0, np.pi, 20_001)
    meridian = np.column_stack([np.sin(polar), 0 * polar, np.cos(polar)])
    found = np.abs(HarmonicPerturbation(40, 1.0, order).harmonic(meridian, Sphere(3))).max()
    assert 1 - 1e-4 < found <= 1 + 1e-12


def test_harmonics_on_the_circle():
    angles = np.linspace(-3, 3, 50)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    np.testing.assert_allclose(HarmonicPerturbation(5, 1).harmonic(points, Sphere(2)), np.cos(5 * angles), atol=1e-12)
    np.testing.assert_allclose(
        HarmonicPerturbation(5, 1, -1).harmonic(points, Sphere(2)), np.sin(5 * angles), atol=1e-12
    )


def test_zonal_harmonic_on_the_three_sphere():
    # Gegenbauer C_l¹ = Chebyshev U_l: sin((l+1)a) / ((l+1) sin a) at height cos a
    points = sphere_quadrature(Sphere(4), 10).points
    a = np.arccos(points[:, 3])
    found = HarmonicPerturbation(3, 1.0).harmonic(points, Sphere(4))
    np.testing.assert_allclose(found, np.sin(4 * a) / (4 * np.sin(a)), atol=1e-12)


def test_bad_arguments():
    with pytest.raises(InputError, match=r"amplitude must lie in \[-1, 1\], or the density is negative, found 1.5"):
        HarmonicPerturbation(2, 1.5)
    with pytest.raises(InputError, match="degree must be ≥ 1, found 0"):
        HarmonicPerturbation(0, 0.5)
    with pytest.raises(InputError, match=r"degree must be a whole number, found 2\.0"):
        HarmonicPerturbation(2.0, 0.5)
    with pytest.raises(InputError, match=r"order must lie in \[-2, 2\]"):
        HarmonicPerturbation(2, 0.5, 3)
    with pytest.raises(InputError, match="on the circle the order must be -1 or 0, found 2"):
        HarmonicPerturbation(2, 0.5, 2).density(np.eye(2), Sphere(2))
    with pytest.raises(InputError, match=r"on the sphere S\^3 the order must be 0, found 1"):
        HarmonicPerturbation(2, 0.5, 1).density(np.eye(4), Sphere(4))
    with pytest.raises(InputError, match=r"lives on a sphere, but tokens live on R\^2; try Expression"):
        HarmonicPerturbation(2, 0.5).density(np.eye(2), Euclidean(2))
