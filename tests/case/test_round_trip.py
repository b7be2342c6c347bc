"""The resolved text of a case is itself a case, and the same one."""

import tomllib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pde_solver.case import load_case
from pde_solver.case.settings import checked
from pde_solver.case.toml_text import write_toml
from pde_solver.models import Attention, Layers, Linear, Unnormalised

keys = st.text(min_size=1, max_size=8)
values = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.lists(st.floats(allow_nan=False), max_size=3),
    st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=2), max_size=2),
)
tables = st.recursive(
    st.dictionaries(keys, values, max_size=4),
    lambda inner: st.dictionaries(keys, st.one_of(inner, st.lists(inner, min_size=1, max_size=3)), max_size=3),
    max_leaves=8,
)


@given(tables)
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
def test_written_toml_reads_back(nested):
    assert tomllib.loads(write_toml(nested)) == nested


numbers = st.floats(-10, 10, allow_nan=False)
positive = st.floats(1e-3, 100)
laws = st.one_of(
    st.just({"law": "uniform"}),
    st.fixed_dictionaries({"law": st.just("von-mises-fisher"), "mean": st.just([0.0, 0.5, 1]), "kappa": positive}),
    st.fixed_dictionaries(
        {"law": st.just("harmonic"), "degree": st.integers(1, 5), "amplitude": st.floats(-1, 1), "order": st.just(0)}
    ),
    st.fixed_dictionaries({"law": st.just("expression"), "formula": st.just('exp(z) + 0.1*x # "quoted" \\ text')}),
    st.builds(lambda a: {"law": "uniform-on", "region": "cap", "center": [1, 0, 0], "angle": a}, positive),
)
weighted = st.builds(lambda law, weight: law | {"weight": weight}, laws, positive)
initials = st.one_of(
    laws, st.builds(lambda parts: {"law": "mixture", "components": parts}, st.lists(weighted, min_size=1, max_size=3))
)
matrices = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=3, max_size=3)
heads = st.fixed_dictionaries(
    {"beta": st.floats(0, 1e4)},
    optional={"normaliser": st.sampled_from(["softmax", "unnormalised", "l2"]), "value": matrices, "weight": numbers},
)
methods = st.one_of(
    st.builds(lambda order: ({"kind": "finite-volume", "order": order}, True), st.integers(1, 2)),
    st.builds(lambda degree: ({"kind": "discontinuous-galerkin", "degree": degree}, True), st.integers(1, 3)),
    st.builds(lambda count: ({"kind": "particles", "count": count}, False), st.integers(1, 10**6)),
    st.just(({"kind": "particles", "placement": "quadrature"}, False)),
)


@st.composite
def cases(draw):
    method, has_mesh = draw(methods)
    stop = draw(positive)
    case = {
        "model": {"manifold": "sphere", "dimension": 3, "attention": draw(st.lists(heads, min_size=1, max_size=3))},
        "discretisation": method,
        "initial": draw(initials),
        "time": {"stop": stop}
        | draw(st.sampled_from([{}, {"scheme": "rk-3", "tolerance": 1e-6}, {"start": -1, "cfl": 0.5}])),
    }
    if has_mesh:
        case["mesh"] = draw(st.sampled_from([{"kind": "icosphere"}, {"kind": "cubed-sphere", "cells": 4}]))
    if draw(st.booleans()):
        case["petsc"] = {"ts_adapt_safety": 0.8, "ts_adapt_always_accept": True}
    return case


@given(cases())
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_resolved_text_loads_to_the_same_settings(case):
    found, complaints = checked(case)
    assert complaints == []
    assert found is not None
    again, complaints = checked(tomllib.loads(write_toml(found.tables())))
    assert complaints == []
    assert again == found


def write(folder, text):
    path = folder / "case.toml"
    path.write_text(text)
    return path


LAYERS = """
[model]
manifold = "circle"
[[model.layers]]
until = 1
[[model.layers.attention]]
beta = 2
normaliser = "unnormalised"
log_scale = 2
[[model.layers]]
linear.matrix = [[0, 1], [-1, 0]]
[mesh]
kind = "file"
path = "meshes/ring.msh"
[discretisation]
kind = "discontinuous-galerkin"
degree = 1
[initial]
law = "uniform"
[time]
stop = 2
[output]
directory = "results"
"""


def test_defaults_are_written_out_and_paths_are_made_absolute(tmp_path):
    case = load_case(write(tmp_path, LAYERS))
    tables = tomllib.loads(case.text)
    assert tables["model"]["dimension"] == 2
    assert tables["time"] == {"scheme": "ssp-3", "stop": 2.0, "start": 0.0, "cfl": 0.9, "max_steps": 10_000_000}
    assert tables["mesh"]["path"] == str(tmp_path / "meshes" / "ring.msh")
    assert tables["output"]["directory"] == str(tmp_path / "results")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = load_case(write(elsewhere, case.text))
    assert again.text == case.text
    assert again.digest == case.digest


def test_the_digest_is_that_of_the_problem(tmp_path):
    path = write(tmp_path, LAYERS)
    digest = load_case(path).digest
    assert load_case(path, ["time.stop=3", "output.every=0.5"]).digest == digest
    assert load_case(path, ["model.layers.0.until=0.5"]).digest != digest
    assert load_case(path, ["discretisation.degree=2"]).digest != digest


def test_layers_become_the_velocity(tmp_path):
    velocity = load_case(write(tmp_path, LAYERS)).model.velocity
    assert isinstance(velocity, Layers)
    assert velocity.boundaries == (1.0,)
    head = velocity.at(0.5)
    assert isinstance(head, Attention)
    assert (head.beta, head.normaliser) == (2.0, Unnormalised(2.0))
    # W x + b with W the clockwise quarter turn
    turn = velocity.at(1.5)
    assert isinstance(turn, Linear)
    assert np.array_equal(turn.drift(np.array([[1.0, 0.0]])), [[0.0, -1.0]])


def test_a_case_may_move_with_its_files(tmp_path):
    problems = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        case = load_case(write(tmp_path / name, LAYERS))
        assert tomllib.loads(case.problem_text)["mesh"]["path"] == "ring.msh"
        assert str(tmp_path / name) in case.text  # the resolved case still finds its files
        problems.append(case.problem_text)
    assert problems[0] == problems[1]
