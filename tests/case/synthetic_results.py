"""Results with histories and laws that are made up."""

from pathlib import Path

import numpy as np

from pde_solver.case import load_case
from pde_solver.case.stored import Result
from pde_solver.measures import TokenMeasure

CASE = """
[model]
manifold = "circle"

[[model.attention]]
beta = 4.0

[discretisation]
kind = "particles"
count = 100

[initial]
law = "uniform"

[time]
stop = 1.0
"""
ON_A_MESH = ["discretisation={kind='finite-volume'}", "mesh={kind='circle',cells=8}"]


def synthetic(folder: Path, name: str, *changes: str, angle: float = 0.0, times=(0.0, 1.0), **histories) -> Result:
    """A result whose law at the last depth is a Dirac measure at an angle."""
    path = folder / "case.toml"
    path.write_text(CASE)
    case = load_case(path, changes)
    history = {key: (np.array(times), np.array(values, dtype=float)) for key, values in histories.items()}
    law = TokenMeasure(np.array([[np.cos(angle), np.sin(angle)]]), np.ones((1, 1)))
    return Result(name, case, "some method", history, [(float(times[-1]), law)])
