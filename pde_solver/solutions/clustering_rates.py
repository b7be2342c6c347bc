"""How fast the law becomes a Dirac mass where attention draws all tokens together."""

import math

from pde_solver.densities.arguments import require_sphere
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold
from pde_solver.models.attention import Attention
from pde_solver.solutions.isotropic_head import isotropic_head


def clustering_rate(manifold: Manifold, attention: Attention, *, full_support: bool) -> tuple[float, float]:
    """(r, q), such that at late depth the Wasserstein distance W₂ to the Dirac mass is ∼ t^q e^{−rt}.

    Near the Dirac mass the angle to it decays at the rate r₁ = s (softmax), s e^{b−c} (unnormalised). A law that
    ends up in a cap follows: r = r₁. Near the antipode tokens leave at the rate r₂ = s, s e^{−b−c}, so a density that
    is positive there leaves the mass e^{−(d−1) r₂ t} behind: r = min(r₁, (d−1) r₂ / 2). That is s min(2, d−1)/2 for
    softmax. Where the two are equal (softmax on S²) there is a factor √t: q = 1/2, else q = 0.
    Here s = a v and b = β q k for Q = q I, K = k I, V = v I and weight a.

    Args:
        manifold: S^{d−1}.
        attention: a head with Q, K and V positive multiples of I: one that draws all tokens together.
        full_support: whether the initial density is continuous and positive everywhere, or the law lies in a cap
            that does not reach the antipode of the limit.

    Returns:
        The rate r and the power q of depth.

    Raises:
        InputError: if the head is no such head, or the manifold no sphere.

    Source: derived for this project, by linearisation about the Dirac mass and its antipode.
    """
    where = "clustering_rate"
    sphere = require_sphere(where, manifold, instead="GaussianClosure")
    strength, exponent, log_scale = isotropic_head(where, attention)
    if strength <= 0 or exponent < 0:
        raise InputError(f"{where}: known where attention draws all tokens together, found {attention}.")
    near = away = strength
    if log_scale is not None:
        near, away = strength * math.exp(exponent - log_scale), strength * math.exp(-exponent - log_scale)
    tail = sphere.dimension * away / 2
    if not full_support or near < tail:
        return near, 0.0
    return tail, 0.5 if near == tail else 0.0
