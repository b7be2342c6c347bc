"""What a picture shows of one depth: points and values, gathered on rank 0."""

from dataclasses import dataclass

import numpy as np

from pde_solver.observing.snapshot import Snapshot
from pde_solver.parallel import gather_rows


@dataclass(frozen=True, eq=False)
class Frame:
    """One depth of a law.

    Args:
        t: depth.
        points: (n, 3) nodes, cell centres or tokens, padded with zeros to three coordinates.
        values: (n,) the density there, or the tokens' weights.
        is_tokens: whether the points are tokens.
    """

    t: float
    points: np.ndarray
    values: np.ndarray
    is_tokens: bool = False


def collect_frame(snapshot: Snapshot) -> Frame | None:
    """The density of a token whatever its label, Σ_z π_z f_z, at all nodes (or all tokens) on rank 0. Collective.

    Returns:
        The frame on rank 0, in the order of the mesh's input; None on the other ranks.
    """
    discretisation = snapshot.discretisation
    nodes = discretisation.cell_nodes(snapshot.state)
    values = np.tensordot(snapshot.model.labels.weights, discretisation.nodal_density(snapshot.state), axes=1)
    points = nodes.points if values.ndim == 2 else nodes.points.mean(axis=1)
    all_points = gather_rows(snapshot.comm, nodes.index, np.ascontiguousarray(points))
    all_values = gather_rows(snapshot.comm, nodes.index, np.ascontiguousarray(values))
    if all_points is None or all_values is None:
        return None
    is_tokens = not discretisation.has_density
    return Frame(snapshot.t, all_points.reshape(-1, 3), all_values.reshape(-1), is_tokens)
