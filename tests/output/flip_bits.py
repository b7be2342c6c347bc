"""Flip one bit of a checkpoint at a time. Prints how many were refused, and how many had no effect."""

import sys
from pathlib import Path

import numpy as np
from output_fakes import Patches

from pde_solver.errors import InputError
from pde_solver.output import load_checkpoint, save_checkpoint

folder, count = Path(sys.argv[1]), int(sys.argv[2])
patches = Patches()
snapshot = patches.snapshot(0.25, step=3)
save_checkpoint(folder / "good.h5", snapshot, "case", {"energy": (np.arange(9.0), np.arange(9.0))}, {"dt": 0.1})
good = (folder / "good.h5").read_bytes()
random = np.random.default_rng(3)
refused = harmless = 0
for place in random.choice(len(good), size=min(count, len(good)), replace=False):
    data = bytearray(good)
    data[place] ^= 1 << random.integers(8)
    (folder / "bad.h5").write_bytes(data)
    try:
        checkpoint = load_checkpoint(folder / "bad.h5", patches, "case")
    except InputError:
        refused += 1
        continue
    assert np.array_equal(checkpoint.state(patches), snapshot.state)
    assert (checkpoint.t, checkpoint.step) == (0.25, 3)
    assert np.array_equal(checkpoint.histories["energy"][1], np.arange(9.0))
    harmless += 1
print(refused, harmless)
