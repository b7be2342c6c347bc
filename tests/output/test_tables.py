"""Tables come back exactly."""

import numpy as np
import pytest
from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.output import format_table, read_history, write_history


def test_a_history_comes_back_to_the_last_bit(tmp_path):
    random = np.random.default_rng(5)
    records = {
        "energy": (np.array([0.0, 0.1, 0.30000000000000004]), random.normal(size=3) * 1e-300),
        "first_moment": (np.array([0.0, 0.30000000000000004]), random.normal(size=(2, 3))),
        "later": (np.array([0.2]), np.array([np.nan])),
    }
    write_history(tmp_path / "history.csv", records, MPI.COMM_SELF)
    read = read_history(tmp_path / "history.csv")
    assert read.keys() == records.keys()
    for name, (times, values) in records.items():
        assert np.array_equal(read[name][0], times)
        assert np.array_equal(read[name][1], values, equal_nan=True)
        assert read[name][1].shape == values.shape


def test_different_schedules_leave_empty_cells(tmp_path):
    records = {"a": (np.array([0.0, 1.0]), np.array([1.0, 2.0])), "b": (np.array([0.5, 1.0]), np.array([[3.0], [4.0]]))}
    write_history(tmp_path / "h.csv", records, MPI.COMM_SELF)
    assert (tmp_path / "h.csv").read_text() == "t,a,b_0\n0.0,1.0,\n0.5,,3.0\n1.0,2.0,4.0\n"


def test_nothing_recorded(tmp_path):
    write_history(tmp_path / "h.csv", {}, MPI.COMM_SELF)
    assert read_history(tmp_path / "h.csv") == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "first column must be t"),
        (b"x,y\n1,2\n", "first column must be t"),
        (b"t,a\n0.0,one\n", "column a holds something else than numbers"),
        (b"t,a,b\n0.0,1.0\n", "column b holds .* cut short"),
        (b"\xff\xfe", "not a CSV table"),
    ],
)
def test_other_files_are_refused(tmp_path, content, sentence):
    (tmp_path / "h.csv").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_history(tmp_path / "h.csv")


def test_a_missing_history_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: cannot be read \(No such file or directory\)"):
        read_history(tmp_path / "none.csv")


def test_a_table_is_aligned():
    table = format_table([["mass", 1.0, 3], ["energy β", 0.123456789, None]], ["quantity", "value", "steps"])
    assert table.splitlines() == [
        "quantity     value  steps",
        "────────  ────────  ─────",
        "mass             1      3",
        "energy β  0.123457",
    ]
    assert format_table([], ["a"]) == "a\n─"
