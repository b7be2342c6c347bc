"""Statistics of independent runs, with samples whose mean and deviation are known."""

import math

import numpy as np
import pytest
from synthetic_results import ON_A_MESH, synthetic

from pde_solver.case.replicas import SampledHistory, check_replicas, distance_between, likely_errors, standard_error
from pde_solver.errors import InputError


def test_mean_and_standard_deviation_of_numbers():
    # 1, 2, 6: mean 3, s² = (4 + 1 + 9) / 2 = 7; at the other depth 1, 1, 4: mean 2, s² = (1 + 1 + 4) / 2 = 3
    histories = [(np.array([0.0, 1.0]), np.array(values)) for values in ([1.0, 1.0], [2.0, 1.0], [6.0, 4.0])]
    sample = SampledHistory.of(histories)
    np.testing.assert_allclose(sample.mean, [3, 2], rtol=1e-15)
    np.testing.assert_allclose(sample.spread, np.sqrt([7, 3]), rtol=1e-15)


def test_the_deviation_of_a_vector_is_a_length():
    # (0, 0) and (3, 4): mean (1.5, 2), s² = 2 · 2.5² / 1
    sample = SampledHistory.of([(np.zeros(1), np.array([[0.0, 0.0]])), (np.zeros(1), np.array([[3.0, 4.0]]))])
    np.testing.assert_allclose(sample.mean, [[1.5, 2.0]], rtol=1e-15)
    np.testing.assert_allclose(sample.spread, [math.sqrt(12.5)], rtol=1e-15)


def test_only_depths_that_all_share_count():
    histories = [(np.array([0.0, 0.5, 1.0]), np.array([1.0, 5.0, 3.0])), (np.array([0.0, 1.0]), np.array([1.0, 5.0]))]
    sample = SampledHistory.of(histories)
    np.testing.assert_array_equal(sample.times, [0, 1])
    np.testing.assert_allclose(sample.mean, [1, 4], rtol=1e-15)


def test_rounding_is_no_scatter():
    sample = SampledHistory.of([(np.zeros(1), np.array([1.0])), (np.zeros(1), np.array([1.0 + 1e-15]))])
    assert sample.spread[0] == 0


def test_standard_errors_cover_the_truth_as_often_as_promised():
    # 4 draws with mean 0: |mean| ≤ q s / √4 in 95 of 100 samples, by Student's distribution of mean √4 / s; 20,000
    # samples bear this out up to 3 √(0.95 · 0.05 / 20,000) = 0.0046. The quantile itself, 3.182, is in any table.
    assert likely_errors(4) == pytest.approx(3.182, abs=5e-4)
    draws = np.random.default_rng(1).normal(size=(4, 20_000))
    sample = SampledHistory.of([(np.arange(20_000.0), row) for row in draws])
    covered = np.abs(sample.mean) <= likely_errors(4) * sample.spread / 2
    assert abs(covered.mean() - 0.95) < 0.0046


def test_random_tokens_of_the_other_result_add_to_the_error(tmp_path):
    reference = synthetic(tmp_path, "reference")
    on_a_mesh = synthetic(tmp_path, "mesh", *ON_A_MESH)
    more_tokens = synthetic(tmp_path, "more", "discretisation.count=400")
    # variances: s² / 4 of the mean; s² · 100 / 400 of one run with four times as many tokens
    assert standard_error(2.0, 4, reference, on_a_mesh) == pytest.approx(1.0, rel=1e-15)
    assert standard_error(2.0, 4, reference, more_tokens) == pytest.approx(math.sqrt(2), rel=1e-15)


def test_the_sampling_floor_is_the_mean_over_pairs(tmp_path):
    runs = [synthetic(tmp_path, str(angle), angle=angle) for angle in (0.0, 0.1, 0.4)]
    # arcs 0.1, 0.3 and 0.4
    floor = distance_between([run.laws[0][1] for run in runs], runs[0], "auto")
    assert floor == pytest.approx(0.8 / 3, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            ["model.manifold=sphere", "model.dimension=3"],
            "other: is no independent run of mine, because model.manifold is 'sphere' and there 'circle'; "
            "a replica differs in the seed alone.",
        ),
        (["model.attention.0.beta=5"], r"because model.attention[0].beta is 5.0 and there 4.0;"),
        (["discretisation.count=50"], "because discretisation.count is 50 and there 100;"),
        (ON_A_MESH, "because discretisation.kind is 'finite-volume' and there 'particles';"),
        ([], "other: has the same seed 0 as mine, and so the same tokens; a replica needs another seed"),
    ],
)
def test_what_is_no_replica_is_refused_in_one_sentence(tmp_path, changes, complaint):
    seed = ["discretisation.seed=1"] if changes and changes is not ON_A_MESH else []
    with pytest.raises(InputError) as refused:
        check_replicas(synthetic(tmp_path, "mine"), [synthetic(tmp_path, "other", *changes, *seed)])
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_method_without_chance_has_no_replicas(tmp_path):
    results = [synthetic(tmp_path, name, *ON_A_MESH) for name in ("one", "two")]
    with pytest.raises(InputError, match=r"one: its method .* has nothing random, so that there are no independent"):
        check_replicas(results[0], results[1:])


def test_another_stop_and_other_output_do_not_matter(tmp_path):
    changes = ["discretisation.seed=1", "time.stop=2", "output.every=0.2"]
    check_replicas(synthetic(tmp_path, "one"), [synthetic(tmp_path, "two", *changes)])
