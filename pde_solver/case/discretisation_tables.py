"""The table [discretisation]: finite volumes, discontinuous Galerkin, or particles."""

from typing import Annotated, Literal

from pydantic import Field

from pde_solver import discretisations
from pde_solver.case.table import Count, NonNegativeCount, Table, Vector
from pde_solver.densities import box_quadrature, sphere_quadrature
from pde_solver.kernel_sums import Evaluation
from pde_solver.manifolds import Manifold
from pde_solver.mesh import Mesh
from pde_solver.models import Model

Degree = Annotated[int, Field(ge=1, le=3, description="1, 2 or 3")]
Order = Annotated[int, Field(ge=1, le=2, description="1 or 2")]


class FiniteVolume(Table):
    """kind = "finite-volume": one mean a cell."""

    kind: Literal["finite-volume"]
    order: Order = 2

    def default_scheme(self, manifold: Manifold) -> str:
        """The time scheme that fits the order in space."""
        return f"ssp-{discretisations.FiniteVolume.time_order_on(manifold)}"

    def build(self, model: Model, mesh: Mesh | None, evaluation: Evaluation) -> discretisations.Discretisation:
        """The discretisation."""
        assert mesh is not None  # the settings were checked for one
        return discretisations.FiniteVolume(model, mesh, order=self.order, evaluation=evaluation)


class DiscontinuousGalerkin(Table):
    """kind = "discontinuous-galerkin": one polynomial a cell."""

    kind: Literal["discontinuous-galerkin"]
    degree: Degree = 2

    def default_scheme(self, manifold: Manifold) -> str:
        """The time scheme that fits the order in space."""
        return f"ssp-{discretisations.DiscontinuousGalerkin.time_order_of(self.degree)}"

    def build(self, model: Model, mesh: Mesh | None, evaluation: Evaluation) -> discretisations.Discretisation:
        """The discretisation."""
        assert mesh is not None  # the settings were checked for one
        return discretisations.DiscontinuousGalerkin(model, mesh, degree=self.degree, evaluation=evaluation)


class IndependentTokens(Table):
    """kind = "particles", placement = "independent": tokens drawn from the initial law."""

    kind: Literal["particles"]
    placement: Literal["independent"]
    count: Count = 5000
    seed: NonNegativeCount = 0

    def default_scheme(self, manifold: Manifold) -> str:
        """The time scheme that fits tokens."""
        return "rk-5"

    def build(self, model: Model, mesh: Mesh | None, evaluation: Evaluation) -> discretisations.Discretisation:
        """The discretisation; it needs no mesh."""
        return discretisations.Particles(model, self.count, self.seed, evaluation=evaluation)


class PlacedTokens(Table):
    """kind = "particles", placement = "quadrature": weighted tokens at the points of a quadrature."""

    kind: Literal["particles"]
    placement: Literal["quadrature"]
    quadrature_order: Count = 32
    lower: Vector | None = None
    upper: Vector | None = None
    cells: list[Count] | None = None

    def default_scheme(self, manifold: Manifold) -> str:
        """The time scheme that fits tokens."""
        return "rk-5"

    def build(self, model: Model, mesh: Mesh | None, evaluation: Evaluation) -> discretisations.Discretisation:
        """The discretisation; it needs no mesh."""
        if self.lower is not None and self.upper is not None and self.cells is not None:
            quadrature = box_quadrature(self.lower, self.upper, self.cells, self.quadrature_order)
        else:
            quadrature = sphere_quadrature(model.manifold, self.quadrature_order)
        return discretisations.Particles(model, quadrature=quadrature, evaluation=evaluation)


DiscretisationTable = Annotated[
    FiniteVolume
    | DiscontinuousGalerkin
    | Annotated[IndependentTokens | PlacedTokens, Field(discriminator="placement")],
    Field(discriminator="kind"),
]
