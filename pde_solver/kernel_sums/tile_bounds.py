"""Bounds of sums of exponentials over compact tiles of sources, from a few numbers for each tile."""

import functools

import numpy as np
from numba import carray

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.direct import as_rows, chunk
from pde_solver.kernel_sums.tiles import LANES, TILE, stack_tile, use_widest_vectors

#: log₂ e: bounds are logarithms to the base 2.
LOG2_E = 1.4426950408889634
_CONTRACT = frozenset({"contract", "nsz"})
# Directions in which the extent of a tile is known; across them it is a ball.
_AXES = 3
# Above this dimension a tile is a ball in all directions: its principal axes would cost more than they save.
_MOST_FEATURES = 8


class TileBounds:
    """Upper bounds of the terms of each tile, and lower bounds of whole sums, for blocks of targets.

    In a tile with centre c and unit axes e_a, the keys are k = c + Σ_a z_a e_a + r, |z_a| ≤ h_a, |r| ≤ ρ, and the
    logarithmic weights ℓ = Σ_a g_a z_a + e with e ≤ e_max: hence

        ⟨q, k⟩ + ℓ ≤ ⟨q, c⟩ + e_max + Σ_a |⟨q, e_a⟩ + g_a| h_a + |q| ρ.

    The axes are principal and the g_a fitted, because on a manifold and for a smooth law, where the sum for a target
    is concentrated q + g is normal to the manifold: h_a is small or what it multiplies is. And for any probabilities p

        log Σ_j e^{⟨q, k_j⟩ + ℓ_j} ≥ ⟨q, Σ_j p_j k_j⟩ + Σ_j p_j (ℓ_j − log p_j),

    for which p ∝ exp(e) is chosen.

    Args:
        keys: (tiles, size, k) the sources of each tile.
        log_weights: (tiles, size) ℓ.
        missing: how many sources at the end of the last tile only continue it; they bound nothing from below.

    Source: Cauchy-Schwarz and Jensen; derived for this project.
    """

    def __init__(self, keys: np.ndarray, log_weights: np.ndarray, missing: int) -> None:
        centre = keys.mean(axis=1)
        offsets = keys - centre[:, None]
        axes = _principal_axes(offsets)
        z = offsets @ axes
        extent = np.abs(z).max(axis=1)
        square = np.maximum((z**2).sum(axis=1), np.finfo(float).tiny)
        slope = (log_weights[:, None] @ z)[:, 0] / square
        rest = log_weights - (z @ slope[:, :, None])[:, :, 0]
        across = np.zeros(len(centre))
        if axes.shape[2] < keys.shape[2]:
            across = np.linalg.norm(offsets - z @ axes.transpose(0, 2, 1), axis=2).max(axis=1)
        self._centre, self._highest = _with_features(centre), rest.max(axis=1) * LOG2_E
        self._axes = _with_features((axes * extent[:, None]).transpose(0, 2, 1))
        self._slope, self._across = slope * extent * LOG2_E, across

        p = np.exp(rest - rest.max(axis=1, keepdims=True))
        p[-1, keys.shape[1] - missing :] = 0.0
        p /= p.sum(axis=1, keepdims=True)
        entropy = -(p * np.log(np.maximum(p, np.finfo(float).tiny))).sum(axis=1)
        self._mean = _with_features((p[:, None] @ keys)[:, 0])
        self._lowest = ((p * log_weights).sum(axis=1) + entropy) * LOG2_E

    def needed(self, blocks: np.ndarray, count: int, margin: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Which tiles matter for which blocks, lower bounds of log₂ of the sums, and how much higher these can be.

        Args:
            blocks: (blocks, k', LANES) targets, see `target_blocks`.
            count: how many targets they hold.
            margin: how far below the lower bound, in log₂, a tile still matters.

        Returns:
            (blocks, tiles), (count,) and a number.
        """
        lower = np.full((len(blocks), LANES), np.inf)
        bound_below, bound_above = bound_kernels(chunk(self._mean.shape[1]), self._axes.shape[1])
        bound_below(blocks, self._mean, self._lowest, lower)
        lower.reshape(-1)[count:] = np.inf  # what only continues the targets needs nothing
        needed = np.empty((len(blocks), len(self._centre)), np.bool_)
        spread = bound_above(
            blocks, lower, margin, self._centre, self._highest, self._axes, self._slope, self._across, needed
        )
        return needed, lower.reshape(-1)[:count], spread


def _principal_axes(offsets: np.ndarray) -> np.ndarray:
    """The directions in which points of each tile, (tiles, m, k), vary most, (tiles, k, at most three)."""
    tiles, _, k = offsets.shape
    if k > _MOST_FEATURES:
        return np.empty((tiles, k, 0))
    square = np.nan_to_num(offsets.transpose(0, 2, 1) @ offsets, posinf=0.0, neginf=0.0)
    return np.linalg.eigh(square)[1][:, :, max(k - _AXES, 0) :]


def _with_features(rows: np.ndarray) -> np.ndarray:
    """Rows (..., k) continued by zeros to as many features as blocks of targets have."""
    k = rows.shape[-1]
    return as_rows(np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, -k % chunk(k))]))


@functools.cache
def bound_kernels(features: int, directions: int):
    """The kernels (`bound_below`, `bound_above`) that take `features` features at a time, for tiles with so many axes.

    Both numbers are constants of the machine code, so that short loops over them vanish.
    """

    @compiled(fastmath=_CONTRACT)
    def bound_below(queries, mean, lowest, lower):
        """lower[i] = max_T ⟨q_i, mean_T⟩ + lowest_T.

        Args:
            queries: (blocks, k', LANES), the targets.
            mean: (tiles, k') and lowest: (tiles,).
            lower: (blocks, LANES), written.
        """
        use_widest_vectors()  # type: ignore[call-arg]
        scratch = carray(stack_tile(), (TILE, LANES))  # type: ignore[call-arg]
        bound, greatest = scratch[0], scratch[1]
        for block in range(len(queries)):
            greatest[:] = -np.inf
            for tile in range(len(mean)):
                for t in range(LANES):
                    total = lowest[tile]
                    for a in range(features):
                        total += queries[block, a, t] * mean[tile, a]
                    bound[t] = total
                for first in range(features, mean.shape[1], features):
                    for t in range(LANES):
                        for a in range(features):
                            bound[t] += queries[block, first + a, t] * mean[tile, first + a]
                for t in range(LANES):
                    greatest[t] = greatest[t] if bound[t] <= greatest[t] else bound[t]  # a nan stays
            lower[block] = greatest

    @compiled(fastmath=_CONTRACT)
    def bound_above(queries, lower, margin, centre, highest, axes, slope, across, needed):
        """needed[b, T]: ⟨q_i, c_T⟩ + highest_T + Σ_a |⟨q_i, axis_Ta⟩ + slope_Ta| + |q_i| across_T ≥ lower_i − margin.

        Args:
            queries: (blocks, k', LANES), the targets i of each block b.
            lower: (blocks, LANES).
            margin: how far below the lower bound a tile still matters.
            centre: (tiles, k'), highest: (tiles,), axes: (tiles, directions, k'), slope: (tiles, directions),
                across: (tiles,).
            needed: (blocks, tiles), written: whether the tile matters for any target of the block.

        Returns:
            The largest difference of the two bounds.
        """
        use_widest_vectors()  # type: ignore[call-arg]
        scratch = carray(stack_tile(), (TILE, LANES))  # type: ignore[call-arg]
        bound, length, spread, along = scratch[0], scratch[1], scratch[2], scratch[3:]
        spread[:] = -np.inf
        for block in range(len(queries)):
            length[:] = 0.0
            for a in range(queries.shape[1]):
                for t in range(LANES):
                    length[t] += queries[block, a, t] ** 2
            for t in range(LANES):
                length[t] = np.sqrt(length[t])
            for tile in range(len(centre)):
                for t in range(LANES):
                    total = highest[tile] - lower[block, t] + across[tile] * length[t]
                    for a in range(features):
                        total += queries[block, a, t] * centre[tile, a]
                    bound[t] = total
                for axis in range(directions):
                    for t in range(LANES):
                        total = slope[tile, axis]
                        for a in range(features):
                            total += queries[block, a, t] * axes[tile, axis, a]
                        along[axis, t] = total
                for first in range(features, centre.shape[1], features):
                    for t in range(LANES):
                        for a in range(features):
                            bound[t] += queries[block, first + a, t] * centre[tile, first + a]
                    for axis in range(directions):
                        for t in range(LANES):
                            for a in range(features):
                                along[axis, t] += queries[block, first + a, t] * axes[tile, axis, first + a]
                idle = 0
                for t in range(LANES):
                    total = bound[t]
                    for axis in range(directions):
                        total += abs(along[axis, t])
                    spread[t] = spread[t] if total <= spread[t] else total
                    idle += 1 if total < -margin else 0  # what is not a number is needed
                needed[block, tile] = idle < LANES
        return spread.max()

    return bound_below, bound_above
