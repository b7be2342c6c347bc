"""The upwind form of discontinuous Galerkin with all that is fixed on a mesh computed once: tables, geometry, numbering."""

from collections.abc import Callable

import basix
import numpy as np
from basix.finite_element import FiniteElement as _Element
from dolfinx import fem

from pde_solver.discretisations.upwind_kernels import LANES, cell_kernel, facet_kernel, in_lanes
from pde_solver.mesh import FacetGeometry, Mesh


class UpwindForm:
    """r = M⁻¹ (∫ f v·∇w dx − ∫ F(f⁺, f⁻) [w] dS) for the basis functions w of this rank's cells.

    F = ½(u + |u|) f⁺ + ½(u − |u|) f⁻ with u = ½(v⁺·n⁺ − v⁻·n⁻), n the conormal in the surface; nothing crosses a wall.
    With J = ∂x/∂ξ and G = √det(JᵀJ) (JᵀJ)⁻¹ Jᵀ it is ∫ f (G v)·∇̂w dξ in a cell, and n dS = Gᵀ n̂ dŝ on a facet: both
    are kept at the quadrature points, so cells and facets may be curved, in a surface or not.

    A trace is given by the nodes on the facet. Both neighbours have them, each in its own order; here they are taken in
    the order of the owner, so one table for the reference facet serves all.

    Args:
        mesh: any mesh.
        facets: its facets.
        element: the discontinuous Lagrange element of f and w, of degree ≥ 1.
        velocity_space: the continuous Lagrange space of v.
        degree: of the quadrature in cells; on facets it is one more.
        inverse_mass: (owned cells, nodes, nodes) M⁻¹.

    Source: derived for this project.
    """

    def __init__(
        self,
        mesh: Mesh,
        facets: FacetGeometry,
        element: _Element,
        velocity_space: fem.FunctionSpace,
        degree: int,
        inverse_mass: np.ndarray,
    ) -> None:
        velocity_element = velocity_space.ufl_element().sub_elements[0].basix_element
        velocity_dofs = velocity_space.dofmap.list
        self._owned, self._nodes = inverse_mass.shape[:2]
        self._inverse_mass = in_lanes(inverse_mass)
        self._prepare_cells(mesh, element, velocity_element, velocity_dofs, degree)
        self._prepare_facets(mesh, facets, element, velocity_element, velocity_dofs, degree + 1)

    def _prepare_cells(
        self, mesh: Mesh, element: _Element, velocity_element: _Element, velocity_dofs: np.ndarray, degree: int
    ) -> None:
        """What the integral over cells needs."""
        points, weights = basix.make_quadrature(element.cell_type, degree)
        table = element.tabulate(1, points)[..., 0]
        self._basis = np.ascontiguousarray(table[0])
        self._gradients = np.ascontiguousarray(table[1:].transpose(2, 1, 0)).reshape(self._nodes, -1)
        self._velocity_basis = np.ascontiguousarray(velocity_element.tabulate(0, points)[0, ..., 0])
        geometry = _pull_back(mesh, mesh.cell_coordinates[: self._owned], points) * weights[:, None, None]
        directions, dimension = geometry.shape[2:]
        self._geometry = in_lanes(geometry.reshape(self._owned, len(points) * directions, dimension))
        self._velocity_dofs = in_lanes(velocity_dofs[: self._owned])
        self._cell_rates = cell_kernel(self._nodes, velocity_element.dim, len(points), dimension, directions)

    def _prepare_facets(
        self,
        mesh: Mesh,
        facets: FacetGeometry,
        element: _Element,
        velocity_element: _Element,
        velocity_dofs: np.ndarray,
        degree: int,
    ) -> None:
        """What the integral over facets needs, and where each cell finds the moments of its facets."""
        self._facet_nodes, basis_on = _traces(element)
        velocity_nodes, velocity_basis_on = _traces(velocity_element)
        points, weights = facet_quadrature(element.cell_type, degree)
        self._trace_basis, self._velocity_trace_basis = basis_on(points), velocity_basis_on(points)

        owner, wall = facets.owner, facets.wall
        neighbour = np.where(wall, owner, facets.neighbour)
        owner_side, neighbour_side = _sides(mesh, facets, owner), _sides(mesh, facets, neighbour)
        inside, turned = self._facet_nodes[owner_side], self._facet_nodes[neighbour_side]
        order = _matching(mesh, element.points, owner, inside, neighbour, turned)
        outside = np.take_along_axis(turned, order, axis=1)

        def conormals(cells: np.ndarray, sides: np.ndarray, nodes: np.ndarray) -> np.ndarray:
            return _conormals(mesh, element, cells, sides, nodes, self._trace_basis) * weights[:, None]

        outward = conormals(owner, owner_side, inside)
        between = (outward - conormals(neighbour, neighbour_side, outside)) / 2
        between[wall] = 0.0
        owner_dofs, neighbour_dofs = owner[:, None] * self._nodes + inside, neighbour[:, None] * self._nodes + outside
        facet_velocity = np.take_along_axis(velocity_dofs[owner], velocity_nodes[owner_side], axis=1)
        self._between = in_lanes(between)
        self._inside, self._outside = in_lanes(owner_dofs.astype(np.int32)), in_lanes(neighbour_dofs.astype(np.int32))
        self._facet_velocity = in_lanes(facet_velocity)
        self._facet_moments = facet_kernel(
            inside.shape[1], velocity_nodes.shape[1], len(points), mesh.manifold.ambient_dimension
        )

        mine = wall & (owner < self._owned)
        self._wall_conormals, self._wall_dofs, self._wall_velocity = (
            outward[mine],
            owner_dofs[mine],
            facet_velocity[mine],
        )

        leads = owner[facets.cell_facets] == np.arange(self._owned)[:, None]
        own_order = np.where(leads[..., None], np.arange(inside.shape[1]), np.argsort(order)[facets.cell_facets])
        block, lane = np.divmod(facets.cell_facets, LANES)
        place = (block[..., None] * inside.shape[1] + own_order) * LANES + lane[..., None]
        self._places = in_lanes(place.astype(np.int32))
        self._signs = in_lanes(np.where(leads, -1.0, 1.0))
        self._moments = np.zeros((len(self._between), inside.shape[1], LANES))

    def rates(self, density: np.ndarray, velocity: np.ndarray, out: np.ndarray) -> None:
        """Write r into `out`.

        Args:
            density: (cells with ghosts, nodes) nodal values.
            velocity: (velocity nodes with ghosts, D).
            out: (owned cells, nodes), written.
        """
        self._facet_moments(
            density.reshape(-1),
            velocity,
            self._inside,
            self._outside,
            self._facet_velocity,
            self._between,
            self._trace_basis,
            self._velocity_trace_basis,
            self._moments,
        )
        self._cell_rates(
            density,
            velocity,
            self._velocity_dofs,
            self._geometry,
            self._basis,
            self._velocity_basis,
            self._gradients,
            self._moments.reshape(-1),
            self._places,
            self._signs,
            self._facet_nodes,
            self._inverse_mass,
            out,
        )

    def wall_outflow(self, density: np.ndarray, velocity: np.ndarray) -> float:
        """∫ over this rank's walls of f (v·n)⁺; arguments as for `rates`."""
        f = density.reshape(-1)[self._wall_dofs] @ self._trace_basis.T
        v = np.einsum("qk,fkd->fqd", self._velocity_trace_basis, velocity[self._wall_velocity])
        return float(np.sum(f * np.maximum(np.einsum("fqd,fqd->fq", v, self._wall_conormals), 0.0)))


def facet_quadrature(cell: basix.CellType, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (q, tdim − 1) and weights (q,) on the reference facet; of a curve's end, one empty point with weight 1."""
    kind = _facet_kind(cell)
    return (np.zeros((1, 0)), np.ones(1)) if kind == basix.CellType.point else basix.make_quadrature(kind, degree)


def on_sides(cell: basix.CellType, points: np.ndarray) -> np.ndarray:
    """Where points (q, tdim − 1) of the reference facet lie on each side of the reference cell, (sides, q, tdim)."""
    origins, edges = _reference_sides(cell)
    return origins[:, None] + points @ edges


def _facet_kind(cell: basix.CellType) -> basix.CellType:
    return basix.cell.subentity_types(cell)[-2][0]


def _reference_sides(cell: basix.CellType) -> tuple[np.ndarray, np.ndarray]:
    """A corner (sides, tdim) of each side of the reference cell, and the edges from it (sides, tdim − 1, tdim)."""
    corners = basix.geometry(cell)
    dimension = corners.shape[1]
    sides = corners[np.array(basix.topology(cell)[dimension - 1])[:, :dimension]]
    return sides[:, 0], sides[:, 1:] - sides[:, :1]


def _traces(element: _Element) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The nodes of a Lagrange element on each side, (sides, n) in the order of the reference facet, and its basis there."""
    kind = _facet_kind(element.cell_type)
    if kind == basix.CellType.point:
        return _nearest(on_sides(element.cell_type, np.zeros((1, 0))), element.points[None]), _one
    on_facet = basix.create_element(element.family, kind, element.degree, element.lagrange_variant)

    def basis(points: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(on_facet.tabulate(0, points)[0, ..., 0])

    return _nearest(on_sides(element.cell_type, on_facet.points), element.points[None]), basis


def _one(points: np.ndarray) -> np.ndarray:
    return np.ones((len(points), 1))


def _nearest(points: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Which candidate (n, m, D) is nearest to each point (n, k, D), (n, k)."""
    nearest = [np.linalg.norm(candidates - points[:, k, None], axis=-1).argmin(axis=1) for k in range(points.shape[1])]
    return np.stack(nearest, axis=1)


def _sides(mesh: Mesh, facets: FacetGeometry, cells: np.ndarray) -> np.ndarray:
    """On which side of the given cell each facet is, (facets,)."""
    topology = mesh.domain.topology
    of_cell = topology.connectivity(topology.dim, topology.dim - 1).array.reshape(-1, facets.cell_facets.shape[1])
    number = np.empty(len(cells), dtype=of_cell.dtype)
    number[facets.cell_facets] = of_cell[: facets.owned]
    return (of_cell[cells] == number[:, None]).argmax(axis=1)


def _matching(
    mesh: Mesh,
    reference: np.ndarray,
    cells: np.ndarray,
    nodes: np.ndarray,
    others: np.ndarray,
    their_nodes: np.ndarray,
) -> np.ndarray:
    """Places in `their_nodes` (facets, n) of the nodes of other cells that are where `nodes` (facets, n) of the cells are."""
    element = _coordinate_element(mesh)
    table, points = element.tabulate(0, reference)[0, ..., 0], mesh.cell_coordinates
    here = np.einsum("fnk,fkd->fnd", table[nodes], points[cells])
    there = np.einsum("fnk,fkd->fnd", table[their_nodes], points[others])
    return _nearest(here, there)


def _conormals(
    mesh: Mesh, element: _Element, cells: np.ndarray, sides: np.ndarray, nodes: np.ndarray, trace_basis: np.ndarray
) -> np.ndarray:
    """n dS/dŝ out of the cells at the quadrature points of their sides, (facets, q, D).

    The points are given by the nodes (facets, n) that they lie between: trace_basis is (q, n).
    """
    _, edges = _reference_sides(element.cell_type)
    normals = np.array(basix.cell.facet_outward_normals(element.cell_type))
    normals *= np.sqrt(np.linalg.det(edges @ edges.transpose(0, 2, 1)))[:, None]
    found = np.empty((len(cells), len(trace_basis), mesh.manifold.ambient_dimension))
    kinds, kind = np.unique(nodes, axis=0, return_inverse=True)
    for number, row in enumerate(kinds):
        these = np.flatnonzero(kind == number)
        geometry = _pull_back(mesh, mesh.cell_coordinates[cells[these]], trace_basis @ element.points[row])
        found[these] = np.einsum("cqtd,t->cqd", geometry, normals[sides[these[0]]])
    return found


def _pull_back(mesh: Mesh, nodes: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """G = √det(JᵀJ) (JᵀJ)⁻¹ Jᵀ of cells with the given nodes (cells, n, D) at reference points (q, tdim), (cells, q, tdim, D)."""
    jacobian = np.einsum("tqn,cnd->cqtd", _coordinate_element(mesh).tabulate(1, reference)[1:, ..., 0], nodes)
    metric = jacobian @ np.swapaxes(jacobian, 2, 3)
    return np.sqrt(np.linalg.det(metric))[..., None, None] * np.linalg.solve(metric, jacobian)


def _coordinate_element(mesh: Mesh) -> _Element:
    variant = basix.LagrangeVariant(mesh.domain.geometry.cmaps[0].variant)
    return basix.create_element(basix.ElementFamily.P, mesh.domain.basix_cell(), mesh.geometry_degree, variant)
