"""Reference quadratures: token measures that stand for the surface measure itself."""

from collections.abc import Sequence

import numpy as np
from scipy.special import roots_jacobi

from pde_solver.densities.arguments import require_sphere, whole_number
from pde_solver.densities.regions import Box
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold
from pde_solver.measures import TokenMeasure


def sphere_quadrature(manifold: Manifold, order: int) -> TokenMeasure:
    """A quadrature of the surface measure of S^{d−1}, exact for polynomials of degree ≤ 2·order − 1.

    The trapezoidal rule with 2·order points on the circle; on higher spheres, circles of latitude at Gauss–Jacobi
    points: x = (√(1−s²) y, s) with y on S^{d−2} and weight (1−s²)^{(d−3)/2} ds. 2·order^{d−1} points in all.

    Args:
        manifold: a sphere.
        order: how many points of latitude, ≥ 1.

    Returns:
        Weights (1, m), of sum |S^{d−1}|, the same on every rank.

    Raises:
        InputError: if the manifold is no sphere or the order no whole number ≥ 1.

    Source: A. H. Stroud, Approximate Calculation of Multiple Integrals (1971), section 2.7.
    """
    sphere = require_sphere("sphere_quadrature", manifold, instead="box_quadrature")
    order = _at_least_one("sphere_quadrature: order", order)
    angles = np.pi * (np.arange(2 * order) + 0.5) / order
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    weights = np.full(2 * order, np.pi / order)
    for dimension in range(3, sphere.ambient_dimension + 1):
        heights, latitude_weights = roots_jacobi(order, (dimension - 3) / 2, (dimension - 3) / 2)
        radii = np.sqrt((1 - heights) * (1 + heights))
        points = np.column_stack([np.kron(radii[:, None], points), np.repeat(heights, len(points))])
        weights = np.kron(latitude_weights, weights)
    return TokenMeasure(points, weights[None, :])


def box_quadrature(
    lower: Sequence[float] | float, upper: Sequence[float] | float, cells: Sequence[int] | int, order: int = 4
) -> TokenMeasure:
    """A quadrature of the volume of a box: Gauss–Legendre points in each of its equal cells.

    Args:
        lower: (d,) lower corner; a number for d = 1.
        upper: (d,) upper corner.
        cells: how many cells along each axis; one number counts for every axis.
        order: how many points a cell has along each axis; polynomials of degree ≤ 2·order − 1 are exact.

    Returns:
        Weights (1, m), of sum the box's volume, the same on every rank.

    Raises:
        InputError: if the corners do not fit or the numbers are not whole and ≥ 1.
    """
    box = Box(lower, upper)  # type: ignore[arg-type]
    dimension = len(box.lower)
    counts = [cells] * dimension if isinstance(cells, int | np.integer) else list(cells)
    if len(counts) != dimension:
        raise InputError(
            f"box_quadrature: cells must be one number, or one for each of {dimension} axes, found {cells!r}."
        )
    gauss_points, gauss_weights = np.polynomial.legendre.leggauss(_at_least_one("box_quadrature: order", order))
    axes, axis_weights = [], []
    for start, end, count in zip(box.lower, box.upper, counts, strict=True):
        count = _at_least_one("box_quadrature: cells", count)
        width = (end - start) / count
        centres = start + width * (np.arange(count) + 0.5)
        axes.append((centres[:, None] + 0.5 * width * gauss_points).ravel())
        axis_weights.append(np.tile(0.5 * width * gauss_weights, count))
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)
    weights: np.ndarray = np.ones(1)
    for along in axis_weights:
        weights = np.kron(weights, along)
    return TokenMeasure(points, weights[None, :])


def _at_least_one(where: str, value: object) -> int:
    found = whole_number(where, value)
    if found < 1:
        raise InputError(f"{where} must be ≥ 1, found {found}.")
    return found
