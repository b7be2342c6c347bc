"""Either the old file or the new one, and the cause in words."""

import os
import stat

import pytest
from mpi4py import MPI

from pde_solver.errors import InputError, RunStopped
from pde_solver.output import prepare_folder, write_atomically


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "f.txt"
    path.write_text("old")

    def write(temporary):
        temporary.write_text("new")
        assert path.read_text() == "old"

    write_atomically(MPI.COMM_SELF, path, write)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["f.txt"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("a fault of the program")])
def test_a_failure_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "f.txt"
    path.write_text("old")

    def write(temporary):
        temporary.write_text("half")
        raise error

    kind, sentence = (RunStopped, r"f\.txt: writing failed \(No space left on device\)")
    if isinstance(error, ValueError):
        kind, sentence = ValueError, "a fault of the program"
    with pytest.raises(kind, match=sentence):
        write_atomically(MPI.COMM_SELF, path, write)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f.txt"]


def test_a_folder_is_prepared_or_refused(tmp_path):
    prepare_folder(MPI.COMM_SELF, tmp_path / "a b" / "ü")
    assert stat.S_ISDIR((tmp_path / "a b" / "ü").stat().st_mode)
    assert os.listdir(tmp_path / "a b" / "ü") == []
    (tmp_path / "file").touch()
    with pytest.raises(
        InputError, match=r"file: cannot be written to \((File exists|Not a directory)\); choose another"
    ):
        prepare_folder(MPI.COMM_SELF, tmp_path / "file")
