"""Spherical harmonics on a latitude-longitude grid, for kernels e^{⟨u, y⟩} with y on the sphere S².

With u = r û the kernel is e^{⟨u, y⟩ − r} = 4π Σ_l e^{−r} i_l(r) Σ_m Y_lm(û) Y*_lm(y), i_l the modified spherical Bessel
functions of the first kind: a law enters by its coefficients A_lm = ∫ Y*_lm dν alone, and so do its moments y ν.
Latitudes are θ_i = (i + ½) π/n, symmetric about the equator, so that Legendre functions are kept for half of them.
"""

import functools
from dataclasses import dataclass

import numpy as np

from pde_solver.compiled import compiled

# The triangle l ≥ m is cut into blocks of orders m of one parity, in which what lies outside of it is zeros: one for
# every 16 degrees, at most 6, since a product of matrices has a cost of its own.
_DEGREES_PER_BLOCK, _MOST_BLOCKS = 16, 6
# Up to this degree a ring's few waves are summed by a matrix product, in half the time of a Fourier transform.
_FEW_WAVES = 32
# Legendre functions below this are zeros: their products would be subnormal numbers, which are slow.
_NEGLIGIBLE = 1e-80


@dataclass(frozen=True)
class _Block:
    """Legendre functions P_lm on the northern latitudes for orders m = first, first + 2, ... and l ≥ first.

    Args:
        orders: the orders m, as a slice.
        symmetric: (orders, k, n/2) for l = first, first + 2, ...: symmetric about the equator.
        antisymmetric: (orders, k', n/2) for l = first + 1, first + 3, ...
    """

    orders: slice
    symmetric: np.ndarray
    antisymmetric: np.ndarray


@dataclass(frozen=True, eq=False)
class Harmonics:
    """Sums over a grid of latitudes and longitudes against spherical harmonics of degree ≤ `degree`, and back.

    Coefficients are arrays [m, l, column] of complex numbers for 0 ≤ m, l ≤ degree, zero for l < m: those of real
    functions, whose orders −m are the conjugates.

    Args:
        degree: the largest degree L.
        latitudes: n_θ > degree, even; there are 2 n_θ longitudes φ_j = π j / n_θ.
    """

    degree: int
    latitudes: int

    @functools.cached_property
    def _blocks(self) -> list[_Block]:
        angles = (np.arange(self.latitudes // 2) + 0.5) * np.pi / self.latitudes
        blocks = []
        for parity in range(min(2, self.degree + 1)):
            count = (self.degree - parity) // 2 + 1
            size = -(-count // min(max(self.degree // _DEGREES_PER_BLOCK, 1), _MOST_BLOCKS))
            for begin in range(0, count, size):
                first = parity + 2 * begin
                orders = slice(first, min(first + 2 * size, self.degree + 1), 2)
                shape = (len(range(self.degree + 1)[orders]), len(angles))
                symmetric = np.zeros((shape[0], (self.degree - first) // 2 + 1, shape[1]))
                antisymmetric = np.zeros((shape[0], (self.degree - first + 1) // 2, shape[1]))
                _fill_legendre(first, self.degree, np.cos(angles), np.sin(angles), symmetric, antisymmetric)
                blocks.append(_Block(orders, symmetric, antisymmetric))
        return blocks

    @functools.cached_property
    def _waves(self) -> np.ndarray | None:
        """cos mφ_j and −sin mφ_j in turn for m = 0, 1, ..., (2 degree + 2, 2 n_θ); None where there are many."""
        if self.degree > _FEW_WAVES:
            return None
        angles = np.outer(np.arange(self.degree + 1), np.arange(2 * self.latitudes)) * (np.pi / self.latitudes)
        return np.stack([np.cos(angles), -np.sin(angles)], axis=1).reshape(-1, 2 * self.latitudes)

    def analyse(self, grid: np.ndarray) -> np.ndarray:
        """Σ_ij grid_ij Y*_lm(θ_i, φ_j), the adjoint of `synthesise`: no quadrature weights.

        Args:
            grid: (c, n_θ, 2 n_θ) masses.

        Returns:
            (degree + 1, degree + 1, c) coefficients [m, l].
        """
        columns, half, count = len(grid), self.latitudes // 2, self.degree + 1
        waves = self._waves
        spectrum = np.fft.rfft(grid, axis=2)[:, :, :count] if waves is None else (grid @ waves.T).view(complex)
        rings = np.ascontiguousarray(spectrum.transpose(2, 1, 0)).view(float)
        north, south = rings[:, :half], rings[:, : half - 1 : -1]
        even, odd = north + south, north - south
        result = np.zeros((count, count, 2 * columns))
        for block in self._blocks:
            first = block.orders.start
            result[block.orders, first::2] = block.symmetric @ even[block.orders]
            result[block.orders, first + 1 :: 2] = block.antisymmetric @ odd[block.orders]
        return result.view(complex)

    def synthesise(self, coefficients: np.ndarray, out: np.ndarray) -> None:
        """Σ_lm a_lm Y_lm(θ_i, φ_j) with a_{l,−m} = (−1)^m a*_lm.

        Args:
            coefficients: (degree + 1, degree + 1, c) coefficients [m, l].
            out: (c, n_θ, 2 n_θ), written.
        """
        columns, half = coefficients.shape[2], self.latitudes // 2
        numbers = coefficients.view(float)
        rings = np.empty((columns, self.latitudes, self.degree + 1), dtype=complex)
        for block in self._blocks:
            first = block.orders.start
            even = block.symmetric.transpose(0, 2, 1) @ numbers[block.orders, first::2]
            odd = block.antisymmetric.transpose(0, 2, 1) @ numbers[block.orders, first + 1 :: 2]
            _to_rings(first, even.view(complex), odd.view(complex), half, rings)
        if self._waves is None:
            np.fft.irfft(rings, 2 * self.latitudes, axis=2, norm="forward", out=out)
        else:
            rings[..., 1:] *= 2  # for the orders −m
            np.matmul(rings.view(float), self._waves, out=out)


def table_bytes(degree: int, latitudes: int) -> int:
    """Bytes of the Legendre functions of `Harmonics`, 0 ≤ m ≤ l ≤ degree on half the latitudes, without their padding."""
    return 8 * (degree + 1) * (degree + 2) // 2 * (latitudes // 2)


@functools.lru_cache(maxsize=12)
def harmonics(degree: int, latitudes: int) -> Harmonics:
    """The harmonics of this degree on this grid, whose tables are made once."""
    return Harmonics(degree, latitudes)


@compiled
def _fill_legendre(first, degree, cosine, sine, symmetric, antisymmetric):
    """P_lm for m = first, first + 2, ... by a_lm P_lm = cos θ P_{l−1,m} − a_{l−1,m} P_{l−2,m}, a_lm² = (l²−m²)/(4l²−1).

    Y_lm = P_lm(cos θ) e^{imφ} is orthonormal and has the sign (−1)^m in front. Starting values P_mm too small for a
    float belong to latitudes where all P_lm with l ≤ 1000 are negligible.
    """
    for i in range(len(symmetric)):
        m = first + 2 * i
        for t in range(len(cosine)):
            start = 0.28209479177387814  # 1/√(4π)
            for k in range(1, m + 1):
                start *= -sine[t] * np.sqrt((2 * k + 1) / (2 * k))
            before, current, below = 0.0, start, 0.0
            for ell in range(m, degree + 1):
                if abs(current) > _NEGLIGIBLE:
                    if (ell - first) % 2 == 0:
                        symmetric[i, (ell - first) // 2, t] = current
                    else:
                        antisymmetric[i, (ell - first) // 2, t] = current
                above = np.sqrt(((ell + 1.0) * (ell + 1.0) - m * m) / (4.0 * (ell + 1.0) * (ell + 1.0) - 1.0))
                following = (cosine[t] * current - below * before) / above
                before, current, below = current, following, above


@compiled
def _to_rings(first, even, odd, half, rings):
    """Northern rings even + odd and southern rings even − odd, with the column first and the order last."""
    for i in range(len(even)):
        m = first + 2 * i
        for t in range(half):
            for c in range(rings.shape[0]):
                rings[c, t, m] = even[i, t, c] + odd[i, t, c]
                rings[c, 2 * half - 1 - t, m] = even[i, t, c] - odd[i, t, c]


def with_moments(coefficients: np.ndarray) -> np.ndarray:
    """Coefficients of ν, y₁ ν, y₂ ν and y₃ ν from those of ν; the largest degree of the moments lacks one term.

    Args:
        coefficients: (L + 1, L + 1, c) [m, l].

    Returns:
        (L + 1, L + 1, c, 4).

    Source: the three-term recursions of Y_lm times cos θ and sin θ e^{±iφ}.
    """
    result = np.zeros((*coefficients.shape, 4), dtype=complex)
    _fill_moments(coefficients, result)
    return result


@compiled
def _fill_moments(a, result):
    count = a.shape[0]
    for m in range(count):
        for ell in range(m, count):
            up = np.sqrt((ell + 1.0 - m) * (ell + 1.0 + m) / ((2.0 * ell + 1) * (2.0 * ell + 3)))
            down = np.sqrt((ell - m) * (ell + m) / max((2.0 * ell - 1) * (2.0 * ell + 1), 1.0))
            # factors of Y_{l±1, m+1} in sin θ e^{iφ} Y_lm and of Y_{l±1, m−1} in sin θ e^{−iφ} Y_lm
            raise_up = -np.sqrt((ell + m + 1.0) * (ell + m + 2.0) / ((2.0 * ell + 1) * (2.0 * ell + 3)))
            raise_down = np.sqrt(max((ell - m) * (ell - m - 1.0) / max((2.0 * ell - 1) * (2.0 * ell + 1), 1.0), 0.0))
            lower_up = np.sqrt((ell - m + 1.0) * (ell - m + 2.0) / ((2.0 * ell + 1) * (2.0 * ell + 3)))
            lower_down = -np.sqrt(max((ell + m) * (ell + m - 1.0) / max((2.0 * ell - 1) * (2.0 * ell + 1), 1.0), 0.0))
            for c in range(a.shape[2]):
                vertical, minus, plus = 0.0j, 0.0j, 0.0j
                if ell + 1 < count:
                    vertical += up * a[m, ell + 1, c]
                    if m + 1 < count:
                        minus += raise_up * a[m + 1, ell + 1, c]
                    plus += lower_up * (a[m - 1, ell + 1, c] if m > 0 else -np.conj(a[1, ell + 1, c]))
                if ell > m:
                    vertical += down * a[m, ell - 1, c]
                    if ell - 1 >= m + 1:
                        minus += raise_down * a[m + 1, ell - 1, c]
                if ell > 0 and ell - 1 >= m - 1:
                    if m > 0:
                        plus += lower_down * a[m - 1, ell - 1, c]
                    elif ell > 1:
                        plus += lower_down * -np.conj(a[1, ell - 1, c])
                result[m, ell, c, 0] = a[m, ell, c]
                result[m, ell, c, 1] = 0.5 * (plus + minus)
                result[m, ell, c, 2] = -0.5j * (plus - minus)
                result[m, ell, c, 3] = vertical


def bessel(radii: np.ndarray, degree: int) -> np.ndarray:
    """e^{−r} i_l(r) for l = 0, ..., degree, to round-off for all r ≥ 0.

    Args:
        radii: (k,) r ≥ 0.
        degree: the largest l.

    Returns:
        (k, degree + 1).

    Source: downward recursion i_l / i_{l−1} = r / (2l + 1 + r i_{l+1} / i_l), in which errors die out.
    """
    r = np.asarray(radii, dtype=float)
    start = degree + 40 + int(4 * np.sqrt(np.max(r, initial=0.0)))
    ratio = r / (start + 1.5 + np.sqrt((start + 1.5) ** 2 + r * r))
    result = np.empty((len(r), degree + 1))
    for ell in range(start, 0, -1):
        ratio = r / (2 * ell + 1 + r * ratio)
        if ell <= degree:
            result[:, ell] = ratio
    with np.errstate(invalid="ignore"):
        result[:, 0] = np.where(r > 0, -np.expm1(-2 * r) / (2 * r), 1.0)
    return np.cumprod(result, axis=1)


@functools.lru_cache(maxsize=256)
def truncation(radius: float, tolerance: float) -> int:
    """The least degree L with Σ_{l>L} (2l + 1) i_l(r) ≤ tolerance · i_0(r): the rest of the kernel relative to its mean.

    Monotone in r ≥ 0 and in tolerance > 0.
    """
    degree = 16
    while True:
        terms = (2 * np.arange(degree + 1) + 1) * bessel(np.array([radius]), degree)[0]
        if terms[-1] <= 1e-4 * tolerance * terms[0]:
            break
        degree *= 2
    rest = np.cumsum(terms[::-1])[::-1]  # rest[l] = Σ_{l' ≥ l}
    return max(int(np.argmax(rest <= tolerance * terms[0])) - 1, 0)
