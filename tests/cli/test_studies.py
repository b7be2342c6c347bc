"""`converge` and `validate` as users call them: what they print, their status, and how a study that was ended goes on."""

import csv
import re
import signal
import subprocess
import sys
import time

import pytest

CLAIM = """
import pde_solver as ps


def check_it(trial):
    yield ps.Check("a number", {measured}, 1.0, 0.0, ps.DERIVED, exact=True)
"""


@pytest.fixture
def case(results, tmp_path):
    path = tmp_path / "case.toml"
    path.write_text((results / "case.toml").read_text())
    return path


def test_converge_prints_tables_and_says_where_all_is(case, pde_solver, tmp_path):
    done = pde_solver("converge", case, "mesh.cells=8,16,32", "--output", tmp_path / "study", ranks=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("mesh.cells=8: Reached t = 0.5") == 1
    assert re.search(
        r"^value +h +unknowns +L1 +order +L2 +order +Linf +order +W1 +order +seconds$", done.stdout, re.MULTILINE
    )
    assert done.stdout.endswith(f"Study: {tmp_path / 'study'}\n")
    again = pde_solver("converge", case, "mesh.cells=8,16,32", "--output", tmp_path / "study")
    assert "mesh.cells=8: complete already." in again.stdout
    # the seconds are those that the last checkpoint knows
    one, two = ([line.split()[:-1] for line in text.splitlines()[-6:-3]] for text in (done.stdout, again.stdout))
    assert one == two


def test_a_study_that_was_ended_goes_on(case, pde_solver, tmp_path):
    """SIGTERM in the midst of a run: a checkpoint, a sentence and status 1; the same command finishes the study."""
    study = [case, "mesh.cells=64,1024", "time.stop=2", "output.checkpoint_every=0.05", "--output", tmp_path / "study"]
    child = subprocess.Popen(
        [sys.executable, "-m", "pde_solver", "converge", *map(str, study)], stderr=subprocess.PIPE, text=True
    )
    checkpoints = tmp_path / "study" / "runs" / "mesh.cells=1024" / "checkpoints"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(checkpoints.glob("*.h5")):
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "the same command goes on from there" in told
    assert not (tmp_path / "study" / "study.csv").exists()
    done = pde_solver("converge", *study)
    assert done.returncode == 0, done.stderr
    assert len(list(csv.DictReader((tmp_path / "study" / "study.csv").open()))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mesh.cells=8"], "nothing is varied"),
        (["mesh.cells=8,2"], r"mesh\.cells: found 2, must be a whole number ≥ 3"),
        (["mesh.cells=8,16", "convergence.reference=closed-form"], "no exact law is known"),
        (["mesh.cells=8,16", "convergence.count=10"], 'convergence.count: does not apply to reference = "finest"'),
    ],
)
def test_what_cannot_be_studied_is_a_sentence_and_status_2(case, pde_solver, tmp_path, arguments, message):
    wrong = pde_solver("converge", case, *arguments, "--output", tmp_path / "study", ranks=2)
    assert wrong.returncode == 2
    assert re.search(message, wrong.stderr)
    assert "Traceback" not in wrong.stderr
    assert not (tmp_path / "study").exists()


@pytest.fixture
def suite(tmp_path, case):
    for name, measured in (("right", 1.0), ("wrong", 1.5)):
        folder = tmp_path / "suite" / name
        folder.mkdir(parents=True)
        (folder / "check.py").write_text(CLAIM.format(measured=measured))
        (folder / "case.toml").write_text(case.read_text())
        (folder / "README.md").write_text("# A number is one\n")
    return tmp_path / "suite"


@pytest.mark.parametrize(("name", "status"), [("right", 0), ("wrong", 1)])
def test_validate_leaves_with_the_verdict(suite, pde_solver, tmp_path, name, status):
    done = pde_solver("validate", name, "--suite", suite, "--output", tmp_path / "report", "--quick")
    assert done.returncode == status, done.stderr
    word = "failed" if status else "passed"
    assert done.stdout.splitlines()[0].startswith(
        f"{word}  {name}: a number: measured {1.5 if status else 1}, expected 1"
    )
    assert done.stdout.splitlines()[-1].startswith(f"1 checks: 1 {word}. Report: ")
    assert (tmp_path / "report" / "report.html").exists()


def test_an_unknown_claim_is_a_sentence_and_status_2(suite, pde_solver, tmp_path):
    wrong = pde_solver("validate", "rihgt", "--suite", suite, "--output", tmp_path / "report")
    assert wrong.returncode == 2
    assert wrong.stderr == f"{suite}: no claim 'rihgt'; did you mean right?\n"


def test_sigterm_ends_the_suite_and_no_check_goes_on_with_half_a_run(suite, tmp_path):
    (suite / "right" / "check.py").write_text(
        "import os, signal\nimport pde_solver as ps\n\n\ndef check_it(trial):\n    simulation = trial.simulation('time.stop=100')\n"
        "    simulation.observe(lambda _: os.kill(os.getpid(), signal.SIGTERM), at=[0.05])\n    simulation.run()\n"
        "    yield ps.Check('half a run', simulation.t, 0.0, 100.0, ps.DERIVED, exact=True)\n"
    )
    report = tmp_path / "report"
    arguments = ["validate", "right", "--suite", suite, "--output", report]
    done = subprocess.run(
        [sys.executable, "-m", "pde_solver", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 130
    assert "interrupted" in done.stderr
    assert not (report / "results.csv").exists()
