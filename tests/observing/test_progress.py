"""Progress on a clock that the test turns."""

import io
import math
from itertools import pairwise

import pytest
from mpi4py import MPI

from pde_solver.observing import Progress


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def run(seconds_per_step, steps, *, stream=None, silent=False):
    """The steps at which a line was due, and what was written."""
    clock, stream = Clock(), io.StringIO() if stream is None else stream
    progress = Progress(MPI.COMM_SELF, silent=silent, stream=stream, clock=clock)
    progress.start("320 cells on 1 rank", 0.0, 4.0)
    lines = []
    for step in range(1, steps + 1):
        clock.now += seconds_per_step(step)
        if progress.due(last=step == steps):
            lines.append((step, clock.now))
            progress.update(4.0 * step / steps, 4.0 / steps, step, 1.0, 0.01, 8.19e7)
    progress.finish("finished at t = 4")
    progress.finish()
    return lines, stream


@pytest.mark.parametrize("seconds", [1e-4, 0.01, 1.0, 30.0])
def test_a_line_every_ten_seconds_or_every_step(seconds):
    steps = int(min(200_000, max(10, 60 / seconds)))
    lines, _ = run(lambda step: seconds, steps)
    assert lines[0][0] == 1
    assert lines[-1][0] == steps
    gaps = [b[1] - a[1] for a, b in pairwise(lines[:-1])]
    assert all(10 - 1e-6 <= gap <= max(12.6, 1.01 * seconds) for gap in gaps)
    assert gaps or steps * seconds < 25


def test_a_run_that_slows_down_is_still_heard():
    """Steps become 8 times slower at step 3000: at most an eighth of the interval × 8 is waited for in vain."""
    lines, _ = run(lambda step: 0.01 if step < 3000 else 0.08, 6000)
    assert max(b[1] - a[1] for a, b in pairwise(lines)) <= 2 * 10 + 0.1


def test_few_checks():
    """Between checks no rank speaks to another: a fast run of 100,000 steps is checked a few hundred times."""
    clock = Clock()
    progress = Progress(MPI.COMM_SELF, stream=io.StringIO(), clock=clock)
    progress.start("", 0, 1)
    checks, check = [], progress._check
    progress._check = lambda: checks.append(1) or check()
    for _ in range(100_000):
        clock.now += 1e-3
        if progress.due():
            progress.update(0.5, 0.1, 1, 1.0, 0.0, math.nan)
    assert 50 < len(checks) < 150


def test_lines_hold_no_control_characters():
    _, stream = run(lambda step: 6.0, 4)
    text = stream.getvalue()
    assert text.splitlines() == [
        "320 cells on 1 rank",
        "t = 1 of 4 (25 %), step 1, dt = 1, mass 1.000000000000, min density 0.01, 81.9 Mcells/s, 18 s left",
        "t = 3 of 4 (75 %), step 3, dt = 1, mass 1.000000000000, min density 0.01, 81.9 Mcells/s, 6 s left",
        "t = 4 of 4 (100 %), step 4, dt = 1, mass 1.000000000000, min density 0.01, 81.9 Mcells/s, 0 s left",
        "finished at t = 4",
    ]
    assert all(character == "\n" or character.isprintable() for character in text)


def test_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    _, stream = run(lambda step: 6.0, 4, stream=Terminal())
    text = stream.getvalue()
    assert "\x1b[" in text
    assert "━" in text
    assert "min density 0.01" in text
    assert text.rstrip().endswith("finished at t = 4")

    monkeypatch.setenv("TERM", "dumb")
    _, stream = run(lambda step: 6.0, 4, stream=Terminal())
    assert "\x1b" not in stream.getvalue()


def test_silent():
    lines, stream = run(lambda step: 6.0, 4, silent=True)
    assert lines == []  # nothing is ever due
    assert stream.getvalue() == ""


def test_masses_of_labels_and_tokens_without_density():
    stream = io.StringIO()
    progress = Progress(MPI.COMM_SELF, stream=stream)
    progress.start("tokens", 0.0, 1.0)
    progress.update(0.0, 0.1, 0, [1.0, 0.75], math.nan, math.nan)
    assert stream.getvalue().splitlines()[1] == "t = 0 of 1 (0 %), step 0, dt = 0.1, mass 0.750000000000"
