"""Tokens that follow the velocity: the particle discretisation."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from mpi4py import MPI

from pde_solver.densities import Law
from pde_solver.discretisations.base import CellNodes, Discretisation, evaluator
from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation, Field
from pde_solver.manifolds import Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models.model import Model
from pde_solver.parallel import max_over_ranks, rank_slice


class Particles(Discretisation):
    """N tokens dx_i/dt = X[μ_N](x_i), μ_N = Σ_i w_i δ_{x_i}, for each label.

    Tokens are drawn independently from the initial law (w_i = 1/N; error ~ N^{−1/2}), or placed at the points of a
    quadrature of the surface measure and weighted by the density there (error of the quadrature while the law is smooth).
    They move in the ambient space and are retracted to the manifold once after each step, never inside one:
    retraction within the stages of a third-order Runge–Kutta scheme drops its order to two.

    A token's weight is part of the state and does not change.

    Args:
        model: what is solved.
        count: N, tokens of each label, when drawn independently.
        seed: of the random numbers; the same seed gives the same tokens on every number of ranks.
        quadrature: points and weights of the surface measure, on every rank; tokens are placed there instead.
        comm: the ranks that share the tokens.
        evaluation: how the velocity is evaluated; by default `Evaluation()`.

    Raises:
        InputError: if count is not a positive whole number, or the quadrature does not fit the manifold.
    """

    order = 0
    time_order = 5
    has_density = False

    def __init__(
        self,
        model: Model,
        count: int = 1000,
        seed: int = 0,
        quadrature: TokenMeasure | None = None,
        comm: MPI.Comm = MPI.COMM_WORLD,
        evaluation: Evaluation | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise InputError(f"Particles: the first argument must be a Model, found {model!r}.")
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"Particles: seed must be a whole number ≥ 0, found {seed!r}.")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"Particles: count must be a whole number ≥ 1, found {count!r}.")
        dimension = model.manifold.ambient_dimension
        if quadrature is not None and quadrature.points.shape[1] != dimension:
            raise InputError(
                f"Particles: the quadrature's points have {quadrature.points.shape[1]} coordinates, the model's tokens {dimension}."
            )
        self.model = model
        self.comm = comm
        self._evaluate = evaluator("Particles", model, comm, evaluation)
        self.seed = seed
        self.quadrature = quadrature
        self.count = int(count) if quadrature is None else len(quadrature.points)
        self._share = rank_slice(comm, self.count)
        self._tokens = self._share.stop - self._share.start
        labels = model.labels.count
        self._shape = (labels, self._tokens, dimension + 1)
        self.local_size = int(np.prod(self._shape))
        self.unknowns = labels * self.count * dimension
        self.cell_count = labels * self.count
        placed = "drawn independently" if quadrature is None else "placed by a quadrature"
        self.name = "particles"
        self.mesh_description = f"{self.count} tokens {placed}" + (f", seed {seed}" if quadrature is None else "")
        self.mesh_digest = hashlib.sha256(f"particles {labels} {self.count} {dimension}".encode()).hexdigest()
        self.enter(0.0)

    def initial(self, law: Law | Sequence[Law]) -> np.ndarray:
        """Positions and weights (labels, share of N, D + 1) of the initial law, flat."""
        manifold = self.model.manifold
        state = np.empty(self._shape)
        rng = np.random.default_rng(self.seed)
        for label, part in enumerate(self.per_label(law)):
            quadrature = self.quadrature
            if quadrature is None:
                state[label, :, :-1] = part.sample(self.count, rng, manifold)[self._share]
                state[label, :, -1] = 1 / self.count
            else:
                weights = quadrature.weights[0] * part.density(quadrature.points, manifold)
                if not np.all(np.isfinite(weights)) or not np.all(weights >= 0) or weights.sum() <= 0:
                    raise InputError(
                        "Particles: the initial density must be finite and ≥ 0, with a positive mass on the quadrature."
                    )
                state[label, :, :-1] = quadrature.points[self._share]
                state[label, :, -1] = (weights / weights.sum())[self._share]
        return state.reshape(-1)

    def rate(self, t: float, state: np.ndarray, out: np.ndarray) -> None:
        """dx_i/dt = X_z[μ](x_i), dw_i/dt = 0. Collective."""
        rates = out.reshape(self._shape)
        for label, field in enumerate(self._fields(state)):
            rates[label, :, :-1] = field.values[0]
        rates[..., -1] = 0.0

    def _fields(self, state: np.ndarray) -> Iterator[Field]:
        """The velocity at each label's own tokens. Collective."""
        measure = self.measure(state)
        if isinstance(self.model.manifold, Sphere):
            # inside a step tokens leave the sphere by a little; the velocity there is that of the nearest point
            measure = replace(measure, points=self.model.manifold.retract(measure.points))
        mixing = self.model.labels.mixing
        for label in range(self._shape[0]):
            own = slice(label * self._tokens, (label + 1) * self._tokens)
            # with one label targets and sources are the same array, and methods may know it
            points = measure.points if self.model.labels.count == 1 else measure.points[own]
            yield self._evaluate(self._term, measure, mixing[..., label : label + 1, :], points)

    def step_limit(self, t: float, state: np.ndarray) -> float:
        """Tokens have no CFL limit: inf."""
        return np.inf

    def velocity_rate(self, t: float, state: np.ndarray) -> float:
        """The largest of the tokens' rates."""
        return float(max_over_ranks(self.comm, max(field.rate for field in self._fields(state))))

    def velocity_points(self, state: np.ndarray) -> np.ndarray:
        """The tokens."""
        return self.measure(state).points

    def correct(self, state: np.ndarray) -> None:
        """Retract the tokens to the manifold, in place."""
        if isinstance(self.model.manifold, Sphere):
            points = state.reshape(self._shape)[..., :-1]
            points[:] = self.model.manifold.retract(points)

    def measure(self, state: np.ndarray) -> TokenMeasure:
        """Every token is a point; its weight is zero under the other labels' laws."""
        tokens = state.reshape(self._shape)
        labels, count, width = self._shape
        weights = np.zeros((labels, labels, count))
        weights[np.arange(labels), np.arange(labels)] = tokens[..., -1]
        points = tokens[..., :-1].reshape(labels * count, width - 1).copy()
        return TokenMeasure(points, weights.reshape(labels, labels * count), self.comm)

    def density_range(self, state: np.ndarray) -> tuple[float, float]:
        """Tokens have no density: (nan, nan)."""
        return np.nan, np.nan

    def sampled_density(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens have no density: an InputError."""
        raise InputError("Particles: tokens have no density to sample; compare laws by a Wasserstein distance instead.")

    def density_at(self, state: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Tokens have no density: an InputError."""
        raise InputError(
            "Particles: tokens have no density to evaluate; compare laws by a Wasserstein distance instead."
        )

    def entropy(self, state: np.ndarray) -> np.ndarray:
        """Tokens have no density: nan for each label."""
        return np.full(self._shape[0], np.nan)

    def wall_flux(self, t: float, state: np.ndarray) -> float:
        """Tokens see no walls: 0."""
        return 0.0

    def rows(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One row a token: its position and weight under each label."""
        labels, tokens, width = self._shape
        rows = state.reshape(self._shape).transpose(1, 0, 2).reshape(tokens, labels * width)
        return np.arange(self._share.start, self._share.stop), rows

    def from_rows(self, rows: np.ndarray) -> np.ndarray:
        """This rank's tokens from all rows."""
        labels, tokens, width = self._shape
        own = rows[self._share].reshape(tokens, labels, width)
        return np.ascontiguousarray(own.transpose(1, 0, 2)).reshape(-1)

    def cell_nodes(self, state: np.ndarray) -> CellNodes:
        """One vertex a token, label by label; with more than three coordinates, the first three."""
        labels, tokens, width = self._shape
        points = np.zeros((labels * tokens, 1, 3))
        shown = min(width - 1, 3)
        points[:, 0, :shown] = state.reshape(-1, width)[:, :shown]
        index = (np.arange(labels)[:, None] * self.count + np.arange(self._share.start, self._share.stop)).reshape(-1)
        return CellNodes(points, 1, index)

    def nodal_density(self, state: np.ndarray) -> np.ndarray:
        """The weight of each token under each label's law, (labels, tokens)."""
        return self.measure(state).weights
