"""The newest good checkpoint is found, and what was passed over is said."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from output_fakes import Patches

from pde_solver.errors import InputError
from pde_solver.output import CheckpointMismatchError, CheckpointSeries

HERE = Path(__file__).parent


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_last_two_stay(tmp_path):
    series = CheckpointSeries(tmp_path)
    for step in (5, 10, 100):
        path = series.save(Patches().snapshot(step / 10, step))
    assert path.name == "checkpoint_000000100.h5"
    assert names(tmp_path) == ["checkpoint_000000010.h5", "checkpoint_000000100.h5"]
    checkpoint, skipped = series.latest(Patches())
    assert checkpoint is not None
    assert (checkpoint.step, skipped) == (100, [])


def test_falls_back_to_the_last_good_one_and_says_so(tmp_path):
    series = CheckpointSeries(tmp_path)
    for step in (5, 10):
        series.save(Patches().snapshot(step / 10, step))
    newest = tmp_path / "checkpoint_000000010.h5"
    newest.write_bytes(newest.read_bytes()[:-100])
    checkpoint, skipped = series.latest(Patches())
    assert checkpoint is not None
    assert checkpoint.step == 5
    assert len(skipped) == 1
    assert "checkpoint_000000010.h5: truncated" in skipped[0]
    series.save(Patches().snapshot(0.7, 7))  # the run goes on from there: the damaged one must not count any more
    assert names(tmp_path) == ["checkpoint_000000005.h5", "checkpoint_000000007.h5"]


def test_with_none_there_is_none(tmp_path):
    series = CheckpointSeries(tmp_path)
    assert series.latest(Patches()) == (None, [])
    assert CheckpointSeries(tmp_path / "none").latest(Patches()) == (None, [])
    (tmp_path / "checkpoint_000000003.h5").touch()
    (tmp_path / ".checkpoint_000000004.h5.partial").touch()
    checkpoint, skipped = series.latest(Patches())
    assert checkpoint is None
    assert len(skipped) == 1
    assert "is empty" in skipped[0]


def test_good_checkpoints_of_another_run_are_not_passed_over_in_silence(tmp_path):
    series = CheckpointSeries(tmp_path)
    series.save(Patches().snapshot(0.5, 5))
    with pytest.raises(CheckpointMismatchError, match="another mesh"):
        series.latest(Patches(digest="other"))


def test_keep_is_checked(tmp_path):
    with pytest.raises(InputError, match="keep must be a whole number ≥ 1, found 0"):
        CheckpointSeries(tmp_path, keep=0)


def test_twenty_kills_while_saving(tmp_path):
    """Kill -9 at twenty moments: the newest complete checkpoint loads, and is no older than the last that was reported."""
    done = subprocess.run(
        [sys.executable, str(HERE / "kill_checkpoints.py"), str(tmp_path), "20"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 20
    assert np.all([len(name) < 40 for name in names(tmp_path)])
