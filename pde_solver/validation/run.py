"""`pde-solver validate`: examine claims, write the report, and say whether all checks passed."""

import contextlib
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.output import prepare_folder
from pde_solver.parallel import on_root
from pde_solver.validation.claim import CHECKS, find_claims, known_papers
from pde_solver.validation.suite import examine
from pde_solver.validation.trial import Trial
from pde_solver.validation.verdict import PASSED, Verdict, write_results

#: What the directory of a validation holds.
REPORT, RESULTS = "report.html", "results.csv"
#: Status of a suite that was ended from outside.
INTERRUPTED = 130
#: Where the project's own claims lie, if the package runs from its source.
OWN_SUITE = Path(__file__).parents[2] / "validation"


def default_suite() -> Path:
    """The folder `validation` here, else that of the project.

    Raises:
        InputError: if there is neither.
    """
    for suite in (Path("validation"), OWN_SUITE):
        if any(suite.glob(f"*/{CHECKS}")):
            return suite
    raise InputError(
        "validate: there is no folder validation with claims here, and this installation has none beside it; "
        "give the folder that holds the claims, --suite DIR."
    )


def validate(
    names: Sequence[str] = (),
    *,
    suite: Path | None = None,
    output: Path = Path("validation-report"),
    quick: bool = False,
    quiet: bool = False,
    comm: MPI.Comm = MPI.COMM_WORLD,
) -> bool:
    """Examine claims and write report.html and results.csv. Collective.

    Args:
        names: which claims; all by default.
        suite: the folder that holds them; by default `default_suite()`.
        output: where the report goes.
        quick: with coarse resolutions.
        quiet: print the last line alone.
        comm: the ranks that run the checks.

    Returns:
        Whether every check passed.

    Raises:
        InputError: if a claim or the suite does not exist, or the directory cannot be used.
    """
    began = time.perf_counter()
    chosen = suite if suite is not None else on_root(comm, default_suite)
    claims, literature = on_root(comm, lambda: (find_claims(chosen, names), known_papers(chosen)))
    prepare_folder(comm, output)

    def tell(verdict: Verdict) -> None:
        if not quiet and comm.rank == 0:
            print(verdict, flush=True)

    examined: list[tuple[Trial, list[Verdict]]] = []
    with _ended_by_sigterm(comm):
        for trial, found in examine(claims, quick=quick, comm=comm, tell=tell):
            examined.append((trial, found))
            write_results(output / RESULTS, _all(examined), comm)  # so that a suite that is ended leaves what it found
    from pde_solver.validation.report import write_report  # takes long to import

    seconds = time.perf_counter() - began
    write_report(output / REPORT, examined, quick=quick, seconds=seconds, known_papers=literature, comm=comm)
    words = Counter(verdict.word for verdict in _all(examined))
    if comm.rank == 0:
        count = ", ".join(
            f"{number} {word}" for word, number in sorted(words.items(), key=lambda pair: pair[0] != PASSED)
        )
        print(f"{words.total()} checks: {count}. Report: {output / REPORT}", flush=True)
    return set(words) == {PASSED}


@contextlib.contextmanager
def _ended_by_sigterm(comm: MPI.Comm) -> Iterator[None]:
    """SIGTERM ends everything on all ranks: else a check would go on with a run that was cut short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(signum: int, frame: object) -> None:
        print("pde-solver: interrupted.", file=sys.stderr, flush=True)
        if comm.size > 1:
            comm.Abort(INTERRUPTED)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _all(examined: Sequence[tuple[Trial, list[Verdict]]]) -> list[Verdict]:
    return [verdict for _, found in examined for verdict in found]
