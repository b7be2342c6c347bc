"""What a run left behind, read back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.case.case import Case, load_case
from pde_solver.case.discretisation_tables import IndependentTokens
from pde_solver.case.results import CASE, HISTORY, INFO, LAWS
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold
from pde_solver.measures import TokenMeasure
from pde_solver.output import read_history, read_laws

#: Depths that differ by less, relative to 1 + |t|, are the same.
SAME_DEPTH = 1e-9


@dataclass(frozen=True)
class Result:
    """What a run left behind.

    Args:
        name: where it lies.
        case: what was solved, and how.
        method: how it was solved, in words.
        history: depths (n,) and values (n, ...) of each recorded quantity that has values.
        laws: the law of a token at some depths.
        note: in words why it is not complete, if so.
    """

    name: str
    case: Case
    method: str
    history: dict[str, tuple[np.ndarray, np.ndarray]]
    laws: list[tuple[float, TokenMeasure]]
    note: str = ""

    @property
    def manifold(self) -> Manifold:
        """Where its tokens live."""
        return self.case.model.manifold

    @property
    def tokens(self) -> IndependentTokens | None:
        """How its tokens were drawn from the initial law; None if they were not, and nothing in it is random."""
        table = self.case.settings.discretisation
        return table if isinstance(table, IndependentTokens) else None


def read_result(folder: Path) -> Result:
    """Read a directory of results. One process only.

    Raises:
        InputError: if something is missing there.
    """
    for name in (CASE, INFO, HISTORY, LAWS):
        if not (folder / name).is_file():
            raise InputError(
                f"{folder}: holds no results of a finished run (there is no {name}); give a directory that `run` wrote."
            )
    case = load_case(folder / CASE, comm=MPI.COMM_SELF)
    info = json.loads((folder / INFO).read_text(encoding="utf-8"))
    method = f"particles, {info['mesh']}" if case.settings.mesh is None else f"{info['method']}, {info['mesh']}"
    note = "" if info.get("completed") else f"not complete: {info['outcome']}"
    weights = np.array([case.model.labels.weights])
    laws = [(t, measure.mixed(weights)) for t, measure in read_laws(folder / LAWS)]
    # tokens have no density, and so not a number as the least one
    history = {name: record for name, record in read_history(folder / HISTORY).items() if not np.isnan(record[1]).all()}
    return Result(str(folder), case, method, history, laws, note)


def shared_depths(lists: Sequence[np.ndarray]) -> np.ndarray:
    """Where several increasing lists of depths agree: (k, len(lists)) places, one row for each depth that all have."""
    first, *others = (np.asarray(times, dtype=float) for times in lists)
    tolerance = SAME_DEPTH * (1 + np.abs(first))
    places, same = [np.arange(len(first))], np.full(len(first), True)
    for times in others:
        padded = np.append(times, np.inf)
        nearest = np.searchsorted(times, first - tolerance)
        same &= padded[nearest] <= first + tolerance
        places.append(nearest)
    return np.column_stack(places)[same]
