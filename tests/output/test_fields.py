"""Fields as VTK's own reader sees them, and what is left of them after kill -9."""

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from output_fakes import Patches, Tokens

from pde_solver.errors import InputError, RunStopped
from pde_solver.output.fields import FieldWriter

HERE = Path(__file__).parent


def read_with_vtk(path):
    pytest.importorskip("vtkmodules.vtkIOHDF")
    command = [sys.executable, str(HERE / "vtk_reading.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip(), done.stderr  # VTK complains there
    return json.loads(done.stdout)


def written(path, discretisation, depths):
    writer = FieldWriter(path)
    for t in depths:
        writer.write(discretisation.snapshot(t))
    return writer


@pytest.mark.parametrize("nodal", [True, False])
@pytest.mark.parametrize("labels", [1, 3])
def test_vtk_reads_the_values_of_a_mesh(tmp_path, nodal, labels):
    # Source of the right values: the fake's own snapshot, cell by cell in input order.
    patches = Patches(nodal=nodal, labels=labels)
    written(tmp_path / "ü b.vtkhdf", patches, [0.0, 0.1, 0.30000000000000004])
    steps = read_with_vtk(tmp_path / "ü b.vtkhdf")
    assert [step["t"] for step in steps] == [0.0, 0.1, 0.30000000000000004]
    for step in steps:
        fields = step["point" if nodal else "cell"]
        assert list(fields) == (["density"] if labels == 1 else ["density_0", "density_1", "density_2"])
        _, rows = patches.rows(patches.snapshot(step["t"]).state)
        for label, values in enumerate(fields.values()):
            expected = rows[::-1].reshape(12, labels, -1)[:, label]  # one rank holds the cells in reverse order
            assert np.array_equal(values, expected.ravel())
        assert np.array_equal(step["points"], patches.points.reshape(-1, 3))
        assert (step["cells"], step["types"], step["last cell"]) == (12, [69], list(range(66, 72)))


def test_vtk_reads_moving_tokens(tmp_path):
    tokens = Tokens()
    written(tmp_path / "tokens.vtkhdf", tokens, [0.0, 0.5, 1.0])
    steps = read_with_vtk(tmp_path / "tokens.vtkhdf")
    assert [step["t"] for step in steps] == [0.0, 0.5, 1.0]
    for step in steps:
        _, rows = tokens.rows(tokens.snapshot(step["t"]).state)
        assert np.array_equal(np.array(step["points"])[:, :2], rows[::-1])
        assert np.allclose(step["point"]["weight"], 1 / 7, rtol=1e-15)
        assert step["types"] == [1]


def test_a_new_writer_begins_a_new_file(tmp_path):
    written(tmp_path / "f.vtkhdf", Patches(), [0.0, 1.0])
    written(tmp_path / "f.vtkhdf", Patches(cells=5), [0.0])
    (step,) = read_with_vtk(tmp_path / "f.vtkhdf")
    assert step["cells"] == 5


@pytest.mark.parametrize("discretisation", [Patches(), Tokens()], ids=["mesh", "tokens"])
def test_a_resumed_run_continues_without_lost_doubled_or_reordered_depths(tmp_path, discretisation):
    written(tmp_path / "f.vtkhdf", discretisation, [0.0, 1.0, 2.0, 3.0])
    writer = FieldWriter(tmp_path / "f.vtkhdf")
    writer.truncate_after(MPI.COMM_SELF, 1.0)
    assert [step["t"] for step in read_with_vtk(tmp_path / "f.vtkhdf")] == [0.0, 1.0]
    for nothing in (-1.0, -2.0):
        shutil.copy(tmp_path / "f.vtkhdf", tmp_path / "g.vtkhdf")
        FieldWriter(tmp_path / "g.vtkhdf").truncate_after(MPI.COMM_SELF, nothing)
    for t in (1.0, 1.5, 2.0):  # 1.0 once more: replaced, not doubled
        writer.write(discretisation.snapshot(t))
    steps = read_with_vtk(tmp_path / "f.vtkhdf")
    assert [step["t"] for step in steps] == [0.0, 1.0, 1.5, 2.0]
    written(tmp_path / "straight.vtkhdf", discretisation, [0.0, 1.0, 1.5, 2.0])
    assert steps == read_with_vtk(tmp_path / "straight.vtkhdf")


def test_to_continue_without_a_file_begins_one(tmp_path):
    writer = FieldWriter(tmp_path / "f.vtkhdf")
    writer.truncate_after(MPI.COMM_SELF, 1.0)
    writer.write(Patches().snapshot(1.0))
    assert len(read_with_vtk(tmp_path / "f.vtkhdf")) == 1


def test_another_mesh_or_file_is_not_continued(tmp_path):
    written(tmp_path / "f.vtkhdf", Patches(), [0.0])
    writer = FieldWriter(tmp_path / "f.vtkhdf")
    writer.truncate_after(MPI.COMM_SELF, 1.0)
    with pytest.raises(InputError, match="another mesh"):
        writer.write(Patches(digest="other").snapshot(1.0))
    (tmp_path / "g.vtkhdf").write_bytes(b"no HDF5")
    with pytest.raises(InputError, match="cannot be continued"):
        FieldWriter(tmp_path / "g.vtkhdf").truncate_after(MPI.COMM_SELF, 1.0)


@pytest.mark.parametrize("script", ["kill_appends.py", "cut_appends.py"])
def test_an_append_that_was_cut_short_loses_no_earlier_step(tmp_path, script):
    """Kill -9 at ten moments, and the file as it is after each single write of an append."""
    path = tmp_path / "f.vtkhdf"
    command = [sys.executable, str(HERE / script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    steps = int(done.stdout.split()[0])
    assert steps > 3
    assert [step["t"] for step in read_with_vtk(path)] == list(range(steps))


def test_a_full_disk_ends_with_a_sentence_and_loses_nothing(tmp_path):
    """The size limit of a process stands for the disk: the next append does not fit."""
    patches = Patches(cells=2000)
    writer = written(tmp_path / "f.vtkhdf", patches, [0.0, 1.0])
    before = read_with_vtk(tmp_path / "f.vtkhdf")
    size = (tmp_path / "f.vtkhdf").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, hard))
    try:
        with pytest.raises(RunStopped, match=r"f\.vtkhdf: writing failed \(File too large\); .* intact"):
            writer.write(patches.snapshot(2.0))
        with pytest.raises(RunStopped, match=r"writing failed \(File too large\)"):
            FieldWriter(tmp_path / "f.vtkhdf").write(Patches(cells=40_000).snapshot(0.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "f.vtkhdf").stat().st_size == size
    assert read_with_vtk(tmp_path / "f.vtkhdf") == before
    assert [path.name for path in tmp_path.iterdir()] == ["f.vtkhdf"]
    writer.write(patches.snapshot(2.0))
    assert [step["t"] for step in read_with_vtk(tmp_path / "f.vtkhdf")] == [0.0, 1.0, 2.0]
