"""Densities between nodes, for pictures."""

import numpy as np
from scipy.spatial import cKDTree

#: Nodes that speak for a pixel.
NEIGHBOURS = 10


class NodalInterpolant:
    """A smooth density through values at scattered nodes: a local average of log f, with weights that fade with distance.

    The logarithm keeps a peak that spans decades from swallowing its surroundings. Nodes that coincide (each cell has
    its own) are averaged first.

    Args:
        points: (n, D) nodes.
        values: (n,) density ≥ 0 there.
        floor: densities below it count as it.
    """

    def __init__(self, points: np.ndarray, values: np.ndarray, floor: float) -> None:
        extent = max(float(np.ptp(points, axis=0).max(initial=0.0)), 1e-300)
        _, first, where = np.unique(np.round(points / extent, 7), axis=0, return_index=True, return_inverse=True)
        where = where.reshape(-1)
        self._tree = cKDTree(points[first])
        self._logs = np.log(np.maximum(np.bincount(where, values) / np.bincount(where), floor))
        self._neighbours = min(NEIGHBOURS, len(first))

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """The density at points (m, D): (m,)."""
        distance, nearest = self._tree.query(points, k=self._neighbours)
        distance, nearest = distance.reshape(len(points), -1), nearest.reshape(len(points), -1)
        reach = distance[:, -1:] + 1e-300
        weights = np.exp(-4 * (distance / reach) ** 2) - np.exp(-4.0) + 1e-12
        return np.exp((weights * self._logs[nearest]).sum(axis=1) / weights.sum(axis=1))
