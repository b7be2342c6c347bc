"""Sums on the circle through Fourier coefficients, to round-off relative to the largest sum."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len
from scipy.special import ive

from pde_solver.compiled import compiled
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.points_on_circle import ORDER, PointsOnCircle, angles_of, folded
from pde_solver.kernel_sums.spot_check import importance_for
from pde_solver.manifolds import Sphere
from pde_solver.models.attention import Attention
from pde_solver.parallel import max_over_ranks, sum_over_ranks

# Interpolation of order 8 on so many √r nodes errs by 3·10⁻¹⁴ of the largest sum.
_NODES = 256
_MOST_NODES = 4_000_000
# Round-off of the sums relative to the largest, on a lattice and with interpolation.
_NOISE = 2e-15
_NOISE_INTERPOLATED = 1e-13
# Calibrated by measurement.
_SECONDS_PER_CALL = 1.2e-4
_SECONDS_PER_NODE = 6e-8
_SECONDS_PER_POINT = {1: 1.5e-8, ORDER: 4e-8}
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
    forms = [_BilinearForm.of(head) for head in problem.heads]
    reach = max(form.reach for form in forms)
    nodes = _nodes(reach)
    if nodes > _MOST_NODES:
        return []
    sources = PointsOnCircle.placed(problem.comm, angles_of(problem.sources), problem.source_count, nodes)
    on_lattice = sources.order == 1
    seconds = _SECONDS_PER_CALL + _SECONDS_PER_POINT[sources.order] * problem.source_count * problem.labels
    for form in forms:
        seconds += _SECONDS_PER_CALL
        if form.isotropic:
            seconds += problem.labels * (_SECONDS_PER_NODE * nodes + _SECONDS_PER_POINT[ORDER] * problem.target_count)
        else:
            seconds += problem.labels * _SECONDS_PER_TERM * problem.target_count * _terms(form.reach)
    return [
        Proposal(
            name=f"Fourier series of {_terms(reach)} terms" + ("" if on_lattice else f", {nodes} nodes"),
            family="circle",
            seconds=seconds,
            error=1e-13 if on_lattice and all(form.isotropic for form in forms) else 5e-13,
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

    def __init__(self, problem: Problem, sources: PointsOnCircle) -> None:
        self._problem = problem
        self._sources = sources
        self._forms = [_BilinearForm.of(head) for head in problem.heads]
        self._reach = max(form.reach for form in self._forms)
        self._count = _terms(self._reach) + 2
        self._nodes = _nodes(self._reach)
        self._targets = [self._at_targets(form) for form in self._forms]
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
        for index, (form, targets, factor) in enumerate(zip(self._forms, self._targets, self._factors, strict=True)):
            coefficients = np.atleast_2d(mixing) @ (self._coefficients if factor is None else next(biased))
            direction = None if directions is None else directions[index]
            if isinstance(targets, PointsOnCircle):
                sums = self._transformed(form, targets, coefficients, direction)
            else:
                sums = self._summed(targets, coefficients, direction)
            result.append(self._attended(sums, counted, form.lengths(self._problem.targets), factor, partition))
        return result

    def _transformed(
        self, form: "_BilinearForm", targets: PointsOnCircle, coefficients: np.ndarray, direction: np.ndarray | None
    ) -> "_Means":
        """The series by Fourier transform on the grid of the targets, interpolated."""
        count = self._count - 1
        bessel = ive(np.arange(count), form.reach)
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
        values = irfft(folded(fields, self._nodes), self._nodes)
        largest = values.max(axis=1)
        values = np.maximum(values, 0.0) / np.where(largest > 0, largest, 1.0)[:, None]
        grid = 2 * np.pi / self._nodes * np.arange(self._nodes)
        return np.array([np.interp(angles_of(points), grid, row, period=2 * np.pi) for row in values])

    def _at_targets(self, form: "_BilinearForm") -> PointsOnCircle | np.ndarray:
        """Where on a grid the vectors u point, or these vectors themselves."""
        vectors = self._problem.targets @ form.matrix.T
        if not form.isotropic:
            return vectors
        angles = angles_of(vectors) if form.reach > 0 else angles_of(self._problem.targets)
        return PointsOnCircle.placed(self._problem.comm, angles, self._problem.target_count, self._nodes)

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
class _BilinearForm:
    """β KᵀQ: scores are ⟨u, y⟩ with u = β KᵀQ x.

    Args:
        matrix: β KᵀQ.
        reach: the largest |u|.
        isotropic: whether |u| is the same for all x.
    """

    matrix: np.ndarray
    reach: float
    isotropic: bool

    @staticmethod
    def of(head: Attention) -> "_BilinearForm":
        """That of a head."""
        matrix = head.keys(np.eye(2)) @ head.queries(np.eye(2)).T
        largest, least = np.linalg.svd(matrix, compute_uv=False)
        return _BilinearForm(matrix, float(largest), bool(largest - least <= 1e-14 * largest))

    def lengths(self, points: np.ndarray) -> np.ndarray | float:
        """|u| at points (n, 2)."""
        return self.reach if self.isotropic else np.linalg.norm(points @ self.matrix.T, axis=1)


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
