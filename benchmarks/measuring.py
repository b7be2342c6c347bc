"""What the benchmarks share: how a time is taken, and on what. Imported before NumPy, so that its settings count."""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

# Some environments force an older BLAS kernel on NumPy, which would flatter a comparison; threads would spoil it.
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"


def best_time(action: Callable[[], object], budget: float) -> float:
    """Least wall time of one call, after one to warm up, within a budget of seconds (three calls at least)."""
    action()
    times: list[float] = []
    while len(times) < 3 or sum(times) < budget:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def processor() -> str:
    """The processor's name."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
