import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, velocity
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Linear, Model, Unnormalised
from pde_solver.solutions.equiangular import equiangular_gap, equiangular_rate

TABLE = Path(__file__).parent.parent / "data" / "equiangular.csv"
DEPTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
USA = Unnormalised()


def equiangular_tokens(inner_product, count):
    """n unit vectors of R^n with that inner product: rows of the root of their Gram matrix."""
    gram = (1 - inner_product) * np.eye(count) + inner_product
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0))


def test_table():
    # right values: equiangular.csv, from γ₀ = 0. The table holds 1 − γ computed from γ, so it is right to 1e-12 at best
    # (entries that should be e^{−60} or less are up to 6.5e-13); its eleven digits are right to 2e-11
    with TABLE.open() as file:
        table = list(csv.reader(file))[1:]
    assert len(table) == 12
    for model, count, beta, *gaps in table:
        head = Attention(float(beta)) if model == "SA" else Attention(float(beta), normaliser=USA)
        for t, gap in zip(DEPTHS, gaps, strict=True):
            assert equiangular_gap(t, 0.0, head, int(count)) == pytest.approx(float(gap), rel=2.5e-11, abs=7e-13)


@pytest.mark.parametrize(
    ("head", "t", "size"),
    [
        (Attention(1.0), 25.0, 1e-20),
        (Attention(4.0, normaliser=USA), 0.8, 1e-18),
        (Attention(9.0, normaliser=Unnormalised(log_scale=9.0)), 800.0, 1e-60),
        (Attention(2.0, query=-np.eye(3)), 20.0, 1e-16),
    ],
)
def test_small_gaps_keep_their_digits(head, t, size):
    """Right values: depth is ∫ d ln(1 − γ) / rate, by quadrature from the gap found back to the start."""
    b, count = head.beta * (-1 if head.query is not None else 1), 5

    def rate(u):
        gap = np.exp(u)
        factor = 2 * ((count - 1) * (1 - gap) + 1)
        if head.normaliser.normalised:
            return factor * np.exp(b * (1 - gap)) / (np.exp(b) + (count - 1) * np.exp(b * (1 - gap)))
        return factor / count * np.exp(b * (1 - gap) - head.normaliser.log_scale)

    found = equiangular_gap(t, 0.1, head, count)
    assert 0 < found < size
    middle, total = np.log(1e-3), 0.0
    for low, high in ((np.log(found), middle), (middle, np.log(0.9))):
        total += quad(lambda u: 1 / rate(u), low, high, epsabs=0, epsrel=1e-13)[0]
    # measured: 1e-14; the relative error of 1 − γ is that of t times ln(1/(1 − γ)) at most
    assert total == pytest.approx(t, rel=2e-13, abs=0)


@pytest.mark.parametrize(
    "head",
    [
        Attention(2.0),
        Attention(2.0, normaliser=L2()),
        Attention(2.0, normaliser=Unnormalised(log_scale=1.0), weight=0.5),
        Attention(3.0, query=-np.eye(4)),
        Attention(1.0, value=-0.7 * np.eye(4)),
    ],
)
def test_tokens_that_move(head):
    # right values: four tokens in R⁴ moved by the package's own velocity; here they agree to 4e-12
    count, start, t = 4, 0.2, 1.5
    model = Model(Sphere(count), head)

    def move(_t, x):
        points = x.reshape(count, count)
        measure = TokenMeasure(points, np.full((1, count), 1 / count))
        return velocity(model, 0.0, points, measure, evaluation=Evaluation(method="dense"))[0].ravel()

    before = equiangular_tokens(start, count)
    after = solve_ivp(move, (0, t), before.ravel(), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    gram = after.reshape(count, count) @ after.reshape(count, count).T
    expected = np.full(6, 1 - equiangular_gap(t, start, head, count))
    np.testing.assert_allclose(gram[np.triu_indices(count, 1)], expected, rtol=0, atol=2e-11)
    # the rate: ⟨x_1', x_2⟩ + ⟨x_1, x_2'⟩
    x = move(0.0, before.ravel()).reshape(count, count)
    measured = x[0] @ before[1] + before[0] @ x[1]
    assert equiangular_rate(start, head, count) == pytest.approx(measured, rel=1e-13, abs=0)


@pytest.mark.parametrize("normaliser", ["softmax", "unnormalised"])
def test_infinitely_many(normaliser):
    head = Attention(3.0) if normaliser == "softmax" else Attention(3.0, normaliser=Unnormalised(log_scale=2.0))
    # the first correction is of order e^{β(1−γ)}/n: ten times as many tokens bring it ten times as close
    errors = [abs(equiangular_gap(2.0, 0.2, head, n) / equiangular_gap(2.0, 0.2, head) - 1) for n in (10**4, 10**5)]
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.02)
    # right value of the rate: its difference quotient
    before, after = (equiangular_gap(1.0 + step, 0.2, head) for step in (-1e-4, 1e-4))
    gamma = 1 - equiangular_gap(1.0, 0.2, head)
    assert equiangular_rate(gamma, head) == pytest.approx((before - after) / 2e-4, rel=1e-6, abs=0)


def test_limits():
    head = Attention(1.0, value=-np.eye(3))
    assert equiangular_gap(1e3, 0.5, Attention(1.0)) == 0  # e^{−2000}
    assert equiangular_gap(1e3, 0.5, head) == 1  # repelled tokens become orthogonal when there are infinitely many
    assert equiangular_gap(30.0, 0.5, head, 3) == pytest.approx(1.5, rel=1e-12)  # and a simplex when there are three
    assert equiangular_gap(5.0, 1.0, Attention(1.0), 3) == 0
    assert equiangular_gap(0.0, 0.25, Attention(1.0), 3) == 0.75
    assert equiangular_gap(1.0, 0.0, Attention(1e4), 3) == 1  # apart: tokens see themselves alone


def test_bad_arguments():
    with pytest.raises(InputError, match="tokens must be ≥ 2, or None for infinitely many, found 1"):
        equiangular_gap(1.0, 0.0, Attention(1.0), 1)
    with pytest.raises(InputError, match=r"of 3 tokens, pair by pair, lies in \[-0.5, 1\], found -0.6"):
        equiangular_gap(1.0, -0.6, Attention(1.0), 3)
    with pytest.raises(InputError, match="of infinitely many tokens"):
        equiangular_rate(-0.1, Attention(1.0))
    with pytest.raises(InputError, match="equiangular_gap: t must be a finite number ≥ 0"):
        equiangular_gap(-1.0, 0.0, Attention(1.0))
    with pytest.raises(InputError, match="equiangular_rate: known for V = v I only"):
        equiangular_rate(0.0, Attention(1.0, value=[[1, 0], [0, 2]]))
    with pytest.raises(InputError, match="where Q and K are multiples of the identity only"):
        equiangular_rate(0.0, Attention(1.0, key=[[1, 0], [0, 2]]))
    with pytest.raises(InputError, match="known for a single Attention head only"):
        equiangular_rate(0.0, Attention(1.0) + Linear(np.eye(2)))
