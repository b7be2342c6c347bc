"""Labels are fibres: frozen marks of a token (its position, its group, a prompt) that attention can see."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError


@dataclass(frozen=True, eq=False)
class Labels:
    """A finite set of labels z with masses π_z, and who attends to whom.

    The state is one conditional law μ_z (mass 1) for each label; no mass flows between labels. A token
    with label z attends to ν_z = Σ_z' mixing_{zz'} μ_z'.

    Args:
        weights: (labels,) the masses π_z > 0, summing to 1.
        mixing: (labels, labels) matrix, entries ≥ 0; None means that everybody attends to everybody, mixing_{zz'} = π_z'.

    Raises:
        InputError: if masses or matrix do not fit.
    """

    weights: Sequence[float] = (1.0,)
    mixing: np.ndarray = None  # type: ignore[assignment]  # filled in at construction

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=float)
        if weights.ndim != 1 or not len(weights) or not np.all(weights > 0) or abs(weights.sum() - 1) > 1e-12:
            raise InputError(f"Labels: weights must be positive and sum to 1, found {self.weights!r}.")
        object.__setattr__(self, "weights", tuple(float(weight) for weight in weights))
        mixing = np.tile(weights, (len(weights), 1)) if self.mixing is None else np.array(self.mixing, dtype=float)
        if mixing.shape != 2 * (len(weights),) or not np.all((mixing >= 0) & np.isfinite(mixing)):
            raise InputError(
                f"Labels: mixing must be a {len(weights)} × {len(weights)} matrix with entries ≥ 0, found shape {mixing.shape}."
            )
        mixing.flags.writeable = False
        object.__setattr__(self, "mixing", mixing)

    @property
    def count(self) -> int:
        """How many labels there are."""
        return len(self.weights)
