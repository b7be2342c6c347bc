import mpmath
import numpy as np
import pytest
from scipy.special import sph_harm_y

from pde_solver.kernel_sums.harmonics import Harmonics, bessel, harmonics, table_bytes, truncation, with_moments


def grid(latitudes):
    """Angles θ (n, 1) and φ (2n,)."""
    return (np.arange(latitudes)[:, None] + 0.5) * np.pi / latitudes, np.arange(2 * latitudes) * np.pi / latitudes


def real_coefficients(degree, columns, seed=1):
    rng = np.random.default_rng(seed)
    result = rng.normal(size=(degree + 1, degree + 1, columns)) + 1j * rng.normal(
        size=(degree + 1, degree + 1, columns)
    )
    result[0].imag = 0
    return result * np.triu(np.ones((degree + 1, degree + 1)))[:, :, None]


def synthesised(degree, latitudes, coefficients):
    out = np.empty((coefficients.shape[2], latitudes, 2 * latitudes))
    harmonics(degree, latitudes).synthesise(coefficients, out)
    return out


@pytest.mark.parametrize(("degree", "latitudes"), [(0, 8), (1, 8), (13, 20), (40, 44)])
def test_synthesis_and_analysis_against_scipy(degree, latitudes):
    coefficients = real_coefficients(degree, 2)
    theta, phi = grid(latitudes)
    values = np.zeros((2, latitudes, 2 * latitudes))
    masses = np.random.default_rng(2).normal(size=values.shape)
    sums = np.zeros_like(coefficients)
    for m in range(degree + 1):
        for ell in range(m, degree + 1):
            harmonic = sph_harm_y(ell, m, theta, phi)
            values += (2 if m else 1) * np.real(coefficients[m, ell][:, None, None] * harmonic)
            sums[m, ell] = np.sum(masses * np.conj(harmonic), axis=(1, 2))
    np.testing.assert_allclose(synthesised(degree, latitudes, coefficients), values, rtol=0, atol=2e-12)
    np.testing.assert_allclose(harmonics(degree, latitudes).analyse(masses), sums, rtol=0, atol=2e-12)


def test_high_degrees_at_all_latitudes():
    # right values: scipy; near the poles the starting values are far below the smallest float
    degree, latitudes = 300, 310
    theta, phi = grid(latitudes)
    chosen = [(0, 300), (1, 299), (20, 300), (100, 290), (150, 151), (299, 300), (300, 300)]
    table = Harmonics(degree, latitudes)
    for m, ell in chosen:
        coefficients = np.zeros((degree + 1, degree + 1, 1), dtype=complex)
        coefficients[m, ell] = 1.0
        out = np.empty((1, latitudes, 2 * latitudes))
        table.synthesise(coefficients, out)
        right = (2 if m else 1) * sph_harm_y(ell, m, theta, phi[:5]).real
        np.testing.assert_allclose(out[0, :, :5], right, rtol=0, atol=2e-12)


@pytest.mark.parametrize(("degree", "latitudes"), [(64, 80), (200, 240)])
def test_memory_of_the_legendre_functions(degree, latitudes):
    taken = sum(block.symmetric.nbytes + block.antisymmetric.nbytes for block in Harmonics(degree, latitudes)._blocks)
    assert 1 <= taken / table_bytes(degree, latitudes) < 1.25  # blocks hold zeros beside the triangle


def test_moments_are_coefficients_of_the_multiplied_law():
    degree, latitudes = 17, 20
    theta, phi = grid(latitudes)
    masses = np.random.default_rng(3).random((2, latitudes, 2 * latitudes))
    transform = harmonics(degree, latitudes)
    moments = with_moments(transform.analyse(masses))
    for k, y in enumerate((1.0, np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta) + 0 * phi)):
        right = transform.analyse(masses * y)
        np.testing.assert_allclose(moments[:, :degree, :, k], right[:, :degree], rtol=0, atol=1e-12)


def test_bessel_functions_against_mpmath():
    radii = np.array([0.0, 1e-9, 1e-3, 0.7, 5.0, 64.0, 1024.0, 2e4])
    found = bessel(radii, 300)
    assert np.array_equal(found[0], np.eye(301)[0])
    with mpmath.workdps(40):
        for r, row in zip(radii[1:], found[1:], strict=True):
            for ell in (0, 1, 2, 10, 100, 300):
                exact = mpmath.sqrt(mpmath.pi / (2 * r)) * mpmath.besseli(ell + 0.5, mpmath.mpf(r)) * mpmath.exp(-r)
                if exact > 1e-290:
                    assert abs(row[ell] / float(exact) - 1) < 5e-13


@pytest.mark.parametrize("beta", [0.1, 5.0, 60.0])
def test_addition_theorem(beta):
    # e^{β⟨x,y⟩ − β} = 4π Σ_l e^{−β} i_l(β) Σ_m Y_lm(x) Y*_lm(y), for a unit mass on one node of the grid
    degree, latitudes = truncation(beta, 1e-14), 80
    theta, phi = grid(latitudes)
    masses = np.zeros((1, latitudes, 2 * latitudes))
    masses[0, 11, 33] = 1.0
    coefficients = harmonics(degree, latitudes).analyse(masses) * (
        4 * np.pi * bessel(np.array([beta]), degree)[0, :, None]
    )
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta) + 0 * phi])
    right = np.exp(beta * (np.einsum("k,kij->ij", points[:, 11, 33], points) - 1))
    np.testing.assert_allclose(synthesised(degree, latitudes, coefficients)[0], right, rtol=0, atol=1e-13)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-12])
def test_truncation_leaves_out_what_it_says(tolerance):
    degrees = [truncation(r, tolerance) for r in (0.0, 1e-3, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)]
    assert degrees[0] == 0
    assert np.all(np.diff(degrees) >= 0)
    assert np.all([truncation(r, tolerance / 100) >= truncation(r, tolerance) for r in (0.0, 1.0, 64.0)])
    for r, degree in zip((1.0, 64.0, 1024.0), (degrees[2], degrees[5], degrees[7]), strict=True):
        terms = (2 * np.arange(800) + 1) * bessel(np.array([r]), 799)[0]
        assert terms[degree + 1 :].sum() <= tolerance * terms[0] < terms[degree:].sum()
