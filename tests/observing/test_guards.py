import numpy as np
import pytest
from observing_fakes import Tokens, circle_cells

from pde_solver.errors import InputError, RunStopped
from pde_solver.labels import Labels
from pde_solver.manifolds import Sphere
from pde_solver.models import Attention, Model
from pde_solver.observing import Guards, Reference


@pytest.fixture
def cells():
    return circle_cells(64)


def check(discretisation, state, *, dt=1e-3, t=0.5, step=7, guards=None, stop=1.0, start_state=None):
    reference = Reference.of(discretisation.snapshot(state if start_state is None else start_state), stop)
    (Guards() if guards is None else guards).check(discretisation.snapshot(state, t=t, step=step), dt, reference)


def test_a_good_step_passes(cells):
    check(cells, cells.state(lambda x: 1 + x[:, 0]))
    check(cells, cells.state(lambda x: 1.0), dt=np.inf)  # tokens have no step limit


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named(cells, bad):
    state = cells.state(lambda x: 1.0)
    good = state.copy()
    state[[17, 40]] = bad
    with pytest.raises(RunStopped) as stopped:
        check(cells, state, start_state=good)
    assert str(stopped.value).startswith(
        "Stopped at t = 0.5 (step 7, dt = 0.001): the density became NaN or infinite in 2 cells, first in cell 17;"
    )


def test_infinities_of_both_signs_do_not_cancel(cells):
    state = cells.state(lambda x: 1.0)
    state[[3, 4]] = np.inf, -np.inf
    with pytest.raises(RunStopped, match="first in cell 3"):
        check(cells, state, start_state=np.ones(64), guards=Guards(mass=None))


def test_tokens(cells):
    tokens = Tokens(Model(Sphere(2), Attention()), 5)
    points = np.tile([1.0, 0.0], (5, 1))
    check(tokens, tokens.state(points))  # no density, so positivity is not asked for
    points[3, 1] = np.nan
    with pytest.raises(RunStopped, match="the tokens became NaN or infinite in 1 token, first in token 3"):
        check(tokens, tokens.state(points))


def test_huge_but_finite_numbers_are_finite(cells):
    check(cells, np.full(64, 1e307), guards=Guards(mass=None))


@pytest.mark.parametrize(
    ("factor", "stops"), [(1 + 1e-13, False), (1 - 1e-13, False), (1 + 3e-12, True), (1 - 3e-12, True)]
)
def test_mass(cells, factor, stops):
    state = cells.state(lambda x: 1.0)
    if stops:
        with pytest.raises(RunStopped, match=r"the mass is .* allowed is 1e-12"):
            check(cells, factor * state, start_state=state)
    else:
        check(cells, factor * state, start_state=state)


def test_mass_of_each_label():
    model = Model(Sphere(2), Attention(), Labels(weights=(0.5, 0.5)))
    cells = circle_cells(8, model)
    state = cells.state(lambda x: 1.0, lambda x: 1.0)
    leaking = state * np.repeat([1.1, 0.9], 8)  # the sum over labels is unchanged
    with pytest.raises(RunStopped, match=r"the mass of label [01] is"):
        check(cells, leaking, start_state=state)


def test_positivity(cells):
    state = cells.state(lambda x: 1.0)
    state[5] = -1e-15 * state[0]  # within round-off of the largest
    check(cells, state)
    state[5] = -1e-13 * state[0]
    with pytest.raises(RunStopped, match=r"the density fell to -1\.59e-14"):
        check(cells, state)


def test_step_collapse_and_count(cells):
    state = cells.state(lambda x: 1.0)
    for dt in (1e-13, np.nan):
        with pytest.raises(RunStopped, match="the step collapsed below 1e-12"):
            check(cells, state, dt=dt)
    with pytest.raises(RunStopped, match="7 steps did not reach t = 1"):
        check(cells, state, guards=Guards(most_steps=7))
    check(cells, state, guards=Guards(most_steps=7), t=1.0)


def test_guards_can_be_switched_off(cells):
    state = cells.state(lambda x: 1.0)
    state[0] = np.nan
    check(cells, state, dt=0.0, guards=Guards(False, None, None, None, None))


@pytest.mark.parametrize("wrong", [{"mass": -1}, {"positivity": float("nan")}, {"most_steps": "many"}])
def test_bad_tolerances(wrong):
    with pytest.raises(InputError, match=f"guards: {next(iter(wrong))} must be"):
        Guards(**wrong)
