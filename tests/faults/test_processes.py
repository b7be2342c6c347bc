"""What happens to one process happens to the job: it ends soon, with a status that is not zero, and nothing hangs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pde_solver.output import load_checkpoint

PROGRAM = Path(__file__).with_name("failing_program.py")
#: Seconds within which the others must be gone, after some for starting up.
LIMIT, START_UP = 10, 20


def command(ranks, folder, what):
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if ranks > 1 and launcher is None:
        pytest.skip("there is no mpiexec")
    return [*([launcher, "-n", str(ranks)] if ranks > 1 else []), sys.executable, str(PROGRAM), str(folder), what]


def run(ranks, folder, what):
    return subprocess.run(
        command(ranks, folder, what),
        capture_output=True,
        text=True,
        timeout=LIMIT + START_UP,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    ("what", "status", "said"),
    [
        ("raise", 1, "ArithmeticError: something broke"),
        ("interrupt", 130, "KeyboardInterrupt"),
        ("exit", 3, "[rank 1] exits while others go on; the job ends."),
        ("kill", 9, ""),
    ],
)
def test_one_rank_takes_the_others_with_it(what, status, said, tmp_path):
    """And the newest complete checkpoint is there, with no half-written file beside it."""
    done = run(2, tmp_path, what)
    assert done.returncode == status, done.stderr[-2000:]
    assert said in done.stderr
    files = sorted(file.name for file in (tmp_path / "checkpoints").iterdir())
    assert files == ["checkpoint_000000000.h5", "checkpoint_000000005.h5"]
    assert load_checkpoint(tmp_path / "checkpoints" / files[-1]).t == pytest.approx(0.1)


def test_ranks_that_all_leave_are_let_go(tmp_path):
    began = time.monotonic()
    done = run(2, tmp_path, "leave")
    assert done.returncode == 3
    assert "the job ends" not in done.stderr
    assert time.monotonic() - began < START_UP


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_terminated_run_leaves_a_checkpoint_and_says_how_to_go_on(ranks, tmp_path):
    """SIGTERM, as a queueing system sends it before the time is over, to the ranks or to one of them."""
    with subprocess.Popen(
        command(ranks, tmp_path, "wait"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        try:
            assert job.stdout is not None
            ready, *pids = job.stdout.readline().split()
            assert ready == "ready"
            assert len(pids) == ranks
            os.kill(int(pids[-1]), signal.SIGTERM)
            said, errors = job.communicate(timeout=LIMIT)
        finally:
            job.kill()
    assert job.returncode == 0, errors
    assert said.startswith("Stopped at t = 0.")
    assert f"(terminated; resume from {tmp_path})" in said
    newest = max((tmp_path / "checkpoints").iterdir())
    assert load_checkpoint(newest).t == pytest.approx(float(said.split()[4]))
