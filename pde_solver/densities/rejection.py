"""Rejection sampling: draw from an easy law, keep a draw with probability density / envelope."""

from collections.abc import Callable

import numpy as np

from pde_solver.errors import InputError

#: Fewer kept draws than one in so many is given up, so that no sampling runs for hours.
LARGEST_COST = 10_000


def sample_by_rejection(
    count: int,
    rng: np.random.Generator,
    propose: Callable[[int], np.ndarray],
    density: Callable[[np.ndarray], np.ndarray],
    envelope: float,
    where: str,
) -> np.ndarray:
    """Independent draws from a density that need not be normalised.

    If a draw exceeds the envelope, the envelope rises and all begins again, as the draws kept so far were biased.

    Args:
        count: how many draws are wanted.
        rng: source of randomness; `propose` must draw from it too.
        propose: draws so many independent points of the uniform law, (n, D).
        density: the density at points (n, D), ≥ 0, up to a factor.
        envelope: a bound of the density, > 0.
        where: the beginning of the error sentence.

    Returns:
        (count, D) draws.

    Raises:
        InputError: if less than one draw in 10,000 is kept.
    """
    kept: list[np.ndarray] = []
    found, drawn = 0, 0
    while found < count:
        points = propose(max(1024, 2 * (count - found)))
        values = density(points)
        accepted = points[rng.random(len(points)) * envelope < values]
        largest = values.max()
        if largest > envelope:
            kept, found, envelope = [], 0, 1.5 * largest
        else:
            kept.append(accepted)
            found += len(accepted)
        drawn += len(points)
        if drawn > LARGEST_COST * (max(found, 100)):
            raise InputError(
                f"{where} is so peaked that fewer than one draw in {LARGEST_COST:,} would be kept; "
                "draw the tokens yourself and give them as a PointCloud."
            )
    return np.concatenate(kept)[:count] if kept else propose(1)[:0]
