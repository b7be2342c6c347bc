"""The table [model]: where tokens live and what moves them."""

from functools import reduce
from operator import add
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from pde_solver import models
from pde_solver.case.table import Count, Matrix, NonNegative, Number, Table, Vector
from pde_solver.labels import Labels
from pde_solver.manifolds import Euclidean, Manifold, Sphere


class Attention(Table):
    """[[model.attention]]: one attention head; several heads add up."""

    beta: NonNegative = 1.0
    normaliser: Literal["softmax", "unnormalised", "l2"] = "softmax"
    log_scale: Number | None = None
    weight: Number = 1.0
    query: Matrix | None = None
    key: Matrix | None = None
    value: Matrix | None = None

    @model_validator(mode="after")
    def _log_scale_belongs_to_unnormalised(self) -> Self:
        if self.log_scale is not None and self.normaliser != "unnormalised":
            raise ValueError(
                f'log_scale: does not apply to normaliser = "{self.normaliser}"; it belongs to "unnormalised"'
            )
        return self

    def build(self) -> models.Attention:
        """The head."""
        normaliser: models.Normaliser = models.Softmax()
        if self.normaliser == "unnormalised":
            normaliser = models.Unnormalised(self.log_scale or 0.0)
        elif self.normaliser == "l2":
            normaliser = models.L2()
        return models.Attention(
            self.beta, _matrix(self.query), _matrix(self.key), _matrix(self.value), normaliser, self.weight
        )


class Linear(Table):
    """[model.linear]: an affine drift, W x + b."""

    matrix: Matrix | None = None
    offset: Vector | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.matrix is None and self.offset is None:
            raise ValueError("empty; give matrix, offset or both")
        return self

    def build(self) -> models.Linear:
        """The drift."""
        return models.Linear(_matrix(self.matrix), None if self.offset is None else np.array(self.offset))


class Layer(Table):
    """[[model.layers]]: the velocity that acts until a depth; the last layer acts for ever."""

    until: Number | None = None
    attention: Annotated[list[Attention], Field(description="an array of tables [[model.layers.attention]]")] = Field(
        default_factory=list
    )
    linear: Linear | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.attention and self.linear is None:
            raise ValueError("no velocity; give attention, linear or both")
        return self

    def build(self) -> models.Term:
        """The sum of heads and drift."""
        return _velocity(self.attention, self.linear)


class Model(Table):
    """[model]: the manifold and the velocity; [[model.layers]] where the velocity jumps with depth."""

    manifold: Literal["sphere", "circle", "euclidean"]
    dimension: Annotated[
        Count | None, Field(description="a whole number ≥ 1, the number of coordinates of a token (3 for S²)")
    ] = None
    attention: Annotated[list[Attention], Field(description="an array of tables [[model.attention]]")] = Field(
        default_factory=list
    )
    linear: Linear | None = None
    layers: Annotated[list[Layer], Field(description="an array of tables [[model.layers]]")] = Field(
        default_factory=list
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.dimension is None and self.manifold != "circle":
            raise ValueError("dimension: missing; give the number of coordinates of a token (3 for S² and for R³)")
        if self.manifold == "circle" and self.dimension not in (None, 2):
            raise ValueError(f"dimension: found {self.dimension}, must be 2 on a circle")
        if self.manifold == "sphere" and self.dimension == 1:
            raise ValueError("dimension: found 1, must be ≥ 2 on a sphere (3 for S²)")
        if self.layers and (self.attention or self.linear is not None):
            raise ValueError("give either attention and linear, or layers, not both")
        if not self.layers and not self.attention and self.linear is None:
            raise ValueError("no velocity; add [[model.attention]], [model.linear] or [[model.layers]]")
        boundaries = [layer.until for layer in self.layers[:-1]]
        if None in boundaries:
            raise ValueError(f"layers[{boundaries.index(None)}].until: missing; only the last layer acts for ever")
        if self.layers and self.layers[-1].until is not None:
            raise ValueError(f"layers[{len(self.layers) - 1}].until: leave it out, the last layer acts for ever")
        if sorted(set(boundaries), key=float) != boundaries:  # type: ignore[arg-type]  # no None is left
            raise ValueError(f"layers: the depths `until` must increase, found {boundaries}")
        return self

    def place(self) -> Manifold:
        """Where tokens live."""
        assert self.dimension is not None  # checked, and filled in for the circle
        return Euclidean(self.dimension) if self.manifold == "euclidean" else Sphere(self.dimension)

    def meshes(self) -> tuple[str, ...]:
        """The kinds of meshes that there are of this manifold."""
        kinds: dict[Manifold, tuple[str, ...]] = {
            Sphere(2): ("circle", "file"),
            Sphere(3): ("icosphere", "cubed-sphere", "file"),
            Euclidean(1): ("interval", "file"),
            Euclidean(2): ("rectangle", "file"),
            Euclidean(3): ("box", "file"),
        }
        return kinds.get(self.place(), ())

    def build(self, labels: Labels) -> models.Model:
        """The model."""
        manifold = self.place()
        if not self.layers:
            return models.Model(manifold, _velocity(self.attention, self.linear), labels)
        boundaries = tuple(layer.until for layer in self.layers if layer.until is not None)
        velocity = models.Layers(boundaries, tuple(layer.build() for layer in self.layers))
        return models.Model(manifold, velocity, labels)


def _velocity(attention: list[Attention], linear: Linear | None) -> models.Term:
    terms: list[models.Term] = [head.build() for head in attention]
    if linear is not None:
        terms.append(linear.build())
    return reduce(add, terms)


def _matrix(rows: list[list[float]] | None) -> np.ndarray | None:
    return None if rows is None else np.array(rows)
