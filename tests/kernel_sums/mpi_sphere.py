"""Run on several ranks: sums by spherical harmonics of a distributed measure against the whole measure on one rank."""

import numpy as np
from mpi4py import MPI

from pde_solver.kernel_sums.method import Problem
from pde_solver.kernel_sums.sphere import proposals
from pde_solver.manifolds import Sphere
from pde_solver.models import L2, Attention

comm = MPI.COMM_WORLD
rng = np.random.default_rng(1)
points = Sphere(3).retract(rng.normal(size=(301, 3)))
weights = rng.random((2, 301))
mixing = np.array([[1.0, 0], [0.3, 0.7]])
# shares of very different size; the last rank has none
cuts = np.linspace(0, 301, comm.size).astype(int) if comm.size > 2 else np.array([0, 37])
own = slice(cuts[comm.rank], cuts[comm.rank + 1]) if comm.rank + 1 < len(cuts) else slice(cuts[-1], 301)

heads = (
    Attention(0.0),
    Attention(12.0),
    Attention(5.0, query=np.diag([1.0, 0.5, -0.7])),
    Attention(5.0, key=np.diag([1.0, 0.5, 0.7]), normaliser=L2()),
)
share = Problem(Sphere(3), heads, points[own], points[own], comm, 301, 301, 2, 1e-6)
whole = Problem(Sphere(3), heads, points, points, MPI.COMM_SELF, 301, 301, 2, 1e-6)
(proposal,), (alone,) = proposals(share), proposals(whole)
assert (proposal.name, proposal.seconds, proposal.error) == (alone.name, alone.seconds, alone.error)
method, right = proposal.build(), alone.build()
found = method.attend(weights[:, own], mixing, partition=True)
expected = right.attend(weights, mixing, partition=True)
for one, other in zip(found, expected, strict=True):
    assert np.abs(one.mean - other.mean[:, own]).max(initial=0.0) < 1e-13
    assert one.log_partition is not None
    assert other.log_partition is not None
    assert np.abs(one.log_partition - other.log_partition[:, own]).max(initial=0.0) < 1e-12
near = method.mass_near(points[:20])
assert np.abs(near - right.mass_near(points[:20])).max() < 1e-13
print("agree", flush=True)
