"""Run under mpiexec by test_ranks: prints, from rank 0, what must not depend on the number of ranks."""

import hashlib
import json
import sys
import traceback
from pathlib import Path

import numpy as np

import pde_solver  # noqa: F401
from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere
from pde_solver.mesh import (
    box,
    circle,
    cubed_sphere,
    facet_geometry,
    icosphere,
    interval,
    read_mesh,
    rectangle,
)

from mpi4py import MPI  # isort: skip

COMM = MPI.COMM_WORLD
FOLDER = Path(__file__).parents[2] / "meshes"


def fingerprint(mesh):
    """A hash of all cells and facets by their places in the input, and whether ranks differ on a shared one."""
    geometry = facet_geometry(mesh)
    place = np.asarray(mesh.domain.topology.original_cell_index)
    cells = {
        int(place[k]): geometry.cell_points[k].tobytes() + geometry.cell_volumes[k].tobytes() for k in range(len(place))
    }
    facets = {}
    for owned in range(geometry.owned):
        for side, facet in enumerate(geometry.cell_facets[owned]):
            owner, neighbour = geometry.owner[facet], geometry.neighbour[facet]
            ends = int(place[owner]), int(place[neighbour]) if neighbour >= 0 else -1 - side
            facets[ends] = geometry.midpoints[facet].tobytes() + geometry.normals[facet].tobytes()
    differing = 0
    everything = []
    for table in (cells, facets):
        merged = {}
        for part in COMM.allgather(table):
            differing += sum(merged.get(key, value) != value for key, value in part.items())
            merged.update(part)
        everything += [(key, merged[key]) for key in sorted(merged)]
    digest = hashlib.sha256(repr(everything).encode()).hexdigest()
    owned = COMM.allreduce(geometry.owned)
    return {"digest": mesh.digest, "geometry": digest, "differing": differing, "owned": owned, "cells": mesh.cell_count}


def main():
    meshes = {
        "circle": circle(7),
        "icosphere": icosphere(2),
        "cubed sphere": cubed_sphere(5, geometry_degree=3),
        "interval": interval(-1, 2, 5),
        "triangles": rectangle((0, 0), (2, 1), (3, 4)),
        "quadrilaterals": rectangle((0, 0), (2, 1), (3, 4), cell="quadrilateral"),
        "tetrahedra": box((0, 0, 0), (1, 2, 3), (2, 3, 4)),
        "hexahedra": box((0, 0, 0), (1, 2, 3), (2, 3, 4), cell="hexahedron"),
        "file": read_mesh(FOLDER / "sphere_order2.msh", Sphere(3)),
        "one cell": interval(0, 1, 1),
        "three cells": circle(3),
        "one square": rectangle((0, 0), (1, 1), (1, 1), cell="quadrilateral"),
        "one cube": box((0, 0, 0), (1, 1, 1), (1, 1, 1), cell="hexahedron"),
    }
    result = {name: fingerprint(mesh) for name, mesh in meshes.items()}
    sentences = []
    for path in ("none.msh", "cubes.vtk", "rectangle.vtu"):
        try:
            read_mesh(FOLDER / path, Sphere(3))
        except InputError as error:
            sentences.append(str(error))
    result["same sentences"] = len(set(COMM.allgather(tuple(sentences)))) == 1
    result["sentences"] = len(sentences)
    result["notes"] = sorted(set(COMM.allgather(meshes["file"].notes)))
    if COMM.rank == 0:
        print(json.dumps(result), flush=True)


try:
    main()
except BaseException:
    traceback.print_exc()
    sys.stderr.flush()
    COMM.Abort(1)
