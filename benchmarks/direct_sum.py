"""Pairs per second of the direct sum, beside other ways to compute it measured in the same run.

    python benchmarks/direct_sum.py [--quick]

One core. The rivals: sums by hand-written AVX-512 intrinsics (`yardstick.c`, needs a C compiler and such a processor);
KeOps on the CPU, if `pykeops` can be imported; attention as a research script writes it in NumPy, with the whole matrix
of scores; and NumPy over blocks that stay in the cache. Ours and theirs take turns, and each figure is the
least processor time of several repetitions, because other work on the machine only ever slows one down.
"""

import argparse
import ctypes
import functools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import measuring  # first: it sets the environment
import numpy as np

from pde_solver.kernel_sums import exponential_sums
from pde_solver.kernel_sums.pruned import pruned_sums

try:
    from pykeops.numpy import LazyTensor
except ImportError:
    LazyTensor = None

BETA = 16.0
LOG2_E = 1.4426950408889634
Inputs = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Mean = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def direct(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean attention (labels, n, d) by this package."""
    sums = exponential_sums(queries, keys, values, weights)
    return sums.numerator / sums.denominator[..., None]


def blocked_numpy(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same by BLAS and np.exp, 64 targets at a time so that the scores stay in the cache."""
    labels, d = len(weights), values.shape[1]
    columns = np.hstack([weights.T, (weights.T[:, :, None] * values[:, None, :]).reshape(len(values), labels * d)])
    sums = np.empty((len(queries), columns.shape[1]))
    for start in range(0, len(queries), 64):
        scores = queries[start : start + 64] @ keys.T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        np.matmul(scores, columns, out=sums[start : start + 64])
    return (sums[:, labels:].reshape(-1, labels, d) / sums[:, :labels, None]).transpose(1, 0, 2)


def plain_numpy(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same as a research script writes it: all scores at once, no shift, one label."""
    attention = np.exp(queries @ keys.T) * weights[0]
    attention = attention / attention.sum(axis=1, keepdims=True)
    return np.matmul(attention, values)[None]


def keops(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same by KeOps' log-sum-exp with weights, which never stores the scores, one label."""
    targets, sources = LazyTensor(queries[:, None, :]), LazyTensor(keys[None, :, :])
    scores = (targets * sources).sum(dim=2) + LazyTensor(np.log(weights[0])[None, :, None])
    return scores.sumsoftmaxweight(LazyTensor(values[None, :, :]), axis=1, backend="CPU")[None]


def compiled_yardstick(folder: Path) -> Mean | str:
    """The sums of yardstick.c for three dimensions and one label, or a sentence on why there are none."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        return "no comparison with C: no compiler (cc, gcc or clang) on the path"
    information = Path("/proc/cpuinfo")
    if not information.exists() or "avx512f" not in information.read_text():
        return "no comparison with C: the processor does not report AVX-512"
    source, library = Path(__file__).with_name("yardstick.c"), folder / "yardstick.so"
    done = subprocess.run(
        [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source], capture_output=True, text=True
    )
    if done.returncode:
        return f"no comparison with C: {compiler} failed: {done.stderr.strip().splitlines()[0]}"
    function = ctypes.CDLL(str(library)).yardstick

    def mean(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        n = -(-len(queries) // 32) * 32
        lanes, shift, packed = np.zeros((3, n)), np.zeros(n), np.zeros((len(keys), 8))
        lanes[:, : len(queries)] = LOG2_E * queries.T
        shift[: len(queries)] = LOG2_E * np.sqrt((queries**2).sum(axis=1) * (keys**2).sum(axis=1).max())
        packed[:, :3], packed[:, 3], packed[:, 4:7] = keys, weights[0], weights[0, :, None] * values
        sums = np.empty((4, n))
        arrays = (ctypes.c_void_p(array.ctypes.data) for array in (lanes, shift, packed, sums))
        function(ctypes.c_long(n), ctypes.c_long(len(keys)), *arrays)
        return (sums[1:] / sums[0])[None, :, : len(queries)].transpose(0, 2, 1)

    return mean


def problem(n: int, k: int, labels: int) -> Inputs:
    """Queries, keys, values and weights of n tokens on S^{k−1}, β = 16."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(n, k))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    weights = rng.random((labels, n))
    return BETA * points, points, points, weights / weights.sum(axis=1, keepdims=True)


def best_times(actions: list[Callable[[], object]], budget: float) -> list[float]:
    """Least processor time of one call of each, in turns, after one to warm up, within seconds (three turns at least)."""
    for action in actions:
        action()
    times: list[list[float]] = [[] for _ in actions]
    while len(times[0]) < 3 or sum(map(sum, times)) < budget * len(actions):
        for action, own in zip(actions, times, strict=True):
            start = time.process_time()
            action()
            own.append(time.process_time() - start)
    return [min(own) for own in times]


def relative_error(mean: Mean, n: int) -> float:
    """Largest error of the mean attention at 32 targets against long doubles, relative to its largest value."""
    queries, keys, values, weights = problem(n, 3, 1)
    chosen = np.arange(0, n, max(n // 32, 1))
    scores = queries[chosen].astype(np.longdouble) @ keys.astype(np.longdouble).T
    terms = weights[0] * np.exp(scores - scores.max(axis=1, keepdims=True))
    exact = (terms @ values.astype(np.longdouble)) / terms.sum(axis=1)[:, None]
    return float(np.abs(mean(queries[chosen], keys, values, weights)[0] - exact).max() / np.abs(exact).max())


def compare(rivals: dict[str, Mean], quick: bool) -> None:
    """Print a table of rates and of ratios to ours."""
    sizes = (100, 1_000, 3_000) if quick else (100, 1_000, 3_000, 10_000)
    print("\nrates in 10⁹ pairs/s, and in brackets how many times as fast the direct sum is")
    print(f"{'N':>7} {'k':>3} {'labels':>6} {'direct':>8}" + "".join(f"{name:>16}" for name in rivals))
    for k, labels in ((3, 1), (2, 1), (4, 1), (8, 1), (64, 1), (3, 8), (3, 32)):
        for n in sizes if k * labels == 3 else sizes[1:3]:
            inputs = problem(n, k, labels)
            able = {
                name: mean
                for name, mean in rivals.items()
                if (k == 3 or name not in ("C", "KeOps")) and (labels == 1 or name == "blocked NumPy")
            }
            actions = [functools.partial(mean, *inputs) for mean in (direct, *able.values())]
            rates = [n * n / seconds / 1e9 for seconds in best_times(actions, 0.1 if quick else 1.0)]
            cells = dict(zip(able, (f"{rate:.3f} ({rates[0] / rate:5.2f})" for rate in rates[1:]), strict=True))
            line = "".join(f"{cells.get(name, ''):>16}" for name in rivals)
            print(f"{n:7d} {k:3d} {labels:6d} {rates[0]:8.3f}{line}", flush=True)


def lattice(count: int) -> np.ndarray:
    """Points of a Fibonacci lattice on S², (count, 3)."""
    i = np.arange(count) + 0.5
    height, longitude = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    radius = np.sqrt(1 - height**2)
    return np.column_stack([radius * np.cos(longitude), radius * np.sin(longitude), height])


def compare_pruned(quick: bool) -> None:
    """Print what pruning gains for three von Mises-Fisher bumps, whose weights fall to 10⁻¹⁸⁷ of the largest."""
    m, n = (20_000, 4_000) if quick else (100_000, 20_000)
    points, targets = lattice(m), lattice(n)
    centres = np.array([[1.0, 0.0, 0.0], [-0.3, 0.9, 0.2], [0.0, -0.5, 0.8]])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    weights = np.exp(300 * (points @ centres.T - 1)).sum(axis=1)[None]
    few = targets[:: n // 30]
    print(f"\npruned, {m} sources and {n} targets, three clusters; all pairs extrapolated from {n // 10} targets")
    print(f"{'β':>7} {'A':>4} {'all pairs':>11} {'pruned':>9} {'ratio':>7} {'error of log Σ':>15}")
    for beta in (64.0, 256.0, 1024.0):
        for sign in (1, -1):
            queries = sign * beta * targets
            law = points, points, weights
            dense, pruned = best_times(
                [
                    functools.partial(exponential_sums, queries[::10], *law),
                    functools.partial(pruned_sums, queries, *law),
                ],
                0.0,
            )
            sums = pruned_sums(queries, *law)
            logarithms = sign * beta * few.astype(np.longdouble) @ points.astype(np.longdouble).T
            logarithms += np.log(weights[0].astype(np.longdouble))
            largest = logarithms.max(axis=1)
            exact = largest + np.log(np.exp(logarithms - largest[:, None]).sum(axis=1))
            error = np.abs((sums.shift + np.log(sums.denominator))[0, :: n // 30] - exact).max()
            print(f"{beta:7g} {sign:+3d}I {10 * dense:9.3f} s {pruned:7.3f} s {10 * dense / pruned:7.1f} {error:15.1e}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems, a few seconds in all")
    quick = parser.parse_args().quick
    print(f"{measuring.processor()}, one core, β = {BETA:g}")
    rivals: dict[str, Mean] = {}
    with tempfile.TemporaryDirectory() as folder:
        yardstick = compiled_yardstick(Path(folder))
        if isinstance(yardstick, str):
            print(yardstick)
        else:
            rivals["C"] = yardstick
        if LazyTensor is None:
            print("no comparison with KeOps: pykeops cannot be imported")
        else:
            rivals["KeOps"] = keops
        rivals |= {"plain NumPy": plain_numpy, "blocked NumPy": blocked_numpy}
        errors = [f"{name} {relative_error(mean, 1_000):.1e}" for name, mean in {"direct": direct, **rivals}.items()]
        print("errors of the mean attention at N = 1000, relative to its largest: " + ", ".join(errors))
        compare(rivals, quick)
        compare_pruned(quick)


if __name__ == "__main__":
    main()
