"""What a picture is drawn from."""

import numpy as np
import pytest
from mpi4py import MPI
from output_fakes import Patches, Tokens

from pde_solver.errors import InputError
from pde_solver.output import FieldWriter, collect_frame, read_frames


def test_nodal_values_come_with_their_nodes_in_input_order():
    patches = Patches(labels=2)
    frame = collect_frame(patches.snapshot(0.5))
    assert frame is not None
    # The fake's values are 1 + t + 0.1 label + sin²(1 + cell) + 0.001 node; two labels of mass 1/2 add 0.05.
    expected = 1.55 + np.sin(1.0 + np.arange(12))[:, None] ** 2 + 1e-3 * np.arange(6)
    assert np.allclose(frame.values, expected.ravel(), rtol=1e-14)
    assert np.array_equal(frame.points, patches.points.reshape(-1, 3))
    assert (frame.t, frame.is_tokens) == (0.5, False)


def test_cell_values_stand_at_the_cells_centres():
    patches = Patches(nodal=False)
    frame = collect_frame(patches.snapshot(0.0))
    assert frame is not None
    assert np.allclose(frame.points, patches.points.mean(axis=1), rtol=1e-14)
    assert np.allclose(frame.values, 1.0 + np.sin(1.0 + np.arange(12)) ** 2, rtol=1e-14)


def test_tokens_are_said_to_be_tokens():
    frame = collect_frame(Tokens(count=9).snapshot(0.0))
    assert frame is not None
    assert frame.is_tokens
    assert np.allclose(frame.values, 1 / 9)


@pytest.mark.parametrize(
    "fake", [Patches(), Patches(labels=2), Patches(nodal=False), Patches(nodal=False, labels=3), Tokens(count=9)]
)
def test_frames_read_from_a_file_are_those_that_were_collected(fake, tmp_path):
    path = tmp_path / "fields.vtkhdf"
    writer = FieldWriter(path)
    depths = [0.0, 0.1, 0.2, 0.9, 1.0, 2.0, 3.1]
    for t in depths:
        writer.write(fake.snapshot(t))
    frames = read_frames(path, fake.model.labels.weights)
    # nearest to 0, 3.1/3, 6.2/3, 3.1
    assert [frame.t for frame in frames] == [0.0, 1.0, 2.0, 3.1]
    for frame in frames:
        collected = collect_frame(fake.snapshot(frame.t))
        assert collected is not None
        assert frame.is_tokens == collected.is_tokens
        np.testing.assert_allclose(frame.points, collected.points, rtol=0, atol=1e-15)
        np.testing.assert_allclose(frame.values, collected.values, rtol=1e-14)


def test_depths_before_a_resumption_are_drawn_too(tmp_path):
    path, fake = tmp_path / "fields.vtkhdf", Patches()
    writer = FieldWriter(path)
    for t in (0.0, 1.0, 1.5):
        writer.write(fake.snapshot(t))
    resumed = FieldWriter(path)
    resumed.truncate_after(MPI.COMM_SELF, 1.0)
    resumed.write(fake.snapshot(2.0))
    assert [frame.t for frame in read_frames(path, (1.0,))] == [0.0, 1.0, 2.0]


def test_a_file_that_is_missing_or_no_file_of_fields(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_frames(tmp_path / "fields.vtkhdf", (1.0,))
    (tmp_path / "fields.vtkhdf").write_text("something else")
    with pytest.raises(InputError, match="damaged or not a VTKHDF file"):
        read_frames(tmp_path / "fields.vtkhdf", (1.0,))
