"""A convergence study: the same thing computed at several resolutions, its errors, and the orders that they show."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from pde_solver.convergence.stored import read_measurements, write_study
from pde_solver.errors import InputError, did_you_mean
from pde_solver.output import format_table
from pde_solver.parallel import max_over_ranks, on_root


@dataclass(frozen=True)
class Measurement:
    """What one computation of a study gave.

    Args:
        resolution: x > 0, what the errors are compared with: a mesh width h, a step, a number of tokens.
        errors: name -> error ≥ 0, such as "L1" or "W1".
        unknowns: how many unknowns it took; None if that says nothing.
        seconds: its wall time.
        value: what was varied, as it was given: 64, "mesh.cells=64".
    """

    resolution: float
    errors: Mapping[str, float]
    unknowns: int | None = None
    seconds: float = 0.0
    value: str = ""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.resolution) and self.resolution > 0):
            raise InputError(f"Measurement: resolution must be a finite number > 0, found {self.resolution!r}.")
        negative = {name: error for name, error in self.errors.items() if error < 0}
        if negative:
            raise InputError(f"Measurement: errors are distances ≥ 0, found {negative}.")


@dataclass(frozen=True)
class Study:
    """Measurements at several resolutions.

    The observed order between two of them is log(e₁ / e₂) / log(x₁ / x₂): the p of e ~ x^p. It is nan where an error is 0.

    Args:
        measurements: in the order in which they were asked for.
        abscissa: what x is: "h", "step", "n".
        name: what the study is called.
        refines: whether errors are expected to go with a power of x; if not, tables show no orders.
    """

    measurements: tuple[Measurement, ...]
    abscissa: str = "h"
    name: str = field(default="", kw_only=True)
    refines: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not self.measurements:
            raise InputError("Study: give at least one measurement.")

    @property
    def names(self) -> list[str]:
        """The errors that were measured."""
        return list(dict.fromkeys(name for measurement in self.measurements for name in measurement.errors))

    @property
    def resolutions(self) -> np.ndarray:
        """x, (n,)."""
        return np.array([measurement.resolution for measurement in self.measurements])

    def errors(self, name: str) -> np.ndarray:
        """The errors of one name, (n,).

        Raises:
            InputError: there is none of this name.
        """
        if name not in self.names:
            raise InputError(f"Study: no error {name!r}; {did_you_mean(name, self.names)}")
        return np.array([measurement.errors.get(name, math.nan) for measurement in self.measurements])

    def orders(self, name: str) -> np.ndarray:
        """The observed order between each measurement and the one before, (n − 1,)."""
        x, e = np.log(self.resolutions), _logarithm(self.errors(name))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.diff(e) / np.diff(x)

    def order(self, name: str) -> float:
        """The observed order between the last two measurements."""
        orders = self.orders(name)
        return float(orders[-1]) if len(orders) else math.nan

    def fitted_order(self, name: str) -> float:
        """The slope of the least-squares line through all log e against log x; nan with fewer than two errors > 0."""
        x, e = np.log(self.resolutions), _logarithm(self.errors(name))
        kept = np.isfinite(e)
        if np.ptp(x[kept]) == 0 if kept.any() else True:
            return math.nan
        return float(np.polyfit(x[kept], e[kept], 1)[0])

    def last(self, name: str) -> float:
        """The error of the last measurement."""
        return float(self.errors(name)[-1])

    def rows(self) -> tuple[list[str], list[list[object]]]:
        """Head and rows of a table: value, x, unknowns, each error with its order, seconds."""
        varied = any(m.value and m.value != f"{m.resolution:g}" for m in self.measurements)
        counted = any(m.unknowns is not None for m in self.measurements)
        head = [*(["value"] if varied else []), self.abscissa, *(["unknowns"] if counted else [])]
        head += [text for name in self.names for text in ([name, "order"] if self.refines else [name])] + ["seconds"]
        count = len(self.measurements)
        orders = {n: [None, *_rounded(self.orders(n))] if self.refines else [None] * count for n in self.names}
        table = []
        for i, m in enumerate(self.measurements):
            row: list[object] = [*([m.value] if varied else []), float(f"{m.resolution:.4g}")]
            row += [m.unknowns] if counted else []
            for name in self.names:
                error = m.errors.get(name)
                row += [None if error is None else float(f"{error:.3g}"), *([orders[name][i]] if self.refines else [])]
            table.append([*row, float(f"{m.seconds:.3g}")])
        return head, table

    def __str__(self) -> str:
        """The table, and the fitted orders where there are more than two resolutions."""
        head, table = self.rows()
        text = format_table(table, head)
        if self.refines and len(self.measurements) > 2:
            fits = [f"{name} {fit:.2f}" for name in self.names if np.isfinite(fit := self.fitted_order(name))]
            text += f"\nfitted orders: {', '.join(fits)}" if fits else ""
        return f"{self.name}\n{text}" if self.name else text

    def write_csv(self, path: str | Path, comm: MPI.Comm = MPI.COMM_SELF) -> None:
        """Write value, x, unknowns, seconds, errors and orders, replacing the file as a whole. Collective.

        Raises:
            RunStopped: if it cannot be written.
        """
        write_study(path, self.abscissa, self.measurements, {name: self.orders(name) for name in self.names}, comm)


def converge(
    run: Callable[[Any], Measurement | Mapping[str, float] | float],
    values: Iterable[Any],
    *,
    resolution: Callable[[Any], float] = float,
    abscissa: str = "h",
    name: str = "",
    store: str | Path | None = None,
    tell: Callable[[Study], object] = lambda study: None,
    comm: MPI.Comm = MPI.COMM_WORLD,
) -> Study:
    """Compute the same thing at several resolutions, and see how fast the error falls. Collective.

    Args:
        run: value -> the error, several errors by name, or a whole `Measurement` (see `measured`).
        values: what is varied: numbers of cells, levels, steps, from coarse to fine.
        resolution: value -> x, unless `run` says it; by default the value itself.
        abscissa: what x is called.
        name: what the study is called.
        store: a CSV file that is written after every run; a study that was interrupted goes on from it, so the name
            must belong to what `run` computes.
        tell: called with the study as it is after every run.
        comm: the ranks that run together.

    Returns:
        The study: `print(study)` is a table.

    Raises:
        InputError: there are no values, or the stored file holds another study.

    Example:
        >>> study = converge(lambda h: abs(np.sin(h) / h - 1), [0.4, 0.2, 0.1])
        >>> round(study.order("error"), 1)
        2.0
    """
    values = list(values)
    if not values:
        raise InputError("converge: give at least one value.")
    remembered: dict[str, Measurement] = {}
    if store is not None:
        rows = on_root(comm, lambda: read_measurements(Path(store), abscissa))
        remembered = {row["value"]: Measurement(**row) for row in rows}
    found: dict[str, Measurement] = {}
    for value in values:
        text = str(value)
        if text not in remembered:
            began = time.perf_counter()
            result = run(value)
            seconds = float(max_over_ranks(comm, time.perf_counter() - began))
            remembered[text] = _measurement(result, text, seconds, value, resolution)
        found[text] = remembered[text]
        study = Study(tuple(found.values()), abscissa, name=name)
        if store is not None:  # with what was stored and has not come up again
            Study(tuple((found | remembered).values()), abscissa).write_csv(store, comm)
        tell(study)
    return study


def _measurement(result, text: str, seconds: float, value, resolution: Callable[[Any], float]) -> Measurement:
    """What a run gave, under the name of what was varied."""
    if isinstance(result, Measurement):
        return replace(result, value=text, seconds=result.seconds or seconds)
    errors = result if isinstance(result, Mapping) else {"error": result}
    return Measurement(resolution(value), {name: float(error) for name, error in errors.items()}, None, seconds, text)


def _logarithm(errors: np.ndarray) -> np.ndarray:
    """log e, and nan for e = 0, which no power law describes."""
    return np.log(np.where(errors > 0, errors, np.nan))


def _rounded(orders: np.ndarray) -> list[float | None]:
    return [float(f"{order:.2f}") + 0.0 if np.isfinite(order) else None for order in orders]  # + 0.0: no −0
