"""Who may write into a directory of results."""

import os
import socket
import subprocess

import pytest
from mpi4py import MPI

from pde_solver.case.results import claimed, clear
from pde_solver.errors import InputError


def claim(folder, overwrite=False, resume=False):
    return claimed(MPI.COMM_SELF, folder, overwrite=overwrite, resume=resume)


def test_a_directory_is_made_locked_and_released(tmp_path):
    folder = tmp_path / "new" / "results"
    with claim(folder):
        assert (folder / ".lock").read_text() == f"{socket.gethostname()} {os.getpid()}\n"
        with pytest.raises(InputError, match=f"another run writes there \\(process {os.getpid()} on"), claim(folder):
            pass
        assert (folder / ".lock").exists()
        (folder / "history.csv").touch()
    assert [path.name for path in folder.iterdir()] == ["history.csv"]


def test_a_lock_is_released_when_the_run_fails(tmp_path):
    with pytest.raises(RuntimeError), claim(tmp_path):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / ".lock").write_text(f"{socket.gethostname()} {dead.pid}\n")
    with claim(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{socket.gethostname()} {os.getpid()}\n"


def test_the_lock_of_another_host_is_respected(tmp_path):
    (tmp_path / ".lock").write_text("elsewhere 1\n")
    with pytest.raises(InputError, match=r"process 1 on elsewhere\); wait for it"), claim(tmp_path):
        pass


def test_results_are_kept_unless_told_otherwise(tmp_path):
    for name in ("history.csv", "notes.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "checkpoints").mkdir()
    with (
        pytest.raises(InputError, match=r"is not empty; say --overwrite to replace its results, or --resume"),
        claim(tmp_path),
    ):
        pass
    assert not (tmp_path / ".lock").exists()
    with claim(tmp_path, resume=True):
        assert (tmp_path / "history.csv").exists()
    with claim(tmp_path, overwrite=True):
        assert (tmp_path / "history.csv").exists()  # a run that cannot even begin has replaced nothing
        clear(MPI.COMM_SELF, tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", ".lock"}


def test_places_that_cannot_be_used(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="is a file; give a directory"), claim(file):
        pass
    with pytest.raises(InputError, match=r"cannot be used for the results \(Not a directory\)"), claim(file / "below"):
        pass
    with pytest.raises(InputError, match="give --overwrite or --resume, not both"), claim(tmp_path, True, True):
        pass
