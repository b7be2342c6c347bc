"""The compiled heart of discontinuous Galerkin: the upwind form, with LANES cells or facets side by side in the vector lanes.

The form is a chain of small matrices that are the same for all cells and all facets, with a product point by point in
between. All arrays that belong to cells or facets come in blocks, (blocks, ..., LANES), filled up with zeros.
"""

import functools

import numpy as np

from pde_solver.compiled import compiled

#: Cells or facets in one block, the length of every innermost loop.
LANES = 32
# a·b + c may be rounded once; nothing is reordered.
_CONTRACT = frozenset({"contract", "nsz"})


def in_lanes(values: np.ndarray) -> np.ndarray:
    """(n, ...) -> (blocks, ..., LANES), the last block filled up with zeros."""
    blocks = -(-len(values) // LANES)
    padded = np.zeros((blocks * LANES, *values.shape[1:]), values.dtype)
    padded[: len(values)] = values
    return np.ascontiguousarray(np.moveaxis(padded.reshape(blocks, LANES, *values.shape[1:]), 1, -1))


def _group(terms: int) -> int:
    """How many terms share one load and store of a running sum: the largest divisor up to 10."""
    return max(divisor for divisor in range(1, 11) if terms % divisor == 0)


@compiled(fastmath=_CONTRACT, inline=True)
def _multiply(table, values, products, rows, terms, group):
    """products[r, t] = Σ_k table[r, k] values[k, t], with constant numbers of rows, terms and terms in a group."""
    for r in range(rows):
        for t in range(LANES):
            total = 0.0
            for k in range(group):
                total += table[r, k] * values[k, t]
            products[r, t] = total
        for first in range(group, terms, group):
            for t in range(LANES):
                total = products[r, t]
                for k in range(group):
                    total += table[r, first + k] * values[first + k, t]
                products[r, t] = total


@functools.cache
def facet_kernel(trace_nodes: int, velocity_nodes: int, points: int, dimension: int):
    """The kernel for facets with so many nodes, so many of the velocity, and so many quadrature points in R^dimension."""
    trace_group, velocity_group, point_group = _group(trace_nodes), _group(velocity_nodes), _group(points)

    @compiled(fastmath=_CONTRACT)
    def facet_moments(density, velocity, inside, outside, velocity_dofs, conormals, basis, velocity_basis, moments):
        """moments[i] = Σ_q w_q F_q φ_i(q) for the nodes of each facet, F = max(u, 0) f⁺ + min(u, 0) f⁻.

        Args:
            density: (cells with ghosts · nodes,) nodal values.
            velocity: (velocity nodes with ghosts, D).
            inside, outside: (blocks, trace nodes, LANES) where both traces are in `density`.
            velocity_dofs: (blocks, velocity nodes, LANES) rows of `velocity`.
            conormals: (blocks, points, D, LANES) ½ (n⁺ − n⁻) dS; 0 at walls.
            basis: (points, trace nodes) and velocity_basis: (points, velocity nodes).
            moments: (blocks, trace nodes, LANES), written.
        """
        f, flux = np.empty((trace_nodes, LANES)), np.empty((points, LANES))
        f_inside, f_outside = np.empty((points, LANES)), np.empty((points, LANES))
        nodal, v = np.empty((dimension, velocity_nodes, LANES)), np.empty((dimension, points, LANES))
        transposed = basis.T.copy()
        for block in range(len(moments)):
            for i in range(trace_nodes):
                for t in range(LANES):
                    f[i, t] = density[inside[block, i, t]]
            _multiply(basis, f, f_inside, points, trace_nodes, trace_group)
            for i in range(trace_nodes):
                for t in range(LANES):
                    f[i, t] = density[outside[block, i, t]]
            _multiply(basis, f, f_outside, points, trace_nodes, trace_group)
            for k in range(velocity_nodes):
                for t in range(LANES):
                    for d in range(dimension):
                        nodal[d, k, t] = velocity[velocity_dofs[block, k, t], d]
            for d in range(dimension):
                _multiply(velocity_basis, nodal[d], v[d], points, velocity_nodes, velocity_group)
            for q in range(points):
                for t in range(LANES):
                    u = 0.0
                    for d in range(dimension):
                        u += conormals[block, q, d, t] * v[d, q, t]
                    flux[q, t] = u * (f_inside[q, t] if u > 0 else f_outside[q, t])
            _multiply(transposed, flux, moments[block], trace_nodes, points, point_group)

    return facet_moments


@functools.cache
def cell_kernel(nodes: int, velocity_nodes: int, points: int, dimension: int, directions: int):
    """The kernel for cells with so many nodes, so many of the velocity, and so many quadrature points in R^dimension."""
    node_group, velocity_group, gradient_group = _group(nodes), _group(velocity_nodes), _group(points * directions)

    @compiled(fastmath=_CONTRACT)
    def cell_rates(
        density,
        velocity,
        velocity_dofs,
        geometry,
        basis,
        velocity_basis,
        gradients,
        moments,
        facets,
        signs,
        facet_nodes,
        inverse_mass,
        rates,
    ):
        """rates = M⁻¹ (Σ_q f_q (G v)_q · ∇̂φ_i(q) ∓ the moments of the cell's facets).

        Args:
            density: (cells, nodes) nodal values, this rank's cells first.
            velocity: (velocity nodes with ghosts, D).
            velocity_dofs: (blocks, velocity nodes, LANES) rows of `velocity`.
            geometry: (blocks, points · tdim, D, LANES) G times the quadrature weight.
            basis: (points, nodes) and velocity_basis: (points, velocity nodes).
            gradients: (nodes, points · tdim) derivatives of the basis on the reference cell.
            moments: (facet blocks · trace nodes · LANES,) of the facets.
            facets: (blocks, sides, trace nodes, LANES) where the moments of a side's nodes are.
            signs: (blocks, sides, LANES) −1 where the facet's conormal points outward, else 1.
            facet_nodes: (sides, trace nodes) the cell's nodes on each side.
            inverse_mass: (blocks, nodes, nodes, LANES).
            rates: (cells, nodes), written.
        """
        f, at_points = np.empty((nodes, LANES)), np.empty((points, LANES))
        nodal, v = np.empty((dimension, velocity_nodes, LANES)), np.empty((dimension, points, LANES))
        transported = np.empty((points * directions, LANES))
        residual, result = np.empty((nodes, LANES)), np.empty((nodes, LANES))
        for block in range(len(geometry)):
            first = block * LANES
            count = min(LANES, len(rates) - first)
            for t in range(count):
                for i in range(nodes):
                    f[i, t] = density[first + t, i]
            _multiply(basis, f, at_points, points, nodes, node_group)
            for k in range(velocity_nodes):
                for t in range(LANES):
                    for d in range(dimension):
                        nodal[d, k, t] = velocity[velocity_dofs[block, k, t], d]
            for d in range(dimension):
                _multiply(velocity_basis, nodal[d], v[d], points, velocity_nodes, velocity_group)
            for q in range(points):
                for t in range(LANES):
                    for e in range(directions):
                        along = 0.0
                        for d in range(dimension):
                            along += geometry[block, q * directions + e, d, t] * v[d, q, t]
                        transported[q * directions + e, t] = along * at_points[q, t]
            _multiply(gradients, transported, residual, nodes, points * directions, gradient_group)
            for side in range(facet_nodes.shape[0]):
                for i in range(facet_nodes.shape[1]):
                    node = facet_nodes[side, i]
                    for t in range(LANES):
                        residual[node, t] += signs[block, side, t] * moments[facets[block, side, i, t]]
            for i in range(nodes):
                for t in range(LANES):
                    total = 0.0
                    for j in range(node_group):
                        total += inverse_mass[block, i, j, t] * residual[j, t]
                    result[i, t] = total
                for begin in range(node_group, nodes, node_group):
                    for t in range(LANES):
                        total = result[i, t]
                        for j in range(node_group):
                            total += inverse_mass[block, i, begin + j, t] * residual[begin + j, t]
                        result[i, t] = total
            for t in range(count):
                for i in range(nodes):
                    rates[first + t, i] = result[i, t]

    return cell_rates
