"""A suite of small claims, which can be made wrong."""

from pathlib import Path

import pytest

CASE = """
[model]
manifold = "circle"

[[model.attention]]
beta = 0.0

[mesh]
kind = "circle"
cells = 16

[discretisation]
kind = "discontinuous-galerkin"
degree = 1

[initial]
law = "poisson-kernel"
w = [0.3, 0.0]

[time]
stop = 0.5
"""

GOOD = '''
"""The order parameter of a Poisson kernel."""
import pde_solver as ps
from pde_solver.solutions import PoissonKernelFlow


def check_mean(trial):
    flow = PoissonKernelFlow((0.3, 0.0))
    found = []

    def error(cells):
        simulation = trial.simulation(f"mesh.cells={cells}")
        record = simulation.record(ps.order_parameter)
        simulation.run()
        found.append(record.values[-1])
        return abs(found[-1] - flow.mean(0.5)[0])

    study = ps.converge(error, trial.resolutions(8, 16, 32, quick=2), resolution=lambda n: 1 / n)
    source = "derived for this project, arXiv:2312.10794"
    yield ps.Check("R", found[-1], flow.mean(0.5)[0], 1e-3, source, method="DG 1", study=study)
    yield ps.Check("order", study.order("error"), 1.8, 0.0, ps.DERIVED, "at least", method="DG 1", study=study)


def check_mass(trial):
    yield ps.Check("mass", 1.0, 1.0, 1e-12, ps.DERIVED, exact=True)
'''

PAGE = "# The mean of a kernel is known\n\n**Claimed.** R(t) = |w(t)|.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


@pytest.fixture
def add_claim(tmp_path):
    """A function (name, check.py's text, page) that adds a claim to the suite and returns the suite's folder."""
    suite = tmp_path / "suite"

    def add(name: str, checks: str = GOOD, page: str = PAGE) -> Path:
        folder = suite / name
        folder.mkdir(parents=True)
        (folder / "case.toml").write_text(CASE)
        (folder / "check.py").write_text(checks)
        (folder / "README.md").write_text(page)
        return suite

    return add
