"""One, two and three ranks see the same. Child processes with a hard time-out."""

import json
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).with_name("mpi_observing.py")


def run_on(on_ranks, ranks):
    done = on_ranks(SCRIPT, ranks, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_any_number_of_ranks_sees_the_same(on_ranks):
    serial = run_on(on_ranks, 1)
    assert (
        serial["guard nan"]
        .split(": ", 1)[1]
        .startswith("the density became NaN or infinite in 1 cell, first in cell 299;")
    )
    for ranks in (2, 3):
        parallel = run_on(on_ranks, ranks)
        assert parallel.keys() == serial.keys()
        for name, value in serial.items():
            if isinstance(value, str):
                assert parallel[name] == value
            else:
                assert np.allclose(parallel[name], value, rtol=1e-12, atol=1e-12), name
