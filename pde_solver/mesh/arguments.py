"""Checks of what users pass to the mesh builders."""

import math
from collections.abc import Sequence

import numpy as np

from pde_solver.errors import InputError

#: More cells than this are refused: rank 0 holds the whole mesh before it is distributed.
MOST_CELLS = 64_000_000
#: Peak memory on rank 0 while DOLFINx builds a mesh; measured 380 to 630 for all kinds of cells.
BYTES_PER_CELL = 600


def whole_number(where: str, value: int, least: int, most: int | None = None) -> int:
    """The value as an int, if it is a whole number between `least` and `most`.

    Args:
        where: for the sentence, for example "icosphere: level".
        value: what the user passed.
        least: the smallest number allowed.
        most: the largest number allowed; None for no limit.

    Raises:
        InputError: if it is not.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and value >= least and (most is None or value <= most):
        return int(value)
    allowed = f"≥ {least}" if most is None else f"from {least} to {most}"
    raise InputError(f"{where} must be a whole number {allowed}, found {value!r}.")


def corners(
    where: str, lower: float | Sequence[float], upper: float | Sequence[float], dimension: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corner of a box as float arrays (dimension,), if they span one.

    Raises:
        InputError: if they have another length, are not finite numbers, or lower ≥ upper in a coordinate.
    """
    found = []
    for name, corner in (("lower", lower), ("upper", upper)):
        try:
            array = np.array(corner, dtype=float, ndmin=1)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.shape != (dimension,) or not np.isfinite(array).all():
            numbers = "one finite number" if dimension == 1 else f"{dimension} finite numbers"
            raise InputError(f"{where}: {name} must be {numbers}, found {corner!r}.")
        found.append(array)
    for axis, (low, high) in enumerate(zip(*found, strict=True)):
        if not low < high:
            name = "" if dimension == 1 else f" in coordinate {axis}"
            raise InputError(f"{where}: lower must be below upper{name}, found {low:g} and {high:g}.")
    return found[0], found[1]


def whole_numbers(where: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    """As many whole numbers ≥ 1 as there are coordinates.

    Raises:
        InputError: if the length is another, or one of them is not a whole number ≥ 1.
    """
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str) or len(values) != count:
        raise InputError(f"{where} must be {count} whole numbers ≥ 1, one for each coordinate, found {values!r}.")
    return tuple(whole_number(where, value, 1) for value in values)


def check_size(where: str, cells: int) -> None:
    """Refuse a mesh that would exhaust the memory long before anything is computed on it.

    Raises:
        InputError: if there are more than 64 million cells; with an estimate of the memory.
    """
    if cells > MOST_CELLS:
        gigabytes = math.ceil(BYTES_PER_CELL * cells / 1e9)
        raise InputError(
            f"{where} would make {cells:,} cells, which take about {gigabytes:,} GB before anything is computed; "
            f"at most {MOST_CELLS:,} are allowed, take fewer."
        )
