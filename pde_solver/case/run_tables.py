"""The tables [time], [evaluation] and [output]: how far, by which scheme, how accurately, and what is kept."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pde_solver import kernel_sums, stepping
from pde_solver.case.table import Count, FilePath, Fraction, Number, Positive, Table

Tolerance = Annotated[float, Field(gt=0, lt=1, description="a number in (0, 1)")]


class Time(Table):
    """What both families of schemes have."""

    stop: Number
    start: Number = 0.0
    cfl: Fraction = 0.9
    step: Positive | None = None
    max_steps: Count = 10_000_000

    @model_validator(mode="after")
    def _stop_is_beyond_start(self) -> Self:
        if self.stop <= self.start:
            raise ValueError(f"stop: found {self.stop:g}, must be greater than start = {self.start:g}")
        return self


class StrongStability(Time):
    """scheme = "ssp-2", "ssp-3" or "ssp-4": a density stays ≥ 0."""

    scheme: Literal["ssp-2", "ssp-3", "ssp-4"]

    def build(self) -> stepping.Scheme:
        """The scheme."""
        return stepping.SSP(int(self.scheme[-1]), self.cfl, self.step)


class ErrorControl(Time):
    """scheme = "rk-3" or "rk-5": the step follows an estimate of the error."""

    scheme: Literal["rk-3", "rk-5"]
    tolerance: Tolerance = 1e-8

    def build(self) -> stepping.Scheme:
        """The scheme."""
        return stepping.EmbeddedRK(int(self.scheme[-1]), self.tolerance, self.cfl, self.step)


TimeTable = Annotated[StrongStability | ErrorControl, Field(discriminator="scheme")]


class Evaluation(Table):
    """[evaluation]: how the nonlocal velocity is evaluated."""

    tolerance: Annotated[float, Field(gt=0, le=0.1, description="a number in (0, 0.1]")] = 1e-6
    method: Literal["automatic", "dense", "circle", "sphere", "tensor", "rotated"] = "automatic"

    def build(self) -> kernel_sums.Evaluation:
        """Tolerance and method."""
        return kernel_sums.Evaluation(self.tolerance, self.method)


class Output(Table):
    """[output]: what a run leaves behind, and how often. Intervals are depths."""

    directory: FilePath | None = None
    quantities: Annotated[list[str], Field(min_length=1, description="a list of names of quantities")] = Field(
        default_factory=lambda: ["mass", "interaction_energy", "order_parameter"]
    )
    every: Positive = 0.1
    fields_every: Positive = 1.0
    checkpoint_every: Positive = 1.0
    figure: bool = True
    title: str | None = None
