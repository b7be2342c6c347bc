"""A head's score in the singular vectors of QᵀK, where it is a sum over coordinates, and the box that its points fill."""

from dataclasses import dataclass

import numpy as np

from pde_solver.kernel_sums.method import Problem
from pde_solver.kernel_sums.separable import diagonal_of
from pde_solver.models.attention import Attention
from pde_solver.models.normalisers import L2
from pde_solver.parallel import max_over_ranks

# KᵀK counts as diagonal in the basis of the sources if everything else is smaller than this.
_DIAGONAL = 1e-13
# Else its exponential multiplies the weights, which must not underflow.
_BIAS_RANGE = 300.0


@dataclass(frozen=True, eq=False)
class DiagonalScore:
    """Σ_k (coupling_k ξ_k η_k − square_k η_k²/2) + bias(y), ξ = Uᵀx, η = Vᵀy, and where the points of all ranks are.

    Args:
        left: U.
        right: V.
        coupling: (d,) β s_k.
        square: (d,) the part of the bias of the keys that is diagonal in η.
        head: whose bias multiplies the weights, if it is not.
        log_scale: logarithm of what that was divided by.
        sources, targets: (2, d) least and largest coordinates η and ξ.
    """

    left: np.ndarray
    right: np.ndarray
    coupling: np.ndarray
    square: np.ndarray
    head: Attention | None
    log_scale: float
    sources: np.ndarray
    targets: np.ndarray

    @staticmethod
    def of(problem: Problem, head: Attention) -> "DiagonalScore | None":
        """The score of a head; None if its bias spans too many powers of ten. Collective."""
        dimension = problem.manifold.dimension
        query = np.eye(dimension) if head.query is None else head.query
        key = np.eye(dimension) if head.key is None else head.key
        left, singular, right = np.linalg.svd(query.T @ key)
        right = right.T
        bias = head.key_bias(head.keys(problem.sources))
        square = np.zeros(dimension)
        if isinstance(head.normaliser, L2):
            diagonal = diagonal_of(right.T @ key.T @ key @ right, _DIAGONAL)
            if diagonal is not None:
                square, bias = head.beta * diagonal, None
        parts = [problem.sources @ right, problem.targets @ left]
        parts += [] if bias is None else [bias[:, None]]
        extremes = [
            sign * (sign * part).max(axis=0, initial=-np.inf) if len(part) else np.full(part.shape[1], -sign * np.inf)
            for part in parts
            for sign in (-1.0, 1.0)
        ]
        signs = np.concatenate([np.full(len(e), s) for e, s in zip(extremes, (-1.0, 1.0) * len(parts), strict=True)])
        extreme = signs * max_over_ranks(problem.comm, signs * np.concatenate(extremes))
        if not np.all(np.isfinite(extreme)):
            return None
        sources, targets = extreme[: 4 * dimension].reshape(2, 2, dimension)
        log_scale = 0.0
        if bias is not None:
            least, log_scale = extreme[4 * dimension :]
            if log_scale - least > _BIAS_RANGE:
                return None
        biased = None if bias is None else head
        return DiagonalScore(left, right, head.beta * singular, square, biased, float(log_scale), sources, targets)

    def factor(self, sources: np.ndarray) -> np.ndarray | None:
        """e^{bias − scale} at sources (m, d), if they are to be multiplied by it."""
        if self.head is None:
            return None
        bias = self.head.key_bias(self.head.keys(sources))
        return None if bias is None else np.exp(bias - self.log_scale)
