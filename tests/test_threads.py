import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np, pde_solver as ps
from threadpoolctl import threadpool_info
model = ps.Model(ps.Sphere(2), ps.Attention(1.0))
ps.Particles(model, count=10)
print(max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))
"""


@pytest.mark.parametrize(("environment", "found"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_one_thread_unless_the_environment_says_how_many(environment, found):
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one core has one thread anyway")
    silent = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=silent | environment,
    )
    assert done.stdout.strip() == found
