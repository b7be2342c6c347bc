"""Checkpoints come back to the last bit, and whatever is wrong with one is said."""

import resource
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from output_fakes import Patches, Tokens

from pde_solver.errors import InputError, RunStopped
from pde_solver.output import CheckpointMismatchError, load_checkpoint, save_checkpoint

HERE = Path(__file__).parent
HISTORIES = {
    "energy": (np.array([0.0, 0.1]), np.array([1 / 3, 2 / 3])),
    "odd / name.": (np.array([0.0]), np.array([[np.nan, np.inf, -0.0]])),
    "nothing yet": (np.empty(0), np.empty(0)),
}


@pytest.fixture
def saved(tmp_path):
    patches = Patches(labels=2)
    snapshot = patches.snapshot(1 / 3, step=17)
    save_checkpoint(tmp_path / "ü c.h5", snapshot, "case = 1 # ü", HISTORIES, {"dt": 0.1, "initial mass": np.ones(2)})
    return tmp_path / "ü c.h5", patches, snapshot


def test_everything_comes_back_to_the_last_bit(saved):
    path, patches, snapshot = saved
    checkpoint = load_checkpoint(path, patches, "case = 1 # ü")
    assert (checkpoint.t, checkpoint.step, checkpoint.case_text) == (1 / 3, 17, "case = 1 # ü")
    assert np.array_equal(checkpoint.state(patches), snapshot.state)
    assert checkpoint.histories.keys() == HISTORIES.keys()
    for name, (times, values) in HISTORIES.items():
        assert checkpoint.histories[name][0].tobytes() == times.tobytes()
        assert checkpoint.histories[name][1].tobytes() == values.tobytes()
        assert checkpoint.histories[name][1].shape == values.shape
    assert checkpoint.extra["dt"] == 0.1
    assert np.array_equal(checkpoint.extra["initial mass"], np.ones(2))
    assert not list(path.parent.glob(".*"))


def test_without_case_and_histories(tmp_path):
    tokens = Tokens()
    save_checkpoint(tmp_path / "c.h5", tokens.snapshot(0.0))
    checkpoint = load_checkpoint(tmp_path / "c.h5")
    assert (checkpoint.case_text, checkpoint.histories, checkpoint.extra) == (None, {}, {})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda data: b"", "is empty"),
        (lambda data: data[: len(data) // 2], "truncated or damaged .its checksum"),
        (lambda data: data[:100], "damaged, or not a checkpoint"),
        (lambda data: data + b"0", "truncated or damaged .its checksum"),
        (lambda data: b"something else entirely", "damaged, or not a checkpoint"),
    ],
)
def test_damaged_files_are_refused(saved, damage, sentence):
    path, patches, _ = saved
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=sentence) as caught:
        load_checkpoint(path, patches)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such checkpoint"):
        load_checkpoint(tmp_path / "none.h5")
    with pytest.raises(InputError, match="is a folder"):
        load_checkpoint(tmp_path)


def test_a_foreign_file_is_refused(tmp_path):
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(InputError, match="an HDF5 file, but not a checkpoint of pde_solver"):
        load_checkpoint(tmp_path / "foreign.h5")


def test_a_newer_format_is_refused(saved):
    path, patches, _ = saved
    path.write_bytes(path.read_bytes().replace(b"format 1\n", b"format 99\n", 1))
    with pytest.raises(CheckpointMismatchError, match="format 99, newer than this program's format 1; update"):
        load_checkpoint(path, patches)


@pytest.mark.parametrize("what", ["t", "rows", "histories"])
def test_changed_content_fails_the_checksum(saved, what):
    path, patches, _ = saved
    with h5py.File(path, "r+") as file:
        if what == "t":
            file.attrs["t"] = 0.5
        elif what == "rows":
            file["rows"][3, 2] += 1e-9
        else:
            file["histories/energy/values"][1] = 0.0
    with pytest.raises(InputError, match="checksum does not match"):
        load_checkpoint(path, patches)


def test_no_flipped_bit_is_taken_for_the_saved_state(tmp_path):
    """One bit in each of many bytes: refused, or (in the unused part of the head) without effect."""
    done = subprocess.run(
        [sys.executable, str(HERE / "flip_bits.py"), str(tmp_path), "400"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    refused, harmless = map(int, done.stdout.split())
    assert refused > 350
    assert refused + harmless == 400


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (lambda: Patches(labels=2, digest="0123456789"), "another mesh .*01234567"),
        (lambda: Patches(labels=2, beta=2.0), "another model"),
        (lambda: Patches(labels=1), "another model"),
    ],
)
def test_the_state_of_another_run_is_refused(saved, other, sentence):
    with pytest.raises(CheckpointMismatchError, match=sentence):
        load_checkpoint(saved[0], other())


def test_another_discretisation_or_case_is_refused(saved):
    path, patches, _ = saved
    with pytest.raises(CheckpointMismatchError, match="another case"):
        load_checkpoint(path, patches, "case = 2")
    patches.name = "finite volume, order 2"
    with pytest.raises(CheckpointMismatchError, match="another discretisation \\(fake\\)"):
        load_checkpoint(path, patches)


def test_a_full_disk_leaves_the_old_checkpoint(saved):
    """The size limit of a process stands for the disk."""
    path, patches, snapshot = saved
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(RunStopped, match=r"c\.h5: writing failed \(File too large\); .* intact"):
            save_checkpoint(path, Patches(cells=5000).snapshot(2.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert np.array_equal(load_checkpoint(path, patches).state(patches), snapshot.state)
    assert not list(path.parent.glob(".*"))


def test_an_unwritable_folder_is_named(tmp_path):
    with pytest.raises(RunStopped, match=r"none/c\.h5: writing failed \(No such file or directory\)"):
        save_checkpoint(tmp_path / "none" / "c.h5", Patches().snapshot(0.0))
