import numpy as np
from mpi4py import MPI

from pde_solver.kernel_sums.spot_check import SAMPLE, Sample, importance, lowest_over_ranks, random_numbers
from pde_solver.manifolds import Sphere


def points(count=20_000):
    return Sphere(3).retract(np.random.default_rng(1).normal(size=(count, 3)))


def test_random_numbers_are_uniform_and_belong_to_the_place():
    found = random_numbers(points(), 5)
    assert 0 < found.min() < 1e-3
    assert 1 - 1e-3 < found.max() <= 1
    counts, _ = np.histogram(found, bins=20, range=(0, 1))
    # χ² with 19 degrees of freedom exceeds 50 with probability 1e-4
    assert np.sum((counts - 1000) ** 2 / 1000) < 50
    np.testing.assert_array_equal(random_numbers(points()[::-1], 5), found[::-1])
    assert abs(np.corrcoef(found, random_numbers(points(), 6))[0, 1]) < 0.03
    # coordinates that differ by round-off, or by the sign of a zero, are one place
    moved = np.array([[0.1, -0.0, 0.3]]), np.array([[0.1 + 1e-16, 0.0, 0.3]])
    np.testing.assert_array_equal(random_numbers(moved[0], 1), random_numbers(moved[1], 1))


def test_the_lowest():
    keys = np.array([5.0, 1.0, 4.0, 2.0])
    assert sorted(lowest_over_ranks(MPI.COMM_SELF, keys, 2)) == [1, 3]
    assert len(lowest_over_ranks(MPI.COMM_SELF, keys, 9)) == 4
    assert len(lowest_over_ranks(MPI.COMM_SELF, np.empty(0), 3)) == 0


def test_half_of_the_sample_is_where_the_mass_is():
    targets = points()
    sample = Sample(MPI.COMM_SELF, targets)
    near_pole = importance(1.0 * (targets[sample.pool, 2] > 0.95))  # a fortieth of the sphere
    shares = []
    for number in range(20):
        drawn = sample.draw(number, near_pole)
        assert SAMPLE // 2 < len(drawn) <= SAMPLE
        shares.append(np.mean(targets[drawn, 2] > 0.95))
    assert 0.45 < np.mean(shares) < 0.6
    assert set(sample.draw(0, near_pole)) != set(sample.draw(1, near_pole))


def test_importance():
    np.testing.assert_allclose(importance(np.array([1.0, 1e-2, 1e-3, 1e-4])), [1, 1, 1, 0.1])
