"""What ends a run before it goes on with nonsense. Each guard is one sentence, and all ranks stop together."""

import math
from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError, RunStopped
from pde_solver.observing.snapshot import Snapshot
from pde_solver.parallel import max_over_ranks, min_over_ranks, same_on_all_ranks, sum_over_ranks


@dataclass(frozen=True, eq=False)
class Reference:
    """What the guards compare with.

    Args:
        start: depth at which the run begins.
        stop: depth at which it ends.
        mass: (labels,) the mass of each label's law at the start.
    """

    start: float
    stop: float
    mass: np.ndarray

    @classmethod
    def of(cls, snapshot: Snapshot, stop: float) -> "Reference":
        """The reference of a run that begins with this snapshot. Collective."""
        return cls(snapshot.t, stop, snapshot.measure.mass())


@dataclass(frozen=True)
class Guards:
    """The guards of a run, all on by default; None switches one off.

    Args:
        finite: whether every unknown must be finite.
        mass: largest relative change of any label's mass since the start.
        positivity: the least density must be ≥ −positivity × the largest; densities only.
        smallest_step: the step rule may not ask for less than this fraction of the run.
        most_steps: how many steps a run may take.

    Raises:
        InputError: a tolerance is negative or not a number.
    """

    finite: bool = True
    mass: float | None = 1e-12
    positivity: float | None = 1e-14
    smallest_step: float | None = 1e-12
    most_steps: int | None = 10_000_000

    def __post_init__(self) -> None:
        for name in ("mass", "positivity", "smallest_step", "most_steps"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value >= 0):
                raise InputError(f"guards: {name} must be a number ≥ 0, or None to switch it off; found {value!r}.")

    def accept(self, lowest: float, highest: float) -> bool:
        """Whether a density in this range is ≥ 0 up to the tolerance (or not a number, which `check` names)."""
        return self.positivity is None or not lowest < -self.positivity * highest

    def check(self, snapshot: Snapshot, dt: float, reference: Reference) -> None:
        """Check one step. Collective.

        Args:
            snapshot: the state after the step.
            dt: what the step rule asked for, before the step was cut to end on an output depth.
            reference: see `Reference`.

        Raises:
            RunStopped: a guard failed; on all ranks, with the sentence of the first that did.
        """
        if self.finite:
            check_finite(snapshot, dt)
        if self.mass is not None:
            check_mass(snapshot, dt, reference, self.mass)
        if self.positivity is not None:
            check_positivity(snapshot, dt, self.positivity)
        if self.smallest_step is not None:
            check_step_size(snapshot, dt, reference, self.smallest_step)
        if self.most_steps is not None:
            check_step_count(snapshot, dt, reference, self.most_steps)


def check_finite(snapshot: Snapshot, dt: float) -> None:
    """Every unknown is finite. One sum a step; the cell is looked for only when that fails.

    Raises:
        RunStopped: names the field, the first bad cell (in input order) or token, t and dt.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        total = sum_over_ranks(snapshot.comm, snapshot.state.sum())
    if max_over_ranks(snapshot.comm, float(not np.isfinite(total))) == 0:
        return
    index, rows = snapshot.discretisation.rows(snapshot.state)
    bad = np.asarray(index)[~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))]
    first = min_over_ranks(snapshot.comm, float(bad.min()) if len(bad) else math.inf)
    count = sum_over_ranks(snapshot.comm, len(bad))
    if count == 0:
        return  # finite numbers whose sum overflows
    field, place = ("the density", "cell") if snapshot.discretisation.has_density else ("the tokens", "token")
    raise RunStopped(
        f"{_where(snapshot, dt)}: {field} became NaN or infinite in {count} {place}{'s' if count > 1 else ''}, "
        f"first in {place} {first:.0f}; take smaller steps, or stop earlier if the solution blows up."
    )


def check_mass(snapshot: Snapshot, dt: float, reference: Reference, tolerance: float) -> None:
    """|mass_z − mass_z(start)| ≤ tolerance × mass_z(start) for every label z.

    Raises:
        RunStopped: names the label, its mass and its change.
    """
    mass = snapshot.measure.mass()
    change = np.abs(mass - reference.mass) / reference.mass
    sentence = None
    if not np.all(change <= tolerance):
        label = int(np.argmax(np.nan_to_num(change, nan=np.inf)))
        which = f" of label {label}" if len(mass) > 1 else ""
        sentence = (
            f"{_where(snapshot, dt)}: the mass{which} is {mass[label]:.15g}, changed by {change[label]:.2g} of what "
            f"it was at the start, allowed is {tolerance:.2g}; the scheme conserves mass, so look for a velocity or "
            "a mesh that is broken."
        )
    _stop_together(snapshot, sentence)


def check_positivity(snapshot: Snapshot, dt: float, tolerance: float) -> None:
    """min f ≥ −tolerance × max f, for discretisations with a density.

    Raises:
        RunStopped: names the least density.
    """
    if not snapshot.discretisation.has_density:
        return
    minimum, maximum = snapshot.discretisation.density_range(snapshot.state)
    sentence = None
    if not minimum >= -tolerance * maximum:
        sentence = (
            f"{_where(snapshot, dt)}: the density fell to {minimum:.3g} (the largest is {maximum:.3g}); "
            "a density is ≥ 0: take smaller steps, or switch the limiter on."
        )
    _stop_together(snapshot, sentence)


def check_step_size(snapshot: Snapshot, dt: float, reference: Reference, fraction: float) -> None:
    """dt ≥ fraction × (stop − start).

    Raises:
        RunStopped: names dt and the length of the run.
    """
    least = fraction * (reference.stop - reference.start)
    sentence = None
    if not dt >= least:
        sentence = (
            f"{_where(snapshot, dt)}: the step collapsed below {least:.2g}, {fraction:.2g} of the run; "
            f"the solution may blow up: stop before t = {snapshot.t:.3g}, or loosen the step rule."
        )
    _stop_together(snapshot, sentence)


def check_step_count(snapshot: Snapshot, dt: float, reference: Reference, most: int) -> None:
    """step ≤ most, unless the run is over.

    Raises:
        RunStopped: names the number of steps and how far they came.
    """
    sentence = None
    if snapshot.step >= most and snapshot.t < reference.stop:
        sentence = (
            f"{_where(snapshot, dt)}: {most} steps did not reach t = {reference.stop:g}; "
            "allow more steps, or take a coarser mesh or a larger step."
        )
    _stop_together(snapshot, sentence)


def _where(snapshot: Snapshot, dt: float) -> str:
    return f"Stopped at t = {snapshot.t:.9g} (step {snapshot.step}, dt = {dt:.3g})"


def _stop_together(snapshot: Snapshot, sentence: str | None) -> None:
    """Raise on all ranks if any rank has a sentence; one small reduction when none has."""
    if max_over_ranks(snapshot.comm, float(sentence is not None)) > 0:
        same_on_all_ranks(snapshot.comm, None if sentence is None else RunStopped(sentence))
