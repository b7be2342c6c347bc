"""Run on several ranks: sums on the circle, on tensor grids and on rotated grids against those of one rank."""

import numpy as np
from mpi4py import MPI

from pde_solver.kernel_sums import circle, rotated, tensor
from pde_solver.kernel_sums.method import Problem
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import L2, Attention

comm = MPI.COMM_WORLD
rng = np.random.default_rng(1)


def share(count):
    """Shares of very different size; with three ranks the last has nothing."""
    cuts = {1: [0, count], 2: [0, count // 5, count], 3: [0, count // 3, count, count]}[comm.size]
    return slice(cuts[comm.rank], cuts[comm.rank + 1])


def compare(room, manifold, heads, targets, sources, tolerance=1e-7):
    counts = len(targets), len(sources)
    weights, mixing = rng.random((3, len(sources))), np.tril(rng.random((3, 3)))
    found = []
    for ranks in (comm, MPI.COMM_SELF):
        own = [share(n) if ranks is comm else slice(0, n) for n in counts]
        (proposal,) = room.proposals(
            Problem(manifold, tuple(heads), targets[own[0]], sources[own[1]], ranks, *counts, 3, tolerance)
        )
        sums = proposal.build()
        attended = sums.attend(weights[:, own[1]], mixing, partition=True)
        found.append((proposal, attended, sums.mass_near(targets)))
    (many, part, near), (one, whole, all_near) = found
    assert (many.name, many.seconds, many.error) == (one.name, one.seconds, one.error)
    own = share(counts[0])
    scale = np.abs(sources).max()
    for mine, right in zip(part, whole, strict=True):
        assert np.abs(mine.mean - right.mean[:, own]).max(initial=0.0) < 1e-13 * scale, many.name
        assert np.abs(mine.log_partition - right.log_partition[:, own]).max(initial=0.0) < 1e-12
    assert np.abs(near - all_near).max() < 1e-12


def ring(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


turned = np.array([[1.0, 0.3], [-0.2, 0.8]])
on_circle = [Attention(5.0), Attention(5.0, turned), Attention(3.0, key=turned, normaliser=L2())]
lattice = 0.2 + 2 * np.pi / 40 * rng.permutation(40)
compare(circle, Sphere(2), on_circle, ring(lattice + np.pi / 40), ring(lattice))
compare(circle, Sphere(2), on_circle, ring(rng.uniform(0, 6, 31)), ring(rng.uniform(0, 6, 43)))

for d in (1, 2, 3):
    axes = [np.sort(rng.uniform(-1, 1, 7 + k)) for k in range(d)]
    middles = [0.5 * (axis[1:] + axis[:-1]) for axis in axes]
    nodes, facets = (
        np.stack([axis.ravel() for axis in np.meshgrid(*grid, indexing="ij")], axis=1)
        for grid in (middles, [axes[0], *middles[1:]])
    )
    nodes, facets = rng.permutation(nodes), rng.permutation(np.vstack([facets, nodes]))
    compare(tensor, Euclidean(d), [Attention(8.0), Attention(100.0, normaliser=L2())], facets, nodes)
    slanted = np.linalg.qr(rng.normal(size=(d, d)))[0] @ np.diag([1.0, 0.5, 0.0][:d])
    general = [Attention(3.0, slanted), Attention(2.0, slanted, normaliser=L2())]
    compare(rotated, Euclidean(d), general, rng.normal(size=(31, d)), rng.normal(size=(47, d)), 1e-5)

print("agree", flush=True)
