from math import cos, pi, sin

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from pde_solver.densities import Ball, Box, Cap
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere


@pytest.mark.parametrize("angle", [1e-6, 0.3, pi / 2, 2.5, pi])
def test_area_of_a_cap(angle):
    # elementary: 2α on the circle, 2π(1 − cos α) on S², 2π(α − sin α cos α) on S³
    assert Cap((0, 1), angle).volume(Sphere(2)) == pytest.approx(2 * angle, rel=1e-13, abs=0)
    assert Cap((0, 0, 1), angle).volume(Sphere(3)) == pytest.approx(4 * pi * sin(angle / 2) ** 2, rel=1e-13, abs=0)
    if angle > 1e-3:  # the closed form on S³ cancels for a small angle
        exact = 2 * pi * (angle - sin(angle) * cos(angle))
        assert Cap((0, 0, 0, 1), angle).volume(Sphere(4)) == pytest.approx(exact, rel=1e-13, abs=0)


@pytest.mark.parametrize("dimension", [2, 3, 4, 7])
@pytest.mark.parametrize("angle", [1e-4, 1.0, 2.8])
def test_points_of_a_cap_are_uniform_in_area(dimension, angle):
    # right distribution: the area within the polar angle is uniform, ∫ sin^{d−2}
    center = np.arange(1.0, dimension + 1)
    cap = Cap(tuple(center), angle)
    points = cap.sample(2000, np.random.default_rng(1))
    assert cap.contains(points).mean() > 0.99  # a point on the rim may fall out by round-off
    half_chord = np.linalg.norm(points - cap.center, axis=1) / 2
    angles = 2 * np.arcsin(np.clip(half_chord, 0, 1))
    total = quad(lambda a: sin(a) ** (dimension - 2), 0, angle)[0]
    share = [quad(lambda a: sin(a) ** (dimension - 2), 0, a)[0] / total for a in angles]
    assert kstest(share, "uniform").pvalue > 1e-3


def test_contains():
    assert Cap((0, 0, 2), 0.5).contains(
        np.array([[0, 0, 1.0], [0, sin(0.49), cos(0.49)], [0, sin(0.51), cos(0.51)]])
    ).tolist() == [
        True,
        True,
        False,
    ]
    assert Box((0, 0), (1, 2)).contains(np.array([[0, 2.0], [0.5, 2.1], [1.1, 1]])).tolist() == [True, False, False]
    assert Ball((1, 1), 0.5).contains(np.array([[1, 1.5], [1, 1.6]])).tolist() == [True, False]


def test_volumes_of_box_and_ball():
    assert Box((0, -1, 2), (1, 1, 5)).volume(Euclidean(3)) == pytest.approx(6)
    assert Ball((0, 0, 0), 2).volume(Euclidean(3)) == pytest.approx(4 / 3 * pi * 8)
    assert Ball(0.5, 2).volume(Euclidean(1)) == pytest.approx(4)


def test_bad_arguments():
    for bad in (0, -1, 4, np.nan, "wide", True):
        with pytest.raises(InputError, match="Cap: angle must"):
            Cap((0, 1), bad)
    with pytest.raises(InputError, match="Cap: center must be a vector of at least two numbers, not all zero"):
        Cap((0, 0), 1)
    with pytest.raises(InputError, match="Box: lower must lie below upper in each coordinate"):
        Box((0, 1), (1, 1))
    with pytest.raises(InputError, match="Box: lower must lie below upper"):
        Box((0, 1), (1, 2, 3))
    with pytest.raises(InputError, match="Box: upper must be a vector of finite numbers"):
        Box((0, 1), (1, np.inf))
    for bad in (0, -1, np.inf):
        with pytest.raises(InputError, match="Ball: radius must be"):
            Ball((0, 0), bad)
