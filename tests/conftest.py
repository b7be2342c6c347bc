"""What all tests share: programs on several ranks, as child processes with a hard time limit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def on_ranks():
    """A function (program, ranks, *arguments, timeout=120) that runs `mpiexec -n ranks python -m mpi4py program`."""
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("there is no mpiexec")

    def run(program, ranks, *arguments, timeout=120):
        return subprocess.run(
            [launcher, "-n", str(ranks), sys.executable, "-m", "mpi4py", str(program), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    return run
