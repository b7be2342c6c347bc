"""How many clusters a law has."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from pde_solver.manifolds import Manifold, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.parallel import allgather_rows


def count_clusters(law: TokenMeasure, manifold: Manifold, distance: float, floor: float, on_mesh: bool) -> int:
    """The number of clusters of a law: connected parts of where it is dense, seen with a resolution δ.

    1. The neighbourhood mass of a point y is m(y) = μ(B(y, δ)).
    2. Let q be its quantile under μ at level `floor`: all but this share of the tokens has m ≥ q. Points with m ≥ q/2
       are dense; the half leaves room for sampling noise, so that a uniform cloud of tokens is not torn apart.
    3. Dense points closer than δ are connected; parts lighter than `floor` × the heaviest are stragglers, not clusters.

    Points are first merged in boxes of side δ/4, on each rank, and only the boxes are exchanged. On a mesh δ is at
    least twice the median distance of a point to its nearest neighbour, so that a coarse mesh is not taken for
    many clusters. Tokens have no mesh: where they lie farther apart than δ, each is a cluster of its own.

    Args:
        law: the law, weights (1, m), distributed.
        manifold: where it lives; on spheres δ is an angle.
        distance: δ > 0.
        floor: in (0, 1).
        on_mesh: whether the points fill a mesh, or are tokens.

    Source: derived for this project; single linkage of density level sets goes back to Hartigan,
        Consistency of single linkage for high-density clusters, J. Am. Stat. Assoc. 76 (1981).
    """
    points, weights = _boxes(law, distance / 4)
    reach = 2 * np.sin(min(distance, np.pi) / 2) if isinstance(manifold, Sphere) else distance
    if on_mesh and len(points) > 1:
        nearest = cKDTree(points).query(points, k=2)[0][:, 1]
        reach = max(reach, 2 * float(np.median(nearest)))
    carrying = weights > 0
    points, weights = points[carrying], weights[carrying] / weights.sum()
    i, j = cKDTree(points).query_pairs(reach, output_type="ndarray").T
    size = len(points)
    neighbourhood = weights + np.bincount(i, weights[j], size) + np.bincount(j, weights[i], size)

    order = np.argsort(neighbourhood, kind="stable")
    lightest = min(int(np.searchsorted(np.cumsum(weights[order]), floor)), size - 1)
    dense = neighbourhood >= neighbourhood[order[lightest]] / 2

    linked = dense[i] & dense[j]
    graph = coo_array((np.ones(linked.sum()), (i[linked], j[linked])), shape=(size, size))
    _, part = connected_components(graph, directed=False)
    masses = np.bincount(part[dense], weights[dense])
    return int(np.sum(masses >= floor * masses.max()))


def _boxes(law: TokenMeasure, side: float) -> tuple[np.ndarray, np.ndarray]:
    """The law merged in boxes: mean points (n, D) and weights (n,), the same on every rank."""
    dimension = law.points.shape[1]

    def merged(places: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        boxes, which = np.unique(places, axis=0, return_inverse=True)
        totals = np.zeros((len(boxes), sums.shape[1]))
        np.add.at(totals, which.reshape(-1), sums)
        return boxes, totals

    # one row for each point: coordinates, how many points, weight
    rows = np.column_stack([law.points, np.ones(len(law.points)), law.weights[0]])
    places, rows = merged(np.floor(law.points / side), rows)
    places, rows = allgather_rows(law.comm, places), allgather_rows(law.comm, rows)
    _, rows = merged(places, rows)
    return rows[:, :dimension] / rows[:, [dimension]], rows[:, -1]
