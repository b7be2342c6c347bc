"""HDF5 files that grow step by step and stay readable whatever happens to the run.

A file is opened, appended to and closed for each step, so that nothing is lost with a killed process. New rows
come first and the count of valid steps last, with a flush between: an append that was cut short leaves rows that no
reader sees, and the next one writes over them. Cut after any one of the writes of which an append consists, the file
still gives its earlier steps once it is mended; the exception are two writes of the append that splits the
root of a dataset's chunk index (the 65th step, the 2081st, ...), a few microseconds in the life of a file.
"""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np

from pde_solver.output.atomic import failures_named, replaced_file, sync

#: Steps in one chunk of a step's own numbers.
STEPS_PER_CHUNK = 1024
#: Disk space for HDF5's own bookkeeping of one append, with room to spare.
_BOOKKEEPING = 1 << 20


def begin(path: Path, fill: Callable[[h5py.File], None]) -> None:
    """Make a new HDF5 file and put it in the place of an old one. One process only.

    It is made in memory first: on a full disk HDF5 itself would fail once more with each object that it lets go.

    Args:
        path: the file.
        fill: writes what the file begins with.

    Raises:
        RunStopped: "<path>: writing failed (No space left on device); what was there before is intact."
    """
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        fill(file)
    with replaced_file(path) as temporary:
        temporary.write_bytes(image.getvalue())


@contextmanager
def growing(path: Path, room: int) -> Iterator[h5py.File]:
    """Open an existing HDF5 file to append to it, with the disk space reserved first. One process only.

    HDF5 cannot take back an append for which the disk has no room, so that room is asked for before HDF5 sees the file.

    Args:
        path: the file.
        room: bytes that will be appended.

    Raises:
        RunStopped: "<path>: writing failed (No space left on device); what was there before is intact."
    """
    with failures_named(path):
        _reserve(path, room + _BOOKKEEPING)
        with h5py.File(path, "r+") as file:
            yield file
        sync(path)


def growing_dataset(group: h5py.Group, name: str, first: np.ndarray, chunk: int) -> h5py.Dataset:
    """Create a dataset that can grow in its first dimension, with checksums, holding `first`.

    Args:
        group: where.
        name: its name.
        first: (n, ...) its first rows; may be empty.
        chunk: rows that are stored together; a step's rows, so that no append touches the chunk of an earlier step.
    """
    return group.create_dataset(
        name,
        data=first,
        maxshape=(None, *first.shape[1:]),
        chunks=(max(chunk, 1), *first.shape[1:]),
        fletcher32=True,
    )


def put_rows(dataset: h5py.Dataset, start: int, rows: np.ndarray) -> None:
    """Write rows from row `start` on and end the dataset after them, whatever a cut append had left there."""
    dataset.resize(start + len(rows), axis=0)
    dataset[start:] = rows


def mend(path: Path) -> None:
    """Make an HDF5 file usable again whose last append was cut short.

    HDF5 writes down last how long the file is, and looks at nothing beyond; so the length is set to that of the
    file on the disk. Only the oldest superblock is touched (no checksum; what `h5py.File` writes by default).

    Raises:
        RunStopped: "<path>: writing failed (Permission denied); what was there before is intact."
    """
    with failures_named(path), open(path, "r+b") as file:
        head = file.read(_END_OF_FILE.stop)
        size = path.stat().st_size
        if head.startswith(_OLDEST_SUPERBLOCK) and int.from_bytes(head[_END_OF_FILE], "little") < size:
            file.seek(_END_OF_FILE.start)
            file.write(size.to_bytes(8, "little"))


#: Signature of an HDF5 file with a superblock of version 0, and where that holds the end of the file.
_OLDEST_SUPERBLOCK = b"\x89HDF\r\n\x1a\n\x00"
_END_OF_FILE = slice(40, 48)


def _reserve(path: Path, room: int) -> None:
    if not hasattr(os, "posix_fallocate"):  # not on every system; there a full disk is found by HDF5
        return
    size = path.stat().st_size
    with open(path, "r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), size, room)
        except OSError:
            with suppress(OSError):
                os.truncate(path, size)
            raise
