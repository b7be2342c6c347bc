"""The table [mesh]: what carries the density."""

import math
from typing import Annotated, Literal

from mpi4py import MPI
from pydantic import Field

from pde_solver import mesh
from pde_solver.case.table import Count, FilePath, NonNegativeCount, Table
from pde_solver.manifolds import Manifold

GeometryDegree = Annotated[int, Field(ge=1, le=5, description="a whole number from 1 to 5")]
Two = Annotated[list[float], Field(min_length=2, max_length=2, description="two numbers")]
Three = Annotated[list[float], Field(min_length=3, max_length=3, description="three numbers")]
TwoCounts = Annotated[list[Count], Field(min_length=2, max_length=2, description="two whole numbers ≥ 1")]
ThreeCounts = Annotated[list[Count], Field(min_length=3, max_length=3, description="three whole numbers ≥ 1")]


class Icosphere(Table):
    """kind = "icosphere": 20 · 4^level triangles on S²."""

    kind: Literal["icosphere"]
    level: NonNegativeCount = 3
    geometry_degree: GeometryDegree = 2

    def size(self) -> tuple[int, str]:
        """How many cells, and of which shape."""
        return 20 * 4**self.level, "triangle"

    def build(self, manifold: Manifold, comm: MPI.Comm) -> mesh.Mesh:
        """The mesh."""
        return mesh.icosphere(self.level, geometry_degree=self.geometry_degree, comm=comm)


class CubedSphere(Table):
    """kind = "cubed-sphere": 6 · cells² quadrilaterals on S²."""

    kind: Literal["cubed-sphere"]
    cells: Count = 16
    geometry_degree: GeometryDegree = 2

    def size(self) -> tuple[int, str]:
        """How many cells, and of which shape."""
        return 6 * self.cells**2, "quadrilateral"

    def build(self, manifold: Manifold, comm: MPI.Comm) -> mesh.Mesh:
        """The mesh."""
        return mesh.cubed_sphere(self.cells, geometry_degree=self.geometry_degree, comm=comm)


class Circle(Table):
    """kind = "circle": equal arcs."""

    kind: Literal["circle"]
    cells: Annotated[int, Field(ge=3, description="a whole number ≥ 3")] = 128
    geometry_degree: GeometryDegree = 3

    def size(self) -> tuple[int, str]:
        """How many cells, and of which shape."""
        return self.cells, "interval"

    def build(self, manifold: Manifold, comm: MPI.Comm) -> mesh.Mesh:
        """The mesh."""
        return mesh.circle(self.cells, geometry_degree=self.geometry_degree, comm=comm)


class Interval(Table):
    """kind = "interval": equal cells of [lower, upper]."""

    kind: Literal["interval"]
    lower: Annotated[float, Field(description="a number")]
    upper: Annotated[float, Field(description="a number")]
    cells: Count = 128

    def size(self) -> tuple[int, str]:
        """How many cells, and of which shape."""
        return self.cells, "interval"

    def build(self, manifold: Manifold, comm: MPI.Comm) -> mesh.Mesh:
        """The mesh."""
        return mesh.interval(self.lower, self.upper, self.cells, comm=comm)


class Rectangle(Table):
    """kind = "rectangle": a grid of squares, each cut in two where cells are triangles."""

    kind: Literal["rectangle"]
    lower: Two
    upper: Two
    cells: TwoCounts
    cell: Literal["triangle", "quadrilateral"] = "triangle"

    def size(self) -> tuple[int, str]:
        """How many cells, and of which shape."""
        return (2 if self.cell == "triangle" else 1) * math.prod(self.cells), self.cell

    def build(self, manifold: Manifold, comm: MPI.Comm) -> mesh.Mesh:
        """The mesh."""
        return mesh.rectangle(self.lower, self.upper, self.cells, cell=self.cell, comm=comm)


class Box(Table):
    """kind = "box": a grid of cubes, each cut in six where cells are tetrahedra."""

    kind: Literal["box"]
    lower: Three
    upper: Three
    cells: ThreeCounts
    cell: Literal["tetrahedron", "hexahedron"] = "tetrahedron"

    def size(self) -> tuple[int, str]:
        """How many cells, and of which shape."""
        return (6 if self.cell == "tetrahedron" else 1) * math.prod(self.cells), self.cell

    def build(self, manifold: Manifold, comm: MPI.Comm) -> mesh.Mesh:
        """The mesh."""
        return mesh.box(self.lower, self.upper, self.cells, cell=self.cell, comm=comm)


class File(Table):
    """kind = "file": a mesh that you bring."""

    kind: Literal["file"]
    path: FilePath
    project: bool = False

    def size(self) -> tuple[int, str] | None:
        """Unknown until the file is read."""
        return None

    def build(self, manifold: Manifold, comm: MPI.Comm) -> mesh.Mesh:
        """The mesh."""
        return mesh.read_mesh(self.path, manifold, project=self.project, comm=comm)


MeshTable = Annotated[Icosphere | CubedSphere | Circle | Interval | Rectangle | Box | File, Field(discriminator="kind")]
