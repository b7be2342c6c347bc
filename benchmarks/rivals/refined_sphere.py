"""A quadrature of the sphere that is fine where a density has its mass: icosahedral triangles, split again and again."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, cKDTree

import pde_solver as ps


@dataclass(frozen=True)
class RefinedSphere:
    """Triangles with one point each.

    Args:
        points: (n, 3) their centres.
        measures: (n,) their areas.
        values: (n,) the density there.
        ancestors: level -> (n, 3) centres of the triangles of that uniform level in which they lie.
    """

    points: np.ndarray
    measures: np.ndarray
    values: np.ndarray
    ancestors: dict[int, np.ndarray]

    def error_of_cells(self, level: int, cell_points: np.ndarray, means: np.ndarray) -> float:
        """∫ |f − exact| dx = 2 ∫ max(exact − f, 0) dx of a density of mass one, constant on the cells of `icosphere(level)`.

        The second form counts only where the exact density is, and so are the small triangles.
        """
        _, cell = cKDTree(cell_points).query(self.ancestors[level])
        missing = self.measures @ np.maximum(self.values - means[cell], 0.0)
        return 2 * float(missing / (self.measures @ self.values))


def refined_sphere(
    density: Callable[[np.ndarray], np.ndarray], tokens: ps.TokenMeasure, coarsest: int, finest: int, share: float
) -> RefinedSphere:
    """All triangles of level `coarsest`, split until none holds more than `share` of the tokens' mass.

    Args:
        density: the exact density, (n, 3) -> (n,), evaluated at the triangles' centres.
        tokens: say where the mass is; a density looked up at centres would not find narrow clusters.
        coarsest: level from which on triangles are left unsplit.
        finest: level at which splitting ends.
        share: of the mass.
    """
    corners = _icosahedron()
    ancestors: dict[int, np.ndarray] = {}
    for level in range(1, coarsest + 1):
        corners = _split(corners)
        ancestors = {known: np.repeat(centres, 4, axis=0) for known, centres in ancestors.items()}
        ancestors[level] = _centres(corners)
    places, weights = tokens.points, tokens.weights[0]
    centres, areas, kept = [], [], []
    for level in range(coarsest, finest + 1):
        points = _centres(corners)
        _, triangle = cKDTree(points).query(places)
        heavy = (np.bincount(triangle, weights, len(points)) > share) & (level < finest)
        centres.append(points[~heavy])
        areas.append(_areas(corners[~heavy]))
        kept.append({known: rows[~heavy] for known, rows in ancestors.items()})
        if not heavy.any():
            break
        corners = _split(corners[heavy])
        ancestors = {known: np.repeat(rows[heavy], 4, axis=0) for known, rows in ancestors.items()}
        places, weights = places[heavy[triangle]], weights[heavy[triangle]]
    points = np.concatenate(centres)
    joined = {known: np.concatenate([part[known] for part in kept]) for known in ancestors}
    return RefinedSphere(points, np.concatenate(areas), density(points), joined)


def _icosahedron() -> np.ndarray:
    golden = (1 + np.sqrt(5)) / 2
    edge = np.array([(0, a, b * golden) for a in (-1, 1) for b in (-1, 1)])
    points = np.concatenate([np.roll(edge, k, axis=1) for k in range(3)])
    return _unit(points)[ConvexHull(points).simplices]


def _split(corners: np.ndarray) -> np.ndarray:
    """Four triangles of each, (4n, 3, 3), children in sequence."""
    a, b, c = corners.transpose(1, 0, 2)
    ab, bc, ca = _unit(a + b), _unit(b + c), _unit(c + a)
    children = np.stack([np.stack(child, 1) for child in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))], 1)
    return children.reshape(-1, 3, 3)


def _centres(corners: np.ndarray) -> np.ndarray:
    return _unit(corners.sum(axis=1))


def _areas(corners: np.ndarray) -> np.ndarray:
    """Spherical triangles' areas (Van Oosterom and Strackee, IEEE Trans. Biomed. Eng. 30 (1983) 125, equation 8)."""
    a, b, c = corners.transpose(1, 0, 2)
    triple = np.abs(np.sum(a * np.cross(b - a, c - a), axis=1))
    return 2 * np.arctan2(triple, 1 + np.sum(a * b, axis=1) + np.sum(b * c, axis=1) + np.sum(c * a, axis=1))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
