"""Kill -9 a process many times while it saves checkpoints; load the newest each time. Prints the last step."""

import os
import signal
import sys
import time

import numpy as np
from output_fakes import Patches

from pde_solver.output import CheckpointSeries

folder, kills = sys.argv[1], int(sys.argv[2])
patches = Patches(cells=2000)
series = CheckpointSeries(folder)
count = 0
for pause in np.random.default_rng(11).uniform(0.0, 0.04, size=kills):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # save until killed
        for step in range(count + 1, 10**6):
            series.save(patches.snapshot(float(step), step), "case")
            os.write(writing, b"x")
    os.close(writing)
    os.read(reading, 1)
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        reported = count + 1 + len(pipe.read())
    checkpoint, skipped = series.latest(patches, "case")
    assert checkpoint is not None
    assert not skipped, skipped
    assert checkpoint.step in (reported, reported + 1), (checkpoint.step, reported)
    assert np.array_equal(checkpoint.state(patches), patches.snapshot(checkpoint.t).state)
    count = checkpoint.step
print(count)
