import json
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "ranks_program.py"


def run(on_ranks, ranks):
    finished = on_ranks(PROGRAM, ranks, timeout=60)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return json.loads(finished.stdout)  # fails if anything else was printed


@pytest.fixture(scope="module")
def alone(on_ranks):
    return run(on_ranks, 1)


def test_one_rank(alone):
    assert alone["sentences"] == 3
    assert all(mesh["owned"] == mesh["cells"] for mesh in alone.values() if isinstance(mesh, dict))


@pytest.mark.parametrize("ranks", [2, 3])
def test_geometry_is_bitwise_the_same_on_any_number_of_ranks(on_ranks, ranks, alone):
    # includes meshes of one to three cells: ranks without cells
    assert run(on_ranks, ranks) == alone
    assert all(mesh["differing"] == 0 for mesh in alone.values() if isinstance(mesh, dict))
    assert alone["same sentences"]
