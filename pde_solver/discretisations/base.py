"""What every discretisation can do. It binds a model to a mesh or to tokens; time comes after."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from pde_solver.densities import Law
from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, Evaluator, Proposal
from pde_solver.measures import TokenMeasure
from pde_solver.models.model import Model
from pde_solver.models.terms import Term
from pde_solver.parallel import max_over_ranks, sum_over_ranks
from pde_solver.threads import use_one_thread


@dataclass(frozen=True)
class CellNodes:
    """This rank's cells (or tokens) as a picture needs them.

    Args:
        points: (cells, nodes, 3) coordinates of each cell's nodes in VTK's order, padded with zeros to three.
        vtk_type: VTK's number of the cell type (1 vertex, 68 Lagrange curve, 69 Lagrange triangle, ...).
        index: (cells,) global index of each cell in the order of the input.
    """

    points: np.ndarray
    vtk_type: int
    index: np.ndarray


@dataclass(frozen=True)
class DensityError:
    """Distance between two densities in three norms.

    Args:
        l1: ∫ |f − g|.
        l2: (∫ |f − g|²)^{1/2}.
        linf: max |f − g| over the sampled points.
    """

    l1: float
    l2: float
    linf: float


class Discretisation(ABC):
    """A model bound to a mesh or to tokens: a system of ordinary differential equations du/dt = rate(t, u).

    A state is this rank's share of the unknowns, a flat float array of `local_size` entries, label by label.
    The term of the velocity that acts is fixed between two breakpoints by `enter(t)`.
    """

    model: Model
    comm: MPI.Comm
    #: Order of convergence in space that the method declares (0: sampling error instead).
    order: int
    #: Order of the time stepping that goes with it.
    time_order: int
    #: What the method calls itself, for example "finite volume, order 2".
    name: str
    #: Unknowns over all ranks, and on this rank.
    unknowns: int
    local_size: int
    #: Whether the state is a density (which can be negative) or positions of tokens.
    has_density: bool
    #: Cells (or tokens) over all ranks; each rank owns some.
    cell_count: int
    #: One line on the mesh (or the tokens), and a digest of it for checkpoints.
    mesh_description: str
    mesh_digest: str

    _term: Term
    _evaluate: Evaluator
    #: If a method needs the velocity along them only: a tangent vector at each velocity point, (n, D).
    _velocity_normals: np.ndarray | None = None

    @property
    def evaluation(self) -> Evaluation:
        """How the velocity is evaluated."""
        return self._evaluate.evaluation

    @property
    def velocity_error(self) -> float | None:
        """The largest error, relative to the largest velocity, that a check has found in velocities that were used.

        None before one, and where all sums are direct, hence exact.
        """
        return self._evaluate.error

    @property
    def evaluation_progress(self) -> np.ndarray:
        """How far the evaluation of the velocity has been refined and checked, numbers for a run that is resumed."""
        return self._evaluate.progress

    @evaluation_progress.setter
    def evaluation_progress(self, progress: np.ndarray) -> None:
        self._evaluate.progress = progress

    def velocity_methods(self, state: np.ndarray) -> list[tuple[Proposal, Proposal]]:
        """For each group of heads, the method that sums it at this state, and the direct sum beside it. Collective."""
        points = self.velocity_points(state)
        mixing = self.model.labels.mixing
        return self._evaluate.choices(self._term, self.measure(state), mixing, points, self._velocity_normals)

    def enter(self, t: float) -> None:
        """Let the velocity in force around depth t act until the next call."""
        self._term = self.model.velocity.at(t)

    @abstractmethod
    def initial(self, law: Law | Sequence[Law]) -> np.ndarray:
        """The state of an initial law, the same for all labels or one for each, each of mass one."""

    @abstractmethod
    def rate(self, t: float, state: np.ndarray, out: np.ndarray) -> None:
        """Write du/dt into `out`. Collective."""

    @abstractmethod
    def step_limit(self, t: float, state: np.ndarray) -> float:
        """The largest forward Euler step that is stable (and keeps cell means ≥ 0), over all ranks; inf if there is none."""

    @abstractmethod
    def velocity_rate(self, t: float, state: np.ndarray) -> float:
        """How fast the velocity itself may change, in units of 1/depth (see `kernel_sums.Field`), over all ranks."""

    @abstractmethod
    def velocity_points(self, state: np.ndarray) -> np.ndarray:
        """Where this rank evaluates the velocity: facets' midpoints, nodes, or tokens, (n, D)."""

    @abstractmethod
    def correct(self, state: np.ndarray) -> None:
        """In place after each step: limit a density to be ≥ 0 (means unchanged), or retract tokens to the manifold."""

    @abstractmethod
    def measure(self, state: np.ndarray) -> TokenMeasure:
        """The state as a token measure: quadrature points and weights ≥ 0 of each label's law."""

    @abstractmethod
    def density_range(self, state: np.ndarray) -> tuple[float, float]:
        """The smallest and the largest density (relative to the surface measure) over all labels and ranks.

        For tokens, which have none: (nan, nan).
        """

    @abstractmethod
    def sampled_density(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The density at the points of a fine quadrature: points (m, D), surface measures (m,), values (labels, m).

        Raises:
            InputError: for tokens, which have no density.
        """

    @abstractmethod
    def density_at(self, state: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The density of each label at any points of the manifold, relative to the surface measure. Collective.

        It is the function whose values at a quadrature `sampled_density` gives. Each rank asks for points of its own,
        also none, and gets their values, in whatever rank's cells they lie.

        Args:
            state: this rank's unknowns.
            points: (n, D); on spheres their directions count.

        Returns:
            (labels, n); 0 outside of a box.

        Raises:
            InputError: for tokens, which have no density; on all ranks if any rank's points are not finite or have
                not the manifold's number of coordinates.
        """

    @abstractmethod
    def entropy(self, state: np.ndarray) -> np.ndarray:
        """∫ f log f for each label, f relative to the surface measure, (labels,); nan for tokens. Collective."""

    @abstractmethod
    def wall_flux(self, t: float, state: np.ndarray) -> float:
        """∫ over the walls of f (X·n)⁺, summed over labels with their masses: the mass per depth that a wall holds back."""

    @abstractmethod
    def rows(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state as rows in a partition-independent order: global index (n,) and rows (n, width)."""

    @abstractmethod
    def from_rows(self, rows: np.ndarray) -> np.ndarray:
        """This rank's state from all rows (N, width), in global order, given on every rank."""

    @abstractmethod
    def cell_nodes(self, state: np.ndarray) -> CellNodes:
        """The cells (or tokens) for output; only tokens move with the state."""

    @abstractmethod
    def nodal_density(self, state: np.ndarray) -> np.ndarray:
        """The density for output: (labels, cells) one value a cell, or (labels, cells, nodes) at the nodes of `cell_nodes`.

        For tokens: their weights, (labels, tokens).
        """

    def density_error(
        self, state: np.ndarray, exact: Callable[[np.ndarray], np.ndarray], label: int = 0
    ) -> DensityError:
        """How far a label's density is from an exact one, in L¹, L² and L^∞ of the surface measure. Collective.

        Args:
            state: this rank's unknowns.
            exact: the exact density, points (m, D) -> (m,).
            label: which label.
        """
        points, measures, values = self.sampled_density(state)
        difference = np.abs(values[label] - exact(points))
        return DensityError(
            l1=float(sum_over_ranks(self.comm, measures @ difference)),
            l2=float(np.sqrt(sum_over_ranks(self.comm, measures @ difference**2))),
            linf=float(max_over_ranks(self.comm, difference.max(initial=0.0))),
        )

    def __repr__(self) -> str:
        return f"<{self.name}: {self.mesh_description}; {self.unknowns:,} unknowns; {self.model}>"

    def per_label(self, law: Law | Sequence[Law]) -> list[Law]:
        """One law for each label.

        Raises:
            InputError: if a sequence has another length than the labels.
        """
        laws = list(law) if isinstance(law, Sequence) and not isinstance(law, str) else [law] * self.model.labels.count
        for part in laws:
            if not isinstance(part, Law):
                raise InputError(f"initial: give a law such as VonMisesFisher((0, 0, 1), kappa=1.0), found {part!r}.")
        if len(laws) != self.model.labels.count:
            raise InputError(f"initial: {self.model.labels.count} labels need as many laws, found {len(laws)}.")
        return laws


def evaluator(where: str, model: Model, comm: MPI.Comm, evaluation: Evaluation | None) -> Evaluator:
    """What evaluates a model's velocity.

    Raises:
        InputError: if `evaluation` is no Evaluation.
    """
    if evaluation is not None and not isinstance(evaluation, Evaluation):
        raise InputError(f"{where}: evaluation must be an Evaluation(tolerance=..., method=...), found {evaluation!r}.")
    use_one_thread()  # by now all libraries are loaded
    return Evaluator(model.manifold, comm, evaluation or Evaluation())
