"""How far a run has come: a bar on a terminal, a line now and then elsewhere."""

import math
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

import numpy as np
import rich.progress
from mpi4py import MPI
from rich.console import Console

from pde_solver.parallel import on_root

#: Seconds between two updates of the bar.
BAR_INTERVAL = 0.25


class Progress:
    """Tells on standard error how far a run has come; rank 0 alone writes.

    On a terminal a bar; elsewhere (a pipe, a file, under mpiexec) one flushed line about every `interval` seconds,
    the first and the last step always, without control characters.

    The caller works out mass and minimum, which cost a reduction, only when `due()` says so. That must be the same
    answer on all ranks, without a message in every step. So rank 0 looks at its clock only at *checks*, which all ranks
    reach at the same step, and broadcasts there whether a line is due and after how many steps the next check comes.
    Checks are planned an eighth of the interval apart by the speed since the last one, and that gap at most doubles
    from one to the next; so a run that suddenly becomes eight times slower still reports every two intervals.

    Args:
        comm: the ranks of the run.
        silent: write nothing at all.
        interval: seconds between two lines.
        stream: where to write.
        clock: seconds; `time.monotonic` unless a test brings its own.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        *,
        silent: bool = False,
        interval: float = 10.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._comm, self._silent, self._clock = comm, silent, clock
        self._stream = sys.stderr if stream is None else stream
        self._writes = comm.rank == 0 and not silent
        self._on_terminal = self._writes and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._interval = BAR_INTERVAL if self._on_terminal else interval
        self._bar: rich.progress.Progress | None = None
        self._task = rich.progress.TaskID(0)

    def start(self, sentence: str, start: float, stop: float) -> None:
        """Say what begins and remember the depths between which it runs."""
        self._start, self._stop = start, stop
        self._began = self._last_line = self._last_check = self._clock()
        self._steps_to_check, self._gap = 1, 1
        self._first = True
        if self._writes:
            self._line(sentence)
        if self._on_terminal:
            self._bar = rich.progress.Progress(
                rich.progress.BarColumn(bar_width=20),
                rich.progress.TextColumn("{task.description}", markup=False),
                console=Console(file=self._stream),
                auto_refresh=False,
                transient=True,
            )
            self._task = self._bar.add_task("", total=stop - start)
            self._bar.start()

    def due(self, last: bool = False) -> bool:
        """Whether an update is wanted after this step, the same on all ranks. Call it once a step, on every rank.

        Args:
            last: whether this is the last step, which is always shown; the same on all ranks.
        """
        if self._silent:
            return False
        if last:
            return True
        self._steps_to_check -= 1
        if self._steps_to_check > 0:
            return False
        due, self._gap = on_root(self._comm, self._check)
        self._steps_to_check = self._gap
        return due

    def _check(self) -> tuple[bool, int]:
        now = self._clock()
        due = self._first or now - self._last_line >= self._interval
        seconds_per_step = max(now - self._last_check, 1e-9) / self._gap
        wanted = int(self._interval / 8 / seconds_per_step)
        self._last_check = now
        return due, max(1, min(wanted, 2 * self._gap))

    def update(
        self, t: float, dt: float, step: int, mass: float | np.ndarray, minimum: float, cells_per_second: float
    ) -> None:
        """Show where the run is, after a step that was `due()`.

        Args:
            t: depth.
            dt: size of the last step.
            step: steps so far.
            mass: of the law; of several labels the one farthest from 1 is shown.
            minimum: the least density; nan where there is none.
            cells_per_second: cells × stages per second; nan where unknown.
        """
        now = self._clock()
        self._first, self._last_line = False, now
        if not self._writes:
            return
        done = (t - self._start) / (self._stop - self._start)
        left = (now - self._began) * (1 - done) / done if done > 0 else math.nan
        masses = np.atleast_1d(mass)
        parts = [
            f"t = {t:.6g} of {self._stop:g} ({100 * min(done, 1.0):.0f} %)",
            f"step {step}",
            f"dt = {dt:.3g}",
            f"mass {masses[np.argmax(np.abs(masses - 1))]:.12f}",
            *([] if math.isnan(minimum) else [f"min density {minimum:.3g}"]),
            *([] if math.isnan(cells_per_second) else [f"{_scaled(cells_per_second)}cells/s"]),
            *([] if math.isnan(left) else [f"{_duration(left)} left"]),
        ]
        if self._bar is None:
            self._line(", ".join(parts))
        else:
            self._bar.update(self._task, completed=t - self._start, description=", ".join(parts), refresh=True)

    def finish(self, sentence: str = "") -> None:
        """Take the bar away and say how the run ended; call it whatever the outcome."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._writes and sentence:
            self._line(sentence)

    def _line(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def _scaled(number: float) -> str:
    """A number with a decimal prefix: 81.9 M."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}"
    return f"{number:.3g} "


def _duration(seconds: float) -> str:
    """Seconds as 12 s, 3 min 20 s or 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
