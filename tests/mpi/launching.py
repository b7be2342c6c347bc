"""Programs on several ranks, as child processes with a hard time limit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def launch(program, ranks, *arguments, timeout=100):
    """Run a program of this folder with `mpiexec -n ranks python program`; nothing is asserted yet."""
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("there is no mpiexec")
    return subprocess.run(
        [launcher, "-n", str(ranks), sys.executable, str(HERE / program), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
