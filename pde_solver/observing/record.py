"""A quantity followed in depth."""

from bisect import bisect_right

import numpy as np

from pde_solver.observing.quantities import Quantity
from pde_solver.observing.snapshot import Snapshot


class Record:
    """The history of one quantity: called with a snapshot it appends the value. Every rank holds the whole history.

    Args:
        quantity: a function of a snapshot, such as `order_parameter`.
        name: what the column is called; the quantity's own name by default.
    """

    def __init__(self, quantity: Quantity, name: str | None = None) -> None:
        self.quantity = quantity
        self.name = quantity.__name__ if name is None else name
        self._times: list[float] = []
        self._values: list[np.ndarray] = []

    def __call__(self, snapshot: Snapshot) -> None:
        """Append the quantity's value at this snapshot. Collective."""
        value = np.array(self.quantity(snapshot), dtype=float)  # a copy: the state behind it goes on changing
        self._times.append(float(snapshot.t))
        self._values.append(value)

    @property
    def times(self) -> np.ndarray:
        """The depths, (n,)."""
        return np.array(self._times, dtype=float)

    @property
    def values(self) -> np.ndarray:
        """The values, (n, ...)."""
        return np.array(self._values, dtype=float)

    def restore(self, times: np.ndarray, values: np.ndarray) -> None:
        """Take over a history that a checkpoint holds: depths (n,) and values (n, ...)."""
        self._times = [float(t) for t in times]
        self._values = [np.array(value, dtype=float) for value in values]

    def truncate_after(self, t: float) -> None:
        """Forget what was recorded at depths > t, as when a run goes back to a checkpoint at t."""
        kept = bisect_right(self._times, t)
        del self._times[kept:], self._values[kept:]

    def __len__(self) -> int:
        return len(self._times)

    def __repr__(self) -> str:
        if not self._times:
            return f"Record({self.name}, empty)"
        return f"Record({self.name}, {len(self)} depths from {self._times[0]:g} to {self._times[-1]:g})"
