"""The time loop: when it observes, how it resumes, and what ends a run."""

import gc
import math
import re
import weakref

import numpy as np
import pytest

import pde_solver as ps
from pde_solver.output import load_checkpoint

CIRCLE, SPHERE = ps.Sphere(2), ps.Sphere(3)
BUMP = ps.VonMisesFisher((1.0, 0.5), 2.0)
TURN = ps.Linear([[0.0, -1.0], [1.0, 0.0]])


def on_circle(kind=ps.FiniteVolume, cells=24, velocity=None, stop=1.0, law=BUMP, scheme=None, start=0.0, **others):
    """A small run on the circle."""
    model = ps.Model(CIRCLE, ps.Attention(2.0) if velocity is None else velocity)
    return ps.Simulation(kind(model, ps.circle(cells), **others), law, stop, start=start, scheme=scheme)


def step_ends(simulation):
    """A list that is filled with the depths at which accepted steps end."""
    ends = []
    stepper = simulation._stepper
    plain = stepper.step

    def step(t, dt, until, state):
        reached, following = plain(t, dt, until, state)
        ends.append(reached)
        return reached, following

    stepper.step = step
    return ends


# ---- events


@pytest.mark.parametrize("scheme", [ps.SSP(2), ps.EmbeddedRK(3)], ids=["SSP", "EmbeddedRK"])
@pytest.mark.parametrize("stop", [0.3, 0.1 * 3, 0.7, 0.1 * 7, 1.1, 0.1 + 0.2 + 0.3, 0.25])
def test_observed_exactly_at_the_requested_depths_and_once_each(scheme, stop):
    simulation = on_circle(stop=stop, scheme=scheme)
    seen, ends = [], step_ends(simulation)
    simulation.observe(lambda snapshot: seen.append(snapshot.t), every=0.1)
    record = simulation.record(ps.mass, every=0.1)
    outcome = simulation.run()
    wanted = [k * 0.1 for k in range(int(stop / 0.1 - 1e-6) + 1)] + [stop]
    assert seen == wanted
    assert record.times.tolist() == wanted
    assert outcome.completed
    assert simulation.t == stop
    assert np.diff([0.0, *ends]).min() > 1e-3  # no step of 1e-14 is left over
    assert set(wanted[1:]) <= set(ends)


def test_a_fixed_step_takes_as_many_steps_as_expected():
    """stop = k · dt in floating point, for many k."""
    for k in (3, 6, 7, 12, 29, 41):
        simulation = on_circle(cells=12, stop=0.01 * k, scheme=ps.SSP(3, step=0.01))
        ends = step_ends(simulation)
        assert simulation.run().steps == k
        assert np.diff([0.0, *ends]) == pytest.approx(np.full(k, 0.01), rel=1e-9)


def test_schedules_that_agree_up_to_rounding_are_one_event():
    assert 3 * 0.1 != 0.3
    simulation = on_circle(stop=0.5)
    ends = step_ends(simulation)
    first = simulation.record(ps.mass, every=0.1)
    second = simulation.record(ps.entropy, at=[0.3, 0.5])
    third = simulation.record(ps.variance, every=0.5 / 5)
    simulation.run()
    assert second.times.tolist() == [first.times[3], 0.5]
    assert third.times.tolist() == first.times.tolist()
    assert first.times == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5], abs=1e-15)
    assert np.diff([0.0, *ends]).min() > 1e-3


def test_by_default_the_start_and_the_stop_are_observed():
    simulation = on_circle(stop=0.2, start=-0.1)
    record = simulation.record(ps.mass)
    later = simulation.record(ps.entropy, every=0.2)
    simulation.run()
    assert record.times.tolist() == [-0.1, 0.2]
    assert later.times == pytest.approx([-0.1, 0.1, 0.2], abs=1e-15)


def test_observers_are_called_in_their_order_and_checkpoints_last(tmp_path):
    simulation = on_circle(stop=0.2)
    called = []
    simulation.observe(lambda snapshot: called.append("first"), at=[0.2])
    simulation.write_checkpoints(tmp_path, at=[0.2])
    simulation.observe(lambda snapshot: called.append("second"), at=[0.2])
    record = simulation.record(ps.order_parameter, every=0.1)
    simulation.run()
    assert called == ["first", "second"]
    (file,) = (tmp_path / "checkpoints").iterdir()
    times, values = load_checkpoint(file).histories["order_parameter"]
    assert times.tolist() == [0, 0.1, 0.2]  # the last is there already
    assert np.array_equal(values, record.values)


def test_layers_end_steps_exactly():
    """A turn by 1 until 0.35, back at twice the speed until 1: tokens end 0.35 − 2 · 0.65 from where they began."""
    layers = ps.Layers((0.35,), (TURN, ps.Linear([[0.0, 2.0], [-2.0, 0.0]])))
    model = ps.Model(CIRCLE, layers)
    for scheme in (ps.SSP(4), ps.EmbeddedRK(5, tolerance=1e-10)):
        simulation = ps.Simulation(ps.Particles(model, count=5), ps.Uniform(), 1.0, scheme=scheme)
        ends = step_ends(simulation)
        before = simulation.snapshot.measure.points
        simulation.run()
        assert 0.35 in ends
        after, angle = simulation.snapshot.measure.points, 0.35 - 2 * 0.65
        turned = before @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        # a step across the jump would be wrong by its length, some 0.05
        assert np.abs(after - turned).max() < (1e-4 if scheme.order == 4 else 1e-8)


def test_wrong_runs_are_sentences(tmp_path):
    for stop in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ps.InputError, match=re.escape("Simulation: stop must be finite and beyond start = 0.0")):
            on_circle(stop=stop)
    simulation = on_circle()
    simulation.record(ps.mass, every=0.1)
    with pytest.raises(ps.InputError, match="record: mass is recorded already"):
        simulation.record(ps.mass)
    with pytest.raises(ps.InputError, match="observe: give every or at, not both"):
        simulation.observe(print, every=0.1, at=[0.2])
    with pytest.raises(ps.InputError, match=r"depth 1\.5 lies outside the run, which goes from 0 to 1"):
        simulation.observe(print, at=[0.5, 1.5])
    with pytest.raises(ps.InputError, match="every must be a finite number > 0"):
        simulation.observe(print, every=0.0)
    assert list(simulation.records) == ["mass"]


# ---- resuming

TOKENS = ps.Model(SPHERE, ps.Attention(4.0))
RESUMED = {
    "FV2": lambda: on_circle(stop=0.8),
    "DG2": lambda: on_circle(ps.DiscontinuousGalerkin, stop=0.8),
    "particles, SSP": lambda: ps.Simulation(ps.Particles(TOKENS, count=20), ps.Uniform(), 0.8, scheme=ps.SSP(3)),
    "particles, EmbeddedRK": lambda: ps.Simulation(
        ps.Particles(TOKENS, count=20), ps.Uniform(), 0.8, scheme=ps.EmbeddedRK(5)
    ),
    "FV1 between walls": lambda: ps.Simulation(
        ps.FiniteVolume(
            ps.Model(ps.Euclidean(1), ps.Attention(1.0) + ps.Linear(offset=[1.0])), ps.interval(-1, 1, 16), 1
        ),
        ps.Gaussian([0.0], 0.2),
        0.8,
    ),
}


@pytest.mark.parametrize("depth", [0.0, 0.3, 0.35])
@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_run_ends_in_the_same_state_to_the_last_bit(name, depth, tmp_path):
    """Also when the checkpoint is that of the start (nothing doubled), and between two records."""
    whole = RESUMED[name]()
    # what ends steps must be the same in both runs
    histories = [whole.record(ps.second_moment, every=0.1), whole.record(ps.mass, at=[0.0, 0.35, 0.8])]
    whole.write_checkpoints(tmp_path, at=[depth])
    outcome = whole.run()

    resumed = RESUMED[name]()
    again = [resumed.record(ps.second_moment, every=0.1), resumed.record(ps.mass, at=[0.0, 0.35, 0.8])]
    assert resumed.resume(tmp_path) == f"Resumed at t = {depth:g}."
    resumed.observe(lambda snapshot: None, at=[depth])
    finish = resumed.run()
    assert np.array_equal(resumed.state, whole.state)
    assert (finish.steps, finish.rejected, finish.wall_mass) == (outcome.steps, outcome.rejected, outcome.wall_mass)
    for one, other in zip(histories, again, strict=True):
        assert np.array_equal(one.times, other.times)
        assert np.array_equal(one.values, other.values)


def test_a_finished_run_has_nothing_to_do(tmp_path):
    simulation = on_circle(stop=0.2)
    simulation.record(ps.mass)
    simulation.write_checkpoints(tmp_path, every=0.1)
    simulation.run()
    again = on_circle(stop=0.2)
    record = again.record(ps.mass)
    assert again.resume(tmp_path) == "Nothing to do: the run is complete."
    outcome = again.run()
    assert outcome.completed
    assert outcome.steps == simulation.steps
    assert np.array_equal(again.state, simulation.state)
    assert record.times.tolist() == [0, 0.2]


def test_without_a_checkpoint_a_run_starts_afresh(tmp_path):
    simulation = on_circle(stop=0.2)
    assert simulation.resume(tmp_path) == f"No checkpoint in {tmp_path}: starting afresh."
    assert simulation.run().completed


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path):
    short = on_circle(stop=0.4, scheme=ps.SSP(2, step=0.05))
    short.write_checkpoints(tmp_path)
    short.run()
    longer, whole = (on_circle(stop=0.8, scheme=ps.SSP(2, step=0.05)) for _ in range(2))
    longer.resume(tmp_path)
    whole.run()
    assert longer.run().steps == whole.steps == 16
    assert longer.state == pytest.approx(whole.state, abs=1e-14)


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    simulation = on_circle(stop=0.2)
    simulation.write_checkpoints(tmp_path)
    simulation.run()
    for other, what in (
        (on_circle(stop=0.2, order=1), "another discretisation"),
        (on_circle(stop=0.2, cells=25), "a state on another mesh"),
        (on_circle(stop=0.2, velocity=ps.Attention(3.0)), "another model"),
    ):
        with pytest.raises(ps.InputError, match=f"holds .*{what}"):
            other.resume(tmp_path)


def test_an_interrupted_run_can_be_run_on():
    """Ctrl-C in the middle of a step, as in a notebook: the step is lost, the run is not."""
    whole = on_circle(stop=0.5)
    history = whole.record(ps.mass, every=0.1)
    whole.run()
    simulation = on_circle(stop=0.5)
    record = simulation.record(ps.mass, every=0.1)
    rate, calls = simulation.discretisation.rate, []

    def interrupted(t, state, out):
        calls.append(t)
        if len(calls) == 17:
            raise KeyboardInterrupt
        rate(t, state, out)

    simulation.discretisation.rate = interrupted
    with pytest.raises(KeyboardInterrupt):
        simulation.run()
    assert 0 < simulation.t < 0.5
    assert simulation.run().completed
    assert np.array_equal(simulation.state, whole.state)
    assert record.times.tolist() == history.times.tolist()


# ---- what ends a run


class Broken(ps.FiniteVolume):
    """Goes wrong in some way beyond t = 0.2."""

    fault = staticmethod(lambda out: None)

    def rate(self, t, state, out):
        super().rate(t, state, out)
        if t > 0.2:
            self.fault(out)


def not_a_number(out):
    out[3] = np.nan


def infinite(out):
    out[5] = np.inf


def leaking(out):
    out *= 1.001
    out[0] += 1e-3


def draining(out):
    out[7] = -1e30


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (not_a_number, "the density became NaN or infinite in .* cell"),
        (infinite, "the density became NaN or infinite in .* cell"),
        (leaking, "the mass is 1.0.*, changed by .* of what it was at the start, allowed is 1e-12"),
        (draining, "the density stays negative at t = 0.2 however small the step"),
    ],
)
def test_guards_end_the_run_with_a_sentence_and_save_the_last_good_state(fault, sentence, tmp_path):
    simulation = on_circle(Broken, scheme=ps.SSP(2, step=0.02))
    simulation.discretisation.fault = fault
    simulation.write_fields(tmp_path)
    record = simulation.record(ps.order_parameter, every=0.1)
    with pytest.raises(ps.RunStopped, match=sentence) as stopped:
        simulation.run()
    assert f"The last good state (t = 0.2) is in {tmp_path / 'last_good_state.h5'}." in str(stopped.value)
    assert simulation.t == 0.2
    assert np.isfinite(simulation.state).all()
    healthy = on_circle(Broken, scheme=ps.SSP(2, step=0.02))
    history = healthy.record(ps.order_parameter, every=0.1)
    assert healthy.resume(tmp_path / "last_good_state.h5") == "Resumed at t = 0.2."
    assert np.array_equal(healthy.state, simulation.state)
    assert np.array_equal(history.values, record.values)
    assert healthy.run().completed


def test_a_sentence_names_depth_step_and_step_size():
    simulation = on_circle(Broken, order=1, scheme=ps.SSP(2, step=0.02))
    simulation.discretisation.fault = not_a_number
    with pytest.raises(ps.RunStopped, match=r"Stopped at t = 0\.22 \(step 11, dt = 0\.02\)"):
        simulation.run()


def test_tokens_that_are_no_numbers_end_the_run():
    class Lost(ps.Particles):
        def rate(self, t, state, out):
            super().rate(t, state, out)
            if t > 0.2:
                out[0] = np.nan

    model = ps.Model(CIRCLE, ps.Attention(2.0))
    for scheme, sentence in (
        (ps.SSP(3), "the tokens became NaN"),
        (ps.EmbeddedRK(5), "time stepping failed at t = 0."),
    ):
        with pytest.raises(ps.RunStopped, match=sentence):
            ps.Simulation(Lost(model, count=4), ps.Uniform(), 1.0, scheme=scheme).run()


def test_a_velocity_beyond_all_numbers_ends_the_run():
    """Unnormalised attention at β = 1000 is of size e^1000; with its own scale it is of size one."""
    for kind in (ps.FiniteVolume, ps.DiscontinuousGalerkin):
        with pytest.raises(ps.RunStopped, match=re.escape("give Unnormalised(log_scale=β)")):
            on_circle(kind, velocity=ps.Attention(1000.0, normaliser=ps.Unnormalised())).run()
    scaled = ps.Attention(1000.0, normaliser=ps.Unnormalised(log_scale=1000.0))
    assert on_circle(velocity=scaled, stop=0.1).run().completed


def test_a_step_that_collapses_ends_the_run():
    simulation = on_circle(stop=1.0)
    simulation.discretisation.step_limit = lambda t, state: 1e-15
    with pytest.raises(ps.RunStopped, match="the step collapsed below 1e-12"):
        simulation.run()


def test_a_fixed_step_that_becomes_too_long_ends_the_run_and_the_state_is_kept(tmp_path):
    simulation = on_circle(scheme=ps.SSP(2, step=0.05))
    simulation.write_fields(tmp_path)
    limit = simulation.discretisation.step_limit
    simulation.discretisation.step_limit = lambda t, state: limit(t, state) if t < 0.3 else 0.01
    with pytest.raises(
        ps.RunStopped, match=r"time: step = 0\.05 exceeds the stability limit 0\.04 at t = 0\.3.*last good"
    ):
        simulation.run()
    assert load_checkpoint(tmp_path / "last_good_state.h5").t == simulation.t == pytest.approx(0.3)


def test_a_fixed_step_that_is_too_long_from_the_start_is_refused(tmp_path):
    simulation = on_circle(cells=100, velocity=TURN, scheme=ps.SSP(2, step=0.5))
    simulation.write_fields(tmp_path)
    with pytest.raises(
        ps.InputError, match=r"time: step = 0\.5 exceeds the stability limit 0\.\d+ at t = 0; use a step ≤"
    ):
        simulation.run()
    assert not (tmp_path / "last_good_state.h5").exists()


def test_a_step_that_makes_a_density_negative_is_halved():
    simulation = on_circle(
        cells=200, velocity=TURN, order=1, law=ps.UniformOn(ps.Cap((1.0, 0.0), 0.5)), scheme=ps.SSP(2)
    )
    limit = simulation.discretisation.step_limit
    simulation.discretisation.step_limit = lambda t, state: 4 * limit(t, state)
    simulation.discretisation.velocity_rate = lambda t, state: 0.0
    lowest = simulation.record(ps.minimum_density, every=0.5)
    outcome = simulation.run()
    assert outcome.completed
    assert outcome.rejected > 0
    assert f"{outcome.rejected} steps halved" in str(outcome)
    assert lowest.values.min() >= -1e-14
    assert outcome.mass_error < 1e-12


# ---- hard laws


@pytest.mark.parametrize("beta", [0.0, 1000.0, 1e4])
def test_any_inverse_temperature(beta):
    """Densities and tokens stay finite, mass and positivity hold; at β = 10⁴ each token sees its nearest neighbours alone."""
    model = ps.Model(SPHERE, ps.Attention(beta))
    law = ps.VonMisesFisher((0, 0, 1), 3.0)
    for discretisation in (
        ps.FiniteVolume(model, ps.icosphere(2)),
        ps.DiscontinuousGalerkin(model, ps.icosphere(1), 1),
        ps.Particles(model, count=200),
    ):
        simulation = ps.Simulation(discretisation, law, 0.5)
        outcome = simulation.run()
        assert outcome.completed
        assert outcome.mass_error < 1e-12
        assert not outcome.minimum < 0
        assert np.isfinite(simulation.state).all()
        assert np.isfinite(ps.interaction_energy(simulation.snapshot)) or beta > 700


@pytest.mark.parametrize(("kind", "order"), [(ps.FiniteVolume, 1), (ps.FiniteVolume, 2), (ps.DiscontinuousGalerkin, 2)])
def test_all_mass_in_one_cell(kind, order):
    """A point mass on a mesh is a bump one cell wide; attention keeps it there, at its mean direction."""
    axis = np.array([0.6, 0.8])
    arguments = {"order": order} if kind is ps.FiniteVolume else {"degree": order}
    simulation = on_circle(kind, cells=48, law=ps.PointCloud([axis]), stop=2.0, **arguments)
    before = ps.first_moment(simulation.snapshot)
    assert np.count_nonzero(simulation.snapshot.measure.weights) <= 5
    outcome = simulation.run()
    assert outcome.completed
    assert outcome.mass_error < 1e-12
    assert outcome.minimum >= 0
    after = ps.first_moment(simulation.snapshot)
    assert after == pytest.approx(before, abs=0.03)


def test_an_antipodal_pair_stays():
    """Each token's velocity is a multiple of P_x(∓x) = 0 for any β: an (unstable) fixed point."""
    for beta in (1.0, 1000.0):
        model = ps.Model(SPHERE, ps.Attention(beta))
        pair = np.array([[0.0, 0.6, 0.8], [0.0, -0.6, -0.8]])
        simulation = ps.Simulation(ps.Particles(model, count=2), ps.PointCloud(pair), 5.0)
        simulation.run()
        assert np.abs(simulation.snapshot.measure.points - pair).max() < 1e-14


def test_the_uniform_law_is_stationary():
    """By symmetry its velocity is zero. On the circle the mesh has the symmetry too; on S² only the icosahedron's."""
    circle = on_circle(velocity=ps.Attention(4.0), law=ps.Uniform(), cells=48, stop=5.0)
    circle.run()
    assert circle.state == pytest.approx(np.full(48, 1 / (2 * np.pi)), rel=1e-9)
    tokens = ps.Simulation(
        ps.Particles(ps.Model(SPHERE, ps.Attention(4.0)), quadrature=ps.sphere_quadrature(SPHERE, 12)),
        ps.Uniform(),
        1.0,
    )
    before = tokens.state.copy()
    tokens.run()
    assert np.abs(tokens.state - before).max() < 1e-6
    deviations = []
    for level in (1, 2):
        mesh = ps.icosphere(level)
        sphere = ps.Simulation(ps.DiscontinuousGalerkin(ps.Model(SPHERE, ps.Attention(4.0)), mesh), ps.Uniform(), 1.0)
        sphere.run()
        deviations.append(sphere.discretisation.density_error(sphere.state, lambda x: 1 / (4 * np.pi)).l2)
    print(deviations)
    assert deviations[1] < 4e-5
    assert deviations[0] / deviations[1] > 2**2.8


@pytest.mark.parametrize(("order", "steps"), [(2, 10_000), (4, 3_000)])
def test_mass_is_exact_and_density_positive_over_thousands_of_steps(order, steps):
    """Only rounding without a preference is left, some √steps · 1e-16 (a bias of 1e-16 a step would be 3e-13 or more)."""
    law = ps.UniformOn(ps.Cap((1.0, 0.0), 0.6))
    simulation = on_circle(
        cells=12, velocity=TURN, order=1, law=law, stop=0.01 * steps, scheme=ps.SSP(order, step=0.01)
    )
    outcome = simulation.run()
    assert outcome.steps == steps
    assert outcome.mass_error < 5e-14
    assert outcome.minimum >= 0
    assert outcome.rejected == 0


def test_walls_hold_back_what_presses_against_them():
    """The mass that pressed is ∫ wall flux dt, summed with the flux at the beginning of each step."""
    model = ps.Model(ps.Euclidean(1), ps.Linear(offset=[1.0]))
    discretisation = ps.FiniteVolume(model, ps.interval(-1, 1, 20), 1)
    simulation = ps.Simulation(discretisation, ps.Expression("1"), 0.5, scheme=ps.SSP(2, step=0.025))
    flux = simulation.record(ps.wall_flux, every=0.025)
    outcome = simulation.run()
    assert flux.values[0] == pytest.approx(0.5)  # density ½, speed 1
    assert flux.values[-1] > flux.values[0]  # it piles up
    assert outcome.wall_mass == pytest.approx(0.025 * flux.values[:-1].sum(), rel=1e-12)
    assert "mass that pressed against walls" in str(outcome)
    assert outcome.mass_error < 1e-13


@pytest.mark.parametrize("kind", [ps.FiniteVolume, ps.DiscontinuousGalerkin])
def test_a_simulation_that_is_dropped_gives_everything_back(kind):
    """PETSc must not keep it: each mesh holds several communicators, and MPI has only about two thousand."""
    discretisation = kind(ps.Model(ps.Sphere(2), ps.Attention(1.0)), ps.circle(12))
    simulation = ps.Simulation(discretisation, ps.VonMisesFisher((1.0, 0.0), 1.0), 0.1)
    simulation.run()
    left = weakref.ref(discretisation)
    del simulation, discretisation
    gc.collect()
    assert left() is None
