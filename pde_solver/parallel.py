"""The one home of MPI collectives.

Every function takes the communicator first, and every rank must call it. Sums over ranks appear
elsewhere in the package only as one visible word at the end of a formula.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from mpi4py import MPI


def sum_over_ranks(comm: MPI.Comm, value):
    """The sum of a number or an array over all ranks."""
    return _reduce(comm, value, MPI.SUM)


def min_over_ranks(comm: MPI.Comm, value):
    """The elementwise minimum of a number or an array over all ranks."""
    return _reduce(comm, value, MPI.MIN)


def max_over_ranks(comm: MPI.Comm, value):
    """The elementwise maximum of a number or an array over all ranks."""
    return _reduce(comm, value, MPI.MAX)


def _reduce(comm: MPI.Comm, value, operation):
    if comm.size == 1:
        return value
    array = np.asarray(value)
    if array.dtype == bool:  # MPI knows no minimum of truth values
        array = array.astype(np.int8)
    if operation != MPI.SUM and array.dtype.kind == "f":
        result = _extreme(comm, array, operation)
    else:
        result = np.empty(array.shape, dtype=array.dtype)  # contiguous, unlike what `empty_like` may give
        comm.Allreduce(np.ascontiguousarray(array), result, op=operation)
    return result if array.ndim else result[()]


def _extreme(comm: MPI.Comm, array: np.ndarray, operation) -> np.ndarray:
    """Minimum or maximum; where any rank has a nan the result is nan on all of them, which MPI does not promise."""
    sign = 1.0 if operation == MPI.MAX else -1.0
    nan = np.isnan(array)
    sent = np.stack([np.where(nan, -np.inf, sign * array), nan])
    received = np.empty_like(sent)
    comm.Allreduce(sent, received, op=MPI.MAX)
    return np.where(received[1] > 0, np.nan, sign * received[0])


def rank_slice(comm: MPI.Comm, count: int) -> slice:
    """The contiguous share of `count` rows that belongs to this rank, as even as possible."""
    return slice(count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size)


def allgather_rows(comm: MPI.Comm, rows: np.ndarray) -> np.ndarray:
    """The rows of all ranks, one rank's after the other, on every rank; shape (sum of n, ...)."""
    rows = np.ascontiguousarray(rows)
    if comm.size == 1:
        return rows
    counts = np.array(comm.allgather(len(rows)))
    result = np.empty((counts.sum(), *rows.shape[1:]), dtype=rows.dtype)
    width = int(np.prod(rows.shape[1:], dtype=int))
    comm.Allgatherv(rows.reshape(-1), [result.reshape(-1), counts * width])
    return result


def gather_rows(comm: MPI.Comm, index: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """The rows of all ranks on rank 0, placed by their global index; None on the other ranks.

    Args:
        comm: the communicator.
        index: (n,) global index of each local row; over all ranks a permutation of 0 … N − 1.
        rows: (n, ...) the local rows.
    """
    if comm.size == 1:
        result = np.empty_like(rows)
        result[index] = rows
        return result
    counts = comm.gather(len(rows))
    width = int(np.prod(rows.shape[1:], dtype=int))
    rows = np.ascontiguousarray(rows)
    index = np.ascontiguousarray(index, dtype=np.int64)
    if counts is None:
        comm.Gatherv(index, None)
        comm.Gatherv(rows.reshape(-1), None)
        return None
    places = np.empty(sum(counts), dtype=np.int64)
    gathered = np.empty((sum(counts), *rows.shape[1:]), dtype=rows.dtype)
    comm.Gatherv(index, [places, counts])
    comm.Gatherv(rows.reshape(-1), [gathered.reshape(-1), [count * width for count in counts]])
    result = np.empty_like(gathered)
    result[places] = gathered
    return result


def on_root[T](comm: MPI.Comm, action: Callable[[], T]) -> T:
    """Run `action` on rank 0 alone; every rank gets its result, or raises its exception.

    Only for results small enough to broadcast. A file that cannot be read ends so on all ranks with the
    same sentence, and no rank waits for another.
    """
    outcome: tuple[bool, object]
    if comm.rank == 0:
        try:
            outcome = (True, action())
        except Exception as error:  # whatever it is, all ranks must hear of it
            if comm.size == 1:
                raise
            outcome = (False, error)
    else:
        outcome = (False, None)
    succeeded, value = comm.bcast(outcome)
    if not succeeded:
        raise value
    return value


def same_on_all_ranks(comm: MPI.Comm, error: Exception | None) -> None:
    """Raise on all ranks if any rank has an error: the lowest rank's, so that all leave together."""
    errors = [found for found in comm.allgather(error) if found is not None]
    if errors:
        raise errors[0]


def broadcast_array(comm: MPI.Comm, array: np.ndarray | None) -> np.ndarray:
    """Rank 0's array of numbers on every rank, of any size.

    Args:
        comm: the communicator.
        array: the array on rank 0; None elsewhere.
    """
    if comm.size == 1 and array is not None:
        return array
    shape, kind = comm.bcast(None if array is None else (array.shape, array.dtype.str))
    result = np.empty(shape, dtype=kind) if array is None else np.ascontiguousarray(array)
    comm.Bcast(result.reshape(-1))
    return result


def leave_together(comm: MPI.Comm, status: object, message: str = "", patience: float = 5.0) -> None:
    """Come back when every rank is here; if one does not come, it may be waiting for this one: end the whole job.

    Args:
        comm: the communicator.
        status: with which this rank wants to exit; a job that is ended exits with 1 where that is no other number.
        message: what this rank says if it ends the job.
        patience: seconds to wait.
    """
    if comm.size == 1:
        return
    everybody = comm.Ibarrier()
    deadline = time.monotonic() + patience
    while not everybody.Test():
        if time.monotonic() > deadline:
            said = message or "exits while others go on; the job ends."
            print(f"[rank {comm.rank}] {said}", file=sys.stderr, flush=True)
            time.sleep(0.3)  # so that the launcher reads it before all is over
            comm.Abort(status if isinstance(status, int) and status else 1)
        time.sleep(0.01)


def sum_over_lower_ranks(comm: MPI.Comm, value: int) -> int:
    """The sum of a whole number over the ranks before this one (MPI's exclusive scan)."""
    assert isinstance(comm, MPI.Intracomm)  # other communicators have no order
    total = np.zeros(1, dtype=np.int64)
    comm.Exscan(np.array([value], dtype=np.int64), total)
    return int(total[0]) if comm.rank else 0
