import numpy as np
import pytest

from pde_solver.densities.formula import FUNCTIONS, Formula
from pde_solver.errors import InputError

X, Y = np.array([-1.5, 0.0, 0.25, 2.0]), np.array([1.0, -2.0, 0.5, 0.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 0.2*x", 1 + 0.2 * X),
        ("-x**2 + +y/4", -(X**2) + Y / 4),
        ("2", np.full(4, 2.0)),
        ("pi*e", np.full(4, np.pi * np.e)),
        ("exp(-abs(x)) + atan2(y, x)", np.exp(-np.abs(X)) + np.arctan2(Y, X)),
        (
            "sin(x) + cos(x)*tan(y) + sinh(x)*cosh(y)/tanh(3)",
            np.sin(X) + np.cos(X) * np.tan(Y) + np.sinh(X) * np.cosh(Y) / np.tanh(3),
        ),
        ("minimum(x, y) + maximum(x, 0)", np.minimum(X, Y) + np.maximum(X, 0)),
        ("where(0 <= x < 1, 5, sqrt(4))", np.where((X >= 0) & (X < 1), 5, 2)),
        ("(x > 0) + 2*(y == 0.5)", (X > 0) + 2.0 * (Y == 0.5)),
        ("where(x > 0 and y > 0 or not x != 0, 1, 0)", ((X > 0) & (Y > 0)) | (X == 0)),
        ("-(x > 0)", -1.0 * (X > 0)),
    ],
)
def test_values(text, expected):
    np.testing.assert_allclose(Formula(text, "here")({"x": X, "y": Y}, 4), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x^2", r"\^ is not a power here; write x\*\*2"),
        ("__import__('os').system('true')", "is not allowed"),
        ("__import__('os')", "there is no function __import__"),
        ("open('f')", "there is no function open"),
        ("x.real", "'x.real' is not allowed"),
        ("().__class__", "is not allowed"),
        ("x[0]", "is not allowed"),
        ("lambda: 1", "is not allowed"),
        ("[x for x in y]", "is not allowed"),
        ("1 if x else 2", "is not allowed"),
        ("f'{x}'", "is not allowed"),
        ("'a'", "is not allowed"),
        ("True", "is not allowed"),
        ("1j", "is not allowed"),
        ("x // 2", "is not allowed"),
        ("x @ y", "is not allowed"),
        ("sin(x=1)", "is not allowed"),
        ("sin(*x)", "is not allowed"),
        ("sin", r"sin is a function; give its argument"),
        ("1" * 400, "is not allowed"),
        ("sinn(x)", "there is no function sinn; did you mean sin?"),
        ("sin(x, y)", r"sin takes 1 argument\(s\), found 2"),
        ("1 +", "is not a formula: invalid syntax"),
        ("x = 1", "is not a formula"),
        ("x\0", "null bytes"),
        ("import os", "is not a formula"),
        ("", "must be a formula given as text"),
        (3.0, "must be a formula given as text"),
        ("-" * 1500 + "x", "nested more than 200 levels"),
        ("x" + "+x" * 500, "nested more than 200 levels"),
        ("(" * 500 + "x" + ")" * 500, "is not a formula: too many nested parentheses"),
        ("x+" * 2000 + "x", "has 4001 characters; at most 2000 are read"),
    ],
)
def test_what_is_refused(text, sentence):
    with pytest.raises(InputError, match=sentence):
        Formula(text, "here").require_names({"x", "y"})


def test_names():
    formula = Formula("sin(x)*thetta + pi", "here")
    assert formula.names == {"x", "thetta"}
    with pytest.raises(InputError, match=r"thetta is not defined on the circle; did you mean theta\?"):
        formula.require_names({"x", "theta"}, " on the circle")
    with pytest.raises(InputError, match="q is not defined; allowed: e, pi, x, y"):
        Formula("q", "here").require_names({"x", "y"})


def test_a_tower_of_powers_takes_no_time():
    assert Formula("9**9**9**9", "here")({}, 1)[0] == np.inf


def test_every_function_has_the_number_of_arguments_it_says():
    for function, count in FUNCTIONS.values():
        assert np.shape(function(*[np.full(3, 0.5)] * count)) == (3,)
