"""At which depths a step must end, and who observes there."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pde_solver.observing import Schedule, Snapshot

Action = Callable[[Snapshot], object]

#: Depths closer than this fraction of the run are one depth.
SAME_DEPTH = 1e-11


@dataclass
class Observer:
    """Something to do at given depths.

    Args:
        action: any function of a Snapshot.
        schedule: when.
    """

    action: Action
    schedule: Schedule


def events(
    start: float, stop: float, observers: Iterable[Observer], breakpoints: Iterable[float]
) -> dict[float, list[Observer]]:
    """All depths at which a step must end, in order, with the observers that act there.

    Args:
        start: where the run begins.
        stop: where it ends.
        observers: each with its schedule.
        breakpoints: depths at which the model's parameters jump.
    """
    close = SAME_DEPTH * (stop - start)
    times: list[tuple[float, Observer | None]] = [(start, None), (stop, None)]
    times += [(t, observer) for observer in observers for t in observer.schedule.times(start, stop)]
    times += [(t, None) for t in breakpoints if start < t < stop]
    found: dict[float, list[Observer]] = {}
    last = -math.inf
    for depth, observer in sorted(times, key=lambda pair: pair[0]):
        if depth - last > close:
            # the start and the stop stand for whatever lies within rounding of them
            last = start if depth - start <= close else stop if stop - depth <= close else depth
            found[last] = []
        if observer is not None and observer not in found[last]:
            found[last].append(observer)
    return found
