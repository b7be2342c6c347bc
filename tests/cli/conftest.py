"""The command as users call it: child processes with a time limit."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPTS = Path(sysconfig.get_path("scripts"))
MPIEXEC = str(SCRIPTS / "mpiexec") if (SCRIPTS / "mpiexec").exists() else shutil.which("mpiexec") or "mpiexec"

CASE = """
[model]
manifold = "circle"

[[model.attention]]
beta = 4.0

[mesh]
kind = "circle"
cells = 32

[discretisation]
kind = "finite-volume"

[initial]
law = "von-mises-fisher"
mean = [1.0, 0.5]
kappa = 2.0

[time]
stop = 0.5

[output]
every = 0.1
fields_every = 0.25
checkpoint_every = 0.25
figure = false
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


def launch(
    *arguments: object, ranks: int = 1, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python program on some ranks."""
    launcher = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
    return subprocess.run(
        [*launcher, sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )


@pytest.fixture(scope="session")
def pde_solver() -> Command:
    """`pde_solver("run", "case.toml", ranks=2)` runs the command and gives its status, output and errors."""
    return lambda *arguments, **options: launch("-m", "pde_solver", *arguments, **options)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory, pde_solver: Command) -> Path:
    """A folder with case.toml and the results `one` and `two` of running it on one and on two ranks."""
    folder = tmp_path_factory.mktemp("results")
    case = folder / "case.toml"
    case.write_text(CASE)
    for name, ranks in (("one", 1), ("two", 2)):
        done = pde_solver("run", case, "--output", folder / name, ranks=ranks)
        assert done.returncode == 0, done.stderr
        (folder / f"{name}.txt").write_text(done.stdout)
    return folder
