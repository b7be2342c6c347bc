"""The evaluator with methods that keep or break their promises."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pde_solver.errors import InputError, RunStopped
from pde_solver.kernel_sums import Evaluation, Evaluator, choose, dense
from pde_solver.kernel_sums.method import Attended, Proposal, Sums
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.models import Attention, Linear, Unnormalised

ONE = np.ones((1, 1))


def tokens(count=400, seed=1, labels=1):
    rng = np.random.default_rng(seed)
    weights = rng.random((labels, count))
    points = Sphere(3).retract(rng.normal(size=(count, 3)))
    return TokenMeasure(points, weights / weights.sum(axis=1, keepdims=True))


def evaluator(measure, **options):
    return Evaluator(Sphere(3), measure.comm, Evaluation(**options))


class Careless(Sums):
    """The direct sum, off by so many times the tolerance; doubtful at chosen targets, where it is off by one."""

    def __init__(self, problem, times, doubtful):
        self.right, self.problem = dense.DenseSums(problem), problem
        self.error, self.doubtful = times * problem.tolerance, doubtful

    def attend(self, weights, mixing, directions=None, *, partition=False):
        result = []
        for found in self.right.attend(weights, mixing, directions, partition=partition):
            mean = found.mean + self.error
            mask = np.zeros(mean.shape[:2], dtype=bool)
            mask[:, self.doubtful] = True
            mean[mask] += 1.0
            result.append(Attended(mean, found.log_partition, mask if self.doubtful else None))
        return result

    def mass_near(self, points):
        return np.ones((self.problem.labels, len(points)))


def careless_room(times, doubtful=(), quickest=True):
    """A room whose only method is careless."""

    class Room:
        asked: list[float] = []  # noqa: RUF012  what tolerances it was asked for

        @staticmethod
        def proposals(problem):
            Room.asked.append(problem.tolerance)
            seconds = 1e-6 if quickest else 1e9
            build = lambda: Careless(problem, times, list(doubtful))  # noqa: E731
            return [Proposal("careless sums", "sphere", seconds, problem.tolerance, 0, build)]

    return Room


@pytest.fixture
def room(monkeypatch):
    def put(**options):
        room = careless_room(**options)
        monkeypatch.setitem(choose._ROOMS, "sphere", room)
        monkeypatch.setattr(choose, "_NEGLIGIBLE", 0.0)
        return room

    return put


def right(term, measure, points=None, normals=None, mixing=ONE):
    points = measure.points if points is None else points
    return evaluator(measure, method="dense")(term, measure, mixing, points, normals).values


def test_a_method_that_keeps_its_promise_is_used(room):
    room(times=0.03)
    measure, term = tokens(), Attention(4.0)
    evaluate = evaluator(measure, tolerance=1e-4)
    found = evaluate(term, measure, ONE, measure.points).values
    difference = np.abs(found - right(term, measure)).max()
    assert 0 < difference < 1e-4
    assert 0 < evaluate.error < 1e-4
    assert evaluate.refinement == 0


def test_a_method_that_does_not_is_refined(room):
    # off by a thousand times what it promised: two or three powers of ten more are asked from it
    found_room = room(times=1000.0)
    measure, term = tokens(), Attention(4.0)
    evaluate = evaluator(measure, tolerance=1e-4)
    found = evaluate(term, measure, ONE, measure.points).values
    assert np.abs(found - right(term, measure)).max() < 1e-4
    assert evaluate.refinement in (3, 4)
    assert evaluate.error < 1e-4
    assert found_room.asked[0] == pytest.approx(3e-5)
    # and the next time that is known from the start
    evaluate(term, measure, ONE, measure.points)
    assert evaluate.refinement in (3, 4)


def test_a_method_that_was_asked_for_and_cannot_ends_the_run(room, monkeypatch):
    found_room = room(times=1e6)
    measure = tokens()
    honest = found_room.proposals

    def never_below(problem):
        return honest(problem) if problem.tolerance > 1e-7 else []

    monkeypatch.setattr(found_room, "proposals", staticmethod(never_below))
    evaluate = evaluator(measure, tolerance=1e-4, method="sphere")
    with pytest.raises(RunStopped, match=r"velocity: its error is .* of the largest velocity, allowed are 1\.0e-04"):
        evaluate(Attention(4.0), measure, ONE, measure.points)


def test_the_cheapest_is_chosen(room):
    room(times=0.5, quickest=False)
    measure = tokens()
    evaluate = evaluator(measure)
    found = evaluate(Attention(4.0), measure, ONE, measure.points).values
    np.testing.assert_array_equal(found, right(Attention(4.0), measure))
    assert evaluate.error is None  # direct sums need no check
    ((chosen, direct),) = evaluate.choices(Attention(4.0), measure, ONE, measure.points)
    assert chosen.family == direct.family == "dense"


def test_doubtful_targets_are_summed_directly(room):
    room(times=0.0, doubtful=(3, 77, 399))
    measure, term = tokens(labels=2), Attention(4.0, value=2 * np.eye(3)) + Attention(1.0, normaliser=Unnormalised())
    mixing = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = evaluator(measure)(term, measure, mixing, measure.points).values
    np.testing.assert_allclose(found, right(term, measure, mixing=mixing), rtol=0, atol=1e-13)
    normals = np.cross(measure.points, [0.3, 0.5, 0.7])
    along = evaluator(measure)(term, measure, mixing, measure.points, normals).values
    np.testing.assert_allclose(along, np.einsum("znd,nd->zn", found, normals), rtol=0, atol=1e-13)


def test_checks_come_now_and_then(room):
    # right at first, wrong from the second evaluation on: found out when the next check is due, and told
    room(times=0.0)
    measure, term = tokens(), Attention(4.0)
    evaluate = evaluator(measure, tolerance=1e-4)
    evaluate(term, measure, ONE, measure.points)
    plan = evaluate._plan
    plan.groups[0].sums.error = 0.01
    every = plan.check_every
    assert 8 <= every <= 64
    for _ in range(every - 1):
        found = evaluate(term, measure, ONE, measure.points).values
    assert np.abs(found - right(term, measure)).max() > 1e-3
    assert evaluate.error < 1e-12
    found = evaluate(term, measure, ONE, measure.points).values
    assert np.abs(found - right(term, measure)).max() < 1e-4
    assert evaluate.error > 1e-3


def test_a_new_term_is_checked_at_once(room):
    found_room = room(times=0.0)
    measure = tokens()
    evaluate = evaluator(measure, tolerance=1e-4)
    evaluate(Attention(4.0), measure, ONE, measure.points)
    honest = found_room.proposals

    def careless(problem):  # promises its tolerance and misses it by far, unless it is asked for little
        proposal = honest(problem)[0]
        return [replace(proposal, build=lambda: Careless(problem, 1e4 if problem.tolerance > 1e-6 else 0.0, []))]

    found_room.proposals = staticmethod(careless)
    later = Attention(5.0)
    found = evaluate(later, measure, ONE, measure.points).values
    assert np.abs(found - right(later, measure)).max() < 1e-4
    assert evaluate.refinement > 0


def test_refinement_is_taken_back_where_it_is_not_needed(room):
    room(times=0.0)
    measure, term = tokens(), Attention(4.0)
    evaluate = evaluator(measure, tolerance=1e-4)
    evaluate.refinement = 1
    for _ in range(6 * 65):
        evaluate(term, measure, ONE, measure.points)
    assert evaluate.refinement == 0


def test_a_resumed_evaluator_goes_on_with_the_same_checks(room):
    room(times=0.02)
    measure, term = tokens(), Attention(4.0)
    first, second = evaluator(measure, tolerance=1e-4), evaluator(measure, tolerance=1e-4)
    for _ in range(5):
        first(term, measure, ONE, measure.points)
    second.progress = first.progress
    for _ in range(80):
        first(term, measure, ONE, measure.points)
        second(term, measure, ONE, measure.points)
        np.testing.assert_array_equal(first.progress, second.progress)


def test_each_label_is_checked_where_its_own_mass_is():
    # three bumps apart, each attending to itself: nobody needs its velocity at another one's place
    rng = np.random.default_rng(2)
    points = Sphere(3).retract(rng.normal(size=(6000, 3)))
    weights = np.exp(30 * (points @ np.eye(3) - 1)).T
    measure = TokenMeasure(points, weights / weights.sum(axis=1, keepdims=True))
    evaluate = evaluator(measure, tolerance=1e-5)
    evaluate(Attention(32.0), measure, np.eye(3), points)
    assert [proposal.family for proposal, _ in evaluate.choices(Attention(32.0), measure, np.eye(3), points)] == [
        "sphere"
    ]
    assert evaluate.refinement == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_tokens_that_are_not_finite_become_nan(bad):
    # the fast methods have no place for them; the time loop finds the nan
    measure = tokens(count=3000)
    measure.points[17] = bad
    found = evaluator(measure)(Attention(4.0), measure, ONE, measure.points).values
    assert np.isnan(found).any()


def test_products_with_normals():
    measure = tokens()
    normals = np.cross(measure.points, [0.3, 0.5, 0.7])
    value = np.random.default_rng(2).normal(size=(3, 3))
    term = Attention(4.0, value=value, weight=-0.5) + Attention(1.0, normaliser=Unnormalised(1.0)) + Linear(value)
    along = right(term, measure, normals=normals)
    np.testing.assert_allclose(along, np.einsum("znd,nd->zn", right(term, measure), normals), rtol=0, atol=1e-14)


def test_a_drift_alone_has_values_for_all_labels():
    measure = tokens(labels=3)
    found = right(Linear(np.eye(3), (1.0, 0.0, 0.0)), measure, mixing=np.eye(3))
    assert found.shape == (3, 400, 3)
    np.testing.assert_array_equal(found[0], found[2])


def test_log_partitions():
    measure, term = tokens(), Attention(4.0) + Attention(1.0, query=2 * np.eye(3))
    found = evaluator(measure).log_partitions(term, measure, ONE, measure.points)
    for part, beta in zip(found, (4.0, 2.0), strict=True):
        sums = np.exp(beta * measure.points @ measure.points.T) @ measure.weights[0]
        np.testing.assert_allclose(part[0], np.log(sums), rtol=0, atol=1e-13)


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"tolerance": 0.5}, {"tolerance": "x"}, {"method": "fast"}])
def test_evaluation_refuses(options):
    with pytest.raises(InputError, match=r"Evaluation: (tolerance must be a number in \(0, 0.1\]|there is no method)"):
        Evaluation(**options)


def test_a_method_that_does_not_apply_is_refused():
    measure = tokens()
    with pytest.raises(InputError, match=r'method "tensor" cannot sum .* "automatic" and "dense" always can'):
        evaluator(measure, method="tensor")(Attention(4.0), measure, ONE, measure.points)


@pytest.mark.parametrize("bad", [[3], slice(None)])
def test_a_nan_weight_is_left_to_the_time_loop(room, bad):
    room(times=0.5)
    measure = tokens()
    measure.weights[0, bad] = np.nan
    assert np.isnan(evaluator(measure)(Attention(4.0), measure, ONE, measure.points).values).any()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("beta", [4.0, 64.0, 256.0, 1024.0])
def test_the_flux_of_clusters_is_right(beta, sign):
    # clusters whose denominators span hundreds of orders of magnitude: fast sums lose their digits, direct ones take over
    count = 20_000
    height, turn = 1 - (2 * np.arange(count) + 1) / count, np.arange(count) * np.pi * (3 - np.sqrt(5))
    radius = np.sqrt(1 - height**2)
    points = np.column_stack([radius * np.cos(turn), radius * np.sin(turn), height])
    centres = Sphere(3).retract(np.array([[1, 1, 1], [-1, 0.5, 0.2], [0.1, -0.9, -0.4]]))
    weights = np.exp(np.array([400, 300, 500]) * (points @ centres.T - 1)) @ np.array([2.0, 1.5, 0.7]) + 1e-30
    measure = TokenMeasure(points, (weights / weights.sum())[None])
    term = Attention(beta, sign * np.eye(3))
    evaluate = evaluator(measure)
    found = evaluate(term, measure, ONE, points).values[0]
    chosen = np.random.default_rng(1).choice(count, 300, p=measure.weights[0])
    exact = Evaluator(Sphere(3), measure.comm, Evaluation(method="dense"))(term, measure, ONE, points[chosen]).values[0]
    # tokens drawn by their mass: the mean is the flux error
    error = np.linalg.norm(found[chosen] - exact, axis=1).mean() / np.linalg.norm(exact, axis=1).mean()
    assert error < 1e-6
    assert [proposal.family for proposal, _ in evaluate.choices(term, measure, ONE, points)] == ["sphere"]


@pytest.mark.parametrize("law", ["atoms", "bump"])
def test_the_tolerance_is_kept_in_the_plane_whatever_the_law(law):
    # two atoms in opposite corners are the worst law for interpolation: the method is refined until they are met as well
    rng = np.random.default_rng(4)
    points = np.vstack([[[-1.0, -1.0], [1.0, 1.0]], rng.uniform(-1, 1, (5000, 2))])
    weights = np.exp(-4 * np.sum((points - 0.3) ** 2, axis=1))
    if law == "atoms":
        weights = np.zeros(len(points))
        weights[:2] = 0.5
        weights[2:] = 1e-3
    measure = TokenMeasure(points, (weights / weights.sum())[None])
    evaluate = Evaluator(Euclidean(2), measure.comm, Evaluation(1e-6, "rotated"))
    found = evaluate(Attention(8.0), measure, ONE, points).values
    exact = Evaluator(Euclidean(2), measure.comm, Evaluation(method="dense"))(
        Attention(8.0), measure, ONE, points
    ).values
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_agree(on_ranks, ranks):
    done = on_ranks(Path(__file__).with_name("mpi_evaluator.py"), ranks, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "agree"
