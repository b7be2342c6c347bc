"""Gradients by least squares in each cell's tangent space: frames, differences, weights."""

import numpy as np

from pde_solver.compiled import compiled
from pde_solver.manifolds import Manifold, Sphere


def tangent_frames(manifold: Manifold, points: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the tangent space at each point, (n, d, D); the axes in flat space.

    On spheres the coordinate axes that are least normal are orthonormalised one after the other, so that the basis at a
    point depends on the point alone.

    Args:
        manifold: R^D, or a sphere.
        points: (n, D) on it.
    """
    count, width = points.shape
    if not isinstance(manifold, Sphere):
        return np.tile(np.eye(width), (count, 1, 1))
    frames = np.zeros((count, width - 1, width))
    _orthonormalise(points, np.argsort(np.abs(points), axis=1, kind="stable"), frames)
    return frames


@compiled
def _orthonormalise(points, axes, frames):
    """Gram-Schmidt on the normal and the coordinate axes in the given order; twice, so that it is exact to round-off."""
    count, width = points.shape
    for n in range(count):
        for i in range(width - 1):
            frames[n, i, axes[n, i]] = 1.0
            for _ in range(2):
                along = 0.0
                for axis in range(width):
                    along += frames[n, i, axis] * points[n, axis]
                for axis in range(width):
                    frames[n, i, axis] -= along * points[n, axis]
                for j in range(i):
                    along = 0.0
                    for axis in range(width):
                        along += frames[n, i, axis] * frames[n, j, axis]
                    for axis in range(width):
                        frames[n, i, axis] -= along * frames[n, j, axis]
                length = 0.0
                for axis in range(width):
                    length += frames[n, i, axis] ** 2
                for axis in range(width):
                    frames[n, i, axis] /= np.sqrt(length)


@compiled
def tangent_differences(first, neighbours, origins, points, frames):
    """The way from each cell's origin to its neighbours' points, in the cell's frame, (·, d).

    Args:
        first: (cells + 1,) where each cell's neighbours begin.
        neighbours: (·,) their numbers.
        origins: (cells, D).
        points: (·, D) what the numbers number: cells, or facets.
        frames: (cells, d, D).
    """
    cells, dimension, width = frames.shape
    result = np.empty((len(neighbours), dimension))
    for cell in range(cells):
        for k in range(first[cell], first[cell + 1]):
            for i in range(dimension):
                component = 0.0
                for axis in range(width):
                    component += frames[cell, i, axis] * (points[neighbours[k], axis] - origins[cell, axis])
                result[k, i] = component
    return result


def least_squares(first: np.ndarray, differences: np.ndarray) -> np.ndarray:
    """Weights c_k with gradient = Σ_k c_k (f_k − f) that are exact for linear f wherever the neighbours allow.

    Distances enter with weight 1/|Δ|²; where too few neighbours lie, the gradient of least norm is taken.

    Args:
        first: (cells + 1,) where each cell's neighbours begin.
        differences: (·, d) from the cell's point to its neighbours' points, in the tangent space.

    Returns:
        (·, d).
    """
    # the directions without neighbours (in a wall's corner) are cut
    inverse = np.linalg.pinv(_normal_matrices(first, differences), rcond=1e-3, hermitian=True)
    return _applied(first, differences, inverse)


@compiled
def _normal_matrices(first, differences):
    """Σ_k Δ_k Δ_kᵀ / |Δ_k|² of each cell, (cells, d, d)."""
    dimension = differences.shape[1]
    result = np.zeros((len(first) - 1, dimension, dimension))
    for cell in range(len(first) - 1):
        for k in range(first[cell], first[cell + 1]):
            square = 0.0
            for i in range(dimension):
                square += differences[k, i] ** 2
            for i in range(dimension):
                for j in range(dimension):
                    result[cell, i, j] += differences[k, i] * differences[k, j] / square
    return result


@compiled
def _applied(first, differences, inverse):
    """inverse · Δ_k / |Δ_k|², (·, d)."""
    dimension = differences.shape[1]
    result = np.zeros_like(differences)
    for cell in range(len(first) - 1):
        for k in range(first[cell], first[cell + 1]):
            square = 0.0
            for i in range(dimension):
                square += differences[k, i] ** 2
            for i in range(dimension):
                for j in range(dimension):
                    result[k, i] += inverse[cell, i, j] * differences[k, j] / square
    return result
