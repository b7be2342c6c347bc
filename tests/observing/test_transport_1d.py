"""One-dimensional transport against linear programming, an independent solver."""

import numpy as np
import ot
import pytest

from pde_solver.observing.transport_1d import transport_on_circle, transport_on_line


def laws(kind, rng):
    n, m = rng.integers(1, 25, 2)
    x, y = rng.random(n), rng.random(m)
    a, b = rng.random(n) ** 4, rng.random(m) ** 4  # some atoms carry almost nothing
    if kind == "close":
        y = np.mod(x[rng.integers(0, n, m)] + 1e-3 * rng.standard_normal(m), 1)
    if kind == "ties":
        x, y = np.round(8 * x) / 8 % 1, np.round(8 * y) / 8 % 1
    if kind == "equal masses":
        a, b = np.ones(n), np.ones(m)
    return x, a / a.sum(), y, b / b.sum()


@pytest.mark.parametrize("kind", ["random", "close", "ties", "equal masses"])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_line_and_circle_equal_linear_programming(kind, p):
    rng = np.random.default_rng(3)
    for _ in range(40):
        x, a, y, b = laws(kind, rng)
        apart = np.abs(x[:, None] - y)
        assert transport_on_line(x, a, y, b, p) == pytest.approx(ot.emd2(a, b, apart**p), abs=1e-13)
        around = np.minimum(apart, 1 - apart)
        assert transport_on_circle(x, a, y, b, p) == pytest.approx(ot.emd2(a, b, around**p), abs=1e-13)


def test_circle_equals_the_best_cut():
    """Brute force, equal masses: sorted atoms are matched in order up to a cyclic shift; try all shifts."""
    rng = np.random.default_rng(5)
    n = 12
    x, y, mass = np.sort(rng.random(n)), np.sort(rng.random(n)), np.full(n, 1 / n)
    for p in (1, 2):
        gaps = [np.abs(x - np.roll(y, k)) for k in range(n)]
        best = min(np.mean(np.minimum(gap, 1 - gap) ** p) for gap in gaps)
        assert transport_on_circle(x, mass, y, mass, p) == pytest.approx(best, abs=1e-14)


@pytest.mark.parametrize("shift", [1e-9, 1e-4, 0.2])
def test_circle_rotation_keeps_small_distances(shift):
    """A law and its rotation; all atoms within a tenth of a turn, so the optimal map is the rotation itself."""
    x = np.linspace(-0.05, 0.05, 50)
    mass = np.full(50, 1 / 50)
    for p in (1, 2):
        power = transport_on_circle(np.mod(x, 1), mass, np.mod(x + shift, 1), mass, p)
        assert power ** (1 / p) == pytest.approx(shift, rel=1e-6)


def test_circle_of_a_law_to_itself_is_zero():
    x, a, _, _ = laws("random", np.random.default_rng(7))
    assert transport_on_circle(x, a, x[::-1], a[::-1], 2) == 0
