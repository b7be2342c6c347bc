"""Any number of ranks gives the same histories, and goes on from the checkpoints of any other number."""

import json

import numpy as np
import pytest
from launching import launch
from small_runs import RESUMED


def answers(program, ranks, *arguments):
    done = launch(program, ranks, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # fails if anything else was printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def found(folder):
    return {ranks: answers("histories_program.py", ranks, folder) for ranks in (1, 2, 3)}


def furthest(one, other):
    """The largest difference of any recorded number."""
    assert one.keys() == other.keys()
    worst = {}
    for name, values in one.items():
        assert values.keys() == other[name].keys()
        for quantity in values:
            here, there = np.array(values[quantity]), np.array(other[name][quantity])
            assert here.shape == there.shape
            worst[name, quantity] = np.abs(here - there).max()
    return worst


@pytest.mark.parametrize("ranks", [2, 3])
def test_histories_are_the_same(found, ranks):
    differences = furthest(found[1]["histories"], found[ranks]["histories"])
    print(ranks, max(differences.items(), key=lambda item: item[1]))
    assert len(differences) > 100
    for which, difference in differences.items():
        assert difference < 1e-11, which


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("what", ["neighbourhoods", "deposited", "tokens"])
def test_what_does_not_sum_over_ranks_is_the_same_bit_by_bit(found, ranks, what):
    assert found[ranks][what] == found[1][what]
    assert len(found[1][what]) >= 3


def test_the_runs_are_not_trivial(found):
    """Laws move, wind presses against walls."""
    histories = found[1]["histories"]
    for name, values in histories.items():
        assert values["steps"] >= 2
        moved = max(np.ptp(values[moment], axis=0).max() for moment in ("first_moment", "second_moment"))
        assert moved > 1e-4 or name == "one cell, FV2", name
    assert all(values["wall mass"] > 1e-3 for name, values in histories.items() if "triangles" in name)


def test_four_ranks_on_a_few_runs(found, folder, tmp_path):
    four = answers("histories_program.py", 4, tmp_path, "few")
    some = {name: found[1]["histories"][name] for name in four["histories"]}
    assert max(furthest(some, four["histories"]).values()) < 1e-11
    assert four["neighbourhoods"] == found[1]["neighbourhoods"]
    assert four["deposited"] == found[1]["deposited"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_any_number_of_ranks_goes_on_from_any_other(found, folder, ranks):
    """Final state against that of the run that was not interrupted, relative to its largest entry."""
    differences = answers("resume_program.py", ranks, folder)
    assert len(differences) == 3 * len(RESUMED)
    for which, difference in differences.items():
        if which.startswith(f"{ranks} "):
            assert difference == 0, which  # the same ranks: the same bits
        else:
            assert difference < 1e-13, which
