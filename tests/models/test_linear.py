import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere
from pde_solver.models import Linear, Model


def test_drift():
    points = np.array([[1.0, 2.0], [0.0, -1.0]])
    matrix, offset = np.array([[0.0, 1.0], [-1.0, 0.5]]), [3.0, 4.0]
    np.testing.assert_allclose(Linear(matrix, offset).drift(points), [[5.0, 4.0], [2.0, 3.5]])
    np.testing.assert_allclose(Linear(matrix).drift(points), [[2.0, 0.0], [-1.0, -0.5]])
    np.testing.assert_allclose(Linear(offset=offset).drift(points), [[3.0, 4.0], [3.0, 4.0]])
    assert np.all(Linear().drift(points) == 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"matrix": [[np.nan]]}, "Linear: matrix must be a matrix of finite numbers"),
        ({"matrix": "rotation"}, "Linear: matrix must be a matrix of numbers"),
        ({"offset": [1.0, np.inf]}, "Linear: offset must be a matrix of finite numbers"),
    ],
)
def test_what_is_wrong_is_said(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        Linear(**arguments)


def test_drift_must_act_on_the_tokens():
    with pytest.raises(InputError, match=r"Linear: matrix must be 3 × 3, found shape \(2, 2\)."):
        Model(Sphere(3), Linear(np.eye(2)))
    with pytest.raises(InputError, match="Linear: offset must have 3 entries, found shape"):
        Model(Sphere(3), Linear(offset=[1.0, 2.0]))


def test_description():
    assert str(Linear(offset=[1.0, 2.0])) == "Linear(offset=[1.0, 2.0])"
    assert str(Linear()) == "Linear()"
