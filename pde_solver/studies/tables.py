"""What a study leaves: one row a run, the quantities beside those of particles, and the picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mpi4py import MPI

from pde_solver.convergence import Study
from pde_solver.output import format_table, write_csv
from pde_solver.parallel import on_root
from pde_solver.studies.particles import CrossValidation

#: What a study leaves in its directory, beside the runs.
TABLE, PICTURE, QUANTITIES = "study.csv", "study.png", "quantities.csv"

_COLUMNS = ["run", "t", "quantity", "value", "mean of particles", "standard error", "discrepancy", "in standard errors"]


def write_tables(
    folder: Path, series: Sequence[Study], quantities: Mapping[str, CrossValidation], comm: MPI.Comm
) -> None:
    """Write study.csv, and quantities.csv if there are any, replacing them as a whole. Collective."""
    head, rows = _rows_of(series)
    write_csv(folder / TABLE, head, _exact(rows), comm)
    if quantities:
        lines = [
            [name, c.t, c.quantity, c.value, c.mean, c.standard_error, c.discrepancy, c.in_standard_errors]
            for name, cross in quantities.items()
            for c in cross.quantities
        ]
        write_csv(folder / QUANTITIES, _COLUMNS, _exact(lines), comm)


def draw_picture(folder: Path, series: Sequence[Study], title: str, comm: MPI.Comm) -> None:
    """Draw study.png. Collective."""

    def draw() -> None:
        from pde_solver.convergence.figure import draw_studies  # takes long to import

        draw_studies(folder / PICTURE, series, title)

    on_root(comm, draw)


def quantity_table(quantities: Mapping[str, CrossValidation]) -> str:
    """The recorded quantities of each run beside the mean of the particles, as text."""
    rows: list[list[object]] = []
    for name, cross in quantities.items():
        for i, c in enumerate(cross.quantities):
            judged = f"{c.in_standard_errors:.1f}" if c.standard_error > 0 else ""
            numbers = [f"{c.value:.7g}", f"{c.mean:.7g}", f"{c.standard_error:.2g}", f"{c.discrepancy:+.2g}", judged]
            rows.append([name if i == 0 else "", f"{c.t:g}", c.quantity, *numbers])
    head = ["run", "t", "quantity", "value", "particles", "± of the mean", "difference", "in ±"]
    return f"Recorded quantities beside the mean of the particles\n{format_table(rows, head)}"


def _rows_of(series: Sequence[Study]) -> tuple[list[str], list[list[object]]]:
    """One row for each run, with all errors and the orders."""
    names = list(dict.fromkeys(name for study in series for name in study.names))
    orders = [f"order of {name}" for name in names]
    head = ["series", "value", "abscissa", "resolution", "unknowns", "seconds", *names, *orders]
    rows: list[list[object]] = []
    for study in series:
        found = {name: study.orders(name) for name in study.names}
        for i, m in enumerate(study.measurements):
            observed = [float(found[n][i - 1]) if i and n in found and study.refines else None for n in names]
            start = [study.name, m.value, study.abscissa, m.resolution, m.unknowns, m.seconds]
            rows.append([*start, *(m.errors.get(n) for n in names), *observed])
    return head, rows


def _exact(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Real numbers to the last digit, NumPy's like Python's."""
    return [[repr(float(cell)) if isinstance(cell, float) else cell for cell in row] for row in rows]
