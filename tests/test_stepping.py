"""The time stepper by itself, on a small smooth system with a known solution."""

import numpy as np
import pytest
from mpi4py import MPI

import pde_solver as ps
from pde_solver.discretisations.base import Discretisation
from pde_solver.stepping import LONGEST_STEP, Stepper, default_scheme


class Oscillator(Discretisation):
    """u₁' = −2u₂, u₂' = 2u₁, u₃' = u₃² cos t from (1, 0, ½): u = (cos 2t, sin 2t, 1/(2 − sin t))."""

    comm = MPI.COMM_SELF
    local_size = 3
    order = 2
    time_order = 2
    name = "an oscillator"
    has_density = True
    limit = np.inf
    change = 0.0
    start = np.array([1.0, 0.0, 0.5])

    def exact(self, t):
        return np.array([np.cos(2 * t), np.sin(2 * t), 1 / (2 - np.sin(t))])

    def rate(self, t, state, out):
        out[:] = -2 * state[1], 2 * state[0], state[2] ** 2 * np.cos(t)

    def step_limit(self, t, state):
        return self.limit

    def velocity_rate(self, t, state):
        return self.change


Oscillator.__abstractmethods__ = frozenset()  # the rest of the protocol is of no concern here


def march(stepper, stop, steps):
    """Equal steps to the stop; the final state."""
    state, t = stepper.discretisation.start.copy(), 0.0
    for k in range(steps):
        t, _ = stepper.step(t, stop / steps, stop * (k + 1) / steps, state)
    assert t == stop
    return state


@pytest.mark.parametrize(
    ("scheme", "order", "bound"),
    [
        (ps.SSP(2), 2, 3e-3),
        (ps.SSP(3), 3, 3e-5),
        (ps.SSP(4), 4, 1e-6),
        # a tolerance that accepts every step: the bare scheme
        (ps.EmbeddedRK(3, tolerance=1.0), 3, 1e-3),
        (ps.EmbeddedRK(5, tolerance=1.0), 5, 1e-6),
    ],
    ids=str,
)
def test_order_of_every_scheme(scheme, order, bound):
    oscillator = Oscillator()
    errors = [
        np.abs(march(Stepper(oscillator, scheme), 1.3, steps) - oscillator.exact(1.3)).max() for steps in (16, 32, 64)
    ]
    observed = np.log2(errors[1] / errors[2])
    print(scheme, errors, observed)
    assert observed == pytest.approx(order, abs=0.25)
    assert errors[1] < bound


@pytest.mark.parametrize("order", [3, 5])
def test_errors_follow_the_tolerance(order):
    """Error per step at the tolerance: a thousandth of it leaves a thousandth to a hundredth of the error."""
    oscillator = Oscillator()
    errors, counts = [], []
    for tolerance in (1e-4, 1e-7):
        stepper = Stepper(oscillator, ps.EmbeddedRK(order, tolerance=tolerance))
        state, t, dt, steps = oscillator.start.copy(), 0.0, 0.1, 0
        while t < 2.0:
            t, dt = stepper.step(t, dt, 2.0, state)
            steps += 1
        assert t == 2.0
        errors.append(np.abs(state - oscillator.exact(2.0)).max())
        counts.append(steps)
    print(order, errors, counts)
    assert errors[0] < 100 * 1e-4
    assert 30 < errors[0] / errors[1] < 3e4
    # steps grow like tolerance^(−1/order)
    assert counts[1] / counts[0] == pytest.approx(1000 ** (1 / order), rel=0.5)


def test_steps_end_exactly_where_they_must():
    """However rounding falls, the last depth is the target itself."""
    oscillator = Oscillator()
    for scheme in (ps.SSP(3), ps.EmbeddedRK(5)):
        stepper = Stepper(oscillator, scheme)
        for start, until in ((0.1, 0.3), (0.1 + 0.2, 0.4), (1e3, 1e3 + 0.1), (-0.3, 0.0)):
            state, reached, dt = oscillator.start.copy(), start, until - start
            while reached < until:  # the error control may want more steps than one
                reached, dt = stepper.step(reached, dt, until, state)
            assert reached == until
        # a step that would go beyond is cut
        state = oscillator.start.copy()
        reached, _ = stepper.step(0.0, 0.5, 0.005, state)
        assert reached == 0.005
        assert np.abs(state - oscillator.exact(0.005)).max() < 1e-8


def test_the_step_rule():
    oscillator, state = Oscillator(), Oscillator.start
    oscillator.limit = 0.01
    assert Stepper(oscillator, ps.SSP(2)).largest_step(0, state) == pytest.approx(0.9 * 4 * 0.01)
    assert Stepper(oscillator, ps.SSP(3)).largest_step(0, state) == pytest.approx(0.9 * 6 * 0.01)
    assert Stepper(oscillator, ps.SSP(4, cfl=0.5)).largest_step(0, state) == pytest.approx(0.5 * 6 * 0.01)
    assert Stepper(oscillator, ps.EmbeddedRK(3)).largest_step(0, state) == pytest.approx(0.9 * 1.25 * 0.01)
    assert Stepper(oscillator, ps.EmbeddedRK(5)).largest_step(0, state) == pytest.approx(0.9 * 1.65 * 0.01)
    assert Stepper(oscillator, ps.SSP(3, step=0.005)).largest_step(0, state) == 0.005
    assert Stepper(oscillator, ps.EmbeddedRK(5, step=0.2)).largest_step(0, state) == pytest.approx(1.65 * 0.01)


def test_steps_resolve_the_change_of_the_velocity():
    oscillator, state = Oscillator(), Oscillator.start
    assert LONGEST_STEP == 0.1
    oscillator.change = 4.0
    assert Stepper(oscillator, ps.SSP(3)).largest_step(0, state) == pytest.approx(0.1 / 4)
    # the error control sees it by itself
    assert Stepper(oscillator, ps.EmbeddedRK(5)).largest_step(0, state) == np.inf
    oscillator.limit = 1e-4
    assert Stepper(oscillator, ps.SSP(3)).largest_step(0, state) == pytest.approx(0.9 * 6 * 1e-4)


def test_a_fixed_step_beyond_the_limit_is_refused():
    oscillator = Oscillator()
    oscillator.limit = 0.01
    with pytest.raises(ps.InputError) as refused:
        Stepper(oscillator, ps.SSP(3, step=0.1)).largest_step(0.25, oscillator.start)
    assert str(refused.value) == (
        "time: step = 0.1 exceeds the stability limit 0.06 at t = 0.25; "
        "use a step ≤ 0.054, or leave step out and let cfl choose."
    )


def test_default_schemes():
    oscillator = Oscillator()
    assert default_scheme(oscillator) == ps.SSP(2)
    oscillator.has_density = False
    assert default_scheme(oscillator) == ps.EmbeddedRK(5)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: ps.SSP(5), "SSP: order must be 2, 3 or 4, found 5"),
        (lambda: ps.SSP(3, cfl=0), r"SSP: cfl must be a number in \(0, 1\], found 0"),
        (lambda: ps.SSP(3, cfl=1.5), "SSP: cfl must be a number in"),
        (lambda: ps.SSP(3, step=-0.1), "SSP: step must be a number in"),
        (lambda: ps.SSP(3, step=np.inf), "SSP: step must be a number in"),
        (lambda: ps.SSP(3, step=np.nan), "SSP: step must be a number in"),
        (lambda: ps.EmbeddedRK(4), "EmbeddedRK: order must be 3 or 5, found 4"),
        (lambda: ps.EmbeddedRK(5, tolerance=0), "EmbeddedRK: tolerance must be a number in"),
        (lambda: ps.EmbeddedRK(5, cfl=True), "EmbeddedRK: cfl must be a number in"),
    ],
)
def test_wrong_schemes_are_sentences(build, sentence):
    with pytest.raises(ps.InputError, match=sentence):
        build()


def test_ssp_of_order_two_is_refused_for_high_degree():
    """Its stability polynomial does not hold the eigenvalues of upwind transport of degree 2 at any useful step."""
    model = ps.Model(ps.Sphere(2), ps.Attention(1.0))
    for degree, fits in ((1, True), (2, False), (3, False)):
        discretisation = ps.DiscontinuousGalerkin(model, ps.circle(12), degree)
        if fits:
            Stepper(discretisation, ps.SSP(2))
        else:
            with pytest.raises(
                ps.InputError,
                match=f"SSP of order 2 is unstable for discontinuous Galerkin, degree {degree}; use order 3 or 4",
            ):
                Stepper(discretisation, ps.SSP(2))


def test_petsc_options_reach_the_stepper_and_leave_no_trace():
    """A clip of 1 lets no step grow: the error control cannot leave the first step that is tried."""
    oscillator = Oscillator()

    def suggested(options):
        state = np.array(oscillator.start)
        return Stepper(oscillator, ps.EmbeddedRK(5, tolerance=1e-3), options).step(0.0, 1e-3, 1.0, state)[1]

    assert suggested({"-ts_adapt_clip": "0.1,1.0"}) == pytest.approx(1e-3)
    assert suggested({}) == pytest.approx(1e-2)  # PETSc's own clip is 10


@pytest.mark.parametrize(
    ("scheme", "options", "sentence"),
    [
        (ps.EmbeddedRK(5), {"ts_adapt_safty": 1}, "petsc: ts_adapt_safty is not used by the time stepper"),
        (ps.EmbeddedRK(5), {"ts_typ": "rk"}, "petsc: ts_typ does nothing here"),
        (
            ps.EmbeddedRK(5),
            {"pc_type": "hypre"},
            "petsc: pc_type does nothing here, as explicit time stepping solves no",
        ),
        (ps.EmbeddedRK(5), {"ts_type": "euler"}, "petsc: ts_type is set by the time scheme; set it there"),
        (ps.SSP(3), {"ts_dt": 0.1}, "petsc: ts_dt is set by the scheme's step; set it there"),
        (ps.SSP(3), {"ts_adapt_safety": 0.5}, "petsc: ts_adapt_safety applies to a scheme with error control"),
        (ps.EmbeddedRK(5), {"ts_adapt_safety": "much"}, "petsc: PETSc does not accept {'ts_adapt_safety': 'much'}"),
    ],
)
def test_wrong_petsc_options_are_sentences(scheme, options, sentence):
    with pytest.raises(ps.InputError, match=sentence):
        Stepper(Oscillator(), scheme, options)
    Stepper(Oscillator(), ps.EmbeddedRK(5))  # nothing is left in PETSc's database


@pytest.mark.parametrize("failure", [ValueError("boom"), KeyboardInterrupt(), ps.InputError("wrong"), SystemExit(3)])
@pytest.mark.parametrize("scheme", [ps.SSP(3), ps.EmbeddedRK(5)], ids=["SSP", "EmbeddedRK"])
def test_what_the_rate_raises_comes_out_unchanged(scheme, failure):
    """And the stepper works again afterwards."""
    oscillator = Oscillator()
    calls = []

    def rate(t, state, out):
        calls.append(t)
        if len(calls) == 3:
            raise failure
        Oscillator.rate(oscillator, t, state, out)

    oscillator.rate = rate
    stepper = Stepper(oscillator, scheme)
    with pytest.raises(type(failure)) as raised:
        stepper.step(0.0, 0.1, 1.0, oscillator.start.copy())
    assert raised.value is failure
    assert np.abs(march(stepper, 1.0, 20) - oscillator.exact(1.0)).max() < 1e-4


def test_error_control_that_finds_no_step_says_so():
    """A rate that is not a number once u₃ has grown: PETSc gives up, with its reason."""
    oscillator = Oscillator()

    def rate(t, state, out):
        Oscillator.rate(oscillator, t, state, out)
        out[2] = np.nan if t > 0.3 else out[2]

    oscillator.rate = rate
    stepper = Stepper(oscillator, ps.EmbeddedRK(5))

    def run():
        state, t, dt = oscillator.start.copy(), 0.0, 0.1
        while t < 1.0:
            t, dt = stepper.step(t, dt, 1.0, state)
            assert np.isfinite(state).all()

    with pytest.raises(ps.RunStopped, match=r"time stepping failed at t = 0\..* PETSc"):
        run()
