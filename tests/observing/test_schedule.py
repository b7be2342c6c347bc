"""Depths of observations, in floating point."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pde_solver.errors import InputError
from pde_solver.observing import Schedule


def test_every_is_not_a_running_sum():
    """0.1 added 10,000 times errs by 1.6e-10; k · 0.1 is the nearest double up to one rounding."""
    times = Schedule.every(0.1).times(0.0, 1000.0)
    assert len(times) == 10_001
    assert times[-1] == 1000.0
    assert all(t == k * 0.1 for k, t in enumerate(times[:-1]))


def test_the_end_is_always_there():
    assert Schedule.every(0.4).times(0.0, 1.0) == (0.0, 0.4, 0.8, 1.0)
    assert Schedule.every(5.0).times(1.0, 2.0) == (1.0, 2.0)
    assert Schedule.every(1.0).times(2.0, 4.0) == (2.0, 3.0, 4.0)


@settings(derandomize=True, database=None, max_examples=300)
@given(
    st.integers(1, 2000),
    st.floats(1e-3, 10.0, allow_nan=False),
    st.sampled_from([0.0, 0.1, 0.3, -1.7, 12.0]),
)
def test_stop_equal_to_k_spacings_leaves_no_tiny_step(k, spacing, start):
    """stop = start + k Δt in floating point, rounded either way, gives k + 1 depths and steps of about Δt."""
    for stop in (start + k * spacing, float(Fraction(start) + k * Fraction(spacing)), start + sum([spacing] * k)):
        times = Schedule.every(spacing).times(start, stop)
        assert len(times) == k + 1
        assert (times[0], times[-1]) == (start, stop)
        steps = [b - a for a, b in pairwise(times)]
        assert min(steps) > 0.99 * spacing
        assert max(steps) < 1.01 * spacing


def test_given_depths():
    assert Schedule.at([0, 0.5, 2]).times(0.0, 2.0) == (0.0, 0.5, 2.0)
    assert Schedule.at([0.3]).times(0.0, 3 * 0.1) == (3 * 0.1,)  # 0.30000000000000004 is the end of the run
    assert Schedule.at([1.0, 1.0 + 1e-12]).times(0.0, 1.0) == (1.0,)


@pytest.mark.parametrize("spacing", [0, -1, float("nan"), float("inf"), "0.1", None, True])
def test_bad_spacing(spacing):
    with pytest.raises(InputError, match="Schedule"):
        Schedule.every(spacing)


@pytest.mark.parametrize("depths", [[], [1, 1], [2, 1], [float("nan")], ["a"]])
def test_bad_depths(depths):
    with pytest.raises(InputError, match="Schedule"):
        Schedule.at(depths)


def test_bad_runs():
    with pytest.raises(InputError, match="depth 3 lies outside the run, which goes from 0 to 2"):
        Schedule.at([1, 3]).times(0.0, 2.0)
    with pytest.raises(InputError, match="stop must be"):
        Schedule.every(1).times(2.0, 2.0)
    with pytest.raises(InputError, match="larger spacing"):
        Schedule.every(1e-12).times(0.0, 1.0)
