"""Fast summation on the sphere S²: laws become spherical harmonics, heads become fields on a grid.

With u = β KᵀQ x the sums of a head are F(u) = ∫ e^{⟨u, y⟩} ν(dy) and its gradient, functions on R³. The masses are
scattered on a grid of latitudes and longitudes, the grid becomes the coefficients of the law in spherical harmonics
(only they are summed over the ranks), and from them come e^{−r} F and e^{−r} ∇F on the sphere of radius r = |u|, which
are interpolated at the targets. Where |u| differs between targets there is one sphere for each of several radii.
"""

import functools
from collections.abc import Sequence

import numpy as np

from pde_solver.kernel_sums.far_attention import far_anywhere, far_errors, far_scale
from pde_solver.kernel_sums.harmonics import bessel, harmonics, with_moments
from pde_solver.kernel_sums.lagrange import gather, gather_means, scatter
from pde_solver.kernel_sums.latitude_longitude import Stencils, fold, interior, pad, padded_shape, stencils
from pde_solver.kernel_sums.method import Attended, Problem, Proposal, Sums
from pde_solver.kernel_sums.sphere_plan import Resolution, Shells, aligned, bilinear_form, fastest_resolution
from pde_solver.manifolds import Sphere
from pde_solver.models.attention import Attention
from pde_solver.parallel import max_over_ranks, min_over_ranks, sum_over_ranks

# Round-off of a field, relative to its largest value.
_ROUND_OFF = 4e-16


def proposals(problem: Problem) -> list[Proposal]:
    """Sums by spherical harmonics: the fastest order and grid that keep the tolerance. Collective.

    Args:
        problem: heads, targets and sources.

    Returns:
        One proposal, or none where the manifold is not S², or the grids would be too large.
    """
    if problem.manifold != Sphere(3) or not problem.heads:
        return []
    resolution = fastest_resolution(problem)
    if resolution is None:
        return []
    return [
        Proposal(
            name=f"sphere, {resolution}",
            family="sphere",
            seconds=resolution.seconds,
            error=resolution.error,
            communication=8 * problem.labels * (resolution.degree + 1) * (resolution.degree + 2),
            build=lambda: SphereSums(problem, resolution),
        )
    ]


class SphereSums(Sums):
    """Sums over laws on S² by spherical harmonics.

    Args:
        problem: heads, targets and sources.
        resolution: order, grid and degrees.

    Source: addition theorem of spherical harmonics; derived for this project.
    """

    def __init__(self, problem: Problem, resolution: Resolution) -> None:
        self._problem, self._resolution = problem, resolution
        self._sources = self._stencils(problem.sources)
        self._biases: list[np.ndarray | None] = [None]
        self._laws: list[tuple[int, float]] = []  # of each head: which bias, and the largest
        for head in problem.heads:
            self._laws.append(self._law(head))
        self._targets = self._target_stencils()
        n = resolution.latitudes
        self._grid = np.zeros(padded_shape(n))
        self._rings = np.empty((4, n, 2 * n))
        self._fields_of: dict[int, np.ndarray] = {}
        self._coefficients = np.empty((0, 0, 1, 0), dtype=complex)
        self._near_grids: dict[int, np.ndarray] = {}
        self._positions: Stencils | None = None

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

    def _target_stencils(self) -> list[tuple[Stencils, np.ndarray | float]]:
        """For each head the stencils at the directions û, and the radii r."""
        problem, resolution = self._problem, self._resolution
        known: dict[bytes, Stencils] = {}
        result: list[tuple[Stencils, np.ndarray | float]] = []
        for head, shells in zip(problem.heads, resolution.shells, strict=True):
            form = bilinear_form(head)
            if shells.count > 1:
                u = problem.targets @ form.T
                result.append((self._stencils(u, shells), np.linalg.norm(u, axis=1)))
                continue
            radius = float(shells.radii[0])
            turn = form / radius if radius else np.eye(3)
            if np.abs(turn - np.eye(3)).max() <= 1e-12:
                turn = np.eye(3)
                if problem.targets is problem.sources:
                    known[turn.tobytes()] = self._sources
            if turn.tobytes() not in known:
                known[turn.tobytes()] = self._stencils(problem.targets @ turn.T)
            result.append((known[turn.tobytes()], radius))
        return result

    def _stencils(self, vectors: np.ndarray, shells: Shells | None = None) -> Stencils:
        """Stencils at the directions of vectors (n, 3), and with shells also at their lengths in front."""
        lengths = None if shells is None else shells.positions(vectors)
        return stencils(vectors, self._resolution.latitudes, self._resolution.order, lengths)

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
        resolution, count = self._resolution, self._resolution.degree + 1
        masses = np.empty((len(self._biases), len(weights), resolution.latitudes, 2 * resolution.latitudes))
        for b, factor in enumerate(self._biases):
            for z, weight in enumerate(weights):
                self._grid[:] = 0.0
                mass = np.ascontiguousarray(weight) if factor is None else weight * factor
                scatter(resolution.order, self._sources.base, self._sources.offset, mass, self._grid)
                fold(self._grid, masses[b, z])
        coefficients = harmonics(resolution.degree, resolution.latitudes).analyse(masses.reshape(-1, *masses.shape[2:]))
        triangle = _triangle(count)
        coefficients[triangle] = sum_over_ranks(self._problem.comm, coefficients[triangle])
        return coefficients.reshape(count, count, len(self._biases), len(weights))

    def _attend(self, h: int, law: np.ndarray, mixing: np.ndarray, directions, partition: bool) -> Attended:
        resolution, shells = self._resolution, self._resolution.shells[h]
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
                gather_means(resolution.order, base, offset, where, along, out, denominator, 1e-18 * largest, 1.0)

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
        resolution, count = self._resolution, self._resolution.degrees[h] + 1
        radii = resolution.shells[h].radii
        moments = with_moments(np.ascontiguousarray(law[:count, :count, None]))[:, :, 0]
        factors = 4 * np.pi * _bessel(tuple(radii), count - 1)
        if len(radii) not in self._fields_of:
            self._fields_of[len(radii)] = np.empty((len(radii), *self._grid.shape, 4))
        fields = self._fields_of[len(radii)]
        least, largest = np.inf, -np.inf
        for k in range(len(radii)):
            harmonics(count - 1, resolution.latitudes).synthesise(moments * factors[k][:, None], self._rings)
            low, high = pad(self._rings, fields[k])
            least, largest = min(least, low), max(largest, high)
        return fields, least, largest

    def _uncertainty(self, h: int, mass: float, largest: float) -> float:
        """Absolute error of e^{−r} F."""
        mass *= np.sqrt(4 * np.pi)
        r = self._resolution.shells[h].radii.max()
        return max(_ROUND_OFF * largest, self._resolution.cutoff * mass / max(2 * r, 1.0))

    def _far(self, h: int, fields: np.ndarray) -> bool:
        """Whether interpolation may be worse than planned anywhere, because what is attended to is far from û."""
        radii = self._resolution.shells[h].radii
        most = self._problem.tolerance / self._far_scale
        return any(
            far_anywhere(interior(field), r, self._resolution.order, most)
            for field, r in zip(fields, radii, strict=True)
        )

    @property
    def _far_scale(self) -> float:
        return far_scale(self._resolution.order, self._resolution.latitudes)

    def _far_error(self, h: int, mean: np.ndarray) -> np.ndarray:
        """Error of interpolation at the targets: e^{⟨u, y⟩} changes at the rate of the part of y across û."""
        error = np.empty(len(mean))
        far_errors(self._problem.targets @ bilinear_form(self._problem.heads[h]).T, mean, self._resolution.order, error)
        return self._far_scale * error

    def _sees_itself(self, h: int, z: int, law: np.ndarray, mixing: np.ndarray) -> bool:
        """Whether a label attends to itself where it is, so that the denominator is small only where its law is.

        Then e^{−r} F ≥ share · mass near, which is far above the absolute error.
        """
        if mixing.shape[0] != mixing.shape[1] or self._laws[h][0] or not aligned(self._problem.heads[h]):
            return False
        share = mixing[z, z] * self._coefficients[0, 0, 0, z].real
        return bool(self._resolution.cutoff * law[0, 0, z].real <= self._problem.tolerance * share)

    def mass_near(self, points: np.ndarray) -> np.ndarray:
        """∫ e^{r(⟨x, y⟩ − 1)} μ_z(dy) at points x, relative to the largest, for the largest r of all heads."""
        stencils = self._stencils(points)
        return np.stack([self._near(z, stencils) for z in range(self._coefficients.shape[3])])

    def _near_targets(self, label: int | None) -> np.ndarray:
        """The mass of a label near the targets, or the most that any label has there."""
        if self._positions is None:
            same = self._problem.targets is self._problem.sources
            self._positions = self._sources if same else self._stencils(self._problem.targets)
        labels = range(self._coefficients.shape[3]) if label is None else [label]
        return np.max([self._near(z, self._positions) for z in labels], axis=0)

    def _near(self, label: int, stencils: Stencils) -> np.ndarray:
        resolution = self._resolution
        if label not in self._near_grids:
            radius = max(float(shells.radii.max()) for shells in resolution.shells)
            law = self._coefficients[:, :, 0, label, None] * _bessel((radius,), resolution.degree)[0][:, None]
            smooth = np.empty((1, resolution.latitudes, 2 * resolution.latitudes))
            harmonics(resolution.degree, resolution.latitudes).synthesise(np.ascontiguousarray(law), smooth)
            grid = np.empty((*self._grid.shape, 1))
            _, largest = pad(smooth, grid)
            self._near_grids[label] = grid / largest
        near = np.empty((len(stencils.base), 1))
        gather(resolution.order, stencils.base, stencils.offset, self._near_grids[label], near)
        return np.clip(near[:, 0], 0.0, 1.0)


@functools.lru_cache(maxsize=16)
def _triangle(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where [m, l] has l ≥ m."""
    orders, degrees = np.triu_indices(count)
    return orders, degrees


@functools.lru_cache(maxsize=64)
def _bessel(radii: tuple[float, ...], degree: int) -> np.ndarray:
    return bessel(np.array(radii), degree)
