"""Take down every write of which an append consists, and continue the file from each state in between.

Prints the steps of the last file and the number of states.
"""

import io
import sys
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI
from output_fakes import Patches

from pde_solver.output import fields
from pde_solver.output.fields import FieldWriter


class Recorder(io.BytesIO):
    """A file in memory that keeps its content after each write."""

    def __init__(self, content):
        super().__init__(content)
        self.states = [content]

    def write(self, data):
        written = super().write(data)
        self.states.append(self.getvalue())
        return written

    def truncate(self, size=None):
        done = super().truncate(size)
        self.states.append(self.getvalue())
        return done


path = Path(sys.argv[1])
patches = Patches()
expected = patches.snapshot(0.0).state.reshape(12, 6)[::-1].ravel()
first, last = (int(word) for word in sys.argv[2:4]) if len(sys.argv) > 3 else (1, 4)
writer = FieldWriter(path)
for step in range(first):
    writer.write(patches.snapshot(float(step)))
count = 0
for step in range(first, last):
    content = path.read_bytes()
    recorder = Recorder(content)
    values = fields._Step(float(step), 69, None, {"density": (expected + step).reshape(12, 6)})
    with h5py.File(recorder, "r+") as file:
        fields._append(file, values)
    for state in recorder.states:
        path.write_bytes(state + bytes(4096))  # the space that was reserved
        continued = FieldWriter(path)
        continued.truncate_after(MPI.COMM_SELF, np.inf)
        with h5py.File(path) as file:
            steps = int(file["VTKHDF/Steps"].attrs["NSteps"])
        assert steps in (step, step + 1), f"{steps} steps left of {step}"
        for t in range(steps, step + 3):
            continued.write(patches.snapshot(float(t)))
        with h5py.File(path) as file:
            assert np.array_equal(file["VTKHDF/Steps/Values"][:], np.arange(step + 3.0))
            found = file["VTKHDF/PointData/density"][:].reshape(step + 3, 72)
        assert np.allclose(found, expected + np.arange(step + 3)[:, None], rtol=1e-14)
        count += 1
    path.write_bytes(content)
    writer.write(patches.snapshot(float(step)))
print(last, count)
