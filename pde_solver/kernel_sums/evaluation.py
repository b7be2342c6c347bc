"""How attention is evaluated: to which tolerance, and by which method."""

from dataclasses import dataclass

from pde_solver.errors import InputError, did_you_mean
from pde_solver.kernel_sums.choose import METHODS


@dataclass(frozen=True)
class Evaluation:
    """How the nonlocal velocity is evaluated; the model knows nothing of it.

    Args:
        tolerance: largest error of the velocity where there are tokens, relative to the largest velocity there at the time.
            It is checked by direct sums at random targets; where it is not met the method is refined.
        method: "automatic" takes the cheapest for the geometry, the heads, the number of points and the tolerance.
            "dense" sums directly. "circle" and "sphere" go through Fourier and spherical harmonics, "tensor" (tensor grids,
            heads diagonal in them) and "rotated" through products of one-dimensional kernels.

    Raises:
        InputError: if the tolerance is not in (0, 0.1], or there is no such method.
    """

    tolerance: float = 1e-6
    method: str = "automatic"

    def __post_init__(self) -> None:
        tolerance = self.tolerance
        if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 < tolerance <= 0.1:
            raise InputError(f"Evaluation: tolerance must be a number in (0, 0.1], found {tolerance!r}.")
        if self.method not in METHODS:
            raise InputError(
                f"Evaluation: there is no method {self.method!r}; {did_you_mean(str(self.method), METHODS)}."
            )
