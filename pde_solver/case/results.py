"""The directory of a run's results: who may write there, and what lies in it."""

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.output.atomic import write_atomically
from pde_solver.parallel import on_root

#: Everything that a run leaves behind.
CASE, INFO, HISTORY, LAWS = "case.toml", "info.json", "history.csv", "laws.h5"
FIELDS, CHECKPOINTS, FIGURE, RESCUED = "fields.vtkhdf", "checkpoints", "summary.png", "last_good_state.h5"
LABELS = "labels.png"
CONTENTS = (CASE, INFO, HISTORY, LAWS, FIELDS, CHECKPOINTS, FIGURE, LABELS, RESCUED)

_LOCK = ".lock"


@contextlib.contextmanager
def claimed(comm: MPI.Comm, folder: Path, *, overwrite: bool, resume: bool) -> Iterator[Path]:
    """Hold a directory for one run: made if need be, locked, and taken away again if it was made and nothing came.

    Args:
        comm: the ranks of the run.
        folder: the directory.
        overwrite: it may hold results of an earlier run; `clear` them when the new run is ready to begin.
        resume: it may hold results, with which the run goes on.

    Raises:
        InputError: on all ranks, if it cannot be written, is in use, or holds something and neither option is given.
    """
    made = on_root(comm, lambda: _claim(folder, overwrite, resume))
    try:
        yield folder
    finally:
        if comm.rank == 0:
            (folder / _LOCK).unlink(missing_ok=True)
            if made:
                with contextlib.suppress(OSError):  # it holds something, as it should
                    folder.rmdir()


def _claim(folder: Path, overwrite: bool, resume: bool) -> bool:
    """Lock the directory; whether it had to be made."""
    if overwrite and resume:
        raise InputError("give --overwrite or --resume, not both.")
    try:
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        _lock(folder)
    except InputError:
        raise
    except FileExistsError:
        raise InputError(f"{folder}: is a file; give a directory for the results.") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be used for the results ({error.strerror}).") from None
    try:
        if not (overwrite or resume) and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise InputError(f"{folder}: is not empty; say --overwrite to replace its results, or --resume to go on.")
    except BaseException:
        (folder / _LOCK).unlink(missing_ok=True)
        raise
    return made


def _lock(folder: Path) -> None:
    """Create the lock file, or take it over from a process of this host that is no more."""
    path = folder / _LOCK
    me = f"{socket.gethostname()} {os.getpid()}\n"
    for _ in range(2):
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            host, _, process = path.read_text().strip().partition(" ")
            if host != socket.gethostname() or _is_alive(process):
                raise InputError(
                    f"{folder}: another run writes there (process {process} on {host}); "
                    f"wait for it, choose another directory, or remove {path} if that run is gone."
                ) from None
            path.unlink(missing_ok=True)
            continue
        with os.fdopen(handle, "w") as file:
            file.write(me)
        return
    raise InputError(f"{folder}: another run has just begun to write there; choose another directory.")


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (ValueError, PermissionError):
        return True
    return True


def clear(comm: MPI.Comm, folder: Path) -> None:
    """Remove what an earlier run left in a directory, and nothing else.

    Raises:
        InputError: on all ranks, if something cannot be removed.
    """

    def remove() -> None:
        try:
            for path in (folder / name for name in CONTENTS):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be replaced ({error.strerror}).") from None

    on_root(comm, remove)


def is_completed(folder: Path) -> bool:
    """Whether info.json says that the run reached its stop. One process only."""
    try:
        return bool(json.loads((folder / INFO).read_text(encoding="utf-8")).get("completed"))
    except (OSError, ValueError):
        return False


def write_info(comm: MPI.Comm, folder: Path, info: dict[str, Any]) -> None:
    """Write info.json, on rank 0."""
    write_text(comm, folder / INFO, json.dumps(info, indent=2, ensure_ascii=False) + "\n")


def write_text(comm: MPI.Comm, path: Path, text: str) -> None:
    """Write a small file on rank 0, whole or not at all."""

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    write_atomically(comm, path, write)
