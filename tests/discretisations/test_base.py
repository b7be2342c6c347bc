"""What all discretisations promise: rows that come back, labels that keep their masses, sentences for wrong input."""

import numpy as np
import pytest
from some_meshes import CURVED, MESHES, METHODS, bump, stirring

import pde_solver as ps

TWO = ps.Labels((0.3, 0.7))


class Density(ps.Law):
    """A law with any density, right or wrong."""

    def __init__(self, function):
        self.function = function

    def density(self, points, manifold):
        return self.function(points) * np.ones(len(points))

    def sample(self, count, rng, manifold):
        raise NotImplementedError


def narrow(manifold):
    axis = np.eye(manifold.ambient_dimension)[0]
    return ps.VonMisesFisher(axis, 4.0) if isinstance(manifold, ps.Sphere) else ps.Gaussian(0.2 * axis, 0.4)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("method", METHODS)
def test_states_survive_as_rows(method, mesh):
    """Rows in input order give the state back bit by bit, whatever the numbering; so do checkpoints."""
    mesh = MESHES[mesh]()
    discretisation = METHODS[method](stirring(mesh.manifold, TWO), mesh)
    assert (
        discretisation.unknowns
        == discretisation.local_size
        == 2 * len(mesh.input_index) * discretisation.order**0 * (discretisation.local_size // (2 * mesh.cell_count))
    )
    state = np.random.default_rng(0).random(discretisation.local_size)
    index, rows = discretisation.rows(state)
    assert sorted(index) == list(range(mesh.cell_count))
    ordered = np.empty_like(rows)
    ordered[index] = rows
    assert np.array_equal(discretisation.from_rows(ordered), state)


def test_tokens_survive_as_rows():
    particles = ps.Particles(stirring(ps.Sphere(3), TWO), count=7, seed=2)
    state = particles.initial(ps.Uniform())
    index, rows = particles.rows(state)
    assert index.tolist() == list(range(7))
    assert rows.shape == (7, 2 * 4)
    assert np.array_equal(particles.from_rows(rows), state)


@pytest.mark.parametrize("mesh", ["icosphere", "circle", "triangles"])
@pytest.mark.parametrize("method", METHODS)
def test_labels_keep_their_masses(method, mesh):
    mesh = MESHES[mesh]()
    discretisation = METHODS[method](stirring(mesh.manifold, TWO), mesh)
    simulation = ps.Simulation(discretisation, [bump(mesh.manifold), narrow(mesh.manifold)], 0.3)
    simulation.run()
    assert simulation.snapshot.measure.mass() == pytest.approx([1, 1], abs=1e-13)


@pytest.mark.parametrize("method", ["FV1", "FV2", "DG2", "particles"])
def test_labels_that_see_only_themselves_are_independent_runs(method):
    """Mixing = identity: each label is a model of its own (the same fixed steps, so the same numbers to rounding)."""
    sphere = ps.Sphere(3)
    laws = [bump(sphere), narrow(sphere)]

    def final(labels, law):
        model = stirring(sphere, labels)
        if method == "particles":
            discretisation = ps.Particles(model, quadrature=ps.sphere_quadrature(sphere, 6))
        else:
            discretisation = METHODS[method](model, ps.icosphere(1))
        simulation = ps.Simulation(discretisation, law, 0.2, scheme=ps.SSP(3, step=0.02))
        simulation.run()
        return simulation.state

    together = final(ps.Labels((0.3, 0.7), mixing=np.eye(2)), laws).reshape(2, -1)
    for label, law in enumerate(laws):
        alone = final(ps.Labels(), law)
        assert np.abs(together[label] - alone).max() < 1e-13 * np.abs(alone).max()
    mixed = final(TWO, laws).reshape(2, -1)
    assert np.abs(mixed - together).max() > 1e-3  # it does matter whom one attends to


@pytest.mark.parametrize("method", ["FV2", "DG1"])
def test_labels_with_one_law_are_one_label(method):
    circle = ps.Sphere(2)
    states = []
    for labels in (TWO, ps.Labels()):
        simulation = ps.Simulation(METHODS[method](stirring(circle, labels), ps.circle(24)), bump(circle), 0.3)
        simulation.run()
        states.append(simulation.state.reshape(labels.count, -1))
    assert np.abs(states[0] - states[1]).max() < 1e-13


@pytest.mark.parametrize("method", METHODS)
def test_clouds_are_deposited(method):
    """Each token's mass ends in one cell, constant there."""
    sphere = ps.Sphere(3)
    tokens = ps.Uniform().sample(5, np.random.default_rng(4), sphere)
    discretisation = METHODS[method](stirring(sphere), ps.icosphere(2))
    measure = discretisation.measure(discretisation.initial(ps.PointCloud(tokens, [1, 2, 3, 4, 5])))
    assert measure.mass() == pytest.approx([1], abs=1e-14)
    near = np.linalg.norm(measure.points[:, None] - tokens, axis=2) < 0.35
    assert measure.weights[0] @ near == pytest.approx(np.arange(1, 6) / 15, abs=1e-14)


@pytest.mark.parametrize("kind", ["FiniteVolume", "DiscontinuousGalerkin"])
def test_wrong_arguments_are_sentences(kind):
    model, mesh = stirring(ps.Sphere(3)), MESHES["circle"]()
    build = getattr(ps, kind)
    with pytest.raises(ps.InputError, match=f"{kind}: the mesh is of the circle, the model lives on the sphere S\\^2"):
        build(model, mesh)
    if kind == "FiniteVolume":
        with pytest.raises(ps.InputError, match="FiniteVolume: order must be 1 or 2, found 3"):
            build(stirring(ps.Sphere(2)), mesh, order=3)
    else:
        for degree in (0, 4):
            with pytest.raises(ps.InputError, match=f"degree must be 1, 2 or 3, found {degree}"):
                build(stirring(ps.Sphere(2)), mesh, degree=degree)


@pytest.mark.parametrize("method", ["FV1", "FV2", "DG1", "DG3"])
@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x[:, 0], "minimum|smallest|mass"),
        (lambda x: 0.5 - np.exp(-20 * (x[:, 0] - 0.5) ** 2), "-0"),
        (lambda x: 0.0, "mass 0"),
        (lambda x: np.where(x[:, 0] > 0.99, np.nan, 1.0), "mass nan"),
        (lambda x: np.where(x[:, 0] > 0.99, np.inf, 1.0), "mass (inf|nan)"),
    ],
)
def test_wrong_densities_are_sentences(method, function, found):
    discretisation = METHODS[method](stirring(ps.Sphere(2)), MESHES["circle"]())
    with pytest.raises(
        ps.InputError, match="the density must be finite, ≥ 0 and of positive mass on the mesh"
    ) as refused:
        discretisation.initial(Density(function))
    assert any(word in str(refused.value) for word in found.split("|")) or refused.match(found)


@pytest.mark.parametrize("build", [lambda m: ps.Particles(m, count=3), lambda m: ps.FiniteVolume(m, ps.circle(12))])
def test_there_must_be_a_law_for_each_label(build):
    discretisation = build(stirring(ps.Sphere(2), TWO))
    with pytest.raises(ps.InputError, match="initial: 2 labels need as many laws, found 3"):
        discretisation.initial([ps.Uniform()] * 3)


@pytest.mark.parametrize("mesh", CURVED)
def test_velocity_points_lie_on_the_manifold(mesh):
    mesh = MESHES[mesh]()
    for method in METHODS.values():
        discretisation = method(stirring(mesh.manifold), mesh)
        points = discretisation.velocity_points(discretisation.initial(ps.Uniform()))
        assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-14


def test_the_velocity_is_that_of_the_layer_which_was_entered():
    layers = ps.Layers((1.0,), (ps.Linear([[0, -1], [1, 0]]), ps.Linear([[0, 1], [-1, 0]])))
    for method in METHODS.values():
        discretisation = method(ps.Model(ps.Sphere(2), layers), ps.circle(24))
        state = discretisation.initial(bump(ps.Sphere(2)))
        rates = []
        for t in (0.5, 1.5, 0.7):
            discretisation.enter(t)
            discretisation.rate(1.0, state, rate := np.empty_like(state))
            rates.append(rate)
        assert np.array_equal(rates[0], rates[2])
        assert np.abs(rates[0] - rates[1]).max() > 0.1
