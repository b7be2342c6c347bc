"""At which depths something is observed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pde_solver.errors import InputError

#: Depths closer than this fraction of the run (or of the spacing) are the same depth.
ROUNDING = 1e-9

#: A schedule with more depths is taken for a slip of the pen.
MOST_TIMES = 1_000_000


@dataclass(frozen=True)
class Schedule:
    """The depths of an observation: `Schedule.every(0.1)` or `Schedule.at([0, 0.5, 2])`.

    Args:
        spacing: Δt between depths, counted from the start of the run, the end included; None for given depths.
        depths: the given depths, increasing; empty with a spacing.
    """

    spacing: float | None = None
    depths: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if (self.spacing is None) == (not self.depths):
            raise InputError("Schedule: give either a spacing, Schedule.every(0.1), or depths, Schedule.at([0, 1]).")
        if self.spacing is not None and not (_is_number(self.spacing) and self.spacing > 0):
            raise InputError(f"Schedule: every must be a finite number > 0, found {self.spacing!r}.")
        for depth in self.depths:
            if not _is_number(depth):
                raise InputError(f"Schedule: at must list finite numbers, found {depth!r}.")
        if any(later <= earlier for earlier, later in zip(self.depths, self.depths[1:], strict=False)):
            raise InputError(f"Schedule: at must list increasing depths, found {list(self.depths)}.")

    @classmethod
    def every(cls, spacing: float) -> "Schedule":
        """Every Δt from the start of the run, and its end.

        Raises:
            InputError: Δt is not a finite number > 0.
        """
        return cls(spacing=spacing)

    @classmethod
    def at(cls, depths: Sequence[float]) -> "Schedule":
        """The given depths alone.

        Raises:
            InputError: the list is empty, does not increase or holds something that is not a finite number.
        """
        return cls(depths=tuple(depths))

    def times(self, start: float, stop: float) -> tuple[float, ...]:
        """The depths of a run from `start` to `stop`.

        They are start + k Δt, not a running sum. A depth within rounding of `stop` is `stop` itself, so that
        no step of 1e-14 is left over when stop = k Δt only up to floating point.

        Raises:
            InputError: stop ≤ start, a given depth lies outside the run, or there are too many depths.
        """
        if not (_is_number(start) and _is_number(stop) and start < stop):
            raise InputError(
                f"Schedule: stop must be a finite number > start, found start = {start!r}, stop = {stop!r}."
            )
        if self.spacing is None:
            return self._given(start, stop)
        count = (stop - start) / self.spacing
        if count > MOST_TIMES:
            raise InputError(
                f"Schedule: every = {self.spacing:g} from {start:g} to {stop:g} makes {count:.3g} depths, "
                f"at most {MOST_TIMES} are allowed; take a larger spacing."
            )
        # all k Δt that are earlier than the end by more than rounding, then the end itself
        inner = (start + k * self.spacing for k in range(math.ceil(count) + 1))
        return (*(t for t in inner if t < stop - ROUNDING * self.spacing), stop)

    def _given(self, start: float, stop: float) -> tuple[float, ...]:
        slack = ROUNDING * (stop - start)
        for depth in self.depths:
            if not start - slack <= depth <= stop + slack:
                raise InputError(
                    f"Schedule: depth {depth:g} lies outside the run, which goes from {start:g} to {stop:g}."
                )
        snapped = [
            start if abs(t - start) <= slack else stop if abs(t - stop) <= slack else float(t) for t in self.depths
        ]
        return tuple(dict.fromkeys(snapped))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
