"""Any number of ranks writes the same files and reads each other's checkpoints. Child processes with a hard time-out."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("mpi_output.py")


def test_any_number_of_ranks_writes_the_same_bytes(tmp_path):
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("mpiexec is not installed")
    for ranks in (1, 3):  # three read what one wrote; the other way round follows from equal bytes
        (tmp_path / str(ranks)).mkdir()
        command = [mpiexec, "-n", str(ranks), sys.executable, "-m", "mpi4py", str(SCRIPT), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert not done.stderr, done.stderr[-3000:]
    names = [path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*") if path.is_file()]
    assert len(names) == 4 * 4 + 1
    for name in names:
        other = tmp_path / "3" / name
        if name.suffix == ".npz":
            with np.load(tmp_path / "1" / name) as one, np.load(other) as many:
                assert all(np.array_equal(one[key], many[key]) for key in ("points", "values"))
        else:
            assert other.read_bytes() == (tmp_path / "1" / name).read_bytes(), name
