"""How a run ended, as a sentence."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How a run ended; `str(outcome)` is a sentence.

    Args:
        completed: whether the stop depth was reached.
        t: depth reached.
        steps: steps taken.
        rejected: steps taken back because a mean density turned negative.
        seconds: wall time of the loop, all legs of a run that was resumed together.
        mass_error: largest relative change of any label's mass.
        minimum: smallest density at the end (nan for tokens).
        wall_mass: mass that pressed against walls, Σ wall flux · step (0 without walls).
        velocity_error: largest error that a check has found in velocities that were used, relative to the largest velocity
            (None where all sums were direct).
        reason: why the run ended early, empty if it did not.
    """

    completed: bool
    t: float
    steps: int
    rejected: int
    seconds: float
    mass_error: float
    minimum: float
    wall_mass: float
    velocity_error: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        end = f"Reached t = {self.t:g}" if self.completed else f"Stopped at t = {self.t:g} ({self.reason})"
        parts = [f"{end} in {self.steps} steps and {self.seconds:.3g} s", f"mass changed by {self.mass_error:.1e}"]
        if not math.isnan(self.minimum):
            parts.append(f"smallest density {self.minimum:.3g}")
        if self.velocity_error is not None:
            parts.append(f"velocity to {self.velocity_error:.1e}")
        if self.rejected:
            parts.append(f"{self.rejected} steps halved")
        if self.wall_mass:
            parts.append(f"mass that pressed against walls {self.wall_mass:.2e}")
        return "; ".join(parts) + "."
