"""The project's own suite, with coarse resolutions: every check passes and says where its value is from."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pde_solver.validation import find_claims
from pde_solver.validation.run import validate

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_every_check_passes_and_names_its_source(tmp_path, capsys):
    validate(suite=ROOT / "validation", output=tmp_path, quick=True)
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("failed", "error"))]
    assert not wrong, "\n".join(wrong)
    claims = find_claims(ROOT / "validation")
    assert {row["claim"] for row in rows} == {claim.title for claim in claims}
    assert {row["verdict"] for row in rows} == {"passed"}
    for row in rows:
        assert re.search(r"arXiv:\d{4}\.\d{5}|derived for this project", row["source"]), row
    assert len({row["name"] for row in rows}) == len(rows), "two checks have one name"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{len(rows)} of {len(rows)} checks passed" in page
    assert page.count("<figure") > 50


def test_two_ranks_pass_too(on_ranks, tmp_path):
    """Finite volumes, Galerkin and tokens, on spheres and boxes."""
    program = tmp_path / "validate.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom pde_solver.validation.run import validate\n"
        "names = ['exact_transport', 'rank_preservation']\n"
        "assert validate(names, suite=Path(sys.argv[1]), output=Path(sys.argv[2]), quick=True)\n"
    )
    done = on_ranks(program, 2, ROOT / "validation", tmp_path, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_papers_of_the_suite_are_known():
    """Every arXiv number in a claim has its authors in papers.toml."""
    known = (ROOT / "validation" / "papers.toml").read_text(encoding="utf-8")
    for path in (ROOT / "validation").glob("*/*.*"):
        if path.suffix in (".md", ".py"):
            for number in re.findall(r"arXiv:(\d{4}\.\d{4,5})", path.read_text(encoding="utf-8")):
                assert f'"{number}"' in known, f"{path}: {number}"


def test_a_check_file_needs_the_public_names_alone():
    """`import pde_solver as ps` is enough to run one from anywhere."""
    names = ("Check", "Figure", "Curve", "Trial", "converge", "measured", "DERIVED")
    code = f"import pde_solver as ps; assert all(hasattr(ps, name) for name in {names})"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
