"""Resume on this number of ranks what any number of ranks has left in a folder; print how far the final states differ."""

import json
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from small_runs import CHECKPOINT, all_rows, simulation

COMM = MPI.COMM_WORLD
differences = {}
for folder in sorted(Path(sys.argv[1]).glob("*/*")):
    run = simulation(folder.name)
    sentence = run.resume(folder)
    assert sentence == f"Resumed at t = {CHECKPOINT:g}.", sentence
    assert run.run().completed
    assert run.records["mass"].times.tolist() == [0, 0.1, 0.2, 0.3]
    final = all_rows(run.discretisation, run.state)
    if final is not None:
        wanted = np.load(folder / "final.npy")
        differences[f"{folder.parent.name} {folder.name}"] = float(np.abs(final - wanted).max() / np.abs(wanted).max())
if COMM.rank == 0:
    print(json.dumps(differences))
