"""Write everything on some number of ranks, and read the checkpoints of other numbers."""

import resource
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from output_fakes import Patches, Tokens

from pde_solver.errors import InputError, RunStopped
from pde_solver.output import CheckpointSeries, FieldWriter, LawWriter, load_checkpoint, write_history
from pde_solver.output.frames import collect_frame

comm = MPI.COMM_WORLD


def main():
    folder = Path(sys.argv[1])
    own = folder / str(comm.size)
    for name, discretisation in (
        ("patches", Patches(labels=2, comm=comm)),
        ("means", Patches(nodal=False, comm=comm)),
        ("tokens", Tokens(comm=comm)),
        ("few", Patches(cells=2, comm=comm)),  # fewer cells than ranks
    ):
        fields, laws = FieldWriter(own / f"{name}.vtkhdf"), LawWriter(own / f"{name}-laws.h5")
        for t in (0.0, 0.5):
            fields.write(discretisation.snapshot(t))
            laws.write(discretisation.snapshot(t))
        (own / name).mkdir(exist_ok=True)
        comm.Barrier()
        CheckpointSeries(own / name).save(discretisation.snapshot(0.5, 3), "case", {"a": (np.zeros(1), np.ones(1))})
        for other in folder.iterdir():  # from P to Q ranks
            series = CheckpointSeries(other / name)
            if (other / name).is_dir():
                checkpoint, skipped = series.latest(discretisation, "case")
                assert checkpoint is not None, skipped
                assert np.array_equal(checkpoint.state(discretisation), discretisation.snapshot(0.5).state)
        frame = collect_frame(discretisation.snapshot(0.5))
        assert (frame is None) == (comm.rank > 0)
        if frame is not None:
            np.savez(own / f"{name}.npz", points=frame.points, values=frame.values)
    write_history(own / "history.csv", {"a": (np.zeros(1), np.ones(1))}, comm)

    for path in (folder / "none.h5", __file__):
        with pytest.raises(InputError):
            load_checkpoint(path, comm=comm)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))  # stands for a full disk
    for writer in (FieldWriter(own / "full.vtkhdf"), fields, laws):
        with pytest.raises(RunStopped, match="File too large"):
            writer.write(Patches(cells=4000 if writer is not fields else 2, comm=comm).snapshot(9.0))


try:
    main()
except BaseException:  # PETSc's own end would wait for the other ranks
    traceback.print_exc()
    comm.Abort(1)
