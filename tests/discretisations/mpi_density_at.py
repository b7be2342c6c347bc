"""Run on several ranks: densities at points of each rank's own, against the whole mesh on one rank."""

import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import pde_solver as ps
from pde_solver.discretisations.cells import coordinates

sys.path.insert(0, str(Path(__file__).parent))
from some_meshes import METHODS, stirring

comm = MPI.COMM_WORLD
file = Path(__file__).parents[2] / "meshes" / "sphere_quads_order2.msh"
MESHES = {
    "circle": lambda comm: ps.circle(24, comm=comm),
    "icosphere": lambda comm: ps.icosphere(1, comm=comm),
    "a file": lambda comm: ps.read_mesh(file, ps.Sphere(3), comm=comm),
    "triangles": lambda comm: ps.rectangle((-1, -2), (1, 0), (4, 5), comm=comm),
    "hexahedra": lambda comm: ps.box((0, 0, 0), (1, 2, 3), (3, 3, 4), cell="hexahedron", comm=comm),
}

for name, build in MESHES.items():
    alone, shared = build(MPI.COMM_SELF), build(comm)
    rng = np.random.default_rng(5)
    dimension = alone.manifold.ambient_dimension
    # inside cells, outside of boxes, and on corners and edges, where several cells meet
    inside = np.concatenate(
        [np.full((1, alone.domain.topology.dim), 0.3), rng.random((3, alone.domain.topology.dim)) / 3]
    )
    points = np.concatenate(
        [
            coordinates(alone, inside).reshape(-1, dimension),
            rng.uniform(-4, 4, (200, dimension)),
            alone.cell_coordinates.reshape(-1, dimension),
        ]
    )
    # shares of very different size; of three, the last asks for nothing
    cuts = [*[0, 17, len(points)][: comm.size], len(points)]
    own = slice(cuts[comm.rank], cuts[comm.rank + 1])
    for method, make in METHODS.items():
        model = stirring(alone.manifold, ps.Labels((0.3, 0.7)))
        whole, part = make(model, alone), make(model, shared)
        rows = rng.random((alone.cell_count, whole.local_size // alone.cell_count))
        right = whole.density_at(whole.from_rows(rows), points)[:, own]
        found = part.density_at(part.from_rows(rows), points[own])
        assert found.shape == (2, own.stop - own.start), (name, method, found.shape)
        error = np.abs(found - right).max(initial=0.0)
        assert error < 1e-13, (name, method, error)
        assert abs(part.cell_size / whole.cell_size - 1) < 1e-14, (name, method)

with pytest.raises(ps.InputError, match=r"points of R\^3 need shape \(n, 3\), found \(2, 2\)"):
    # one rank's wrong points are everybody's error
    part.density_at(part.from_rows(rows), np.zeros((2, 3 if comm.rank else 2)))
print("agree", flush=True)
