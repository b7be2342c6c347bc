"""The table [labels]: positions of tokens, and whom a token attends to."""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from pde_solver.case.table import Count, NonNegative, Positive, Table
from pde_solver.labels import Labels
from pde_solver.positions import causal_mixing, position_labels

Slopes = Annotated[
    NonNegative | Annotated[list[NonNegative], Field(min_length=1)],
    Field(union_mode="left_to_right", description="a number ≥ 0 or a list of them, one for each head"),
]


class Everybody(Table):
    """mask = "none": positions in (0, 1], and everybody attends to everybody."""

    mask: Literal["none"]
    count: Count
    grading: Annotated[float, Field(ge=1, description="a number ≥ 1")] = 2.0

    def build(self) -> Labels:
        """The labels."""
        return position_labels(self.count, grading=self.grading, mixing=None)


class Causal(Table):
    """mask = "causal": a token attends to those before it, as far as a window reaches."""

    mask: Literal["causal"]
    count: Count
    grading: Annotated[float, Field(ge=1, description="a number ≥ 1")] = 2.0
    slope: Slopes = 0.0
    window: Positive | None = None

    def build(self) -> Labels:
        """The labels."""
        window = math.inf if self.window is None else self.window

        def mixing(edges: np.ndarray) -> np.ndarray:
            if isinstance(self.slope, list):
                return np.array([causal_mixing(edges, slope, window) for slope in self.slope])
            return causal_mixing(edges, self.slope, window)

        return position_labels(self.count, grading=self.grading, mixing=mixing)


LabelTable = Annotated[Causal | Everybody, Field(discriminator="mask")]
