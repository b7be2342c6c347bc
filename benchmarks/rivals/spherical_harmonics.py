"""A Galerkin method on S²: the density as a sum of spherical harmonics, f = Σ f_lm Y_lm up to degree L.

With Z = ∫ e^{β⟨x,y⟩} f(y) dy the velocity is X = ∇Z / (βZ), and Z has the coefficients 4π i_l(β) f_lm (Funk–Hecke).
So df_lm/dt = ∫ f X·∇Ȳ_lm costs four syntheses and one analysis on a grid.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import spherical_in

from rivals import runge_kutta_4


class Harmonics:
    """Transforms between a grid of Gauss–Legendre latitudes × equidistant longitudes and coefficients (m, l), m ≥ 0.

    Args:
        degree: L.
        latitudes: n; there are 2n longitudes. L + 1 are enough for functions of degree L.
    """

    def __init__(self, degree: int, latitudes: int) -> None:
        self.degree, self.latitudes = degree, latitudes
        self.cosine, weights = np.polynomial.legendre.leggauss(latitudes)
        self.sine = np.sqrt((1 - self.cosine) * (1 + self.cosine))
        angles = np.pi * (np.arange(2 * latitudes) + 0.5) / latitudes
        longitudes = np.stack([np.cos(angles), np.sin(angles), np.ones_like(angles)])
        profile = np.stack([self.sine, self.sine, self.cosine])
        self.points = (profile[:, :, None] * longitudes[:, None, :]).reshape(3, -1).T
        self.weights = np.repeat(weights * np.pi / latitudes, 2 * latitudes)
        self._phase = np.exp(1j * np.pi * np.arange(degree + 1) / (2 * latitudes))[:, None, None]

        ell, m = np.arange(degree + 1.0), np.arange(degree + 1.0)[:, None]
        self.order = m[:, :, None]  # (m, 1, 1)
        table = np.zeros((degree + 1, degree + 1, latitudes))  # Y_lm = table[m, l](θ) e^{imφ}
        diagonal = np.full(latitudes, np.sqrt(1 / (4 * np.pi)))
        for k in range(degree + 1):
            if k > 0:
                diagonal = -diagonal * self.sine * np.sqrt((2 * k + 1) / (2 * k))
            table[k, k] = diagonal
            if k < degree:
                table[k, k + 1] = np.sqrt(2 * k + 3) * self.cosine * diagonal
            for j in range(k + 2, degree + 1):
                a = np.sqrt((4 * j * j - 1) / (j * j - k * k))
                b = np.sqrt(((j - 1) ** 2 - k * k) / (4 * (j - 1) ** 2 - 1))
                table[k, j] = a * (self.cosine * table[k, j - 1] - b * table[k, j - 2])
        lower = np.zeros_like(table)
        lower[:, 1:] = (
            np.sqrt((2 * ell + 1) / np.maximum(2 * ell - 1, 1) * np.maximum(ell**2 - m**2, 0))[:, 1:, None]
            * table[:, :-1]
        )
        slope = (ell[:, None] * self.cosine * table - lower) / self.sine
        self._table, self._slope, self._over_sine = table, slope, table / self.sine
        self._analysis = table * weights * np.pi / latitudes
        self._analysis_slope = slope * weights * np.pi / latitudes
        self._analysis_over_sine = self._over_sine * weights * np.pi / latitudes

    def _to_grid(self, table: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Fields (k, latitudes, longitudes) of coefficients (m, l, k)."""
        profiles = _product(table.transpose(0, 2, 1), coefficients) * self._phase
        return np.fft.irfft(profiles.transpose(2, 1, 0), 2 * self.latitudes, axis=2, norm="forward")

    def _from_grid(self, table: np.ndarray, fields: np.ndarray) -> np.ndarray:
        """Coefficients (m, l, k) of fields (k, latitudes, longitudes)."""
        waves = np.fft.rfft(fields, axis=2)[:, :, : self.degree + 1].transpose(2, 1, 0)
        return _product(table, waves * self._phase.conj())

    def values(self, coefficients: np.ndarray) -> np.ndarray:
        """The functions on the grid."""
        return self._to_grid(self._table, coefficients)

    def gradients(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂_θ and (1/sin θ) ∂_φ of the functions on the grid."""
        along = self._to_grid(self._slope, coefficients)
        return along, self._to_grid(self._over_sine, 1j * self.order * coefficients)

    def coefficients(self, fields: np.ndarray) -> np.ndarray:
        """∫ f Ȳ_lm, (m, l, k), of functions (k, latitudes, longitudes)."""
        return self._from_grid(self._analysis, fields)

    def weak_divergence(self, south: np.ndarray, east: np.ndarray) -> np.ndarray:
        """∫ F·∇Ȳ_lm, (m, l, k), of tangent fields with components along θ and φ."""
        return self._from_grid(self._analysis_slope, south) - 1j * self.order * self._from_grid(
            self._analysis_over_sine, east
        )


def _product(table: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """table (m, i, j) real times columns (m, j, k) complex, by one real matrix product for each m."""
    pairs = np.ascontiguousarray(columns).view(np.float64)
    return np.ascontiguousarray(table @ pairs).view(np.complex128)


@dataclass(frozen=True)
class Outcome:
    """Where a run came to.

    Args:
        coefficients: (m, l) of the density.
        t: the depth reached, short of the stop if the run has blown up.
        broken: what the last state was not, or "".
    """

    coefficients: np.ndarray
    t: float
    broken: str


def solve(harmonics: Harmonics, density: np.ndarray, beta: float, stop: float, step: float) -> Outcome:
    """Integrate by Runge–Kutta of order 4 until the stop, or until the state is no probability law by any standard.

    Args:
        harmonics: the transforms; with 3(L + 1)/2 latitudes products of two functions are not aliased.
        density: f at depth 0 on the grid's points, (n,).
        beta: inverse temperature.
        stop: final depth.
        step: dt, below about 2.8 / (L · the largest speed).
    """
    degree, n = harmonics.degree, harmonics.latitudes
    kernel = 4 * np.pi * np.exp(-beta) * spherical_in(np.arange(degree + 1), beta)[None, :, None]
    # |f_lm| ≤ max |Y_lm| for a law; ten times as much is none
    bound = 10 * np.sqrt((2 * degree + 1) / (4 * np.pi))

    def rate(t: float, f: np.ndarray) -> np.ndarray:
        potential = kernel * f
        values, partition = harmonics.values(np.concatenate([f, potential], axis=2))
        south, east = harmonics.gradients(potential)
        factor = values / (beta * partition)
        return harmonics.weak_divergence(factor * south, factor * east)

    f = harmonics.coefficients(density.reshape(1, n, 2 * n))
    steps = round(stop / step)
    with np.errstate(all="ignore"):
        for k in range(steps):
            f = runge_kutta_4(rate, k * step, f, step)
            if not np.abs(f).max() < bound:
                return Outcome(f[..., 0], (k + 1) * step, "coefficients beyond those of any probability law")
    return Outcome(f[..., 0], stop, "")
