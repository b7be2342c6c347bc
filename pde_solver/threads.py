"""One thread for each rank: ranks fill the cores, and a pool of threads that waits for its turn costs more than it gives."""

import functools
import os

from threadpoolctl import threadpool_limits

#: Who sets one of these knows what he wants.
_SET_BY_USER = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@functools.cache
def use_one_thread() -> None:
    """Let the BLAS libraries that are loaded use one thread, unless the environment says how many. Once for each process.

    On two cores, two ranks with two BLAS threads each took 20 times as long for a stage as with one.
    """
    if not any(name in os.environ for name in _SET_BY_USER):
        threadpool_limits(1, user_api="blas")
