"""Discretisations with almost nothing inside, their cells dealt out to the ranks like cards."""

import numpy as np
from mpi4py import MPI

from pde_solver.discretisations.base import CellNodes, Discretisation
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Model
from pde_solver.observing.snapshot import Snapshot


class Fake(Discretisation):
    """What output needs of a discretisation; the state is values[label, cell, entry]."""

    def __init__(self, manifold, labels, cells, width, comm, digest="digest of the mesh", beta=1.0):
        self.model = Model(manifold, Attention(beta=beta), Labels(tuple(np.full(labels, 1 / labels))))
        self.comm, self.cell_count, self.width = comm, cells, width
        self.index = np.arange(comm.rank, cells, comm.size)[::-1].copy()
        self.has_density = isinstance(self, Patches)
        self.name, self.mesh_digest, self.mesh_description = "fake", digest, "fake mesh"

    def values(self, state):
        return state.reshape(self.model.labels.count, len(self.index), self.width)

    def rows(self, state):
        rows = self.values(state).transpose(1, 0, 2)
        return self.index, np.ascontiguousarray(rows).reshape(len(self.index), self.model.labels.count * self.width)

    def from_rows(self, rows):
        own = rows[self.index].reshape(len(self.index), self.model.labels.count, self.width)
        return np.ascontiguousarray(own.transpose(1, 0, 2)).reshape(-1)

    def snapshot(self, t, step=0):
        """Values that say which depth, label, cell and entry they belong to; positive."""
        label, cell, entry = np.ogrid[: self.model.labels.count, : self.cell_count, : self.width]
        values = 1.0 + t + 0.1 * label + np.sin(1.0 + cell) ** 2 + 1e-3 * entry
        return Snapshot(t, step, np.ascontiguousarray(values[:, self.index]).reshape(-1), self)


class Patches(Fake):
    """Quadratic triangles on the sphere (six nodes, or one value a cell)."""

    def __init__(self, cells=12, nodal=True, labels=1, comm=MPI.COMM_SELF, **others):
        super().__init__(Sphere(3), labels, cells, 6 if nodal else 1, comm, **others)
        points = np.random.default_rng(1).normal(size=(cells, 6, 3))
        self.points = points / np.linalg.norm(points, axis=-1, keepdims=True)

    def cell_nodes(self, state):
        return CellNodes(self.points[self.index], 69, self.index)

    def nodal_density(self, state):
        values = self.values(state)
        return values if self.width > 1 else values[..., 0]

    def measure(self, state):
        points = self.points[self.index, : self.width].reshape(-1, 3)
        return TokenMeasure(points, self.values(state).reshape(self.model.labels.count, -1), self.comm)


class Tokens(Fake):
    """Tokens in the plane, one vertex each; the state is their positions."""

    def __init__(self, count=7, comm=MPI.COMM_SELF, **others):
        super().__init__(Euclidean(2), 1, count, 2, comm, **others)

    def cell_nodes(self, state):
        points = np.zeros((len(self.index), 1, 3))
        points[:, 0, :2] = self.values(state)[0]
        return CellNodes(points, 1, self.index)

    def nodal_density(self, state):
        return np.full((1, len(self.index)), 1 / self.cell_count)

    def measure(self, state):
        return TokenMeasure(self.values(state)[0], self.nodal_density(state), self.comm)


for cls in (Patches, Tokens):  # the rest of the protocol stays abstract
    cls.__abstractmethods__ = frozenset()
