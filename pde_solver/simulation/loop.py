"""The time loop: steps that end exactly on events, observers at their depths, guards after every step."""

import math
import signal
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pde_solver.densities import Law
from pde_solver.discretisations.base import Discretisation
from pde_solver.errors import InputError, RunStopped
from pde_solver.observing import Guards, Progress, Record, Schedule, Snapshot
from pde_solver.observing.guards import Reference
from pde_solver.observing.quantities import Quantity
from pde_solver.output import (
    Checkpoint,
    CheckpointSeries,
    FieldWriter,
    LawWriter,
    load_checkpoint,
    prepare_folder,
    save_checkpoint,
)
from pde_solver.parallel import leave_together, max_over_ranks, on_root
from pde_solver.simulation.events import Action, Observer, events
from pde_solver.simulation.outcome import Outcome
from pde_solver.stepping import Scheme, Stepper, default_scheme

#: How often a step whose means turn negative is halved before the run gives up.
MAX_HALVINGS = 20


@dataclass(eq=False)
class Simulation:
    """A discretised model, an initial law, and how far to go.

    Args:
        discretisation: the model bound to a mesh or to tokens.
        initial: the initial law, or one for each label.
        stop: depth at which to stop.
        start: depth at which to start.
        scheme: time stepping; by default SSP of the spatial order, or Dormand–Prince for tokens.
        petsc_options: PETSc TS options by name without dash.
        guards: what ends a run that has gone wrong; on by default.
        progress: whether to show progress (a bar on a terminal, a line now and then elsewhere).
        case_text: the case that this run comes from, stored with its checkpoints.

    Raises:
        InputError: if stop is not beyond start, or the initial law does not fit.
    """

    discretisation: Discretisation
    initial: Law | Sequence[Law]
    stop: float
    start: float = 0.0
    scheme: Scheme | None = None
    petsc_options: Mapping[str, object] | None = None
    guards: Guards = field(default_factory=Guards)
    progress: bool = False
    case_text: str | None = None

    def __post_init__(self) -> None:
        numbers = all(isinstance(depth, int | float | np.number) for depth in (self.start, self.stop))
        if not numbers or not (np.isfinite(self.start) and np.isfinite(self.stop) and self.start < self.stop):
            raise InputError(f"Simulation: stop must be finite and beyond start = {self.start!r}, found {self.stop!r}.")
        if self.scheme is None:
            self.scheme = default_scheme(self.discretisation)
        self._stepper = Stepper(self.discretisation, self.scheme, self.petsc_options)
        self.state = self.discretisation.initial(self.initial)
        self._initial_mass = self.discretisation.measure(self.state).mass()
        self.t = float(self.start)
        self.steps = 0
        self._rejected = 0
        self._wall_mass = 0.0
        self._next_step = np.inf
        self._observed = False  # whether the observers of the present depth have been called
        self._observers: list[Observer] = []
        self._records: dict[str, Record] = {}
        self._writers: list[FieldWriter | LawWriter] = []
        self._folder: Path | None = None
        self._checkpoints: CheckpointSeries | None = None
        self._terminated = False
        self._seconds = 0.0  # of the loop, in legs that are over
        self._began: float | None = None

    def __str__(self) -> str:
        method = f"{self.discretisation.name}, {self.discretisation.mesh_description}"
        return f"{self.discretisation.model}, from {self.initial} to t = {self.stop:g} by {method} and {self.scheme}"

    @property
    def snapshot(self) -> Snapshot:
        """The present moment."""
        return Snapshot(self.t, self.steps, self.state, self.discretisation)

    def observe(self, action: Action, *, every: float | None = None, at: Sequence[float] | None = None) -> None:
        """Call `action(snapshot)` on every rank at the start and then every so far in depth, or at given depths.

        Args:
            action: any function of a Snapshot.
            every: distance in depth; the stop is always included.
            at: the depths instead. With neither: at the start and at the stop.

        Raises:
            InputError: if both are given, or they do not fit the run.
        """
        if every is not None and at is not None:
            raise InputError("observe: give every or at, not both.")
        spacing = self.stop - self.start if every is None else every
        schedule = Schedule.every(spacing) if at is None else Schedule.at(at)
        schedule.times(self.start, self.stop)  # complain now, not after hours
        self._observers.append(Observer(action, schedule))

    def record(self, quantity: Quantity, *, every: float | None = None, at: Sequence[float] | None = None) -> Record:
        """Keep a quantity's values: `record.times` (n,) and `record.values` (n, ...), on every rank.

        Raises:
            InputError: as `observe`, and if a quantity of this name is recorded already.
        """
        record = Record(quantity)
        if record.name in self._records:
            raise InputError(f"record: {record.name} is recorded already.")
        self.observe(record, every=every, at=at)
        self._records[record.name] = record
        return record

    @property
    def records(self) -> dict[str, Record]:
        """All records by name."""
        return dict(self._records)

    def write_fields(
        self, directory: str | Path, *, every: float | None = None, at: Sequence[float] | None = None
    ) -> None:
        """Append the density (or the tokens) to `directory`/fields.vtkhdf, which ParaView opens as a time series."""
        self._write(FieldWriter(self._use_folder(directory) / "fields.vtkhdf"), every, at)

    def write_laws(
        self, directory: str | Path, *, every: float | None = None, at: Sequence[float] | None = None
    ) -> None:
        """Append the law as weighted points to `directory`/laws.h5, for comparisons between runs."""
        self._write(LawWriter(self._use_folder(directory) / "laws.h5"), every, at)

    def _write(self, writer: FieldWriter | LawWriter, every: float | None, at: Sequence[float] | None) -> None:
        self._writers.append(writer)
        self.observe(writer.write, every=every, at=at)

    def write_checkpoints(
        self, directory: str | Path, *, every: float | None = None, at: Sequence[float] | None = None
    ) -> None:
        """Save what is needed to resume in `directory`/checkpoints; the last two are kept."""
        folder = self._use_folder(Path(directory)) / "checkpoints"
        prepare_folder(self.discretisation.comm, folder)
        self._checkpoints = CheckpointSeries(folder)
        self.observe(self._save_checkpoint, every=every, at=at)

    def _use_folder(self, directory: str | Path) -> Path:
        prepare_folder(self.discretisation.comm, directory)
        self._folder = Path(directory)
        return self._folder

    def _save_checkpoint(self, snapshot: Snapshot) -> None:
        assert self._checkpoints is not None
        self._checkpoints.save(snapshot, **self._checkpoint_contents())

    def _checkpoint_contents(self) -> dict:
        histories = {name: (record.times, record.values) for name, record in self._records.items()}
        extra = {
            "next_step": float(self._next_step),
            "rejected": float(self._rejected),
            "wall_mass": float(self._wall_mass),
            "observed": float(self._observed),
            "initial_mass": self._initial_mass,
            "evaluation": self.discretisation.evaluation_progress,
            "seconds": self.seconds,
        }
        return {"case_text": self.case_text, "histories": histories, "extra": extra}

    @property
    def seconds(self) -> float:
        """Wall time of the loop so far, all legs of a run that was resumed together."""
        return self._seconds + (0.0 if self._began is None else time.perf_counter() - self._began)

    def resume(self, path: str | Path) -> str:
        """Go on from a checkpoint: a file, or a directory whose newest complete checkpoint counts.

        Histories and field files are continued without lost, doubled or reordered depths. Call it after
        `record` and `write_fields`.

        Returns:
            A sentence on where the run goes on (or that there was nothing to go on from).

        Raises:
            InputError: if the file is no checkpoint of this case and mesh.
        """
        comm = self.discretisation.comm
        path = Path(path)
        checkpoint: Checkpoint | None
        notes: list[str] = []
        if on_root(comm, path.is_dir):
            folder = path / "checkpoints" if on_root(comm, (path / "checkpoints").is_dir) else path
            checkpoint, notes = CheckpointSeries(folder).latest(self.discretisation, self.case_text)
            if checkpoint is None:
                for writer in self._writers:
                    writer.truncate_after(comm, -math.inf)
                return " ".join([*notes, f"No checkpoint in {folder}: starting afresh."])
        else:
            checkpoint = load_checkpoint(path, self.discretisation, self.case_text)
        self.state = checkpoint.state(self.discretisation)
        self.t, self.steps = checkpoint.t, checkpoint.step
        self._next_step = float(checkpoint.extra["next_step"])
        self._rejected = int(checkpoint.extra["rejected"])
        self._wall_mass = float(checkpoint.extra["wall_mass"])
        self._observed = bool(checkpoint.extra["observed"])
        self._initial_mass = np.asarray(checkpoint.extra["initial_mass"])
        if "evaluation" in checkpoint.extra:  # older checkpoints have none
            self.discretisation.evaluation_progress = checkpoint.extra["evaluation"]
        self._seconds = float(checkpoint.extra.get("seconds", 0.0))
        for name, (times, values) in checkpoint.histories.items():
            if name in self._records:
                self._records[name].restore(times, values)
        last = self.t if self._observed else math.nextafter(self.t, -math.inf)
        for record in self._records.values():
            record.truncate_after(last)
        for writer in self._writers:
            writer.truncate_after(comm, last)
        finished = self.t >= self.stop
        return " ".join([*notes, "Nothing to do: the run is complete." if finished else f"Resumed at t = {self.t:g}."])

    def run(self) -> Outcome:
        """Step to the stop depth.

        Returns:
            What happened, as a sentence when printed.

        Raises:
            RunStopped: if a guard ends the run; the last good state is saved where the run writes its output.
        """
        began = self._began = time.perf_counter()
        comm = self.discretisation.comm
        depths = self._events()
        first_step = self.steps
        bar = Progress(comm, silent=not self.progress)
        bar.start(
            f"{self.discretisation.model}: {self.discretisation.name}, {self.discretisation.mesh_description}.",
            self.start,
            self.stop,
        )
        reference = Reference(self.start, self.stop, self._initial_mass)
        previous = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._terminate)
        try:
            self.discretisation.enter(self._middle_of_layer(self.t, depths))
            if not self._observed:
                self._fire(depths.get(self.t, ()))
            for target in [depth for depth in depths if depth > self.t]:
                self.discretisation.enter((self.t + target) / 2)
                terminated = self._advance(target, reference, bar, began, first_step)
                if self.t >= target:
                    self._fire(depths[target])
                if terminated:
                    self._terminated = True  # on all ranks, though only one may have got the signal
                    if self._checkpoints is not None:
                        self._save_checkpoint(self.snapshot)
                    break
        except RunStopped as stopped:  # which all ranks raise together
            self._rescue(stopped)
            raise
        except SystemExit as leaving:
            leave_together(comm, leaving.code)
            raise
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, previous)
            bar.finish()
            self._seconds, self._began = self.seconds, None
        if self._terminated and callable(previous):  # a signal is also for whoever waited for it before
            previous(signal.SIGTERM, None)
        return self._outcome(self._seconds)

    def _events(self) -> dict[float, list[Observer]]:
        return events(self.start, self.stop, self._observers, self.discretisation.model.velocity.breakpoints)

    def _middle_of_layer(self, t: float, depths: dict[float, list[Observer]]) -> float:
        return (t + min((depth for depth in depths if depth > t), default=t)) / 2

    def _fire(self, observers: Iterable[Observer]) -> None:
        snapshot = self.snapshot
        actions = [observer.action for observer in observers]
        for action in actions:
            if action != self._save_checkpoint:
                action(snapshot)
        self._observed = True
        # checkpoints come last, so that they hold what the others have just recorded
        if self._save_checkpoint in actions:
            self._save_checkpoint(snapshot)

    def _advance(self, target: float, reference: Reference, bar: Progress, began: float, first_step: int) -> bool:
        """Step from the present depth exactly to the target, or until any rank is told to end: whether that was so."""
        scheme = self._stepper.scheme
        comm = self.discretisation.comm
        while self.t < target:
            allowed = self._allowed(first_step)
            pressed = self.discretisation.wall_flux(self.t, self.state)
            remaining = target - self.t
            asked = min(self._next_step, allowed) if scheme.adaptive else allowed
            if scheme.adaptive:
                # two equal steps rather than one and a remainder
                dt = remaining / 2 if asked < remaining < 2 * asked else min(asked, remaining)
            else:
                # equal steps to the target, so that none is left over
                dt = remaining / max(1, math.ceil(remaining / allowed * (1 - 1e-9)))
            # what is left within rounding of an allowed step belongs to this one
            until = target if remaining <= allowed * (1 + 1e-9) else self.t + allowed
            t, dt, accepted = self._step(asked, dt, until, reference)
            self._wall_mass += (t - self.t) * pressed
            self.t, self.state = t, accepted
            self.steps += 1
            self._observed = False
            if bar.due(last=self.t >= self.stop):
                lowest, _ = self.discretisation.density_range(self.state)
                mass = self.discretisation.measure(self.state).mass()
                done = (self.steps - first_step) * scheme.stages * self.discretisation.cell_count
                bar.update(self.t, dt, self.steps, mass, lowest, done / (time.perf_counter() - began))
            if max_over_ranks(comm, self._terminated):
                return True
        return False

    def largest_step(self) -> float:
        """The step that the scheme's rule allows at the present state (inf if only the error control binds). Collective.

        Raises:
            InputError: if a fixed step exceeds the stability limit.
        """
        self.discretisation.enter(self._middle_of_layer(self.t, self._events()))
        return self._stepper.largest_step(self.t, self.state)

    def _allowed(self, first_step: int) -> float:
        """The largest step at the present depth; what is wrong with it ends the run."""
        try:
            allowed = self._stepper.largest_step(self.t, self.state)
        except InputError as error:
            if self.steps == first_step:
                raise
            raise RunStopped(str(error)) from None  # a fixed step that was small enough so far
        if not allowed > 0:
            raise RunStopped(
                f"the velocity at t = {self.t:g} is infinite or not a number, so no step is small enough; for "
                "unnormalised attention at large β give Unnormalised(log_scale=β)."
            )
        return allowed

    def _step(self, asked: float, dt: float, until: float, reference: Reference) -> tuple[float, float, np.ndarray]:
        """One accepted step: the depth reached, the step taken, the new state.

        Args:
            asked: the step that the rule asked for, which counts if the step collapses.
            dt: the step to take, cut to end on an event.
            until: the depth that it may not pass.
            reference: what the guards compare with.
        """
        for _ in range(MAX_HALVINGS):
            state = self.state.copy()
            t, self._next_step = self._stepper.step(self.t, dt, until, state)
            self.discretisation.correct(state)
            moment = Snapshot(t, self.steps + 1, state, self.discretisation)
            if not self.discretisation.has_density or self.guards.accept(*self.discretisation.density_range(state)):
                self.guards.check(moment, asked, reference)
                if dt < asked:  # cut short by an event: the next step need not start small
                    self._next_step = max(self._next_step, asked)
                return t, t - self.t, state
            self._rejected += 1
            asked = dt = (t - self.t) / 2
            until = self.t + dt
        raise RunStopped(
            f"the density stays negative at t = {self.t:g} however small the step (last tried {dt:.2g}); "
            "use an SSP scheme, a finer mesh, or a smoother initial law."
        )

    def _terminate(self, signum: int, frame: object) -> None:
        self._terminated = True

    def _rescue(self, stopped: RunStopped) -> None:
        """Save the last good state, and say where."""
        if self._folder is None:
            return
        path = self._folder / "last_good_state.h5"
        try:
            save_checkpoint(path, self.snapshot, **self._checkpoint_contents())
        except (OSError, RunStopped, InputError) as failed:
            stopped.args = (f"{stopped} The last good state could not be saved ({failed}).",)
            return
        stopped.args = (f"{stopped} The last good state (t = {self.t:g}) is in {path}.",)

    def _outcome(self, seconds: float) -> Outcome:
        mass = self.discretisation.measure(self.state).mass()
        lowest, _ = self.discretisation.density_range(self.state)
        completed = self.t >= self.stop
        resume = f"; resume from {self._folder}" if self._checkpoints is not None else ""
        return Outcome(
            completed=completed,
            t=self.t,
            steps=self.steps,
            rejected=self._rejected,
            seconds=seconds,
            mass_error=float(np.abs(mass / self._initial_mass - 1).max()),
            minimum=lowest,
            wall_mass=self._wall_mass,
            velocity_error=self.discretisation.velocity_error,
            reason="" if completed else f"terminated{resume}",
        )
