"""Error of interpolation on S² where what a target attends to is far from the direction û in which it looks for it.

The plan's error is that of targets with what they attend to around û. Elsewhere e^{−r} F varies faster, in proportion
to the part of the mean across û, and the error at a target follows from the mean itself.
"""

import numpy as np

from pde_solver.compiled import compiled

# Error at one target ≈ number · spacing^order times the distance of the mean it attends to from û, see `_distance`.
_ERROR_FAR = {4: 0.15, 6: 0.05, 8: 0.006}


def far_scale(order: int, latitudes: int) -> float:
    """By what `far_errors` are to be multiplied on a grid of so many latitudes."""
    return _ERROR_FAR[order] * (np.pi / latitudes) ** order


@compiled(inline=True)
def _distance(along, square, r, order):
    """(r a)^order s for a mean m of length² `square` with ⟨û, m⟩ = `along` and s² = 1 − |m|².

    a² = |m across û|² + s², less the 4/r that the width of the kernel itself explains.
    """
    spread = max(1.0 - square, 0.0)
    across = max(square - along * along, 0.0) + max(spread - 4.0 / max(r, 1e-300), 0.0)
    return (r * r * across) ** (order // 2) * np.sqrt(spread)


@compiled
def far_errors(u, mean, order, error):
    """`_distance` of the means (n, 3) from the directions of u (n, 3), into error (n,)."""
    for i in range(len(u)):
        r = np.sqrt(u[i, 0] * u[i, 0] + u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
        along = (u[i, 0] * mean[i, 0] + u[i, 1] * mean[i, 1] + u[i, 2] * mean[i, 2]) / max(r, 1e-300)
        square = mean[i, 0] * mean[i, 0] + mean[i, 1] * mean[i, 1] + mean[i, 2] * mean[i, 2]
        error[i] = _distance(along, square, r, order)


@compiled
def far_anywhere(fields, r, order, most):
    """Whether `_distance` exceeds a number at a node û, with e^{−r} (F, ∇F) on the grid, (n, 2n, 4)."""
    n = fields.shape[0]
    longitudes = np.arange(2 * n) * (np.pi / n)
    cosines, sines = np.cos(longitudes), np.sin(longitudes)
    for i in range(n):
        theta = (i + 0.5) * np.pi / n
        z, ring = np.cos(theta), np.sin(theta)
        for j in range(2 * n):
            node = fields[i, j]
            inverse = 1.0 / node[0]
            a, b, c = node[1] * inverse, node[2] * inverse, node[3] * inverse
            along = ring * (cosines[j] * a + sines[j] * b) + z * c
            # written so that a nan counts as far
            if not _distance(along, a * a + b * b + c * c, r, order) <= most:
                return True
    return False
