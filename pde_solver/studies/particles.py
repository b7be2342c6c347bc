"""Cross-validation against particles: every recorded quantity and the law, in units of what chance alone amounts to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pde_solver.case.replicas import SampledHistory, standard_error
from pde_solver.case.stored import Result, shared_depths
from pde_solver.convergence import distance_of_laws
from pde_solver.errors import InputError


@dataclass(frozen=True)
class Compared:
    """One recorded quantity beside its mean over independent particle runs, at the last depth that all share.

    Args:
        quantity: its name, with the component of a vector.
        value: of the run.
        mean: of the particle runs.
        standard_error: of that mean, with the run's own share if it has random tokens too.
        discrepancy: value − mean.
        rms: (mean over the particle runs of (value − theirs)²)^{1/2}: falls like n^{−1/2} down to the run's own error.
        t: that depth.
    """

    quantity: str
    value: float
    mean: float
    standard_error: float
    discrepancy: float
    rms: float
    t: float

    @property
    def in_standard_errors(self) -> float:
        """|discrepancy| / standard error; nan where chance plays no part."""
        return abs(self.discrepancy) / self.standard_error if self.standard_error > 0 else math.nan


@dataclass(frozen=True)
class CrossValidation:
    """A run beside R independent particle runs.

    Args:
        quantities: all that both recorded.
        distance: mean over the particle runs of W₁ between their law and that of the run.
        floor: mean of W₁ between the laws of two particle runs: what the sampling alone amounts to.
    """

    quantities: tuple[Compared, ...]
    distance: float
    floor: float

    @property
    def errors(self) -> dict[str, float]:
        """What a study over the mesh or over the number of tokens follows."""
        errors = {"W1": self.distance, "W1 of two samples": self.floor}
        errors |= {f"rms {c.quantity}": c.rms for c in self.quantities if c.standard_error > 0}
        return errors


def cross_validation(run: Result, samples: Sequence[Result], names: Sequence[str]) -> CrossValidation:
    """Hold a stored run against stored independent particle runs. One process only.

    Args:
        run: what is held.
        samples: the particle runs.
        names: the recorded quantities to compare.

    Raises:
        InputError: they share no depth.
    """
    quantities = [c for name in names for c in _compared(name, run, samples)]
    results = [run, *samples]
    places = shared_depths([np.array([t for t, _ in result.laws]) for result in results])
    if not len(places):
        raise InputError(f"{run.name}: its law and those of the particles were kept at no depth in common.")
    law, *others = [result.laws[place][1] for result, place in zip(results, places[-1], strict=True)]
    distance = np.mean([distance_of_laws(law, other, run.manifold) for other in others])
    pairs = [(a, b) for i, a in enumerate(others) for b in others[i + 1 :]]
    floor = np.mean([distance_of_laws(a, b, run.manifold) for a, b in pairs])
    return CrossValidation(tuple(quantities), float(distance), float(floor))


def _compared(name: str, run: Result, samples: Sequence[Result]) -> list[Compared]:
    """One row for each component of a quantity; none if the particles did not record it."""
    if not all(name in result.history for result in (run, *samples)):
        return []
    histories = [sample.history[name] for sample in samples]
    places = shared_depths([run.history[name][0], *(times for times, _ in histories)])
    if not len(places):
        return []
    t = float(run.history[name][0][places[-1, 0]])
    value = np.atleast_1d(run.history[name][1][places[-1, 0]])
    values = np.array(
        [np.atleast_1d(found[place]) for (_, found), place in zip(histories, places[-1, 1:], strict=True)]
    )
    rows = []
    for i, own in enumerate(value):
        sample = SampledHistory.of([(np.array([t]), row[i : i + 1]) for row in values])
        mean, spread = float(sample.mean[0]), float(sample.spread[0])
        rows.append(
            Compared(
                name if len(value) == 1 else f"{name}_{i}",
                float(own),
                mean,
                standard_error(spread, len(samples), samples[0], run),
                float(own) - mean,
                float(np.sqrt(np.mean((own - values[:, i]) ** 2))),
                t,
            )
        )
    return rows
