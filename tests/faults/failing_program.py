"""A run of many seconds, on any number of ranks, to which something happens at t = 0.2.

Usage: failing_program.py FOLDER WHAT, where WHAT is raise, exit, interrupt or kill (on the last rank alone), leave (on all
ranks), or wait: for a signal from outside, after "ready" and the process ids have been printed.
"""

import os
import signal
import sys
import time

from mpi4py import MPI

import pde_solver as ps

COMM = MPI.COMM_WORLD
folder, what = sys.argv[1:]

model = ps.Model(ps.Sphere(2), ps.Attention(2.0))
discretisation = ps.FiniteVolume(model, ps.circle(32))
simulation = ps.Simulation(discretisation, ps.VonMisesFisher((1, 1), 2.0), 1e3, scheme=ps.SSP(2, step=0.02))
record = simulation.record(ps.order_parameter, every=0.1)
simulation.write_checkpoints(folder, every=0.1)


def happen(snapshot: ps.Snapshot) -> None:
    last = COMM.rank == COMM.size - 1
    if what == "raise" and last:
        raise ArithmeticError("something broke")
    if what == "exit" and last:
        sys.exit(3)
    if what == "leave":
        sys.exit(3)
    if what == "interrupt" and last:
        os.kill(os.getpid(), signal.SIGINT)
    if what == "kill" and last:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "wait":
        pids = COMM.allgather(os.getpid())
        if COMM.rank == 0:
            print("ready", *pids, flush=True)


simulation.observe(happen, at=[0.2])
if what == "wait":  # so slowly that the signal comes in the middle
    simulation.observe(lambda snapshot: time.sleep(0.02), every=0.02)
outcome = simulation.run()
if COMM.rank == 0:
    print(outcome, flush=True)
