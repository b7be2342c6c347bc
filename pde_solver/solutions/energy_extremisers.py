"""The extremes of ∬ e^{⟨x, Dy⟩} μ(dx) μ(dy) over all laws μ on a sphere, and some laws that attain them.

These energies are double integrals. The interaction energy of the package is 1/(2β) times them, at βQᵀK = D.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import iv

from pde_solver.densities.arguments import number
from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere
from pde_solver.models.attention import as_matrix
from pde_solver.solutions.growth_rates import kernel_coefficient

#: Between these d₂ the minimiser on the circle is resolved; beyond, its coefficients decay too slowly.
RESOLVED = (0.3, 1 / 0.3)

#: Coefficients c_1, …, c_20: |c_j| ∼ |(1 − d₂)/(1 + d₂)|^j, and the round-off of c_20 grows as further ones are added.
MODES = 20


def uniform_energy(sphere: Sphere, multiple: float = 1.0) -> float:
    """∬ e^{λ⟨x, y⟩} of the uniform law on S^{d−1}: Γ(ν+1) (2/|λ|)^ν I_ν(|λ|), ν = d/2 − 1.

    At λ = 1: I₀(1) on the circle, sinh 1 on S², 2 I₁(1) on S³.

    Args:
        sphere: S^{d−1}.
        multiple: λ, of any sign.

    Raises:
        InputError: if λ is not finite.

    Source: derived for this project, by the Funk–Hecke formula.
    """
    size = abs(number("uniform_energy: multiple", multiple))
    return kernel_coefficient(sphere, size, 0) * float(np.exp(size))


def maximum_energy(matrix: np.ndarray) -> float:
    """The largest ∬ e^{⟨x, Dy⟩} μ(dx) μ(dy) over all laws on the sphere.

    e^{λ_max} where λ_max ≥ −λ_min, of the Dirac mass at a top eigenvector; cosh λ_min where no eigenvalue is
    positive, of (δ_v + δ_{−v})/2 at the lowest eigenvector v, as sinh⟨x, −Dy⟩ is positive definite.

    Args:
        matrix: D, (d, d), symmetric, d ≥ 2.

    Raises:
        InputError: if D is not symmetric, or neither case applies.

    Source: derived for this project; the setting is that of Burger et al. (arXiv:2501.03096).
    """
    low, high = _extreme_eigenvalues("maximum_energy", matrix)
    if high >= -low:
        return float(np.exp(high))
    if high <= 0:
        return float(np.cosh(low))
    raise InputError(
        f"maximum_energy: known where the largest eigenvalue is the largest in size, or none is positive, "
        f"found eigenvalues from {low:g} to {high:g}."
    )


def minimum_energy(matrix: np.ndarray) -> float:
    """The least ∬ e^{⟨x, Dy⟩} μ(dx) μ(dy) over all laws on the sphere.

    e^{λ_min} where −λ_min ≥ λ_max, of the Dirac mass at a lowest eigenvector; that of the uniform law for D = λI,
    λ ≥ 0. For D = diag(1, d₂) on the circle see `circle_minimiser`.

    Args:
        matrix: D, (d, d), symmetric, d ≥ 2.

    Raises:
        InputError: if D is not symmetric, or neither case applies.

    Source: derived for this project; the setting is that of Burger et al. (arXiv:2501.03096).
    """
    low, high = _extreme_eigenvalues("minimum_energy", matrix)
    if -low >= high:
        return float(np.exp(low))
    if np.array_equal(matrix, high * np.eye(len(matrix))):
        return uniform_energy(Sphere(len(matrix)), high)
    raise InputError(
        f"minimum_energy: known for multiples of the identity, or where the lowest eigenvalue is the largest in size, "
        f"found eigenvalues from {low:g} to {high:g}; for D = diag(1, d₂) on the circle try circle_minimiser."
    )


def circle_minimiser(second: float) -> tuple[float, np.ndarray]:
    """The least energy on the circle for D = diag(1, d₂) and the law that has it, 1/(2π) (1 + 2 Σ_j c_j cos 2jθ) dθ.

    The kernel is positive definite, so a positive density with ∫ e^{⟨x, Dy⟩} μ(dy) = E at every x is the only
    minimiser, of energy E. With p = (1 + d₂)/2 and m = (1 − d₂)/2, ⟨x, Dy⟩ = p cos(θ − φ) + m cos(θ + φ), and the
    coefficient of e^{2ijθ} is Σ_k I_{j+k}(p) I_{j−k}(m) c_|k| over all integers k: E for j = 0, 0 else.

    Args:
        second: d₂ in [0.3, 1/0.3].

    Returns:
        E, and c_j = ∫ cos(2jθ) μ(dθ) for j = 1, …, 20, (20,).

    Raises:
        InputError: if d₂ is out of that range.

    Source: derived for this project; the setting is that of Burger et al. (arXiv:2501.03096).
    """
    second = number("circle_minimiser: second", second)
    if not RESOLVED[0] <= second <= RESOLVED[1]:
        raise InputError(
            f"circle_minimiser: second must be in [{RESOLVED[0]:g}, {RESOLVED[1]:.4g}], where the Fourier series "
            f"converges fast enough, found {second:g}."
        )
    p, m = (1 + second) / 2, (1 - second) / 2
    j, k = np.arange(MODES + 1)[:, None], np.arange(MODES + 1)[None, :]
    # k and −k together; each row over I_{2j}(p), as rows become smaller factorially, so that small entries count
    system = (_bessel(j + k, p) * _bessel(j - k, m) + _bessel(j - k, p) * _bessel(j + k, m)) / _bessel(2 * j, p)
    system[:, 0] /= 2
    right = np.zeros(MODES + 1)
    right[0] = 1 / _bessel(np.array(0), p)
    coefficients = np.linalg.solve(system, right)
    return float(1 / coefficients[0]), coefficients[1:] / coefficients[0]


def four_atom_state(second: float) -> tuple[float, float]:
    """The stationary law of atoms of 1/4 at (±a, ±b) on the circle for D = diag(1, d₂): tanh a² = d₂ tanh(d₂ b²).

    It stands still under the velocity P_x ∫ e^{⟨x, Dy⟩} D y μ(dy). Its energy is cosh(a²) cosh(d₂ b²).

    Args:
        second: d₂ > 0.

    Returns:
        a², with b² = 1 − a², and the energy.

    Raises:
        InputError: if d₂ ≤ 0.

    Source: derived for this project; the setting is that of Burger et al. (arXiv:2501.03096).
    """
    second = number("four_atom_state: second", second)
    if second <= 0:
        raise InputError(f"four_atom_state: second must be > 0, found {second:g}.")
    squared = brentq(lambda s: np.tanh(s) - second * np.tanh(second * (1 - s)), 0, 1, xtol=1e-16, rtol=1e-15)
    return float(squared), float(np.cosh(squared) * np.cosh(second * (1 - squared)))


def _bessel(order: np.ndarray, argument: float) -> np.ndarray:
    """I_n for whole n of any sign: I_{−n}(x) = I_n(x), I_n(−x) = (−1)^n I_n(x)."""
    return iv(np.abs(order), abs(argument)) * (np.where(order % 2 == 0, 1.0, -1.0) if argument < 0 else 1.0)


def _extreme_eigenvalues(where: str, matrix: np.ndarray) -> tuple[float, float]:
    """λ_min and λ_max of a symmetric matrix."""
    checked = as_matrix(f"{where}: matrix", matrix)
    if checked is None or checked.shape[0] != checked.shape[1] or len(checked) < 2:
        found = "nothing" if checked is None else f"shape {checked.shape}"
        raise InputError(f"{where}: matrix must be d × d with d ≥ 2, found {found}.")
    if not np.array_equal(checked, checked.T):
        raise InputError(f"{where}: matrix must be symmetric, found {checked.tolist()}.")
    eigenvalues = np.linalg.eigvalsh(checked)
    return float(eigenvalues[0]), float(eigenvalues[-1])
