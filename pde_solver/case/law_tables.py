"""The table [initial]: the law of the tokens at the start."""

from typing import Annotated, Literal

from mpi4py import MPI
from pydantic import Field

from pde_solver import densities
from pde_solver.case.table import Count, FilePath, Matrix, NonNegative, Positive, Table, Vector


class Law(Table):
    """What all laws share: a weight, which only the components of a mixture have."""

    weight: Positive | None = None


class Uniform(Law):
    """law = "uniform"."""

    law: Literal["uniform"]

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.Uniform()


class VonMisesFisher(Law):
    """law = "von-mises-fisher": density ∝ e^{κ⟨mean, x⟩} on a sphere."""

    law: Literal["von-mises-fisher"]
    mean: Vector
    kappa: NonNegative = 1.0

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.VonMisesFisher(tuple(self.mean), self.kappa)


class PoissonKernel(Law):
    """law = "poisson-kernel": density ∝ ((1 − |w|²) / |x − w|²)^{d−1} on a sphere."""

    law: Literal["poisson-kernel"]
    w: Vector

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.PoissonKernel(tuple(self.w))


class Harmonic(Law):
    """law = "harmonic": the uniform law with one harmonic."""

    law: Literal["harmonic"]
    degree: Count
    order: Annotated[int, Field(description="a whole number")] = 0
    amplitude: Annotated[float, Field(ge=-1, le=1, description="a number from −1 to 1")]

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.HarmonicPerturbation(self.degree, self.amplitude, self.order)


class Gaussian(Law):
    """law = "gaussian": the normal law N(mean, covariance) on R^d; a number stands for a multiple of the identity."""

    law: Literal["gaussian"]
    mean: Vector
    covariance: Annotated[
        Positive | Matrix,
        Field(union_mode="left_to_right", description="a number > 0 or a symmetric positive definite matrix"),
    ] = 1.0

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.Gaussian(self.mean, self.covariance)


class UniformOnCap(Law):
    """law = "uniform-on", region = "cap": uniform on a cap of a sphere, the angle in radians."""

    law: Literal["uniform-on"]
    region: Literal["cap"]
    center: Vector
    angle: Positive

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.UniformOn(densities.Cap(tuple(self.center), self.angle))


class UniformOnBox(Law):
    """law = "uniform-on", region = "box": uniform on a box in R^d."""

    law: Literal["uniform-on"]
    region: Literal["box"]
    lower: Vector
    upper: Vector

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.UniformOn(densities.Box(tuple(self.lower), tuple(self.upper)))


class UniformOnBall(Law):
    """law = "uniform-on", region = "ball": uniform on a ball in R^d."""

    law: Literal["uniform-on"]
    region: Literal["ball"]
    center: Vector
    radius: Positive

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        return densities.UniformOn(densities.Ball(tuple(self.center), self.radius))


class Expression(Law):
    """law = "expression": a density ∝ a formula of the coordinates; on R^d tokens are drawn in the box."""

    law: Literal["expression"]
    formula: Annotated[str, Field(min_length=1, description='a formula of the coordinates, for example "1 + 0.2*z"')]
    lower: Vector | None = None
    upper: Vector | None = None

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        if self.lower is None or self.upper is None:
            return densities.Expression(self.formula)
        return densities.Expression(self.formula, (tuple(self.lower), tuple(self.upper)))


class PointCloud(Law):
    """law = "point-cloud": tokens from a .npy file, (n, d)."""

    law: Literal["point-cloud"]
    path: FilePath

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law; every rank of the communicator must call."""
        return densities.PointCloud.load(self.path, comm)


SetTable = Annotated[UniformOnCap | UniformOnBox | UniformOnBall, Field(discriminator="region")]

Component = Annotated[
    Uniform | VonMisesFisher | PoissonKernel | Harmonic | Gaussian | SetTable | Expression | PointCloud,
    Field(discriminator="law"),
]


class Mixture(Law):
    """law = "mixture": several laws at once, each with its weight."""

    law: Literal["mixture"]
    components: Annotated[list[Component], Field(min_length=1, description="an array of tables [[initial.components]]")]

    def build(self, comm: MPI.Comm) -> densities.Law:
        """The law."""
        weights = [component.weight or 1.0 for component in self.components]
        return densities.Mixture([component.build(comm) for component in self.components], weights)


LawTable = Annotated[
    Uniform | VonMisesFisher | PoissonKernel | Harmonic | Gaussian | SetTable | Expression | PointCloud | Mixture,
    Field(discriminator="law"),
]
