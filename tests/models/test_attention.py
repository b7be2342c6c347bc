import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere
from pde_solver.models import L2, Attention, Model, Softmax


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"beta": -1.0}, "Attention: beta must be a finite number ≥ 0, found -1.0."),
        ({"beta": np.nan}, "Attention: beta must be a finite number ≥ 0, found nan."),
        ({"beta": np.inf}, "Attention: beta must be a finite number ≥ 0, found inf."),
        ({"beta": True}, "Attention: beta must be a finite number ≥ 0, found True."),
        ({"weight": np.nan}, "Attention: weight must be a finite number, found nan."),
        ({"normaliser": "softmax"}, "Attention: normaliser must be Softmax"),
        ({"query": [1.0, 2.0]}, r"Attention: query must be a matrix of finite numbers, found shape \(2,\)."),
        ({"key": [[1.0, np.inf]]}, r"Attention: key must be a matrix of finite numbers, found shape \(1, 2\)."),
        ({"value": [[1.0, 2.0], [3.0]]}, "Attention: value must be a matrix of numbers"),
        ({"value": "identity"}, "Attention: value must be a matrix of numbers"),
        ({"query": np.eye(2, 3), "key": np.eye(3)}, "Attention: query and key must have as many rows"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        Attention(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (Attention(query=np.eye(3, 4), key=np.eye(3)), r"Attention: query must have 3 columns, found shape \(3, 4\)."),
        (Attention(key=np.eye(3, 2)), r"Attention: key must have 3 columns, found shape \(3, 2\)."),
        (Attention(value=np.eye(2, 3)), r"Attention: value must be 3 × 3, found shape \(2, 3\)."),
        (Attention(query=np.eye(2, 3)), r"as many rows \(the head dimension\), found \[2, 3\]; give both"),
    ],
)
def test_matrices_must_act_on_the_tokens(head, sentence):
    with pytest.raises(InputError, match=sentence):
        Model(Sphere(3), head)


def test_scores_of_a_rectangular_head():
    rng = np.random.default_rng(1)
    points, query, key = rng.normal(size=(5, 3)), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    head = Attention(7.0, query, key)
    Model(Sphere(3), head)
    expected = [[7.0 * (query @ x) @ (key @ y) for y in points] for x in points]
    np.testing.assert_allclose(head.queries(points) @ head.keys(points).T, expected, rtol=1e-13)
    assert head.key_bias(head.keys(points)) is None


def test_matrices_are_copied_and_read_only():
    matrix = np.eye(3)
    head = Attention(value=matrix)
    matrix[0, 0] = 5
    assert head.value[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        head.value[0, 0] = 5


def test_plain_attention():
    assert Attention(4.0).is_plain
    assert not Attention(4.0, weight=-1).is_plain
    assert not Attention(4.0, value=np.eye(3)).is_plain


def test_values_and_their_transpose():
    rng = np.random.default_rng(1)
    means, directions = rng.normal(size=(2, 5, 2)), rng.normal(size=(5, 2))
    value = np.array([[0.0, 1.0], [2.0, 0.0]])
    head = Attention(value=value, weight=0.5)
    np.testing.assert_allclose(head.values(np.array([[1.0, 2.0]])), [[1.0, 1.0]], rtol=1e-15)
    along = np.einsum("znd,nd->zn", head.values(means), directions)
    np.testing.assert_allclose(np.einsum("znd,nd->zn", means, head.pulled_back(directions)), along, rtol=1e-14)
    assert Attention().values(means) is means
    assert Attention().pulled_back(directions) is directions


def test_description():
    assert str(Attention(4)) == "Attention(beta=4)"
    described = str(Attention(2.5, value=[[1.0]], normaliser=L2(), weight=-1))
    assert described == "Attention(beta=2.5, value=[[1.0]], normaliser=L2(), weight=-1)"
    assert Attention().normaliser == Softmax()
