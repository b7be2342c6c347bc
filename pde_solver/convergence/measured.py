"""The errors of a simulation against a density: what a convergence study of a mesh measures."""

from collections.abc import Callable

import numpy as np

from pde_solver.convergence.study import Measurement
from pde_solver.discretisations.on_mesh import MeshDiscretisation
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold
from pde_solver.measures import TokenMeasure
from pde_solver.observing import wasserstein
from pde_solver.parallel import on_root
from pde_solver.simulation import Simulation

Density = Callable[[np.ndarray], np.ndarray]


def measured(
    simulation: Simulation, exact: Density, *, distance: bool = True, seconds: float = 0.0, value: str = ""
) -> Measurement:
    """The errors of a simulation's present density: L¹, L², L^∞ of the surface measure, and W₁. Collective.

    W₁ is that between both densities as they are at the points of the mesh's fine quadrature: as both live on the same
    points, the distance of the points from each other is no error.

    Args:
        simulation: where it stands now; usually after `run()`.
        exact: the density at the present depth, points (m, D) -> (m,), of mass one.
        distance: whether to compute W₁: exact on the line and on the circle, sliced (see `wasserstein`) elsewhere.
        seconds: the run's wall time.
        value: what was varied.

    Returns:
        The errors "L1", "L2", "Linf" and "W1" at resolution h = (surface measure / cells)^{1/dimension}.

    Raises:
        InputError: for tokens, which have no density.
    """
    discretisation = simulation.discretisation
    if not isinstance(discretisation, MeshDiscretisation):
        raise InputError("measured: tokens have no density; compare their law, `wasserstein`.")
    points, measures, values = discretisation.sampled_density(simulation.state)
    target = exact(points)  # once, as it may be dear
    norms = discretisation.density_error(simulation.state, lambda _: target)
    errors = {"L1": norms.l1, "L2": norms.l2, "Linf": norms.linf}
    if distance:
        comm, manifold = discretisation.comm, discretisation.model.manifold
        law = np.asarray(discretisation.model.labels.weights) @ values
        # round-off below zero would be refused as a negative mass
        one, other = (
            _of_mass_one(TokenMeasure(points, (measures * np.maximum(density, 0.0))[None], comm).gathered())
            for density in (law, target)
        )
        errors["W1"] = on_root(comm, lambda: distance_of_laws(one, other, manifold))
    return Measurement(discretisation.cell_size, errors, discretisation.unknowns, seconds, value)


def distance_of_laws(a: TokenMeasure, b: TokenMeasure, manifold: Manifold) -> float:
    """W₁ by one method whatever the number of points, so that the rows of a study can be compared. One process only."""
    return wasserstein(a, b, manifold, p=1, method="exact" if manifold.dimension == 1 else "sliced")


def _of_mass_one(law: TokenMeasure) -> TokenMeasure:
    return TokenMeasure(law.points, law.weights / law.weights.sum())
