"""Who started this process: known from the environment before MPI starts."""

import importlib.util
import os
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

#: Where launchers say which of the processes this is (MPICH, Open MPI, Slurm).
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def foreign_launcher(environment: Mapping[str, str] = os.environ) -> str | None:
    """A sentence if the MPI in use cannot run under the launcher that started this process; else None.

    The DOLFINx wheel brings MPICH, which dies with a message of its own under Open MPI's launcher.
    """
    if "OMPI_COMM_WORLD_SIZE" not in environment or importlib.util.find_spec("dolfinx_solver") is None:
        return None
    return f"started by Open MPI's mpirun, but DOLFINx here is built for MPICH: start it with {matching_launcher()}"


def refuse_foreign_launcher() -> None:
    """Leave with status 2 and one line if `foreign_launcher` has something to say: MPI would die of it at once."""
    sentence = foreign_launcher()
    if sentence is not None:
        if is_first_process():
            print(f"pde-solver: {sentence}", file=sys.stderr)
        sys.exit(2)


def abort_when_a_rank_fails() -> None:
    """Let an exception that nobody catches on one of several ranks end the whole job, traceback first.

    Without it the other ranks wait for ever, under `python -m mpi4py` too: PETSc's collective clean-up comes before
    mpi4py's abort. `sys.exit` is no exception of this kind: outside `Simulation.run` call it on all ranks or on none.
    """
    previous = sys.excepthook

    def abort(kind, error, trace) -> None:
        previous(kind, error, trace)
        mpi = sys.modules.get("mpi4py.MPI")
        if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.size > 1:
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(0.3)  # an aborted process's last words are lost where the launcher has not yet read them
            mpi.COMM_WORLD.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = abort


def matching_launcher() -> str:
    """The launcher that belongs to the MPI in use: the one beside this Python, else whatever is on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "mpiexec"
    return str(beside) if beside.exists() else "mpiexec"


def is_first_process(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process may speak for all, as far as the environment tells."""
    return next((environment[name] for name in RANK_VARIABLES if name in environment), "0") == "0"


def is_alone(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether no launcher started this process."""
    return not any(name in environment for name in RANK_VARIABLES)
