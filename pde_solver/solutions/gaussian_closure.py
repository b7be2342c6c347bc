"""Gaussians on R^d stay Gaussian under softmax and L2 attention with an affine drift and noise."""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from pde_solver.densities import Gaussian
from pde_solver.densities.arguments import number
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean
from pde_solver.models.attention import Attention
from pde_solver.models.linear import Linear
from pde_solver.models.model import Model
from pde_solver.models.normalisers import L2
from pde_solver.models.terms import Term


@dataclass(frozen=True, eq=False)
class GaussianClosure:
    """The exact law N(m(t), S(t)) of a model whose velocity at a Gaussian is affine, x ↦ J x + c.

    m' = J m + c, S' = J S + S Jᵀ + 2κ I, with J and c the sums over heads and drift of

    - softmax head: J = a V S Aᵀ, c = a V m, A = β Qᵀ K;
    - L2 head: J = a V (I + β S KᵀK)⁻¹ β S KᵀQ, c = a V (I + β S KᵀK)⁻¹ m;
    - drift W x + b: J = W, c = b.

    Args:
        model: on R^d, one label, a sum of softmax or L2 heads and linear drifts, constant or in layers.
        initial: N(m₀, S₀).
        diffusion: κ ≥ 0.

    Raises:
        InputError: if the model is not of this kind.

    Source: derived for this project; that Gaussians are preserved: Castin, Ablin, Carrillo, Peyré (arXiv:2501.18322).
    """

    model: Model
    initial: Gaussian
    diffusion: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "diffusion", number("GaussianClosure: diffusion", self.diffusion, least=0))
        if not isinstance(self.model.manifold, Euclidean):
            raise InputError(f"GaussianClosure: Gaussians live on R^d, but tokens live on {self.model.manifold}.")
        d = self.model.manifold.ambient_dimension
        if not isinstance(self.initial, Gaussian) or len(self.initial.mean) != d:
            raise InputError(f"GaussianClosure: the initial law must be a Gaussian on R^{d}, found {self.initial!r}.")
        if self.model.labels.count > 1:
            raise InputError(
                "GaussianClosure: tokens with several labels see a mixture, which is no Gaussian; use one label."
            )
        for t in (-np.inf, *self.model.velocity.breakpoints):
            for part in self.model.velocity.at(t).summands():
                _check(part)

    def moments(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """m(t), (d,), and S(t), (d, d).

        Raises:
            InputError: if the covariance blows up before t.
        """
        d = len(self.initial.mean)
        state = np.concatenate([self.initial.mean, np.ravel(self.initial.covariance)])
        blow_up = self.blow_up
        if blow_up is not None and t >= blow_up:
            raise InputError(
                f"GaussianClosure: the covariance blows up at t = {blow_up:.6g}; there is no law at t = {t:g}."
            )
        stops = [b for b in self.model.velocity.breakpoints if 0 < b < t] + [t]
        for start, end in zip([0.0, *stops], stops, strict=False):
            if end > start:
                state = self._advance(state, start, end)
        covariance = state[d:].reshape(d, d)
        return state[:d], (covariance + covariance.T) / 2

    def law(self, t: float) -> Gaussian:
        """N(m(t), S(t)), for its density and its samples."""
        return Gaussian(*self.moments(t))

    def density(self, t: float, points: np.ndarray) -> np.ndarray:
        """f(t, x) at points (n, d): (n,)."""
        return self.law(t).density(points, self.model.manifold)

    @property
    def blow_up(self) -> float | None:
        """The depth at which S blows up, inf if it never does, None where no closed form is known.

        Known for one softmax head with V = v I and no other term but an offset, without noise:
        S⁻¹ = S₀⁻¹ − a v t (A + Aᵀ), singular first at the inverse of the largest eigenvalue of
        a v S₀^{1/2} (A + Aᵀ) S₀^{1/2}.
        """
        parts = self.model.velocity.summands()
        heads = [part for part in parts if isinstance(part, Attention)]
        drifts = [
            part for part in parts if isinstance(part, Linear) and part.matrix is not None and np.any(part.matrix)
        ]
        if self.diffusion or drifts or len(heads) != 1 or self.model.velocity.breakpoints:
            return None
        multiple = heads[0].value_multiple
        v = None if multiple is None else heads[0].weight * multiple
        if v is None or isinstance(heads[0].normaliser, L2):
            return None
        root = np.linalg.cholesky(np.array(self.initial.covariance))
        form = _form(heads[0], len(root))
        largest = np.linalg.eigvalsh(root.T @ (v * (form + form.T)) @ root)[-1]
        return float(1 / largest) if largest > 0 else np.inf

    def _advance(self, state: np.ndarray, start: float, end: float) -> np.ndarray:
        parts = self.model.velocity.at(start).summands()
        d = len(self.initial.mean)

        def rate(_t: float, state: np.ndarray) -> np.ndarray:
            mean, covariance = state[:d], state[d:].reshape(d, d)
            J, c = np.zeros((d, d)), np.zeros(d)
            for part in parts:
                part_J, part_c = _affine_velocity(part, mean, covariance)
                J, c = J + part_J, c + part_c
            change = J @ covariance
            return np.concatenate([J @ mean + c, (change + change.T + 2 * self.diffusion * np.eye(d)).ravel()])

        with np.errstate(over="ignore", invalid="ignore"):  # a blow-up is reported below, as a sentence
            result = solve_ivp(rate, (start, end), state, method="DOP853", rtol=1e-13, atol=1e-15)
        if not result.success or not np.all(np.isfinite(result.y[:, -1])):
            raise InputError(
                f"GaussianClosure: the covariance blows up near t = {result.t[-1]:.6g}; there is no law at t = {end:g}."
            )
        return result.y[:, -1]


def softmax_covariance(t: float, v: float, form: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """S(t) = (S₀⁻¹ − v t (A + Aᵀ))⁻¹ of one softmax head with V = v I, written without S₀⁻¹.

    Args:
        t: depth, before the blow-up.
        v: the multiple of the identity, head weight included.
        form: A = β Qᵀ K, (d, d).
        covariance: S₀, (d, d).

    Source: derived for this project.
    """
    return np.linalg.solve(np.eye(len(form)) - v * t * covariance @ (form + form.T), covariance)


def softmax_moments_on_the_line(t: float, v: float, a: float, mean: float, variance: float) -> tuple[float, float]:
    """m(t) = m₀ e^{vt} / √(1 − 2vas₀t) and s(t) = s₀ / (1 − 2vas₀t) of one softmax head on R.

    Args:
        t: depth, before the blow-up at 1 / (2vas₀) that comes if va > 0.
        v: the value, head weight included.
        a: β q k.
        mean: m₀.
        variance: s₀.

    Source: derived for this project.
    """
    shrinkage = 1 - 2 * v * a * variance * t
    return mean * float(np.exp(v * t)) / shrinkage**0.5, variance / shrinkage


def _check(part: Term) -> None:
    if isinstance(part, Attention):
        if not part.normaliser.normalised:
            raise InputError(
                "GaussianClosure: unnormalised attention does not preserve Gaussians; "
                "give it the normaliser Softmax() or L2()."
            )
    elif not isinstance(part, Linear):
        raise InputError(f"GaussianClosure: only attention and linear drifts preserve Gaussians, found {part}.")


def _affine_velocity(part: Term, mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """J and c of one term."""
    d = len(mean)
    if isinstance(part, Linear):
        return (
            np.zeros((d, d)) if part.matrix is None else part.matrix,
            np.zeros(d) if part.offset is None else part.offset,
        )
    assert isinstance(part, Attention)
    value = part.weight * (np.eye(d) if part.value is None else part.value)
    tilt = covariance @ _form(part, d).T
    if isinstance(part.normaliser, L2):
        key = np.eye(d) if part.key is None else part.key
        sharpened = np.eye(d) + part.beta * covariance @ key.T @ key
        return value @ np.linalg.solve(sharpened, tilt), value @ np.linalg.solve(sharpened, mean)
    return value @ tilt, value @ mean


def _form(head: Attention, dimension: int) -> np.ndarray:
    """A = β Qᵀ K, the matrix of the score ⟨x, A y⟩."""
    query = np.eye(dimension) if head.query is None else head.query
    key = np.eye(dimension) if head.key is None else head.key
    return head.beta * query.T @ key
