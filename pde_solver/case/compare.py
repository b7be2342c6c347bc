"""Results side by side: how far they differ from those of a reference."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.case.case import load_case
from pde_solver.case.results import CASE, HISTORY, INFO, LAWS
from pde_solver.errors import InputError
from pde_solver.measures import TokenMeasure
from pde_solver.models import Model
from pde_solver.observing import distance_name, wasserstein
from pde_solver.output import format_table, read_history, read_laws
from pde_solver.parallel import on_root

#: Depths that differ by less, relative to the larger, are the same.
SAME_DEPTH = 1e-9


@dataclass(frozen=True)
class Result:
    """What a run left behind.

    Args:
        name: how the table calls it.
        model: what was solved.
        method: how it was solved, in words.
        history: depths (n,) and values (n, ...) of each recorded quantity.
        laws: the law of a token at some depths.
    """

    name: str
    model: Model
    method: str
    history: dict[str, tuple[np.ndarray, np.ndarray]]
    laws: list[tuple[float, TokenMeasure]]


def comparison(reference: Path, others: Sequence[Path], comm: MPI.Comm = MPI.COMM_WORLD) -> str:
    """A table: every recorded quantity and the distance of the laws at the last depth that results share. Collective.

    Args:
        reference: a directory of results.
        others: the directories that are compared with it.
        comm: the ranks that want it; rank 0 reads.

    Raises:
        InputError: on all ranks, if a directory holds no results, or results of another manifold.
    """
    return on_root(comm, lambda: _comparison([read_result(folder) for folder in (reference, *others)]))


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
    if not info.get("completed"):
        method += f" (not complete: {info['outcome']})"
    weights = np.array([case.model.labels.weights])
    laws = [(t, measure.mixed(weights)) for t, measure in read_laws(folder / LAWS)]
    return Result(str(folder), case.model, method, read_history(folder / HISTORY), laws)


def _comparison(results: list[Result]) -> str:
    reference, *others = results
    for other in others:
        if other.model.manifold != reference.model.manifold:
            raise InputError(
                f"{other.name}: its tokens live on the {other.model.manifold}, those of {reference.name} on the "
                f"{reference.model.manifold}; there is nothing to compare."
            )
    names = _short_names(results)
    rows: list[list[object]] = []
    for quantity, (times, values) in reference.history.items():
        rows += _differences(quantity, times, values, others)
    rows.append(_distances(reference, others))
    legend = "\n".join(
        f"{name:{max(map(len, names))}}  {result.method}" for name, result in zip(names, results, strict=True)
    )
    explanation = f"The column {names[0]} has the values, the others their differences from them."
    return f"{legend}\n\n{explanation}\n\n{format_table(rows, ['quantity', *names])}"


def _short_names(results: list[Result]) -> list[str]:
    short = [Path(result.name).resolve().name for result in results]
    return short if len(set(short)) == len(short) else [result.name for result in results]


def _differences(quantity: str, times: np.ndarray, values: np.ndarray, others: list[Result]) -> list[list[object]]:
    """Two rows: at the last depth that all share (the reference's own value first), and the largest over all depths."""
    shared = [_shared(times, other.history[quantity][0]) for other in others if quantity in other.history]
    common = sorted(set.intersection(*({i for i, _ in pairs} for pairs in shared))) if shared else []
    if not common:
        return [[f"{quantity} (no depth in common)", None, *(None for _ in others)]]
    last = common[-1]
    at_last: list[object] = [f"{quantity} at t = {times[last]:g}", _rounded(_size(values[last]), 6)]
    largest: list[object] = ["  largest over depths", None]
    for other in others:
        if quantity not in other.history:
            at_last.append(None)
            largest.append(None)
            continue
        found = other.history[quantity][1]
        differences = {i: _difference(found[j], values[i]) for i, j in _shared(times, other.history[quantity][0])}
        at_last.append(_rounded(differences[last], 3))
        largest.append(_rounded(max(map(abs, differences.values())), 3))
    return [at_last, largest]


def _shared(times: np.ndarray, others: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of places at which two increasing lists of depths agree."""
    if not len(others):
        return []
    nearest = np.abs(times[:, None] - others).argmin(axis=1)
    same = np.isclose(times, others[nearest], rtol=SAME_DEPTH, atol=SAME_DEPTH)
    return [(int(i), int(nearest[i])) for i in np.flatnonzero(same)]


def _difference(value: np.ndarray, reference: np.ndarray) -> float:
    """Signed for numbers, Euclidean length for vectors."""
    difference = np.asarray(value) - np.asarray(reference)
    return float(difference) if difference.ndim == 0 else float(np.linalg.norm(difference))


def _size(value: np.ndarray) -> float:
    return float(value) if np.ndim(value) == 0 else float(np.linalg.norm(value))


def _distances(reference: Result, others: list[Result]) -> list[object]:
    """One row: Wasserstein distances at the last depth at which all laws were kept."""
    manifold = reference.model.manifold
    times = np.array([t for t, _ in reference.laws])
    shared = [dict(_shared(times, np.array([t for t, _ in other.laws]))) for other in others]
    common = sorted(set.intersection(*(set(pairs) for pairs in shared)))
    if not common:
        return ["Wasserstein distance (no depth in common)", None, *(None for _ in others)]
    last = common[-1]
    law = reference.laws[last][1]
    laws = [other.laws[pairs[last]][1] for other, pairs in zip(others, shared, strict=True)]
    # one method for the whole row, so that its numbers can be compared
    names = [distance_name(law, found, manifold) for found in laws]
    exact = all("exact" in name for name in names)
    distances = [wasserstein(law, found, manifold, method="auto" if exact else "sliced") for found in laws]
    name = names[0] if exact else distance_name(law, laws[0], manifold, method="sliced")
    return [f"{name} at t = {times[last]:g}", None, *(_rounded(distance, 3) for distance in distances)]


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")
