"""Uniform grids along the singular vectors of QᵀK, as coarse as the error of interpolation allows."""

from dataclasses import dataclass

import numpy as np

from pde_solver.kernel_sums.diagonal_score import DiagonalScore

_MOST_NODES = {1: 4000, 2: 1_500_000, 3: 2_000_000}
# Error of the mean relative to the largest |y| with spacings h of the grids: C (rate · h)^order for each axis. On the
# side of the sources that of e^η, largest in the middle of the stencil; for the targets that of tanh, the mean under two
# equal atoms at the ends of the range.
_SOURCE_ERROR = {4: 3e-2, 6: 5e-3, 8: 1.2e-3}
_TARGET_ERROR = {4: 0.12, 6: 0.3, 8: 1.5}
_ROUND_OFF = 1e-13
# Boxes are this much, in units of the spacing, within what the stencils reach.
_SLACK = 1e-5


@dataclass(frozen=True, eq=False)
class Lattice:
    """A uniform grid along orthonormal axes that surrounds a box by what the stencils need.

    Args:
        axes: (d, d) the axes in columns.
        lower, upper: (d,) the box.
        spacing: (d,).
        order: nodes of a stencil along each axis.
        counts: nodes along each axis.
    """

    axes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    spacing: np.ndarray
    order: int
    counts: tuple[int, ...]

    @staticmethod
    def around(axes: np.ndarray, box: np.ndarray, spacing: np.ndarray, order: int) -> "Lattice":
        """With at most this spacing."""
        width = box[1] - box[0]
        cells = np.maximum(np.ceil(np.minimum(width / spacing, 1e8)), 1)
        # not so fine that the round-off of coordinates counts
        finest = 1e-9 * max(np.abs(box).max(), np.finfo(float).tiny)
        spacing = np.maximum(width / (cells - 2 * _SLACK), finest)
        counts = tuple(int(n) for n in cells + order)
        return Lattice(axes, box[0], box[1], spacing, order, counts)

    @property
    def _begin(self) -> np.ndarray:
        return self.lower - (self.order // 2 - 1 + _SLACK) * self.spacing

    def positions(self, points: np.ndarray) -> np.ndarray:
        """Points in units of the spacing from node 0; from outside the box the nearest in it."""
        margin = self.order // 2
        last = np.array(self.counts) - margin - 0.5 * _SLACK
        return np.clip((points @ self.axes - self._begin) / self.spacing, margin - 1, last)

    def nodes(self) -> list[np.ndarray]:
        """Coordinates of the nodes on each axis."""
        return [a + h * np.arange(n) for a, h, n in zip(self._begin, self.spacing, self.counts, strict=True)]


@dataclass(frozen=True, eq=False)
class RotatedGrids:
    """The grids of one head.

    Args:
        score: its score.
        order: of interpolation.
        sources, targets: the grids.
        error: expected error of the mean relative to the largest |y|.
    """

    score: DiagonalScore
    order: int
    sources: Lattice
    targets: Lattice
    error: float

    @staticmethod
    def planned(score: DiagonalScore, order: int, tolerance: float) -> "RotatedGrids | None":
        """Grids that promise the tolerance; None if they would be too large."""
        dimension = len(score.coupling)
        share = (tolerance - 2 * _ROUND_OFF) / (2 * dimension)
        if share <= 0:
            return None
        # how fast the logarithm of the kernel varies in η: at most as at a corner of the ranges
        corners = np.abs(score.coupling * score.targets[:, None] - score.square * score.sources[None])
        source_rate = corners.max(axis=(0, 1)) + np.sqrt(score.square)
        if np.allclose(score.coupling, score.square, rtol=1e-12, atol=0.0):
            # e^{−|ξ − η|²/2}, scaled: where there is mass near a target nothing counts that is many widths away
            source_rate = np.minimum(source_rate, np.sqrt(score.square) * (1 + np.sqrt(2 * np.log(1e3 / tolerance))))
        # the mean is a function of coupling · ξ, and varies as fast as the spread of η allows
        target_rate = score.coupling * 0.5 * (score.sources[1] - score.sources[0])
        # the derivative of order p of η e^{aη} is a^{p−1} (aη + p) e^{aη}
        largest = np.abs(score.sources).max()
        source_power = source_rate ** (order - 1) * (source_rate + (order / largest if largest > 0 else 0.0))
        source_error = _SOURCE_ERROR[order] * source_power
        target_error = _TARGET_ERROR[order] * target_rate**order
        with np.errstate(divide="ignore"):
            h_source, h_target = (share / source_error) ** (1 / order), (share / target_error) ** (1 / order)
        sources = Lattice.around(score.right, score.sources, h_source, order)
        targets = Lattice.around(score.left, score.targets, h_target, order)
        most = max(np.prod(lattice.counts, dtype=float) for lattice in (sources, targets))
        if most > _MOST_NODES[dimension]:
            return None
        error = _ROUND_OFF + float(np.sum(source_error * sources.spacing**order))
        error += float(np.sum(target_error * targets.spacing**order))
        return RotatedGrids(score, order, sources, targets, error)
