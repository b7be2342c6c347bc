"""What came of a check: its numbers, or the traceback of what went wrong."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mpi4py import MPI

from pde_solver.checks import Check
from pde_solver.output import write_csv
from pde_solver.validation.claim import Claim

#: The columns of results.csv.
COLUMNS = ["name", "claim", "source", "measured", "expected", "error", "tolerance", "verdict", "seconds", "ranks"]

PASSED, FAILED, ERROR = "passed", "failed", "error"


@dataclass(frozen=True)
class Verdict:
    """What came of a check.

    Args:
        claim: what it belongs to.
        function: the check function's name.
        check: the check; None if it went wrong before there was one.
        seconds: its wall time.
        ranks: on how many it ran.
        traceback: what went wrong; empty if nothing did.
    """

    claim: Claim
    function: str
    check: Check | None
    seconds: float
    ranks: int
    traceback: str = ""

    @property
    def name(self) -> str:
        """The claim's name, the quantity, and the discretisation in brackets."""
        if self.check is None:
            return f"{self.claim.name}: {self.function}"
        method = f" [{self.check.method}]" if self.check.method else ""
        return f"{self.claim.name}: {self.check.quantity}{method}"

    @property
    def word(self) -> str:
        """passed, failed or error."""
        return ERROR if self.check is None else PASSED if self.check.passed else FAILED

    def row(self) -> list[str]:
        """The cells of results.csv."""
        if self.check is None:
            measured = expected = error = tolerance = math.nan
            source = ""
        else:
            measured, expected = self.check.worst
            error, tolerance, source = self.check.error, self.check.tolerance, self.check.source
        numbers = [repr(float(number)) for number in (measured, expected, error, tolerance)]
        return [self.name, self.claim.title, source, *numbers, self.word, f"{self.seconds:.3f}", str(self.ranks)]

    def __str__(self) -> str:
        """One line for the terminal."""
        said = str(self.check) if self.check else f"{self.function}: {self.traceback.strip().splitlines()[-1]}"
        return f"{self.word:6}  {self.claim.name}: {said}  ({self.seconds:.2g} s)"


def write_results(path: Path, verdicts: Iterable[Verdict], comm: MPI.Comm) -> None:
    """Write results.csv, a row for each check, replacing the file as a whole. Collective."""
    write_csv(path, COLUMNS, [verdict.row() for verdict in verdicts], comm)
