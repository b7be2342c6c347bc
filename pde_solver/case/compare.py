"""Results side by side: how far they differ from those of a reference, and how much of that may be chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.case.replicas import (
    SampledHistory,
    check_replicas,
    distance_between,
    likely_errors,
    standard_error,
)
from pde_solver.case.stored import Result, read_result, shared_depths
from pde_solver.errors import InputError
from pde_solver.observing import distance_name, wasserstein
from pde_solver.observing.distances import Method
from pde_solver.output import format_table
from pde_solver.parallel import on_root

#: Head of the column with the standard deviation of one run.
SPREAD = "± (one run)"


def comparison(
    reference: Path, others: Sequence[Path], replicas: Sequence[Path] = (), comm: MPI.Comm = MPI.COMM_WORLD
) -> str:
    """A table: every recorded quantity and the distance of the laws at the last depth that results share. Collective.

    Args:
        reference: a directory of results.
        others: the directories that are compared with it.
        replicas: directories of independent runs of the reference; its column then is the mean over all of them.
        comm: the ranks that want it; rank 0 reads.

    Raises:
        InputError: on all ranks, if a directory holds no results, or results of another manifold, or a replica
            differs from the reference in more than the seed.
    """

    def compare() -> str:
        runs = [read_result(folder) for folder in (reference, *replicas)]
        return comparison_of(runs, [read_result(folder) for folder in others])

    return on_root(comm, compare)


def comparison_of(runs: Sequence[Result], others: Sequence[Result]) -> str:
    """The table of `comparison` from results that are read already.

    Args:
        runs: the reference and its replicas.
        others: what is compared with it.

    Raises:
        InputError: as `comparison`.
    """
    check_replicas(runs[0], runs[1:])
    for other in others:
        if other.manifold != runs[0].manifold:
            raise InputError(
                f"{other.name}: its tokens live on {other.manifold}, those of {runs[0].name} on "
                f"{runs[0].manifold}; there is nothing to compare."
            )
    return _Comparison(runs, others).text()


@dataclass(frozen=True)
class _Comparison:
    runs: Sequence[Result]
    others: Sequence[Result]

    def text(self) -> str:
        """Who is compared, what the columns mean, and the table."""
        own, *names = _short_names([self.runs[0], *self.others])
        columns = [(own, _method(self.runs[0]))]
        if self._is_sample:
            meaning = f"standard deviation of these {len(self.runs)} runs: what other random tokens change"
            columns = [(f"mean of {len(self.runs)}", self._sample_method()), (SPREAD, meaning)]
        columns += [(name, _method(other)) for name, other in zip(names, self.others, strict=True)]
        width = max(len(name) for name, _ in columns)
        legend = "\n".join(f"{name:{width}}  {meaning}" for name, meaning in columns)
        rows = [row for quantity in self._quantities() for row in self._differences(quantity)]
        table = format_table([*rows, self._distances()], ["quantity", *(name for name, _ in columns)])
        return f"{legend}\n\n{self._explanation(own)}\n\n{table}"

    @property
    def _is_sample(self) -> bool:
        return len(self.runs) > 1

    def _sample_method(self) -> str:
        tokens = [run.tokens for run in self.runs if run.tokens is not None]
        seeds = ", ".join(str(table.seed) for table in tokens)
        notes = "".join(f" ({run.name} is {run.note})" for run in self.runs if run.note)
        return f"particles, {tokens[0].count} tokens drawn independently, seeds {seeds}{notes}"

    def _explanation(self, own: str) -> str:
        count = len(self.runs)
        if not self._is_sample:
            text = f"The column {own} has the values, the others their differences from them."
        else:
            which = " for a result without random tokens" if any(other.tokens for other in self.others) else ""
            text = (
                "The last columns are differences from that mean, in brackets in units of their standard error\n"
                f"σ = ±/√{count}{which}; chance alone stays within {likely_errors(count):.1f}σ in 95 of 100 cases.\n"
                f"The Wasserstein distance is the mean over the {count} runs; under ± it is that between two of them, and "
                "an exact\nlaw would stay below."
            )
        missing = [name for name in self._quantities() if not all(name in run.history for run in self.runs)]
        if missing:
            text += f"\nWhere the reference has no value ({', '.join(missing)}), the others show theirs."
        return text

    def _quantities(self) -> list[str]:
        """Those of the reference, then those that only others have."""
        shared = [name for name in self.runs[0].history if all(name in run.history for run in self.runs)]
        return list(dict.fromkeys([*shared, *(name for other in self.others for name in other.history)]))

    def _differences(self, quantity: str) -> list[list[object]]:
        """Two rows: at the last depth that all share (the reference's own value first), and the largest over all."""
        if not all(quantity in run.history for run in self.runs):
            return [self._own_values(quantity)]
        sample = SampledHistory.of([run.history[quantity] for run in self.runs])
        histories = [other.history.get(quantity) for other in self.others]
        common = shared_depths([sample.times, *(history[0] for history in histories if history is not None)])[:, 0]
        if not len(common) or all(history is None for history in histories):
            return [self._row(f"{quantity} (no depth in common)", None, None, [None] * len(self.others))]
        last = int(common[-1])
        at_last: list[str | float | None] = []
        largest: list[str | float | None] = []
        for other, history in zip(self.others, histories, strict=True):
            if history is None:
                at_last.append(None)
                largest.append(None)
                continue
            places = shared_depths([sample.times, history[0]])
            differences = {int(i): _difference(history[1][j], sample.mean[i]) for i, j in places}
            at_last.append(self._judged(differences[last], sample.spread[last], other))
            largest.append(self._shown(max(map(abs, differences.values()))))
        return [
            self._row(
                f"{quantity} at t = {sample.times[last]:g}", _size(sample.mean[last]), sample.spread[last], at_last
            ),
            self._row("  largest over depths", None, sample.spread.max(), largest),
        ]

    def _row(self, name: str, value: float | None, spread: float | None, cells: Sequence[object]) -> list[object]:
        start: list[object] = [name, None if value is None else _rounded(value, 6)]
        if self._is_sample:
            start.append(None if spread is None else _rounded(spread, 2))
        return [*start, *cells]

    def _judged(self, difference: float, spread: float, other: Result) -> str | float:
        """A difference, and beside a sample also in units of its standard error."""
        if not self._is_sample:
            return self._shown(difference)
        unit = standard_error(spread, len(self.runs), self.runs[0], other)
        found = f"{difference:+#.3g}" if difference else "0"
        return f"{found} ({abs(difference) / unit:.1f}σ)" if unit > 0 else found

    def _shown(self, value: float) -> str | float:
        """A number in the columns of the others, which hold words beside a sample."""
        return (f"{value:#.3g}" if value else "0") if self._is_sample else _rounded(value, 3)

    def _own_values(self, quantity: str) -> list[object]:
        """One row: the values at the last depth that those share that have them."""
        histories = [other.history.get(quantity) for other in self.others]
        places = shared_depths([history[0] for history in histories if history is not None])
        if not len(places):
            return self._row(f"{quantity} (no depth in common)", None, None, [None] * len(self.others))
        last = iter(places[-1])
        depth = 0.0
        cells: list[str | float | None] = []
        for history in histories:
            if history is None:
                cells.append(None)
                continue
            place = next(last)
            depth = history[0][place]
            cells.append(self._shown(_size(history[1][place])))
        return self._row(f"{quantity} at t = {depth:g}", None, None, cells)

    def _distances(self) -> list[object]:
        """One row: Wasserstein distances at the last depth at which all laws were kept."""
        results = [*self.runs, *self.others]
        places = shared_depths([np.array([t for t, _ in result.laws]) for result in results])
        if not len(places):
            return self._row("Wasserstein distance (no depth in common)", None, None, [None] * len(self.others))
        laws = [result.laws[place][1] for result, place in zip(results, places[-1], strict=True)]
        sample, found = laws[: len(self.runs)], laws[len(self.runs) :]
        manifold = self.runs[0].manifold
        # one method for the whole row, so that its numbers can be compared
        names = [distance_name(sample[0], law, manifold) for law in laws[1:]]
        exact = all("exact" in name for name in names)
        method: Method = "auto" if exact else "sliced"
        name = names[0] if exact else distance_name(sample[0], laws[1], manifold, method=method)
        distances = [
            float(np.mean([wasserstein(run, law, manifold, method=method) for run in sample])) for law in found
        ]
        floor = distance_between(sample, self.runs[0], method) if self._is_sample else None
        depth = self.runs[0].laws[places[-1][0]][0]
        return self._row(f"{name} at t = {depth:g}", None, floor, list(map(self._shown, distances)))


def _short_names(results: Sequence[Result]) -> list[str]:
    short = [Path(result.name).resolve().name for result in results]
    return short if len(set(short)) == len(short) else [result.name for result in results]


def _method(result: Result) -> str:
    return f"{result.method} ({result.note})" if result.note else result.method


def _difference(value: np.ndarray, reference: np.ndarray) -> float:
    """Signed for numbers, Euclidean length for vectors."""
    difference = np.asarray(value) - np.asarray(reference)
    return float(difference) if difference.ndim == 0 else float(np.linalg.norm(difference))


def _size(value: np.ndarray) -> float:
    return float(value) if np.ndim(value) == 0 else float(np.linalg.norm(value))


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")
