"""Run everything on this number of ranks: histories to print, checkpoints and final states to a folder."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from small_runs import CHECKPOINT, FEW, RESUMED, RUNS, all_rows, simulation

import pde_solver as ps
from pde_solver.discretisations.cells import deposit
from pde_solver.discretisations.halo import vertex_halo
from pde_solver.mesh import facet_geometry
from pde_solver.parallel import gather_rows

COMM = MPI.COMM_WORLD
folder = Path(sys.argv[1]) / str(COMM.size)
names = FEW if sys.argv[2:] == ["few"] else RUNS


def digest(rows):
    """What rank 0 holds, as a hash."""
    return None if rows is None else hashlib.sha256(np.ascontiguousarray(rows)).hexdigest()


def neighbourhoods(mesh):
    """Sums over each cell's neighbours in their listed order, and how many there are."""
    halo = vertex_halo(mesh)
    values = halo.filled(np.sin(1.0 + mesh.input_index)[:, None])[:, 0]
    lists = [halo.neighbours[halo.first[cell] : halo.first[cell + 1]] for cell in range(halo.owned)]
    rows = np.array([(sum(values[other] for other in around), len(around)) for around in lists]).reshape(-1, 2)
    return gather_rows(mesh.comm, mesh.input_index, rows)


def deposited(mesh):
    """Tokens on the cells' corners, where many cells are equally near, and others."""
    corners = mesh.domain.geometry.x[:, : mesh.manifold.ambient_dimension]
    tokens = np.concatenate(
        [np.concatenate(COMM.allgather(corners)), np.random.default_rng(0).normal(size=(50, corners.shape[1]))]
    )
    tokens = np.unique(mesh.manifold.retract(tokens).round(12), axis=0)
    tokens = mesh.manifold.retract(tokens)
    mass = deposit(mesh, facet_geometry(mesh).cell_points[: mesh.owned_cells], ps.PointCloud(tokens))
    return gather_rows(mesh.comm, mesh.input_index, mass)


meshes = {
    "icosphere": ps.icosphere(2),
    "cubed sphere": ps.cubed_sphere(4),
    "circle": ps.circle(17),
    "triangles": ps.rectangle((0, 0), (1, 1), (5, 4)),
    "tetrahedra": ps.box((0, 0, 0), (1, 1, 1), (2, 3, 2)),
    "hexahedra": ps.box((0, 0, 0), (1, 1, 1), (3, 3, 2), cell="hexahedron"),
}
answer = {
    "neighbourhoods": {name: digest(neighbourhoods(mesh)) for name, mesh in meshes.items()},
    "deposited": {name: digest(deposited(mesh)) for name, mesh in meshes.items()},
    "tokens": {},
    "histories": {},
}
for name in names:
    run = simulation(name)
    if not run.discretisation.has_density:
        answer["tokens"][name] = digest(all_rows(run.discretisation, run.state))
    if name in RESUMED:
        run.write_checkpoints(folder / name, at=[CHECKPOINT])
    outcome = run.run()
    assert outcome.completed
    assert outcome.mass_error < 1e-12
    final = all_rows(run.discretisation, run.state)
    nodes, values = run.discretisation.cell_nodes(run.state), run.discretisation.nodal_density(run.state)
    assert len(nodes.points) == len(nodes.index) == values.shape[1]
    if final is not None and name in RESUMED:
        np.save(folder / name / "final.npy", final)
    answer["histories"][name] = {quantity: record.values.tolist() for quantity, record in run.records.items()} | {
        "steps": outcome.steps,
        "wall mass": outcome.wall_mass,
        "times": run.records["mass"].times.tolist(),
    }
if COMM.rank == 0:
    print(json.dumps(answer))
