"""A case: one file that says what is solved, how, and what is kept."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mpi4py import MPI

from pde_solver.case.memory import check_memory, expected_memory, memory_of_unknowns
from pde_solver.case.settings import Settings, checked
from pde_solver.case.toml_text import read_toml, with_overrides, write_toml
from pde_solver.densities import Law
from pde_solver.discretisations import Discretisation
from pde_solver.errors import InputError
from pde_solver.labels import Labels
from pde_solver.models import Model
from pde_solver.observing import Guards
from pde_solver.parallel import on_root
from pde_solver.simulation import Simulation
from pde_solver.stepping import Scheme


@dataclass(frozen=True, eq=False)
class Case:
    """A case file, checked, with every default filled in.

    Args:
        path: the file.
        settings: what it says.
        comm: the ranks that share it.
    """

    path: Path
    settings: Settings
    comm: MPI.Comm

    @cached_property
    def text(self) -> str:
        """The resolved case as TOML: every default written out, every path absolute."""
        return write_toml(self.settings.tables())

    @cached_property
    def problem_text(self) -> str:
        """The part that decides the solution, without [output], [convergence] and the stop: what a checkpoint must agree with.

        Of a file it has the name alone, so that a run may move; what a mesh file holds is compared by its digest.
        """
        tables = self.settings.tables()
        for table in _with_files(tables):
            table["path"] = Path(table["path"]).name
        time = {key: value for key, value in tables["time"].items() if key not in ("stop", "max_steps")}
        return write_toml(
            {name: table for name, table in tables.items() if name not in ("output", "convergence")} | {"time": time}
        )

    @property
    def digest(self) -> str:
        """A hash of what decides the solution."""
        return hashlib.sha256(self.problem_text.encode()).hexdigest()

    @cached_property
    def model(self) -> Model:
        """The model."""
        table = self.settings.labels
        return self.settings.model.build(Labels() if table is None else table.build())

    @cached_property
    def law(self) -> Law:
        """The initial law. Every rank must ask for it."""
        return self.settings.initial.build(self.comm)

    @property
    def laws(self) -> list[Law]:
        """The initial law of each label."""
        nodes = self.model.labels.nodes
        return [self.law] if nodes is None else [self.law.at(float(s)) for s in nodes]

    @property
    def scheme(self) -> Scheme:
        """The time scheme."""
        return self.settings.time.build()

    def discretisation(self) -> Discretisation:
        """The model bound to the mesh or to tokens, over all ranks.

        Raises:
            InputError: if a mesh cannot be read, does not fit, or takes more memory than there is.
        """
        table = self.settings.mesh
        if table is None or table.size() is not None:
            check_memory(self.comm, expected_memory(self.settings))
        mesh = None if table is None else table.build(self.model.manifold, self.comm)
        if mesh is not None:
            # only now is the size of a mesh from a file known, and what is there of it is paid for
            check_memory(self.comm, memory_of_unknowns(self.settings, mesh.cell_count, mesh.cell))
        return self.settings.discretisation.build(self.model, mesh, self.settings.evaluation.build())

    def simulation(self, *, progress: bool = False) -> Simulation:
        """The simulation, ready to run; nothing is recorded or written yet.

        Args:
            progress: whether to show progress.

        Raises:
            InputError: if the parts do not fit each other.
        """
        time = self.settings.time
        return Simulation(
            self.discretisation(),
            self.laws,
            stop=time.stop,
            start=time.start,
            scheme=self.scheme,
            petsc_options=self.settings.petsc,
            guards=Guards(most_steps=time.max_steps),
            progress=progress,
            case_text=self.problem_text,
        )


def load_case(path: str | Path, overrides: Iterable[str] = (), comm: MPI.Comm = MPI.COMM_WORLD) -> Case:
    """Read a case file on rank 0, check it, and give it to all ranks.

    Args:
        path: a TOML file.
        overrides: changes `key.path=value`, for example "model.attention.0.beta=8".
        comm: the ranks that want it; every one must call.

    Raises:
        InputError: on all ranks, with one line for each thing that is wrong.
    """
    path = Path(path)
    settings = on_root(comm, lambda: _settings(path, list(overrides)))
    case = Case(path, settings, comm)
    refused = []
    for name in ("model", "law", "scheme"):
        try:
            getattr(case, name)
        except InputError as error:
            table = {"law": "initial", "scheme": "time"}.get(name, name)
            refused.append(f"{path}: {table}: {error}")
    if refused:
        raise InputError("\n".join(refused))
    return case


def _settings(path: Path, overrides: list[str]) -> Settings:
    tables = with_overrides(read_toml(path), overrides)
    _resolve_paths(tables, path.parent)
    settings, complaints = checked(tables)
    if settings is None:
        raise InputError("\n".join(f"{path}: {complaint}" for complaint in complaints))
    return settings


def _resolve_paths(tables: dict[str, Any], folder: Path) -> None:
    """Paths are relative to the case file; make them absolute, so that the resolved case holds anywhere."""
    for table in _with_files(tables):
        table["path"] = str((folder / table["path"]).resolve())
    output = tables.get("output")
    if isinstance(output, dict) and isinstance(output.get("directory"), str) and output["directory"]:
        output["directory"] = str((folder / output["directory"]).resolve())


def _with_files(tables: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables that name a file to read, under the key path."""
    initial = tables.get("initial")
    components = initial.get("components") if isinstance(initial, dict) else None
    places = [tables.get("mesh"), initial, *(components if isinstance(components, list) else [])]
    return [p for p in places if isinstance(p, dict) and isinstance(p.get("path"), str) and p["path"]]
