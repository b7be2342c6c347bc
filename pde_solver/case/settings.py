"""All tables of a case file together: which there are, what is filled in, and what must fit what."""

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pde_solver.case.complaints import CHOICES, complaints_of
from pde_solver.case.convergence_tables import ConvergenceTable
from pde_solver.case.discretisation_tables import (
    DiscontinuousGalerkin,
    DiscretisationTable,
    FiniteVolume,
    IndependentTokens,
    PlacedTokens,
)
from pde_solver.case.label_tables import LabelTable
from pde_solver.case.law_tables import LawTable, Mixture, PointCloud
from pde_solver.case.mesh_tables import MeshTable
from pde_solver.case.model_tables import Model
from pde_solver.case.run_tables import Evaluation, Output, TimeTable
from pde_solver.errors import did_you_mean
from pde_solver.observing import QUANTITIES

PetscTable = dict[str, str | bool | int | float]

TABLES: dict[str, Any] = {
    "model": Model,
    "labels": LabelTable,
    "mesh": MeshTable,
    "discretisation": DiscretisationTable,
    "initial": LawTable,
    "time": TimeTable,
    "evaluation": Evaluation,
    "output": Output,
    "convergence": ConvergenceTable,
    "petsc": PetscTable,
}


@dataclass(frozen=True)
class Settings:
    """What a case file says, checked, with every default filled in.

    Args:
        model: [model].
        discretisation: [discretisation].
        initial: [initial].
        time: [time].
        evaluation: [evaluation].
        output: [output].
        convergence: [convergence].
        petsc: [petsc], options by name.
        mesh: [mesh]; None for tokens drawn independently.
        labels: [labels]; None for one label.
    """

    model: Model
    discretisation: DiscretisationTable
    initial: LawTable
    time: TimeTable
    evaluation: Evaluation
    output: Output
    convergence: ConvergenceTable
    petsc: dict[str, str | bool | int | float]
    mesh: MeshTable | None = None
    labels: LabelTable | None = None

    def tables(self) -> dict[str, Any]:
        """The settings as nested dictionaries, without what is left out."""
        tables = {name: getattr(self, name) for name in TABLES}
        dumped = {
            name: t if isinstance(t, dict) else t.model_dump(exclude_none=True) for name, t in tables.items() if t
        }
        return _in_reading_order(dumped)


def _in_reading_order(value: Any) -> Any:
    """Without empty lists, and with the keys first that say which table it is."""
    if isinstance(value, list):
        return [_in_reading_order(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    first = [key for key in CHOICES if key in value]
    keys = [*first, *(key for key in value if key not in first)]
    return {key: _in_reading_order(value[key]) for key in keys if value[key] != []}


def checked(tables: dict[str, Any]) -> tuple[Settings | None, list[str]]:
    """The settings in the dictionary of a case file, or None and all complaints, one sentence each."""
    complaints = [f"{name}: unknown; {did_you_mean(name, TABLES)}" for name in tables if name not in TABLES]
    tables = {"evaluation": {}, "output": {}, "petsc": {}} | _with_choices(tables)
    parts: dict[str, Any] = {}
    for name, annotation in TABLES.items():
        if name not in tables:
            if name not in ("mesh", "labels"):
                complaints.append(f"{name}: missing; add a table [{name}]")
            continue
        try:
            parts[name] = TypeAdapter(annotation).validate_python(tables[name])
        except ValidationError as error:
            complaints += complaints_of(error, name, annotation, tables[name])
    complaints += _conflicts(parts, has_mesh="mesh" in tables)
    return (None if complaints else Settings(**parts)), complaints


def _with_choices(tables: dict[str, Any]) -> dict[str, Any]:
    """Fill in the choices on which other defaults depend."""
    tables = dict(tables)
    model, discretisation, time = (tables.get(name) for name in ("model", "discretisation", "time"))
    if isinstance(model, dict) and model.get("manifold") == "circle":
        tables["model"] = {"manifold": "circle", "dimension": 2} | model
    initial = tables.get("initial")
    if isinstance(initial, dict) and isinstance(initial.get("components"), list):
        weighted = [{"weight": 1.0} | c if isinstance(c, dict) else c for c in initial["components"]]
        tables["initial"] = initial | {"components": weighted}
    if isinstance(discretisation, dict) and discretisation.get("kind") == "particles":
        tables["discretisation"] = {"kind": "particles", "placement": "independent"} | discretisation
    if isinstance(time, dict) and "scheme" not in time:
        tables["time"] = {"scheme": _default_scheme(tables.get("discretisation"), tables.get("model"))} | time
    if isinstance(tables.get("labels"), dict):
        tables["labels"] = {"mask": "causal"} | tables["labels"]
    convergence = tables.get("convergence", {})
    if isinstance(convergence, dict):
        tables["convergence"] = {"reference": "finest"} | convergence
    return tables


def _default_scheme(discretisation: Any, model: Any) -> str:
    """What the Simulation would choose, as the case file calls it."""
    try:
        manifold = TypeAdapter(Model).validate_python(model).place()
        return TypeAdapter(DiscretisationTable).validate_python(discretisation).default_scheme(manifold)
    except ValidationError:
        return "ssp-3"  # there is a complaint about the discretisation already; judge the rest of [time]


def _conflicts(parts: dict[str, Any], has_mesh: bool) -> list[str]:
    """What does not fit between tables, of those that are valid in themselves."""
    found = []
    model, mesh, discretisation = (parts.get(name) for name in ("model", "mesh", "discretisation"))
    initial, output = parts.get("initial"), parts.get("output")
    tokens = isinstance(discretisation, IndependentTokens | PlacedTokens)
    if tokens and has_mesh:
        found.append(
            "mesh: does not apply to particles, which have no mesh; it belongs to "
            '"finite-volume" and "discontinuous-galerkin"'
        )
    if discretisation is not None and not tokens and not has_mesh:
        found.append(f'mesh: missing; discretisation.kind = "{discretisation.kind}" needs a table [mesh]')
    if model is not None and mesh is not None and mesh.kind not in model.meshes():
        found.append(
            f'mesh.kind: found "{mesh.kind}", which is no mesh of {model.place()}; '
            f"allowed: {', '.join(model.meshes()) or 'none, use particles there'}"
        )
    if model is not None and isinstance(discretisation, PlacedTokens):
        found += _box_conflicts(model, discretisation)
    if initial is not None and initial.weight is not None:
        found.append("initial.weight: applies to the components of a mixture only; leave it out")
    if isinstance(initial, Mixture) and isinstance(discretisation, FiniteVolume | DiscontinuousGalerkin | PlacedTokens):
        found += [
            f'initial.components[{k}].law: "point-cloud" has no density, so a mixture with it needs tokens drawn '
            'independently; take discretisation.placement = "independent" of "particles", or other laws'
            for k, component in enumerate(initial.components)
            if isinstance(component, PointCloud)
        ]
    found += [f"petsc.{name}: write it without the dash" for name in parts.get("petsc", ()) if name.startswith("-")]
    if output is not None:
        found += [
            f'output.quantities: found "{name}"; {did_you_mean(name, QUANTITIES)}'
            for name in output.quantities
            if name not in QUANTITIES
        ]
    return found


def _box_conflicts(model: Model, tokens: PlacedTokens) -> list[str]:
    given = [name for name in ("lower", "upper", "cells") if getattr(tokens, name) is not None]
    if model.manifold == "euclidean":
        return [
            f'discretisation.{name}: missing; placement = "quadrature" on {model.place()} needs a box'
            for name in ("lower", "upper", "cells")
            if name not in given
        ]
    return [f'discretisation.{name}: does not apply to a {model.manifold}; it belongs to "euclidean"' for name in given]
