"""A mixture of laws."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.densities.arguments import vector
from pde_solver.densities.law import Law
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold


@dataclass(frozen=True)
class Mixture(Law):
    """Several bumps at once: f = Σ_k p_k f_k.

    Args:
        laws: the laws f_k, at least one.
        weights: p_k ≥ 0, scaled to the sum 1; None gives all the same.

    Raises:
        InputError: if weights and laws do not fit; on use, if a law is known only up to a factor, so that weights mean
            nothing.
    """

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def __init__(self, laws: Sequence[Law], weights: Sequence[float] | None = None) -> None:
        laws = tuple(laws) if isinstance(laws, Sequence) else (laws,)
        if not laws or not all(isinstance(law, Law) for law in laws):
            raise InputError(f"Mixture: laws must be a list of at least one law, found {laws!r}.")
        found = vector("Mixture: weights", [1.0] * len(laws) if weights is None else weights)
        if len(found) != len(laws) or min(found) < 0 or sum(found) == 0:
            raise InputError(f"Mixture: {len(laws)} laws need as many weights ≥ 0, not all zero, found {weights!r}.")
        object.__setattr__(self, "laws", laws)
        object.__setattr__(self, "weights", tuple(weight / sum(found) for weight in found))

    def at(self, position: float) -> "Mixture":
        """The mixture of the laws at that position."""
        return Mixture([law.at(position) for law in self.laws], self.weights)

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """Σ_k p_k f_k at points (n, D): (n,)."""
        self._require_normalised(manifold)
        total = np.zeros(len(points))
        for weight, law in zip(self.weights, self.laws, strict=True):
            total += weight * law.density(points, manifold)
        return total

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, D): each draws its law, then its place."""
        self._require_normalised(manifold)
        which = rng.choice(len(self.laws), size=count, p=self.weights)
        tokens = np.empty((count, manifold.ambient_dimension))
        for k, law in enumerate(self.laws):
            tokens[which == k] = law.sample(int(np.sum(which == k)), rng, manifold)
        return tokens

    def _require_normalised(self, manifold: Manifold) -> None:
        for law in self.laws:
            if not law.is_normalised(manifold):
                raise InputError(
                    f"Mixture: {law!r} is known only up to a factor on {manifold}, so its weight means nothing; "
                    "write the whole sum as one Expression."
                )
