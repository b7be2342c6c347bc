import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.manifolds import Sphere
from pde_solver.models import Attention, Layers, Linear, Model, Sum

FIRST, SECOND, THIRD = Attention(1.0), Attention(2.0), Linear(np.eye(3))


def test_a_sum_is_flat():
    total = (FIRST + SECOND) + (THIRD + FIRST)
    assert isinstance(total, Sum)
    assert total.summands() == (FIRST, SECOND, THIRD, FIRST)
    assert FIRST.summands() == (FIRST,)
    assert total.at(5.0).summands() == total.summands()


def test_only_terms_add():
    with pytest.raises(TypeError):
        FIRST + 1.0


def test_layers_take_over_at_their_boundary():
    layers = Layers((1.0, 2.5), (FIRST, SECOND, THIRD))
    assert layers.breakpoints == (1.0, 2.5)
    for t, term in ((-1, FIRST), (0, FIRST), (np.nextafter(1, 0), FIRST), (1.0, SECOND), (2.4, SECOND), (2.5, THIRD)):
        assert layers.at(t) is term
    assert layers.at(np.inf) is THIRD
    assert Layers((), (FIRST,)).at(3.0) is FIRST


def test_layers_in_a_sum():
    total = Layers((1.0,), (FIRST, SECOND + SECOND)) + THIRD + Layers((0.5, 1.0), (FIRST, FIRST, THIRD))
    assert total.breakpoints == (0.5, 1.0)
    assert total.at(0.2).summands() == (FIRST, THIRD, FIRST)
    assert total.at(1.0).summands() == (SECOND, SECOND, THIRD, THIRD)


@pytest.mark.parametrize(
    ("boundaries", "velocities", "sentence"),
    [
        ((1.0,), (FIRST,), "Layers: 1 velocities need 0 boundaries, found 1."),
        ((), (FIRST, SECOND), "Layers: 2 velocities need 1 boundaries, found 0."),
        ((2.0, 1.0), (FIRST, SECOND, THIRD), r"Layers: boundaries must be finite and increase, found \(2.0, 1.0\)."),
        ((1.0, 1.0), (FIRST, SECOND, THIRD), "Layers: boundaries must be finite and increase"),
        ((1.0, np.nan), (FIRST, SECOND, THIRD), "Layers: boundaries must be finite and increase"),
        ((1.0,), (FIRST, Layers((2.0,), (FIRST, SECOND))), "must itself be constant in depth"),
    ],
)
def test_layers_that_do_not_fit(boundaries, velocities, sentence):
    with pytest.raises(InputError, match=sentence):
        Layers(boundaries, velocities)


def test_every_layer_and_summand_is_checked():
    wrong = Linear(np.eye(2))
    for term in (Layers((1.0,), (FIRST, wrong)), FIRST + wrong, FIRST + Layers((1.0,), (FIRST, wrong))):
        with pytest.raises(InputError, match="Linear: matrix must be 3 × 3"):
            Model(Sphere(3), term)
