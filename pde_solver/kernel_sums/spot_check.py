"""Which targets are looked at again by the direct sum, the same on any number of ranks."""

import numpy as np
from mpi4py import MPI

from pde_solver.parallel import allgather_rows

#: Targets that a check looks at: half of them anywhere, half where the mass is.
SAMPLE = 32
#: Among so many targets it looks for those where the mass is.
_POOL = 4096
#: Where there is less than this of the largest mass, an error of the velocity counts in proportion.
_NEGLIGIBLE = 1e-3
#: Coordinates are known to round-off only, and ranks must agree.
_LATTICE = 2.0**20


def random_numbers(points: np.ndarray, salt: int) -> np.ndarray:
    """A number in (0, 1] for each point (n, D) that depends on its place and the salt alone, (n,)."""
    with np.errstate(over="ignore"):
        mixed = np.full(len(points), 0x9E3779B97F4A7C15 * (2 * salt + 1) % 2**64, dtype=np.uint64)
        for column in np.rint(points * _LATTICE).astype(np.int64).T:
            mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(32)
    return ((mixed >> np.uint64(11)).astype(float) + 1) * 2.0**-53


def lowest_over_ranks(comm: MPI.Comm, keys: np.ndarray, count: int) -> np.ndarray:
    """Places (k,) of this rank's keys that are among the `count` lowest of all ranks. Collective."""
    mine = np.argsort(keys, kind="stable")[:count]
    everybody = np.sort(allgather_rows(comm, keys[mine]))
    return mine[keys[mine] <= everybody[min(count, len(everybody)) - 1]] if len(everybody) else mine


def importance(mass: np.ndarray) -> np.ndarray:
    """How much an error counts where this share of the largest mass (..., n) lies around: all of it from 1e-3 on."""
    return np.minimum(mass / _NEGLIGIBLE, 1.0)


def importance_for(mass: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """How much errors of what the wanted labels attend to count at targets, (labels', n) or (1, n).

    Args:
        mass: (labels, n) how much of each label's law lies around each target, the most being 1.
        mixing: (labels', labels); where all labels are wanted each asks for its own law, else for that of any.
    """
    counted = importance(mass)
    return counted if mixing.shape[-2] == len(mass) else counted.max(axis=0, keepdims=True)


class Sample:
    """Targets from which the checks of one set of targets are drawn.

    Args:
        comm: the ranks.
        targets: (n, D) this rank's.
    """

    def __init__(self, comm: MPI.Comm, targets: np.ndarray) -> None:
        self._comm = comm
        self._targets = targets
        self.pool = lowest_over_ranks(comm, random_numbers(targets, 0), _POOL)

    def draw(self, number: int, mass: np.ndarray) -> np.ndarray:
        """Places (k,) among this rank's targets for the check of this number. Collective.

        Args:
            number: of the check; each draws others.
            mass: (pool,) importance of the targets in the pool.
        """
        anywhere = random_numbers(self._targets[self.pool], 2 * number + 1)
        with np.errstate(divide="ignore", over="ignore"):  # where there is no mass the key is infinite
            where_mass_is = -np.log(random_numbers(self._targets[self.pool], 2 * number + 2)) / mass
        half = SAMPLE // 2
        chosen = [lowest_over_ranks(self._comm, keys, half) for keys in (anywhere, where_mass_is)]
        return self.pool[np.unique(np.concatenate(chosen))]
