"""Order, grid, degrees and radii with which sums on S² by spherical harmonics keep a tolerance, and what they cost.

The degrees follow from the kernel, the grid from the error of interpolation on it; the order is the one with which an
evaluation takes least time.
"""

from dataclasses import dataclass

import numpy as np

from pde_solver.kernel_sums.harmonics import table_bytes, truncation
from pde_solver.kernel_sums.lagrange import ORDERS
from pde_solver.kernel_sums.method import Problem
from pde_solver.models.attention import Attention
from pde_solver.parallel import max_over_ranks, min_over_ranks

# Error of the mean attention ≈ number · (1 + r)^{(order−1)/2} · spacing^order, measured on uniform, smooth, bumpy and
# clustered laws for 0 ≤ r ≤ 256 with targets that attend to what is around them; one of them comes within a factor 2.
_ERROR = {4: 0.09, 6: 0.105, 8: 0.19}
# Where targets attend to what is elsewhere, finer grids leave room for larger errors, up to this factor.
_ROOM = 4.0
# Round-off of the mean attention on any grid: smaller tolerances cannot be promised.
_ROUND_OFF = 1e-13
# Error ≈ number · spacing^order for interpolation in √r.
_ERROR_SHELLS = {4: 0.45, 6: 2.8, 8: 11.0}
# Seconds for a source, for a target, for a target with radii, for a sphere, for a node, for degree² · latitude.
_SCATTER = {4: 9e-9, 6: 16e-9, 8: 24e-9}
_GATHER = {4: 18e-9, 6: 32e-9, 8: 46e-9}
_GATHER_SHELLS = {4: 90e-9, 6: 180e-9, 8: 320e-9}
_OVERHEAD, _PRODUCTS, _ANALYSIS, _SYNTHESIS, _LEGENDRE = 1.5e-4, 6e-5, 8e-9, 22e-9, 3.3e-10
# What the fields of one head may take of the memory.
_MOST_BYTES = 400e6
# What the Legendre functions of all heads may take of it.
_MOST_TABLE_BYTES = 200e6


@dataclass(frozen=True)
class Shells:
    """Radii ρ² at equally spaced ρ = first + k · spacing: e^{−r} F(r û) is a smooth and even function of ρ = √r.

    Args:
        first: the first ρ.
        spacing: the distance of two ρ.
        count: how many; 1 means that all targets have this radius.
    """

    first: float
    spacing: float
    count: int

    @property
    def radii(self) -> np.ndarray:
        """The radii r = ρ², (count,)."""
        return (self.first + self.spacing * np.arange(self.count)) ** 2

    def positions(self, vectors: np.ndarray) -> np.ndarray:
        """Where the lengths of vectors (n, 3) are among the ρ, in units of the spacing, (n,)."""
        x, y, z = vectors.T
        return ((x * x + y * y + z * z) ** 0.25 - self.first) / self.spacing


@dataclass(frozen=True)
class Resolution:
    """What the sums are computed with, and what comes of it.

    Args:
        order: nodes of interpolation along each axis.
        latitudes: n_θ of the grid.
        degrees: for each head the largest degree of the harmonics.
        shells: for each head the radii.
        cutoff: what the truncation leaves out of a kernel, relative to its mean over the sphere.
        error: expected largest error of the mean attention.
        seconds: expected time of one evaluation on one core.
    """

    order: int
    latitudes: int
    degrees: tuple[int, ...]
    shells: tuple[Shells, ...]
    cutoff: float
    error: float
    seconds: float

    @property
    def degree(self) -> int:
        """The largest degree of all heads."""
        return max(self.degrees)

    def __str__(self) -> str:
        spheres = sum(shell.count for shell in self.shells)
        name = f"order {self.order}, {self.latitudes} x {2 * self.latitudes} grid, degree {self.degree}"
        return name + (f", {spheres} radii" if spheres > len(self.shells) else "")


def fastest_resolution(problem: Problem) -> Resolution | None:
    """The fastest order and grid that keep the tolerance; None where they would be too large. Collective.

    Args:
        problem: heads, targets and sources on S².
    """
    lengths = [_radius_range(head, problem) for head in problem.heads]
    around = all(aligned(head) for head in problem.heads)
    cutoff = max((0.05 / problem.labels if around else 1e-5) * problem.tolerance, 1e-15)
    degrees = tuple(truncation(high, cutoff) + 1 for _, high in lengths)
    candidates = [
        found for order in ORDERS if order > 1 if (found := _with_order(order, problem, lengths, degrees, cutoff))
    ]
    return min(candidates, key=lambda resolution: resolution.seconds, default=None)


def _with_order(
    order: int, problem: Problem, lengths: list[tuple[float, float]], degrees: tuple[int, ...], cutoff: float
) -> Resolution | None:
    """The coarsest grid with which interpolation of this order keeps the tolerance."""
    longest = max(high for _, high in lengths)
    rate = _ERROR[order] * (1 + longest) ** ((order - 1) / 2)  # error = rate · spacing^order
    rate *= 1.0 if all(aligned(head) for head in problem.heads) else _ROOM
    wanted = max(np.pi * (rate / (0.8 * problem.tolerance)) ** (1 / order), max(degrees) + 1, 2 * order)
    latitudes = _round_up(wanted)
    error = float(rate * (np.pi / latitudes) ** order + 0.1 * problem.tolerance + _ROUND_OFF)
    shells = tuple(_shells(low, high, order, problem.tolerance) for low, high in lengths)
    points = 2 * latitudes**2
    field_bytes = 32 * points * max(shell.count for shell in shells)
    legendre_bytes = sum(table_bytes(degree, latitudes) for degree in set(degrees))
    if error > problem.tolerance or field_bytes > _MOST_BYTES or legendre_bytes > _MOST_TABLE_BYTES:
        return None
    spheres = sum(shell.count for shell in shells)
    work = latitudes * (max(degrees) + 1) ** 2
    interpolation = sum(_GATHER_SHELLS[order] if shell.count > 1 else _GATHER[order] for shell in shells)
    seconds = _OVERHEAD + problem.labels * (
        problem.source_count * _SCATTER[order]
        + problem.target_count * interpolation
        + (1 + spheres) * _PRODUCTS
        + points * (_ANALYSIS + spheres * _SYNTHESIS)
        + (0.3 + spheres) * work * _LEGENDRE
    )
    return Resolution(order, latitudes, degrees, shells, cutoff, error, seconds)


def _shells(low: float, high: float, order: int, tolerance: float) -> Shells:
    """One radius, or as many as interpolation in √r needs, with half a stencil beyond both ends."""
    if low == high:
        return Shells(np.sqrt(low), 1.0, 1)
    spacing = (0.5 * tolerance / _ERROR_SHELLS[order]) ** (1 / order)
    first, last = np.sqrt(low), np.sqrt(high)
    return Shells(first - (order // 2) * spacing, spacing, int((last - first) / spacing) + order + 2)


def _radius_range(head: Attention, problem: Problem) -> tuple[float, float]:
    """The least and the largest |u| = |β KᵀQ x| over all targets; equal where it is the same for all x. Collective."""
    form = bilinear_form(head)
    square = form.T @ form
    mean = float(np.trace(square)) / 3
    if np.abs(square - mean * np.eye(3)).max() <= 1e-12 * mean:
        return float(np.sqrt(mean)), float(np.sqrt(mean))
    lengths = np.linalg.norm(problem.targets @ form.T, axis=1)
    low = float(min_over_ranks(problem.comm, np.min(lengths, initial=np.inf)))
    high = float(max_over_ranks(problem.comm, np.max(lengths, initial=-np.inf)))
    return (low, high) if low <= high else (0.0, 0.0)


def aligned(head: Attention) -> bool:
    """Whether û = x, so that a target attends to what is around it."""
    form = bilinear_form(head)
    return bool(np.abs(form - form[0, 0] * np.eye(3)).max() <= 1e-12 * form[0, 0])


def _round_up(count: float) -> int:
    """The next even number of the form 2^a 3^b 5^c."""
    number = 2 * int(np.ceil(count / 2))
    while True:
        rest = number
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return number
        number += 2


def bilinear_form(head: Attention) -> np.ndarray:
    """β KᵀQ, (3, 3), with which the score is ⟨β KᵀQ x, y⟩."""
    query, key = (np.eye(3) if matrix is None else matrix for matrix in (head.query, head.key))
    return head.beta * (key.T @ query)
