"""Finite volumes: one mean density a cell, upwind fluxes, limited linear reconstruction."""

import numpy as np

from pde_solver.densities import Law, PointCloud
from pde_solver.discretisations.base import CellNodes
from pde_solver.discretisations.cells import corner_nodes, deposit
from pde_solver.discretisations.halo import vertex_halo
from pde_solver.discretisations.on_mesh import MeshDiscretisation
from pde_solver.discretisations.reconstruction import least_squares, limited_gradients, upwind_divergence
from pde_solver.errors import InputError
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

    Raises:
        InputError: if the mesh is of another manifold, or the order is not 1 or 2.

    Source: derived for this project; upwind fluxes for aggregation equations are analysed by Delarue, Lagoutière,
    Vauchelet, arXiv:1709.09416.
    """

    def __init__(self, model: Model, mesh: Mesh, order: int = 2) -> None:
        super().__init__(model, mesh)
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
        self._halo = vertex_halo(self.mesh)
        number = np.append(self._halo.number, -1)
        self._owner, self._neighbour = number[geometry.owner], number[geometry.neighbour]
        self._midpoints, self._normals = geometry.midpoints, geometry.normals
        self._volumes = geometry.cell_volumes[: self._owned]
        self._points = geometry.cell_points[: self._owned]

        cells = np.concatenate([self._owner, self._neighbour])
        facets = np.tile(np.arange(len(self._owner)), 2)
        sign = np.repeat([1.0, -1.0], len(self._owner))
        inside = (cells >= 0) & (cells < self._owned)
        order = np.flatnonzero(inside)[np.lexsort((facets[inside], cells[inside]))]
        self._cells, self._facets, self._sign = cells[order], facets[order], sign[order]
        self._first_facet = np.searchsorted(self._cells, np.arange(self._owned + 1))
        self._facet_count = np.diff(self._first_facet)

        # Facet values average to the cell's mean if their midpoints average to the centre: then they are ≥ 0 and
        # none exceeds (number of facets) · mean, which is what the step limit needs.
        centres = np.zeros_like(self._points)
        np.add.at(centres, self._cells, self._midpoints[self._facets])
        centres = self._halo.filled(centres / self._facet_count[:, None])
        self._offsets = self._midpoints[self._facets] - centres[self._cells]
        self._owner_offset = self._midpoints - centres[self._owner]
        self._neighbour_offset = self._midpoints - centres[self._neighbour]

        if self.order == 2:
            points = self._halo.filled(self._points)
            cell = np.repeat(np.arange(self._owned), np.diff(self._halo.first))
            differences = points[self._halo.neighbours] - points[cell]
            tangential = self.model.manifold.project(points[cell], differences)
            self._coefficients = least_squares(self._halo.first, tangential)

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
        densities = state.reshape(self._shape)
        normal_velocity = self._normal_velocity(t, state)
        rates = out.reshape(self._shape)
        halo = self._halo
        for label, density in enumerate(densities):
            ghosted = halo.filled(density[:, None])[:, 0]
            gradients = np.zeros((halo.size, self._points.shape[1]))
            if self.order == 2:
                limited_gradients(
                    ghosted,
                    halo.first,
                    halo.neighbours,
                    self._coefficients,
                    self._first_facet,
                    self._offsets,
                    gradients,
                )
                gradients = halo.filled(gradients)
            divergence = np.zeros(self._owned)
            upwind_divergence(
                ghosted,
                gradients,
                self._owner,
                self._neighbour,
                self._owner_offset,
                self._neighbour_offset,
                normal_velocity[label],
                self._owned,
                divergence,
            )
            rates[label] = -divergence / self._volumes

    def _normal_velocity(self, t: float, state: np.ndarray) -> np.ndarray:
        """u = X · n · |facet| at the facets' midpoints, (labels, facets). Collective."""
        return np.einsum("zfd,fd->zf", self._field(t, self._limited(state)).values, self._normals)

    @np.errstate(divide="ignore", invalid="ignore")  # nothing moves, or a velocity is infinite
    def step_limit(self, t: float, state: np.ndarray) -> float:
        """min over cells of |c| / Σ u⁺ (order 1) or |c| / (number of facets · max u⁺) (order 2).

        Under it a forward Euler step keeps cell means ≥ 0: order 2 has facet values ≥ 0 whose average is the mean.
        """
        least = np.inf
        for normal_velocity in self._normal_velocity(t, state):
            outflow = np.maximum(self._sign * normal_velocity[self._facets], 0.0)
            outflow[self._neighbour[self._facets] < 0] = 0.0
            if self.order == 1:
                leaving = np.bincount(self._cells, outflow, minlength=self._owned)
            else:
                leaving = np.zeros(self._owned)
                np.maximum.at(leaving, self._cells, outflow)
                leaving *= self._facet_count
            least = min(least, np.min(self._volumes / leaving, initial=np.inf))
        return float(min_over_ranks(self.comm, least))

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
        wall = self._neighbour < 0
        inside = self._owner[wall]
        mine = inside < self._owned
        pressed = np.maximum(self._normal_velocity(t, state)[:, wall][:, mine], 0.0)
        held = np.einsum("zf,zf->z", pressed, state.reshape(self._shape)[:, inside[mine]])
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
