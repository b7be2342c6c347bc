"""Run on several ranks: velocities and energies of a distributed measure against the whole measure on one rank."""

import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.kernel_sums import energy_dissipation, interaction_energy, log_interaction_energy, velocity
from pde_solver.labels import Labels
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Model

comm = MPI.COMM_WORLD
rng = np.random.default_rng(1)
points = Sphere(3).retract(rng.normal(size=(301, 3)))
weights = rng.random((2, 301))
weights /= weights.sum(axis=1, keepdims=True)
whole = TokenMeasure(points, weights)
# shares of very different size; the last rank has none
cuts = np.linspace(0, 301, comm.size).astype(int) if comm.size > 2 else np.array([0, 37])
own = slice(cuts[comm.rank], cuts[comm.rank + 1]) if comm.rank + 1 < len(cuts) else slice(cuts[-1], 301)
share = TokenMeasure(points[own], weights[:, own], comm)

for beta in (0.0, 4.0, 1e3):
    model = Model(Sphere(3), Attention(beta) + Attention(2.0, value=-np.eye(3)), Labels((0.4, 0.6)))
    found = velocity(model, 0.0, share.points, share)
    right = velocity(model, 0.0, points, whole)[:, own]
    assert np.abs(found - right).max(initial=0.0) < 1e-13, np.abs(found - right).max()

model = Model(Sphere(3), Attention(4.0), Labels((0.4, 0.6)))
for quantity in (interaction_energy, log_interaction_energy, energy_dissipation):
    found, right = quantity(model, 0.0, share), quantity(model, 0.0, whole)
    assert abs(found / right - 1) < 1e-13, (quantity.__name__, found, right)

nothing = Model(Sphere(3), Attention(4.0), Labels((0.4, 0.6), np.array([[1.0, 0], [0, 0]])))
try:
    velocity(nothing, 0.0, share.points, share)
except InputError:
    print("agree", flush=True)
