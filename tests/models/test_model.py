import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.models import Attention, Linear, Model


def test_manifold_and_velocity_are_checked():
    with pytest.raises(InputError, match=r"Model: manifold must be Sphere\(d\) or Euclidean\(d\), found 3."):
        Model(3, Attention())
    with pytest.raises(
        InputError, match=r"Model: velocity must be Attention, Linear, Layers or a sum of them, found 4.0."
    ):
        Model(Sphere(3), 4.0)


def test_one_label_by_default():
    assert Model(Sphere(3), Attention()).labels.count == 1


def test_description():
    model = Model(Sphere(3), Attention(4) + Linear(np.eye(3)), Labels((0.5, 0.5)))
    expected = (
        "Attention(beta=4) + Linear(matrix=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) on the sphere S^2"
    )
    assert str(model) == expected + ", 2 labels"
    assert str(Model(Sphere(2), Attention(1))) == "Attention(beta=1) on the circle"
    assert str(Model(Euclidean(2), Attention(1))) == "Attention(beta=1) on R^2"
