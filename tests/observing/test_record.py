import numpy as np
from observing_fakes import circle_cells

from pde_solver.observing import Record, first_moment, mass


def recorded(quantity, depths):
    cells = circle_cells(16)
    state = cells.state(lambda x: 1 + 0.5 * x[:, 0])
    record = Record(quantity)
    for t in depths:
        record(cells.snapshot(state, t=t))
    return record


def test_history_and_shapes():
    """f = (1 + x₁/2)/2π has mean (1/4, 0)."""
    record = recorded(first_moment, [0.0, 0.5, 1.0])
    assert record.name == "first_moment"
    assert record.times.tolist() == [0.0, 0.5, 1.0]
    assert record.values.shape == (3, 2)
    assert np.allclose(record.values, [0.25, 0.0], atol=1e-14)
    assert recorded(mass, [0.0]).values.shape == (1,)


def test_truncation_keeps_the_depth_itself():
    record = recorded(mass, [0.0, 0.1, 0.2, 0.3])
    record.truncate_after(0.2)
    assert record.times.tolist() == [0.0, 0.1, 0.2]
    assert len(record.values) == 3
    record.truncate_after(-1.0)
    assert len(record) == 0
    assert repr(record) == "Record(mass, empty)"


def test_a_restored_history_goes_on():
    """As a resumed run does: take the saved history, cut it at the checkpoint, go on."""
    saved = recorded(first_moment, [0.0, 0.1, 0.2])
    record = recorded(first_moment, [0.0])
    record.restore(saved.times, saved.values)
    record.truncate_after(0.1)
    cells = circle_cells(16)
    record(cells.snapshot(cells.state(lambda x: 1.0), t=0.2))
    assert record.times.tolist() == [0.0, 0.1, 0.2]
    assert np.allclose(record.values[:, 0], [0.25, 0.25, 0.0], atol=1e-14)


def test_values_do_not_change_with_the_state():
    cells = circle_cells(4)
    state = cells.state(lambda x: 1.0)
    record = Record(lambda snapshot: snapshot.state, name="state")
    record(cells.snapshot(state))
    state[:] = 7
    assert record.values.max() < 1
