"""`pde-solver converge`: a case at several resolutions, each run kept as any other, and what the study shows."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from mpi4py import MPI

from pde_solver.case import Case, load_case, results
from pde_solver.case.convergence_tables import Tokens
from pde_solver.case.discretisation_tables import IndependentTokens
from pde_solver.case.run import Run, carry_out
from pde_solver.case.stored import SAME_DEPTH, read_result
from pde_solver.convergence import Measurement, Study, converge
from pde_solver.errors import InputError, RunStopped
from pde_solver.parallel import on_root
from pde_solver.solutions import closed_form
from pde_solver.studies.axes import Axis, Plan, Series, plan_of
from pde_solver.studies.particles import CrossValidation, cross_validation
from pde_solver.studies.references import errors_to_closed_form, errors_to_finest, resolution_of
from pde_solver.studies.tables import draw_picture, quantity_table, write_tables

#: Where the runs of a study lie in its directory.
RUNS = "runs"
#: Longer names of directories are cut, and told apart by a digest.
LONGEST_NAME = 150
#: Tables of the case that particles have no use for, or that decide nothing.
WITHOUT_TOKENS = (
    "mesh",
    "discretisation",
    "time.scheme",
    "time.cfl",
    "time.step",
    "time.tolerance",
    "petsc",
    "convergence",
)


@dataclass(frozen=True)
class CaseStudy:
    """What a study of a case found.

    Args:
        series: one study for each combination of the axes that are not refined.
        quantities: for each run its cross-validation against particles, if these are the reference.
        folder: where it all lies.
    """

    series: tuple[Study, ...]
    quantities: dict[str, CrossValidation]
    folder: Path

    def __str__(self) -> str:
        """The tables."""
        parts = [str(study) for study in self.series]
        if self.quantities:
            parts.append(quantity_table(self.quantities))
        return "\n\n".join(parts)


def study_case(
    path: Path,
    arguments: Sequence[str],
    *,
    output: Path | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    comm: MPI.Comm = MPI.COMM_WORLD,
) -> CaseStudy:
    """Run a case at several resolutions, and hold it against the reference that its table [convergence] names. Collective.

    A study that was interrupted goes on when it is asked for again: complete runs are only loaded, the last one is resumed
    from its checkpoint, and values that are added are run.

    Args:
        path: the case file.
        arguments: what is varied, `mesh.cells=64,128,256`, and changes, `model.attention.0.beta=8`.
        output: where everything goes; by default a directory with the case's name and "-convergence", here.
        overwrite: run everything anew.
        quiet: no progress.
        comm: the ranks that run it.

    Raises:
        InputError: if nothing is varied, a case cannot be used, or the reference does not exist for it.
        RunStopped: if a guard or a signal ends a run.
    """
    plan = plan_of(arguments)
    study = _Study(path, plan, output or Path(f"{path.stem}-convergence"), overwrite, quiet, comm)
    return study.carry_out()


@dataclass
class _Study:
    path: Path
    plan: Plan
    folder: Path
    overwrite: bool
    quiet: bool
    comm: MPI.Comm

    def carry_out(self) -> CaseStudy:
        for series in self.plan.series:
            self._check(series)
        self._quantities: dict[str, CrossValidation] = {}
        self._done: set[Path] = set()
        self._replicas: dict[tuple[str, ...], Path] = {}
        on_root(self.comm, self._check_folder)
        studies: list[Study] = []
        with results.claimed(self.comm, self.folder, overwrite=False, resume=True):
            for series in self.plan.series:
                studies.append(self._series(series, studies))
            draw_picture(self.folder, studies, self.path.stem.replace("_", " "), self.comm)
        return CaseStudy(tuple(studies), self._quantities, self.folder)

    def _check_folder(self) -> None:
        """A directory that holds something else than a study is not written to."""
        if self.folder.is_dir() and any(self.folder.iterdir()) and not (self.folder / RUNS).is_dir():
            raise InputError(f"{self.folder}: holds something else than a study; give another directory, --output DIR.")

    def _check(self, series: Series) -> None:
        """What can be known of the cases before the first of them runs."""
        axis = series.axis
        numbers = [_number(axis, change) for change in axis.changes]
        if axis.abscissa != "h" and not all(number > 0 for number in numbers):
            raise InputError(
                f"converge: {axis.key}: values that are refined must be > 0, found {', '.join(axis.values)}."
            )
        for change in axis.changes:
            changes = (*series.shared, change)
            case = self._case(*changes)
            match case.settings.convergence:
                case Tokens() as tokens:
                    self._token_case(changes, tokens, tokens.seed)
                    own = case.settings.discretisation
                    seeds = range(tokens.seed, tokens.seed + tokens.replicas)
                    if isinstance(own, IndependentTokens) and own.seed in seeds:
                        raise InputError(
                            f"converge: discretisation.seed = {own.seed} is that of one of the particle runs "
                            f"(convergence.seed and the {tokens.replicas - 1} that follow); give another, or the run is "
                            "compared with itself."
                        )
                case table if table.reference == "closed-form":
                    closed_form(case.model, case.law, case.settings.time.start)
                case _ if axis.abscissa != "h" and axis.refines:
                    best = max(numbers) if axis.abscissa in ("n", "quadrature order") else min(numbers)
                    if numbers[-1] != best:
                        raise InputError(
                            f"converge: {axis.key}: the last value is the reference and must be the finest, "
                            f"{best:g}, found {numbers[-1]:g}."
                        )

    def _case(self, *changes: str) -> Case:
        return load_case(self.path, [*self.plan.changes, *changes, "output.figure=false"], self.comm)

    def _token_case(self, changes: Sequence[str], tokens: Tokens, seed: int) -> Case:
        """The same case with random tokens."""
        kept = [c for c in (*self.plan.changes, *changes) if not c.startswith(WITHOUT_TOKENS)]
        method = f'discretisation={{kind="particles", count={tokens.count}, seed={seed}}}'
        base = [f"{key}=" for key in WITHOUT_TOKENS]
        return load_case(self.path, [*base, *kept, method, "output.figure=false"], self.comm)

    def _series(self, series: Series, before: Sequence[Study]) -> Study:
        axis, shared = series.axis, series.shared
        finest: Run | None = None
        values = axis.changes
        if self._case(*shared, values[-1]).settings.convergence.reference == "finest":
            finest = self._run(self._case(*shared, values[-1]), (*shared, values[-1]))
            values = values[:-1]

        def measure(change: str) -> Measurement:
            changes = (*shared, change)
            case = self._case(*changes)
            x = None if axis.abscissa == "h" else _number(axis, change)
            run = self._run(case, changes)
            match case.settings.convergence:
                case Tokens() as tokens:
                    found = self._against_particles(case, run, changes, tokens)
                    self._quantities[", ".join(changes)] = found
                    x = resolution_of(run.simulation) if x is None else x
                    measured = Measurement(x, found.errors, run.simulation.discretisation.unknowns)
                case table if table.reference == "closed-form":
                    measured = errors_to_closed_form(case, run.simulation, x)
                case _:
                    assert finest is not None
                    measured = errors_to_finest(finest.simulation, run.simulation, x)
                    least = resolution_of(finest.simulation)
                    if axis.abscissa == "h" and measured.resolution < least:
                        raise InputError(
                            f"converge: {change} has h = {measured.resolution:.4g}, and the last value, which is the "
                            f"reference, {least:.4g}; give the finest mesh last."
                        )
            return replace(measured, seconds=run.seconds)

        def keep(study: Study) -> None:
            """After every run, so that a study that is ended leaves what it found."""
            write_tables(self.folder, [*before, replace(study, refines=axis.refines)], self._quantities, self.comm)

        name = ", ".join(shared)
        study = converge(measure, values, abscissa=axis.abscissa, name=name, tell=keep, comm=self.comm)
        return replace(study, refines=axis.refines)

    def _run(self, case: Case, changes: Sequence[str]) -> Run:
        """One run, in a directory of its own; a complete one is only loaded."""
        kept = [change for change in changes if not change.startswith("convergence.")]
        folder = self.folder / RUNS / (_file_name(kept) or "run")
        known = folder in self._done
        again = self.overwrite and not known
        try:
            run = carry_out(case, folder, overwrite=again, resume=not again, quiet=True)
        except (InputError, RunStopped) as error:
            raise type(error)(f"{', '.join(kept) or 'the run'}: {error}") from None
        if not run.completed:
            raise RunStopped(f"{folder}: the run was ended; the same command goes on from there.")
        self._check_run(case, run)
        self._done.add(folder)
        if not self.quiet and not known and self.comm.rank == 0:
            print(f"{folder.name}: {run.told.partition(chr(10))[0] or 'complete already.'}", flush=True)
        return run

    def _check_run(self, case: Case, run: Run) -> None:
        """Whether what was found in the directory is what the case asks for: a run may stop elsewhere or record other things."""
        stop = case.settings.time.stop
        if abs(run.simulation.t - stop) > SAME_DEPTH * (1 + abs(stop)):
            raise InputError(
                f"{run.folder}: holds a run to t = {run.simulation.t:g}, and the case stops at {stop:g}; "
                "give another directory, --output DIR, or say --overwrite."
            )
        missing = [name for name, record in run.simulation.records.items() if len(record) == 0]
        if missing:
            raise InputError(
                f"{run.folder}: holds a run that did not record {', '.join(missing)}; "
                "give another directory, --output DIR, or say --overwrite."
            )

    def _against_particles(self, case: Case, run: Run, changes: Sequence[str], tokens: Tokens) -> CrossValidation:
        """The replicas of the case with random tokens, run if need be, and the comparison."""
        folders = []
        for seed in range(tokens.seed, tokens.seed + tokens.replicas):
            shared = [change for change in changes if not change.startswith(WITHOUT_TOKENS)]
            named = (*shared, f"particles={tokens.count}", f"seed={seed}")
            if named not in self._replicas:  # many runs on meshes are held against the same
                self._replicas[named] = self._run(self._token_case(changes, tokens, seed), named).folder
            folders.append(self._replicas[named])

        def compare() -> CrossValidation:
            samples = [read_result(folder) for folder in folders]
            return cross_validation(read_result(run.folder), samples, case.settings.output.quantities)

        return on_root(self.comm, compare)


def _number(axis: Axis, change: str) -> float:
    """The value of a change as a number; its place in the axis where it is none, or nothing is refined."""
    text = change.partition("=")[2]
    try:
        return float(text) if axis.refines else 1.0 + axis.values.index(text)
    except ValueError:
        return 1.0 + axis.values.index(text)


def _file_name(changes: Sequence[str]) -> str:
    """A directory's name for some changes, unlike that of all others."""
    name = quote(",".join(changes), safe="=,.[]{}+-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{digest}"
