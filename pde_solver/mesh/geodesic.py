"""Arcs and spherical polygons: exact lengths, areas and centroids of geodesic cells on the unit sphere.

Angles are taken by atan2, which is exact to round-off for tiny and for large cells alike.
"""

import numpy as np


def cells(corners: np.ndarray, cell: str) -> tuple[np.ndarray, np.ndarray]:
    """Centroids, moved radially to the sphere, and volumes of arcs or spherical polygons.

    A polygon with corners x_i has ∫ x dS = ½ Σ_i θ_i n_i, with θ_i the length of the side from x_i to x_{i+1} and
    n_i the unit vector along x_i × x_{i+1}.

    Args:
        corners: (cells, corners, D) corner vertices in basix's order.
        cell: "interval", "triangle" or "quadrilateral".

    Source: derived for this project (Stokes' theorem for div P_x e = −2⟨x, e⟩).
    """
    if cell == "interval":
        first, last = corners[:, 0], corners[:, 1]
        return _normalised(first + last), _arc_length(first, last)
    if cell == "triangle":
        ring, area = corners, np.abs(_triangle_area(*corners.transpose(1, 0, 2)))
    else:
        v0, v1, v2, v3 = corners.transpose(1, 0, 2)
        ring = corners[:, [0, 1, 3, 2]]
        area = np.abs(_triangle_area(v0, v1, v3) + _triangle_area(v0, v3, v2))
    following = np.roll(ring, -1, axis=1)
    sides = _arc_length(ring, following)[..., None] * _normalised(np.cross(ring, following))
    moment = sides.sum(axis=1)
    # a mirrored cell has the opposite sign
    moment *= np.sign((moment * ring.sum(axis=1)).sum(axis=1))[:, None]
    return _normalised(moment), area


def facets(corners: np.ndarray, inside: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Midpoints on the sphere, and conormals times lengths, that point away from the inside.

    Args:
        corners: (facets, corners, D) one corner on the circle, the two ends of an arc on S².
        inside: (facets, D) a point on the side from which the normal points.
        dimension: 1 on the circle, 2 on S².
    """
    if dimension == 1:
        midpoints = corners[:, 0]
        normals = np.column_stack([-midpoints[:, 1], midpoints[:, 0]])
    else:
        first, last = corners[:, 0], corners[:, 1]
        midpoints = _normalised(first + last)
        # Along a great circle the conormal is the same vector everywhere.
        normals = _arc_length(first, last)[:, None] * _normalised(np.cross(first, last))
    inwards = ((inside - midpoints) * normals).sum(axis=1) > 0
    return midpoints, np.where(inwards[:, None], -normals, normals)


def _normalised(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _arc_length(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """2 atan2(|x − y|, |x + y|)."""
    return 2 * np.arctan2(np.linalg.norm(first - last, axis=-1), np.linalg.norm(first + last, axis=-1))


def _triangle_area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Signed area E of spherical triangles, tan(E/2) = ⟨a, b × c⟩ / (1 + ⟨a, b⟩ + ⟨b, c⟩ + ⟨c, a⟩).

    Source: A. Van Oosterom, J. Strackee, IEEE Trans. Biomed. Eng. 30 (1983) 125–126, equation (8).
    """
    # ⟨a, (b − a) × (c − a)⟩ is the same triple product without the cancellation.
    triple = (a * np.cross(b - a, c - a)).sum(axis=-1)
    return 2 * np.arctan2(triple, 1 + (a * b).sum(axis=-1) + (b * c).sum(axis=-1) + (c * a).sum(axis=-1))
