"""Laws come back as the measures that they were."""

import h5py
import numpy as np
import pytest
from mpi4py import MPI
from output_fakes import Patches, Tokens

from pde_solver.errors import InputError
from pde_solver.output import LawWriter, read_laws


@pytest.mark.parametrize("discretisation", [Patches(labels=2), Tokens()], ids=["mesh", "tokens"])
def test_laws_come_back_in_global_order(tmp_path, discretisation):
    writer = LawWriter(tmp_path / "laws.h5")
    for t in (0.0, 0.1, 2.0):
        writer.write(discretisation.snapshot(t))
    laws = read_laws(tmp_path / "laws.h5")
    assert [t for t, _ in laws] == [0.0, 0.1, 2.0]
    for t, law in laws:
        expected = discretisation.snapshot(t).measure
        cells = discretisation.cell_count
        points = expected.points.reshape(cells, -1, expected.points.shape[1])[::-1]  # one rank: in reverse order
        weights = expected.weights.reshape(len(expected.weights), cells, -1)[:, ::-1]
        assert np.array_equal(law.points, points.reshape(law.points.shape))
        assert np.array_equal(law.weights, weights.reshape(law.weights.shape))


def test_a_resumed_run_continues_its_laws(tmp_path):
    tokens = Tokens()
    writer = LawWriter(tmp_path / "laws.h5")
    for t in (0.0, 1.0, 2.0):
        writer.write(tokens.snapshot(t))
    writer = LawWriter(tmp_path / "laws.h5")
    writer.truncate_after(MPI.COMM_SELF, 1.0)
    assert [t for t, _ in read_laws(tmp_path / "laws.h5")] == [0.0, 1.0]
    writer.write(tokens.snapshot(1.0))  # once more: replaced, not doubled
    writer.write(tokens.snapshot(1.5))
    laws = read_laws(tmp_path / "laws.h5")
    assert [t for t, _ in laws] == [0.0, 1.0, 1.5]
    assert np.array_equal(laws[-1][1].points[::-1], tokens.snapshot(1.5).measure.points)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file of laws"):
        read_laws(tmp_path / "laws.h5")
    (tmp_path / "laws.h5").write_bytes(b"text")
    with pytest.raises(InputError, match="truncated, damaged or no HDF5 file"):
        read_laws(tmp_path / "laws.h5")
    with h5py.File(tmp_path / "laws.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(InputError, match="not one of laws"):
        read_laws(tmp_path / "laws.h5")
    with pytest.raises(InputError, match="not one of laws"):
        LawWriter(tmp_path / "laws.h5").truncate_after(MPI.COMM_SELF, 0.0)
