"""What the runs of a study are held against: a closed form, or the finest run."""

from collections.abc import Callable

import numpy as np

from pde_solver.case import Case
from pde_solver.convergence import Measurement, distance_of_laws, measured
from pde_solver.densities import box_quadrature, sphere_quadrature
from pde_solver.discretisations.on_mesh import MeshDiscretisation
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.parallel import on_root
from pde_solver.simulation import Simulation
from pde_solver.solutions import closed_form

Density = Callable[[np.ndarray], np.ndarray]

#: Points of the quadrature that stands for an exact law beside tokens, along each direction.
QUADRATURE = {1: 20_000, 2: 300, 3: 60}
#: Box of that quadrature on R^d, in extents of the tokens beyond them on each side.
MARGIN = 0.5


def errors_to_closed_form(case: Case, run: Simulation, x: float | None) -> Measurement:
    """The errors of a run to the exact solution of its case: L1, L2, Linf and W1; of tokens W1 alone. Collective.

    Args:
        case: with a model and a law whose solution is known.
        run: at its stop.
        x: the resolution; by default the mesh width.

    Raises:
        InputError: no closed form is known for the case.
    """
    exact = closed_form(case.model, case.law, case.settings.time.start)

    def density(points: np.ndarray) -> np.ndarray:
        return exact.density(run.t, points)

    return _errors(run, density, lambda: _law_of(density, run), x)


def errors_to_finest(finest: Simulation, run: Simulation, x: float | None) -> Measurement:
    """The errors of a run to a finer one at the same depth: as those to a closed form. Collective.

    The finer density is evaluated where the coarser one is sampled. If one of both has no density, W1 alone.
    """
    weights = np.asarray(finest.discretisation.model.labels.weights)

    def density(points: np.ndarray) -> np.ndarray:
        return weights @ finest.discretisation.density_at(finest.state, points)

    known = density if finest.discretisation.has_density else None
    return _errors(run, known, finest.snapshot.law.gathered, x)


def _errors(run: Simulation, density: Density | None, law: Callable[[], TokenMeasure], x: float | None) -> Measurement:
    discretisation = run.discretisation
    if density is not None and isinstance(discretisation, MeshDiscretisation):
        found = measured(run, density)
        return found if x is None else Measurement(x, found.errors, found.unknowns)
    own, other, manifold = run.snapshot.law.gathered(), law(), discretisation.model.manifold
    distance = on_root(discretisation.comm, lambda: distance_of_laws(own, other, manifold))
    return Measurement(resolution_of(run) if x is None else x, {"W1": distance}, discretisation.unknowns)


def resolution_of(run: Simulation) -> float:
    """The mesh width of a run, or the number of its tokens."""
    discretisation = run.discretisation
    if isinstance(discretisation, MeshDiscretisation):
        return discretisation.cell_size
    return float(discretisation.cell_count)


def _law_of(density: Density, run: Simulation) -> TokenMeasure:
    """A density as a law of many weighted points, on every rank."""
    manifold: Manifold = run.discretisation.model.manifold
    count = QUADRATURE.get(manifold.dimension)
    if count is None:
        raise InputError(f"converge: a closed form on {manifold} cannot be compared with tokens; use dimension 1 to 3.")
    if isinstance(manifold, Sphere):
        grid = sphere_quadrature(manifold, count)
    else:
        points = run.snapshot.law.gathered().points
        lower, upper = points.min(axis=0), points.max(axis=0)
        margin = MARGIN * (upper - lower)
        cells = [max(count // 4, 1)] * manifold.dimension
        grid = box_quadrature((lower - margin).tolist(), (upper + margin).tolist(), cells, 4)
    masses = grid.weights[0] * density(grid.points)
    return TokenMeasure(grid.points, (masses / masses.sum())[None])
