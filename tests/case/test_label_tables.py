"""The table [labels]: positions, whom they attend to, and laws that depend on the position."""

import tomllib

import numpy as np
import pytest

import pde_solver as ps
from pde_solver.case.memory import expected_memory

CASE = """
[model]
manifold = "circle"
[[model.attention]]
beta = 1.0
[labels]
count = 8
slope = 2.0
[mesh]
kind = "circle"
cells = 24
[discretisation]
kind = "discontinuous-galerkin"
[initial]
law = "expression"
formula = "1 + 0.6*s*cos(theta)"
[time]
stop = 0.2
"""


@pytest.fixture
def case(tmp_path):
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    return path


def test_the_labels_are_those_of_python(case):
    labels = ps.load_case(case).model.labels
    right = ps.position_labels(8, mixing=lambda edges: ps.causal_mixing(edges, slope=2.0))
    np.testing.assert_array_equal(labels.mixing, right.mixing)
    np.testing.assert_array_equal(labels.nodes, right.nodes)
    assert labels.weights == right.weights


def test_a_window_and_no_mask(case):
    window = ps.load_case(case, ["labels.window=0.1", "labels.grading=1"]).model.labels
    np.testing.assert_array_equal(window.mixing, ps.causal_mixing(ps.position_edges(8, 1.0), 2.0, 0.1))
    everybody = ps.load_case(case, ["labels={mask='none', count=4}"]).model.labels
    np.testing.assert_array_equal(everybody.mixing, np.tile(everybody.weights, (4, 1)))


def test_each_head_has_its_own_slope(case):
    heads = "model.attention=[{beta=1.0}, {beta=2.0, weight=-0.5}]"
    mixing = ps.load_case(case, [heads, "labels.slope=[0.0, 3.0]"]).model.labels.mixing
    np.testing.assert_array_equal(mixing, [ps.causal_mixing(ps.position_edges(8), slope) for slope in (0.0, 3.0)])
    with pytest.raises(ps.InputError, match="a matrix for each of 3 heads, and the velocity 2 heads"):
        ps.load_case(case, [heads, "labels.slope=[0.0, 1.0, 2.0]"])


def test_each_position_has_its_own_law(case):
    loaded = ps.load_case(case)
    simulation = loaded.simulation()
    means = simulation.snapshot.measure.integrate(lambda x: x)
    # ∫ cos θ (1 + a cos θ) / 2π dθ = a / 2
    np.testing.assert_allclose(means[:, 0], 0.3 * loaded.model.labels.nodes, atol=1e-4)
    assert simulation.run().mass_error < 1e-12


def test_mixtures_of_laws_depend_on_the_position_too(case):
    formula = "initial={law='mixture', components=[{law='von-mises-fisher', mean=[1, 0], weight=1}]}"
    assert len(ps.load_case(case, [formula]).laws) == 8
    parts = ps.Mixture([ps.Uniform(), ps.Expression("s")]).at(0.25)
    assert parts.laws[1].position == 0.25


def test_without_labels_there_is_no_position(case):
    with pytest.raises(ps.InputError, match="s is not defined on the circle"):
        ps.load_case(case, ["labels="]).simulation()


def test_the_resolved_case_is_a_case(case):
    text = ps.load_case(case).text
    assert tomllib.loads(text)["labels"] == {"mask": "causal", "count": 8, "grading": 2.0, "slope": 2.0}


def test_memory_counts_labels(case):
    one, eight = (expected_memory(ps.load_case(case, [f"labels.count={n}"]).settings) for n in (1, 8))
    assert eight > 3 * one


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["labels.count=0"], r"labels\.count: found 0, must be a whole number ≥ 1"),
        (["labels.slope=-1"], r"labels\.slope: found -1, must be a number ≥ 0"),
        (["labels.grading=0.5"], r"labels\.grading: found 0\.5, must be a number ≥ 1"),
        (["labels.window=0"], r"labels\.window: found 0, must be a number > 0"),
        (["labels.mask=none"], r'labels\.slope: does not apply to mask = "none"; it belongs to "causal"'),
        (["labels.slpe=1"], r"labels\.slpe: unknown; did you mean slope"),
    ],
)
def test_what_cannot_be_labels_is_refused(case, changes, sentence):
    with pytest.raises(ps.InputError, match=sentence):
        ps.load_case(case, changes)
