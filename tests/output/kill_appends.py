"""Kill -9 a process ten times while it appends fields; check what is left, and go on. Prints steps and kills."""

import os
import signal
import sys
import time

import h5py
import numpy as np
from mpi4py import MPI
from output_fakes import Patches

from pde_solver.output.fields import FieldWriter

path = sys.argv[1]
kills = int(sys.argv[2]) if len(sys.argv) > 2 else 10
patches = Patches(cells=2000)
expected = patches.snapshot(0.0).state.reshape(2000, 6)[::-1].ravel()
count = 0
for pause in np.random.default_rng(7).uniform(0.0, 0.05, size=kills):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # append until killed
        writer = FieldWriter(path)
        writer.truncate_after(MPI.COMM_SELF, np.inf)
        for step in range(count, 10**6):
            writer.write(patches.snapshot(float(step)))
            os.write(writing, b"%d\n" % step)
    os.close(writing)
    os.read(reading, 1)
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        reported = max([count, *map(int, pipe.read().split()[1:])])
    FieldWriter(path).truncate_after(MPI.COMM_SELF, np.inf)
    with h5py.File(path) as file:
        count = int(file["VTKHDF/Steps"].attrs["NSteps"])
        depths = file["VTKHDF/Steps/Values"][:]
        values = file["VTKHDF/PointData/density"][: count * 12000].reshape(count, 12000)
    assert count > reported, f"step {reported} was reported written, found {count} steps"
    assert np.array_equal(depths, np.arange(count)), depths
    assert np.allclose(values, expected + np.arange(count)[:, None], rtol=1e-14)
print(count, kills)
