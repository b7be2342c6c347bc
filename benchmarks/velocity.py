"""The nonlocal velocity: each method's time, the error that it reaches, and the ratio to the direct sum, in one run.

    python benchmarks/velocity.py [--quick]

One core. The law is three bumps; sources and targets are the same points unless said otherwise. The error is the largest
at 64 targets relative to the largest velocity, against direct sums (which are right to round-off). Up to 10,000 points the direct
sum is measured, beyond it is extrapolated from the rate of pairs at 10,000.
"""

import argparse
import math

import measuring  # first: it sets the environment
import numpy as np

import pde_solver as ps
from pde_solver.kernel_sums import Evaluation, Evaluator
from pde_solver.kernel_sums.method import Proposal
from pde_solver.manifolds import Manifold

DIRECT_UP_TO = 10_000
SAMPLE = 64


def on_sphere(n: int) -> np.ndarray:
    """A Fibonacci lattice on S², (n, 3)."""
    z = 1 - (2 * np.arange(n) + 1) / n
    angle = 2 * math.pi * np.arange(n) / ((1 + math.sqrt(5)) / 2)
    radius = np.sqrt(1 - z * z)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), z])


def on_circle(n: int) -> np.ndarray:
    """A uniform lattice of angles, (n, 2)."""
    angle = 2 * math.pi * (np.arange(n) + 0.5) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


def on_circle_at_random(n: int) -> np.ndarray:
    """Random angles, (n, 2)."""
    angle = np.random.default_rng(1).uniform(0, 2 * math.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def on_grid(n: int) -> np.ndarray:
    """A tensor grid of about n points in [−1, 1]², (·, 2)."""
    side = (np.arange(round(math.sqrt(n))) + 0.5) / round(math.sqrt(n)) * 2 - 1
    return np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)


def in_square(n: int) -> np.ndarray:
    """Random points of [−1, 1]², (n, 2)."""
    return np.random.default_rng(1).uniform(-1, 1, (n, 2))


def three_bumps(points: np.ndarray) -> np.ndarray:
    """Weights of the points under a law with three bumps, (1, n)."""
    centres = np.array([[1.0, 0, 0.3], [-0.3, 0.9, 0.4], [-0.2, -0.5, 0.9]])[:, : points.shape[1]]
    centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1.0)
    distances = ((points[:, None] - centres) ** 2).sum(axis=2)
    weights = np.exp(-0.5 * distances * np.array([8.0, 10.0, 12.0])) @ np.array([0.5, 0.3, 0.2])
    return (weights / weights.sum())[None]


class Problem:
    """One geometry, number of points and head."""

    def __init__(self, manifold: Manifold, points: np.ndarray, head: ps.Attention) -> None:
        self.manifold, self.points, self.head = manifold, points, head
        self.measure = ps.TokenMeasure(points, three_bumps(points))

    def evaluate(self, evaluation: Evaluation) -> tuple[float, float, Proposal]:
        """Seconds of one evaluation, the error reached, and the method."""
        evaluate = Evaluator(self.manifold, self.measure.comm, evaluation)
        arguments = self.head, self.measure, np.ones((1, 1)), self.points
        found = evaluate(*arguments).values[0]  # compiles, and refines the method if a check finds it wanting
        ((chosen, _),) = evaluate.choices(*arguments)

        # the least time is that of a call without a check
        seconds = measuring.best_time(lambda: evaluate(*arguments), 0.3)
        places = np.random.default_rng(2).choice(len(self.points), min(SAMPLE, len(self.points)), replace=False)
        direct = Evaluator(self.manifold, self.measure.comm, Evaluation(method="dense"))
        right = direct(self.head, self.measure, np.ones((1, 1)), self.points[places]).values[0]
        error = np.linalg.norm(found[places] - right, axis=1).max() / np.linalg.norm(found, axis=1).max()
        return seconds, float(error), chosen


def table(title: str, manifold: Manifold, points_of, heads: dict[str, ps.Attention], sizes, tolerances) -> None:
    """Print one geometry's rows."""
    print(f"\n{title}")
    print(f"{'head':>16} {'N':>9} {'asked':>6} {'reached':>8} {'ms':>9} {'direct ms':>10} {'ratio':>8}  method")
    for name, head in heads.items():
        pair_rate = 0.0
        for n in sizes:
            problem = Problem(manifold, points_of(n), head)
            n = len(problem.points)
            direct = None
            if n <= DIRECT_UP_TO:
                direct, _, _ = problem.evaluate(Evaluation(method="dense"))
                pair_rate = n * n / direct
            seconds_direct = direct if direct is not None else n * n / pair_rate
            for tolerance in tolerances:
                seconds, error, chosen = problem.evaluate(Evaluation(tolerance))
                star = " " if direct is not None else "*"
                print(
                    f"{name:>16} {n:9,d} {tolerance:6.0e} {error:8.1e} {1e3 * seconds:9.3f} "
                    f"{1e3 * seconds_direct:9.4g}{star} {seconds_direct / seconds:8.1f}  {chosen.name}",
                    flush=True,
                )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems, under a minute in all")
    quick = parser.parse_args().quick
    print(f"{measuring.processor()}, one core.   * extrapolated from the rate at {DIRECT_UP_TO:,} points")
    small = (100, 300, 1_000, 3_000, 10_000)
    sizes = (100, 1_000, 10_000) if quick else (*small, 100_000, 1_000_000)
    betas = (4.0, 64.0) if quick else (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
    tolerances = (1e-5,) if quick else (1e-5, 1e-6, 1e-9)
    plain = {f"β = {beta:g}": ps.Attention(beta) for beta in betas}
    general = np.random.default_rng(3).normal(size=(3, 3)) * 0.7
    table("S², A = V = I", ps.Sphere(3), on_sphere, plain, sizes, tolerances)
    heads = {f"β = {beta:g}": ps.Attention(beta, general, value=general.T) for beta in betas[:4]}
    table("S², A and V general", ps.Sphere(3), on_sphere, heads, sizes[: len(small) + 1], tolerances[-2:])
    table("circle, uniform", ps.Sphere(2), on_circle, plain, sizes[:-1], tolerances[-1:])
    table("circle, random", ps.Sphere(2), on_circle_at_random, plain, sizes[:-1], tolerances[-1:])
    table("[−1, 1]², tensor grid", ps.Euclidean(2), on_grid, plain, sizes, tolerances[-1:])
    table("[−1, 1]², random, A = I", ps.Euclidean(2), in_square, plain, sizes, tolerances[:2])


if __name__ == "__main__":
    main()
