"""Any number of ranks writes the same files and reads each other's checkpoints. Child processes with a hard time-out."""

from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).with_name("mpi_output.py")


def test_any_number_of_ranks_writes_the_same_bytes(on_ranks, tmp_path):
    for ranks in (1, 3):  # three read what one wrote; the other way round follows from equal bytes
        (tmp_path / str(ranks)).mkdir()
        done = on_ranks(SCRIPT, ranks, tmp_path, timeout=100)
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
