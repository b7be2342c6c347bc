"""The exact nonlinear solution at β = 0 on every sphere: Poisson kernels stay Poisson kernels."""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import hyp2f1, spence, xlogy

from pde_solver.densities import PoissonKernel
from pde_solver.densities.arguments import number, vector
from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere


def mean_resultant(r: float, ambient_dimension: int) -> float:
    """μ_d(r), the length of the mean ∫ x f(x) dx of a Poisson kernel with |w| = r on S^{d−1}.

    μ_d(r) = (2(d−1)/d) r ₂F₁(1, 1 − d/2; 1 + d/2; r²): μ₂ = r, μ₃ = (1+r²)/(2r) − (1−r²)²/(4r²) ln((1+r)/(1−r)),
    μ₄ = r(3−r²)/2.

    Args:
        r: in [0, 1).
        ambient_dimension: d ≥ 2.

    Source: derived for this project.
    """
    d = ambient_dimension
    return float(2 * (d - 1) / d * r * hyp2f1(1, 1 - d / 2, 1 + d / 2, r**2))


@dataclass(frozen=True)
class PoissonKernelFlow:
    """The law of x' = P_x (a ∫ y μ(dy) + b) on S^{d−1}: attention at β = 0 with V = a I, and a uniform field b.

    A law that starts as `PoissonKernel(w₀)` is `PoissonKernel(w(t))`, with w' = ((1 + |w|²) h − 2⟨w, h⟩ w) / 2,
    h = a μ_d(|w|) w / |w| + b. Without a field on the circle, |w|² = r₀² e^{at} / (1 − r₀² + r₀² e^{at}).
    At β = 0 softmax and unnormalised attention are the same.

    Args:
        w: w₀, (d,), |w₀| < 1.
        weight: a.
        field: b, (d,); None is zero.

    Raises:
        InputError: if w₀ is not in the open unit ball or the field does not fit it.

    Source: derived for this project; on the circle it is the invariant manifold of Ott and Antonsen, Chaos 18 (2008) 037113,
        arXiv:0806.0004.
    """

    w: tuple[float, ...]
    weight: float = 1.0
    field: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "w", PoissonKernel(self.w).w)
        object.__setattr__(self, "weight", number("PoissonKernelFlow: weight", self.weight))
        if self.field is not None:
            field = vector("PoissonKernelFlow: field", self.field)
            if len(field) != len(self.w):
                raise InputError(
                    f"PoissonKernelFlow: field must have {len(self.w)} entries as w has, found {len(field)}."
                )
            object.__setattr__(self, "field", field)

    @property
    def sphere(self) -> Sphere:
        """The sphere S^{d−1} on which the law lives."""
        return Sphere(len(self.w))

    def w_at(self, t: float) -> np.ndarray:
        """w(t), (d,)."""
        start = np.array(self.w)
        squared = float(start @ start)
        if self.field is None and len(start) == 2:
            return start / np.sqrt((1 - squared) * np.exp(-self.weight * t) + squared)
        if t == 0:
            return start
        result = solve_ivp(self._rate, (0, t), start, method="DOP853", rtol=1e-13, atol=1e-15)
        return result.y[:, -1]

    def law(self, t: float) -> PoissonKernel:
        """The law at depth t, for its density and its samples."""
        return PoissonKernel(tuple(self.w_at(t)))

    def mean(self, t: float) -> np.ndarray:
        """∫ x f(t, x) dx, (d,)."""
        return _mean(self.w_at(t))

    def density(self, t: float, points: np.ndarray) -> np.ndarray:
        """f(t, x) relative to the surface measure at points (n, d): (n,)."""
        return self.law(t).density(points, self.sphere)

    def wasserstein_to_dirac(self, t: float) -> float:
        """W₂ in arc length to the Dirac mass at w / |w|, on the circle: √(π²/3 + 4 Li₂(−|w|)).

        Raises:
            InputError: on another sphere than the circle.

        Source: derived for this project.
        """
        if len(self.w) != 2:
            raise InputError(
                "PoissonKernelFlow: the distance to a Dirac mass is known in closed form on the circle only."
            )
        r = np.linalg.norm(self.w_at(t))
        # Li₂(−r) = −π²/12 + Li₂(1 − r) − Li₂(1 − r²)/2 − ln r ln(1 + r), so that nothing cancels as r → 1;
        # spence(z) is Li₂(1 − z)
        return float(2 * np.sqrt(max(spence(r) - spence(r**2) / 2 - xlogy(np.log1p(r), r), 0.0)))

    def _rate(self, _t: float, w: np.ndarray) -> np.ndarray:
        h = self.weight * _mean(w)
        if self.field is not None:
            h = h + self.field
        return ((1 + w @ w) * h - 2 * (w @ h) * w) / 2


def _mean(w: np.ndarray) -> np.ndarray:
    """μ_d(|w|) w / |w|, and 0 at w = 0."""
    r = float(np.linalg.norm(w))
    return w if r == 0 else mean_resultant(r, len(w)) / r * w
