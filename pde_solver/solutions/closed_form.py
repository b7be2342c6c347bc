"""The closed form of a model and an initial law, where one is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.densities import (
    Expression,
    Gaussian,
    Law,
    PointCloud,
    PoissonKernel,
    Uniform,
    VonMisesFisher,
    box_quadrature,
    sphere_quadrature,
)
from pde_solver.densities.arguments import number
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Manifold, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models.attention import Attention
from pde_solver.models.linear import Linear
from pde_solver.models.model import Model
from pde_solver.models.normalisers import L2, Unnormalised
from pde_solver.models.terms import Sum, Term
from pde_solver.solutions.gaussian_closure import GaussianClosure
from pde_solver.solutions.linear_flow import LinearFlow
from pde_solver.solutions.poisson_kernel_flow import PoissonKernelFlow

#: The law at a depth that is counted from the beginning of a layer.
Flow = Callable[[float], Law]
#: The flow of the terms of one layer from a law, None if the kind of solution does not hold for them.
Kind = Callable[[Manifold, Sequence[Term], Law], Flow | None]

#: Matrices are equal up to the rounding errors of a product of a few factors.
ROUNDING = 64 * np.finfo(float).eps
#: How well the mass of a formula must be known, and with how many points at most.
MASS_TOLERANCE, MOST_POINTS = 1e-9, 2_500_000


@dataclass(frozen=True)
class ClosedForm:
    """An exact law.

    Args:
        name: what it is in a few words, for example "rigid rotation".
        source: where it is derived.
        density: f(t, x) relative to the surface measure, from a depth t ≥ start and points (m, D): (m,).
    """

    name: str
    source: str
    density: Callable[[float, np.ndarray], np.ndarray]


def closed_form(model: Model, initial: Law, start: float = 0.0) -> ClosedForm:
    """The exact law μ_t, t ≥ start, of ∂ₜμ + div(μ X[μ]) = 0 with μ_start = `initial`.

    Known for one label, in each of its layers, are, the first that fits being taken:

    - x' = P_x (W x + b), with b = 0 on spheres, from any density: `LinearFlow`;
    - the uniform law on a sphere, where Q, K, V and W let it rest: its velocity is c(|Aᵀx|) P_x V Aᵀ x + P_x W x,
      A = β QᵀK (for L2 attention if KᵀK is a multiple of I), which is zero or a rigid rotation if W and V Aᵀ are
      skew matrices plus multiples of I, and where V Aᵀ has a skew part, A Aᵀ is a multiple of I too;
    - x' = P_x (a ∫ y μ(dy) + b) on a sphere, which is attention at β = 0, from a Poisson kernel or the uniform law:
      `PoissonKernelFlow`, with a I = Σ_h a_h V_h, times e^{−c} for unnormalised heads;
    - softmax and L2 heads with linear drifts on R^d from a Gaussian: `GaussianClosure`.

    Heads of weight 0 or with V = 0 do not count. A law that is known up to a factor is scaled to mass one.

    Args:
        model: what is solved.
        initial: the law at depth `start`.
        start: the depth where the run starts.

    Returns:
        The density raises InputError for t < start, and where the law has become a Dirac mass or has blown up.

    Raises:
        InputError: "no exact law is known for ...; known are ...; take another reference", if none of them fits; if
            the initial law does not fit the manifold or its mass cannot be found.

    Source: derived for this project; each kind of solution names its own.
    """
    start = number("closed_form: start", start)
    shares = np.unique(model.labels.mixing)  # with one label, what each head attends to of it
    if model.labels.count != 1 or len(shares) > 1 or shares[0] == 0 or isinstance(initial, PointCloud):
        raise _unknown(model, initial)
    manifold, d = model.manifold, model.manifold.ambient_dimension
    initial.density(np.full((1, d), d**-0.5), manifold)  # a law of another manifold is refused in its own words
    beginnings = [start, *(t for t in model.velocity.breakpoints if t > start)]
    layers = [_acting(model.velocity.at(t), float(shares[0])) for t in beginnings]
    # each kind leads to laws of the kind that it starts from, so the initial law answers for all layers
    fitting = (entry for entry in _KINDS if all(entry[0](manifold, layer, initial) for layer in layers))
    found = next(fitting, None)
    if found is None:
        raise _unknown(model, initial)
    kind, name, source = found
    mass = 1.0 if initial.is_normalised(manifold) else _mass(model, initial)

    def density(t: float, points: np.ndarray) -> np.ndarray:
        return _law(kind, manifold, layers, beginnings, initial, t).density(points, manifold) / mass

    return ClosedForm(name or _name_of_drift(manifold, layers), source, density)


def _law(kind: Kind, manifold: Manifold, layers: list[list[Term]], beginnings: list[float], law: Law, t: float) -> Law:
    """The law at depth t, from layer to layer."""
    if not t >= beginnings[0]:
        raise InputError(f"closed_form: the law is known from depth {beginnings[0]:g} on, found t = {t:g}.")
    for layer, begin, end in zip(layers, beginnings, [*beginnings[1:], np.inf], strict=True):
        flow = kind(manifold, layer, law)
        assert flow is not None
        try:
            law = flow(min(t, end) - begin)
        except InputError as error:
            raise InputError(
                f"closed_form: no density at depth {t:g} (below, depth is from {begin:g} on): {error}"
            ) from None
        if t <= end:
            break
    return law


def _acting(velocity: Term, mass: float) -> list[Term]:
    """The terms that move tokens; heads at β = 0, where all normalisers agree up to a factor, as softmax heads.

    Args:
        velocity: constant in depth.
        mass: of the law that tokens attend to, by which unnormalised attention is multiplied.
    """
    terms: list[Term] = []
    for term in velocity.summands():
        if isinstance(term, Attention):
            if term.weight == 0 or (term.value is not None and not np.any(term.value)):
                continue
            if term.beta == 0:
                scale = term.normaliser
                factor = mass * float(np.exp(-scale.log_scale)) if isinstance(scale, Unnormalised) else 1.0
                term = Attention(beta=0.0, value=term.value, weight=term.weight * factor)
        terms.append(term)
    return terms


def _linear_flow(manifold: Manifold, terms: Sequence[Term], law: Law) -> Flow | None:
    """Any density under linear drifts alone."""
    matrix, offset = _drift(manifold, terms)
    if len(_of_kind(Linear, terms)) < len(terms) or (isinstance(manifold, Sphere) and np.any(offset)):
        return None
    flow = LinearFlow(manifold, Linear(matrix, offset), law)
    return lambda t: _Carried(flow, t)


def _uniform_at_rest(manifold: Manifold, terms: Sequence[Term], law: Law) -> Flow | None:
    """The uniform law on a sphere under attention and drifts that let it rest."""
    heads, (matrix, offset) = _of_kind(Attention, terms), _drift(manifold, terms)
    if not isinstance(manifold, Sphere) or not _is_uniform(law):
        return None
    if len(heads) + len(_of_kind(Linear, terms)) < len(terms) or np.any(offset):
        return None
    if not _turns(matrix) or not all(_turns_the_uniform_law(head, manifold) for head in heads):
        return None
    return lambda t: law


def _poisson_kernel(manifold: Manifold, terms: Sequence[Term], law: Law) -> Flow | None:
    """A Poisson kernel on a sphere under attention at β = 0 and a uniform field."""
    heads, (matrix, offset) = _of_kind(Attention, terms), _drift(manifold, terms)
    if not isinstance(manifold, Sphere) or not (_is_uniform(law) or isinstance(law, PoissonKernel)):
        return None
    if len(heads) + len(_of_kind(Linear, terms)) < len(terms) or any(head.beta != 0 for head in heads):
        return None
    identity = np.eye(manifold.ambient_dimension)
    value = np.zeros_like(identity)
    for head in heads:
        value += head.weight * (identity if head.value is None else head.value)
    if not _is_multiple(value) or not _is_multiple(matrix):  # P_x (c x) = 0
        return None
    w = law.w if isinstance(law, PoissonKernel) else (0.0,) * len(identity)
    field = tuple(offset) if np.any(offset) else None
    flow = PoissonKernelFlow(w, float(np.trace(value)) / len(identity), field)

    def kernel(t: float) -> PoissonKernel:
        with np.errstate(all="ignore"):  # rounding can lead out of the ball, where w(t) runs away
            length = np.linalg.norm(flow.w_at(t))
        if not length < 1:
            raise InputError("the Poisson kernel is a Dirac mass to rounding errors.")
        return flow.law(t)

    return kernel


def _gaussian(manifold: Manifold, terms: Sequence[Term], law: Law) -> Flow | None:
    """A Gaussian on R^d under softmax and L2 attention with linear drifts."""
    heads = _of_kind(Attention, terms)
    if not isinstance(manifold, Euclidean) or not isinstance(law, Gaussian):
        return None
    if len(heads) + len(_of_kind(Linear, terms)) < len(terms) or not all(h.normaliser.normalised for h in heads):
        return None
    return GaussianClosure(Model(manifold, Sum(tuple(terms))), law).law


#: Kinds of solutions in the order in which they are tried, their names (None: that of the drift) and sources.
_KINDS: Sequence[tuple[Kind, str | None, str]] = (
    (_linear_flow, None, "derived for this project (change of variables along the characteristics)"),
    (_uniform_at_rest, "uniform law at rest", "derived for this project (symmetry under rotations)"),
    (
        _poisson_kernel,
        "Poisson kernel flow",
        "derived for this project; on the circle it is the invariant manifold of Ott and Antonsen (arXiv:0806.0004)",
    ),
    (
        _gaussian,
        "Gaussian closure",
        "derived for this project; that Gaussians are preserved: Castin, Ablin, Carrillo, Peyré (arXiv:2501.18322)",
    ),
)


@dataclass(frozen=True)
class _Carried(Law):
    """The law at a depth of a linear flow."""

    flow: LinearFlow
    depth: float

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        return self.flow.density(self.depth, points)

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        return self.flow.flow(self.depth, self.flow.initial.sample(count, rng, manifold))


def _of_kind[T: Term](kind: type[T], terms: Sequence[Term]) -> list[T]:
    return [term for term in terms if isinstance(term, kind)]


def _drift(manifold: Manifold, terms: Sequence[Term]) -> tuple[np.ndarray, np.ndarray]:
    """W and b of the sum of all linear drifts."""
    d = manifold.ambient_dimension
    matrix, offset = np.zeros((d, d)), np.zeros(d)
    for term in _of_kind(Linear, terms):
        matrix = matrix if term.matrix is None else matrix + term.matrix
        offset = offset if term.offset is None else offset + term.offset
    return matrix, offset


def _is_uniform(law: Law) -> bool:
    if isinstance(law, PoissonKernel):
        return not np.any(law.w)
    return isinstance(law, Uniform) or (isinstance(law, VonMisesFisher) and law.kappa == 0)


def _is_multiple(matrix: np.ndarray, scale: float | None = None) -> bool:
    """Whether the matrix is a multiple of I, to rounding errors of its entries or of the scale given."""
    scale = float(np.abs(matrix).max()) if scale is None else scale
    d = len(matrix)
    return bool(np.all(np.abs(matrix - np.trace(matrix) / d * np.eye(d)) <= ROUNDING * scale))


def _turns(matrix: np.ndarray) -> bool:
    """Whether x' = P_x W x is a rigid rotation: the symmetric part of W is a multiple of I."""
    return _is_multiple((matrix + matrix.T) / 2, float(np.abs(matrix).max()))


def _turns_the_uniform_law(head: Attention, sphere: Sphere) -> bool:
    """Whether the head's velocity at the uniform law is a rigid rotation or zero.

    ∫ e^{⟨x, A y⟩} y σ(dy) is a function of |Aᵀx| times Aᵀx, so that the velocity is zero if V Aᵀ = v I, and a rotation for
    other skew parts if |Aᵀx| is the same for all x; for L2 attention |Ky| must be, so that the weights are those of softmax.
    """
    if head.beta == 0:
        return True  # the mean is zero
    identity = np.eye(sphere.ambient_dimension)
    query, key, value = (identity if m is None else m for m in (head.query, head.key, head.value))
    form = query.T @ key
    if isinstance(head.normaliser, L2) and not _is_multiple(key.T @ key):
        return False
    return _is_multiple(value @ form.T) or (_is_multiple(form @ form.T) and _turns(value @ form.T))


def _name_of_drift(manifold: Manifold, layers: Sequence[Sequence[Term]]) -> str:
    matrices, offsets = zip(*(_drift(manifold, terms) for terms in layers), strict=True)
    shifts = any(map(np.any, offsets))
    if isinstance(manifold, Sphere):  # where a multiple of I does not count, as P_x (c x) = 0
        matrices = tuple(matrix - np.trace(matrix) / len(matrix) * np.eye(len(matrix)) for matrix in matrices)
    if not any(map(np.any, matrices)):
        return "translation" if shifts else "law at rest"
    if all(_turns(matrix) and not np.any(np.diag(matrix)) for matrix in matrices):
        return "rigid motion" if shifts else "rigid rotation"
    return "linear flow"


def _mass(model: Model, law: Law) -> float:
    """∫ f of a law that is known up to a factor, by finer and finer quadratures until two agree.

    Raises:
        InputError: if they do not, or if there is no bounded set to integrate over.
    """
    manifold = model.manifold
    box = law.box if isinstance(law, Expression) else None
    if isinstance(manifold, Euclidean) and box is None:
        raise _unknown(model, law)
    mass, change, order = np.nan, np.nan, 16
    while 2 * order**manifold.dimension <= MOST_POINTS:
        rule = _rule(manifold, box, order)
        before, mass = mass, float(rule.weights[0] @ law.density(rule.points, manifold))
        change = abs(mass - before)
        if mass > 0 and change <= MASS_TOLERANCE * mass:
            return mass
        order = 2 * order + 5  # not twice: both rules could count the same share of a set with a sharp edge
    raise InputError(
        f"closed_form: the mass of {law!r} on {manifold} is not found to {MASS_TOLERANCE:g} by quadrature ({mass:.6g}, last "
        f'change {change:.1g}), for want of smoothness; take another reference ("finest" or "particles").'
    )


def _rule(manifold: Manifold, box: tuple | None, order: int) -> TokenMeasure:
    """A quadrature of a box or a sphere; on S² in the angles, as a formula of them need not be smooth at the poles."""
    if box is not None:
        return box_quadrature(box[0], box[1], cells=order // 4)
    if manifold != Sphere(3):
        return sphere_quadrature(manifold, order)
    angles = box_quadrature((0.0, -np.pi), (np.pi, np.pi), cells=order // 4)
    theta, phi = angles.points.T
    points = np.column_stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
    return TokenMeasure(points, angles.weights * np.sin(theta))


def _unknown(model: Model, initial: Law) -> InputError:
    return InputError(
        f"closed_form: no exact law is known for {model}, from {initial!r}; known are, for one label, linear drifts (on a "
        "sphere without an offset) from any density of finite mass, the uniform law on a sphere under attention and drifts "
        "that let it rest, attention at β = 0 with V = v I and an offset on a sphere from a PoissonKernel, and softmax or "
        'L2 attention with linear drifts on R^d from a Gaussian; take another reference ("finest" or "particles").'
    )
