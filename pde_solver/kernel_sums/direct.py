"""Direct summation: exact to round-off, any dimension, any β."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ExponentialSums:
    """Sums relative to e^{shift}, so that nothing overflows.

    Args:
        shift: (n,) the exponents taken out, one for each target.
        denominator: (labels, n) Σ_j w_{zj} e^{s_j − shift}.
        numerator: (labels, n, d) Σ_j w_{zj} e^{s_j − shift} y_j.
    """

    shift: np.ndarray
    denominator: np.ndarray
    numerator: np.ndarray


def exponential_sums(queries, keys, values, weights, key_bias=None) -> ExponentialSums:
    """Σ_j w_{zj} e^{⟨q_i, k_j⟩ + b_j} (1, y_j): numpy reference, to be replaced."""
    scores = queries @ keys.T + (0.0 if key_bias is None else key_bias)
    shift = scores[:, (weights > 0).any(axis=0)].max(axis=1)
    p = np.exp(np.minimum(scores - shift[:, None], 0))
    return ExponentialSums(shift, weights @ p.T, np.einsum("nm,zm,md->znd", p, weights, values))
