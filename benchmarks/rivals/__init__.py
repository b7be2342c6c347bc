"""What a user would write or take instead of this package, each as a competent user would write it.

- `published_loop`: independent tokens, forward Euler, the n × n matrix of scores, as in published scripts;
- `independent_tokens`: independent tokens, Runge–Kutta, and the velocity of this package;
- `weighted_characteristics`: tokens placed by a quadrature and weighted by the initial density;
- `spherical_harmonics`: a Galerkin method for the density's coefficients;
- `reference`: the solution that all are measured against.
"""

from collections.abc import Callable

import numpy as np

Rate = Callable[[float, np.ndarray], np.ndarray]


def runge_kutta_4(rate: Rate, t: float, state: np.ndarray, dt: float) -> np.ndarray:
    """One step of the classical Runge–Kutta method for d state/dt = rate(t, state)."""
    k1 = rate(t, state)
    k2 = rate(t + dt / 2, state + dt / 2 * k1)
    k3 = rate(t + dt / 2, state + dt / 2 * k2)
    k4 = rate(t + dt, state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
