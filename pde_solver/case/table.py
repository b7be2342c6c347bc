"""What every table of a case file has in common, and the kinds of values that stand in them."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Table(BaseModel):
    """A table of the case file: strict types, finite numbers, no unknown keys.

    The description of a field completes the sentence "found …, must be …".
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Number = Annotated[float, Field(description="a finite number")]
NonNegative = Annotated[float, Field(ge=0, description="a number ≥ 0")]
Positive = Annotated[float, Field(gt=0, description="a number > 0")]
Fraction = Annotated[float, Field(gt=0, le=1, description="a number in (0, 1]")]
Count = Annotated[int, Field(ge=1, description="a whole number ≥ 1")]
NonNegativeCount = Annotated[int, Field(ge=0, description="a whole number ≥ 0")]
Vector = Annotated[list[float], Field(min_length=1, description="a list of finite numbers")]


def _rectangular(rows: list[list[float]]) -> list[list[float]]:
    if len({len(row) for row in rows}) > 1:
        raise ValueError("rows of different lengths")
    return rows


Matrix = Annotated[
    list[Annotated[list[float], Field(min_length=1)]],
    Field(min_length=1, description="a matrix, a list of rows of one length of finite numbers"),
    AfterValidator(_rectangular),
]
FilePath = Annotated[str, Field(min_length=1, description="a path")]
