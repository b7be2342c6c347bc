"""Whose mass decides how much an error at a target counts."""

import numpy as np

from pde_solver.kernel_sums.spot_check import importance


def importance_for(mass: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """How much errors of what the wanted labels attend to count at targets, (labels', n) or (1, n).

    Args:
        mass: (labels, n) how much of each label's law lies around each target, the most being 1.
        mixing: (labels', labels); where all labels are wanted each asks for its own law, else for that of any.
    """
    counted = importance(mass)
    return counted if len(mixing) == len(mass) else counted.max(axis=0, keepdims=True)
