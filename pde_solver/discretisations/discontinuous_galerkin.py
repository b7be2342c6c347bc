"""Discontinuous Galerkin of degree p: polynomials on every cell, upwind fluxes, a limiter for positivity."""

import basix
import basix.ufl
import numpy as np
from dolfinx import fem, la

from pde_solver.compiled import compiled
from pde_solver.densities import Law, PointCloud
from pde_solver.discretisations.base import CellNodes
from pde_solver.discretisations.cells import coordinates, deposit, lattice, lattice_nodes, surface_element
from pde_solver.discretisations.limiters import ScalingLimiter
from pde_solver.discretisations.on_mesh import MeshDiscretisation
from pde_solver.discretisations.upwind_form import UpwindForm, facet_quadrature, on_sides
from pde_solver.errors import InputError
from pde_solver.kernel_sums import Evaluation
from pde_solver.mesh import FacetGeometry, Mesh, facet_geometry
from pde_solver.models.model import Model
from pde_solver.parallel import max_over_ranks, min_over_ranks, sum_over_ranks

#: Largest stable step of upwind transport on an interval in units of 6 h/|v|, for SSP of order 3 and 4 (from the
#: eigenvalues of the operator and the schemes' stability polynomials, computed for this project).
_STABLE_STEP = {1: 0.223, 2: 0.117, 3: 0.075}

#: Degree of the velocity's finite element. With degree 2 for p = 2 the divergence of the interpolated velocity costs half
#: an order (measured: 2.5 instead of 2.95 for a nonlinear solution on the circle); for p = 3 degree 3 is enough (3.9).
_VELOCITY_DEGREE = {1: 2, 2: 3, 3: 3}


class DiscontinuousGalerkin(MeshDiscretisation):
    """Find f in P_p on each cell with ∫ ∂ₜf w dx = ∫ f v·∇w dx − ∫ F(f⁺, f⁻) [w] dS for all w in P_p.

    F = ½(u + |u|) f⁺ + ½(u − |u|) f⁻ with u = ½(v⁺·n⁺ − v⁻·n⁻), n the conormal in the surface: the flux is
    single-valued, so mass is exact; nothing crosses a wall. v is the continuous vector function of degree
    k (2 for p = 1, 3 for p = 2 and 3) that takes the values X[μ] at its nodes, moved to the manifold. Attention sees the cells'
    quadrature points with weight × density. Before each evaluation and after each step every cell's polynomial is
    scaled towards its mean until it is ≥ 0 at all points where it is used.

    Args:
        model: what is solved.
        mesh: a mesh of the model's manifold; geometry of degree ≥ p keeps the order on curved manifolds.
        degree: p, 1 to 3.
        evaluation: how the velocity is evaluated; by default `Evaluation()`.

    Raises:
        InputError: if the mesh is of another manifold, or the degree is not 1, 2 or 3.

    Source: the limiter of Zhang and Shu, J. Comput. Phys. 229 (2010) 8918; the form on surfaces is derived for this project.
    """

    def __init__(self, model: Model, mesh: Mesh, degree: int = 2, evaluation: Evaluation | None = None) -> None:
        super().__init__(model, mesh, evaluation)
        if not isinstance(degree, int) or isinstance(degree, bool) or degree not in (1, 2, 3):
            raise InputError(f"DiscontinuousGalerkin: degree must be 1, 2 or 3, found {degree!r}.")
        self.degree = degree
        self.order = degree + 1
        self.time_order = self.time_order_of(degree)
        self.name = f"discontinuous Galerkin, degree {degree}"
        facets = facet_geometry(mesh)
        inverse_mass = self._prepare_cells(facets)
        self._prepare_form(facets, inverse_mass)
        self._shape = (model.labels.count, mesh.owned_cells, self._nodes)
        self.local_size = int(np.prod(self._shape))
        self.unknowns = model.labels.count * mesh.cell_count * self._nodes

    @staticmethod
    def time_order_of(degree: int) -> int:
        """min(p + 2, 4): steps are long, and at the spatial order the error in time would be the larger one."""
        return min(degree + 2, 4)

    @property
    def _form_degree(self) -> int:
        """2p, the degree of the form's quadrature in cells; on facets it is one more.

        That is enough for order p + 1. With 2p + k − 1, exact for straight cells, errors on spheres and in the plane differ by
        less than 1 % for p = 1 and 2 and are 3 % smaller for p = 3.
        """
        return 2 * self.degree

    def _prepare_cells(self, facets: FacetGeometry) -> np.ndarray:
        """Quadrature and means of the cells, and the points where the density must be ≥ 0; returns the inverse mass matrices."""
        mesh, cell = self.mesh, self.mesh.domain.basix_cell()
        self._element = basix.ufl.element("DG", mesh.cell, self.degree)
        self._cell_degree = mesh.geometry_degree
        reference, weights = _quadrature(cell, 2 * self.degree + 1)
        self._basis = self._element.tabulate(0, reference)[0]
        self._nodes = self._basis.shape[1]
        points = coordinates(mesh, reference)
        dimension = mesh.manifold.ambient_dimension
        self._points = mesh.manifold.retract(points.reshape(-1, dimension))
        self._elements = surface_element(mesh, reference) * weights
        mass = np.einsum("qi,cq,qj->cij", self._basis, self._elements, self._basis)
        self._volumes = self._elements.sum(axis=1)
        self._mean = np.einsum("cq,qi->ci", self._elements, self._basis) / self._volumes[:, None]
        self._lattice = lattice(mesh, self.degree)
        self._lattice_basis = self._element.tabulate(0, self._lattice)[0]
        fine, _ = _quadrature(cell, 2 * self.degree + 4)
        inside, _ = basix.make_quadrature(cell, self._form_degree)
        on_facet, _ = facet_quadrature(cell, self._form_degree + 1)
        on_facets = on_sides(cell, on_facet).reshape(-1, reference.shape[1])
        checked = np.concatenate([reference, fine, self._lattice, inside, on_facets])
        self._limiter = ScalingLimiter(self._element.tabulate(0, checked)[0], self._mean)

        perimeter = np.zeros(mesh.owned_cells)
        area = np.linalg.norm(facets.normals, axis=1)
        for side in (facets.owner, facets.neighbour):
            mine = (side >= 0) & (side < mesh.owned_cells)
            perimeter += np.bincount(side[mine], area[mine], minlength=mesh.owned_cells)
        self._diameter = 2 * mesh.manifold.dimension * facets.cell_volumes[: mesh.owned_cells] / perimeter
        return np.linalg.inv(mass)

    def _prepare_form(self, facets: FacetGeometry, inverse_mass: np.ndarray) -> None:
        """The upwind form, and density and velocity with room for the ghosts."""
        domain, dimension = self.mesh.domain, self.mesh.manifold.ambient_dimension
        space = fem.functionspace(domain, ("Lagrange", _VELOCITY_DEGREE[self.degree], (dimension,)))
        self._velocity_dofs = space.dofmap.list[: self.mesh.owned_cells]
        nodes = space.tabulate_dof_coordinates()[: space.dofmap.index_map.size_local, :dimension]
        self._velocity_points = self.mesh.manifold.retract(nodes)
        self._velocity = la.vector(space.dofmap.index_map, dimension)
        self._density = la.vector(domain.topology.index_map(domain.topology.dim), self._nodes)
        element = self._element.basix_element
        self._form = UpwindForm(self.mesh, facets, element, space, self._form_degree, inverse_mass)

    def _discretised(self, law: Law) -> np.ndarray:
        """The L² projection of the density; of a cloud, constants: the tokens' share in the nearest cells."""
        manifold = self.model.manifold
        if isinstance(law, PointCloud):
            points = self._points.reshape(*self._elements.shape, self._points.shape[1])
            centre = np.einsum("cq,cqd->cd", self._elements, points)
            mass = deposit(self.mesh, manifold.retract(centre / self._volumes[:, None]), law)
            return np.repeat((mass / self._volumes)[:, None], self._nodes, axis=1)
        points, element, basis = self._fine_quadrature()
        values = law.density(points, manifold).reshape(element.shape)
        # the mass matrix of the finer rule, or a constant would not be projected to itself on curved cells
        mass = np.einsum("qi,cq,qj->cij", basis, element, basis)
        return np.linalg.solve(mass, np.einsum("cq,cq,qi->ci", values, element, basis)[..., None])[..., 0]

    def rate(self, t: float, state: np.ndarray, out: np.ndarray) -> None:
        """M⁻¹ (∫ f v·∇w dx − ∫ F [w] dS) on every cell. Collective."""
        limited = self._limited(state)
        velocities = self._field(t, limited).values
        rates = out.reshape(self._shape)
        for label, density in enumerate(limited):
            self._form.rates(*self._with_ghosts(density, velocities[label]), rates[label])

    def _with_ghosts(self, density: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One label's density (cells, nodes) and velocity (nodes, D) with the ghosts of both appended. Collective."""
        return self._filled(self._density, density), self._filled(self._velocity, velocity)

    def _filled(self, vector: la.Vector, values: np.ndarray) -> np.ndarray:
        if self.comm.size == 1:  # there are no ghosts: nothing to copy
            return np.ascontiguousarray(values)
        rows = vector.array.reshape(-1, values.shape[1])
        rows[: len(values)] = values
        vector.scatter_forward()
        return rows

    def _means(self, densities: np.ndarray) -> np.ndarray:
        return np.einsum("ci,...ci->...c", self._mean, densities)

    def _limited(self, state: np.ndarray) -> np.ndarray:
        """The state, (labels, cells, nodes), ≥ 0 at all checked points where the means are ≥ 0; a copy if it was not."""
        return self._limiter.limited(state.reshape(self._shape))

    def step_limit(self, t: float, state: np.ndarray) -> float:
        """min over cells of a_p h / max |X|, h the diameter of the inscribed ball.

        a_p · 6 is the linear stability limit of SSP order 3 and 4 for upwind transport. Cell means may need a smaller
        step to stay ≥ 0: the time loop halves a step that makes one negative.
        """
        least = np.inf
        for velocity in self._field(t, self._limited(state)).values:
            least = min(
                least, _shortest_crossing(self._filled(self._velocity, velocity), self._velocity_dofs, self._diameter)
            )
        return float(_STABLE_STEP[self.degree] * min_over_ranks(self.comm, least))

    def velocity_points(self, state: np.ndarray) -> np.ndarray:
        """The nodes of the velocity's finite element, moved to the manifold."""
        return self._velocity_points

    def correct(self, state: np.ndarray) -> None:
        """Scale each cell's polynomial towards its mean until it is ≥ 0, in place."""
        self._limiter.limit(state.reshape(self._shape))

    def _weights(self, densities: np.ndarray) -> np.ndarray:
        values = densities @ self._basis.T
        np.maximum(values, 0.0, out=values)
        values *= self._elements
        return values.reshape(len(densities), -1)

    def density_range(self, state: np.ndarray) -> tuple[float, float]:
        """Smallest and largest value at the points where the density is used."""
        lowest, highest = self._limiter.range(state.reshape(self._shape))
        return float(min_over_ranks(self.comm, lowest)), float(max_over_ranks(self.comm, highest))

    def sampled_density(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (moved to the manifold), measures and values of a quadrature of degree 2p + 4."""
        points, element, basis = self._fine_quadrature()
        values = np.einsum("qi,zci->zcq", basis, state.reshape(self._shape))
        return points, element.reshape(-1), values.reshape(len(values), -1)

    def _density_in(self, state: np.ndarray, cell: np.ndarray, reference: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The cells' polynomials at the reference points."""
        basis = self._element.basix_element.tabulate(0, reference)[0, :, :, 0]  # which may be no points
        return np.einsum("ni,zni->zn", basis, state.reshape(self._shape)[:, cell])

    def _fine_quadrature(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (cells · q, D), measures (cells, q) and basis functions (q, nodes) of a quadrature of degree 2p + 4."""
        reference, weights = _quadrature(self.mesh.domain.basix_cell(), 2 * self.degree + 4)
        points = coordinates(self.mesh, reference)
        element = surface_element(self.mesh, reference) * weights
        return (
            self.model.manifold.retract(points.reshape(-1, points.shape[-1])),
            element,
            self._element.tabulate(0, reference)[0],
        )

    def entropy(self, state: np.ndarray) -> np.ndarray:
        """∫ f log f by quadrature, for each label."""
        values = np.maximum(np.einsum("qi,zci->zcq", self._basis, state.reshape(self._shape)), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            integrand = np.where(values > 0, values * np.log(values), 0.0)
        return sum_over_ranks(self.comm, np.einsum("zcq,cq->z", integrand, self._elements))

    def wall_flux(self, t: float, state: np.ndarray) -> float:
        """∫ over the walls of f (v·n)⁺, summed over labels with their masses."""
        limited = self._limited(state)
        total = 0.0
        for label, velocity in enumerate(self._field(t, limited).values):
            outflow = self._form.wall_outflow(*self._with_ghosts(limited[label], velocity))
            total += self.model.labels.weights[label] * outflow
        return float(sum_over_ranks(self.comm, total))

    def rows(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One row a cell, in input order: its coefficients under each label."""
        labels, cells, nodes = self._shape
        return self.mesh.input_index, state.reshape(self._shape).transpose(1, 0, 2).reshape(cells, labels * nodes)

    def from_rows(self, rows: np.ndarray) -> np.ndarray:
        """This rank's cells from all rows."""
        labels, cells, nodes = self._shape
        own = rows[self.mesh.input_index].reshape(cells, labels, nodes)
        return np.ascontiguousarray(own.transpose(1, 0, 2)).reshape(-1)

    def cell_nodes(self, state: np.ndarray) -> CellNodes:
        """The cells' lattice points of degree p, as VTK's Lagrange cells."""
        return lattice_nodes(self.mesh, self.degree)

    def nodal_density(self, state: np.ndarray) -> np.ndarray:
        """The density at the lattice points, (labels, cells, nodes)."""
        return np.einsum("qi,zci->zcq", self._lattice_basis, state.reshape(self._shape))


def _quadrature(cell: basix.CellType, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights > 0 of a quadrature: basix's default rules on tetrahedra have negative ones, which no law may."""
    positive = basix.QuadratureType.xiao_gimbutas
    rule = positive if cell == basix.CellType.tetrahedron else basix.QuadratureType.default
    return basix.make_quadrature(cell, degree, rule=rule)


@compiled
def _shortest_crossing(velocity, nodes, diameter):
    """min over cells of diameter / max |v|, v (·, D) at the cell's nodes (cells, n); inf at rest, nan if a velocity is."""
    shortest = np.inf
    for cell in range(len(nodes)):
        fastest = 0.0
        for k in range(nodes.shape[1]):
            square = 0.0
            for d in range(velocity.shape[1]):
                square += velocity[nodes[cell, k], d] ** 2
            if square > fastest or np.isnan(square):  # a nan is taken, and nothing replaces it
                fastest = square
        time = diameter[cell] / np.sqrt(fastest)
        if time < shortest or np.isnan(time):
            shortest = time
    return shortest
