import pytest

from pde_solver.case.toml_text import with_overrides
from pde_solver.errors import InputError


def tables():
    return {"model": {"manifold": "sphere", "attention": [{"beta": 1.0}, {"beta": 2.0}]}, "time": {"stop": 1.0}}


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("time.stop=2", ("time", "stop"), 2),
        ("time.stop = 2.5", ("time", "stop"), 2.5),
        ("model.manifold=circle", ("model", "manifold"), "circle"),
        ('model.manifold="circle"', ("model", "manifold"), "circle"),
        ("model.attention.1.beta=8", ("model", "attention", 1, "beta"), 8),
        ("model.attention[1].beta=8", ("model", "attention", 1, "beta"), 8),
        ("model.attention.0.query=[[1, 0]]", ("model", "attention", 0, "query"), [[1, 0]]),
        ("output.figure=false", ("output", "figure"), False),
        ("initial.formula=x == y", ("initial", "formula"), "x == y"),
    ],
)
def test_an_override_changes_one_value(override, path, value):
    place = with_overrides(tables(), [override])
    for key in path:
        place = place[key]
    assert place == value
    assert type(place) is type(value)


def test_an_override_without_a_value_takes_the_key_out():
    assert with_overrides(tables(), ["time.stop=", "model.attention.0=", "mesh="]) == {
        "model": {"manifold": "sphere", "attention": [{"beta": 2.0}]},
        "time": {},
    }


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("time.stop", "override 'time.stop': must be key.path=value, for example time.stop=2."),
        ("=3", "override '=3': must be key.path=value, for example time.stop=2."),
        ("a..b=3", "override 'a..b=3': must be key.path=value, for example time.stop=2."),
        (
            "model.attention.2.beta=1",
            "override model.attention.2.beta=1: model.attention has 2 entries, called 0 to 1; found 2.",
        ),
        (
            "model.attention.beta=1",
            "override model.attention.beta=1: model.attention has 2 entries, called 0 to 1; found beta.",
        ),
        ("time.stop.x=1", "override time.stop.x=1: time.stop is 1.0, no table."),
    ],
)
def test_overrides_that_lead_nowhere(override, sentence):
    with pytest.raises(InputError) as caught:
        with_overrides(tables(), [override])
    assert str(caught.value) == sentence
