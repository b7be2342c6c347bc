"""Discretisations with almost nothing inside: cells of constant density, and tokens, spread over the ranks in order."""

import numpy as np
from mpi4py import MPI

from pde_solver.discretisations.base import Discretisation
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Model
from pde_solver.observing import Snapshot
from pde_solver.parallel import max_over_ranks, min_over_ranks, rank_slice, sum_over_ranks


def fake(cls):
    """A fake has only what quantities look at; the rest of the protocol may stay abstract."""
    cls.__abstractmethods__ = frozenset()
    return cls


@fake
class Cells(Discretisation):
    """Cells with centres and volumes; the state is one density a cell and label."""

    has_density = True

    def __init__(self, model, points, volumes, comm=MPI.COMM_SELF):
        self.model, self.comm = model, comm
        self.cell_count = len(points)
        self.share = rank_slice(comm, len(points))
        self.points, self.volumes = points[self.share], volumes[self.share]

    def state(self, *densities):
        """The state of one density function for each label, each normalised to mass one."""
        values = np.array([f(self.points) * np.ones(len(self.points)) for f in densities])
        return (values / sum_over_ranks(self.comm, values @ self.volumes)[:, None]).ravel()

    def snapshot(self, state, t=0.0, step=0):
        """A moment of a run."""
        return Snapshot(t, step, state, self)

    def initial(self, law):
        return self.state(*(lambda x, one=one: one.density(x, self.model.manifold) for one in self.per_label(law)))

    def _labels(self, state):
        return state.reshape(self.model.labels.count, -1)

    def measure(self, state):
        return TokenMeasure(self.points, self._labels(state) * self.volumes, self.comm)

    def density_range(self, state):
        least = state.min() if len(state) else np.inf
        most = state.max() if len(state) else -np.inf
        return min_over_ranks(self.comm, least), max_over_ranks(self.comm, most)

    def entropy(self, state):
        f = self._labels(state)
        return sum_over_ranks(self.comm, (f * np.log(np.where(f > 0, f, 1))) @ self.volumes)

    def wall_flux(self, t, state):
        return 0.25

    def rows(self, state):
        return np.arange(self.share.start, self.share.stop), self._labels(state).T


@fake
class Tokens(Discretisation):
    """Tokens of equal weight with one label; the state is their positions."""

    has_density = False

    def __init__(self, model, count, comm=MPI.COMM_SELF):
        self.model, self.comm, self.cell_count = model, comm, count
        self.share = rank_slice(comm, count)

    def state(self, points):
        return points[self.share].ravel()

    def snapshot(self, state, t=0.0, step=0):
        """A moment of a run."""
        return Snapshot(t, step, state, self)

    def initial(self, law):
        return self.state(law.sample(self.cell_count, np.random.default_rng(0), self.model.manifold))

    def measure(self, state):
        points = state.reshape(-1, self.model.manifold.ambient_dimension)
        return TokenMeasure(points, np.full((1, len(points)), 1 / self.cell_count), self.comm)

    def density_range(self, state):
        return np.nan, np.nan

    def entropy(self, state):
        return np.full(1, np.nan)

    def wall_flux(self, t, state):
        return 0.0

    def rows(self, state):
        return np.arange(self.share.start, self.share.stop), state.reshape(-1, self.model.manifold.ambient_dimension)


def circle_cells(count=128, model=None, comm=MPI.COMM_SELF):
    """Equal arcs of the circle, midpoints as centres."""
    model = Model(Sphere(2), Attention(beta=1.0)) if model is None else model
    angles = (np.arange(count) + 0.5) * 2 * np.pi / count
    return Cells(model, np.column_stack([np.cos(angles), np.sin(angles)]), np.full(count, 2 * np.pi / count), comm)


def sphere_cells(count=3000, model=None, comm=MPI.COMM_SELF):
    """A Fibonacci lattice on S²: nearly equal areas, no symmetry."""
    model = Model(Sphere(3), Attention(beta=4.0)) if model is None else model
    k = np.arange(count) + 0.5
    z, angle = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    radius = np.sqrt(1 - z**2)
    points = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), z])
    return Cells(model, points, np.full(count, 4 * np.pi / count), comm)


def square_cells(side=40, half_width=5.0, comm=MPI.COMM_SELF):
    """Equal squares of a box in the plane."""
    model = Model(Euclidean(2), Attention(beta=1.0))
    h = 2 * half_width / side
    x = -half_width + h * (np.arange(side) + 0.5)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    return Cells(model, points, np.full(side**2, h**2), comm)
