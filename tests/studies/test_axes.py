"""What a command line varies."""

import pytest

from pde_solver.errors import InputError
from pde_solver.studies.axes import plan_of


def test_values_between_commas_are_an_axis_and_the_rest_are_changes():
    plan = plan_of(["mesh.cells=64,128", "model.attention.0.beta=8", "discretisation.degree=1,2,3"])
    assert plan.changes == ("model.attention.0.beta=8",)
    assert [(axis.key, axis.values) for axis in plan.axes] == [
        ("mesh.cells", ("64", "128")),
        ("discretisation.degree", ("1", "2", "3")),
    ]
    assert plan.refined.key == "mesh.cells"
    assert [series.shared for series in plan.series] == [(f"discretisation.degree={p}",) for p in (1, 2, 3)]


def test_the_first_axis_that_refines_is_refined():
    assert plan_of(["discretisation.degree=1,2", "time.cfl=0.9,0.45", "mesh.level=2,3"]).refined.key == "time.cfl"
    assert plan_of(["discretisation.degree=1,2"]).refined.key == "discretisation.degree"
    assert not plan_of(["discretisation.degree=1,2"]).refined.refines


@pytest.mark.parametrize(
    ("key", "abscissa"),
    [
        ("mesh.level", "h"),
        ("time.step", "step"),
        ("discretisation.count", "n"),
        ("convergence.count", "n"),
        ("discretisation.degree", "degree"),
    ],
)
def test_what_errors_are_compared_with(key, abscissa):
    assert plan_of([f"{key}=1,2"]).refined.abscissa == abscissa


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("mesh.cells=[8, 8],[16, 16]", ("[8, 8]", "[16, 16]")),
        ("discretisation.kind=finite-volume,discontinuous-galerkin", ("finite-volume", "discontinuous-galerkin")),
        ('output.title="a, b","c"', ('"a, b"', '"c"')),
        ('initial={law="uniform", weight=1},{law="gaussian"}', ('{law="uniform", weight=1}', '{law="gaussian"}')),
    ],
)
def test_commas_inside_brackets_and_strings_separate_nothing(argument, values):
    assert plan_of([argument]).axes[0].values == values


@pytest.mark.parametrize("change", ["mesh.lower=[-1, 2]", 'output.title="a, b"', "mesh="])
def test_one_toml_value_is_a_change(change):
    assert plan_of(["mesh.cells=1,2", change]).changes == (change,)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["mesh.cells=64"], "nothing is varied"),
        ([], "nothing is varied"),
        (["mesh.cells=64,,128"], "a value is empty"),
        (["mesh.cells=64,128,64"], "a value is given twice"),
        (["mesh.cells=64,128", "mesh.cells=3,4"], "a key is varied twice"),
    ],
)
def test_what_is_no_study_is_refused(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        plan_of(arguments)
