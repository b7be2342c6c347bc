"""Labels are fibres: frozen marks of a token (its position, its group, a prompt) that attention can see."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.errors import InputError


@dataclass(frozen=True, eq=False)
class Labels:
    """A finite set of labels z with masses π_z, and who attends to whom.

    The state is one conditional law μ_z (mass 1) for each label; no mass flows between labels. A token
    with label z attends to ν_z = Σ_z' mixing_{zz'} μ_z', through every head alike or through each by a matrix of its own.

    Args:
        weights: (labels,) the masses π_z > 0, summing to 1.
        mixing: (labels, labels) matrix, entries ≥ 0, or (heads, labels, labels), one matrix for each attention head in the
            order of the velocity; None means that everybody attends to everybody, mixing_{zz'} = π_z'.
        nodes: (labels,) where labels are numbers, such as positions in (0, 1]: those numbers, increasing; None where they are not.

    Raises:
        InputError: if masses or matrix do not fit.
    """

    weights: Sequence[float] = (1.0,)
    mixing: np.ndarray = None  # type: ignore[assignment]  # filled in at construction
    nodes: np.ndarray | None = None

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=float)
        if weights.ndim != 1 or not len(weights) or not np.all(weights > 0) or abs(weights.sum() - 1) > 1e-12:
            raise InputError(f"Labels: weights must be positive and sum to 1, found {self.weights!r}.")
        object.__setattr__(self, "weights", tuple(float(weight) for weight in weights))
        mixing = np.tile(weights, (len(weights), 1)) if self.mixing is None else np.array(self.mixing, dtype=float)
        fits = mixing.ndim in (2, 3) and mixing.size and mixing.shape[-2:] == 2 * (len(weights),)
        if not fits or not np.all((mixing >= 0) & np.isfinite(mixing)):
            raise InputError(
                f"Labels: mixing must be a {len(weights)} × {len(weights)} matrix with entries ≥ 0, or one such matrix for each "
                f"head, found shape {mixing.shape}."
            )
        mixing.flags.writeable = False
        object.__setattr__(self, "mixing", mixing)
        if self.nodes is not None:
            nodes = np.array(self.nodes, dtype=float)
            if nodes.shape != weights.shape or not np.all(np.isfinite(nodes)) or not np.all(np.diff(nodes) > 0):
                raise InputError(
                    f"Labels: nodes must be {len(weights)} finite numbers that increase, one for each label, found {self.nodes!r}."
                )
            nodes.flags.writeable = False
            object.__setattr__(self, "nodes", nodes)

    @property
    def heads(self) -> int | None:
        """For how many heads there is a matrix of its own; None where one matrix serves all."""
        return len(self.mixing) if self.mixing.ndim == 3 else None

    @property
    def count(self) -> int:
        """How many labels there are."""
        return len(self.weights)


def mixing_of_head(mixing: np.ndarray, head: int) -> np.ndarray:
    """The matrix (labels', labels) of one head, of one for all or (heads, labels', labels).

    Args:
        mixing: one matrix for all heads, or one for each.
        head: its place among the heads.
    """
    return mixing if mixing.ndim == 2 else mixing[head]
