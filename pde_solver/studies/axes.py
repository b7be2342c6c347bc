"""What a study varies: `KEY=VALUE,VALUE,...` on the command line, and the runs that come of it."""

import itertools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from pde_solver.errors import InputError

#: Keys whose values are themselves what errors are compared with, and what that is called.
ABSCISSAE = {
    "time.step": "step",
    "time.cfl": "cfl",
    "time.tolerance": "tolerance",
    "evaluation.tolerance": "tolerance",
    "discretisation.count": "n",
    "convergence.count": "n",
    "discretisation.quadrature_order": "quadrature order",
}
#: Keys that refine a mesh; the mesh itself says how fine it is.
MESH_KEYS = ("mesh.level", "mesh.cells", "mesh.path")


@dataclass(frozen=True)
class Axis:
    """One key and the values that it takes.

    Args:
        key: its path in the case, with dots.
        values: TOML text, from coarse to fine if the key refines.
    """

    key: str
    values: tuple[str, ...]

    @property
    def refines(self) -> bool:
        """Whether an error is expected to fall with a power of what it sets."""
        return self.key in MESH_KEYS or self.key in ABSCISSAE

    @property
    def abscissa(self) -> str:
        """What errors are compared with."""
        return "h" if self.key in MESH_KEYS else ABSCISSAE.get(self.key, self.key.rpartition(".")[2])

    @property
    def changes(self) -> list[str]:
        """The changes to the case, one for each value."""
        return [f"{self.key}={value}" for value in self.values]


@dataclass(frozen=True)
class Series:
    """Runs that differ in one key.

    Args:
        axis: that key with its values.
        shared: the changes that all of them have from other axes.
    """

    axis: Axis
    shared: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """All runs of a study.

    Args:
        changes: what all runs have.
        axes: what is varied, at least one.
    """

    changes: tuple[str, ...]
    axes: tuple[Axis, ...]

    @property
    def refined(self) -> Axis:
        """The axis of each series: the first that refines, else the first."""
        return next((axis for axis in self.axes if axis.refines), self.axes[0])

    @property
    def series(self) -> list[Series]:
        """One series for each combination of the other axes."""
        others = [axis.changes for axis in self.axes if axis is not self.refined]
        return [Series(self.refined, combination) for combination in itertools.product(*others)]


def plan_of(arguments: Sequence[str]) -> Plan:
    """The plan of a command line.

    Args:
        arguments: changes `key.path=value` and axes `key.path=value,value,...`.

    Raises:
        InputError: if nothing is varied, or a value is empty or given twice.
    """
    changes, axes = [], []
    for argument in arguments:
        key, equals, text = argument.partition("=")
        values = _values(text) if equals else [text]
        if len(values) == 1:
            changes.append(argument)
            continue
        if not all(values):
            raise InputError(f"converge: {argument}: a value is empty; give key.path=value,value,...")
        if len(set(values)) < len(values):
            raise InputError(f"converge: {argument}: a value is given twice.")
        axes.append(Axis(key.strip(), tuple(values)))
    keys = [axis.key for axis in axes]
    if len(set(keys)) < len(keys):
        raise InputError("converge: a key is varied twice; give all its values at once, key.path=value,value,...")
    if not axes:
        raise InputError(
            "converge: nothing is varied; give a key with several values, for example mesh.cells=64,128,256 or "
            "mesh.level=2,3,4."
        )
    return Plan(tuple(changes), tuple(axes))


def _values(text: str) -> list[str]:
    """The values between commas that stand in no bracket and no string; one if the whole is a TOML value."""
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        pass
    else:
        return [text]
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0 and not quote:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]
