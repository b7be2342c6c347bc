"""Fields for ParaView: one VTKHDF file with all depths of a run."""

import os
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

from pde_solver.errors import InputError
from pde_solver.observing.snapshot import Snapshot
from pde_solver.output.growing import STEPS_PER_CHUNK, begin, growing, growing_dataset, mend, put_rows
from pde_solver.output.versions import sign
from pde_solver.parallel import gather_rows, on_root

_VERTEX = 1


class FieldWriter:
    """Appends the density of each depth to a VTKHDF file (unstructured grid, temporal), which ParaView opens.

    On a mesh the file holds "density" at the nodes of every cell or once for each cell; for tokens it holds vertices
    with their "weight". Several labels make "density_0", "density_1", ... Each cell has its own nodes, so that jumps
    between cells stay visible. Cells stand in the order of the mesh's input, on any number of ranks.

    Args:
        path: the file, usually with suffix .vtkhdf; the first `write` replaces it, unless `truncate_after` was called.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._begun = False

    def write(self, snapshot: Snapshot) -> None:
        """Append one depth; depths at or after it that the file already holds are replaced. Collective.

        Raises:
            RunStopped: the disk is full or the file cannot be written; earlier depths are intact.
            InputError: the file that is continued belongs to another mesh.
        """
        comm, discretisation = snapshot.comm, snapshot.discretisation
        nodes = discretisation.cell_nodes(snapshot.state)
        density = np.moveaxis(discretisation.nodal_density(snapshot.state), 0, 1)  # (cells, labels[, nodes])
        points_needed = not self._begun or nodes.vtk_type == _VERTEX
        points = gather_rows(comm, nodes.index, nodes.points) if points_needed else None
        values = gather_rows(comm, nodes.index, np.ascontiguousarray(density))

        def append() -> None:
            assert values is not None
            step = _Step(snapshot.t, nodes.vtk_type, points, _named(values, nodes.vtk_type))
            if self._begun:
                with growing(self.path, step.room) as file:
                    _check_mesh(self.path, file, discretisation.mesh_digest)
                    _append(file, step)
                return

            def fill(file: h5py.File) -> None:
                assert points is not None
                file.attrs["mesh digest"] = discretisation.mesh_digest
                sign(file)
                _begin(file, points, step)
                _append(file, step)

            begin(self.path, fill)

        on_root(comm, append)
        self._begun = True

    def truncate_after(self, comm: MPI.Comm, t: float) -> None:
        """Continue an existing file: cut the depths later than t; without a file, `write` begins one. Collective.

        Raises:
            InputError: what is there is no VTKHDF file of a run.
        """

        def cut() -> bool:
            if not self.path.exists():
                return False
            mend(self.path)
            try:
                with h5py.File(self.path, "r") as file:
                    steps = file["VTKHDF/Steps"]
                    depths = steps["Values"][: steps.attrs["NSteps"]]
            except Exception as error:  # h5py raises nearly anything over a damaged file
                raise InputError(
                    f"{self.path}: damaged or not a VTKHDF file of a run, so it cannot be continued; move it away."
                ) from error
            with growing(self.path, 0) as file:
                _count(file["VTKHDF/Steps"], depths[depths <= t])
            return True

        self._begun = on_root(comm, cut)


class _Step:
    """One depth on rank 0, as arrays that VTKHDF wants.

    Args:
        t: depth.
        vtk_type: VTK's number of the cell type.
        points: (cells, nodes, 3) where they are new, else None.
        fields: name -> (cells,) or (cells, nodes).
    """

    def __init__(self, t: float, vtk_type: int, points: np.ndarray | None, fields: dict[str, np.ndarray]) -> None:
        self.t = t
        self.moves = vtk_type == _VERTEX
        self.vtk_type = vtk_type
        self.points = points
        nodal = self.moves or next(iter(fields.values())).ndim == 2
        self.kind = "PointData" if nodal else "CellData"
        self.fields = {name: np.ascontiguousarray(values).reshape(-1) for name, values in fields.items()}

    @property
    def room(self) -> int:
        """Bytes that the step adds to the file."""
        points = self.points.nbytes if self.moves and self.points is not None else 0
        return points + sum(values.nbytes for values in self.fields.values())


def _named(values: np.ndarray, vtk_type: int) -> dict[str, np.ndarray]:
    word = "weight" if vtk_type == _VERTEX else "density"
    labels = values.shape[1]
    return {word if labels == 1 else f"{word}_{label}": values[:, label] for label in range(labels)}


def _begin(file: h5py.File, points: np.ndarray, step: _Step) -> None:
    """Everything that stays the same, and empty datasets for what grows."""
    root = file.create_group("VTKHDF")
    root.attrs["Version"] = np.array([2, 0])
    root.attrs.create("Type", b"UnstructuredGrid", dtype=h5py.string_dtype("ascii", len("UnstructuredGrid")))
    cells, nodes = points.shape[:2]
    root["NumberOfCells"] = np.array([cells])
    root["NumberOfPoints"] = root["NumberOfConnectivityIds"] = np.array([cells * nodes])
    root["Types"] = np.full(cells, step.vtk_type, dtype=np.uint8)
    root["Connectivity"] = np.arange(cells * nodes)
    root["Offsets"] = np.arange(0, cells * nodes + 1, nodes)
    flat = points.reshape(-1, 3)
    growing_dataset(root, "Points", flat[:0] if step.moves else flat, len(flat))
    steps = root.create_group("Steps")
    steps.attrs["NSteps"] = np.int64(0)
    growing_dataset(steps, "Values", np.empty(0), STEPS_PER_CHUNK)
    for name, width in _OFFSETS.items():
        growing_dataset(steps, name, np.empty((0, *width), dtype=np.int64), STEPS_PER_CHUNK)
    for name, values in step.fields.items():
        growing_dataset(root.require_group(step.kind), name, values[:0], len(values))
        offsets = steps.require_group(f"{step.kind}Offsets")
        growing_dataset(offsets, name, np.empty(0, dtype=np.int64), STEPS_PER_CHUNK)


#: For each step, where its part of the grid begins: a number, or one for each kind of topology (there is one kind).
_OFFSETS: dict[str, tuple[int, ...]] = {
    "PartOffsets": (),
    "NumberOfParts": (),
    "PointOffsets": (),
    "CellOffsets": (1,),
    "ConnectivityIdOffsets": (1,),
}


def _append(file: h5py.File, step: _Step) -> None:
    root = file["VTKHDF"]
    steps = root["Steps"]
    depths = steps["Values"][: steps.attrs["NSteps"]]
    place = int(np.searchsorted(depths, step.t))
    if place < len(depths):  # a depth that is written again replaces what the file held from there on
        _count(steps, depths[:place])
        file.flush()
    numbers = dict.fromkeys(_OFFSETS, 0) | {"NumberOfParts": 1}
    if step.moves:
        assert step.points is not None
        points = step.points.reshape(-1, 3)
        numbers["PointOffsets"] = place * len(points)
        put_rows(root["Points"], numbers["PointOffsets"], points)
    for name, values in step.fields.items():
        start = place * len(values)
        put_rows(root[step.kind][name], start, values)
        put_rows(steps[f"{step.kind}Offsets"][name], place, np.array([start]))
    for name, number in numbers.items():
        put_rows(steps[name], place, np.full((1, *_OFFSETS[name]), number))
    file.flush()
    _count(steps, np.append(depths[:place], step.t))


def _count(steps: h5py.Group, depths: np.ndarray) -> None:
    """Say which steps are valid. VTK's reader needs as many depths as steps, or it writes past the end of an array."""
    steps["Values"].resize(len(depths), axis=0)
    steps["Values"][-1:] = depths[-1:]
    steps.attrs.modify("NSteps", np.int64(len(depths)))


def _check_mesh(path: Path, file: h5py.File, digest: str) -> None:
    if file.attrs.get("mesh digest") != digest:
        raise InputError(f"{path}: holds the fields of another mesh, so it cannot be continued; choose another folder.")
