"""A convergence study as a CSV file: one row a run, exact to the last digit, so that a study can go on from it."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.output import write_csv
from pde_solver.output.atomic import cause

#: Columns that every study has, beside x; what follows are errors, then their orders.
VALUE, UNKNOWNS, SECONDS, ORDER = "value", "unknowns", "seconds", "order of "


def write_study(
    path: str | Path, abscissa: str, measurements: Iterable[Any], orders: Mapping[str, np.ndarray], comm: MPI.Comm
) -> None:
    """Write measurements (with `value`, `resolution`, `unknowns`, `seconds`, `errors`) and their orders. Collective.

    Raises:
        RunStopped: if it cannot be written.
    """
    names = list(orders)
    rows = []
    for i, m in enumerate(measurements):
        unknowns = "" if m.unknowns is None else str(m.unknowns)
        errors = [repr(float(m.errors[name])) if name in m.errors else "" for name in names]
        observed = [repr(float(orders[name][i - 1])) if i else "" for name in names]
        rows.append([m.value, repr(float(m.resolution)), unknowns, repr(float(m.seconds)), *errors, *observed])
    write_csv(path, [VALUE, abscissa, UNKNOWNS, SECONDS, *names, *(ORDER + name for name in names)], rows, comm)


def read_measurements(path: Path, abscissa: str) -> list[dict[str, Any]]:
    """The rows of a stored study as arguments of `Measurement`; none if there is no such file. One process only.

    Raises:
        InputError: the file is no study, or one over another abscissa.
    """
    if not path.exists():
        return []
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = cause(error) if isinstance(error, OSError) else "it is no CSV table"
        raise InputError(f"{path}: cannot be read ({reason}); remove it to begin the study anew.") from None
    columns = list(rows[0]) if rows else [VALUE, abscissa, UNKNOWNS, SECONDS]
    if columns[:4] != [VALUE, abscissa, UNKNOWNS, SECONDS]:
        raise InputError(
            f"{path}: holds no study over {abscissa}; its columns are {', '.join(columns[:4])}. "
            "Give another file, or remove it."
        )
    names = [column for column in columns[4:] if not column.startswith(ORDER)]
    try:
        return [
            {
                "value": row[VALUE],
                "resolution": float(row[abscissa]),
                "unknowns": int(row[UNKNOWNS]) if row[UNKNOWNS] else None,
                "seconds": float(row[SECONDS]),
                "errors": {name: float(row[name]) for name in names if row[name]},
            }
            for row in rows
        ]
    except (TypeError, ValueError):
        raise InputError(f"{path}: a row is damaged; remove the file to begin the study anew.") from None
