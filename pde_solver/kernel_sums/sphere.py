"""Fast summation on the sphere S²: laws become spherical harmonics, heads become fields on a grid.

With u = β KᵀQ x the sums of a head are F(u) = ∫ e^{⟨u, y⟩} ν(dy) and its gradient, functions on R³. The masses are
scattered on a grid of latitudes and longitudes, the grid becomes the coefficients of the law in spherical harmonics
(only they are summed over the ranks), and from them come e^{−r} F and e^{−r} ∇F on the sphere of radius r = |u|, which
are interpolated at the targets. Where |u| differs between targets there is one sphere for each of several radii.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.harmonics import bessel, harmonics, truncation, with_moments
from pde_solver.kernel_sums.lagrange import ORDERS, gather, gather_means, scatter, stencil
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.manifolds import Sphere
from pde_solver.models.attention import Attention
from pde_solver.parallel import max_over_ranks, min_over_ranks, sum_over_ranks

# Round-off of a field, relative to its largest value.
_ROUND_OFF = 4e-16
# Error of the mean attention ≈ number · (1 + r)^{(order−1)/2} · spacing^order, measured on uniform, smooth, bumpy and
# clustered laws for 0 ≤ r ≤ 256 with targets that attend to what is around them; one of them comes within a factor 2.
_ERROR = {4: 0.09, 6: 0.105, 8: 0.19}
# Where targets attend to what is elsewhere, finer grids leave room for larger errors, up to this factor.
_ROOM = 4.0
# Error at one target ≈ number · spacing^order times the distance of the mean it attends to from û, see `_distance`.
_ERROR_FAR = {4: 0.15, 6: 0.05, 8: 0.006}
# Error ≈ number · spacing^order for interpolation in √r.
_ERROR_SHELLS = {4: 0.45, 6: 2.8, 8: 11.0}
# Seconds for a source, for a target, for a target with radii, for a sphere, for a node, for degree² · latitude.
_SCATTER = {4: 9e-9, 6: 16e-9, 8: 24e-9}
_GATHER = {4: 18e-9, 6: 32e-9, 8: 46e-9}
_GATHER_SHELLS = {4: 90e-9, 6: 180e-9, 8: 320e-9}
_OVERHEAD, _PRODUCTS, _ANALYSIS, _SYNTHESIS, _LEGENDRE = 1.5e-4, 6e-5, 8e-9, 22e-9, 3.3e-10
# What the fields of one head may take of the memory.
_MOST_BYTES = 400e6
# Nodes that a grid is continued by on every side, at least: half the largest stencil and one.
_MARGIN = 5


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


@dataclass(frozen=True)
class Plan:
    """What the sums are computed with.

    Args:
        order: nodes of interpolation along each axis.
        latitudes: n_θ of the grid.
        degrees: for each head the largest degree of the harmonics.
        shells: for each head the radii.
        cutoff: what the truncation leaves out of a kernel, relative to its mean over the sphere.
    """

    order: int
    latitudes: int
    degrees: tuple[int, ...]
    shells: tuple[Shells, ...]
    cutoff: float

    @property
    def degree(self) -> int:
        """The largest degree of all heads."""
        return max(self.degrees)


@dataclass(frozen=True, eq=False)
class _Stencils:
    base: np.ndarray
    offset: np.ndarray


class SphereSums(Sums):
    """Sums over laws on S² by spherical harmonics.

    Args:
        problem: heads, targets and sources.
        plan: order, grid and degrees.

    Source: addition theorem of spherical harmonics; derived for this project.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self._problem, self._plan = problem, plan
        self._sources = _stencils(problem.sources, plan)
        self._biases: list[np.ndarray | None] = [None]
        self._laws: list[tuple[int, float]] = []  # of each head: which bias, and the largest
        for head in problem.heads:
            self._laws.append(self._law(head))
        self._targets = self._target_stencils()
        n = plan.latitudes
        self._grid = np.zeros((n + 2 * _MARGIN, 2 * n + 2 * _MARGIN))
        self._rings = np.empty((4, n, 2 * n))
        self._fields_of: dict[int, np.ndarray] = {}
        self._coefficients = np.empty((0, 0, 1, 0), dtype=complex)
        self._near_grids: dict[int, np.ndarray] = {}
        self._positions: _Stencils | None = None

    def _law(self, head: Attention) -> tuple[int, float]:
        """Which of the scattered laws, weighted by e^{bias − largest}, a head attends to, and the largest bias."""
        bias = head.key_bias(head.keys(self._problem.sources))
        if bias is None:
            return 0, 0.0
        comm = self._problem.comm
        largest = float(max_over_ranks(comm, np.max(bias, initial=-np.inf)))
        least = float(min_over_ranks(comm, np.min(bias, initial=np.inf)))
        if largest - least <= 1e-14 * (1 + abs(largest)):
            return 0, largest
        self._biases.append(np.exp(bias - largest))
        return len(self._biases) - 1, largest

    def _target_stencils(self) -> list[tuple[_Stencils, np.ndarray | float]]:
        """For each head the stencils at the directions û, and the radii r."""
        problem, plan = self._problem, self._plan
        known: dict[bytes, _Stencils] = {}
        result: list[tuple[_Stencils, np.ndarray | float]] = []
        for head, shells in zip(problem.heads, plan.shells, strict=True):
            form = bilinear_form(head)
            if shells.count > 1:
                u = problem.targets @ form.T
                result.append((_stencils(u, plan, shells), np.linalg.norm(u, axis=1)))
                continue
            radius = float(shells.radii[0])
            turn = form / radius if radius else np.eye(3)
            if np.abs(turn - np.eye(3)).max() <= 1e-12:
                turn = np.eye(3)
                if problem.targets is problem.sources:
                    known[turn.tobytes()] = self._sources
            if turn.tobytes() not in known:
                known[turn.tobytes()] = _stencils(problem.targets @ turn.T, plan)
            result.append((known[turn.tobytes()], radius))
        return result

    def attend(
        self,
        weights: np.ndarray,
        mixing: np.ndarray,
        directions: Sequence[np.ndarray] | None = None,
        *,
        partition: bool = False,
    ) -> list[Attended]:
        """What each head of the problem attends to. Collective."""
        self._coefficients = self._transform(weights)
        self._near_grids.clear()
        shape = self._coefficients.shape
        attended = self._coefficients.reshape(-1, shape[3]) @ np.asarray(mixing, dtype=complex).T
        attended = attended.reshape(*shape[:3], len(mixing))
        result = []
        for h in range(len(self._problem.heads)):
            own = None if directions is None else np.ascontiguousarray(directions[h])
            result.append(self._attend(h, attended[:, :, self._laws[h][0]], mixing, own, partition))
        return result

    def _transform(self, weights: np.ndarray) -> np.ndarray:
        """Coefficients [m, l] of all labels' laws for each bias, (L + 1, L + 1, biases, labels)."""
        plan, count = self._plan, self._plan.degree + 1
        masses = np.empty((len(self._biases), len(weights), plan.latitudes, 2 * plan.latitudes))
        for b, factor in enumerate(self._biases):
            for z, weight in enumerate(weights):
                self._grid[:] = 0.0
                mass = np.ascontiguousarray(weight) if factor is None else weight * factor
                scatter(plan.order, self._sources.base, self._sources.offset, mass, self._grid)
                _fold(self._grid, masses[b, z])
        coefficients = harmonics(plan.degree, plan.latitudes).analyse(masses.reshape(-1, *masses.shape[2:]))
        triangle = _triangle(count)
        coefficients[triangle] = sum_over_ranks(self._problem.comm, coefficients[triangle])
        return coefficients.reshape(count, count, len(self._biases), len(weights))

    def _attend(self, h: int, law: np.ndarray, mixing: np.ndarray, directions, partition: bool) -> Attended:
        plan, shells = self._plan, self._plan.shells[h]
        stencils, radii = self._targets[h]
        labels, n = law.shape[2], len(stencils.base)
        dimensions = () if directions is not None else (3,)
        mean = np.empty((labels, n, *dimensions))
        log_partition = np.empty((labels, n)) if partition else None
        doubtful: np.ndarray | None = None
        for z in range(labels):
            fields, least, largest = self._fields(h, law[:, :, z])
            uncertain = self._uncertainty(h, law[0, 0, z].real, largest)
            suspicious = not self._sees_itself(h, z, law, mixing) and (
                least * self._problem.tolerance < uncertain or self._far(h, fields)
            )
            denominator = np.empty(n if partition or suspicious else 0)

            def interpolate(along, out, denominator, fields=fields, largest=largest):
                where = fields if shells.count > 1 else fields[0]
                base, offset = stencils.base, stencils.offset
                gather_means(plan.order, base, offset, where, along, out, denominator, 1e-18 * largest, 1.0)

            interpolate(directions, mean[z], denominator)
            if log_partition is not None:
                log_partition[z] = np.log(denominator) + radii + self._laws[h][1]
            if suspicious:
                whole = mean[z]
                if directions is not None:
                    whole = np.empty((n, 3))
                    interpolate(None, whole, np.empty(0))
                near = self._near_targets(z if len(mixing) == mixing.shape[1] else None)
                error = uncertain / denominator + self._far_error(h, whole)
                doubt = error * near > self._problem.tolerance
                if doubt.any():
                    doubtful = np.zeros((labels, n), dtype=bool) if doubtful is None else doubtful
                    doubtful[z] = doubt
        return Attended(mean, log_partition, doubtful)

    def _fields(self, h: int, law: np.ndarray) -> tuple[np.ndarray, float, float]:
        """e^{−r} (F, ∇F) on the padded grids of all radii, (radii, ..., 4), with the extremes of e^{−r} F."""
        plan, count = self._plan, self._plan.degrees[h] + 1
        radii = plan.shells[h].radii
        moments = with_moments(np.ascontiguousarray(law[:count, :count, None]))[:, :, 0]
        factors = 4 * np.pi * _bessel(tuple(radii), count - 1)
        if len(radii) not in self._fields_of:
            self._fields_of[len(radii)] = np.empty((len(radii), *self._grid.shape, 4))
        fields = self._fields_of[len(radii)]
        least, largest = np.inf, -np.inf
        for k in range(len(radii)):
            harmonics(count - 1, plan.latitudes).synthesise(moments * factors[k][:, None], self._rings)
            low, high = _pad(self._rings, fields[k])
            least, largest = min(least, low), max(largest, high)
        return fields, least, largest

    def _uncertainty(self, h: int, mass: float, largest: float) -> float:
        """Absolute error of e^{−r} F."""
        mass *= np.sqrt(4 * np.pi)
        r = self._plan.shells[h].radii.max()
        return max(_ROUND_OFF * largest, self._plan.cutoff * mass / max(2 * r, 1.0))

    def _far(self, h: int, fields: np.ndarray) -> bool:
        """Whether interpolation may be worse than planned anywhere, because what is attended to is far from û."""
        radii = self._plan.shells[h].radii
        most = self._problem.tolerance / self._far_scale
        return any(_far_anywhere(field, r, self._plan.order, most) for field, r in zip(fields, radii, strict=True))

    @property
    def _far_scale(self) -> float:
        return _ERROR_FAR[self._plan.order] * (np.pi / self._plan.latitudes) ** self._plan.order

    def _far_error(self, h: int, mean: np.ndarray) -> np.ndarray:
        """Error of interpolation at the targets: e^{⟨u, y⟩} changes at the rate of the part of y across û."""
        error = np.empty(len(mean))
        _far_errors(self._problem.targets @ bilinear_form(self._problem.heads[h]).T, mean, self._plan.order, error)
        return self._far_scale * error

    def _sees_itself(self, h: int, z: int, law: np.ndarray, mixing: np.ndarray) -> bool:
        """Whether a label attends to itself where it is, so that the denominator is small only where its law is.

        Then e^{−r} F ≥ share · mass near, which is far above the absolute error.
        """
        if mixing.shape[0] != mixing.shape[1] or self._laws[h][0] or not _aligned(self._problem.heads[h]):
            return False
        share = mixing[z, z] * self._coefficients[0, 0, 0, z].real
        return bool(self._plan.cutoff * law[0, 0, z].real <= self._problem.tolerance * share)

    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """∫ e^{r(⟨x, y⟩ − 1)} μ_z(dy) at points x, relative to the largest, for the largest r of all heads."""
        stencils = _stencils(points, self._plan)
        return np.stack([self._near(z, stencils) for z in range(self._coefficients.shape[3])])

    def _near_targets(self, label: int | None) -> np.ndarray:
        """The mass of a label near the targets, or the most that any label has there."""
        if self._positions is None:
            same = self._problem.targets is self._problem.sources
            self._positions = self._sources if same else _stencils(self._problem.targets, self._plan)
        labels = range(self._coefficients.shape[3]) if label is None else [label]
        return np.max([self._near(z, self._positions) for z in labels], axis=0)

    def _near(self, label: int, stencils: _Stencils) -> np.ndarray:
        plan = self._plan
        if label not in self._near_grids:
            radius = max(float(shells.radii.max()) for shells in plan.shells)
            law = self._coefficients[:, :, 0, label, None] * _bessel((radius,), plan.degree)[0][:, None]
            smooth = np.empty((1, plan.latitudes, 2 * plan.latitudes))
            harmonics(plan.degree, plan.latitudes).synthesise(np.ascontiguousarray(law), smooth)
            grid = np.empty((*self._grid.shape, 1))
            _, largest = _pad(smooth, grid)
            self._near_grids[label] = grid / largest
        near = np.empty((len(stencils.base), 1))
        gather(plan.order, stencils.base, stencils.offset, self._near_grids[label], near)
        return np.clip(near[:, 0], 0.0, 1.0)


def proposals(problem: Problem) -> list[Proposal]:
    """Sums by spherical harmonics: the fastest order and grid that keep the tolerance. Collective.

    Args:
        problem: heads, targets and sources.

    Returns:
        One proposal, or none where the manifold is not S², or the grids would be too large.
    """
    if problem.manifold != Sphere(3) or not problem.heads:
        return []
    lengths = [_radius_range(head, problem) for head in problem.heads]
    aligned = all(_aligned(head) for head in problem.heads)
    cutoff = max((0.05 / problem.labels if aligned else 1e-5) * problem.tolerance, 1e-15)
    degrees = tuple(truncation(high, cutoff) + 1 for _, high in lengths)
    candidates = [
        proposal for order in ORDERS if order > 1 if (proposal := _propose(problem, order, lengths, degrees, cutoff))
    ]
    return [min(candidates, key=lambda proposal: proposal.seconds)] if candidates else []


def _propose(problem: Problem, order: int, lengths, degrees, cutoff: float) -> Proposal | None:
    """The coarsest grid with which interpolation of this order keeps the tolerance."""
    longest = max(high for _, high in lengths)
    rate = _ERROR[order] * (1 + longest) ** ((order - 1) / 2)  # error = rate · spacing^order
    rate *= 1.0 if all(_aligned(head) for head in problem.heads) else _ROOM
    wanted = max(np.pi * (rate / (0.8 * problem.tolerance)) ** (1 / order), max(degrees) + 1, 2 * order)
    latitudes = _round_up(wanted)
    shells = tuple(_shells(low, high, order, problem.tolerance) for low, high in lengths)
    plan = Plan(order, latitudes, degrees, shells, cutoff)
    spheres = sum(shell.count for shell in shells)
    points = 2 * latitudes**2
    if 32 * points * max(shell.count for shell in shells) > _MOST_BYTES:
        return None
    error = rate * (np.pi / latitudes) ** order + 0.1 * problem.tolerance
    work = latitudes * (max(degrees) + 1) ** 2
    interpolation = sum(_GATHER_SHELLS[order] if shell.count > 1 else _GATHER[order] for shell in shells)
    seconds = _OVERHEAD + problem.labels * (
        problem.source_count * _SCATTER[order]
        + problem.target_count * interpolation
        + (1 + spheres) * _PRODUCTS
        + points * (_ANALYSIS + spheres * _SYNTHESIS)
        + (0.3 + spheres) * work * _LEGENDRE
    )
    communication = 8 * problem.labels * (max(degrees) + 1) * (max(degrees) + 2)
    name = f"sphere, order {order}, {latitudes} x {2 * latitudes} grid, degree {max(degrees)}"
    name += f", {spheres} radii" if spheres > len(shells) else ""
    return Proposal(name, "sphere", seconds, error, communication, lambda: SphereSums(problem, plan))


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


def _aligned(head: Attention) -> bool:
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


@functools.lru_cache(maxsize=16)
def _triangle(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where [m, l] has l ≥ m."""
    orders, degrees = np.triu_indices(count)
    return orders, degrees


@functools.lru_cache(maxsize=64)
def _bessel(radii: tuple[float, ...], degree: int) -> np.ndarray:
    return bessel(np.array(radii), degree)


def _stencils(vectors: np.ndarray, plan: Plan, shells: Shells | None = None) -> _Stencils:
    """Stencils at the directions of vectors (n, 3), and with shells also at their lengths in front."""
    x, y, z = vectors.T
    positions = np.empty((len(vectors), 2 if shells is None else 3))
    per_radian = plan.latitudes / np.pi
    across = x * x + y * y
    positions[:, -2] = np.arctan2(np.sqrt(across), z) * per_radian + (_MARGIN - 0.5)
    longitude = np.arctan2(y, x)
    positions[:, -1] = np.where(longitude < 0, longitude + 2 * np.pi, longitude) * per_radian + _MARGIN
    if shells is not None:
        positions[:, 0] = ((across + z * z) ** 0.25 - shells.first) / shells.spacing
    return _Stencils(*stencil(positions, plan.order))


@compiled(inline=True)
def _distance(along, square, r, order):
    """(r a)^order s for a mean m of length² `square` with ⟨û, m⟩ = `along` and s² = 1 − |m|².

    a² = |m across û|² + s², less the 4/r that the width of the kernel itself explains.
    """
    spread = max(1.0 - square, 0.0)
    across = max(square - along * along, 0.0) + max(spread - 4.0 / max(r, 1e-300), 0.0)
    return (r * r * across) ** (order // 2) * np.sqrt(spread)


@compiled
def _far_errors(u, mean, order, error):
    for i in range(len(u)):
        r = np.sqrt(u[i, 0] * u[i, 0] + u[i, 1] * u[i, 1] + u[i, 2] * u[i, 2])
        along = (u[i, 0] * mean[i, 0] + u[i, 1] * mean[i, 1] + u[i, 2] * mean[i, 2]) / max(r, 1e-300)
        square = mean[i, 0] * mean[i, 0] + mean[i, 1] * mean[i, 1] + mean[i, 2] * mean[i, 2]
        error[i] = _distance(along, square, r, order)


@compiled
def _far_anywhere(fields, r, order, most):
    """Whether `_distance` exceeds a number at a node û of the padded grid."""
    n = fields.shape[0] - 2 * _MARGIN
    longitudes = np.arange(2 * n) * (np.pi / n)
    cosines, sines = np.cos(longitudes), np.sin(longitudes)
    for i in range(n):
        theta = (i + 0.5) * np.pi / n
        z, ring = np.cos(theta), np.sin(theta)
        for j in range(2 * n):
            node = fields[_MARGIN + i, _MARGIN + j]
            inverse = 1.0 / node[0]
            a, b, c = node[1] * inverse, node[2] * inverse, node[3] * inverse
            along = ring * (cosines[j] * a + sines[j] * b) + z * c
            # written so that a nan counts as far
            if not _distance(along, a * a + b * b + c * c, r, order) <= most:
                return True
    return False


@compiled
def _fold(padded, grid):
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
def _pad(fields, padded):
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
