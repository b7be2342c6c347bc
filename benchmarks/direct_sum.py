"""Pairs per second of the direct sum, beside a blocked NumPy implementation measured in the same run.

    python benchmarks/direct_sum.py [--quick]

One core. Each figure is the best of several repetitions, because other work on the machine only ever slows one down.
"""

import argparse
import os
import platform
import time
from pathlib import Path

# Some environments force an older BLAS kernel on NumPy, which would flatter the comparison; threads would spoil it.
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

from pde_solver.kernel_sums import exponential_sums  # noqa: E402

BETA = 16.0


def blocked_numpy(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, weights: np.ndarray, block: int = 64):
    """The same sums by BLAS and np.exp, a block of targets at a time so that the scores stay in the cache."""
    labels, d = len(weights), values.shape[1]
    columns = np.hstack([weights.T, (weights.T[:, :, None] * values[:, None, :]).reshape(len(values), labels * d)])
    result = np.empty((len(queries), columns.shape[1]))
    for start in range(0, len(queries), block):
        scores = queries[start : start + block] @ keys.T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        np.matmul(scores, columns, out=result[start : start + block])
    return result


def problem(n: int, k: int, labels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Queries, keys, values and weights of n tokens on S^{k−1}, β = 16."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(n, k))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    weights = rng.random((labels, n))
    return BETA * points, points, points, weights / weights.sum(axis=1, keepdims=True)


def best_time(action, budget: float) -> float:
    """Least wall time of one call, after one to warm up, within a budget of seconds (three calls at least)."""
    action()
    times: list[float] = []
    while len(times) < 3 or sum(times) < budget:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def relative_error(n: int) -> float:
    """Largest error of the mean attention at 32 targets against long doubles, relative to its largest value."""
    queries, keys, values, weights = problem(n, 3, 1)
    chosen = np.arange(0, n, max(n // 32, 1))
    sums = exponential_sums(queries[chosen], keys, values, weights)
    mean = sums.numerator[0] / sums.denominator[0][:, None]
    scores = queries[chosen].astype(np.longdouble) @ keys.astype(np.longdouble).T
    terms = weights[0] * np.exp(scores - scores.max(axis=1, keepdims=True))
    exact = (terms @ values.astype(np.longdouble)) / terms.sum(axis=1)[:, None]
    return float(np.abs(mean - exact).max() / np.abs(exact).max())


def processor() -> str:
    """The processor's name."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems, a few seconds in all")
    arguments = parser.parse_args()
    sizes = (1_000, 4_000) if arguments.quick else (1_000, 10_000, 30_000)
    budget = 0.2 if arguments.quick else 2.0
    print(f"{processor()}, one core, β = {BETA:g}")
    print(f"error at N = {sizes[0]}: {relative_error(sizes[0]):.1e} of the largest mean attention")
    print(f"{'N':>7} {'k':>4} {'columns':>8} {'direct':>10} {'NumPy':>10}   ratio   (10⁹ pairs/s)")
    for k, labels in ((2, 1), (3, 1), (4, 1), (8, 1), (64, 1), (3, 8), (3, 32)):
        for n in sizes:
            if n > 10_000 and k * labels > 8:
                continue  # the same rate at three times the wait
            inputs = problem(n, k, labels)
            ours = n * n / best_time(lambda inputs=inputs: exponential_sums(*inputs), budget) / 1e9
            theirs = n * n / best_time(lambda inputs=inputs: blocked_numpy(*inputs), budget) / 1e9
            print(f"{n:7d} {k:4d} {labels * (1 + k):8d} {ours:10.2f} {theirs:10.2f}   {ours / theirs:5.2f}", flush=True)


if __name__ == "__main__":
    main()
