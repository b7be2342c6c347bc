"""Finite volumes: one mean density a cell, upwind fluxes, limited linear reconstruction."""

import numpy as np

from pde_solver.densities import Law, PointCloud
from pde_solver.discretisations.base import CellNodes
from pde_solver.discretisations.cells import corner_nodes, deposit
from pde_solver.discretisations.halo import VertexHalo, vertex_halo
from pde_solver.discretisations.least_squares import least_squares, tangent_differences, tangent_frames
from pde_solver.discretisations.on_mesh import MeshDiscretisation
from pde_solver.discretisations.reconstruction import (
    LANES,
    facet_kernels,
    in_lanes,
    offsets_in_lanes,
    reconstruction_kernels,
    work_space,
)
from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.mesh import Mesh, facet_geometry
from pde_solver.models.model import Model
from pde_solver.parallel import max_over_ranks, min_over_ranks, sum_over_ranks


class FiniteVolume(MeshDiscretisation):
    """Cell means f_c of the density, df_c/dt = −(1/|c|) Σ_facets (u⁺ f⁻ + u⁻ f⁺), u = ∫_facet X[μ]·n.

    On spheres the cells are geodesic polygons between the mesh's vertices, so their areas add up to the whole sphere.
    Attention sees the cell points with the cells' masses; the velocity is evaluated at the facets' midpoints.
    Mass is exact: what leaves one cell enters another. Cell means stay ≥ 0 under the step limit.

    Args:
        model: what is solved.
        mesh: a mesh of the model's manifold.
        order: 1 (piecewise constant) or 2 (linear reconstruction, limited to the range of the neighbours).
        evaluation: how the velocity is evaluated; by default `Evaluation()`.

    Raises:
        InputError: if the mesh is of another manifold, or the order is not 1 or 2.

    Source: derived for this project; upwind fluxes for aggregation equations are analysed by Delarue, Lagoutière,
    Vauchelet, arXiv:1709.09416.
    """

    _cell_degree = 1  # cells are spanned by their corners, whatever the mesh's geometry

    def __init__(self, model: Model, mesh: Mesh, order: int = 2, evaluation: Evaluation | None = None) -> None:
        super().__init__(model, mesh, evaluation)
        if not isinstance(order, int) or isinstance(order, bool) or order not in (1, 2):
            raise InputError(f"FiniteVolume: order must be 1 or 2, found {order!r}.")
        self.order = order
        self.time_order = self.time_order_on(mesh.manifold)
        self.name = f"finite volume, order {order}"
        self.unknowns = model.labels.count * mesh.cell_count
        self._owned = mesh.owned_cells
        self.local_size = model.labels.count * self._owned
        self._shape = (model.labels.count, self._owned)
        self._prepare_cells()

    @staticmethod
    def time_order_on(manifold: Manifold) -> int:
        """2, but 3 on curves: there a step of SSP(2) is almost two cells long, and its error would be the larger one."""
        return 3 if manifold.dimension == 1 else 2

    def _prepare_cells(self) -> None:
        """Which facets and neighbours each owned cell has, and the linear algebra of the reconstruction."""
        geometry = facet_geometry(self.mesh)
        halo = vertex_halo(self.mesh)
        self._exchange = halo.exchange
        self._volumes = np.ascontiguousarray(geometry.cell_volumes[: self._owned])
        self._points = np.ascontiguousarray(geometry.cell_points[: self._owned])

        # Facets of a cell in the order of the input, the same on any number of ranks; for all of them the order in
        # which the cells meet them, so that what a block of cells needs lies together.
        rows = np.sort(geometry.cell_facets, axis=1)
        facets, first_met, met = np.unique(rows, return_index=True, return_inverse=True)
        order = np.argsort(first_met)
        renumbered = np.empty(len(order), dtype=np.int32)
        renumbered[order] = np.arange(len(order))
        self._cell_facets = renumbered[met.reshape(rows.shape)]
        self._midpoints = np.ascontiguousarray(geometry.midpoints[facets[order]])
        self._velocity_normals = np.ascontiguousarray(geometry.normals[facets[order]])

        cells = np.arange(self._owned)[:, None]
        owner, neighbour = geometry.owner[rows], geometry.neighbour[rows]
        self._sides = np.where(owner == cells, 1, -1).astype(np.int8)
        self._sides[neighbour < 0] = 0
        beyond = halo.number[np.where((owner == cells) & (neighbour >= 0), neighbour, owner)]
        self._opposite = beyond
        self._first_order_rate, self._smallest_step = facet_kernels(rows.shape[1])
        if self.order == 2:
            self._prepare_reconstruction(halo, beyond)

    def _prepare_reconstruction(self, halo: VertexHalo, beyond: np.ndarray) -> None:
        """Neighbourhoods, gradients and facet values; `beyond` (owned, facets) are the cells behind the facets."""
        count = beyond.shape[1]
        dimension = self.model.manifold.dimension
        points = halo.filled(self._points)
        frames = tangent_frames(self.model.manifold, self._points)
        differences = tangent_differences(halo.first, halo.neighbours, self._points, points, frames)
        coefficients = least_squares(halo.first, differences)
        self._neighbourhoods = in_lanes(halo.first, halo.neighbours, coefficients)

        # Facet values average to the cell's mean if the facets' midpoints average to the centre: then they are ≥ 0
        # and none exceeds (number of facets) · mean, which is what the step limit needs.
        centres = self._midpoints[self._cell_facets].mean(axis=1)
        first = count * np.arange(self._owned + 1)
        arms = tangent_differences(first, self._cell_facets.reshape(-1), centres, self._midpoints, frames)
        offsets = arms.reshape(self._owned, count, dimension)[:, :-1]
        self._offsets = offsets_in_lanes(offsets)
        blocks = len(self._offsets)

        # A facet has a place in the rows of both its cells; the cell behind finds this one's place by its index.
        index = halo.filled(self.mesh.input_index[:, None].astype(float))[:, 0]
        behind = index[beyond]
        for k in range(count):  # two cells may share several facets, which both list in the same order
            behind[:, k] += self.cell_count * (beyond[:, :k] == beyond[:, k : k + 1]).sum(axis=1)
        seen = halo.filled(behind)
        place = np.zeros_like(beyond)
        for k in range(count):
            mine = index[: self._owned] + self.cell_count * (behind[:, k] // self.cell_count)
            place[:, k] = (seen[beyond[:, k]] == mine[:, None]).argmax(axis=1)
        self._opposite = count * beyond + place

        owned_beyond = np.where(beyond < self._owned, beyond, 0).max(axis=1, initial=0) // LANES
        last = np.zeros(blocks * LANES, dtype=np.int64)
        last[: self._owned] = np.maximum(owned_beyond, np.arange(self._owned) // LANES)
        self._ready = np.maximum.accumulate(last.reshape(blocks, LANES).max(axis=1, initial=0))
        self._prepare_sent_cells(halo, coefficients, offsets)
        self._facet_values = self._exchange.vector(count)
        self._work = work_space(dimension, count)
        self._reconstruct, self._second_order_rate = reconstruction_kernels(dimension, count)

    def _prepare_sent_cells(self, halo: VertexHalo, coefficients: np.ndarray, offsets: np.ndarray) -> None:
        """The cells whose facet values other ranks wait for, packed into blocks of their own: they lie scattered."""
        sent = self._exchange.sent
        counts = np.diff(halo.first)[sent]
        first = np.append(0, np.cumsum(counts))
        entries = np.arange(first[-1]) - np.repeat(first[:-1] - halo.first[sent], counts)
        # first the cells themselves, then whatever else is around them
        others = np.setdiff1d(halo.neighbours[entries], sent)
        self._around_sent = np.concatenate([sent, others])
        number = np.zeros(self._exchange.size, dtype=np.int64)
        number[self._around_sent] = np.arange(len(self._around_sent))
        packed = in_lanes(first, number[halo.neighbours[entries]], coefficients[entries])
        self._sent_neighbourhoods = (*packed, offsets_in_lanes(offsets[sent]))
        self._sent_values = np.empty((len(sent), offsets.shape[1] + 1))

    def _send_facet_values(self, density: np.ndarray) -> None:
        """Fill in the facet values of the ghosts. Collective."""
        values, sent = self._sent_values, self._exchange.sent
        if len(sent):
            blocks = np.arange(len(self._sent_neighbourhoods[3]))
            around = density[self._around_sent]
            self._reconstruct(blocks, around, *self._sent_neighbourhoods, len(sent), self._work, values.reshape(-1))
            self._facet_values.array.reshape(-1, values.shape[1])[sent] = values
        self._facet_values.scatter_forward()

    def _discretised(self, law: Law) -> np.ndarray:
        """Density at the cell points; of a cloud, the tokens' share in the nearest cells."""
        if isinstance(law, PointCloud):
            return deposit(self.mesh, self._points, law) / self._volumes
        return law.density(self._points, self.model.manifold)

    def _means(self, densities: np.ndarray) -> np.ndarray:
        return densities

    def _limited(self, state: np.ndarray) -> np.ndarray:
        return state.reshape(self._shape)

    def _weights(self, densities: np.ndarray) -> np.ndarray:
        return np.maximum(densities, 0.0) * self._volumes

    def rate(self, t: float, state: np.ndarray, out: np.ndarray) -> None:
        """−div(f X) of each cell. Collective."""
        rates = out.reshape(self._shape)
        for label, normal_velocity in enumerate(self._normal_velocity(t, state)):
            density = self._exchange.with_ghosts(state.reshape(self._shape)[label])
            facets = (normal_velocity, self._cell_facets, self._sides, self._opposite, self._volumes)
            if self.order == 1:
                self._first_order_rate(density, *facets, rates[label])
                continue
            around = (density, *self._neighbourhoods, self._offsets)
            values = self._facet_values.array
            self._send_facet_values(density)
            self._second_order_rate(*around, self._work, values, self._ready, *facets, rates[label])

    def _normal_velocity(self, t: float, state: np.ndarray) -> np.ndarray:
        """u = X · n · |facet| at the facets' midpoints, (labels, facets). Collective."""
        return self._field(t, self._limited(state)).values

    def step_limit(self, t: float, state: np.ndarray) -> float:
        """min over cells of |c| / Σ u⁺ (order 1) or |c| / (number of facets · max u⁺) (order 2).

        Under it a forward Euler step keeps cell means ≥ 0: order 2 has facet values ≥ 0 whose average is the mean.
        """
        least = min(
            self._smallest_step(self.order, normal_velocity, self._cell_facets, self._sides, self._volumes)
            for normal_velocity in self._normal_velocity(t, state)
        )
        return float(min_over_ranks(self.comm, least))

    @property
    def halo_bytes(self) -> int:
        """What this rank receives from others in one stage and for each label: means and facet values of its ghosts."""
        return 8 * (self._exchange.size - self._owned) * (1 if self.order == 1 else 1 + self._cell_facets.shape[1])

    def velocity_points(self, state: np.ndarray) -> np.ndarray:
        """The facets' midpoints."""
        return self._midpoints

    def correct(self, state: np.ndarray) -> None:
        """Nothing: the fluxes themselves keep the means ≥ 0."""

    def density_range(self, state: np.ndarray) -> tuple[float, float]:
        """Smallest and largest cell mean."""
        lowest = min_over_ranks(self.comm, state.min(initial=np.inf))
        return float(lowest), float(max_over_ranks(self.comm, state.max(initial=-np.inf)))

    def sampled_density(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cell points, cell volumes and cell means (which are point values up to second order)."""
        return self._points, self._volumes, state.reshape(self._shape)

    def _density_in(self, state: np.ndarray, cell: np.ndarray, reference: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Order 1: the cell means. Order 2: f_c + ⟨g_c, x − x_c⟩ with the limited gradient, cut at 0 where f_c ≥ 0.

        At the cell points x_c these are the cell means; the facet values of the fluxes have the same gradient. The
        limiter looks at the facets' midpoints alone, so that at corners the linear function may be below 0.
        """
        densities = state.reshape(self._shape)
        means = densities[:, cell]
        if self.order == 1:
            return means
        frames = tangent_frames(self.model.manifold, self._points[cell])
        arms = np.einsum("nid,nd->ni", frames, points - self._points[cell])
        differences = np.stack([np.einsum("nd,nd->n", g[cell], arms) for g in map(self._gradient, densities)])
        return np.maximum(means + differences, np.minimum(means, 0.0))

    def _gradient(self, means: np.ndarray) -> np.ndarray:
        """The limited gradients of one label, (owned, d), as the facet values of the fluxes have them. Collective."""
        facets, dimension = self._cell_facets.shape[1], self.model.manifold.dimension
        values = np.empty((self._owned, facets))
        density = self._exchange.with_ghosts(means)
        blocks = np.arange(len(self._offsets))
        around = (density, *self._neighbourhoods, self._offsets)
        self._reconstruct(blocks, *around, self._owned, self._work, values.reshape(-1))
        offsets = self._offsets.transpose(0, 3, 1, 2).reshape(-1, facets - 1, dimension)[: self._owned]
        inverse = np.linalg.pinv(offsets.astype(float))
        return np.einsum("cdk,ck->cd", inverse, values[:, :-1] - means[:, None])

    def entropy(self, state: np.ndarray) -> np.ndarray:
        """Σ_c |c| f_c log f_c for each label."""
        densities = np.maximum(state.reshape(self._shape), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            integrand = np.where(densities > 0, densities * np.log(densities), 0.0)
        return sum_over_ranks(self.comm, integrand @ self._volumes)

    def wall_flux(self, t: float, state: np.ndarray) -> float:
        """Σ over wall facets of f u⁺, summed over labels with their masses."""
        if isinstance(self.model.manifold, Sphere):
            return 0.0
        cells, side = np.nonzero(self._sides == 0)
        pressed = np.maximum(self._normal_velocity(t, state)[:, self._cell_facets[cells, side]], 0.0)
        held = np.einsum("zf,zf->z", pressed, state.reshape(self._shape)[:, cells])
        return float(sum_over_ranks(self.comm, np.dot(self.model.labels.weights, held)))

    def rows(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One row a cell, in input order: its density under each label."""
        return self.mesh.input_index, np.ascontiguousarray(state.reshape(self._shape).T)

    def from_rows(self, rows: np.ndarray) -> np.ndarray:
        """This rank's cells from all rows."""
        return np.ascontiguousarray(rows[self.mesh.input_index].T).reshape(-1)

    def cell_nodes(self, state: np.ndarray) -> CellNodes:
        """The cells' corners."""
        return corner_nodes(self.mesh)

    def nodal_density(self, state: np.ndarray) -> np.ndarray:
        """One density a cell, (labels, cells)."""
        return state.reshape(self._shape)
