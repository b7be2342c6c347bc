"""What a picture shows of one depth: points and values, gathered on rank 0."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import h5py
import numpy as np

from pde_solver.errors import InputError
from pde_solver.observing.snapshot import Snapshot
from pde_solver.parallel import gather_rows

#: VTK's number of the cell type that stands for a token.
VERTEX = 1


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


def read_frames(path: str | os.PathLike[str], label_weights: Sequence[float], count: int = 4) -> list[Frame]:
    """Nearly equally spaced depths of a file of fields, the first and the last included. One process only.

    Args:
        path: a file that `FieldWriter` wrote.
        label_weights: π_z, (labels,), by which the labels' densities are mixed.
        count: how many depths; fewer if the file has fewer.

    Raises:
        InputError: there is no such file, or it holds no fields of a run with so many labels.
    """
    try:
        with h5py.File(path, "r") as file:
            root = file["VTKHDF"]
            depths = root["Steps/Values"][: root["Steps"].attrs["NSteps"]]
            return [_read_frame(root, place, label_weights) for place in _spread(depths, count)]
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file, so nothing can be drawn from it.") from None
    except Exception as error:  # h5py raises nearly anything over a damaged file
        raise InputError(f"{path}: damaged or not a VTKHDF file of a run, so nothing can be drawn from it.") from error


def read_label_frames(path: str | os.PathLike[str], labels: int, count: int = 4) -> list[list[Frame]]:
    """The densities of all labels at the depths of `read_frames`: for each depth a frame for each label. One process only.

    Args:
        path: a file that `FieldWriter` wrote.
        labels: how many labels the run had.
        count: how many depths.

    Raises:
        InputError: as `read_frames`.
    """
    by_label = [read_frames(path, weights.tolist(), count) for weights in np.eye(labels)]
    return [list(row) for row in zip(*by_label, strict=True)]


def _spread(depths: np.ndarray, count: int) -> list[int]:
    """Places of the depths that are nearest to equally spaced ones, each once."""
    if not len(depths):
        return []
    wanted = np.linspace(depths[0], depths[-1], count)
    return sorted({int(np.argmin(np.abs(depths - t))) for t in wanted})


def _read_frame(root: h5py.Group, place: int, label_weights: Sequence[float]) -> Frame:
    is_tokens = root["Types"][0] == VERTEX
    kind = "PointData" if "PointData" in root else "CellData"
    word = "weight" if is_tokens else "density"
    names = [word] if len(label_weights) == 1 else [f"{word}_{label}" for label in range(len(label_weights))]
    cells, nodes = int(root["NumberOfCells"][0]), int(root["NumberOfPoints"][0])
    rows = nodes if kind == "PointData" else cells
    start = int(root["Steps/PointOffsets"][place])
    points = root["Points"][start : start + nodes]
    if kind == "CellData":
        points = points.reshape(cells, -1, 3).mean(axis=1)
    values = np.zeros(rows)
    for name, weight in zip(names, label_weights, strict=True):
        if weight == 0:  # a label that does not count need not be read
            continue
        begin = int(root[f"Steps/{kind}Offsets/{name}"][place])
        values += weight * root[kind][name][begin : begin + rows]
    return Frame(float(root["Steps/Values"][place]), points, values, bool(is_tokens))
