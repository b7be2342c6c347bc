"""Every check gives a verdict: what fails, what raises and what checks nothing is told, never skipped."""

import csv
import re

import pytest

import pde_solver as ps
from pde_solver.validation import examine, find_claims
from pde_solver.validation.run import validate
from pde_solver.validation.verdict import COLUMNS


def verdicts(suite, names=(), **options):
    return [verdict for _, found in examine(find_claims(suite, names), **options) for verdict in found]


def test_checks_pass_and_say_what_they_measured(add_claim):
    found = verdicts(add_claim("kernel"))
    assert [v.word for v in found] == ["passed"] * 3
    assert [v.check.quantity for v in found] == ["R", "order", "mass"]
    assert [len(v.check.study.measurements) for v in found[:2]] == [3, 3]
    assert found[0].seconds > found[2].seconds
    assert found[0].ranks == 1
    assert str(found[0]).startswith("passed  kernel: R: measured 0.37")


def test_quick_takes_fewer_resolutions(add_claim):
    found = verdicts(add_claim("kernel"), quick=True)
    assert len(found[0].check.study.measurements) == 2


def test_a_check_that_raises_is_a_failure_with_its_traceback_and_the_others_run(add_claim):
    suite = add_claim(
        "broken",
        "import pde_solver as ps\n\n\ndef check_first(trial):\n"
        "    yield ps.Check('before', 1.0, 1.0, 0.0, ps.DERIVED, exact=True)\n    yield 1 / 0\n\n\n"
        "def check_second(trial):\n    yield ps.Check('after', 1.0, 1.0, 0.0, ps.DERIVED, exact=True)\n",
    )
    found = verdicts(suite)
    assert [v.word for v in found] == ["passed", "error", "passed"]
    assert "ZeroDivisionError: division by zero" in found[1].traceback
    assert "yield 1 / 0" in found[1].traceback
    assert "suite.py" not in found[1].traceback
    assert str(found[1]).startswith("error   broken: check_first: ZeroDivisionError")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def check_nothing(trial):\n    return iter(())\n", "yielded no check"),
        ("def check_number(trial):\n    yield 3.0\n", "must yield checks, found 3.0"),
        ("def check_case(trial):\n    trial.case('mesh.cells=none')\n    yield 1\n", "mesh.cells"),
        ("def look(trial):\n    pass\n", "has no function check_"),
        ("def check_syntax(trial:\n", "SyntaxError"),
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("def check_exit(trial):\n    raise SystemExit(0)\n    yield\n", "SystemExit: 0"),
    ],
)
def test_whatever_goes_wrong_is_a_verdict(add_claim, text, sentence):
    found = verdicts(add_claim("wrong", text))
    assert [v.word for v in found] == ["error"]
    assert sentence in found[0].traceback


def test_claims_are_found_by_name(add_claim, tmp_path):
    add_claim("b")
    suite = add_claim("a")
    assert [claim.name for claim in find_claims(suite)] == ["a", "b"]
    assert [claim.name for claim in find_claims(suite, ["b"])] == ["b"]
    assert find_claims(suite)[0].title == "The mean of a kernel is known"
    with pytest.raises(ps.InputError, match=r"no claim 'c'"):
        find_claims(suite, ["a", "c"])
    with pytest.raises(ps.InputError, match="there is no such folder"):
        find_claims(tmp_path / "nowhere")
    (suite / "half").mkdir()
    (suite / "half" / "README.md").write_text("# A claim without checks\n")
    with pytest.raises(ps.InputError, match=r"has no case\.toml and no check\.py"):
        find_claims(suite)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ps.InputError, match="holds no claims"):
        find_claims(tmp_path / "empty")


def test_a_claim_without_a_page_or_a_heading_is_refused(add_claim):
    suite = add_claim("a", page="no heading\n")
    with pytest.raises(ps.InputError, match="must begin with a heading"):
        find_claims(suite)
    (suite / "a" / "README.md").unlink()
    with pytest.raises(ps.InputError, match=r"has no README\.md"):
        find_claims(suite)


def test_the_results_have_a_row_for_each_check(add_claim, tmp_path, capsys):
    add_claim("kernel")
    suite = add_claim("broken", "def check_it(trial):\n    raise OSError('gone')\n    yield\n")
    assert not validate(suite=suite, output=tmp_path / "report")
    rows = list(csv.DictReader((tmp_path / "report" / "results.csv").open()))
    assert list(rows[0]) == COLUMNS
    assert COLUMNS == [
        "name",
        "claim",
        "source",
        "measured",
        "expected",
        "error",
        "tolerance",
        "verdict",
        "seconds",
        "ranks",
    ]
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("broken: check_it", "error"),
        ("kernel: R [DG 1]", "passed"),
        ("kernel: order [DG 1]", "passed"),
        ("kernel: mass", "passed"),
    ]
    assert float(rows[1]["error"]) == pytest.approx(abs(float(rows[1]["measured"]) - float(rows[1]["expected"])))
    assert rows[1]["source"] == "derived for this project, arXiv:2312.10794"
    assert re.search(r"4 checks: 3 passed, 1 error\. Report: .*report\.html", capsys.readouterr().out)


def test_all_that_passes_is_told_so(add_claim, tmp_path, capsys):
    assert validate(["kernel"], suite=add_claim("kernel"), output=tmp_path / "report", quiet=True)
    assert capsys.readouterr().out == f"3 checks: 3 passed. Report: {tmp_path / 'report' / 'report.html'}\n"


def test_the_page_shows_everything(add_claim, tmp_path):
    add_claim("kernel")
    suite = add_claim("broken", "def check_it(trial):\n    raise OSError('a < b')\n    yield\n")
    (suite / "papers.toml").write_text('"2312.10794" = "Four authors"\n')
    validate(suite=suite, output=tmp_path, quiet=True)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in (
        "3 of 4 checks passed, 1 did not",
        '<a href="https://arxiv.org/abs/2312.10794">arXiv:2312.10794</a>',
        "Four authors",
        "The mean of a kernel is known",
        "OSError: a &lt; b",
        "processor",
        "dolfinx",
        "<strong>Claimed.</strong>",
        "<td>2</td>",  # a table of the claim's own page
        "law = &quot;poisson-kernel&quot;",  # the resolved case
        "DG 1",
    ):
        assert text in page, text
    assert page.count("<svg") == 1  # the study, shared by two checks
    assert "src=" not in page  # nothing is loaded from elsewhere
    assert "@import" not in page
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))
    targets = re.findall(r'href="#([^"]+)"', page)
    assert set(targets) <= set(names)


def test_a_broken_list_of_papers_is_refused(add_claim, tmp_path):
    suite = add_claim("kernel")
    (suite / "papers.toml").write_text("2312.10794 = 3\n")
    with pytest.raises(ps.InputError, match=r"papers\.toml"):
        validate(suite=suite, output=tmp_path)


def test_two_ranks_give_the_results_of_one(add_claim, tmp_path, on_ranks):
    suite = add_claim("kernel")
    assert validate(suite=suite, output=tmp_path / "one", quiet=True)
    program = tmp_path / "validate.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom pde_solver.validation.run import validate\n"
        "assert validate(suite=Path(sys.argv[1]), output=Path(sys.argv[2]))\n"
    )
    done = on_ranks(program, 2, suite, tmp_path / "two")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("kernel: R:") == 1  # one voice
    one, two = ([*csv.DictReader((tmp_path / n / "results.csv").open())] for n in ("one", "two"))
    assert [row["ranks"] for row in two] == ["2"] * 3
    for a, b in zip(one, two, strict=True):
        assert float(a["measured"]) == pytest.approx(float(b["measured"]), rel=1e-10)


START = """
import dataclasses
import pde_solver as ps
from mpi4py import MPI

CHECK = ps.Check("q", 1.0, 1.0, 9.0, ps.DERIVED, exact=True)
"""

#: What goes wrong on one of two ranks, and what is told of it.
ON_ONE_RANK = {
    "an exception": (
        "def check_it(trial):\n    if trial.comm.rank == 1:\n        raise OSError('rank 1 alone')\n    yield CHECK\n",
        "rank 1 alone",
    ),
    "no check": ("def check_it(trial):\n    if trial.comm.rank == 0:\n        yield CHECK\n", "yielded no check"),
    "another value": (
        "def check_it(trial):\n    yield dataclasses.replace(CHECK, measured=1.0 + trial.comm.rank)\n",
        "the ranks do not agree",
    ),
    "a file that does not load": (
        "if MPI.COMM_WORLD.rank == 1:\n    raise OSError('rank 1 alone')\n\n\ndef check_it(trial):\n    yield CHECK\n",
        "rank 1 alone",
    ),
}


@pytest.mark.parametrize("what", ON_ONE_RANK)
def test_what_one_rank_alone_finds_is_a_failure_on_all(add_claim, tmp_path, on_ranks, what):
    text, sentence = ON_ONE_RANK[what]
    suite = add_claim("lonely", START + text)
    program = tmp_path / "validate.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom pde_solver.validation import run, suite\nsuite.PATIENCE = 5.0\n"
        "print('verdict', run.validate(suite=Path(sys.argv[1]), output=Path(sys.argv[2])))\n"
    )
    done = on_ranks(program, 2, suite, tmp_path / "two", timeout=60)
    assert done.returncode == 0, done.stderr
    assert sentence in (tmp_path / "two" / "report.html").read_text(encoding="utf-8")
    assert "verdict False" in done.stdout
    assert "verdict True" not in done.stdout


def test_a_figure_that_cannot_be_drawn_does_not_cost_the_report(add_claim, tmp_path):
    wrong = "ps.Figure([ps.Curve([1.0], [1.0], 'a')], 'x', r'$\\frac{$')"
    suite = add_claim("figure", START + f"def check_it(trial):\n    yield dataclasses.replace(CHECK, figure={wrong})\n")
    assert validate(suite=suite, output=tmp_path, quiet=True)
    assert "Traceback" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_rank_that_fails_alone_ends_the_job_with_its_traceback(add_claim, tmp_path, on_ranks):
    suite = add_claim(
        "lonely",
        "import pde_solver as ps\n\n\ndef check_it(trial):\n    if trial.comm.rank == 1:\n        raise OSError('rank 1 alone')\n"
        "    trial.comm.Barrier()\n    yield ps.Check('q', 1.0, 1.0, 0.0, ps.DERIVED, exact=True)\n",
    )
    program = tmp_path / "validate.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom pde_solver.validation import run, suite\nsuite.PATIENCE = 1.0\n"
        "run.validate(suite=Path(sys.argv[1]), output=Path(sys.argv[2]))\n"
    )
    done = on_ranks(program, 2, suite, tmp_path / "two", timeout=60)
    assert done.returncode != 0
    assert "rank 1 alone" in done.stderr
