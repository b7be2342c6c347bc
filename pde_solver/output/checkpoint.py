"""Checkpoints: all that a run needs to go on, on any number of ranks.

A checkpoint is an HDF5 file with a user block of 512 bytes before it, which names the format and holds the SHA-256 of
everything after it. It is verified before HDF5 sees the file, for one flipped bit can make HDF5 hang.
"""

import hashlib
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

from pde_solver.discretisations.base import Discretisation
from pde_solver.errors import InputError
from pde_solver.observing.snapshot import Snapshot
from pde_solver.output.atomic import cause, write_atomically
from pde_solver.output.tables import History
from pde_solver.output.versions import sign
from pde_solver.parallel import broadcast_array, gather_rows, on_root

VERSION = 1
_HEAD = "pde_solver checkpoint\nformat {version}\nsha256 {digest}\n"
_HEAD_PATTERN = re.compile(
    re.escape(_HEAD).replace(r"\{version\}", r"(\d+)").replace(r"\{digest\}", "([0-9a-f]{64})").encode()
)
_HEAD_SIZE = 512


class CheckpointMismatchError(InputError):
    """A good checkpoint, but of another run: other mesh, discretisation, model, case or format version."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint holds.

    Args:
        t: depth.
        step: steps taken.
        rows: (N, width) the state in the discretisation's global order; see `state`.
        histories: the recorded quantities by name.
        extra: further numbers or arrays by name.
        case_text: the case that was run, if there was one.
        discretisation: the discretisation's name.
        mesh_digest: hash of the mesh.
        mesh_description: the mesh in one line.
        model: the model in one line.
        version: number of the file format.
    """

    t: float
    step: int
    rows: np.ndarray
    histories: dict[str, History]
    extra: dict[str, np.ndarray]
    case_text: str | None
    discretisation: str
    mesh_digest: str
    mesh_description: str
    model: str
    version: int = VERSION

    def state(self, discretisation: Discretisation) -> np.ndarray:
        """This rank's share of the state, on any number of ranks."""
        return discretisation.from_rows(self.rows)


def save_checkpoint(
    path: str | os.PathLike[str],
    snapshot: Snapshot,
    case_text: str | None = None,
    histories: Mapping[str, History] | None = None,
    extra: Mapping[str, np.ndarray | float] | None = None,
) -> None:
    """Write a checkpoint: the whole new one, or the old file stays. Collective.

    Args:
        path: the file.
        snapshot: the moment to save.
        case_text: the case that is run.
        histories: what was recorded so far, name -> (depths (n,), values (n, ...)).
        extra: further numbers or arrays that the run needs to go on.

    Raises:
        RunStopped: "<path>: writing failed (No space left on device); what was there before is intact."
    """
    discretisation = snapshot.discretisation
    index, own = discretisation.rows(snapshot.state)
    rows = gather_rows(snapshot.comm, index, own)

    def write(temporary: Path) -> None:
        image = io.BytesIO()
        with h5py.File(image, "w", libver="latest", userblock_size=_HEAD_SIZE) as hdf5:
            sign(hdf5)
            hdf5.attrs.update(
                {
                    "t": float(snapshot.t),
                    "step": int(snapshot.step),
                    "discretisation": discretisation.name,
                    "mesh digest": discretisation.mesh_digest,
                    "mesh": discretisation.mesh_description,
                    "model": str(discretisation.model),
                }
            )
            if case_text is not None:
                hdf5["case"] = np.frombuffer(case_text.encode(), dtype=np.uint8)
            _write_array(hdf5, "rows", rows)
            for name, (times, values) in (histories or {}).items():
                _write_array(hdf5, f"histories/{_quoted(name)}/times", times)
                _write_array(hdf5, f"histories/{_quoted(name)}/values", values)
            for name, value in (extra or {}).items():
                _write_array(hdf5, f"extra/{_quoted(name)}", value)
        content = memoryview(image.getvalue())[_HEAD_SIZE:]
        head = _HEAD.format(version=VERSION, digest=hashlib.sha256(content).hexdigest()).encode()
        with open(temporary, "wb") as file:
            file.write(head.ljust(_HEAD_SIZE, b"\0"))
            file.write(content)

    write_atomically(snapshot.comm, path, write)


def load_checkpoint(
    path: str | os.PathLike[str],
    discretisation: Discretisation | None = None,
    case_text: str | None = None,
    *,
    comm: MPI.Comm | None = None,
) -> Checkpoint:
    """Read a checkpoint, verify it, and refuse it where it does not belong to the run. Collective.

    Args:
        path: the file.
        discretisation: what the state is for; None does not compare.
        case_text: the case of this run; None allows any.
        comm: the ranks that read; the discretisation's by default, or this rank alone.

    Raises:
        CheckpointMismatchError: a good file of another mesh, discretisation, model or case, or of a newer format.
        InputError: there is no such file, or it is damaged or something else.
    """
    comm = comm or (MPI.COMM_SELF if discretisation is None else discretisation.comm)
    rows: list[np.ndarray] = []

    def read() -> dict:
        content = _read(Path(path))
        rows.append(content.pop("rows"))
        return content

    content = on_root(comm, read)  # all but the large part
    if discretisation is not None:
        _check_same_run(Path(path), content, discretisation)
    if case_text is not None and content["case_text"] != case_text:
        raise CheckpointMismatchError(
            f"{path}: saved by another case ({_short(content['case_text'])} instead of {_short(case_text)}); "
            "resume with the case that is stored beside it, or start afresh in another folder."
        )
    return Checkpoint(rows=broadcast_array(comm, rows[0] if rows else None), **content)


def _check_same_run(path: Path, content: dict, discretisation: Discretisation) -> None:
    for what, found, wanted in (
        ("discretisation", content["discretisation"], discretisation.name),
        ("model", content["model"], str(discretisation.model)),
    ):
        if found != wanted:
            raise CheckpointMismatchError(
                f"{path}: holds the state of another {what} ({found}) than this run's ({wanted}); "
                "resume with the same one, or start afresh in another folder."
            )
    if content["mesh_digest"] != discretisation.mesh_digest:
        raise CheckpointMismatchError(
            f"{path}: holds a state on another mesh ({content['mesh_description']}; digest "
            f"{content['mesh_digest'][:8]}) than this run's ({discretisation.mesh_description}; digest "
            f"{discretisation.mesh_digest[:8]}); resume with the same mesh, or start afresh in another folder."
        )


def _read(path: Path) -> dict:
    """Everything in the file, verified. One process only."""
    version, content = _verified(path)
    with h5py.File(io.BytesIO(content), "r") as file:
        attributes = dict(file.attrs)
        return {
            "t": float(attributes["t"]),
            "step": int(attributes["step"]),
            "discretisation": attributes["discretisation"],
            "mesh_digest": attributes["mesh digest"],
            "mesh_description": attributes["mesh"],
            "model": attributes["model"],
            "version": version,
            "case_text": bytes(file["case"][()]).decode() if "case" in file else None,
            "rows": file["rows"][()],
            "histories": {
                _unquoted(name): (group["times"][()], group["values"][()])
                for name, group in file.get("histories", {}).items()
            },
            "extra": {_unquoted(name): data[()] for name, data in file.get("extra", {}).items()},
        }


def _verified(path: Path) -> tuple[int, bytes]:
    """The format's version and the file's content, once the checksum has been found right."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such checkpoint.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, not a checkpoint.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({cause(error)}).") from None
    if not content:
        raise InputError(f"{path}: is empty, so there is nothing to resume from.")
    head = _HEAD_PATTERN.match(content)
    if head is None:
        what = "an HDF5 file, but not" if h5py.is_hdf5(path) else "damaged, or not"
        raise InputError(f"{path}: {what} a checkpoint of pde_solver.")
    version = int(head.group(1))
    if version > VERSION:
        raise CheckpointMismatchError(
            f"{path}: written in checkpoint format {version}, newer than this program's format {VERSION}; "
            "update pde_solver."
        )
    if hashlib.sha256(memoryview(content)[_HEAD_SIZE:]).hexdigest().encode() != head.group(2):
        raise InputError(f"{path}: truncated or damaged (its checksum does not match its content).")
    return version, content


def _write_array(file: h5py.File, name: str, value: object) -> None:
    array = np.asarray(value)
    file.create_dataset(name, data=array, fletcher32=True if array.size and array.ndim else None)


def _short(case_text: str | None) -> str:
    return "no case" if case_text is None else f"digest {hashlib.sha256(case_text.encode()).hexdigest()[:8]}"


def _quoted(name: str) -> str:
    """A name without the slash and the dot, which mean something to HDF5."""
    return name.replace("%", "%25").replace("/", "%2F").replace(".", "%2E")


def _unquoted(name: str) -> str:
    return name.replace("%2E", ".").replace("%2F", "/").replace("%25", "%")
