"""Small runs of every discretisation on every kind of mesh, built alike by all programs in this folder."""

import numpy as np

import pde_solver as ps

LINE, PLANE, SPACE, CIRCLE, SPHERE = ps.Euclidean(1), ps.Euclidean(2), ps.Euclidean(3), ps.Sphere(2), ps.Sphere(3)
ON_CIRCLE, ON_SPHERE = ps.VonMisesFisher((1.0, 0.4), 2.0), ps.VonMisesFisher((1.0, -2.0, 3.0), 2.0)
IN_PLANE = ps.Gaussian([0.4, -0.2], 0.3)
#: Attention and a wind that blows against two walls.
WINDY = ps.Attention(1.0) + ps.Linear(offset=[1.0, -0.3])
TWO = ps.Labels((0.3, 0.7))

finite_volume, discontinuous_galerkin = ps.FiniteVolume, ps.DiscontinuousGalerkin


def on_circle(labels=None):
    return ps.Model(CIRCLE, ps.Attention(3.0), labels or ps.Labels())


def on_sphere():
    return ps.Model(SPHERE, ps.Attention(4.0))


def in_plane():
    return ps.Model(PLANE, WINDY)


def on_line():
    return ps.Model(LINE, ps.Attention(1.0) + ps.Linear([[-0.5]], [0.3]))


def rectangle(cell):
    return ps.rectangle((-1, -1), (1, 1), (6, 5), cell=cell)


#: Discretisation and initial law, by name.
RUNS = {
    "FV1 circle": lambda: (finite_volume(on_circle(), ps.circle(30), 1), ON_CIRCLE),
    "FV2 circle, two labels": lambda: (
        finite_volume(on_circle(TWO), ps.circle(30)),
        [ON_CIRCLE, ps.VonMisesFisher((-1.0, 0.0), 5.0)],
    ),
    "FV2 circle, cloud": lambda: (
        finite_volume(on_circle(), ps.circle(16)),
        ps.PointCloud([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8]]),
    ),
    "FV1 icosphere": lambda: (finite_volume(on_sphere(), ps.icosphere(1), 1), ON_SPHERE),
    "FV2 icosphere": lambda: (finite_volume(on_sphere(), ps.icosphere(2)), ON_SPHERE),
    "FV2 triangles": lambda: (finite_volume(in_plane(), rectangle("triangle")), IN_PLANE),
    "FV1 quadrilaterals": lambda: (finite_volume(in_plane(), rectangle("quadrilateral"), 1), IN_PLANE),
    "FV2 tetrahedra": lambda: (
        finite_volume(ps.Model(SPACE, ps.Attention(1.0)), ps.box((-1,) * 3, (1,) * 3, (2, 3, 2))),
        ps.Gaussian([0.1, 0.2, 0.3], 0.5),
    ),
    "DG1 circle": lambda: (discontinuous_galerkin(on_circle(), ps.circle(20), 1), ON_CIRCLE),
    "DG2 circle, two labels": lambda: (discontinuous_galerkin(on_circle(TWO), ps.circle(20)), ON_CIRCLE),
    "DG1 icosphere": lambda: (discontinuous_galerkin(on_sphere(), ps.icosphere(1), 1), ON_SPHERE),
    "DG2 icosphere": lambda: (discontinuous_galerkin(on_sphere(), ps.icosphere(1)), ON_SPHERE),
    "DG1 triangles": lambda: (discontinuous_galerkin(in_plane(), rectangle("triangle"), 1), IN_PLANE),
    "DG2 quadrilaterals": lambda: (discontinuous_galerkin(in_plane(), rectangle("quadrilateral")), IN_PLANE),
    "independent tokens on the sphere": lambda: (ps.Particles(on_sphere(), count=50, seed=3), ON_SPHERE),
    "independent tokens in the plane": lambda: (ps.Particles(ps.Model(PLANE, ps.Attention(1.0)), count=50), IN_PLANE),
    "weighted tokens on the circle": lambda: (
        ps.Particles(on_circle(TWO), quadrature=ps.sphere_quadrature(CIRCLE, 20)),
        ON_CIRCLE,
    ),
}
#: More ranks than cells or tokens: some have none.
ON_LINE = ps.Gaussian([0.2], 0.3)
RUNS |= {
    "two cells, FV1": lambda: (finite_volume(on_line(), ps.interval(-2, 2, 2), 1), ON_LINE),
    "two cells, FV2": lambda: (finite_volume(on_line(), ps.interval(-2, 2, 2)), ON_LINE),
    "two cells, FV2, cloud": lambda: (finite_volume(on_line(), ps.interval(-2, 2, 2)), ps.PointCloud([[-1.5], [0.4]])),
    "two cells, DG1": lambda: (discontinuous_galerkin(on_line(), ps.interval(-2, 2, 2), 1), ON_LINE),
    "two cells, DG2, cloud": lambda: (
        discontinuous_galerkin(on_line(), ps.interval(-2, 2, 2)),
        ps.PointCloud([[-1.5], [0.4]]),
    ),
    "one cell, FV2": lambda: (finite_volume(on_line(), ps.interval(-2, 2, 1)), ON_LINE),
    "two tokens": lambda: (ps.Particles(on_circle(), count=2, seed=3), ps.Uniform()),
}
#: A few of them, where every one would take too long.
FEW = ["FV2 circle, two labels", "DG2 circle, two labels", "independent tokens on the sphere"]
#: Those that are resumed on other numbers of ranks.
RESUMED = [*FEW, "DG2 icosphere", "FV2 triangles", "weighted tokens on the circle", "two cells, FV2", "two tokens"]

STOP, CHECKPOINT = 0.3, 0.15


def simulation(name):
    """The run, with everything recorded that its discretisation has."""
    discretisation, law = RUNS[name]()
    result = ps.Simulation(discretisation, law, STOP)
    quantities = [ps.mass, ps.first_moment, ps.second_moment, ps.interaction_energy, ps.wall_flux, ps.velocity_norm]
    if discretisation.has_density:
        quantities += [ps.entropy, ps.minimum_density, ps.maximum_density]
    if not isinstance(discretisation.model.velocity, ps.Attention):
        quantities.remove(ps.interaction_energy)
    for quantity in quantities:
        result.record(quantity, every=0.1)
    return result


def all_rows(discretisation, state):
    """The state in global order on rank 0; None elsewhere."""
    from pde_solver.parallel import gather_rows

    index, rows = discretisation.rows(state)
    return gather_rows(discretisation.comm, np.asarray(index), np.ascontiguousarray(rows))
