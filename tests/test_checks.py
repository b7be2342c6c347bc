"""A check passes exactly when its error is within the tolerance, and never by a nan."""

import numpy as np
import pytest

import pde_solver as ps

STUDY = ps.converge(lambda h: h**2, [0.2, 0.1])


def check(measured, expected, tolerance, relation="absolute", **more):
    return ps.Check("a quantity", measured, expected, tolerance, ps.DERIVED, relation, **({"exact": True} | more))


@pytest.mark.parametrize(
    ("measured", "expected", "relation", "error"),
    [
        (1.5, 1.0, "absolute", 0.5),
        (-1.5, 1.0, "absolute", 2.5),
        (1.5, 2.0, "relative", 0.25),
        (np.array([1.0, 1.1]), np.array([1.0, 2.0]), "relative", 0.45),
        (np.array([1.0, 1.1]), np.array([1.0, 2.0]), "absolute", 0.9),
        (1.5, 2.0, "at most", 0.0),
        (2.5, 2.0, "at most", 0.5),
        (1.5, 2.0, "at least", 0.5),
        (2.5, 2.0, "at least", 0.0),
        (0.0, 0.0, "relative", 0.0),
    ],
)
def test_the_error(measured, expected, relation, error):
    found = check(measured, expected, 0.3, relation)
    assert found.error == pytest.approx(error)
    assert found.passed == (error <= 0.3)


@pytest.mark.parametrize("relation", ["absolute", "relative", "at most", "at least"])
@pytest.mark.parametrize("measured", [np.nan, np.array([1.0, np.nan])])
def test_a_nan_never_passes(relation, measured):
    found = check(measured, np.ones_like(measured), 1e9, relation)
    assert not found.passed
    assert np.isnan(found.worst[0])


def test_relative_to_zero_never_passes_by_chance():
    assert not check(1e-300, 0.0, 1e9, "relative").passed


def test_infinity_does_not_pass():
    assert not check(np.inf, 1.0, 1e9).passed
    assert not check(np.inf, 2.0, 1e9, "at most").passed


def test_the_worst_entry_is_shown():
    found = check(np.array([1.0, 5.0, 2.0]), np.ones(3), 0.1)
    assert found.worst == (5.0, 1.0)
    assert "measured 5, expected 1; error 4 exceeds 0.1" in str(found)


def test_a_test_fails_with_the_sentence():
    check(1.0, 1.0, 0.0).require()
    with pytest.raises(AssertionError, match="a quantity: measured 2, expected 1"):
        check(2.0, 1.0, 0.5).require()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: check(1.0, np.ones(2), 0.1), "must be the same"),
        (lambda: check(1.0, 1.0, -0.1), "tolerance must be a finite number ≥ 0"),
        (lambda: check(1.0, 1.0, np.inf), "tolerance must be a finite number ≥ 0"),
        (lambda: check(np.zeros(0), np.zeros(0), 1.0), "nothing was measured"),
        (lambda: ps.Curve([1.0, 2.0], [1.0], "a line"), "must be lists of one length"),
        (lambda: check(1.0, 1.0, np.nan), "tolerance must be a finite number ≥ 0"),
        (lambda: check(1.0, 1.0, 0.1, "about"), "relation must be one of"),
        (lambda: check(1.0, 1.0, 0.1, exact=False), "give the study that justifies its tolerance"),
    ],
)
def test_what_is_no_check_is_refused(make, sentence):
    with pytest.raises(ps.InputError, match=sentence):
        make()


def test_a_study_justifies_a_tolerance():
    assert check(1.0, 1.0, 0.1, exact=False, study=STUDY).study is STUDY
