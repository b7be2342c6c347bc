"""The table that compares results: made-up histories and laws, so that every entry is known."""

import math

import pytest
from synthetic_results import ON_A_MESH, synthetic

from pde_solver.case.compare import comparison_of
from pde_solver.errors import InputError


def entries(table, label):
    """The words of a row after its label, and those of the row below."""
    lines = table.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(label))
    return [line.removeprefix(label).replace("  largest over depths", "").split() for line in lines[place : place + 2]]


@pytest.fixture
def runs(tmp_path):
    """Three runs with energies 2 ± 1 and 4 ± 2 at two depths, and a law at angle 0, 0.1 and 0.4."""
    return [
        synthetic(tmp_path, f"run-{i}", f"discretisation.seed={i}", angle=angle, mass=[1, 1], energy=[2 + k, 4 + 2 * k])
        for i, (k, angle) in enumerate([(-1, 0.0), (0, 0.1), (1, 0.4)])
    ]


@pytest.fixture
def on_a_mesh(tmp_path):
    return synthetic(tmp_path, "mesh", *ON_A_MESH, angle=1.0, mass=[1, 1], energy=[2.5, 3.9], least=[0.2, 0.125])


def test_one_reference_and_differences_from_it(runs, on_a_mesh):
    table = comparison_of(runs[:1], [runs[1], on_a_mesh])
    # energies 1, 2 against the reference; 2.5 − 1 = 1.5 at the first depth is the largest difference of the mesh's
    assert entries(table, "energy at t = 1") == [["2", "2", "1.9"], ["2", "1.9"]]
    assert entries(table, "mass at t = 1") == [["1", "0", "0"], ["0", "0"]]
    assert entries(table, "W₁, exact on the circle at t = 1")[0] == ["0.1", "1"]
    assert "σ" not in table
    assert "±" not in table


def test_a_result_may_be_compared_with_itself(runs):
    assert entries(comparison_of(runs[:1], [runs[0]]), "energy at t = 1") == [["2", "0"], ["0"]]


def test_the_mean_of_replicas_and_differences_in_standard_errors(runs, on_a_mesh):
    table = comparison_of(runs, [on_a_mesh])
    # mean 4, s = 2, standard error 2 / √3: the difference −0.1 is 0.087 of it
    at_last, largest = entries(table, "energy at t = 1")
    assert at_last == ["4", "2", "-0.100", f"({0.1 * math.sqrt(3) / 2:.1f}σ)"]
    assert largest == ["2", "0.500"]  # of the mesh at the first depth, 2.5 − 2
    assert entries(table, "mass at t = 1") == [["1", "0", "0"], ["0", "0"]]
    # arcs between runs 0.1, 0.3, 0.4; from the mesh's law 1, 0.9, 0.6
    assert entries(table, "W₁, exact on the circle at t = 1")[0] == ["0.27", "0.833"]
    assert "standard deviation of these 3 runs" in table
    assert "100 tokens drawn independently, seeds 0, 1, 2" in table
    # Student's t with 2 degrees of freedom: 4.303
    assert "σ = ±/√3; chance alone stays within 4.3σ in 95 of 100 cases." in table


def test_another_run_of_particles_has_an_error_of_its_own(runs):
    table = comparison_of(runs[:2], [runs[2]])
    # energies 2, 4 | 6: mean 3, s = √2, standard error of the difference √2 · √(1/2 + 1) = √3
    assert entries(table, "energy at t = 1")[0] == ["3", "1.4", "+3.00", f"({3 / math.sqrt(3):.1f}σ)"]


def test_a_quantity_that_the_reference_has_not_is_shown_itself(runs, on_a_mesh):
    for reference in (runs, runs[:1]):
        table = comparison_of(reference, [on_a_mesh])
        assert entries(table, "least at t = 1")[0] == ["0.125"]
        assert "Where the reference has no value (least), the others show theirs." in table


def test_depths_that_are_not_shared(tmp_path, runs):
    other = synthetic(tmp_path, "other", "discretisation.seed=9", times=(0.25, 0.5), energy=[1, 1])
    table = comparison_of(runs, [other])
    assert "energy (no depth in common)" in table
    assert "Wasserstein distance (no depth in common)" in table


def test_tokens_that_live_elsewhere_are_refused(tmp_path, runs):
    other = synthetic(tmp_path, "other", "model.manifold=sphere", "model.dimension=3")
    with pytest.raises(InputError, match=r"other: its tokens live on the .* there is nothing to compare"):
        comparison_of(runs, [other])
