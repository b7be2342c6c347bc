"""Points of the circle on a grid of angles: their Fourier coefficients, and values of Fourier series at them."""

from dataclasses import dataclass

import numpy as np
from mpi4py import MPI
from scipy.fft import irfft, rfft

from pde_solver.kernel_sums.lagrange import gather_means, scatter, stencil
from pde_solver.parallel import max_over_ranks, sum_over_ranks

#: Order of interpolation where the points are not a lattice themselves.
ORDER = 8
# Angles are on a lattice if they differ from it by less than this.
_ON_LATTICE = 1e-14


@dataclass(frozen=True, eq=False)
class PointsOnCircle:
    """Points on a grid of angles 2πk/n + offset: at nodes, if they form a lattice themselves, or between them.

    Args:
        nodes: n.
        offset: angle of node 0.
        order: 1 or the order of interpolation.
        base, shift: stencils of the points.
    """

    nodes: int
    offset: float
    order: int
    base: np.ndarray
    shift: np.ndarray

    @staticmethod
    def placed(comm: MPI.Comm, angles: np.ndarray, count: int, nodes: int) -> "PointsOnCircle":
        """Points of all ranks on their own lattice of `count` angles, or else on a grid of `nodes`. Collective."""
        spacing = 2 * np.pi / count
        phase = sum_over_ranks(comm, np.exp(1j * count * angles).sum())
        offset = float(np.angle(phase)) / count
        position = (angles - offset) / spacing
        distance = spacing * np.abs(position - np.rint(position)).max(initial=0.0)
        if max_over_ranks(comm, distance) <= _ON_LATTICE:
            base, shift = stencil(np.mod(np.rint(position), count)[:, None], 1)
            return PointsOnCircle(count, offset, 1, base, shift)
        position = np.mod(angles, 2 * np.pi) * (nodes / (2 * np.pi))
        base, shift = stencil(position[:, None] + (ORDER // 2 - 1), ORDER)
        return PointsOnCircle(nodes, 0.0, ORDER, base, shift)

    def coefficients(self, weights: np.ndarray, count: int) -> np.ndarray:
        """Σ_j w_j e^{−imφ_j} over this rank's points for m < count, (labels, count)."""
        padded = np.zeros((len(weights), self._padded))
        for row, grid in zip(np.ascontiguousarray(weights), padded, strict=True):
            scatter(self.order, self.base, self.shift, row, grid)
        left = self._left
        grid = padded[:, left : left + self.nodes]
        if self.order > 1:
            grid[:, self.nodes - left :] += padded[:, :left]
            grid[:, : self._padded - left - self.nodes] += padded[:, left + self.nodes :]
        orders = np.arange(count)
        # the coefficients of a measure on a lattice repeat: c_{m+n} = c_m and c_{n−m} is the conjugate of c_m
        transform, within = rfft(grid), orders % self.nodes
        mirrored = within > self.nodes // 2
        values = transform[:, np.where(mirrored, self.nodes - within, within)]
        values = np.where(mirrored, values.conj(), values) * np.exp(-1j * orders * self.offset)
        return np.ascontiguousarray(values)  # indexing has turned it round

    def series(self, fields: np.ndarray) -> np.ndarray:
        """Real Σ_m f_m e^{imψ} over positive and negative m at the nodes, (..., nodes)."""
        turned = fields * np.exp(1j * np.arange(fields.shape[-1]) * self.offset)
        return irfft(folded(turned, self.nodes), self.nodes) * self.nodes

    def means(
        self, fields: np.ndarray, direction: np.ndarray | None, mean: np.ndarray, denominator: np.ndarray
    ) -> None:
        """Interpolate denominator and numerators (3, nodes) to the points and divide."""
        places = np.arange(-self._left, self._padded - self._left) % self.nodes
        columns = np.ascontiguousarray(fields[:, places].T)
        gather_means(self.order, self.base, self.shift, columns, direction, mean, denominator)

    @property
    def _left(self) -> int:
        """Nodes that are repeated before node 0."""
        return self.order // 2 - 1 if self.order > 1 else 0

    @property
    def _padded(self) -> int:
        return self.nodes + (self.order if self.order > 1 else 0)


def folded(fields: np.ndarray, nodes: int) -> np.ndarray:
    """Fourier coefficients m ≥ 0 of real functions as n nodes see them, (..., n // 2 + 1) for `irfft`."""
    half = nodes // 2 + 1
    count = fields.shape[-1]
    if count <= (nodes + 1) // 2:
        return np.concatenate([fields, np.zeros((*fields.shape[:-1], half - count))], axis=-1)
    folded = np.zeros((*fields.shape[:-1], nodes), dtype=complex)
    for m in range(count):
        folded[..., m % nodes] += fields[..., m]
        if m:
            folded[..., -m % nodes] += fields[..., m].conj()
    return folded[..., :half]


def angles_of(points: np.ndarray) -> np.ndarray:
    """The angles φ of points (n, 2), (n,)."""
    return np.arctan2(points[:, 1], points[:, 0])
