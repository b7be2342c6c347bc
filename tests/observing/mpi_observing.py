"""Run under mpiexec: the same quantities, guards and progress on any number of ranks. Rank 0 prints JSON."""

import io
import json
import sys
import time

import numpy as np
from mpi4py import MPI
from observing_fakes import Tokens, circle_cells, sphere_cells, square_cells

from pde_solver.errors import InputError, RunStopped
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Model
from pde_solver.observing import (
    Guards,
    Progress,
    Reference,
    default_quantities,
    distance_name,
    second_moment,
    wasserstein_to,
)

comm = MPI.COMM_WORLD
result = {}

cells = sphere_cells(300, comm=comm)
few = circle_cells(2, comm=comm)  # with three ranks one holds nothing
square = square_cells(12, comm=comm)
tokens = Tokens(Model(Sphere(3), Attention(beta=4.0)), 50, comm)
cloud = np.random.default_rng(0).standard_normal((50, 3))
snapshots = {
    "sphere": cells.snapshot(cells.state(lambda x: np.exp(3 * x[:, 0]))),
    "few": few.snapshot(few.state(lambda x: 2 + x[:, 1])),
    "square": square.snapshot(square.state(lambda x: np.exp(x[:, 0] - 0.3 * x[:, 1] ** 2))),
    "tokens": tokens.snapshot(tokens.state(Sphere(3).retract(cloud))),
}
for name, snapshot in snapshots.items():
    size = snapshot.model.manifold.ambient_dimension
    dirac = TokenMeasure(np.eye(1, size), np.ones((1, 1)))
    for quantity in (*default_quantities(snapshot.discretisation), second_moment, wasserstein_to(dirac)):
        value = np.asarray(quantity(snapshot))
        everywhere = comm.allgather(value)
        assert all(np.array_equal(value, other) for other in everywhere), f"{quantity.__name__} differs between ranks"
        result[f"{name}.{quantity.__name__}"] = value.tolist()
    result[f"{name}.distance"] = distance_name(snapshot.law, dirac, snapshot.model.manifold)

# a guard that one rank's cell sets off stops all of them, with one sentence
snapshot = snapshots["sphere"]
reference = Reference.of(snapshot, stop=1.0)
Guards().check(snapshot, 1e-3, reference)
for bad in (np.nan, -1.0):
    state = snapshot.state.copy()
    if comm.rank == comm.size - 1:
        state[-1] = bad
    try:
        Guards(mass=None).check(cells.snapshot(state, t=0.5), 1e-3, reference)
        raise SystemExit(f"no guard stopped {bad}")
    except RunStopped as stopped:
        sentences = comm.allgather(str(stopped))
        assert len(set(sentences)) == 1
        result[f"guard {bad}"] = sentences[0]

# a distance that cannot be computed is refused on all ranks
negative = TokenMeasure(np.eye(1, 3), -np.ones((1, 1)))
try:
    wasserstein_to(negative)(snapshot)
    raise SystemExit("a negative law was accepted")
except InputError as refused:
    result["refused"] = str(refused)
assert len(set(comm.allgather(result["refused"]))) == 1

# progress: due at the same steps on all ranks, although their clocks disagree
stream = io.StringIO()
clock = lambda: (1 + 0.3 * comm.rank) * time.perf_counter()  # noqa: E731
progress = Progress(comm, stream=stream, interval=0.02, clock=clock)
progress.start("start", 0.0, 1.0)
due = []
for step in range(2000):
    if progress.due():
        due.append(step)
        progress.update(step / 2000, 1e-3, step, 1.0, 0.0, 1.0)
progress.finish("end")
assert len(due) > 0
assert comm.allgather(due) == comm.size * [due]
assert (len(stream.getvalue().splitlines()) == 2 + len(due)) if comm.rank == 0 else not stream.getvalue()

if comm.rank == 0:
    json.dump(result, sys.stdout)
