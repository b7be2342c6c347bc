"""A check: a measured quantity beside what it should be. Tests, the validation suite and its report share it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pde_solver.convergence import Study
from pde_solver.errors import InputError

Relation = Literal["absolute", "relative", "at most", "at least"]

#: What an expected value that no paper states comes from.
DERIVED = "derived for this project"


@dataclass(frozen=True)
class Curve:
    """A line of a figure.

    Args:
        x: (n,).
        y: (n,).
        label: its name.
        expected: whether it is what should come out (drawn as a line) or what was measured (drawn as dots).
    """

    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    label: str
    expected: bool = False

    def __post_init__(self) -> None:
        if np.ndim(self.x) != 1 or np.shape(self.x) != np.shape(self.y):
            raise InputError(
                f"Curve {self.label!r}: x and y must be lists of one length, found {np.shape(self.x)} and {np.shape(self.y)}."
            )


@dataclass(frozen=True)
class Figure:
    """Measured values beside expected ones, for people to look at.

    Args:
        curves: what is drawn.
        x_label: of the horizontal axis.
        y_label: of the vertical axis.
        scale: "linear", "log-y" or "log-log".
    """

    curves: Sequence[Curve]
    x_label: str
    y_label: str
    scale: Literal["linear", "log-y", "log-log"] = "linear"


@dataclass(frozen=True)
class Check:
    """A measured quantity beside what it should be.

    With m what was measured and e what is expected, the error is max |m − e| ("absolute"), max |m − e| / max |e|
    ("relative"), max (m − e)⁺ ("at most") or max (e − m)⁺ ("at least"). The check passes if the error is ≤ the tolerance; a
    nan never passes.

    Args:
        quantity: what is measured, in words.
        measured: m, a number or an array.
        expected: e, a number or an array of the same shape.
        tolerance: the largest error that passes, ≥ 0.
        source: where e comes from: a paper with its arXiv number, or `DERIVED`.
        relation: how m is held against e.
        method: the discretisation, in words.
        study: error against resolution, which says why the tolerance is what it is; None only where the check is exact.
        exact: whether the error is rounding alone (or of a statement without error, such as an inequality).
        figure: what to look at beside the study.

    Raises:
        InputError: the shapes differ, the tolerance is negative, the relation is unknown, or neither study nor exact is given.
    """

    quantity: str
    measured: float | np.ndarray
    expected: float | np.ndarray
    tolerance: float
    source: str
    relation: Relation = "absolute"
    method: str = ""
    study: Study | None = None
    exact: bool = False
    figure: Figure | None = None

    def __post_init__(self) -> None:
        if np.shape(self.measured) != np.shape(self.expected):
            raise InputError(
                f"Check {self.quantity!r}: measured has shape {np.shape(self.measured)}, "
                f"expected {np.shape(self.expected)}; they must be the same."
            )
        if self.relation not in get_args(Relation):
            raise InputError(
                f"Check {self.quantity!r}: relation must be one of {', '.join(get_args(Relation))}, found {self.relation!r}."
            )
        if np.size(self.measured) == 0:
            raise InputError(f"Check {self.quantity!r}: nothing was measured; the array is empty.")
        if not 0 <= self.tolerance < math.inf:
            raise InputError(
                f"Check {self.quantity!r}: tolerance must be a finite number ≥ 0, found {self.tolerance!r}."
            )
        if self.study is None and not self.exact:
            raise InputError(
                f"Check {self.quantity!r}: give the study that justifies its tolerance, or exact=True if the error is rounding."
            )

    @property
    def errors(self) -> np.ndarray:
        """The error of each entry, in the units of `tolerance`."""
        m, e = (
            np.atleast_1d(np.asarray(self.measured, dtype=float)),
            np.atleast_1d(np.asarray(self.expected, dtype=float)),
        )
        match self.relation:
            case "absolute":
                return np.abs(m - e)
            case "relative":
                scale = np.abs(e).max()
                return np.abs(m - e) / scale if scale > 0 else np.where(m == e, 0.0, np.inf)
            case "at most":
                return np.where(np.isnan(m - e), np.nan, np.maximum(m - e, 0.0))
            case _:
                return np.where(np.isnan(m - e), np.nan, np.maximum(e - m, 0.0))

    @property
    def error(self) -> float:
        """The largest error."""
        errors = self.errors
        return math.nan if np.isnan(errors).any() else float(errors.max(initial=0.0))

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance."""
        return bool(self.error <= self.tolerance)

    @property
    def worst(self) -> tuple[float, float]:
        """The measured and the expected value where the error is largest (the first nan, if there is one)."""
        errors = self.errors.reshape(-1)
        place = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
        return float(np.reshape(self.measured, -1)[place]), float(np.reshape(self.expected, -1)[place])

    def require(self) -> None:
        """Fail a test.

        Raises:
            AssertionError: with the check as a sentence, unless it passes.
        """
        if not self.passed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        m, e = self.worst
        word = {"absolute": "expected", "relative": "expected"}.get(self.relation, f"expected {self.relation}")
        what = "relative error" if self.relation == "relative" else "error"
        verdict = "≤" if self.passed else "exceeds"
        return f"{self.quantity}: measured {m:.10g}, {word} {e:.10g}; {what} {self.error:.3g} {verdict} {self.tolerance:.3g}"
