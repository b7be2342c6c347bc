"""The picture of a study: it is drawn, and large enough to have something on it."""

import pytest

import pde_solver as ps
from pde_solver.convergence.figure import draw_studies


def studies(count):
    return [
        ps.converge(lambda h, p=p: {"L1": h**p, "W1": h ** (p + 1)}, [0.4, 0.2, 0.1], name=f"degree {p}")
        for p in range(1, count + 1)
    ]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_it_is_drawn(tmp_path, count, suffix):
    path = tmp_path / f"study{suffix}"
    draw_studies(path, studies(count), title="A study")
    assert path.stat().st_size > 10_000
    if suffix == ".svg":
        assert "<svg" in path.read_text()


def test_errors_that_are_zero_and_a_single_resolution_are_drawn(tmp_path):
    draw_studies(tmp_path / "zero.png", [ps.converge(lambda h: 0.0, [0.2, 0.1])])
    draw_studies(tmp_path / "one.png", [ps.converge(lambda h: h, [0.2])])


def test_nothing_cannot_be_drawn(tmp_path):
    with pytest.raises(ps.InputError, match="no errors"):
        draw_studies(tmp_path / "none.png", [])
