"""Discontinuous Galerkin of degree p: polynomials on every cell, upwind fluxes, a limiter for positivity."""

import basix
import basix.ufl
import numpy as np
import ufl
from dolfinx import fem, la

from pde_solver.densities import Law, PointCloud
from pde_solver.discretisations.base import CellNodes
from pde_solver.discretisations.cells import coordinates, deposit, lattice, lattice_nodes, surface_element
from pde_solver.discretisations.limiters import limit_to_positive
from pde_solver.discretisations.on_mesh import MeshDiscretisation
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean
from pde_solver.mesh import Mesh, facet_geometry
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

    Raises:
        InputError: if the mesh is of another manifold, or the degree is not 1, 2 or 3.

    Source: the limiter of Zhang and Shu, J. Comput. Phys. 229 (2010) 8918; the form on surfaces is derived for this project.
    """

    def __init__(self, model: Model, mesh: Mesh, degree: int = 2) -> None:
        super().__init__(model, mesh)
        if not isinstance(degree, int) or isinstance(degree, bool) or degree not in (1, 2, 3):
            raise InputError(f"DiscontinuousGalerkin: degree must be 1, 2 or 3, found {degree!r}.")
        self.degree = degree
        self.order = degree + 1
        self.time_order = self.time_order_of(degree)
        self.name = f"discontinuous Galerkin, degree {degree}"
        self._prepare_cells()
        self._prepare_forms()
        self._shape = (model.labels.count, mesh.owned_cells, self._nodes)
        self.local_size = int(np.prod(self._shape))
        self.unknowns = model.labels.count * mesh.cell_count * self._nodes

    @staticmethod
    def time_order_of(degree: int) -> int:
        """min(p + 2, 4): steps are long, and at the spatial order the error in time would be the larger one."""
        return min(degree + 2, 4)

    @property
    def _form_degree(self) -> int:
        """Degree of the form's quadrature in cells; on facets it is one more."""
        return 2 * self.degree + _VELOCITY_DEGREE[self.degree] - 1

    def _prepare_cells(self) -> None:
        """Quadrature, mass matrices and means of the cells, and the points where the density must be ≥ 0."""
        mesh, cell = self.mesh, self.mesh.domain.basix_cell()
        self._element = basix.ufl.element("DG", mesh.cell, self.degree)
        reference, weights = _quadrature(cell, 2 * self.degree + 1)
        self._basis = self._element.tabulate(0, reference)[0]
        self._nodes = self._basis.shape[1]
        points = coordinates(mesh, reference)
        dimension = mesh.manifold.ambient_dimension
        self._points = mesh.manifold.retract(points.reshape(-1, dimension))
        self._elements = surface_element(mesh, reference) * weights
        mass = np.einsum("qi,cq,qj->cij", self._basis, self._elements, self._basis)
        self._inverse_mass = np.linalg.inv(mass)
        self._volumes = self._elements.sum(axis=1)
        self._mean = np.einsum("cq,qi->ci", self._elements, self._basis) / self._volumes[:, None]
        self._lattice = lattice(mesh, self.degree)
        self._lattice_basis = self._element.tabulate(0, self._lattice)[0]
        fine, _ = _quadrature(cell, 2 * self.degree + 4)
        inside, _ = basix.make_quadrature(cell, self._form_degree)
        checked = np.concatenate([reference, fine, self._lattice, inside, _facet_points(cell, self._form_degree + 1)])
        self._checked_basis = self._element.tabulate(0, checked)[0]

        geometry = facet_geometry(mesh)
        perimeter = np.zeros(mesh.owned_cells)
        area = np.linalg.norm(geometry.normals, axis=1)
        for side in (geometry.owner, geometry.neighbour):
            mine = (side >= 0) & (side < mesh.owned_cells)
            perimeter += np.bincount(side[mine], area[mine], minlength=mesh.owned_cells)
        self._diameter = 2 * mesh.manifold.dimension * geometry.cell_volumes[: mesh.owned_cells] / perimeter

    def _prepare_forms(self) -> None:
        """The upwind form and the spaces of density and velocity."""
        domain = self.mesh.domain
        dimension = self.mesh.manifold.ambient_dimension
        velocity_degree = _VELOCITY_DEGREE[self.degree]
        density_space = fem.functionspace(domain, self._element)
        velocity_space = fem.functionspace(domain, ("Lagrange", velocity_degree, (dimension,)))
        self._density = fem.Function(density_space)
        self._velocity = fem.Function(velocity_space)
        self._dofs = density_space.dofmap.list[: self.mesh.owned_cells]
        self._velocity_nodes = velocity_space.dofmap.index_map.size_local
        self._velocity_dofs = velocity_space.dofmap.list[: self.mesh.owned_cells]
        nodes = velocity_space.tabulate_dof_coordinates()[: self._velocity_nodes, :dimension]
        self._velocity_points = self.mesh.manifold.retract(nodes)

        f, v, w = self._density, self._velocity, ufl.TestFunction(density_space)
        n = ufl.FacetNormal(domain)
        u = (ufl.dot(v("+"), n("+")) - ufl.dot(v("-"), n("-"))) / 2
        flux = (u + abs(u)) / 2 * f("+") + (u - abs(u)) / 2 * f("-")
        degree = self._form_degree
        inside = ufl.dx(domain, metadata={"quadrature_degree": degree})
        between = ufl.dS(domain, metadata={"quadrature_degree": degree + 1})
        form = f * ufl.dot(v, ufl.grad(w)) * inside - flux * (w("+") - w("-")) * between
        self._form = fem.form(form)
        self._residual = la.vector(density_space.dofmap.index_map, density_space.dofmap.index_map_bs)
        on_wall = ufl.ds(domain, metadata={"quadrature_degree": degree + 1})
        outward = ufl.dot(v, n)
        self._wall_form = (
            fem.form(f * (outward + abs(outward)) / 2 * on_wall) if isinstance(self.model.manifold, Euclidean) else None
        )

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
            self._load(density, velocities[label])
            self._residual.array[:] = 0.0
            fem.assemble_vector(self._residual.array, self._form)
            self._residual.scatter_reverse(la.InsertMode.add)
            rates[label] = np.einsum("cij,cj->ci", self._inverse_mass, self._residual.array[self._dofs])

    def _load(self, density: np.ndarray, velocity: np.ndarray) -> None:
        """Put one label's density and velocity into the form's functions, ghosts included. Collective."""
        self._density.x.array[self._dofs] = density
        self._density.x.scatter_forward()
        self._velocity.x.array[: velocity.size] = velocity.reshape(-1)
        self._velocity.x.scatter_forward()

    def _means(self, densities: np.ndarray) -> np.ndarray:
        return np.einsum("ci,...ci->...c", self._mean, densities)

    def _limited(self, state: np.ndarray) -> np.ndarray:
        """A copy of the state, (labels, cells, nodes), ≥ 0 at all checked points where the means are ≥ 0."""
        densities = np.array(state).reshape(self._shape)
        for density in densities:
            limit_to_positive(density, self._checked_basis, self._mean)
        return densities

    @np.errstate(divide="ignore", invalid="ignore")  # nothing moves, or a velocity is infinite
    def step_limit(self, t: float, state: np.ndarray) -> float:
        """min over cells of a_p h / max |X|, h the diameter of the inscribed ball.

        a_p · 6 is the linear stability limit of SSP order 3 and 4 for upwind transport. Cell means may need a smaller
        step to stay ≥ 0: the time loop halves a step that makes one negative.
        """
        least = np.inf
        for velocity in self._field(t, self._limited(state)).values:
            self._velocity.x.array[: velocity.size] = velocity.reshape(-1)
            self._velocity.x.scatter_forward()
            speed = np.linalg.norm(self._velocity.x.array.reshape(-1, velocity.shape[1]), axis=1)
            fastest = speed[self._velocity_dofs].max(axis=1)
            least = min(least, np.min(_STABLE_STEP[self.degree] * self._diameter / fastest, initial=np.inf))
        return float(min_over_ranks(self.comm, least))

    def velocity_points(self, state: np.ndarray) -> np.ndarray:
        """The nodes of the velocity's finite element, moved to the manifold."""
        return self._velocity_points

    def correct(self, state: np.ndarray) -> None:
        """Scale each cell's polynomial towards its mean until it is ≥ 0, in place."""
        state[:] = self._limited(state).reshape(-1)

    def _weights(self, densities: np.ndarray) -> np.ndarray:
        values = np.maximum(np.einsum("qi,zci->zcq", self._basis, densities), 0.0)
        return (values * self._elements).reshape(len(densities), self._elements.size)

    def density_range(self, state: np.ndarray) -> tuple[float, float]:
        """Smallest and largest value at the points where the density is used."""
        values = np.einsum("qi,zci->zcq", self._checked_basis, state.reshape(self._shape))
        lowest = min_over_ranks(self.comm, values.min(initial=np.inf))
        return float(lowest), float(max_over_ranks(self.comm, values.max(initial=-np.inf)))

    def sampled_density(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (moved to the manifold), measures and values of a quadrature of degree 2p + 4."""
        points, element, basis = self._fine_quadrature()
        values = np.einsum("qi,zci->zcq", basis, state.reshape(self._shape))
        return points, element.reshape(-1), values.reshape(len(values), -1)

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
        if self._wall_form is None:
            return 0.0
        limited = self._limited(state)
        total = 0.0
        for label, velocity in enumerate(self._field(t, limited).values):
            self._load(limited[label], velocity)
            total += self.model.labels.weights[label] * fem.assemble_scalar(self._wall_form)
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


def _facet_points(cell: basix.CellType, degree: int) -> np.ndarray:
    """Quadrature points on all facets of the reference cell, (points, tdim)."""
    corners = basix.geometry(cell)
    dimension = corners.shape[1]
    facets = basix.topology(cell)[dimension - 1]
    if dimension == 1:
        return corners
    kinds = basix.cell.subentity_types(cell)[dimension - 1]
    points = []
    for vertices, kind in zip(facets, kinds, strict=True):
        reference, _ = basix.make_quadrature(kind, degree)
        origin, *edges = corners[vertices[:dimension]]
        points.append(origin + reference @ (np.array(edges) - origin))
    return np.concatenate(points)
