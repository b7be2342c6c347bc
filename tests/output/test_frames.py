"""What a picture is drawn from."""

import numpy as np
from output_fakes import Patches, Tokens

from pde_solver.output import collect_frame


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
