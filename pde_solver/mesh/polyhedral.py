"""Straight cells in R, R² and R³: exact volumes, centroids and facet normals."""

import itertools

import basix
import numpy as np


def cells(corners: np.ndarray, cell: str) -> tuple[np.ndarray, np.ndarray]:
    """Centroids and volumes; for quadrilaterals and hexahedra those of the multilinear map, by exact quadrature.

    Args:
        corners: (cells, corners, D) corner vertices in basix's order.
        cell: "interval", "triangle", "quadrilateral", "tetrahedron" or "hexahedron".
    """
    if cell in ("quadrilateral", "hexahedron"):
        return _multilinear(corners, cell)
    edges = corners[:, 1:] - corners[:, :1]
    volumes = np.abs(determinants(edges)) / {"interval": 1, "triangle": 2, "tetrahedron": 6}[cell]
    return corners.mean(axis=1), volumes


def facets(corners: np.ndarray, inside: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints, and normals times measures, that point away from the inside.

    A quadrilateral facet in space is the bilinear surface of its corners: its vector area is half the cross product
    of its diagonals, and its midpoint that of the four triangles around the mean of the corners.

    Args:
        corners: (facets, corners, D) corner vertices in basix's order.
        inside: (facets, D) a point on the side from which the normal points.
        dimension: D.
    """
    midpoints = corners.mean(axis=1)
    if dimension == 1:
        normals = np.ones_like(midpoints)
    elif dimension == 2:
        along = corners[:, 1] - corners[:, 0]
        normals = np.column_stack([along[:, 1], -along[:, 0]])
    elif corners.shape[1] == 3:
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
    else:
        normals = np.cross(corners[:, 3] - corners[:, 0], corners[:, 2] - corners[:, 1]) / 2
        midpoints = _quadrilateral_centroid(corners[:, [0, 1, 3, 2]])
    inwards = ((inside - midpoints) * normals).sum(axis=1) > 0
    return midpoints, np.where(inwards[:, None], -normals, normals)


def _quadrilateral_centroid(ring: np.ndarray) -> np.ndarray:
    """Centroid of the four triangles between the sides of a ring (facets, 4, 3) and the mean of its corners."""
    middle = ring.mean(axis=1, keepdims=True)
    following = np.roll(ring, -1, axis=1)
    areas = np.linalg.norm(np.cross(ring - middle, following - middle), axis=2)
    centroids = (ring + following + middle) / 3
    return (areas[..., None] * centroids).sum(axis=1) / areas.sum(axis=1)[:, None]


def _multilinear(corners: np.ndarray, cell: str) -> tuple[np.ndarray, np.ndarray]:
    """∫ det J and ∫ x det J over the reference cell: polynomials of degree ≤ 3 in each variable, so 2 Gauss points."""
    dimension = corners.shape[2]
    element = basix.create_element(basix.ElementFamily.P, basix.CellType[cell], 1)
    nodes = (0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3))
    quadrature = np.array(list(itertools.product(nodes, repeat=dimension)))
    values, *gradients = np.asarray(element.tabulate(1, quadrature))[..., 0]
    volumes = np.zeros(len(corners))
    moments = np.zeros((len(corners), dimension))
    for q in range(len(quadrature)):
        point = combination(values[q], corners)
        jacobian = [combination(gradient[q], corners) for gradient in gradients]
        weight = determinants(np.stack(jacobian, axis=1)) / len(quadrature)
        volumes += weight
        moments += weight[:, None] * point
    return moments / volumes[:, None], np.abs(volumes)


def combination(weights: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Σ_v weights_v x_v, (n, D)."""
    result = weights[0] * corners[:, 0]
    for v in range(1, len(weights)):
        result += weights[v] * corners[:, v]
    return result


def determinants(rows: np.ndarray) -> np.ndarray:
    """Determinants for D ≤ 3, written out so that a cell's value does not depend on its place.

    Args:
        rows: (n, D, D) matrices.
    """
    dimension = rows.shape[1]
    if dimension == 1:
        return rows[:, 0, 0]
    if dimension == 2:
        return rows[:, 0, 0] * rows[:, 1, 1] - rows[:, 0, 1] * rows[:, 1, 0]
    (a, b, c), (d, e, f), (g, h, i) = rows.transpose(1, 2, 0)
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
