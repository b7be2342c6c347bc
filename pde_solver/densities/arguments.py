"""What the arguments of a law must be, and where a law can live."""

import numpy as np

from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Manifold, Sphere


def number(where: str, value: object, *, least: float = -np.inf) -> float:
    """A finite float ≥ least from what the user gave.

    Raises:
        InputError: `where` must be a finite number.
    """
    bound = "" if least == -np.inf else f" ≥ {least:g}"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{where} must be a finite number{bound}, found {value!r}.")
    if not np.isfinite(value) or value < least:
        raise InputError(f"{where} must be a finite number{bound}, found {value!r}.")
    return float(value)


def whole_number(where: str, value: object) -> int:
    """An int from what the user gave.

    Raises:
        InputError: `where` must be a whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{where} must be a whole number, found {value!r}.")
    return int(value)


def vector(where: str, value: object) -> tuple[float, ...]:
    """A tuple of finite floats from what the user gave; a single number is a vector of length one.

    Raises:
        InputError: `where` must be a vector of finite numbers.
    """
    try:
        array = np.atleast_1d(np.array(value, dtype=float))
    except (TypeError, ValueError):
        raise InputError(f"{where} must be a vector of numbers, found {value!r}.") from None
    if array.ndim != 1 or not array.size or not np.all(np.isfinite(array)):
        raise InputError(f"{where} must be a vector of finite numbers, found {value!r}.")
    return tuple(float(entry) for entry in array)


def direction(where: str, value: object) -> tuple[float, ...]:
    """The unit vector of any vector that is not zero.

    Raises:
        InputError: `where` must be a vector of at least two finite numbers, not all zero.
    """
    entries = np.array(vector(where, value))
    largest = np.abs(entries).max()
    if len(entries) < 2 or largest == 0:
        raise InputError(f"{where} must be a vector of at least two numbers, not all zero, found {value!r}.")
    if largest <= 1 and abs(np.linalg.norm(entries) - 1) <= 4 * np.finfo(float).eps:
        return tuple(float(entry) for entry in entries)  # so that what is printed can be read back to the last bit
    entries = entries / largest  # so that the norm neither overflows nor underflows
    return tuple(float(entry) for entry in entries / np.linalg.norm(entries))


def require_sphere(law: str, manifold: Manifold, dimension: int | None = None, *, instead: str = "Gaussian") -> Sphere:
    """The manifold, if it is the sphere in R^dimension.

    Raises:
        InputError: the law lives on a sphere; the sentence names what to take instead on R^d.
    """
    if not isinstance(manifold, Sphere):
        raise InputError(f"{law} lives on a sphere, but tokens live on {manifold}; try {instead}.")
    if dimension is not None and dimension != manifold.ambient_dimension:
        raise InputError(
            f"{law}: vectors are of length {dimension}, but {manifold} lies in R^{manifold.ambient_dimension}."
        )
    return manifold


def require_euclidean(law: str, manifold: Manifold, dimension: int, *, instead: str) -> None:
    """Refuse a manifold that is not R^dimension.

    Raises:
        InputError: the law lives on R^d; the sentence names what to take instead on a sphere.
    """
    if not isinstance(manifold, Euclidean):
        raise InputError(f"{law} lives on R^{dimension}, but tokens live on {manifold}; try {instead}.")
    if dimension != manifold.ambient_dimension:
        raise InputError(f"{law}: vectors are of length {dimension}, but tokens live on {manifold}.")
