"""Labels that are positions: the causal mixing against integrals, and its powers against the closed forms of the limit."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm

from pde_solver.errors import InputError
from pde_solver.labels import Labels
from pde_solver.positions import causal_mixing, position_edges, position_labels
from pde_solver.solutions.causal import graphon, response
from pde_solver.solutions.causal_linear_response import eigenfunction, eigenfunction_growth, step_response

SLOPES = [0.0, 1.0, 50.0, 1e4]
#: From here on relative errors are measured; towards 0 a cell is as long as its distance from 0.
FIRST = 0.05


def middles(edges):
    return (edges[1:] + edges[:-1]) / 2


def test_edges():
    assert position_edges(4, grading=1).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert position_edges(4).tolist() == [0, 1 / 16, 1 / 4, 9 / 16, 1]
    assert position_edges(np.int64(1)).tolist() == [0, 1]


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("window", [math.inf, 0.3, 1e-3])
@pytest.mark.parametrize("grading", [1.0, 2.0, 3.5])
def test_every_token_attends_to_those_before_it_with_mass_one(slope, window, grading):
    mixing = causal_mixing(position_edges(100, grading), slope, window)
    assert np.all(np.isfinite(mixing) & (mixing >= 0))
    assert np.abs(mixing.sum(axis=1) - 1).max() < 1e-14  # 1.8e-15
    assert not np.triu(mixing, 1).any()
    assert np.all(np.diagonal(mixing) > 0)
    assert mixing[0, 0] == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("slope", SLOPES)
def test_a_window_that_holds_all_is_none(slope):
    edges = position_edges(40)
    for window in (1.0, 7.0):
        assert np.array_equal(causal_mixing(edges, slope, window), causal_mixing(edges, slope))


def test_without_slope_it_is_the_plain_average():
    """The share of [0, s_z] that a cell has; a slope of 1e-9 moves it by half of that at most."""
    edges = position_edges(50)
    nodes = middles(edges)
    plain = np.tril(np.tile(np.diff(edges), (50, 1)), -1) + np.diag(np.diff(edges) / 2)
    assert causal_mixing(edges) == pytest.approx(plain / nodes[:, None], abs=1e-15)
    assert np.abs(causal_mixing(edges, 1e-9) - causal_mixing(edges)).max() < 1e-9


def test_entries_are_integrals_of_the_graphon():
    for slope in (0.0, 1.0, 50.0):
        for grading in (1.0, 2.0):
            edges = position_edges(12, grading)
            mixing = causal_mixing(edges, slope)
            for z, s in enumerate(middles(edges)):
                for source in range(z + 1):
                    end = min(edges[source + 1], s)
                    exact = quad(lambda u, s=s, slope=slope: float(graphon(s, u, slope)), edges[source] or 1e-300, end)
                    assert mixing[z, source] == pytest.approx(exact[0], abs=1e-13)  # 1e-15


@pytest.mark.parametrize("slope", [0.0, 1.0, 50.0])
def test_entries_in_a_window(slope):
    window = 0.3
    edges = position_edges(12)
    mixing = causal_mixing(edges, slope, window)
    for z, s in enumerate(middles(edges)):

        def integral(lower, upper, s=s):
            lower, upper = max(lower, s - window, 0.0), min(upper, s)
            return quad(lambda u: math.exp(slope * (u - s)), lower, upper)[0] if lower < upper else 0.0

        exact = [integral(*cell) / integral(0, 1) for cell in itertools.pairwise(edges)]
        assert mixing[z] == pytest.approx(exact, abs=1e-13)
    assert mixing[-1, 0] == 0


def order(errors):
    """Between the last two, as the number of cells doubles."""
    return math.log2(errors[-2] / errors[-1])


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_its_exponential_is_the_response(slope):
    """(e^{cM})_{zz′} over the length of the cell z′ against g(c; s_z, s_z′) at c = 1, for z′ < z and s′ ≥ 0.05."""
    errors = []
    for count in (32, 64, 128):
        edges = position_edges(count)
        nodes = middles(edges)
        z, source = np.nonzero(np.tri(count, k=-1) * (nodes >= FIRST))
        found = (expm(causal_mixing(edges, slope)) / np.diff(edges))[z, source]
        errors.append(np.abs(found / response(1.0, nodes[z], nodes[source], slope) - 1).max())
    assert errors[-1] < 2e-4  # 1.9e-4 and 1.7e-4
    assert order(errors) > 1.95  # 2.03


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_its_exponential_makes_eigenfunctions_grow(slope, power):
    """e^{cM} P(s)^p against e^{c/(p+1)} P(s)^p at c = 1, s ≥ 0.05: largest and mean relative errors."""
    largest, mean = [], []
    for count in (32, 64, 128):
        edges = position_edges(count)
        shape = eigenfunction(middles(edges), power, slope)
        ratio = expm(causal_mixing(edges, slope)) @ shape / (eigenfunction_growth(1.0, power) * shape)
        kept = middles(edges) >= FIRST
        largest.append(np.abs(ratio - 1)[kept].max())
        mean.append(np.average(np.abs(ratio - 1)[kept], weights=np.diff(edges)[kept]))
    if power == 0:  # constants are mixed exactly
        assert max(largest) < 1e-14
        return
    assert largest[1] < 5e-3  # 2.8e-3 for p = 1/2, 4.4e-3 for p = 2
    assert order(largest) > 1.9  # 1.96 to 2.05; the first node beyond 0.05 is not the same
    assert order(mean) > 1.9


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_its_exponential_takes_a_step_to_the_step_response(slope):
    """From 1 up to s₀ = 1/4, which is an edge of the cells, at c = 1: relative errors at all nodes."""
    errors = []
    for count in (32, 64, 128):
        edges = position_edges(count)
        nodes = middles(edges)
        found = expm(causal_mixing(edges, slope)) @ (nodes < 0.25)
        errors.append(np.abs(found / step_response(1.0, nodes, 0.25, slope) - 1).max())
    assert errors[-1] < 5e-5  # 3.5e-5 and 4.5e-5
    assert order(errors) > 1.95  # 1.99 and 2.00


def test_labels():
    labels = position_labels(8)
    edges = position_edges(8)
    assert labels.count == 8
    assert np.array_equal(labels.nodes, middles(edges))
    assert np.array_equal(labels.weights, np.diff(edges))
    assert np.array_equal(labels.mixing, causal_mixing(edges))
    everybody = position_labels(8, grading=1, mixing=None)
    assert np.array_equal(everybody.mixing, np.full((8, 8), 1 / 8))
    seen = []
    own = position_labels(8, mixing=lambda edges: seen.append(edges) or np.eye(8))
    assert np.array_equal(own.mixing, np.eye(8))
    assert np.array_equal(seen[0], edges)


@pytest.mark.parametrize("count", [0, -1, 2.0, True, "4", None])
def test_counts_that_are_refused(count):
    with pytest.raises(InputError) as refused:
        position_edges(count)
    assert str(refused.value) == f"positions: count must be a whole number ≥ 1, found {count!r}."


@pytest.mark.parametrize("grading", [0.5, math.nan, math.inf, True, "2"])
def test_gradings_that_are_refused(grading):
    with pytest.raises(InputError) as refused:
        position_labels(4, grading=grading)
    assert str(refused.value) == f"positions: grading must be a finite number ≥ 1, found {grading!r}."


@pytest.mark.parametrize("edges", [[0.0], [0, 0.5], [0.1, 1], [0, 0.5, 0.5, 1], [[0, 1]], [0, math.nan, 1]])
def test_edges_that_are_refused(edges):
    with pytest.raises(InputError) as refused:
        causal_mixing(edges)
    assert str(refused.value) == "causal_mixing: edges must increase from 0 to 1; take position_edges(count)."


@pytest.mark.parametrize("slope", [-1.0, math.nan, math.inf, False, "1"])
def test_slopes_that_are_refused(slope):
    with pytest.raises(InputError) as refused:
        causal_mixing(position_edges(4), slope)
    assert str(refused.value) == f"causal_mixing: slope must be a finite number ≥ 0, found {slope!r}."


@pytest.mark.parametrize("window", [0, -0.1, math.nan, True, "1"])
def test_windows_that_are_refused(window):
    with pytest.raises(InputError) as refused:
        causal_mixing(position_edges(4), window=window)
    assert str(refused.value) == f"causal_mixing: window must be > 0, found {window!r}."


def test_a_mixing_of_another_shape_is_refused():
    with pytest.raises(
        InputError, match=r"Labels: mixing must be a 4 × 4 matrix with entries ≥ 0.* found shape \(3, 3\)"
    ):
        position_labels(4, mixing=lambda edges: np.eye(3))


@pytest.mark.parametrize("nodes", [[0.2], [0.2, 0.4, 0.6], [0.6, 0.2], [0.2, 0.2], [0.2, math.nan], [[0.2, 0.6]]])
def test_nodes_that_are_refused(nodes):
    with pytest.raises(InputError) as refused:
        Labels((0.5, 0.5), nodes=nodes)
    sentence = f"Labels: nodes must be 2 finite numbers that increase, one for each label, found {nodes!r}."
    assert str(refused.value) == sentence


def test_nodes_are_copied_and_cannot_be_changed():
    nodes = np.array([0.2, 0.6])
    labels = Labels((0.5, 0.5), nodes=nodes)
    nodes[0] = 0.3
    assert labels.nodes.tolist() == [0.2, 0.6]
    with pytest.raises(ValueError, match="read-only"):
        labels.nodes[0] = 0.3
    assert Labels((0.5, 0.5)).nodes is None
