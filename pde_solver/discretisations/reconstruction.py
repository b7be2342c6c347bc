"""Finite-volume kernels: limited linear reconstruction, upwind flux, divergence; serial loops."""

import numpy as np

from pde_solver.compiled import compiled


@compiled
def limited_gradients(density, first, neighbours, coefficients, first_facet, offsets, gradients):
    """Least-squares gradient of every owned cell, scaled back so that no facet value leaves its neighbours' range.

    With Δ the largest admissible and a the reconstructed difference at a facet, the gradient is multiplied by the
    smallest ψ(Δ/a), ψ(y) = y − 4y³/27 for y < 3/2 and 1 beyond: smooth, and ψ(y) ≤ y keeps the value between the
    extremes of the cell and its neighbours, so facet values are ≥ 0 where the densities are. Neighbours are all cells
    that share a vertex: those that share a facet are too few on triangles and tetrahedra.

    Args:
        density: (cells with halo,) cell means.
        first: (owned + 1,) where each owned cell's neighbours begin.
        neighbours: (·,) the cells that share a vertex with it.
        coefficients: (·, D) least-squares weights: gradient = Σ coefficients · (neighbour − cell).
        first_facet: (owned + 1,) where each owned cell's facets begin.
        offsets: (·, D) from the cell's centre to each facet's midpoint.
        gradients: (cells with halo, D) written for owned cells.

    Source: the limiter function of Michalak and Ollivier-Gooch, J. Comput. Phys. 228 (2009) 8693.
    """
    dimension = gradients.shape[1]
    for cell in range(len(first) - 1):
        value = density[cell]
        low = 0.0
        high = 0.0
        for axis in range(dimension):
            gradients[cell, axis] = 0.0
        for k in range(first[cell], first[cell + 1]):
            difference = density[neighbours[k]] - value
            low = min(low, difference)
            high = max(high, difference)
            for axis in range(dimension):
                gradients[cell, axis] += coefficients[k, axis] * difference
        factor = 1.0
        for k in range(first_facet[cell], first_facet[cell + 1]):
            step = 0.0
            for axis in range(dimension):
                step += gradients[cell, axis] * offsets[k, axis]
            room = high if step > 0 else low
            if abs(step) > 1e-300 and abs(room) < 1.5 * abs(step):
                y = room / step
                factor = min(factor, y - 4 * y * y * y / 27)
        for axis in range(dimension):
            gradients[cell, axis] *= factor


@compiled
def upwind_divergence(
    density, gradients, owner, neighbour, owner_offset, neighbour_offset, normal_velocity, owned, divergence
):
    """Σ over facets of the upwind flux F = max(u, 0) f⁻ + min(u, 0) f⁺ out of each owned cell; nothing crosses a wall.

    Args:
        density: (cells with ghosts,) cell means.
        gradients: (cells with ghosts, D) limited gradients; zeros give first order.
        owner, neighbour: (facets,) the cells on both sides, −1 beyond a wall.
        owner_offset, neighbour_offset: (facets, D) from these cells' centres to the midpoint.
        normal_velocity: (facets,) u = velocity · (normal times facet measure), from owner to neighbour.
        owned: how many cells come before the ghosts.
        divergence: (owned,) added to.
    """
    dimension = gradients.shape[1]
    for facet in range(len(owner)):
        inside = owner[facet]
        outside = neighbour[facet]
        if outside < 0:
            continue
        u = normal_velocity[facet]
        if u > 0:
            value = density[inside]
            for axis in range(dimension):
                value += gradients[inside, axis] * owner_offset[facet, axis]
        else:
            value = density[outside]
            for axis in range(dimension):
                value += gradients[outside, axis] * neighbour_offset[facet, axis]
        flux = u * value
        if inside < owned:
            divergence[inside] += flux
        if outside < owned:
            divergence[outside] -= flux


def least_squares(first: np.ndarray, differences: np.ndarray) -> np.ndarray:
    """Weights c_k with gradient = Σ_k c_k (f_k − f) that are exact for linear f wherever the neighbours allow.

    Distances enter with weight 1/|Δ|²; where too few neighbours lie, the gradient of least norm is taken.

    Args:
        first: (cells + 1,) where each cell's neighbours begin.
        differences: (·, D) from the cell's point to its neighbours' points, in the tangent space.

    Returns:
        (·, D).
    """
    cells, dimension = len(first) - 1, differences.shape[1]
    cell = np.repeat(np.arange(cells), np.diff(first))
    weighted = differences / np.einsum("kd,kd->k", differences, differences)[:, None]
    normal = np.zeros((cells, dimension, dimension))
    np.add.at(normal, cell, np.einsum("ki,kj->kij", weighted, differences))
    # the directions without neighbours (the sphere's normal, a wall's corner) are cut
    inverse = np.linalg.pinv(normal, rcond=1e-3, hermitian=True)
    return np.einsum("kij,kj->ki", inverse[cell], weighted)
