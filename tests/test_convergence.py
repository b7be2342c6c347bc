"""Every discretisation declares its order; here it is measured against exact solutions, with an absolute bound as well.

Exact solutions: a rigid rotation and a translation (change of variables), a contracting Gaussian, and the nonlinear
solution at β = 0 (Poisson kernels); all from `pde_solver.solutions`, which its own tests check independently.
The norm is L¹ for finite volumes (the limiter clips smooth extrema, which weighs more in higher norms) and L² for
discontinuous Galerkin.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import pde_solver as ps
from pde_solver.solutions import LinearFlow, PoissonKernelFlow

ROTATION = {2: [[0, -1], [1, 0]], 3: [[0, -1, 0.3], [1, 0, -0.5], [-0.3, 0.5, 0]]}


@dataclass
class Problem:
    """A model with an exact solution and a family of meshes."""

    model: ps.Model
    initial: ps.Law
    exact: Callable[[float, np.ndarray], np.ndarray]
    stop: float
    mesh: Callable[[int, int], ps.Mesh]  # (resolution, geometry degree)


def rotation(manifold, law, mesh):
    drift = ps.Linear(ROTATION[manifold.ambient_dimension])
    return Problem(ps.Model(manifold, drift), law, LinearFlow(manifold, drift, law).density, 0.5, mesh)


def attention_at_beta_zero(w, mesh):
    flow = PoissonKernelFlow(w)
    return Problem(ps.Model(flow.sphere, ps.Attention(beta=0.0)), ps.PoissonKernel(w), flow.density, 1.0, mesh)


def drifting(dimension, matrix, offset, mesh, stop):
    manifold = ps.Euclidean(dimension)
    law = ps.Gaussian(np.full(dimension, -0.4 if dimension < 3 else -0.2), 0.16 * np.eye(dimension))
    drift = ps.Linear(matrix, offset)
    return Problem(ps.Model(manifold, drift), law, LinearFlow(manifold, drift, law).density, stop, mesh)


def translation(dimension, mesh, stop=0.5):
    return drifting(dimension, None, np.full(dimension, 0.8), mesh, stop)


def contraction(dimension, mesh, stop=0.5):
    return drifting(dimension, -0.5 * np.eye(dimension), np.full(dimension, 0.2), mesh, stop)


def circle(n, degree):
    return ps.circle(n, geometry_degree=degree)


def icosphere(level, degree):
    return ps.icosphere(level, geometry_degree=degree)


def cubed_sphere(n, degree):
    return ps.cubed_sphere(n, geometry_degree=degree)


def interval(n, degree):
    return ps.interval(-3.0, 3.0, n)


def rectangle(cell):
    return lambda n, degree: ps.rectangle((-3.0, -3.0), (3.0, 3.0), (n, n), cell=cell)


def box(cell):
    return lambda n, degree: ps.box((-2.2,) * 3, (2.2,) * 3, (n, n, n), cell=cell)


PROBLEMS = {
    "rotation of the circle": rotation(ps.Sphere(2), ps.VonMisesFisher((1, 0), 2.0), circle),
    "rotation of the icosphere": rotation(ps.Sphere(3), ps.VonMisesFisher((1, 0, 1), 2.0), icosphere),
    "rotation of the cubed sphere": rotation(ps.Sphere(3), ps.VonMisesFisher((1, 0, 1), 2.0), cubed_sphere),
    "attention at β = 0 on the circle": attention_at_beta_zero((0.18, 0.24), circle),
    "attention at β = 0 on the icosphere": attention_at_beta_zero((0.2, 0.1, 0.2), icosphere),
    "translation on R^1": translation(1, interval),
    "translation on R^2, triangles": translation(2, rectangle("triangle")),
    "translation on R^2, quadrilaterals": translation(2, rectangle("quadrilateral")),
    "translation on R^3, tetrahedra": translation(3, box("tetrahedron")),
    "translation on R^3, hexahedra": translation(3, box("hexahedron")),
    "short translation on R^3, tetrahedra": translation(3, box("tetrahedron"), 0.1),
    "short translation on R^3, hexahedra": translation(3, box("hexahedron"), 0.1),
    "contraction on R^1": contraction(1, interval),
    "contraction on R^2, triangles": contraction(2, rectangle("triangle")),
    "contraction on R^2, quadrilaterals": contraction(2, rectangle("quadrilateral")),
    "contraction on R^3, hexahedra": contraction(3, box("hexahedron")),
    "contraction on R^3, tetrahedra": contraction(3, box("tetrahedron")),
    "short contraction on R^3, hexahedra": contraction(3, box("hexahedron"), 0.1),
}

FV1, FV2 = ("finite volume", 1), ("finite volume", 2)
DG1, DG2, DG3 = ("discontinuous Galerkin", 1), ("discontinuous Galerkin", 2), ("discontinuous Galerkin", 3)

#: Least observed order between the last two resolutions that each method must show.
LEAST_ORDER = {FV1: 0.9, FV2: 1.8, DG1: 1.9, DG2: 2.8, DG3: 3.7}

#: Where an affordable mesh is not fine enough yet: on R¹ this problem shows 1.82, 1.89, 1.94 from 16 to 128 cells, and a
#: mesh of cubes in R³ shows the same order at the same h. On R² it is 1.87 with 96 cells a side and 1.90 with 144.
COARSE = {("contraction on R^3, hexahedra", DG1): 1.85, ("contraction on R^2, triangles", DG1): 1.85}

#: Problem, method, two resolutions, largest error at the second. In R³ the runs of finite volumes are
#: short, as their first-order error is proportional to h only while it is small; those of DG are long enough to forget
#: the initial projection.
CASES: list[tuple[str, tuple[str, int], tuple[int, int], float]] = [
    ("rotation of the circle", FV1, (64, 128), 0.025),
    ("rotation of the circle", FV2, (64, 128), 0.00091),
    ("rotation of the circle", DG1, (32, 64), 0.00069),
    ("rotation of the circle", DG2, (32, 64), 1e-05),
    ("rotation of the circle", DG3, (32, 64), 2.2e-07),
    ("attention at β = 0 on the circle", FV1, (64, 128), 0.0075),
    ("attention at β = 0 on the circle", FV2, (64, 128), 0.00015),
    ("attention at β = 0 on the circle", DG1, (32, 64), 0.00063),
    ("attention at β = 0 on the circle", DG2, (32, 64), 1.5e-05),
    ("attention at β = 0 on the circle", DG3, (32, 64), 4.6e-07),
    ("rotation of the icosphere", FV1, (3, 4), 0.016),
    ("rotation of the icosphere", FV2, (3, 4), 0.00027),
    ("rotation of the icosphere", DG1, (2, 3), 0.0027),
    ("rotation of the icosphere", DG2, (2, 3), 2.2e-05),
    ("rotation of the icosphere", DG3, (1, 2), 3.9e-05),
    ("attention at β = 0 on the icosphere", FV1, (3, 4), 0.028),
    ("attention at β = 0 on the icosphere", FV2, (3, 4), 0.00089),
    ("attention at β = 0 on the icosphere", DG1, (2, 3), 0.0052),
    ("attention at β = 0 on the icosphere", DG2, (2, 3), 0.00021),
    ("attention at β = 0 on the icosphere", DG3, (1, 2), 0.00022),
    ("rotation of the cubed sphere", FV1, (24, 48), 0.012),
    ("rotation of the cubed sphere", FV2, (16, 32), 0.00026),
    ("rotation of the cubed sphere", DG1, (8, 16), 0.0012),
    ("rotation of the cubed sphere", DG2, (8, 16), 8.5e-06),
    ("rotation of the cubed sphere", DG3, (6, 12), 4.7e-07),
    ("translation on R^1", FV1, (128, 256), 0.035),
    ("translation on R^1", FV2, (128, 256), 0.00097),
    ("translation on R^1", DG1, (64, 128), 0.00076),
    ("translation on R^1", DG2, (64, 128), 1.1e-05),
    ("translation on R^1", DG3, (40, 80), 1e-06),
    ("contraction on R^1", FV1, (128, 256), 0.021),
    ("contraction on R^1", FV2, (128, 256), 0.00068),
    ("contraction on R^1", DG1, (64, 128), 0.0013),
    ("contraction on R^1", DG2, (64, 128), 2.6e-05),
    ("contraction on R^1", DG3, (40, 80), 2.9e-06),
    ("translation on R^2, triangles", FV1, (64, 128), 0.064),
    ("translation on R^2, triangles", FV2, (48, 96), 0.0035),
    ("translation on R^2, triangles", DG1, (48, 96), 0.0018),
    ("translation on R^2, triangles", DG2, (24, 48), 0.0004),
    ("translation on R^2, triangles", DG3, (16, 32), 0.0001),
    ("translation on R^2, quadrilaterals", FV1, (64, 128), 0.1),
    ("translation on R^2, quadrilaterals", FV2, (48, 96), 0.0085),
    ("translation on R^2, quadrilaterals", DG1, (48, 96), 0.0016),
    ("translation on R^2, quadrilaterals", DG2, (24, 48), 0.00025),
    ("translation on R^2, quadrilaterals", DG3, (16, 32), 4.6e-05),
    ("contraction on R^2, triangles", FV1, (64, 128), 0.044),
    ("contraction on R^2, triangles", FV2, (48, 96), 0.0032),
    ("contraction on R^2, triangles", DG2, (24, 48), 0.00079),
    ("contraction on R^2, triangles", DG3, (16, 32), 0.00023),
    ("short translation on R^3, tetrahedra", FV1, (16, 32), 0.053),
    ("short translation on R^3, tetrahedra", FV2, (12, 24), 0.011),
    ("short translation on R^3, hexahedra", FV1, (24, 48), 0.052),
    ("short translation on R^3, hexahedra", FV2, (12, 24), 0.021),
    ("short contraction on R^3, hexahedra", FV1, (24, 48), 0.024),
    ("short contraction on R^3, hexahedra", FV2, (12, 24), 0.0083),
    ("contraction on R^2, quadrilaterals", DG1, (48, 96), 0.0032),
    ("translation on R^3, hexahedra", DG1, (12, 24), 0.014),
    ("translation on R^3, hexahedra", DG2, (8, 16), 0.0028),
    ("translation on R^3, hexahedra", DG3, (6, 12), 0.001),
    ("contraction on R^3, hexahedra", DG1, (12, 24), 0.028),
    ("contraction on R^3, hexahedra", DG2, (8, 16), 0.0068),
    ("contraction on R^3, hexahedra", DG3, (6, 12), 0.003),
    ("translation on R^3, tetrahedra", DG1, (8, 16), 0.03),
    ("translation on R^3, tetrahedra", DG2, (6, 12), 0.01),
    ("short translation on R^3, tetrahedra", DG3, (10, 15), 0.0007),
    ("contraction on R^3, tetrahedra", FV2, (12, 24), 0.029),
    ("contraction on R^3, tetrahedra", DG2, (6, 12), 0.02),
    ("contraction on R^2, triangles", DG1, (48, 96), 0.0033),
]


def error(problem: Problem, method: tuple[str, int], resolution: int) -> ps.Measurement:
    kind, degree = method
    if kind == "finite volume":
        discretisation = ps.FiniteVolume(problem.model, problem.mesh(resolution, 1), order=degree)
    else:
        discretisation = ps.DiscontinuousGalerkin(problem.model, problem.mesh(resolution, degree), degree=degree)
    simulation = ps.Simulation(discretisation, problem.initial, problem.stop)
    outcome = simulation.run()
    assert outcome.completed
    assert outcome.mass_error < 1e-12
    assert outcome.minimum >= 0
    return ps.measured(simulation, lambda points: problem.exact(problem.stop, points), distance=False)


@pytest.mark.parametrize(
    ("name", "method", "resolutions", "bound"), CASES, ids=lambda value: str(value).replace(" ", "-")
)
def test_order(name, method, resolutions, bound):
    norm = "L1" if method[0] == "finite volume" else "L2"
    study = ps.converge(lambda resolution: error(PROBLEMS[name], method, resolution), resolutions)
    print(study)
    least = COARSE.get((name, method), LEAST_ORDER[method])
    ps.Check(f"order in {norm}", study.order(norm), least, 0.0, ps.DERIVED, "at least", study=study).require()
    ps.Check(f"error in {norm}", study.last(norm), bound, 0.0, ps.DERIVED, "at most", study=study).require()
