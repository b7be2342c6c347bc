"""What users read when a case is wrong. The sentences are the specification: where, what was found, what is allowed."""

import tomllib

import pytest

from pde_solver.case import load_case
from pde_solver.case.settings import checked
from pde_solver.errors import InputError

GOOD = """
[model]
manifold = "sphere"
dimension = 3

[[model.attention]]
beta = 4.0

[mesh]
kind = "icosphere"
level = 1

[discretisation]
kind = "finite-volume"

[initial]
law = "von-mises-fisher"
mean = [0.0, 0.0, 1.0]

[time]
stop = 1.0
"""


def complaints(text: str) -> list[str]:
    return checked(tomllib.loads(text))[1]


def test_a_good_case_has_no_complaints():
    assert complaints(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("beta = 4.0", "beta = -1", "model.attention[0].beta: found -1, must be a number ≥ 0"),
        ("beta = 4.0", "beta = nan", "model.attention[0].beta: found nan, must be a finite number ≥ 0"),
        ("beta = 4.0", "beta = inf", "model.attention[0].beta: found inf, must be a finite number ≥ 0"),
        ("beta = 4.0", 'beta = "four"', 'model.attention[0].beta: found "four", must be a number ≥ 0'),
        ("beta = 4.0", "beta = true", "model.attention[0].beta: found true, must be a number ≥ 0"),
        ("beta = 4.0", "betta = 4.0", "model.attention[0].betta: unknown; did you mean beta?"),
        (
            "beta = 4.0",
            "query = [[1, 0], [0]]",
            "model.attention[0].query: found [[1, 0], [0]], must be a matrix, a list of rows of one length",
        ),
        (
            "beta = 4.0",
            'normaliser = "softmx"',
            'model.attention[0].normaliser: found "softmx", must be "softmax", "unnormalised" or "l2"; did you',
        ),
        (
            "beta = 4.0",
            "log_scale = 1.0",
            'model.attention[0].log_scale: does not apply to normaliser = "softmax"; it belongs to "unnormalised"',
        ),
        (
            "[[model.attention]]",
            "[model.attention]",
            "model.attention: found a table, must be an array of tables [[model.attention]]",
        ),
        (
            "[[model.attention]]\nbeta = 4.0",
            "",
            "model: no velocity; add [[model.attention]], [model.linear] or [[model.layers]]",
        ),
        ("dimension = 3", "difusion = 3\ndimension = 3", "model.difusion: unknown; did you mean dimension?"),
        (
            "dimension = 3",
            "",
            "model.dimension: missing; give the number of coordinates of a token (3 for S² and for R³)",
        ),
        ("dimension = 3", "dimension = 1", "model.dimension: found 1, must be ≥ 2 on a sphere (3 for S²)"),
        (
            'manifold = "sphere"\ndimension = 3',
            'manifold = "circle"\ndimension = 2',
            'mesh.kind: found "icosphere", which is no mesh of the circle; allowed: circle, file',
        ),
        ("[mesh]", "[mesch]", "mesch: unknown; did you mean mesh?"),
        ('kind = "icosphere"', 'kind = "icosfere"', 'mesh.kind: found "icosfere"; did you mean icosphere?'),
        ("level = 1", "level = 1.5", "mesh.level: found 1.5, must be a whole number ≥ 0"),
        ("level = 1", "cells = 8", 'mesh.cells: does not apply to kind = "icosphere"; it belongs to "cubed-sphere", '),
        (
            'kind = "icosphere"',
            'kind = "cubed-sphere"',
            'mesh.level: does not apply to kind = "cubed-sphere"; it belongs to "icosphere"',
        ),
        (
            'kind = "finite-volume"',
            'kind = "finite-volume"\ndegree = 2',
            'discretisation.degree: does not apply to kind = "finite-volume"; it belongs to "discontinuous-galerkin"',
        ),
        (
            'kind = "finite-volume"',
            'kind = "particles"',
            'mesh: does not apply to particles, which have no mesh; it belongs to "finite-volume" and',
        ),
        (
            'kind = "finite-volume"',
            'kind = "particles"\nquadrature_order = 3',
            'discretisation.quadrature_order: does not apply to placement = "independent"; it belongs to "quadrature"',
        ),
        (
            "mean = [0.0, 0.0, 1.0]",
            "mean = [0, inf, 1]",
            "initial.mean: found [0, inf, 1], must be a list of finite numbers",
        ),
        ("mean = [0.0, 0.0, 1.0]", "", "initial.mean: missing, must be a list of finite numbers"),
        (
            'law = "von-mises-fisher"',
            'weight = 2\nlaw = "von-mises-fisher"',
            "initial.weight: applies to the components of",
        ),
        (
            'law = "von-mises-fisher"',
            'law = "von-misses"',
            'initial.law: found "von-misses"; did you mean von-mises-fisher?',
        ),
        (
            'law = "von-mises-fisher"\nmean = [0.0, 0.0, 1.0]',
            'law = "mixture"\ncomponents = [{law = "uniform"}, {law = "point-cloud", path = "tokens.npy"}]',
            'initial.components[1].law: "point-cloud" has no density, so a mixture with it needs tokens drawn',
        ),
        ("stop = 1.0", "stop = -1", "time.stop: found -1, must be greater than start = 0"),
        ("stop = 1.0", "", "time.stop: missing, must be a finite number"),
        ("stop = 1.0", "stop = nan", "time.stop: found nan, must be a finite number"),
        ("stop = 1.0", "stop = 1\ncfl = 2", "time.cfl: found 2, must be a number in (0, 1]"),
        ("stop = 1.0", 'stop = 1\nscheme = "rk-4"', 'time.scheme: found "rk-4"; did you mean rk-'),
        (
            "stop = 1.0",
            "stop = 1\ntolerance = 1e-6",
            'time.tolerance: does not apply to scheme = "ssp-2"; it belongs to "rk-3" or "rk-5"',
        ),
        ("[time]\nstop = 1.0", "", "time: missing; add a table [time]"),
        ("[time]\nstop = 1.0", "time = 3", "time: found 3, must be a table [time]"),
        ("[time]", '[output]\nquantities = ["mas"]\n[time]', 'output.quantities: found "mas"; did you mean mass?'),
        ("[time]", "[output]\nevery = 0\n[time]", "output.every: found 0, must be a number > 0"),
        ("[time]", '[petsc]\n"-ts_monitor" = true\n[time]', "petsc.-ts_monitor: write it without the dash"),
        (
            "[time]",
            "[petsc]\nts_monitor = []\n[time]",
            "petsc.ts_monitor: found [], must be a string, a number, true or false",
        ),
    ],
)
def test_each_mistake_has_its_sentence(old, new, sentence):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if "=" in new and new.startswith("time"):
        text = f"time = 3\n{GOOD.replace(old, '', 1)}"
    found = complaints(text)
    assert any(complaint.startswith(sentence) for complaint in found), found


def test_all_mistakes_at_once(tmp_path):
    path = tmp_path / "case.toml"
    path.write_text(GOOD.replace("beta = 4.0", "beta = -1\nquerry = 3").replace("level = 1", "level = -1"))
    with pytest.raises(InputError) as caught:
        load_case(path)
    assert str(caught.value).splitlines() == [
        f"{path}: model.attention[0].beta: found -1, must be a number ≥ 0",
        f"{path}: model.attention[0].querry: unknown; did you mean query?",
        f"{path}: mesh.level: found -1, must be a whole number ≥ 0",
    ]


def test_what_only_the_constructors_know_is_told_for_every_part(tmp_path):
    path = tmp_path / "case.toml"
    path.write_text(GOOD.replace("beta = 4.0", "query = [[1, 0]]").replace("[0.0, 0.0, 1.0]", "[0, 0, 0]"))
    with pytest.raises(InputError) as caught:
        load_case(path)
    model, initial = str(caught.value).splitlines()
    assert model.startswith(f"{path}: model: Attention: query must have 3 columns")
    assert initial.startswith(f"{path}: initial: VonMisesFisher: mean")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty; a case needs at least the tables [model], [discretisation], [initial] and [time]."),
        (b"[model]\nname = '\xff'", "is not UTF-8 text (byte 16); save it as UTF-8."),
        (b"[model]\nbeta = = 4", "line 2, column 8: no valid TOML: invalid value."),
        (b"[model", "no valid TOML: expected ']' at the end of a table declaration."),
    ],
)
def test_files_that_are_no_case(tmp_path, content, sentence):
    path = tmp_path / "case.toml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_case(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.endswith(sentence)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(InputError, match=r"there is no such file\.$"):
        load_case(tmp_path / "nothing.toml")
    with pytest.raises(InputError, match=r"is a directory; give the case file in it\.$"):
        load_case(tmp_path)


def test_particles_may_step_without_error_control():
    # their step is bounded by how fast the velocity changes
    tokens = GOOD.replace('[mesh]\nkind = "icosphere"\nlevel = 1\n', "").replace("finite-volume", "particles")
    assert complaints(tokens.replace("stop = 1.0", 'stop = 1.0\nscheme = "ssp-3"')) == []
