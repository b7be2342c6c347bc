"""The last few checkpoints of a run, in one folder."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pde_solver.discretisations.base import Discretisation
from pde_solver.errors import InputError
from pde_solver.observing.snapshot import Snapshot
from pde_solver.output.atomic import temporary_name
from pde_solver.output.checkpoint import Checkpoint, CheckpointMismatchError, load_checkpoint, save_checkpoint
from pde_solver.output.tables import History
from pde_solver.parallel import on_root

_NAME = re.compile(r"checkpoint_(\d+)\.h5")


class CheckpointSeries:
    """Writes checkpoint_<step>.h5, keeps the newest few, and finds the newest one that is good.

    Args:
        folder: where; it must exist before the first `save`.
        keep: how many stay; two by default, so that one is there if the disk damages the other.

    Raises:
        InputError: if `keep` is not a whole number ≥ 1.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise InputError(f"checkpoints: keep must be a whole number ≥ 1, found {keep!r}.")
        self.folder = Path(folder)
        self.keep = keep

    def save(
        self,
        snapshot: Snapshot,
        case_text: str | None = None,
        histories: Mapping[str, History] | None = None,
        extra: Mapping[str, np.ndarray | float] | None = None,
    ) -> Path:
        """Write a checkpoint and remove those that it makes superfluous; arguments as `save_checkpoint`. Collective.

        Checkpoints of later steps go too: they are damaged, or of a run that was begun again.

        Returns:
            The new file.
        """
        path = self.folder / f"checkpoint_{snapshot.step:09d}.h5"
        save_checkpoint(path, snapshot, case_text, histories, extra)

        def prune() -> None:
            paths = self._paths()
            place = paths.index(path)
            for old in paths[:place] + paths[place + self.keep :]:
                old.unlink(missing_ok=True)
                temporary_name(old).unlink(missing_ok=True)

        on_root(snapshot.comm, prune)
        return path

    def latest(
        self, discretisation: Discretisation, case_text: str | None = None
    ) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that verifies and belongs to the run. Collective.

        Args:
            discretisation: what the state is for.
            case_text: the case of this run; None allows any.

        Returns:
            The checkpoint, or None where there is no good one; and a sentence for each newer one that was skipped.

        Raises:
            CheckpointMismatchError: there are good checkpoints, but of another run: starting afresh would destroy it.
        """
        skipped: list[str] = []
        mismatch: CheckpointMismatchError | None = None
        for path in on_root(discretisation.comm, self._paths):
            try:
                return load_checkpoint(path, discretisation, case_text), skipped
            except CheckpointMismatchError as error:
                mismatch = mismatch or error
                skipped.append(str(error))
            except InputError as error:
                skipped.append(str(error))
        if mismatch is not None:
            raise mismatch
        return None, skipped

    def _paths(self) -> list[Path]:
        """The checkpoints in the folder, newest step first."""
        if not self.folder.is_dir():
            return []
        numbered = [(int(m.group(1)), path) for path in self.folder.iterdir() if (m := _NAME.fullmatch(path.name))]
        return [path for _, path in sorted(numbered, reverse=True)]
