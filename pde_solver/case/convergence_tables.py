"""The table [convergence]: what `pde-solver converge` holds the runs of a study against."""

from typing import Annotated, Literal

from pydantic import Field

from pde_solver.case.table import Count, NonNegativeCount, Table

Replicas = Annotated[int, Field(ge=2, description="a whole number ≥ 2, as one run says nothing about chance")]


class ClosedForm(Table):
    """reference = "closed-form": the exact solution of the case, where one is known."""

    reference: Literal["closed-form"]


class Finest(Table):
    """reference = "finest": the last run of each series."""

    reference: Literal["finest"]


class Tokens(Table):
    """reference = "particles": independent runs of the same case with tokens drawn from the initial law."""

    reference: Literal["particles"]
    count: Count = 4000
    replicas: Replicas = 8
    seed: NonNegativeCount = 1


ConvergenceTable = Annotated[ClosedForm | Finest | Tokens, Field(discriminator="reference")]
