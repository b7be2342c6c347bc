"""Run on several ranks: velocities of a distributed measure against the whole measure on one rank, fast methods included."""

import numpy as np
from mpi4py import MPI

from pde_solver.kernel_sums import Evaluation, Evaluator
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import L2, Attention, Linear, Unnormalised

comm = MPI.COMM_WORLD
rng = np.random.default_rng(1)


def compare(manifold, points, weights, term, mixing, family, normals=None, agree=1e-13, **options):
    """The velocity of shares against that of the whole, over two calls, the second with other weights."""
    count = len(points)
    # shares of very different size; on three ranks and more the last has none
    cuts = [0, count // 5, *([count] * (comm.size - 1))] if comm.size > 1 else [0, count]
    own = slice(cuts[comm.rank], cuts[comm.rank + 1])
    share_points, share_normals = points[own].copy(), None if normals is None else normals[own].copy()
    shared, alone = (Evaluator(manifold, c, Evaluation(**options)) for c in (comm, MPI.COMM_SELF))
    for factor in (np.ones(count), 1 + 0.3 * points[:, 0]):
        share = TokenMeasure(share_points, weights[:, own] * factor[own], comm)
        whole = TokenMeasure(points, weights * factor)
        found = shared(term, share, mixing, share_points, share_normals).values
        right = alone(term, whole, mixing, points, normals).values
        worst = comm.allreduce(float(np.abs(found - right[:, own]).max(initial=0.0)), MPI.MAX)
        assert worst < agree * np.abs(right).max(), (family, worst)
        chosen = [proposal.family for proposal, _ in shared.choices(term, share, mixing, share_points, share_normals)]
        assert set(chosen) == {family}, chosen
        assert shared.refinement == alone.refinement
        assert shared.error is None or abs(shared.error - alone.error) < 10 * agree


def bumps(points, labels, sharpness=8.0):
    """Weights of laws with two bumps, another for each label, (labels, n)."""
    centres = points[:: len(points) // (2 * labels)][: 2 * labels].reshape(labels, 2, -1)
    weights = np.exp(-sharpness * ((points[None, None] - centres[:, :, None]) ** 2).sum(axis=3)).sum(axis=1)
    return weights / weights.sum(axis=1, keepdims=True)


triangular = np.array([[1.0, 0.0], [0.4, 0.6]])
on_sphere = Sphere(3).retract(rng.normal(size=(6000, 3)))
normals = np.cross(on_sphere, [0.3, 0.5, 0.7])
general = Attention(3.0, rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), rng.normal(size=(3, 3)))
several = Attention(4.0) + Attention(1.0, normaliser=Unnormalised(0.5), weight=-0.3) + Linear(np.eye(3))
compare(Sphere(3), on_sphere, bumps(on_sphere, 2), several, triangular, "sphere", tolerance=1e-5)
compare(Sphere(3), on_sphere, bumps(on_sphere, 1), Attention(4.0), np.ones((1, 1)), "sphere", normals)
compare(Sphere(3), on_sphere, bumps(on_sphere, 1), general, np.ones((1, 1)), "sphere", tolerance=1e-3)
# clusters that attend to where nobody is: fast sums lose their digits there, so they differ by round-off that is amplified up
# to the tolerance, beyond which direct sums take over
away = Attention(16.0, -np.eye(3))
compare(
    Sphere(3),
    on_sphere,
    bumps(on_sphere, 1, 60.0),
    away,
    np.ones((1, 1)),
    "sphere",
    agree=1e-6,
    method="sphere",
    tolerance=1e-4,
)
compare(Sphere(3), on_sphere[:300], bumps(on_sphere[:300], 2), several, triangular, "dense")

on_circle = Sphere(2).retract(rng.normal(size=(3000, 2)))
compare(Sphere(2), on_circle, bumps(on_circle, 2), Attention(4.0), triangular, "circle")

side = np.linspace(-1, 1, 60)
grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
diagonal = Attention(8.0, np.diag([1.0, -0.5]), value=rng.normal(size=(2, 2)))
compare(Euclidean(2), grid, bumps(grid, 2), diagonal, triangular, "tensor")
in_square = rng.uniform(-1, 1, (6000, 2))
turned = Attention(6.0, np.array([[0.9, 0.5], [-0.3, 0.7]]), normaliser=L2())
compare(Euclidean(2), in_square, bumps(in_square, 1), turned, np.ones((1, 1)), "rotated", tolerance=1e-5)
if comm.rank == 0:
    print("agree", flush=True)
