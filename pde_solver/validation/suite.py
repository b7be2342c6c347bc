"""Run claims: every check, what came of it, and nothing skipped in silence."""

import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.checks import Check
from pde_solver.parallel import leave_together, max_over_ranks
from pde_solver.validation.claim import CheckFunction, Claim
from pde_solver.validation.trial import Trial
from pde_solver.validation.verdict import Verdict

#: Seconds for which a rank on which a check went wrong waits for the others to come to the same end.
PATIENCE = 60.0


def examine(
    claims: Iterable[Claim],
    *,
    quick: bool = False,
    comm: MPI.Comm = MPI.COMM_WORLD,
    tell: Callable[[Verdict], object] = lambda verdict: None,
) -> Iterator[tuple[Trial, list[Verdict]]]:
    """Run the checks of claims, one claim after the other. Collective.

    Args:
        claims: what is examined.
        quick: with coarse resolutions.
        comm: the ranks that run them.
        tell: called with each verdict as soon as it is there.

    Yields:
        For each claim its trial, with the cases that were loaded, and its verdicts. A function that fails gives a verdict
        with its traceback, and so does one that checks nothing; the others of the claim still run.
    """
    for claim in claims:
        trial = Trial(claim.folder, quick, comm)
        verdicts: list[Verdict] = []
        functions, failure = {}, ""
        try:
            functions = claim.functions()
        except (Exception, SystemExit) as error:
            failure = _told(error)
        failure = next(filter(None, comm.allgather(failure)), "")  # on all ranks, if on any
        if failure:
            functions = {"check.py": _raising(failure)}
        for name, function in functions.items():
            for verdict in _verdicts(claim, name, function, trial):
                tell(verdict)
                verdicts.append(verdict)
        yield trial, verdicts


def _verdicts(claim: Claim, name: str, function: CheckFunction, trial: Trial) -> Iterator[Verdict]:
    """The checks of one function, each with the time since the one before."""
    comm, count = trial.comm, 0
    checks: Iterator[Check] | None = None
    while True:
        began, check, failure, done = time.perf_counter(), None, "", False
        try:
            checks = iter(function(trial)) if checks is None else checks
            check = next(checks, None)
            done = check is None
            if check is not None and not isinstance(check, Check):
                raise TypeError(f"{name} must yield checks, found {check!r}")
            if done and count == 0:
                raise AssertionError(f"{name} yielded no check, so that nothing was examined")
        except (Exception, SystemExit) as error:
            failure = _told(error)
        # where one rank alone failed, the others wait inside the check for ever: then the job ends with this traceback
        leave_together(comm, 1, failure, PATIENCE if failure else math.inf)
        failure = next(filter(None, comm.allgather(failure)), "") or _disagreement(comm, check)
        seconds = float(max_over_ranks(comm, time.perf_counter() - began))
        if failure:
            yield Verdict(claim, name, None, seconds, comm.size, failure)
            return
        if done:
            return
        count += 1
        yield Verdict(claim, name, check, seconds, comm.size)


def _disagreement(comm: MPI.Comm, check: Check | None) -> str:
    """A sentence if the ranks did not measure the same, or not all of them came to a check. Collective."""
    own = None if check is None else (check.quantity, *check.worst, check.error, check.passed)
    found = comm.allgather(own)
    if all(other is None for other in found):
        return ""
    same = all(
        other is not None
        and (other[0], other[-1]) == (found[0][0], found[0][-1])
        and np.allclose(other[1:-1], found[0][1:-1], rtol=1e-9, atol=1e-300, equal_nan=True)
        for other in found
    )
    return "" if same else f"AssertionError: the ranks do not agree on what they measured: {found}"


def _told(error: BaseException) -> str:
    """The traceback without the frames of this file."""
    told = traceback.TracebackException.from_exception(error)
    inner = [frame for frame in told.stack if Path(frame.filename) != Path(__file__)]
    told.stack = traceback.StackSummary.from_list(inner or told.stack)
    return "".join(told.format())


def _raising(text: str) -> CheckFunction:
    """A check function for a file that cannot be loaded: it says why."""

    def check_file(trial: Trial) -> Iterator[Check]:
        raise ImportError(f"check.py cannot be loaded:\n{text}")
        yield  # a generator, like all check functions

    return check_file
