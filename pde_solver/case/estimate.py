"""What a case would cost: measured on the case itself, without taking a step."""

import math
import resource
import time

import numpy as np

from pde_solver.case.case import Case
from pde_solver.case.memory import expected_memory, megabytes
from pde_solver.discretisations import Discretisation
from pde_solver.parallel import max_over_ranks, sum_over_ranks
from pde_solver.simulation import Simulation

#: Seconds for which velocities are evaluated to measure their speed (one evaluation at least).
MEASURED_FOR = 0.1


def estimate(case: Case) -> str:
    """Cells, unknowns, methods of summation, step limit, seconds and memory, one line each. Collective.

    Raises:
        InputError: as `Case.simulation`.
    """
    simulation = case.simulation()
    discretisation = simulation.discretisation
    time_table, scheme = case.settings.time, case.scheme
    per_stage = seconds_per_rate(simulation)
    limit = discretisation.step_limit(time_table.start, simulation.state)
    step = largest = simulation.largest_step()
    lines = [
        ("mesh", discretisation.mesh_description),
        ("method", f"{discretisation.name}: {discretisation.cell_count:,} {_cells(discretisation)}, "
                   f"{discretisation.unknowns:,} unknowns on {_ranks(discretisation)}"),
        *_velocity(simulation),
        ("stage", f"{_seconds(per_stage)} on {_ranks(discretisation)}, measured"),
    ]  # fmt: skip
    if math.isfinite(step):
        # a step also ends at every depth of output
        step = min(step, case.settings.output.every)
        steps = math.ceil((time_table.stop - time_table.start) / step)
        which = f"{time_table.scheme}, cfl = {scheme.cfl:g}" if scheme.step is None else f"{time_table.scheme}, fixed"
        most = "at least " if scheme.adaptive else ""
        lines += [
            ("step", f"{largest:.3g} allowed at t = {time_table.start:g} ({which}; one Euler step may be {limit:.3g})"),
            ("cost", f"{most}{steps:,} steps of {scheme.stages} stages, {_seconds(steps * scheme.stages * per_stage)} "
                     "if the step stays as it is at the start"),
        ]  # fmt: skip
    else:
        lines += [
            ("step", f"chosen by the error control of {time_table.scheme}"),
            ("cost", f"{_seconds(scheme.stages * per_stage)} for each step of {scheme.stages} stages"),
        ]
    resident, expected = _resident(discretisation), _expected(case, discretisation)
    lines.append(
        ("memory", f"{resident} MB over all ranks now; by their number the unknowns and their mesh take {expected}")
    )
    return "\n".join(f"{name:10}{text}" for name, text in lines)


def seconds_per_rate(simulation: Simulation) -> float:
    """Seconds that one evaluation of du/dt takes, on the slowest rank; a first one compiles and does not count."""
    discretisation, state = simulation.discretisation, simulation.state
    out = np.empty_like(state)
    discretisation.enter(simulation.start)
    discretisation.rate(simulation.start, state, out)
    spent, count = 0.0, 0
    while spent < MEASURED_FOR:
        count += 1
        began = time.perf_counter()
        # another depth each time, so that nothing is remembered from the last evaluation
        discretisation.rate(math.nextafter(simulation.start, math.inf) + 1e-9 * count, state, out)
        spent += float(max_over_ranks(discretisation.comm, time.perf_counter() - began))
    return spent / count


def _velocity(simulation: Simulation) -> list[tuple[str, str]]:
    """Which methods sum the heads, and why. Collective."""
    discretisation = simulation.discretisation
    evaluation = discretisation.evaluation
    lines = []
    for chosen, direct in discretisation.velocity_methods(simulation.state):
        text = f"{chosen.name}: about {_seconds(chosen.seconds)} on one core"
        if evaluation.method != "automatic":
            text += ", as asked for"
        elif chosen is direct or chosen.family == direct.family:
            text += f"; nothing quicker promises {evaluation.tolerance:.0e}"
        else:
            text += f", the direct sum {_seconds(direct.seconds)}; promises {chosen.error:.0e}"
        text += f"; between ranks {_size(chosen.communication)} from each"
        lines.append(("velocity", text))
    return lines or [("velocity", "no attention")]


def _cells(discretisation: Discretisation) -> str:
    return "cells" if discretisation.has_density else "tokens"


def _ranks(discretisation: Discretisation) -> str:
    return "one rank" if discretisation.comm.size == 1 else f"{discretisation.comm.size} ranks"


def _resident(discretisation: Discretisation) -> str:
    """Peak resident memory, which Linux counts in kB."""
    return f"{sum_over_ranks(discretisation.comm, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024):,.0f}"


def _expected(case: Case, discretisation: Discretisation) -> str:
    mesh = getattr(discretisation, "mesh", None)
    size = None if mesh is None else (mesh.cell_count, mesh.cell)
    return megabytes(expected_memory(case.settings, size))


def _size(count: float) -> str:
    return f"{count / 1e3:.2g} kB" if count < 1e6 else megabytes(count)


def _seconds(seconds: float) -> str:
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
