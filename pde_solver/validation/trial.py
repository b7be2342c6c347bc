"""What a check function is given: its claim's case, and whether to be quick."""

from dataclasses import dataclass, field
from pathlib import Path

from mpi4py import MPI

from pde_solver.case import Case, load_case
from pde_solver.errors import InputError
from pde_solver.simulation import Simulation


@dataclass(eq=False)
class Trial:
    """One claim under examination.

    Args:
        folder: the claim's folder, with its case.toml.
        quick: whether to take the coarse resolutions, so that the whole suite takes minutes.
        comm: the ranks that run it.
    """

    folder: Path
    quick: bool = False
    comm: MPI.Comm = field(default_factory=lambda: MPI.COMM_WORLD)
    #: The resolved cases that were loaded, by the changes that made them.
    cases: dict[tuple[str, ...], str] = field(default_factory=dict, init=False)

    def case(self, *changes: str) -> Case:
        """The claim's case with changes, `key.path=value`. Collective.

        Raises:
            InputError: if the changed case cannot be used.
        """
        case = load_case(self.folder / "case.toml", changes, self.comm)
        self.cases[changes] = case.text
        return case

    def simulation(self, *changes: str) -> Simulation:
        """A simulation of the claim's case with changes, ready to run. Collective."""
        return self.case(*changes).simulation()

    def resolutions[T](self, *full: T, quick: int) -> list[T]:
        """The resolutions of a study, from coarse to fine: all, or the first few if the trial is quick.

        Args:
            full: all of them.
            quick: how many a quick trial takes.
        """
        if not 1 <= quick <= len(full):
            raise InputError(f"resolutions: quick must be from 1 to {len(full)}, found {quick}.")
        return list(full[:quick] if self.quick else full)
