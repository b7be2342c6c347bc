"""Files that are either the old one or the new one, never half of one."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mpi4py import MPI

from pde_solver.errors import InputError, RunStopped
from pde_solver.parallel import on_root


def write_atomically(comm: MPI.Comm, path: str | os.PathLike[str], write: Callable[[Path], None]) -> None:
    """Let rank 0 write a file under a temporary name and rename it. Collective.

    Args:
        comm: the ranks that must all hear of a failure.
        path: the file's final name.
        write: writes the whole file under the name that it is given; called on rank 0 alone.

    Raises:
        RunStopped: "<path>: writing failed (No space left on device); what was there before is intact."
    """

    def replace() -> None:
        with replaced_file(Path(path)) as temporary:
            write(temporary)

    on_root(comm, replace)


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Give a temporary name in the same folder; then sync, rename to `path` and sync the folder. One process only.

    Raises:
        RunStopped: as `write_atomically`; the temporary file is then gone and the old file intact.
    """
    temporary = temporary_name(path)
    try:
        with failures_named(path):
            yield temporary
            sync(temporary)
            os.replace(temporary, path)
            sync(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink()


def temporary_name(path: Path) -> Path:
    """Where a file grows before it is renamed: always the same name, so that killed runs do not pile up litter."""
    return path.with_name(f".{path.name}.partial")


@contextmanager
def failures_named(path: Path) -> Iterator[None]:
    """Turn a failure of the file system into a sentence that names file and cause.

    Raises:
        RunStopped: "<path>: writing failed (No space left on device); what was there before is intact."
    """
    try:
        yield
    except RunStopped:
        raise
    except (OSError, RuntimeError) as error:  # h5py raises RuntimeError where a close cannot flush
        raise RunStopped(f"{path}: writing failed ({cause(error)}); what was there before is intact.") from error


def cause(error: Exception) -> str:
    """The operating system's own words for a failure, also where h5py has wrapped them."""
    if isinstance(error, OSError) and error.strerror and "errno" not in error.strerror:
        return error.strerror
    wrapped = re.search(r"errno = (\d+)", str(error))
    return os.strerror(int(wrapped.group(1))) if wrapped else (str(error).splitlines() or [type(error).__name__])[0]


def sync(path: Path) -> None:
    """Wait until a file or a folder has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prepare_folder(comm: MPI.Comm, folder: str | os.PathLike[str]) -> None:
    """Make a folder for results if it is not there, and prove that it can be written to. Collective.

    Raises:
        InputError: "<folder>: cannot be written to (Permission denied); choose another output folder."
    """

    def prepare() -> None:
        probe = Path(folder) / ".writable.partial"
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be written to ({cause(error)}); choose another output folder."
            ) from error

    on_root(comm, prepare)
