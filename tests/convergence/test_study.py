"""Observed orders, the table, and a study that goes on where it stopped."""

import csv
import math

import numpy as np
import pytest

import pde_solver as ps


def power(p, constant=3.0):
    return lambda h: constant * h**p


def test_the_orders_of_a_power_are_its_exponent():
    study = ps.converge(power(2.5), [0.4, 0.2, 0.05])
    assert study.orders("error") == pytest.approx([2.5, 2.5], abs=1e-12)
    assert study.fitted_order("error") == pytest.approx(2.5, abs=1e-12)
    assert study.order("error") == study.orders("error")[-1]
    assert study.last("error") == pytest.approx(3.0 * 0.05**2.5)


def test_the_order_in_the_number_of_tokens_is_negative():
    study = ps.converge(lambda n: n**-0.5, [100, 400, 1600], abscissa="n")
    assert study.order("error") == pytest.approx(-0.5)


def test_the_fit_is_a_least_squares_line():
    rng = np.random.default_rng(1)
    h = 2.0 ** -np.arange(8)
    errors = h**2 * np.exp(rng.normal(0, 0.3, 8))
    study = ps.converge(dict(zip(h, errors, strict=True)).get, h)
    assert study.fitted_order("error") == pytest.approx(np.polyfit(np.log(h), np.log(errors), 1)[0], rel=1e-12)


def test_several_errors_have_orders_of_their_own():
    study = ps.converge(lambda n: {"L1": n**-1.0, "L2": n**-2.0}, [8, 16], resolution=lambda n: 1 / n)
    assert study.names == ["L1", "L2"]
    assert (study.order("L1"), study.order("L2")) == (pytest.approx(1), pytest.approx(2))


def test_an_error_of_zero_has_no_order():
    study = ps.converge({0.4: 1.0, 0.2: 0.0, 0.1: 0.25}.get, [0.4, 0.2, 0.1])
    assert np.isnan(study.orders("error")).all()
    assert study.fitted_order("error") == pytest.approx(1.0)  # of the two that are left
    assert math.isnan(ps.converge(lambda h: 0.0, [0.4, 0.2]).fitted_order("error"))
    assert math.isnan(ps.converge(power(1), [0.4]).order("error"))


def test_the_table_has_errors_orders_and_fits():
    text = str(ps.converge(power(2), [0.4, 0.2, 0.1]))
    lines = text.splitlines()
    assert lines[0].split() == ["h", "error", "order", "seconds"]
    assert lines[3].split()[:3] == ["0.2", "0.12", "2"]
    assert lines[-1] == "fitted orders: error 2.00"


def test_a_measurement_says_its_own_resolution():
    study = ps.converge(lambda level: ps.Measurement(2.0**-level, {"L2": 4.0**-level}, unknowns=4**level), [1, 2])
    assert study.order("L2") == pytest.approx(2)
    assert study.resolutions == pytest.approx([0.5, 0.25])
    assert [m.unknowns for m in study.measurements] == [4, 16]
    assert [m.value for m in study.measurements] == ["1", "2"]


def test_a_stored_study_keeps_the_rows_that_have_not_come_up_again(tmp_path):
    path = tmp_path / "study.csv"
    ps.converge(power(1), [0.4, 0.2, 0.1], store=path)

    def interrupted(h):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ps.converge(interrupted, [0.4, 0.3, 0.2, 0.1], store=path)
    assert [row["value"] for row in csv.DictReader(path.open())] == ["0.4", "0.2", "0.1"]


def test_a_measurement_with_a_name_of_its_own_is_stored_under_its_input(tmp_path):
    ran = []

    def run(n):
        ran.append(n)
        return ps.Measurement(1 / n, {"L2": 1 / n}, value="something else")

    for _ in range(2):
        ps.converge(run, [1, 2], store=tmp_path / "study.csv")
    assert ran == [1, 2]


def test_the_study_so_far_is_told_after_every_run():
    told = []
    ps.converge(power(1), [0.4, 0.2], tell=lambda study: told.append(len(study.measurements)))
    assert told == [1, 2]


def test_a_stored_study_goes_on(tmp_path):
    path, ran = tmp_path / "study.csv", []

    def run(n):
        ran.append(n)
        if n == 64:
            raise KeyboardInterrupt
        return {"L1": 1 / n, "L2": 1 / n**2}

    with pytest.raises(KeyboardInterrupt):
        ps.converge(run, [16, 32, 64, 128], resolution=lambda n: 1 / n, store=path)

    def run_again(n):
        ran.append(-n)
        return {"L1": 1 / n, "L2": 1 / n**2}

    again = ps.converge(run_again, [16, 32, 64], resolution=lambda n: 1 / n, store=path)
    assert ran == [16, 32, 64, -64]
    assert again.orders("L2") == pytest.approx([2, 2], abs=1e-12)
    rows = list(csv.DictReader(path.open()))
    assert [row["value"] for row in rows] == ["16", "32", "64"]
    assert float(rows[1]["L1"]) == 1 / 32  # to the last digit
    assert float(rows[2]["order of L2"]) == pytest.approx(2)
    assert rows[0]["order of L2"] == ""


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("t,mass\n0,1\n", "holds no study over h"),
        ("value,n,unknowns,seconds,L1\n16,16,,0.1,0.2\n", "holds no study over h"),
        ("value,h,unknowns,seconds,L1\n16,0.1,,0.1,zero\n", "a row is damaged"),
        ("value,h,unknowns,seconds,L1\n16,0.1\n", "a row is damaged"),
    ],
)
def test_a_file_that_holds_another_study_is_refused(tmp_path, content, sentence):
    path = tmp_path / "study.csv"
    path.write_text(content)
    with pytest.raises(ps.InputError, match=sentence):
        ps.converge(power(1), [0.1], store=path)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ps.converge(power(1), []), "at least one value"),
        (lambda: ps.converge(power(1, -1.0), [0.1]), "errors are distances ≥ 0"),
        (lambda: ps.converge(power(1), [0.0]), "resolution must be a finite number > 0"),
        (lambda: ps.converge(power(1), [0.1]).errors("L3"), "no error 'L3'"),
    ],
)
def test_what_cannot_be_a_study_is_refused(make, sentence):
    with pytest.raises(ps.InputError, match=sentence):
        make()
