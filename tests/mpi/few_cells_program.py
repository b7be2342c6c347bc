"""More ranks than cells or tokens: print the final states."""

import json

import numpy as np
from mpi4py import MPI
from small_runs import CIRCLE, LINE, all_rows

import pde_solver as ps

model = ps.Model(LINE, ps.Attention(1.0) + ps.Linear([[-0.5]], [0.3]))
law = ps.Gaussian([0.2], 0.3)
pair = ps.PointCloud([[-1.5], [0.4]])
runs = {
    "FV1": (ps.FiniteVolume(model, ps.interval(-2, 2, 2), 1), law),
    "FV2": (ps.FiniteVolume(model, ps.interval(-2, 2, 2), 2), law),
    "FV2, one cell": (ps.FiniteVolume(model, ps.interval(-2, 2, 1), 2), law),
    "FV2, cloud": (ps.FiniteVolume(model, ps.interval(-2, 2, 2), 2), pair),
    "DG1": (ps.DiscontinuousGalerkin(model, ps.interval(-2, 2, 2), 1), law),
    "DG2": (ps.DiscontinuousGalerkin(model, ps.interval(-2, 2, 2), 2), law),
    "DG2, cloud": (ps.DiscontinuousGalerkin(model, ps.interval(-2, 2, 2), 2), pair),
    "two tokens": (ps.Particles(ps.Model(CIRCLE, ps.Attention(1.0)), count=2, seed=3), ps.Uniform()),
}
answer = {}
for name, (discretisation, initial) in runs.items():
    simulation = ps.Simulation(discretisation, initial, 0.2)
    history = simulation.record(ps.variance, every=0.1)
    assert simulation.run().completed
    rows = all_rows(discretisation, simulation.state)
    nodes, values = discretisation.cell_nodes(simulation.state), discretisation.nodal_density(simulation.state)
    assert nodes.points.shape[0] == values.shape[1] == len(nodes.index)
    if rows is not None:
        answer[name] = [*np.ravel(rows).tolist(), *history.values.tolist()]
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(answer))
