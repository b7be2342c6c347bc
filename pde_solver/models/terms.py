"""Velocities are sums of small terms; each term is a description, without numerics."""

import math
from dataclasses import dataclass

from pde_solver.errors import InputError


class Term:
    """One summand of a velocity. `a + b` is the velocity with both; `at(t)` is what acts around depth t."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Depths at which the parameters jump; a time step never crosses one."""
        return ()

    def at(self, t: float) -> "Term":
        """The term in force around depth t (between two breakpoints)."""
        return self

    def summands(self) -> tuple["Term", ...]:
        """The elementary terms of which this one is the sum."""
        return (self,)

    def check(self, dimension: int) -> None:
        """Raise InputError if the term cannot act on tokens of R^dimension."""

    def __add__(self, other: "Term") -> "Term":
        if not isinstance(other, Term):
            return NotImplemented
        return Sum((*self.summands(), *other.summands()))


@dataclass(frozen=True)
class Sum(Term):
    """A sum of terms, as built by `+`.

    Args:
        terms: the summands.
    """

    terms: tuple[Term, ...]

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """All depths at which any summand jumps."""
        return tuple(sorted({t for term in self.terms for t in term.breakpoints}))

    def at(self, t: float) -> Term:
        """The sum of the summands in force around depth t."""
        return Sum(tuple(part for term in self.terms for part in term.at(t).summands()))

    def summands(self) -> tuple[Term, ...]:
        """The elementary terms."""
        return self.terms

    def check(self, dimension: int) -> None:
        """Raise InputError if any summand cannot act on tokens of R^dimension."""
        for term in self.terms:
            term.check(dimension)


@dataclass(frozen=True)
class Layers(Term):
    """Parameters that are piecewise constant in depth: `velocities[i]` acts for boundaries[i−1] ≤ t < boundaries[i].

    Args:
        boundaries: (n − 1,) increasing depths at which the next velocity takes over.
        velocities: (n,) the velocity of each layer.

    Raises:
        InputError: if the numbers do not fit or the boundaries do not increase.
    """

    boundaries: tuple[float, ...]
    velocities: tuple[Term, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "boundaries", tuple(float(b) for b in self.boundaries))
        object.__setattr__(self, "velocities", tuple(self.velocities))
        if len(self.velocities) != len(self.boundaries) + 1:
            raise InputError(
                f"Layers: {len(self.velocities)} velocities need {len(self.velocities) - 1} boundaries, "
                f"found {len(self.boundaries)}."
            )
        if not all(isinstance(velocity, Term) for velocity in self.velocities):
            raise InputError(
                f"Layers: every layer must be Attention, Linear or a sum of them, found {self.velocities!r}."
            )
        increasing = all(a < b for a, b in zip(self.boundaries, self.boundaries[1:], strict=False))
        if not increasing or not all(map(math.isfinite, self.boundaries)):
            raise InputError(f"Layers: boundaries must be finite and increase, found {self.boundaries}.")
        if any(velocity.breakpoints for velocity in self.velocities):
            raise InputError(
                "Layers: a layer's velocity must itself be constant in depth; give one flat list of layers."
            )

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The boundaries between layers."""
        return self.boundaries

    def at(self, t: float) -> Term:
        """The velocity of the layer that holds depth t."""
        return self.velocities[sum(boundary <= t for boundary in self.boundaries)]

    def check(self, dimension: int) -> None:
        """Raise InputError if any layer cannot act on tokens of R^dimension."""
        for velocity in self.velocities:
            velocity.check(dimension)
