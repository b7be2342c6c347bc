"""What finite volumes and discontinuous Galerkin share: a density on a mesh, and the velocity that it causes."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from pde_solver.densities import Law
from pde_solver.discretisations.base import Discretisation, evaluator
from pde_solver.discretisations.locate import INSIDE, locate
from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, Field
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.mesh import Mesh
from pde_solver.models.model import Model
from pde_solver.models.terms import Term
from pde_solver.parallel import (
    allgather_rows,
    max_over_ranks,
    min_over_ranks,
    same_on_all_ranks,
    sum_over_lower_ranks,
    sum_over_ranks,
)


class MeshDiscretisation(Discretisation):
    """A density on a mesh. `densities` are this rank's unknowns with their shape, (labels, cells, ...).

    Args:
        model: what is solved.
        mesh: a mesh of the model's manifold.
        evaluation: how the velocity is evaluated; by default `Evaluation()`.

    Raises:
        InputError: if the arguments are no model and no mesh of its manifold.
    """

    has_density = True

    #: Shape of this rank's unknowns.
    _shape: tuple[int, ...]
    #: Volumes of this rank's cells, (cells,).
    _volumes: np.ndarray
    #: Where attention sees the density, (m, D).
    _points: np.ndarray
    #: Degree of the maps that span the cells.
    _cell_degree: int

    def __init__(self, model: Model, mesh: Mesh, evaluation: Evaluation | None = None) -> None:
        where = type(self).__name__
        if not isinstance(model, Model):
            raise InputError(f"{where}: the first argument must be a Model, found {model!r}.")
        if not isinstance(mesh, Mesh):
            raise InputError(
                f"{where}: the second argument must be a Mesh, such as icosphere(level=3), found {mesh!r}."
            )
        if mesh.manifold != model.manifold:
            raise InputError(f"{where}: the mesh is of {mesh.manifold}, the model lives on {model.manifold}.")
        self.model = model
        self.mesh = mesh
        self.comm = mesh.comm
        self.cell_count = mesh.cell_count
        self.mesh_description = mesh.description
        self.mesh_digest = mesh.digest
        self._evaluate = evaluator(where, model, mesh.comm, evaluation)
        self._memory: tuple[float, Term, np.ndarray, Field] | None = None
        self.enter(0.0)

    @abstractmethod
    def _discretised(self, law: Law) -> np.ndarray:
        """A law's density on this rank's cells, not yet of mass one."""

    @abstractmethod
    def _means(self, densities: np.ndarray) -> np.ndarray:
        """Cell means (..., cells) of densities (..., cells, ·)."""

    @abstractmethod
    def _limited(self, state: np.ndarray) -> np.ndarray:
        """The densities of a state as they are used: ≥ 0 where the means are ≥ 0."""

    @abstractmethod
    def _weights(self, densities: np.ndarray) -> np.ndarray:
        """The weight ≥ 0 of each point under each label's law, (labels, m)."""

    @abstractmethod
    def _density_in(self, state: np.ndarray, cell: np.ndarray, reference: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The densities (labels, n) at points (n, D) that lie in these owned cells at these reference points. Collective."""

    @cached_property
    def cell_size(self) -> float:
        """h = (surface measure of all cells / number of cells)^{1/d}, d the manifold's dimension; collective at first."""
        total = sum_over_ranks(self.comm, self._volumes.sum())
        return float((total / self.cell_count) ** (1 / self.model.manifold.dimension))

    def initial(self, law: Law | Sequence[Law]) -> np.ndarray:
        """The state of the initial law(s), each label's mass scaled to one. Collective."""
        state = np.empty(self._shape)
        for label, part in enumerate(self.per_label(law)):
            error = None
            try:
                state[label] = self._discretised(part)
            except InputError as found:
                error = found
            same_on_all_ranks(self.comm, error)
            means = self._means(state[label])
            mass = sum_over_ranks(self.comm, self._volumes @ means)
            lowest = min_over_ranks(self.comm, means.min(initial=np.inf))
            if not np.isfinite(mass) or not mass > 0 or not lowest >= 0:
                raise InputError(
                    f"initial: the density must be finite, ≥ 0 and of positive mass on the mesh, "
                    f"found mass {mass:g} and smallest cell mean {lowest:g}."
                )
            state[label] /= mass
        flat = state.reshape(-1)
        self.correct(flat)
        return flat

    def measure(self, state: np.ndarray) -> TokenMeasure:
        """The points where attention sees the density, with the mass that each stands for. Collective."""
        return self._measure(self._limited(state))

    def density_at(self, state: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The density of each label at any points of the manifold, (labels, n); 0 outside of a box. Collective.

        Where cells meet, a point is in the one that comes first in the input, on any number of ranks.
        """
        manifold = self.model.manifold
        own, error = np.empty((0, manifold.ambient_dimension)), None
        try:
            own = self._points_to_evaluate(points)
        except InputError as found:
            error = found
        same_on_all_ranks(self.comm, error)
        everybodys = allgather_rows(self.comm, own)
        place = locate(self.mesh, everybodys, self._cell_degree)
        least = min_over_ranks(self.comm, place.violation)
        index = np.where(place.violation == least, place.index, self.cell_count)
        mine = (place.cell >= 0) & (index == min_over_ranks(self.comm, index))
        if not isinstance(manifold, Sphere):  # cells cover spheres wholly, boxes end
            mine &= least <= INSIDE
        values = np.zeros((self._shape[0], len(everybodys)))
        values[:, mine] = self._density_in(state, place.cell[mine], place.reference[mine], everybodys[mine])
        begin = sum_over_lower_ranks(self.comm, len(own))
        return sum_over_ranks(self.comm, values)[:, begin : begin + len(own)]

    def _points_to_evaluate(self, points: np.ndarray) -> np.ndarray:
        """This rank's points as an array, on spheres moved to the sphere."""
        manifold = self.model.manifold
        try:
            found = np.asarray(points, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"density_at: points must be an array of numbers, found {points!r:.60}.") from None
        if found.ndim != 2 or found.shape[1] != manifold.ambient_dimension:
            raise InputError(
                f"density_at: points of {manifold} need shape (n, {manifold.ambient_dimension}), found {found.shape}."
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            found = manifold.retract(found)
        wrong = np.flatnonzero(~np.isfinite(found).all(axis=1))
        if len(wrong):
            raise InputError(
                f"density_at: points must be finite, and on spheres not at the origin; found {points[wrong[0]]} "
                f"in row {wrong[0]}."
            )
        return found

    def _measure(self, densities: np.ndarray) -> TokenMeasure:
        return TokenMeasure(self._points, self._weights(densities), self.comm)

    def _field(self, t: float, densities: np.ndarray) -> Field:
        """The velocity at this rank's velocity points; remembered for the next call with the same densities. Collective."""
        if self._memory is not None:
            depth, term, known, field = self._memory
            same = depth == t and term is self._term and _equal(known, densities)
            if min_over_ranks(self.comm, same):
                return field
        points, mixing = self.velocity_points(densities), self.model.labels.mixing
        field = self._evaluate(self._term, self._measure(densities), mixing, points, self._velocity_normals)
        self._memory = (t, self._term, np.array(densities), field)
        return field

    def velocity_rate(self, t: float, state: np.ndarray) -> float:
        """The largest of the velocity points' rates, over all ranks."""
        return float(max_over_ranks(self.comm, self._field(t, self._limited(state)).rate))


def _equal(known: np.ndarray, densities: np.ndarray) -> bool:
    """Whether two arrays of one shape are equal; a few entries are looked at first, as nearly always they are not."""
    some = slice(None, None, 61)
    flat, other = known.reshape(-1), densities.reshape(-1)
    return np.array_equal(flat[some], other[some]) and np.array_equal(flat, other)
