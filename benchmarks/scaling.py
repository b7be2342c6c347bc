"""Strong and weak scaling of the full finite-volume stage on 1 and 2 ranks, what it communicates, and a model of more ranks.

    python benchmarks/scaling.py [--quick]

The script starts `mpiexec` itself. A stage is limited linear reconstruction, upwind flux and the nonlocal velocity (β = 4), on
cubed spheres: strong scaling keeps the mesh, weak scaling keeps the cells of a rank. Times are the best of several, all
ranks together. The last table predicts more ranks from the parts measured on one:

    t(P) = (work of the cells) / P + (work that every rank repeats) + Allreduce(bytes) log₂ P + halo(bytes of a rank)

with the network's latency and bandwidth as printed; they are assumptions, everything else is measured here.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from pathlib import Path

import measuring  # first: it sets the environment
import numpy as np

#: A cluster's network, assumed: seconds of a message, and bytes per second.
LATENCY, BANDWIDTH = 2e-6, 10e9
BETA = 4.0
#: Stages of which the best counts.
REPETITIONS = 20


def stage_on_these_ranks(side: int) -> None:
    """Measure one stage on all ranks of this job; rank 0 prints the findings as JSON."""
    import pde_solver as ps
    from pde_solver.parallel import max_over_ranks, sum_over_ranks

    model = ps.Model(ps.Sphere(3), ps.Attention(BETA))
    discretisation = ps.FiniteVolume(model, ps.cubed_sphere(side))
    comm = discretisation.comm
    state = discretisation.initial(ps.VonMisesFisher((0, 0, 1), kappa=2.0))
    out = np.empty_like(state)
    discretisation.rate(0.0, state, out)
    best = math.inf
    for k in range(REPETITIONS):
        comm.Barrier()
        began = time.perf_counter()
        discretisation.rate(1e-9 * (k + 1), state, out)  # another depth each time, so that nothing is remembered
        best = min(best, float(max_over_ranks(comm, time.perf_counter() - began)))
    ((chosen, _),) = discretisation.velocity_methods(state)
    halo = max_over_ranks(comm, discretisation.halo_bytes)
    squared = float(sum_over_ranks(comm, float(out @ out)))
    if comm.rank == 0:
        found = {
            "cells": discretisation.cell_count,
            "seconds": best,
            "method": chosen.name,
            "allreduce": chosen.communication,
            "halo": int(halo),
            "checksum": math.sqrt(squared),
        }
        print(json.dumps(found), flush=True)


def measured(side: int, ranks: int) -> dict:
    """The findings of a job on so many ranks."""
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
    command = [launcher, "-n", str(ranks), sys.executable, __file__, "--stage", str(side)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(finished.stderr)
    return json.loads(finished.stdout.splitlines()[-1])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small mesh only")
    parser.add_argument("--stage", type=int, metavar="SIDE", help="measure one stage on the ranks of this job")
    arguments = parser.parse_args()
    if arguments.stage:
        stage_on_these_ranks(arguments.stage)
        return
    print(f"{measuring.processor()}, β = {BETA:g}, finite volumes of order 2 on the cubed sphere")
    sides = (117,) if arguments.quick else (117, 467)  # 82,134 and 1,308,534 cells
    print(
        f"\n{'':8}{'cells':>10} {'1 rank':>10} {'2 ranks':>10} {'efficiency':>11} {'Mcell/s':>9}  sent by a rank in a stage"
    )
    alone = {}
    for side in sides:
        one, two = measured(side, 1), measured(side, 2)
        alone[side] = one
        if abs(one["checksum"] / two["checksum"] - 1) > 1e-12:
            sys.exit(f"1 and 2 ranks differ: {one['checksum']!r} and {two['checksum']!r}")
        sent = f"Allreduce {two['allreduce']:,} B, halo {two['halo']:,} B"
        print(_row("strong", one, two, one["seconds"] / two["seconds"] / 2, sent), flush=True)
    for side in sides:
        half, two = measured(round(side / math.sqrt(2)), 1), measured(side, 2)
        shares = 2 * half["cells"] / two["cells"]  # the two meshes do not quite have one to two cells
        print(_row("weak", half, two, half["seconds"] / two["seconds"] / shares, ""), flush=True)
    small = measured(30, 1)
    for one in alone.values():
        print(_predictions(one, small))


def _row(kind: str, one: dict, two: dict, efficiency: float, sent: str) -> str:
    rate = two["cells"] / two["seconds"] / 1e6
    times = f"{1e3 * one['seconds']:7.2f} ms {1e3 * two['seconds']:7.2f} ms"
    return f"{kind:8}{two['cells']:10,d} {times} {efficiency:11.2f} {rate:9.1f}  {sent}"


def _predictions(one: dict, small: dict) -> str:
    """More ranks, from one rank's time at this size and at a small one: what grows with the cells, and what does not."""
    per_cell = (one["seconds"] - small["seconds"]) / (one["cells"] - small["cells"])
    repeated = max(small["seconds"] - per_cell * small["cells"], 0.0)
    lines = [
        f"\nModel, {one['cells']:,} cells: {1e9 * per_cell:.1f} ns a cell, {1e3 * repeated:.2f} ms on every rank, network "
        f"{1e6 * LATENCY:g} µs and {BANDWIDTH / 1e9:g} GB/s",
        f"{'ranks':>8} {'ms a stage':>11} {'efficiency':>11}",
    ]
    for ranks in (1, 2, 8, 32, 128, 1024):
        share = one["cells"] / ranks
        perimeter = 4 * math.sqrt(share) * 1.5  # cells around a square share of the mesh, corners included
        network = math.log2(ranks) * (LATENCY + one["allreduce"] / BANDWIDTH)
        network += 6 * LATENCY + 8 * 5 * perimeter / BANDWIDTH if ranks > 1 else 0.0
        seconds = per_cell * share + repeated + network
        lines.append(f"{ranks:8,d} {1e3 * seconds:11.3f} {one['seconds'] / ranks / seconds:11.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
