import csv
from pathlib import Path

import mpmath
import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere
from pde_solver.models import Attention, Linear, Unnormalised
from pde_solver.solutions.causal import response, response_rate
from pde_solver.solutions.causal_profile import (
    profile_minimum,
    recency_threshold,
    retrieval_profile,
    soft_accuracy,
    u_shape_threshold,
)

TABLE = Path(__file__).parent.parent / "data" / "causal_profile_minimum.csv"
S2 = Sphere(3)


def unnormalised(beta):
    return Attention(beta, normaliser=Unnormalised())


def test_table():
    # right values: causal_profile_minimum.csv; thresholds are right to 4e-16, minima to half a unit of the last digit
    with TABLE.open() as file:
        table = list(csv.DictReader(file))
    assert len(table) == 24
    for row in table:
        beta, slope, codebook, t = float(row["beta"]), float(row["lambda"]), int(row["M"]), float(row["t"])
        head = unnormalised(beta)
        # the table's depth is that of the paper: ours is β times larger
        recency, guaranteed = recency_threshold(slope, codebook, head) / beta, u_shape_threshold(slope, head) / beta
        assert recency == pytest.approx(float(row["recency_t_star"]), rel=1e-14, abs=0)
        assert guaranteed * float(row["sup_a"]) == pytest.approx(float(row["paper_threshold"]), rel=1e-14, abs=0)
        assert (t <= guaranteed) == (row["paper_condition_holds"] == "True")
        position, value = profile_minimum(beta * t, slope, codebook, head)
        if row["n_stationary"] == "0":
            assert np.isnan(position)
            assert np.isnan(value)
        else:
            assert position == pytest.approx(float(row["sigma_min"]), rel=0, abs=5.1e-13)
            assert value == pytest.approx(float(row["S_min"]), rel=5.1e-13, abs=0)


@pytest.mark.parametrize(
    ("head", "codebook"),
    [
        (unnormalised(1.0), 8),
        (unnormalised(16.0), 50),
        (Attention(60.0), 1000),
        (Attention(9.0), 1),
        (Attention(0.0), 4),
    ],
)
def test_enough_modes(head, codebook):
    # the same sum with 300 modes; largest relative difference 1.8e-16
    degrees = np.arange(1, 301)
    weights = np.exp(-((np.pi * degrees / codebook) ** 2) / 2)
    position = np.array([1e-12, 0.1, 0.999])
    t = 40 / max(response_rate(Sphere(2), head, n) for n in range(1, 301))
    found = retrieval_profile(t, position, 1.0, codebook, head)
    exact = sum(
        w * response(t * response_rate(Sphere(2), head, int(n)), 1.0, position, 1.0)
        for n, w in zip(degrees, weights, strict=True)
    )
    assert found == pytest.approx(exact, rel=2e-15, abs=0)
    assert retrieval_profile(t, position, 1.0, None, head, weights=weights) == pytest.approx(exact, rel=2e-15, abs=0)


def test_soft_accuracy():
    # the Gaussian sum of the decoder itself, for θ uniform plus N⁻¹ Σ g_n 2cos(nθ) / 2π: Poisson summation by quadrature
    head, codebook, count, t, position = unnormalised(1.0), 8, 500, 2.0, 0.3
    theta = 2 * np.pi * np.arange(512) / 512
    images = theta[:, None] - 2 * np.pi * np.arange(-2, 4)
    decoder = np.exp(-((codebook * images) ** 2) / (2 * np.pi**2)).sum(axis=1)
    law = np.ones(512)
    for n in range(1, 40):
        law += (
            2 / count * float(response(t * response_rate(Sphere(2), head, n), 1.0, position, 1.0)) * np.cos(n * theta)
        )
    found = float(soft_accuracy(t, position, count, 1.0, codebook, head))
    assert found == pytest.approx(np.mean(decoder * law), rel=1e-14, abs=0)


@pytest.mark.parametrize("head", [unnormalised(2.0), Attention(4.0), Attention(1.0) + Attention(3.0, weight=0.5)])
@pytest.mark.parametrize("slope", [0.3, 1.0, 4.0])
def test_recency(head, slope):
    """Just below the threshold the profile rises at the last token, just above it falls, by differences."""
    threshold, step = recency_threshold(slope, 8, head), 1e-6
    for factor, rises in ((0.999, True), (1.001, False)):
        before, last = retrieval_profile(factor * threshold, np.array([1 - step, 1.0]), slope, 8, head)
        assert (last > before) == rises
    assert u_shape_threshold(slope, head) <= threshold
    assert np.isfinite(profile_minimum(u_shape_threshold(slope, head), slope, 8, head)[0])


def test_one_mode_is_u_shaped_below_the_recency_threshold_only():
    # one mode with λ < log 4: a minimum inside exactly for c < 2(1 − e^{−λ})
    head = Attention(1.0)
    rate = response_rate(S2, head, 1)
    for slope in (0.1, 1.0):
        critical = -2 * np.expm1(-slope)
        below, above = (
            profile_minimum(f * critical / rate, slope, None, head, S2, weights=[3.0])[0] for f in (0.99, 1.01)
        )
        assert 0.9 < below < 1
        assert np.isnan(above)


def test_minimum_in_high_precision():
    # right values: the root of the derivative in mpmath; position right to 6.3e-16, value to 2e-16
    for t, slope in ((1e-4, 1.0), (0.02, 0.02), (1.0, 3.0)):
        head, weights = Attention(2.0), [0.6, 0.3, 0.1]
        position, value = profile_minimum(t, slope, None, head, S2, weights=weights)
        with mpmath.workdps(40):
            rates = [mpmath.mpf(response_rate(S2, head, n)) for n in (1, 2, 3)]
            rho, lam = [mpmath.mpf(w) for w in weights], mpmath.mpf(slope)

            def profile(sigma, rates=rates, rho=rho, lam=lam, t=t):
                y = mpmath.log(mpmath.expm1(lam) / mpmath.expm1(lam * sigma))
                kernel = lam * mpmath.exp(lam * sigma) / mpmath.expm1(lam)
                return kernel * sum(w * a * t * mpmath.hyp0f1(2, a * t * y) for w, a in zip(rho, rates, strict=True))

            root = mpmath.findroot(lambda u: mpmath.diff(profile, mpmath.exp(u)), mpmath.log(position), tol=1e-25)
            exact = mpmath.exp(root)
            assert position == pytest.approx(float(exact), rel=1e-14, abs=0)
            assert value == pytest.approx(float(profile(exact)), rel=1e-14, abs=0)


def test_no_slope_no_recency():
    # λ = 0: primacy only; the profile decreases from ∞
    head, position = unnormalised(1.0), np.geomspace(1e-12, 1, 400)
    for t in (0.01, 1.0, 10.0):
        assert np.all(np.diff(retrieval_profile(t, position, 0.0, 8, head)) < 0)
        assert np.isnan(profile_minimum(t, 0.0, 8, head)[0])
    assert recency_threshold(0.0, 8, head) == u_shape_threshold(0.0, head) == 0


def test_repulsion():
    # V = −I: the first effect is −c k_λ, so that the profile starts negative
    head, t = Attention(1.0, weight=-1.0), 1e-6
    found = retrieval_profile(t, 0.5, 1.0, 8, head)
    assert float(found) == pytest.approx(-float(retrieval_profile(t, 0.5, 1.0, 8, Attention(1.0))), rel=1e-5)
    with pytest.raises(InputError, match="known for heads that attract only"):
        recency_threshold(1.0, 8, head)
    with pytest.raises(InputError, match="known for heads that attract only"):
        u_shape_threshold(1.0, head)


def test_shapes():
    found = retrieval_profile(np.ones((3, 1)), np.linspace(0.1, 1, 4), 1.0, 8, Attention(1.0))
    assert found.shape == (3, 4)
    assert retrieval_profile(1.0, 0.5, 1.0, 8, Attention(1.0)).shape == ()


def test_bad_arguments():
    head = Attention(1.0)
    with pytest.raises(InputError, match="give either a codebook or weights"):
        retrieval_profile(1.0, 0.5, 1.0, None, head)
    with pytest.raises(InputError, match="give either a codebook or weights"):
        retrieval_profile(1.0, 0.5, 1.0, 8, head, weights=[1.0])
    with pytest.raises(
        InputError, match=r"codewords lie on the circle, but tokens live on the sphere S\^2; give weights"
    ):
        retrieval_profile(1.0, 0.5, 1.0, 8, head, S2)
    with pytest.raises(InputError, match="weights must be a list of finite numbers ≥ 0"):
        retrieval_profile(1.0, 0.5, 1.0, None, head, weights=[1.0, -1.0])
    with pytest.raises(InputError, match="codebook must be ≥ 1, found 0"):
        retrieval_profile(1.0, 0.5, 1.0, 0, head)
    with pytest.raises(InputError, match="t must be ≥ 0 and finite"):
        retrieval_profile(-1.0, 0.5, 1.0, 8, head)
    with pytest.raises(InputError, match="known for Attention heads and sums of them only"):
        u_shape_threshold(1.0, Linear(np.eye(2)))
