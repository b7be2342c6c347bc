"""The picture of laws over position and angle."""

import numpy as np
import pytest

import pde_solver as ps
from pde_solver.output import read_frames, read_label_frames
from pde_solver.output.label_figure import label_figure


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    """Fields of a causal run with five positions, whose laws differ, at two depths."""
    folder = tmp_path_factory.mktemp("run")
    labels = ps.position_labels(5)
    model = ps.Model(ps.Sphere(2), ps.Attention(1.0), labels)
    laws = [ps.HarmonicPerturbation(1, 0.5 * s) for s in labels.nodes]
    simulation = ps.Simulation(ps.DiscontinuousGalerkin(model, ps.circle(16), 2), laws, 0.3)
    simulation.write_fields(folder)
    simulation.run()
    return folder / "fields.vtkhdf", labels


def test_every_label_is_read_as_it_was_written(fields):
    path, labels = fields
    rows = read_label_frames(path, 5)
    assert [row[0].t for row in rows] == [0.0, 0.3]
    mixed = read_frames(path, labels.weights)
    for row, frame in zip(rows, mixed, strict=True):
        together = sum(weight * one.values for weight, one in zip(labels.weights, row, strict=True))
        np.testing.assert_allclose(together, frame.values, rtol=1e-12)
    assert rows[0][4].values.max() > 1.2 * rows[0][0].values.max()  # later laws are sharper


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_it_is_drawn(fields, tmp_path, suffix):
    path, labels = fields
    picture = tmp_path / f"labels{suffix}"
    label_figure(picture, ps.Sphere(2), labels.nodes, read_label_frames(path, 5), "Causal attention")
    assert picture.stat().st_size > 10_000


def test_what_cannot_be_drawn_is_refused(fields, tmp_path):
    path, labels = fields
    frames = read_label_frames(path, 5)
    with pytest.raises(ps.InputError, match="on the circle or on the line"):
        label_figure(tmp_path / "no.png", ps.Sphere(3), labels.nodes, frames)
    with pytest.raises(ps.InputError, match="a frame for each of the 4 labels"):
        label_figure(tmp_path / "no.png", ps.Sphere(2), labels.nodes[:4], frames)
