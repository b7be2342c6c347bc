"""Run a case: everything that lies in the directory of its results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from pde_solver.case import results
from pde_solver.case.case import Case, load_case
from pde_solver.errors import RunStopped
from pde_solver.observing import QUANTITIES
from pde_solver.output import format_table, read_frames, read_label_frames, write_history
from pde_solver.output.versions import versions
from pde_solver.parallel import on_root
from pde_solver.simulation import Outcome, Simulation


@dataclass(frozen=True)
class Run:
    """What came of a run.

    Args:
        simulation: at the depth that it reached.
        completed: whether that is the stop; not if it was terminated.
        seconds: wall time of its loop.
        told: how it ended, in words for people.
        folder: where its results lie.
    """

    simulation: Simulation
    completed: bool
    seconds: float
    told: str
    folder: Path


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
    run = carry_out(case, folder, overwrite=overwrite, resume=resume, quiet=quiet)
    if not quiet and run.told and MPI.COMM_WORLD.rank == 0:
        print(run.told, flush=True)
    return run.completed


def carry_out(case: Case, folder: Path, *, overwrite: bool = False, resume: bool = False, quiet: bool = False) -> Run:
    """Run a case and keep everything in a directory; a complete run that is resumed is only loaded. Collective.

    Args:
        case: what is run.
        folder: where the results go.
        overwrite: replace the results of an earlier run.
        resume: go on from the newest checkpoint there, or begin if there is none.
        quiet: no progress.

    Raises:
        InputError: if the directory cannot be used, or holds another case.
        RunStopped: if a guard ends the run.
    """
    comm = case.comm
    with results.claimed(comm, folder, overwrite=overwrite, resume=resume):
        simulation = case.simulation(progress=not quiet)
        simulation.largest_step()  # a fixed step that is too large is refused before anything is written
        if overwrite:
            results.clear(comm, folder)
        _observe(case, simulation, folder)
        if resume:
            told = simulation.resume(folder)
            if not quiet and comm.rank == 0:
                print(told, flush=True)
            if simulation.t >= simulation.stop:
                _complete(case, simulation, folder)
                return Run(simulation, True, simulation.seconds, "", folder)
        outcome = _run(case, simulation, folder)
        if case.settings.output.figure and outcome.completed:
            on_root(comm, lambda: _draw(case, simulation, folder))
    told = f"{outcome}\n\n{_first_and_last(simulation)}\n\nResults: {folder}"
    return Run(simulation, outcome.completed, outcome.seconds, told, folder)


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


def _draw(case: Case, simulation: Simulation, folder: Path) -> None:
    """The picture: the law at four of its depths beside the energy, or the first quantity that is one number."""
    from pde_solver.output.figures import summary_figure  # takes long to import

    curves = {name: history for name, history in _histories(simulation).items() if history[1].ndim == 1}
    name = "interaction_energy" if "interaction_energy" in curves else next(iter(curves), None)
    frames = read_frames(folder / results.FIELDS, case.model.labels.weights)
    if name is not None and frames:
        title = case.settings.output.title or f"{case.model}: {simulation.discretisation.name}"
        summary_figure(folder / results.FIGURE, case.model.manifold, frames, (name, *curves[name]), title)
    nodes = case.model.labels.nodes
    if nodes is not None:
        from pde_solver.output.label_figure import can_draw_labels, label_figure

        by_label = read_label_frames(folder / results.FIELDS, len(nodes))
        if can_draw_labels(case.model.manifold, by_label):
            label_figure(folder / results.LABELS, case.model.manifold, nodes, by_label, case.settings.output.title)


def _complete(case: Case, simulation: Simulation, folder: Path) -> None:
    """Add what is missing where a run reached its stop and was killed before it had told so. Collective."""
    comm = simulation.discretisation.comm
    if not on_root(comm, lambda: results.is_completed(folder)):
        write_history(folder / results.HISTORY, _histories(simulation), comm)
        results.write_text(comm, folder / results.CASE, case.text)
        told = f"Reached t = {simulation.t:g} in {simulation.steps} steps."
        ended = {"outcome": told, "completed": True, "t": simulation.t, "steps": simulation.steps}
        results.write_info(comm, folder, {**_info(case, simulation), **ended})

    def draw_if_missing() -> None:
        if not (folder / results.FIGURE).exists():
            _draw(case, simulation, folder)

    if case.settings.output.figure:
        on_root(comm, draw_if_missing)


def _info(case: Case, simulation: Simulation) -> dict[str, Any]:
    """What is known of a run when it begins."""
    discretisation = simulation.discretisation
    return {
        "case": str(case.path),
        "case_digest": case.digest,
        "model": str(case.model),
        "method": discretisation.name,
        "mesh": discretisation.mesh_description,
        "mesh_digest": discretisation.mesh_digest,
        "unknowns": discretisation.unknowns,
        "ranks": discretisation.comm.size,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }


def _run(case: Case, simulation: Simulation, folder: Path) -> Outcome:
    """Run, and tell the story of the run in info.json however it ends."""
    comm, info = simulation.discretisation.comm, _info(case, simulation)
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
