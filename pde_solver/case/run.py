"""Run a case: everything that lies in the directory of its results."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.case import results
from pde_solver.case.case import Case, load_case
from pde_solver.errors import RunStopped
from pde_solver.observing import QUANTITIES, Snapshot
from pde_solver.output import format_table, write_history
from pde_solver.output.frames import Frame, collect_frame
from pde_solver.parallel import on_root
from pde_solver.simulation import Outcome, Simulation


def run_case(
    path: Path,
    changes: Sequence[str] = (),
    *,
    output: Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    quiet: bool = False,
) -> bool:
    """Run a case file. Collective.

    Args:
        path: the case file.
        changes: changes to it, `key.path=value`.
        output: where the results go; by default what the case says, else a directory with the case's name here.
        overwrite: replace the results of an earlier run.
        resume: go on from the newest checkpoint.
        quiet: print nothing but what went wrong.

    Returns:
        Whether the run reached its stop; not if it was terminated.

    Raises:
        InputError: if the case or the directory cannot be used.
        RunStopped: if a guard ends the run.
    """
    case = load_case(path, changes)
    folder = output or Path(case.settings.output.directory or path.stem)
    comm = MPI.COMM_WORLD

    def say(text: str) -> None:
        if comm.rank == 0:
            print(text, flush=True)

    with results.claimed(comm, folder, overwrite=overwrite, resume=resume):
        simulation = case.simulation(progress=not quiet)
        if overwrite:
            results.clear(comm, folder)
        _observe(case, simulation, folder)
        frames = _collect_frames(case, simulation) if case.settings.output.figure else []
        if resume:
            say(simulation.resume(folder))
            if simulation.t >= simulation.stop:
                return True
        outcome = _run(case, simulation, folder)
        if case.settings.output.figure and outcome.completed:
            on_root(comm, lambda: _draw(case, simulation, folder, frames))
    if not quiet:
        say(f"{outcome}\n\n{_first_and_last(simulation)}\n\nResults: {folder}")
    return outcome.completed


def _observe(case: Case, simulation: Simulation, folder: Path) -> None:
    """Record and write what the case asks for."""
    output, comm = case.settings.output, simulation.discretisation.comm
    for name in output.quantities:
        simulation.record(QUANTITIES[name], every=output.every)
    simulation.write_fields(folder, every=output.fields_every)
    simulation.write_laws(folder, every=output.fields_every)
    # the table grows with the run, so that one that is cut short leaves it too
    simulation.observe(
        lambda _: write_history(folder / results.HISTORY, _histories(simulation), comm), every=output.fields_every
    )
    simulation.write_checkpoints(folder, every=output.checkpoint_every)


def _collect_frames(case: Case, simulation: Simulation) -> list[Frame]:
    """Keep the law at four depths of output for the picture, on rank 0."""
    frames: list[Frame] = []

    def collect(snapshot: Snapshot) -> None:
        frame = collect_frame(snapshot)
        if frame is not None:
            frames.append(frame)

    length, every = simulation.stop - simulation.start, case.settings.output.every
    rounded = [min(every * round(length * i / 3 / every), length) for i in range(3)]
    simulation.observe(collect, at=sorted({simulation.start + depth for depth in rounded} | {simulation.stop}))
    return frames


def _draw(case: Case, simulation: Simulation, folder: Path, frames: list[Frame]) -> None:
    """The picture: the law at those depths beside the energy, or beside the first quantity that is one number."""
    from pde_solver.output.figures import summary_figure  # takes long to import

    curves = {name: history for name, history in _histories(simulation).items() if history[1].ndim == 1}
    name = "interaction_energy" if "interaction_energy" in curves else next(iter(curves), None)
    if name is not None and frames:
        title = case.settings.output.title or f"{case.model}: {simulation.discretisation.name}"
        summary_figure(folder / results.FIGURE, case.model.manifold, frames, (name, *curves[name]), title)


def _run(case: Case, simulation: Simulation, folder: Path) -> Outcome:
    """Run, and tell the story of the run in info.json however it ends."""
    comm, discretisation = simulation.discretisation.comm, simulation.discretisation
    info = {
        "case": str(case.path),
        "case_digest": case.digest,
        "model": str(case.model),
        "method": discretisation.name,
        "mesh": discretisation.mesh_description,
        "mesh_digest": discretisation.mesh_digest,
        "unknowns": discretisation.unknowns,
        "ranks": comm.size,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": results.versions(),
    }
    results.write_text(comm, folder / results.CASE, case.text)
    results.write_info(comm, folder, {**info, "outcome": "not finished"})
    try:
        outcome = simulation.run()
    except RunStopped as stopped:
        write_history(folder / results.HISTORY, _histories(simulation), comm)
        results.write_info(comm, folder, {**info, "outcome": str(stopped), "completed": False, "t": simulation.t})
        raise
    write_history(folder / results.HISTORY, _histories(simulation), comm)
    ended = {"outcome": str(outcome), "completed": outcome.completed, "t": outcome.t, "steps": outcome.steps}
    results.write_info(comm, folder, {**info, **ended, "seconds": outcome.seconds})
    return outcome


def _histories(simulation: Simulation) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {name: (np.asarray(record.times), np.asarray(record.values)) for name, record in simulation.records.items()}


def _first_and_last(simulation: Simulation) -> str:
    """The recorded quantities at both ends of the run."""
    rows: list[list[object]] = []
    for name, (times, values) in _histories(simulation).items():
        table = values.reshape(len(times), -1)
        for i in range(table.shape[1]):
            rows.append([name if table.shape[1] == 1 else f"{name}_{i}", float(table[0, i]), float(table[-1, i])])
    return format_table(rows, ["quantity", f"t = {simulation.start:g}", f"t = {simulation.t:g}"])
