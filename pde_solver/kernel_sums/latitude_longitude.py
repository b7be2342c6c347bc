"""The grid of latitudes θ_i = (i + ½) π/n and longitudes φ_j = π j/n on S², continued so that stencils need not wrap.

East and west it goes on periodically, across the poles (θ, φ) is (−θ, φ + π). A point's position on the padded grid
is in units of the spacing π/n, which is the same along both axes.
"""

from dataclasses import dataclass

import numpy as np

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.lagrange import stencil

# Nodes that the grid is continued by on every side: half the largest stencil and one.
_MARGIN = 5


@dataclass(frozen=True, eq=False)
class Stencils:
    """The nodes around each of n points, see `lagrange.stencil`.

    Args:
        base: (n, axes).
        offset: (n, axes).
    """

    base: np.ndarray
    offset: np.ndarray


def stencils(vectors: np.ndarray, latitudes: int, order: int, shell_positions: np.ndarray | None = None) -> Stencils:
    """Stencils on the padded grid at the directions of vectors.

    Args:
        vectors: (n, 3), of any length.
        latitudes: n_θ of the grid.
        order: nodes along each axis.
        shell_positions: (n,) positions along an axis in front of latitude and longitude, if there is one.
    """
    x, y, z = vectors.T
    positions = np.empty((len(vectors), 2 if shell_positions is None else 3))
    per_radian = latitudes / np.pi
    positions[:, -2] = np.arctan2(np.sqrt(x * x + y * y), z) * per_radian + (_MARGIN - 0.5)
    longitude = np.arctan2(y, x)
    positions[:, -1] = np.where(longitude < 0, longitude + 2 * np.pi, longitude) * per_radian + _MARGIN
    if shell_positions is not None:
        positions[:, 0] = shell_positions
    return Stencils(*stencil(positions, order))


def padded_shape(latitudes: int) -> tuple[int, int]:
    """Rows and columns of the padded grid."""
    return latitudes + 2 * _MARGIN, 2 * latitudes + 2 * _MARGIN


def interior(padded: np.ndarray) -> np.ndarray:
    """The grid itself (n_θ, 2 n_θ, ...) as a view of the padded one."""
    return padded[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]


@compiled
def fold(padded, grid):
    """The masses on the grid from those on the padded grid: across the poles (θ, φ) is (−θ, φ + π)."""
    n, around = grid.shape
    grid[:] = 0.0
    for i in range(padded.shape[0]):
        t = i - _MARGIN
        over = t < 0 or t >= n
        row = -1 - t if t < 0 else (2 * n - 1 - t if t >= n else t)
        begin, k = 0, ((n if over else 0) - _MARGIN) % around
        while begin < padded.shape[1]:
            length = min(padded.shape[1] - begin, around - k)
            for j in range(length):
                grid[row, k + j] += padded[i, begin + j]
            begin, k = begin + length, 0


@compiled
def pad(fields, padded):
    """Fields (c, n, 2n) side by side on the padded grid; the extremes of the first."""
    columns, n, around = fields.shape
    low = high = fields[0, 0, 0]
    for t in range(n):
        for k in range(around):
            low = min(low, fields[0, t, k])
            high = max(high, fields[0, t, k])
    for i in range(padded.shape[0]):
        t = i - _MARGIN
        over = t < 0 or t >= n
        row = -1 - t if t < 0 else (2 * n - 1 - t if t >= n else t)
        start = ((n if over else 0) - _MARGIN) % around
        for c in range(columns):  # one after the other: a row of the grid stays in the nearest cache
            begin, k = 0, start
            while begin < padded.shape[1]:
                length = min(padded.shape[1] - begin, around - k)
                for j in range(length):
                    padded[i, begin + j, c] = fields[c, row, k + j]
                begin, k = begin + length, 0
    return low, high
