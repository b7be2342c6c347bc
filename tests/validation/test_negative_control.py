"""Honest negative control: a wrong model turns the suite red, and it is this fault that does."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pde_solver as ps
from pde_solver.case import model_tables
from pde_solver.validation.run import validate

SUITE = Path(__file__).parents[2] / "validation"

build = model_tables.Attention.build
project = ps.Sphere.project


def wrong_sign(monkeypatch):
    monkeypatch.setattr(ps.Sphere, "project", lambda self, points, vectors: -project(self, points, vectors))


def missing_projection(monkeypatch):
    monkeypatch.setattr(ps.Sphere, "project", lambda self, points, vectors: vectors)


def factor_beta(monkeypatch):
    """The velocity of another convention, β ∫ e^{β⟨x, y⟩} y / Z."""

    def wrong(table):
        head = build(table)
        return replace(head, weight=head.weight * head.beta)

    monkeypatch.setattr(model_tables.Attention, "build", wrong)


def softmax_not_divided(monkeypatch):
    """Divided by the constant e^β instead of the partition function."""

    def wrong(table):
        head = build(table)
        return replace(head, normaliser=ps.Unnormalised(log_scale=head.beta))

    monkeypatch.setattr(model_tables.Attention, "build", wrong)


def keys_and_queries_exchanged(monkeypatch):
    def wrong(table):
        head = build(table)
        return replace(head, query=head.key, key=head.query)

    monkeypatch.setattr(model_tables.Attention, "build", wrong)


def two_percent(monkeypatch):
    monkeypatch.setattr(
        model_tables.Attention, "build", lambda table: replace(build(table), weight=1.02 * build(table).weight)
    )


#: A fault, and a claim that it contradicts.
FAULTS = [
    (wrong_sign, "energy_dissipation"),
    (factor_beta, "energy_dissipation"),
    (softmax_not_divided, "growth_rates"),
    (missing_projection, "equiangular_tokens"),
    (keys_and_queries_exchanged, "gaussian_closure"),
    (two_percent, "energy_dissipation"),
]


@pytest.mark.parametrize(("fault", "claim"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_wrong_model_turns_the_suite_red(fault, claim, monkeypatch, tmp_path, capsys):
    fault(monkeypatch)
    assert not validate([claim], suite=SUITE, output=tmp_path, quick=True)
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    failed = [row for row in rows if row["verdict"] == "failed"]
    assert failed, capsys.readouterr().out  # wrong numbers, not a crash
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'class="verdict bad"' in page
    assert "What did not pass" in page
    for row in failed:
        assert float(row["error"]) > float(row["tolerance"]) or np.isnan(float(row["error"]))
