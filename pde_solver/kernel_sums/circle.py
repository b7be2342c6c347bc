"""Sums on the circle through Fourier coefficients, to round-off relative to the largest sum."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ive

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.lagrange import gather_means, scatter, stencil
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.whose_mass import importance_for
from pde_solver.manifolds import Sphere
from pde_solver.models.attention import Attention
from pde_solver.parallel import max_over_ranks, sum_over_ranks

# Interpolation of this order on _NODES √r nodes errs by 3·10⁻¹⁴ of the largest sum.
_ORDER = 8
_NODES = 256
_MOST_NODES = 4_000_000
# Angles are on a lattice if they differ from it by less than this.
_ON_LATTICE = 1e-14
# Round-off of the sums relative to the largest, on a lattice and with interpolation.
_NOISE = 2e-15
_NOISE_INTERPOLATED = 1e-13
# Calibrated by measurement.
_SECONDS_PER_CALL = 1.2e-4
_SECONDS_PER_NODE = 6e-8
_SECONDS_PER_POINT = {1: 1.5e-8, _ORDER: 4e-8}
_SECONDS_PER_TERM = 8e-9


def proposals(problem: Problem) -> list[Proposal]:
    """The Fourier method, for any heads on the circle. Collective.

    Args:
        problem: heads, targets and sources.

    Returns:
        One proposal, or none away from the circle and at temperatures so low that the grid would be huge.
    """
    if problem.manifold != Sphere(2) or not problem.source_count or not problem.target_count:
        return []
    circles = [_Score.of(head) for head in problem.heads]
    reach = max(score.reach for score in circles)
    nodes = _nodes(reach)
    if nodes > _MOST_NODES:
        return []
    sources = _Placed.on_circle(problem.comm, _angles(problem.sources), problem.source_count, nodes)
    on_lattice = sources.order == 1
    seconds = _SECONDS_PER_CALL + _SECONDS_PER_POINT[sources.order] * problem.source_count * problem.labels
    for score in circles:
        seconds += _SECONDS_PER_CALL
        if score.isotropic:
            seconds += problem.labels * (_SECONDS_PER_NODE * nodes + _SECONDS_PER_POINT[_ORDER] * problem.target_count)
        else:
            seconds += problem.labels * _SECONDS_PER_TERM * problem.target_count * _terms(score.reach)
    return [
        Proposal(
            name=f"Fourier series of {_terms(reach)} terms" + ("" if on_lattice else f", {nodes} nodes"),
            family="circle",
            seconds=seconds,
            error=1e-13 if on_lattice and all(score.isotropic for score in circles) else 5e-13,
            communication=16 * problem.labels * (_terms(reach) + 2),
            build=lambda: CircleSums(problem, sources),
        )
    ]


class CircleSums(Sums):
    """∫ e^{⟨u,y⟩} ν(dy) = Σ_m I_m(|u|) c_m e^{imψ}, u = β KᵀQ x = |u| (cos ψ, sin ψ), c_m = ∫ e^{−imφ} ν(dφ).

    Only the coefficients are summed over ranks. Where KᵀQ is a multiple of a rotation or reflection |u| is the same
    everywhere and the series is a Fourier transform; else it is summed at each target.

    Args:
        problem: heads, targets and sources on the circle.
        sources: the sources on a grid of angles.

    Source: the Jacobi-Anger expansion (DLMF 10.35.2).
    """

    def __init__(self, problem: Problem, sources: "_Placed") -> None:
        self._problem = problem
        self._sources = sources
        self._scores = [_Score.of(head) for head in problem.heads]
        self._reach = max(score.reach for score in self._scores)
        self._count = _terms(self._reach) + 2
        self._nodes = _nodes(self._reach)
        self._targets = [self._at_targets(score) for score in self._scores]
        self._factors = [self._source_factor(head) for head in problem.heads]
        self._coefficients = np.zeros((problem.labels, self._count), dtype=complex)

    def attend(
        self,
        weights: np.ndarray,
        mixing: np.ndarray,
        directions: Sequence[np.ndarray] | None = None,
        *,
        partition: bool = False,
    ) -> list[Attended]:
        """What each head attends to; doubtful where a sum is so far below the largest that its digits are lost."""
        laws = [weights, *(weights * factor.values for factor in self._factors if factor is not None)]
        local = np.concatenate([self._sources.coefficients(law, self._count) for law in laws])
        summed = sum_over_ranks(self._problem.comm, local).reshape(len(laws), len(weights), self._count)
        self._coefficients, biased = summed[0], iter(summed[1:])
        counted = importance_for(self.mass_near(self._problem.targets), mixing)
        result = []
        for index, (score, targets, factor) in enumerate(zip(self._scores, self._targets, self._factors, strict=True)):
            coefficients = np.atleast_2d(mixing) @ (self._coefficients if factor is None else next(biased))
            direction = None if directions is None else directions[index]
            if isinstance(targets, _Placed):
                sums = self._transformed(score, targets, coefficients, direction)
            else:
                sums = self._summed(targets, coefficients, direction)
            result.append(self._attended(sums, counted, score.lengths(self._problem.targets), factor, partition))
        return result

    def _transformed(
        self, score, targets: "_Placed", coefficients: np.ndarray, direction: np.ndarray | None
    ) -> "_Means":
        """The series by Fourier transform on the grid of the targets, interpolated."""
        count = self._count - 1
        bessel = ive(np.arange(count), score.reach)
        lower = np.concatenate([coefficients[:, 1:2].conj(), coefficients[:, : count - 1]], axis=1)
        upper = coefficients[:, 1:]
        fields = np.stack([coefficients[:, :count], 0.5 * (lower + upper), -0.5j * (lower - upper)], axis=1) * bessel
        values = targets.series(fields)
        labels, points = len(coefficients), len(self._problem.targets)
        mean = np.empty((labels, points, 2) if direction is None else (labels, points))
        denominator = np.empty((labels, points))
        for label in range(labels):
            targets.means(values[label], direction, mean[label], denominator[label])
        noise = _NOISE if targets.order == self._sources.order == 1 else _NOISE_INTERPOLATED
        return _Means(mean, denominator, noise * np.abs(values[:, 0]).max(axis=1)[:, None])

    def _summed(self, vectors: np.ndarray, coefficients: np.ndarray, direction: np.ndarray | None) -> "_Means":
        """The series at each target."""
        sums = np.empty((len(coefficients), len(vectors), 4))
        terms = _terms(np.linalg.norm(vectors, axis=1)).astype(np.int64)
        _sum_series(vectors, terms, coefficients.real.copy(), coefficients.imag.copy(), sums)
        noise = _NOISE if self._sources.order == 1 else _NOISE_INTERPOLATED
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = sums[..., 1:3] / sums[..., :1]
        if direction is not None:
            mean = np.einsum("nd,znd->zn", direction, mean)
        return _Means(mean, sums[..., 0], noise * sums[..., 3])

    def _attended(
        self, sums: "_Means", counted: np.ndarray, length, factor: "_Factor | None", partition: bool
    ) -> Attended:
        lost = sums.denominator <= sums.noise
        doubtful = sums.noise * counted > self._problem.tolerance * np.maximum(sums.denominator, sums.noise)
        sums.mean[lost] = 0.0
        log_partition = None
        if partition:
            shift = length + (0.0 if factor is None else factor.log_scale)
            log_partition = np.log(np.where(lost, sums.noise, sums.denominator)) + shift
        return Attended(sums.mean, log_partition, doubtful if doubtful.any() else None)

    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """∫ e^{r (⟨x,y⟩ − 1)} μ_z(dy) relative to its maximum, r the largest β |KᵀQ|."""
        fields = self._coefficients * ive(np.arange(self._count), self._reach)
        values = irfft(_folded(fields, self._nodes), self._nodes)
        largest = values.max(axis=1)
        values = np.maximum(values, 0.0) / np.where(largest > 0, largest, 1.0)[:, None]
        grid = 2 * np.pi / self._nodes * np.arange(self._nodes)
        return np.array([np.interp(_angles(points), grid, row, period=2 * np.pi) for row in values])

    def _at_targets(self, score: "_Score") -> "_Placed | np.ndarray":
        """Where on a grid the vectors u point, or these vectors themselves."""
        vectors = self._problem.targets @ score.matrix.T
        if not score.isotropic:
            return vectors
        angles = _angles(vectors) if score.reach > 0 else _angles(self._problem.targets)
        return _Placed.on_circle(self._problem.comm, angles, self._problem.target_count, self._nodes)

    def _source_factor(self, head: Attention) -> "_Factor | None":
        bias = head.key_bias(head.keys(self._problem.sources))
        if bias is None:
            return None
        largest = float(max_over_ranks(self._problem.comm, bias.max(initial=-np.inf)))
        return _Factor(np.exp(bias - largest), largest)


@dataclass(frozen=True, eq=False)
class _Factor:
    """e^{bias − scale} at this rank's sources, for heads whose scores have a term of the key alone."""

    values: np.ndarray
    log_scale: float


@dataclass(frozen=True, eq=False)
class _Means:
    """Means, denominators e^{−|u|} ∫ e^{⟨u,y⟩} ν(dy), and how large an error of these is to be expected."""

    mean: np.ndarray
    denominator: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True, eq=False)
class _Score:
    """⟨u, y⟩ with u = β KᵀQ x.

    Args:
        matrix: β KᵀQ.
        reach: the largest |u|.
        isotropic: whether |u| is the same for all x.
    """

    matrix: np.ndarray
    reach: float
    isotropic: bool

    @staticmethod
    def of(head: Attention) -> "_Score":
        """The score of a head."""
        matrix = head.keys(np.eye(2)) @ head.queries(np.eye(2)).T
        largest, least = np.linalg.svd(matrix, compute_uv=False)
        return _Score(matrix, float(largest), bool(largest - least <= 1e-14 * largest))

    def lengths(self, points: np.ndarray) -> np.ndarray | float:
        """|u| at points (n, 2)."""
        return self.reach if self.isotropic else np.linalg.norm(points @ self.matrix.T, axis=1)


@dataclass(frozen=True, eq=False)
class _Placed:
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
    def on_circle(comm: MPI.Comm, angles: np.ndarray, count: int, nodes: int) -> "_Placed":
        """Points of all ranks on their own lattice of `count` angles, or else on a grid of `nodes`. Collective."""
        spacing = 2 * np.pi / count
        phase = sum_over_ranks(comm, np.exp(1j * count * angles).sum())
        offset = float(np.angle(phase)) / count
        position = (angles - offset) / spacing
        distance = spacing * np.abs(position - np.rint(position)).max(initial=0.0)
        if max_over_ranks(comm, distance) <= _ON_LATTICE:
            base, shift = stencil(np.mod(np.rint(position), count)[:, None], 1)
            return _Placed(count, offset, 1, base, shift)
        position = np.mod(angles, 2 * np.pi) * (nodes / (2 * np.pi))
        base, shift = stencil(position[:, None] + (_ORDER // 2 - 1), _ORDER)
        return _Placed(nodes, 0.0, _ORDER, base, shift)

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
        return irfft(_folded(turned, self.nodes), self.nodes) * self.nodes

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


def _folded(fields: np.ndarray, nodes: int) -> np.ndarray:
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


def _angles(points: np.ndarray) -> np.ndarray:
    return np.arctan2(points[:, 1], points[:, 0])


def _terms(reach):
    """How many terms of the series count: I_m(r) e^{−r} is below 10⁻¹⁶ of I_0 beyond."""
    return np.int64(np.ceil(16 + 8.8 * np.sqrt(reach)))


def _nodes(reach: float) -> int:
    """Nodes of a grid on which interpolation is as accurate as the transform."""
    return int(next_fast_len(int(_NODES * max(np.sqrt(reach), 1.0)), real=True))


@compiled(fastmath=frozenset({"contract", "nsz"}))
def _sum_series(vectors, terms, real, imaginary, sums):
    """e^{−r} Σ_m I_m(r) e^{imψ} (c_m, c_{m∓1}) at u = r (cos ψ, sin ψ).

    Args:
        vectors: (n, 2) u.
        terms: (n,) where each series ends.
        real, imaginary: (labels, count) the coefficients.
        sums: (labels, n, 4) the denominator, the two parts of the numerator and Σ_m |I_m c_m|; written.
    """
    bessel = np.empty(real.shape[1] + 1)
    for i in range(len(vectors)):
        length = np.hypot(vectors[i, 0], vectors[i, 1])
        cosine, sine = (vectors[i, 0] / length, vectors[i, 1] / length) if length > 0.0 else (1.0, 0.0)
        r = max(length, 1e-15)
        last = terms[i]
        # Miller's algorithm: the recurrence is stable downwards, and Σ_m I_m(r) = e^r scales it
        bessel[last] = 0.0
        bessel[last - 1] = 1e-270
        total = 2e-270
        for m in range(last - 1, 0, -1):
            bessel[m - 1] = (2.0 * m / r) * bessel[m] + bessel[m + 1]
            total += 2.0 * bessel[m - 1]
        total -= bessel[0]
        for z in range(len(real)):
            scaled = bessel[0] / total
            denominator = scaled * real[z, 0]
            x, y = scaled * real[z, 1], -scaled * imaginary[z, 1]
            size = abs(denominator)
            c, s = cosine, sine
            for m in range(1, last):
                scaled = bessel[m] / total
                # I_m (c_m e^{imψ} + conjugate), and I_m (c_{m−1} e^{imψ} + conj(c_{m+1}) e^{−imψ}) = x + i y
                denominator += 2.0 * scaled * (real[z, m] * c - imaginary[z, m] * s)
                x += scaled * ((real[z, m - 1] + real[z, m + 1]) * c - (imaginary[z, m - 1] + imaginary[z, m + 1]) * s)
                y += scaled * ((real[z, m - 1] - real[z, m + 1]) * s + (imaginary[z, m - 1] - imaginary[z, m + 1]) * c)
                size += 2.0 * scaled * np.hypot(real[z, m], imaginary[z, m])
                c, s = c * cosine - s * sine, s * cosine + c * sine
            sums[z, i, 0], sums[z, i, 1], sums[z, i, 2], sums[z, i, 3] = denominator, x, y, size
