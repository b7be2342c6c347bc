"""A law whose density is any formula of the coordinates."""

from dataclasses import dataclass, field, replace

import numpy as np

from pde_solver.densities.formula import Formula
from pde_solver.densities.law import Law
from pde_solver.densities.regions import Box
from pde_solver.densities.rejection import sample_by_rejection
from pde_solver.densities.sphere_sampling import uniform_on_sphere
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere

#: How many points are looked at for the largest density, and how far above it the envelope lies.
SCAN, SAFETY = 20_000, 1.2


@dataclass(frozen=True, repr=False)
class Expression(Law):
    """A density given as text, for example "1 + 0.2*cos(theta) + 0.3*sin(2*theta)"; it need not be normalised.

    Names: x, y, z are the first three coordinates and x1, x2, ... all of them. On the circle, theta is the angle
    from the x axis in (−π, π]; on S², theta is the polar angle from the z axis in [0, π] and phi the azimuth in
    (−π, π]; on R^d, r = |x|. Where labels are positions, s is the token's. `Formula` says what else is allowed.

    Args:
        formula: the density.
        box: (lower, upper) corners on R^d, outside which the density is zero; needed there to draw tokens.
        position: the value of s; None where labels are no positions, and s has no meaning.

    Raises:
        InputError: if the formula is not allowed; on use, if it has names that the manifold has not, or is negative or
            not finite at a point.
    """

    formula: str
    box: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    position: float | None = None
    _parsed: Formula = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parsed", Formula(self.formula, "Expression"))
        if self.box is not None:
            if not isinstance(self.box, tuple | list) or len(self.box) != 2:
                raise InputError(f"Expression: box must be a pair (lower, upper) of corners, found {self.box!r}.")
            box = Box(*self.box)
            object.__setattr__(self, "box", (box.lower, box.upper))

    def at(self, position: float) -> "Expression":
        """The same formula with s = position."""
        return replace(self, position=position)

    def is_normalised(self, manifold: Manifold) -> bool:
        """No formula is integrated."""
        return False

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """The formula's values at points (n, D): (n,).

        Raises:
            InputError: a value is negative or not finite; the sentence has the point.
        """
        points = manifold.retract(points)
        variables = _variables(points, manifold)
        if self.position is not None:
            variables["s"] = np.full(len(points), self.position)
        self._parsed.require_names(set(variables), f" on {manifold}")
        values = self._parsed(variables, len(points))
        if self.box is not None:
            values = np.where(self._domain(manifold).contains(points), values, 0.0)
        # what is negative by round-off alone is zero
        largest = np.abs(values[np.isfinite(values)]).max(initial=0)
        values[(values < 0) & (values >= -1e-14 * largest)] = 0.0
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            first = int(np.argmax(bad))
            where = ", ".join(f"{coordinate:.6g}" for coordinate in points[first] + 0.0)  # no "-0"
            raise InputError(
                f'Expression "{self.formula}" is {values[first]:.6g} at the point ({where}); '
                "a density must be finite and ≥ 0 everywhere."
            )
        return values

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Independent tokens (count, D), by rejection from the uniform law on the sphere or the box.

        Raises:
            InputError: on R^d without a box; if the density is zero or far too peaked.
        """
        region = None if isinstance(manifold, Sphere) else self._domain(manifold)

        def uniform(n: int, generator: np.random.Generator) -> np.ndarray:
            if region is None:
                return uniform_on_sphere(n, generator, manifold.ambient_dimension)
            return region.sample(n, generator)

        # the scan has a generator of its own, so that it is always the same
        scan = self.density(uniform(SCAN, np.random.default_rng(0)), manifold)
        if scan.max() == 0:
            raise InputError(f'Expression "{self.formula}" is zero at {SCAN:,} random points; no tokens can be drawn.')
        return sample_by_rejection(
            count,
            rng,
            propose=lambda n: uniform(n, rng),
            density=lambda points: self.density(points, manifold),
            envelope=SAFETY * scan.max(),
            where=f'Expression "{self.formula}"',
        )

    def __repr__(self) -> str:
        return f'Expression("{self.formula}")' if self.box is None else f'Expression("{self.formula}", box={self.box})'

    def _domain(self, manifold: Manifold) -> Box:
        if self.box is None:
            raise InputError(
                f'Expression "{self.formula}": to draw tokens on {manifold} it must know where to look; '
                "give box=(lower, upper)."
            )
        box = Box(*self.box)
        box.volume(manifold)  # refuses a manifold that cannot hold the box
        return box


def _variables(points: np.ndarray, manifold: Manifold) -> dict[str, np.ndarray]:
    """The coordinates of points (n, D) by name."""
    variables = {f"x{i + 1}": points[:, i] for i in range(points.shape[1])}
    variables |= {name: points[:, i] for i, name in enumerate("xyz") if i < points.shape[1]}
    if not isinstance(manifold, Sphere):
        variables["r"] = np.linalg.norm(points, axis=1)
    elif manifold.ambient_dimension == 2:
        variables["theta"] = np.arctan2(points[:, 1], points[:, 0])
    elif manifold.ambient_dimension == 3:
        variables["theta"] = np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2])
        variables["phi"] = np.arctan2(points[:, 1], points[:, 0])
    return variables
