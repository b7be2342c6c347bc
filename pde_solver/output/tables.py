"""Tables: the recorded quantities as CSV, and aligned text for people."""

import csv
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.output.atomic import cause, write_atomically

#: A quantity's history: depths (n,) and values (n, ...).
History = tuple[np.ndarray, np.ndarray]

_COMPONENT = re.compile(r"(.+)_(\d+)")


def write_history(path: str | os.PathLike[str], records: Mapping[str, History], comm: MPI.Comm) -> None:
    """Write recorded quantities as CSV, replacing the file as a whole. Collective.

    The first column is t; a vector makes columns name_0, name_1, ...; where quantities were recorded at different
    depths, the rows are all depths and a cell without a value is empty. Numbers are exact (17 digits where needed).

    Args:
        path: the file.
        records: name -> (depths (n,), values (n, ...)).
        comm: the ranks of the run; rank 0 writes.

    Raises:
        RunStopped: "<path>: writing failed (No space left on device); what was there before is intact."
    """
    columns: dict[str, dict[float, str]] = {}
    for name, (times, values) in records.items():
        table = np.asarray(values, dtype=float).reshape(len(times), -1)
        names = [name] if np.ndim(values) == 1 else [f"{name}_{i}" for i in range(table.shape[1])]
        for column, entries in zip(names, table.T, strict=True):
            columns[column] = {float(t): repr(float(entry)) for t, entry in zip(times, entries, strict=True)}
    depths = sorted({t for column in columns.values() for t in column})
    rows = [[repr(t), *(column.get(t, "") for column in columns.values())] for t in depths]
    write_csv(path, ["t", *columns], rows, comm)


def write_csv(
    path: str | os.PathLike[str], head: Sequence[str], rows: Sequence[Sequence[object]], comm: MPI.Comm
) -> None:
    """Write a CSV table, replacing the file as a whole. Collective.

    Args:
        path: the file.
        head: names of the columns.
        rows: cells, written as `str` has them; None is an empty one.
        comm: the ranks of the run; rank 0 writes.

    Raises:
        RunStopped: as `write_history`.
    """

    def write(temporary: Path) -> None:
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows)

    write_atomically(comm, path, write)


def read_history(path: str | os.PathLike[str]) -> dict[str, History]:
    """Read recorded quantities back: name -> (depths (n,), values (n,) or (n, components)). One process only.

    Raises:
        InputError: there is no such file, or it is not a table of quantities over t.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            header, *lines = list(csv.reader(file)) or [[]]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({cause(error)}).") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: not a CSV table of quantities.") from None
    if not header or header[0] != "t":
        raise InputError(f"{path}: not a CSV table of quantities; its first column must be t.")
    columns: dict[str, History] = {}
    for place, name in enumerate(header[1:], start=1):
        try:
            entries = [(float(line[0]), float(line[place])) for line in lines if line[place]]
        except (ValueError, IndexError):
            raise InputError(
                f"{path}: column {name} holds something else than numbers, or a row is cut short."
            ) from None
        times, values = np.array(entries, dtype=float).reshape(-1, 2).T
        columns[name] = (times, values)
    return _vectors(columns)


def _vectors(columns: dict[str, History]) -> dict[str, History]:
    """Put name_0, name_1, ... together again."""
    records: dict[str, History] = {}
    parts: dict[str, list[np.ndarray]] = {}
    for column, (times, values) in columns.items():
        match = _COMPONENT.fullmatch(column)
        name = match.group(1) if match else ""
        if match and int(match.group(2)) == len(parts.get(name, [])):
            parts.setdefault(name, []).append(values)
            records[name] = (times, np.column_stack(parts[name]))
        else:
            records[column] = (times, values)
    return records


def format_table(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> str:
    """A table as aligned plain text: text to the left, numbers to the right, floats with six digits.

    Args:
        rows: the cells; None is an empty one.
        headers: one for each column.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    numeric = [
        all(value is None or isinstance(value, int | float | np.number) for value in column)
        for column in (zip(*rows, strict=True) if rows else [()] * len(headers))
    ]

    def line(entries: Sequence[str]) -> str:
        aligned = (
            entry.rjust(width) if right else entry.ljust(width)
            for entry, width, right in zip(entries, widths, numeric, strict=True)
        )
        return "  ".join(aligned).rstrip()

    return "\n".join([line(headers), "  ".join("─" * width for width in widths), *map(line, cells)])


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)
