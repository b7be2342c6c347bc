"""The law at chosen depths, as weighted points: what distances between two runs are computed from."""

import os
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.measures import TokenMeasure
from pde_solver.observing.snapshot import Snapshot
from pde_solver.output.atomic import cause
from pde_solver.output.growing import STEPS_PER_CHUNK, begin, growing, growing_dataset, mend, put_rows
from pde_solver.output.versions import sign
from pde_solver.parallel import allgather_rows, gather_rows, max_over_ranks, min_over_ranks, on_root

FORMAT = "pde_solver laws"


class LawWriter:
    """Appends the token measure of each depth to an HDF5 file.

    Args:
        path: the file; the first `write` replaces it, unless `truncate_after` was called.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._begun = False

    def write(self, snapshot: Snapshot) -> None:
        """Append one depth; depths at or after it that the file already holds are replaced. Collective.

        Raises:
            RunStopped: the disk is full or the file cannot be written; earlier depths are intact.
        """
        points, weights = _in_global_order(snapshot)

        def append() -> None:
            assert points is not None
            assert weights is not None
            if self._begun:
                with growing(self.path, points.nbytes + weights.nbytes) as file:
                    _append(file, snapshot.t, points, weights)
                return

            def fill(file: h5py.File) -> None:
                file.attrs.update({"format": FORMAT, "depths": np.int64(0)})
                sign(file)
                growing_dataset(file, "t", np.empty(0), STEPS_PER_CHUNK)
                growing_dataset(file, "end", np.empty(0, dtype=np.int64), STEPS_PER_CHUNK)
                growing_dataset(file, "points", points[:0], len(points))
                growing_dataset(file, "weights", weights[:0], len(weights))
                _append(file, snapshot.t, points, weights)

            begin(self.path, fill)

        on_root(snapshot.comm, append)
        self._begun = True

    def truncate_after(self, comm: MPI.Comm, t: float) -> None:
        """Continue an existing file: cut the depths later than t; without a file, `write` begins one. Collective.

        Raises:
            InputError: what is there is no file of laws.
        """

        def cut() -> bool:
            if not self.path.exists():
                return False
            mend(self.path)
            read_laws(self.path)  # says what is wrong with the file, if anything
            with growing(self.path, 0) as file:
                depths = file["t"][: file.attrs["depths"]]
                file.attrs.modify("depths", np.int64(np.searchsorted(depths, t, side="right")))
            return True

        self._begun = on_root(comm, cut)


def read_laws(path: str | os.PathLike[str]) -> list[tuple[float, TokenMeasure]]:
    """All depths of a file of laws, with the measures, weights (labels, m). One process only.

    Raises:
        InputError: there is no such file, or it is damaged or something else.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file of laws.")
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise InputError(f"{path}: an HDF5 file, but not one of laws.")
            depths = int(file.attrs["depths"])
            ends = file["end"][:depths]
            laws = []
            for t, start, end in zip(file["t"][:depths], [0, *ends[:-1]], ends, strict=True):
                weights = np.ascontiguousarray(file["weights"][start:end].T)
                laws.append((float(t), TokenMeasure(file["points"][start:end], weights)))
            return laws
    except InputError:
        raise
    except Exception as error:  # h5py raises nearly anything over a damaged file
        raise InputError(f"{path}: truncated, damaged or no HDF5 file ({cause(error)}).") from error


def _append(file: h5py.File, t: float, points: np.ndarray, weights: np.ndarray) -> None:
    """Rows first, the count of depths last: see `growing`."""
    place = int(np.searchsorted(file["t"][: file.attrs["depths"]], t))
    start = int(file["end"][place - 1]) if place else 0
    file.attrs.modify("depths", np.int64(place))
    file.flush()
    put_rows(file["points"], start, points)
    put_rows(file["weights"], start, weights)
    put_rows(file["end"], place, np.array([start + len(points)]))
    put_rows(file["t"], place, np.array([t]))
    file.flush()
    file.attrs.modify("depths", np.int64(place + 1))


def _in_global_order(snapshot: Snapshot) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The measure's points (m, D) and weights (m, labels) on rank 0.

    A measure has as many points for each cell (or token), cell by cell: so they go in the order of the mesh's input,
    the same on any number of ranks. Where a measure is made otherwise, one rank's points follow the other's.
    """
    comm, measure = snapshot.comm, snapshot.measure
    index = snapshot.discretisation.cell_nodes(snapshot.state).index
    points, weights = measure.points, np.ascontiguousarray(measure.weights.T)
    each = len(points) // len(index) if len(index) else 0
    most = int(max_over_ranks(comm, each))
    alike = int(len(points) == most * len(index))
    if not int(min_over_ranks(comm, alike)):
        counts = allgather_rows(comm, np.array([len(points)]))
        index = counts[: comm.rank].sum() + np.arange(len(points))
        most = 1
    rows = np.hstack([points, weights]).reshape(len(index), most * (points.shape[1] + weights.shape[1]))
    gathered = gather_rows(comm, index, rows)
    if gathered is None:
        return None, None
    gathered = gathered.reshape(-1, points.shape[1] + weights.shape[1])
    return gathered[:, : points.shape[1]], gathered[:, points.shape[1] :]
