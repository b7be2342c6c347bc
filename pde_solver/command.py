"""How a command ends on all ranks: one message, one status, and nobody left waiting."""

import os
import sys
import time
import traceback
from collections.abc import Callable

import typer

from pde_solver.errors import InputError, RunStopped
from pde_solver.launcher import foreign_launcher, is_first_process

FAILED, MISUSED, INTERRUPTED = 1, 2, 130

#: What typer raises for a wrong command line, wherever it keeps the class.
UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


def say(text: str, *, error: bool = False) -> None:
    """Print from the first process alone."""
    world = _world()
    if is_first_process() if world is None else world.rank == 0:
        print(text, file=sys.stderr if error else sys.stdout, flush=True)


def guarded(command: Callable[[], object]) -> int:
    """Run a command and turn whatever happens into an exit status.

    0 done; 1 the run stopped or the program failed; 2 the input cannot be used; 130 interrupted. Any failure
    that only one rank may have met aborts the whole job, because the others may be waiting for it.

    Args:
        command: what to run; a whole number that it returns is the status.
    """
    foreign = foreign_launcher()
    if foreign is not None:
        say(f"pde-solver: {foreign}", error=True)
        return MISUSED
    if not is_first_process():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  one voice for all ranks, for as long as the process lives
    try:
        status = command()
    except UsageError as error:
        message = error.format_message().rstrip(".")
        say(f"pde-solver: {message}. Try: pde-solver --help", error=True)
        return MISUSED
    except InputError as error:
        return _leave_together(str(error), MISUSED)
    except RunStopped as error:
        return _leave_together(f"pde-solver: {error}", FAILED)
    except (KeyboardInterrupt, typer.Abort):
        return _abort("pde-solver: interrupted.", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read the output has had enough
        return _abort("", FAILED)
    except Exception as failure:
        return _abort(_traceback(failure), FAILED)
    return status if isinstance(status, int) else 0


def _leave_together(message: str, status: int) -> int:
    """End on all ranks with one message; if some never come, abort, so that nobody hangs."""
    say(message, error=True)
    comm = _world()
    if comm is not None:
        from pde_solver.parallel import leave_together  # MPI has started, so this costs nothing now

        leave_together(comm, status, message)
    return status


def _abort(message: str, status: int) -> int:
    """End the whole job from this rank."""
    comm = _world()
    who = f"[rank {comm.rank}] " if comm is not None else ""
    if message:
        print(f"{who}{message}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    if comm is not None:
        time.sleep(0.3)  # an aborted process's last words are lost where the launcher has not yet read them
        comm.Abort(status)
    return status


def _world():
    """All ranks if there are several and MPI has started; else None."""
    if "mpi4py.MPI" not in sys.modules:
        return None
    comm = sys.modules["mpi4py.MPI"].COMM_WORLD
    return comm if comm.size > 1 else None


def _traceback(failure: Exception) -> str:
    """The traceback without the frames of the command line's machinery."""
    told = traceback.TracebackException.from_exception(failure)
    frames = [frame for frame in told.stack if f"{os.sep}typer{os.sep}" not in frame.filename]
    told.stack = traceback.StackSummary.from_list(frames)
    return "".join(told.format()).rstrip()
