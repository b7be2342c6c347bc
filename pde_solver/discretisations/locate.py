"""In which cell a point lies, and where in it: candidates by distance, then Newton's method on the cell's own map."""

from dataclasses import dataclass
from itertools import chain

import basix
import numpy as np
from scipy.spatial import cKDTree

from pde_solver.discretisations.least_squares import tangent_frames
from pde_solver.manifolds import Manifold
from pde_solver.mesh import Mesh
from pde_solver.mesh.polyhedral import determinants

#: A point that is outside by less, in units of the reference cell, is inside: on a facet, or rounded off a wall.
INSIDE = 1e-10
#: Newton's method has converged when its step, in units of the reference cell, is below; the next would be its square.
_SMALL_STEP = 1e-8
_MOST_STEPS = 30
#: How far outside of the reference cell Newton's method may look.
_MARGIN = 0.5
#: Nearest cells that are tried first.
_FEW = 6
#: Pairs of a point and a cell that are worked on at once.
_PAIRS = 1 << 14

_NO_PAIRS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Located:
    """Where points lie in this rank's cells.

    Args:
        cell: (n,) local number of an owned cell; −1 if none is near.
        index: (n,) the cell's place in the input; the number of all cells if none is near.
        reference: (n, d) the point in the reference cell.
        violation: (n,) how far it is outside, in units of the reference cell; INSIDE if inside, inf if no cell is near.
    """

    cell: np.ndarray
    index: np.ndarray
    reference: np.ndarray
    violation: np.ndarray


def locate(mesh: Mesh, points: np.ndarray, degree: int) -> Located:
    """The owned cell that holds each point: the one which it violates least, of several the first in the input.

    On spheres a cell holds the directions of its points: x is at X if x(X)/|x(X)| = x. Cells that share a facet share
    its directions, so that the whole sphere is covered; with degree 1 cells are the geodesic polygons of their corners.

    Args:
        mesh: any mesh.
        points: (n, D) points of the manifold.
        degree: of the cells' maps: the geometry's, or 1 for the cells that are spanned by the corners.
    """
    manifold, tdim = mesh.manifold, mesh.manifold.dimension
    element = basix.create_element(
        basix.ElementFamily.P,
        mesh.domain.basix_cell(),
        degree,
        basix.LagrangeVariant(mesh.domain.geometry.cmaps[0].variant),
    )
    nodes = np.ascontiguousarray(mesh.cell_coordinates[: mesh.owned_cells, : element.dim])  # corners come first
    centres, radii = _balls(nodes, element, manifold)
    best = Located(
        np.full(len(points), -1),
        np.full(len(points), mesh.cell_count),
        np.zeros((len(points), tdim)),
        np.full(len(points), np.inf),
    )
    left = np.arange(len(points))
    for candidates in (_nearest, _all_near):  # the first finds most points, the second is sure
        point, cell = candidates(points[left], centres, radii)
        pair, end = np.searchsorted(point, [np.arange(len(left)), np.arange(1, len(left) + 1)])
        found = np.zeros(len(left), dtype=bool)
        trying = np.flatnonzero(pair < end)
        while len(trying):
            candidate = cell[pair[trying]]
            reference, violation = _pulled_back(nodes, element, manifold, candidate, points[left[trying]])
            _keep_better(best, left[trying], candidate, mesh.input_index[candidate], reference, violation)
            found[trying] = violation < -INSIDE
            pair[trying] += 1
            trying = trying[~found[trying] & (pair[trying] < end[trying])]
        left = left[~found]
    return best


def _keep_better(
    best: Located, row: np.ndarray, cell: np.ndarray, index: np.ndarray, reference: np.ndarray, violation: np.ndarray
) -> None:
    """Put candidates in the rows where they are better: violated less, or as little and earlier in the input."""
    violation = np.maximum(violation, INSIDE)
    known = best.violation[row]
    better = (violation < known) | ((violation == known) & (index < best.index[row]))
    improved = row[better]
    best.cell[improved] = cell[better]
    best.index[improved] = index[better]
    best.reference[improved] = reference[better]
    best.violation[improved] = violation[better]


def _balls(
    nodes: np.ndarray, element: basix.finite_element.FiniteElement, manifold: Manifold
) -> tuple[np.ndarray, np.ndarray]:
    """Centres (cells, D) and radii (cells,) of balls that hold the cells.

    A cell of degree 1 lies in any ball (on spheres, any cap up to a half sphere) that holds its corners. Curved cells are
    looked at in a finer lattice than that of their nodes, and get a tenth more.
    """
    reference = element.points
    if element.degree > 1:
        reference = basix.create_lattice(element.cell_type, 2 * element.degree, basix.LatticeType.equispaced, True)
    values = element.tabulate(0, np.concatenate([_middle(element)[None], reference]))[0, :, :, 0]
    sampled = manifold.retract(np.matmul(values, nodes))
    centres = sampled[:, 0]
    radii = np.linalg.norm(sampled[:, 1:] - centres[:, None], axis=2).max(axis=1, initial=0.0)
    return centres, radii * (1.1 if element.degree > 1 else 1 + 1e-9)


def _nearest(points: np.ndarray, centres: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (point, cell) of each point and the few cells whose centres are nearest, point by point, nearest first."""
    if not len(points) or not len(centres):
        return _NO_PAIRS
    distance, cell = cKDTree(centres).query(points, k=np.arange(1, min(_FEW, len(centres)) + 1))
    point, rank = np.nonzero(distance <= radii[cell])
    return point, cell[point, rank]


def _all_near(points: np.ndarray, centres: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (point, cell) with the point in the cell's ball, point by point.

    The tree is one of the points, so that each cell asks with its own radius: cells may be of very different size.
    """
    if not len(points) or not len(centres):
        return _NO_PAIRS
    found = cKDTree(points).query_ball_point(centres, radii)
    counts = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
    point = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=counts.sum())
    order = np.argsort(point, kind="stable")
    return point[order], np.repeat(np.arange(len(centres)), counts)[order]


def _pulled_back(
    nodes: np.ndarray,
    element: basix.finite_element.FiniteElement,
    manifold: Manifold,
    cell: np.ndarray,
    points: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Where each point lies in the reference cell of its cell (n, d), and how far outside (n,), negative inside.

    Solves F_xᵀ (x(X) − x) = 0 with the tangent frame F_x at the point: on spheres, x(X) and x have then one direction.
    Where Newton's method does not converge, what remains, in units of the cell, counts as outside.
    """
    reference = np.tile(_middle(element), (len(points), 1))
    remainder = np.empty(len(points))
    for begin in range(0, len(points), _PAIRS):
        part = slice(begin, begin + _PAIRS)
        of_cell, targets = nodes[cell[part]], points[part]
        frames = tangent_frames(manifold, targets)
        active = np.arange(len(targets))
        for _ in range(_MOST_STEPS):
            old = reference[part][active]
            residual, jacobian = _linearised(element, of_cell[active], targets[active], frames[active], old)
            step = _solved(jacobian, residual)
            new = np.clip(old - step, -_MARGIN, 1 + _MARGIN)
            reference[part][active] = new
            remainder[part][active] = np.abs(step).max(axis=1)
            active = active[np.abs(new - old).max(axis=1) > _SMALL_STEP]
            if not len(active):
                break
    outside = _outside(element.cell_type, reference)
    return reference, np.where(remainder > _SMALL_STEP, np.maximum(outside, remainder), outside)


def _linearised(
    element: basix.finite_element.FiniteElement,
    nodes: np.ndarray,
    points: np.ndarray,
    frames: np.ndarray,
    reference: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """F_xᵀ (x(X) − x), (n, d), and its derivatives by X, (n, d, d) with one row for each X_i."""
    table = element.tabulate(1, reference)[..., 0]
    mapped = np.matmul(table.transpose(1, 0, 2), nodes)
    mapped[:, 0] -= points
    seen = np.matmul(mapped, frames.transpose(0, 2, 1))
    return seen[:, 0], seen[:, 1:]


def _solved(jacobian: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """s with Σ_i s_i J_i = r, (n, d), by Cramer's rule; ones where the matrix is singular, as on no cell's inside."""
    step = np.empty_like(residual)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        whole = determinants(jacobian)
        for i in range(residual.shape[1]):
            replaced = jacobian.copy()
            replaced[:, i] = residual
            step[:, i] = determinants(replaced) / whole
    return np.nan_to_num(step, nan=1.0, posinf=1.0, neginf=-1.0)


def _middle(element: basix.finite_element.FiniteElement) -> np.ndarray:
    return basix.geometry(element.cell_type).mean(axis=0)


def _outside(cell: basix.CellType, reference: np.ndarray) -> np.ndarray:
    """How far points (n, d) are outside of the reference simplex or cube, negative inside."""
    below = -reference.min(axis=1, initial=np.inf)
    if cell in (basix.CellType.triangle, basix.CellType.tetrahedron):
        return np.maximum(below, reference.sum(axis=1) - 1)
    return np.maximum(below, reference.max(axis=1, initial=-np.inf) - 1)
