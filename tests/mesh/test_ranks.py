import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "ranks_program.py"
MPIEXEC = Path(sys.executable).parent / "mpiexec"


def run(ranks):
    launcher = str(MPIEXEC) if MPIEXEC.exists() else shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("there is no mpiexec")
    command = [launcher, "-n", str(ranks), sys.executable, "-m", "mpi4py", str(PROGRAM)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return json.loads(finished.stdout)  # fails if anything else was printed


@pytest.fixture(scope="module")
def alone():
    return run(1)


def test_one_rank(alone):
    assert alone["sentences"] == 3
    assert all(mesh["owned"] == mesh["cells"] for mesh in alone.values() if isinstance(mesh, dict))


@pytest.mark.parametrize("ranks", [2, 3])
def test_geometry_is_bitwise_the_same_on_any_number_of_ranks(ranks, alone):
    # includes meshes of one to three cells: ranks without cells
    assert run(ranks) == alone
    assert all(mesh["differing"] == 0 for mesh in alone.values() if isinstance(mesh, dict))
    assert alone["same sentences"]
