"""Wasserstein distances between laws: exact where that is cheap, sliced or entropic elsewhere."""

from typing import Literal, get_args

import numpy as np
import ot
from scipy.spatial.distance import cdist

from pde_solver.errors import InputError, did_you_mean
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.observing.transport_1d import transport_on_circle, transport_on_line

Method = Literal["auto", "exact", "sliced", "entropic"]

#: The largest n · m for which transport between n and m points is solved on the full matrix of costs.
LARGEST_COST_MATRIX = 3000 * 3000
#: Points that `sliced` projects in all, unless it is told how many directions to take.
SLICED_POINTS = 3_000_000


def wasserstein(
    a: TokenMeasure,
    b: TokenMeasure,
    manifold: Manifold,
    p: int = 1,
    method: Method = "auto",
    *,
    projections: int | None = None,
    regularisation: float = 0.05,
    seed: int = 0,
) -> float:
    """The Wasserstein distance W_p(a, b) = (min_π ∫ d(x, y)^p dπ)^{1/p} of two laws. Collective.

    d is the arc length on spheres and the Euclidean distance on R^d.

    - `exact`: by quantiles on the line and on the circle, for any number of points; elsewhere by linear
      programming, for up to 3000 × 3000 points.
    - `sliced`: (mean over unit vectors θ of W_p(⟨θ, ·⟩ a, ⟨θ, ·⟩ b)^p)^{1/p}, the mean one-dimensional distance of
      the projections of both laws in the ambient space R^D. It is a distance, smaller than W_p (between
      two Diracs at Euclidean distance r and p = 2 it is r/√D), and its sampling error does not grow with D.
    - `entropic`: S^{1/p} with the debiased Sinkhorn divergence S = OT_ε(a, b) − ½ OT_ε(a, a) − ½ OT_ε(b, b).
    - `auto`: exact where it is allowed, sliced elsewhere.

    Args:
        a: a law of one label, weights (1, n), mass 1; spread over ranks or whole on each.
        b: the other law, weights (1, m).
        manifold: where both live.
        p: 1 or 2.
        method: how it is computed; `distance_name` says what that comes to.
        projections: how many directions `sliced` takes, always the same for one seed; orthonormal D at a time. By default
            300 for laws of up to 10⁴ points together, fewer for more, but at least 30.
        regularisation: ε of `entropic`, in units of d^p.
        seed: of the directions.

    Returns:
        W_p, not its power.

    Raises:
        InputError: a law has several labels, a weight that is negative or not finite, or a mass other than 1; or
            there are too many points for the method.

    Source: Peyré and Cuturi, Computational Optimal Transport (2019): quantiles, remark 2.30; sliced, section 10.4;
        debiased divergence, Feydy et al., arXiv:1810.08278, equation (3). Circle: see `transport_1d.py`.
    """
    _check_options(p, method)
    first, second = _checked("first", a, manifold), _checked("second", b, manifold)
    chosen = _choose(method, manifold, len(first.points) * len(second.points))
    x, y, masses = first.points, second.points, (first.weights[0], second.weights[0])
    if chosen == "sliced":
        if projections is None:
            projections = int(np.clip(SLICED_POINTS // (len(x) + len(y)), 30, 300))
        power = _sliced(x, y, masses, p, _directions(projections, manifold.ambient_dimension, seed))
    elif chosen == "entropic":
        power = _sinkhorn_divergence(x, y, masses, manifold, p, regularisation)
    elif manifold.dimension > 1:
        power = _exact_discrete(geodesic_distances(x, y, manifold) ** p, masses)
    elif isinstance(manifold, Sphere):
        power = (2 * np.pi) ** p * transport_on_circle(_turns(x), masses[0], _turns(y), masses[1], p)
    else:
        power = transport_on_line(x[:, 0], masses[0], y[:, 0], masses[1], p)
    return float(max(power, 0.0) ** (1 / p))


def distance_name(
    a: TokenMeasure,
    b: TokenMeasure,
    manifold: Manifold,
    p: int = 1,
    method: Method = "auto",
    *,
    regularisation: float = 0.05,
) -> str:
    """What `wasserstein` computes with the same arguments, for a table: "W₁, exact on the circle". Collective."""
    _check_options(p, method)
    sizes = [len(_checked(which, law, manifold).points) for which, law in (("first", a), ("second", b))]
    chosen = _choose(method, manifold, sizes[0] * sizes[1])
    symbol = "W₁" if p == 1 else "W₂"
    if chosen == "sliced":
        return f"sliced {symbol}, in R^{manifold.ambient_dimension}"
    if chosen == "entropic":
        return f"{symbol}, Sinkhorn divergence with ε = {regularisation:g}"
    if manifold.dimension > 1:
        return (
            f"{symbol}, exact between points on {manifold}"
            if isinstance(manifold, Sphere)
            else f"{symbol}, exact between points in {manifold}"
        )
    return f"{symbol}, exact on the {'circle' if isinstance(manifold, Sphere) else 'line'}"


def geodesic_distances(x: np.ndarray, y: np.ndarray, manifold: Manifold) -> np.ndarray:
    """d(x_i, y_j): arc length 2 atan2(|x − y|, |x + y|) on spheres, |x − y| on R^d; (n, m) for (n, D) and (m, D).

    Unlike arccos⟨x, y⟩ the formula keeps all digits for points close together or antipodal.
    """
    chords = cdist(x, y)
    return 2 * np.arctan2(chords, cdist(x, -y)) if isinstance(manifold, Sphere) else chords


def _check_options(p: int, method: str) -> None:
    if p not in (1, 2):
        raise InputError(f"wasserstein: p must be 1 or 2, found {p!r}.")
    if method not in get_args(Method):
        raise InputError(f"wasserstein: unknown method {method!r}; {did_you_mean(str(method), get_args(Method))}")


def _checked(which: str, law: TokenMeasure, manifold: Manifold) -> TokenMeasure:
    """The whole law with mass exactly one and without the points that carry nothing."""
    law = law.gathered()
    where = f"wasserstein: the {which} law"
    if len(law.weights) != 1:
        raise InputError(
            f"{where} must have one label, found {len(law.weights)}; mix its labels first, `measure.mixed(...)`."
        )
    if law.points.shape[1] != manifold.ambient_dimension:
        raise InputError(
            f"{where} must have points with {manifold.ambient_dimension} coordinates ({manifold}), "
            f"found {law.points.shape[1]}."
        )
    weights = law.weights[0]
    if not np.all(np.isfinite(weights)) or not np.all(np.isfinite(law.points)):
        raise InputError(f"{where} has points or weights that are not finite.")
    if np.any(weights < 0):
        raise InputError(
            f"{where} has {np.sum(weights < 0)} negative weights, the least {weights.min():.3g}; limit the density."
        )
    mass = weights.sum()
    if not abs(mass - 1) <= 1e-6:
        raise InputError(f"{where} must have mass 1, found {mass:.9g}; divide its weights by their sum.")
    kept = weights > 0
    return TokenMeasure(law.points[kept], (weights[kept] / mass)[None])


def _choose(method: Method, manifold: Manifold, pairs: int) -> Method:
    small = pairs <= LARGEST_COST_MATRIX
    if method == "auto":
        return "exact" if small or manifold.dimension == 1 else "sliced"
    if not small and (method == "entropic" or (method == "exact" and manifold.dimension > 1)):
        raise InputError(
            f"wasserstein: method {method!r} on {manifold} needs a matrix of {pairs:.3g} costs, "
            f"at most {LARGEST_COST_MATRIX:.3g} are allowed; use method='sliced', or fewer points."
        )
    return method


def _turns(points: np.ndarray) -> np.ndarray:
    """Angles of points (n, 2) in turns, in [0, 1)."""
    return np.mod(np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi), 1.0) % 1.0  # twice: mod(−1e−20, 1) is 1


def _directions(count: int, dimension: int, seed: int) -> np.ndarray:
    """Random unit vectors, orthonormal in groups of D: (at least `count`, D). Groups average |⟨θ, x⟩|² exactly."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"wasserstein: projections must be a whole number ≥ 1, found {count!r}.")
    groups = -(-count // dimension)
    normal = np.random.default_rng(seed).standard_normal((groups, dimension, dimension))
    return np.linalg.qr(normal)[0].swapaxes(1, 2).reshape(-1, dimension)


def _sliced(x, y, masses, p: int, directions: np.ndarray) -> float:
    return float(np.mean([transport_on_line(x @ theta, masses[0], y @ theta, masses[1], p) for theta in directions]))


def _exact_discrete(costs: np.ndarray, masses) -> float:
    value, log = ot.emd2(*masses, costs, numItermax=10_000_000, log=True)
    if log["warning"] is not None:
        raise InputError(
            f"wasserstein: exact transport between {costs.shape[0]} and {costs.shape[1]} points did not converge "
            f"({log['warning']}); use method='sliced'."
        )
    return float(value)


def _sinkhorn_divergence(x, y, masses, manifold: Manifold, p: int, epsilon: float) -> float:
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"wasserstein: regularisation must be a finite number > 0, found {epsilon!r}.")

    def regularised(x, y, a, b) -> float:
        """OT_ε(a, b) = ⟨a, f⟩ + ⟨b, g⟩ with the dual potentials f = ε log(u/a), g = ε log(v/b)."""
        costs = geodesic_distances(x, y, manifold) ** p
        _, log = ot.sinkhorn(
            a, b, costs, epsilon, method="sinkhorn_log", numItermax=5000, stopThr=1e-8, warn=False, log=True
        )
        if not log["err"][-1] < 1e-8:
            raise InputError(
                f"wasserstein: Sinkhorn's iteration did not converge (marginals off by {log['err'][-1]:.2g}); "
                f"use a regularisation larger than {epsilon:g}, or method='sliced'."
            )
        return float(epsilon * (a @ (log["log_u"] - np.log(a)) + b @ (log["log_v"] - np.log(b))))

    a, b = masses
    return regularised(x, y, a, b) - (regularised(x, x, a, a) + regularised(y, y, b, b)) / 2
