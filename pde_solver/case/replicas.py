"""Independent runs of one method with random tokens: their mean, and how far one of them strays from it."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import t as student

from pde_solver.case.stored import Result, shared_depths
from pde_solver.errors import InputError
from pde_solver.measures import TokenMeasure
from pde_solver.observing import wasserstein
from pde_solver.observing.distances import Method

#: A sample whose values differ by less, relative to their size, differs by rounding alone.
ROUNDING = 1e-12


@dataclass(frozen=True)
class SampledHistory:
    """A quantity of R independent runs at the depths that all share.

    With q̄ = Σ_r q_r / R and s² = Σ_r |q_r − q̄|² / (R − 1), s is how far one run strays, and s / √R the standard error
    of the mean. For a vector both are lengths.

    Args:
        times: (n,) depths.
        mean: (n, ...) q̄.
        spread: (n,) s; exactly zero where the runs differ by rounding alone, or where there is one run.
        runs: R.
    """

    times: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    runs: int

    @classmethod
    def of(cls, histories: Sequence[tuple[np.ndarray, np.ndarray]]) -> "SampledHistory":
        """The mean of histories, each (depths (n,), values (n, ...))."""
        places = shared_depths([times for times, _ in histories])
        values = np.stack([found[places[:, r]] for r, (_, found) in enumerate(histories)])
        runs, mean = len(histories), values.mean(axis=0)
        if runs == 1:
            return cls(histories[0][0], values[0], np.zeros(len(places)), 1)
        squares = ((values - mean) ** 2).reshape(runs, len(places), -1).sum(axis=(0, 2))
        spread = np.sqrt(squares / (runs - 1))
        size = np.abs(values).reshape(runs, len(places), -1).max(axis=(0, 2), initial=0.0)
        return cls(histories[0][0][places[:, 0]], mean, np.where(spread <= ROUNDING * size, 0.0, spread), runs)


def standard_error(spread: float, runs: int, reference: Result, other: Result) -> float:
    """How far chance alone takes another result from the mean of R runs: s √(1/R + n/n′).

    n tokens were drawn in each run of the reference, n′ in the other result; a result on a mesh has no such error.

    Source: variances of independent means add, and fall with the number of independent tokens as 1/n.
    """
    ratio = reference.tokens.count / other.tokens.count if reference.tokens and other.tokens else 0.0
    return spread * math.sqrt(1 / runs + ratio)


def likely_errors(runs: int, share: float = 0.95) -> float:
    """How many standard errors, themselves estimated from R runs, cover a share of all samples (Student's t)."""
    return float(student.ppf((1 + share) / 2, runs - 1))


def distance_between(laws: Sequence[TokenMeasure], sample: Result, method: Method) -> float:
    """The mean distance between the laws of two independent runs: what the sampling alone amounts to."""
    return float(np.mean([wasserstein(a, b, sample.manifold, method=method) for a, b in combinations(laws, 2)]))


def check_replicas(reference: Result, replicas: Sequence[Result]) -> None:
    """Whether results are independent runs of one method.

    Raises:
        InputError: if the reference draws no tokens, a replica differs from it in more than the seed, or a seed
            comes twice.
    """
    if not replicas:
        return
    if reference.tokens is None:
        raise InputError(
            f"{reference.name}: its method ({reference.method}) has nothing random, so that there are no independent "
            "runs of it; give --replica only with particles drawn independently."
        )
    seen: dict[int, str] = {}
    for result in (reference, *replicas):
        difference = _first_difference(_problem(reference), _problem(result))
        if difference is not None:
            where, expected, found = difference
            raise InputError(
                f"{result.name}: is no independent run of {reference.name}, because {where} is {found} and there "
                f"{expected}; a replica differs in the seed alone."
            )
        assert result.tokens is not None  # as the reference
        seed = result.tokens.seed
        if seed in seen:
            raise InputError(
                f"{result.name}: has the same seed {seed} as {seen[seed]}, and so the same tokens; "
                "a replica needs another seed, discretisation.seed=..."
            )
        seen[seed] = result.name


def _problem(result: Result) -> dict[str, Any]:
    """What decides the solution, apart from the seed."""
    tables = tomllib.loads(result.case.problem_text)
    tables["discretisation"].pop("seed", None)
    return tables


def _first_difference(expected: Any, found: Any, where: str = "") -> tuple[str, Any, Any] | None:
    """The first key of nested tables, in dots, that differs, with both values."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        keys = [*expected, *(key for key in found if key not in expected)]
        pairs = [(f"{where}.{key}" if where else key, expected.get(key), found.get(key)) for key in keys]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(expected, found, strict=True))]
    else:
        return None if expected == found else (where, _words(expected), _words(found))
    differences = (_first_difference(a, b, place) for place, a, b in pairs)
    return next((difference for difference in differences if difference is not None), None)


def _words(value: Any) -> str:
    return "not given" if value is None else "another table" if isinstance(value, Mapping) else repr(value)
