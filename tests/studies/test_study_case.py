"""Convergence studies of a case: against a closed form, the finest run and particles; and how they go on."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import pde_solver as ps
from pde_solver.case.run import carry_out
from pde_solver.case.stored import read_result
from pde_solver.studies import study_case
from pde_solver.studies.particles import cross_validation

CASE = """
[model]
manifold = "circle"

[[model.attention]]
beta = 0.0

[mesh]
kind = "circle"
cells = 32

[discretisation]
kind = "discontinuous-galerkin"
degree = 2

[initial]
law = "poisson-kernel"
w = [0.3, 0.0]

[time]
stop = 1.0

[output]
quantities = ["mass", "order_parameter", "first_moment"]
every = 0.5

[convergence]
reference = "closed-form"
"""


@pytest.fixture
def case(tmp_path):
    path = tmp_path / "kernel.toml"
    path.write_text(CASE)
    return path


def study(case, *arguments, name="out", **options):
    return study_case(case, arguments, output=case.parent / name, quiet=True, **options)


def rows(folder: Path, name="study.csv"):
    return list(csv.DictReader((folder / name).open()))


def test_against_the_closed_form(case):
    found = study(case, "mesh.cells=16,32,64").series[0]
    assert found.names == ["L1", "L2", "Linf", "W1"]
    assert found.order("L2") == pytest.approx(3, abs=0.3)
    assert found.order("W1") > 3.5  # in the weaker norm the order is higher
    assert found.last("L2") < 1e-4
    assert found.resolutions == pytest.approx(2 * np.pi / np.array([16, 32, 64]), rel=1e-3)
    table = rows(case.parent / "out")
    assert [row["value"] for row in table] == ["mesh.cells=16", "mesh.cells=32", "mesh.cells=64"]
    assert float(table[2]["order of L2"]) == found.order("L2")
    assert int(table[2]["unknowns"]) == 192
    assert float(table[2]["seconds"]) > 0
    assert (case.parent / "out" / "study.png").stat().st_size > 10_000


def test_the_error_to_the_finest_run_is_nearly_that_to_the_closed_form(case):
    exact = study(case, "mesh.cells=8,16,128").series[0]
    finest = study(case, "mesh.cells=8,16,128", "convergence.reference=finest").series[0]
    assert len(finest.measurements) == 2
    # the finest run's own error is hundreds of times smaller
    for name in ("L1", "L2", "Linf", "W1"):
        assert finest.errors(name) == pytest.approx(exact.errors(name)[:2], rel=0.02), name


def test_several_axes_give_a_series_each(case):
    found = study(case, "mesh.cells=16,32", "discretisation.degree=1,2,3", "time.stop=0.5")
    assert [series.name for series in found.series] == [f"discretisation.degree={p}" for p in (1, 2, 3)]
    assert [series.order("L1") for series in found.series] == pytest.approx([2, 3, 3.4], abs=0.7)
    assert len(rows(case.parent / "out")) == 6


def test_the_order_of_a_time_scheme(case):
    """A fixed mesh, fixed steps: against the finest step, as the closed form would show the mesh's error."""
    found = study(
        case, "time.scheme=ssp-3", "time.step=0.2,0.1,0.05,0.0125", "convergence.reference=finest", "output.every=1"
    ).series[0]
    assert found.abscissa == "step"
    # the reference's own error, 1/64 of the last, raises the last order by log(1 / (1 − 1/64)) / log 2 = 0.02
    assert found.orders("L2") == pytest.approx([3, 3], abs=0.2)


def test_an_axis_without_resolution_has_no_orders(case):
    found = study(case, "discretisation.degree=1,2,3").series[0]
    assert not found.refines
    assert np.all(np.diff(found.errors("L2")) < 0)
    assert "order" not in str(found)
    assert rows(case.parent / "out")[1]["order of L2"] == ""


def test_tokens_against_the_closed_form(case):
    """Placed by a quadrature their law is exact up to the distance of the quadrature's points."""
    found = study(
        case,
        "mesh=",
        "discretisation={kind='particles', placement='quadrature'}",
        "discretisation.quadrature_order=16,32,64",
    ).series[0]
    assert found.names == ["W1"]
    assert found.order("W1") == pytest.approx(-1, abs=0.1)


def test_cross_validation_against_particles(case):
    found = study(case, "convergence.count=200,800,3200", "convergence.reference=particles", "convergence.replicas=8")
    series = found.series[0]
    assert series.abscissa == "n"
    # 8 replicas know a spread to 1/√16, so an order over a factor of 16 to ± 2 · 0.25 √2 / log 16 = 0.26
    for name in ("W1", "W1 of two samples", "rms order_parameter"):
        assert series.fitted_order(name) == pytest.approx(-0.5, abs=0.26), name
    # each law is nearer to the mean field than two laws to each other, by √2
    assert np.all(series.errors("W1") < series.errors("W1 of two samples"))
    assert "rms mass" not in series.names  # which is exact on both sides
    for cross in found.quantities.values():
        compared = {c.quantity: c for c in cross.quantities}
        assert set(compared) == {"mass", "order_parameter", "first_moment_0", "first_moment_1"}
        assert math.isnan(compared["mass"].in_standard_errors)
        assert compared["order_parameter"].in_standard_errors < 3.5
        assert compared["order_parameter"].t == 1.0
        c = compared["first_moment_0"]
        assert c.discrepancy == pytest.approx(c.value - c.mean)
    table = rows(case.parent / "out", "quantities.csv")
    assert len(table) == 12
    assert {"run", "t", "quantity", "value", "mean of particles", "standard error", "in standard errors"} <= set(
        table[0]
    )
    text = str(found)
    assert "Recorded quantities beside the mean of the particles" in text
    # the mesh ran once, whatever the particles
    assert sorted(path.name for path in (case.parent / "out" / "runs").iterdir())[-1] == "run"


def test_the_standard_error_is_that_of_the_mean(case):
    found = study(case, "convergence.count=100,400", "convergence.reference=particles", "convergence.replicas=4")
    folder = case.parent / "out" / "runs"
    last = [
        [
            float(row["order_parameter"])
            for row in csv.DictReader((folder / f"particles=100,seed={s}/history.csv").open())
        ][-1]
        for s in (1, 2, 3, 4)
    ]
    compared = next(c for c in found.quantities["convergence.count=100"].quantities if c.quantity == "order_parameter")
    assert compared.mean == pytest.approx(np.mean(last), rel=1e-12)
    assert compared.standard_error == pytest.approx(np.std(last, ddof=1) / 2, rel=1e-12)
    assert compared.rms == pytest.approx(np.sqrt(np.mean((compared.value - np.array(last)) ** 2)), rel=1e-12)


def test_a_wrong_model_is_many_standard_errors_away(case):
    """The mesh has a head 1.2 times as strong as that of the particles: so would a mistake look."""
    tokens = ["convergence.count=2000", "convergence.reference=particles"]
    right = study(case, "mesh.cells=31,32", *tokens, "time.stop=1.5")
    study(case, "mesh.cells=32,33", "model.attention.0.weight=1.2", "time.stop=1.5", name="mesh")
    samples = [read_result(case.parent / "out" / "runs" / f"particles=2000,seed={s}") for s in range(1, 9)]
    cross = cross_validation(read_result(case.parent / "mesh" / "runs" / "mesh.cells=32"), samples, ["order_parameter"])
    own = next(c for c in right.quantities["mesh.cells=32"].quantities if c.quantity == "order_parameter")
    other = next(c for c in cross.quantities if c.quantity == "order_parameter")
    assert own.in_standard_errors < 3
    assert other.in_standard_errors > 4
    assert cross.distance > 1.4 * right.quantities["mesh.cells=32"].distance


def test_a_study_goes_on_where_it_stopped(case):
    study(case, "mesh.cells=16,32")
    folder = case.parent / "out" / "runs"
    before = {path.name: (path / "info.json").read_text() for path in folder.iterdir()}
    first = rows(case.parent / "out")
    later = study(case, "mesh.cells=16,32,64").series[0]
    assert {path.name: (path / "info.json").read_text() for path in folder.iterdir() if path.name in before} == before
    assert [row["L2"] for row in rows(case.parent / "out")[:2]] == [row["L2"] for row in first]
    assert len(later.measurements) == 3


def test_a_run_that_was_cut_short_is_resumed(case):
    """Killed between two checkpoints, a study that goes on gives the numbers of one that was not interrupted."""
    whole = study(case, "mesh.cells=16,32", "output.checkpoint_every=0.25", name="whole").series[0]
    part = ps.load_case(case, ["mesh.cells=16", "output.checkpoint_every=0.25", "time.stop=0.6", "output.figure=false"])
    carry_out(part, case.parent / "out" / "runs" / "mesh.cells=16", quiet=True)
    resumed = study(case, "mesh.cells=16,32", "output.checkpoint_every=0.25").series[0]
    assert resumed.errors("L2") == pytest.approx(whole.errors("L2"), rel=1e-9)


def test_overwriting_runs_everything_anew(case):
    study(case, "mesh.cells=16,32")
    info = case.parent / "out" / "runs" / "mesh.cells=16" / "history.csv"
    info.write_text("spoilt")
    study(case, "mesh.cells=16,32", overwrite=True)
    assert info.read_text().startswith("t,mass")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["mesh.cells=16,32", "model.attention.0.beta=1"], "no exact law is known"),
        (["mesh.cells=16,32", "model.attention.0.beta=-1"], "must be a number ≥ 0"),
        (["mesh.cells=16,2"], "must be a whole number ≥ 3"),
        (["convergence.count=100,200"], "convergence.count: does not apply"),
        (
            ["mesh.cells=16,32", "convergence.reference=particles", "convergence.replicas=1"],
            "must be a whole number ≥ 2",
        ),
        (["mesh.cells=16,32", "convergence.reference=exact"], "did you mean|closed-form"),
        (["time.cfl=0.2,0.8", "convergence.reference=finest"], "must be the finest, 0.2, found 0.8"),
        (["evaluation.tolerance=1e-3,0"], "must be > 0|must be a number"),
        (
            [
                "mesh=",
                'discretisation={kind="particles", seed=3}',
                "convergence.count=10,20",
                "convergence.reference=particles",
            ],
            "compared with itself",
        ),
    ],
)
def test_what_cannot_be_studied_is_refused(case, arguments, sentence):
    with pytest.raises(ps.InputError, match=sentence):
        study(case, *arguments)
    assert not (case.parent / "out" / "runs").exists()


def test_a_study_that_is_refused_midway_leaves_what_it_found(case):
    """The second step exceeds the limit of the second mesh: the sentence names the run, and the first row is kept."""
    with pytest.raises(ps.InputError, match=r"mesh\.cells=256: time: step = 0\.1 exceeds"):
        study(case, "mesh.cells=8,256", "time.step=0.1")
    assert [row["value"] for row in rows(case.parent / "out")] == ["mesh.cells=8"]


def test_what_the_directory_holds_must_be_what_is_asked_for(case):
    study(case, "mesh.cells=8,16")
    with pytest.raises(ps.InputError, match=r"holds a run to t = 1, and the case stops at 0\.5"):
        study(case, "mesh.cells=8,16", "time.stop=0.5")
    with pytest.raises(ps.InputError, match="did not record variance"):
        study(case, "mesh.cells=8,16", 'output.quantities=["variance"]')
    longer = study(case, "mesh.cells=8,16", "time.stop=1.5").series[0]  # which goes on from t = 1
    fresh = study(case, "mesh.cells=8,16", "time.stop=1.5", name="fresh").series[0]
    assert longer.errors("L2") == pytest.approx(fresh.errors("L2"), rel=1e-9)


def test_a_directory_with_something_else_is_not_written_to(case):
    (case.parent / "out").mkdir()
    (case.parent / "out" / "thesis.tex").write_text("")
    with pytest.raises(ps.InputError, match="holds something else than a study"):
        study(case, "mesh.cells=8,16")


def test_names_of_runs_do_not_collide(case):
    found = study(case, 'output.title="a/b","a_b"', "mesh.cells=8", "time.stop=0.1")
    assert len(list((case.parent / "out" / "runs").iterdir())) == 2
    assert found.series[0].errors("L2")[0] == found.series[0].errors("L2")[1]


def test_a_value_of_zero_can_be_varied(case):
    found = study(case, "initial.w.1=-0.1,0.0,0.1", "mesh.cells=16", "time.stop=0.1").series[0]
    assert found.resolutions == pytest.approx([1, 2, 3])
    assert found.errors("L2")[0] == pytest.approx(found.errors("L2")[2], rel=1e-6)  # mirror images


def test_the_cost_counts_all_legs(case):
    study(case, "mesh.cells=8,16", "time.stop=0.5")
    first = float(rows(case.parent / "out")[1]["seconds"])
    study(case, "mesh.cells=8,16", "time.stop=1.0")
    assert float(rows(case.parent / "out")[1]["seconds"]) > first


def test_another_case_in_the_same_directory_is_refused(case):
    study(case, "mesh.cells=16,32")
    with pytest.raises(ps.InputError, match="another case"):
        study(case, "mesh.cells=16,32", "initial.w=[0.4, 0.0]")


def test_the_finest_mesh_comes_last(case):
    with pytest.raises(ps.InputError, match="give the finest mesh last"):
        study(case, "mesh.cells=32,16", "convergence.reference=finest")


def test_ranks_agree(case, on_ranks, tmp_path):
    serial = study(case, "mesh.cells=16,32", "convergence.reference=finest", "time.stop=0.25").series[0]
    program = tmp_path / "study.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom pde_solver.studies import study_case\n"
        "study_case(Path(sys.argv[1]), ['mesh.cells=16,32', 'convergence.reference=finest', 'time.stop=0.25'],"
        " output=Path(sys.argv[2]), quiet=True)\n"
    )
    for ranks in (2, 3):
        on_ranks(program, ranks, case, tmp_path / f"on_{ranks}")
        found = rows(tmp_path / f"on_{ranks}")
        for name in ("L1", "L2", "Linf", "W1"):
            assert float(found[0][name]) == pytest.approx(serial.errors(name)[0], rel=1e-9), name
