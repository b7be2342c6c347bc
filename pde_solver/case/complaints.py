"""What pydantic finds wrong, said as sentences: where, what was found, what is allowed."""

import math
import re
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from pde_solver.case.table import Table
from pde_solver.case.toml_text import inline
from pde_solver.errors import did_you_mean

#: The keys whose value says which table it is.
CHOICES = ("kind", "placement", "law", "region", "scheme", "reference", "mask")

_MISSING = object()


def complaints_of(error: ValidationError, name: str, annotation: Any, value: Any) -> list[str]:
    """One sentence for each thing that is wrong with a table.

    Args:
        error: what pydantic found.
        name: the table's name.
        annotation: the table's type, a Table or a union of them.
        value: what stood in the file.
    """
    sentences = [_complaint(found, name, annotation, value) for found in error.errors(include_url=False)]
    return list(dict.fromkeys(sentences))


def _complaint(found: Any, path: str, annotation: Any, value: Any) -> str:
    """Follow the place of an error down into the tables, then say what is wrong there."""
    table: type[Table] | None = None
    key, field = path, None
    for item in found["loc"]:
        if isinstance(item, int):
            if not isinstance(value, list) or not _tables_in(annotation):
                break  # an entry of a list of numbers: the whole list is shown
            path, value = f"{path}[{item}]", value[item]
            continue
        if isinstance(value, dict) and item in [value.get(choice) for choice in CHOICES]:
            continue  # pydantic's mark of which table of a union it is
        if not isinstance(value, dict):
            break
        candidates = _tables_in(annotation)
        table = _chosen(candidates, value)
        siblings, parent = candidates, value
        key, path = item, f"{path}.{item}"
        value = value.get(item, _MISSING)
        field = table.model_fields.get(item) if table else None
        if field is None and table is not None:
            return f"{path}: {_out_of_place(key, table, siblings, parent)}"
        annotation = field.annotation if field else None
    if found["type"] == "value_error" and not isinstance(value, list):
        return _joined(path, str(found["ctx"]["error"]))
    if found["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return _choice(found["ctx"]["discriminator"].strip("'"), path, annotation, value)
    allowed = _allowed(annotation, field, path)
    if value is _MISSING:
        return f"{path}: missing, must be {allowed}"
    shown = "a table" if isinstance(value, dict) else _shortened(inline(value))
    if isinstance(value, float) and not math.isfinite(value):
        allowed = allowed.replace("a number", "a finite number")
    return f"{path}: found {shown}, must be {allowed}{_near(value, annotation)}"


def _joined(path: str, message: str) -> str:
    """A message that begins with a key of the table goes on with its path."""
    return f"{path}.{message}" if re.match(r"[a-z_]+(\[\d+\])?(\.[a-z_]+)?: ", message) else f"{path}: {message}"


def _choice(choice: str, path: str, annotation: Any, value: Any) -> str:
    """A table that does not say which of several it is, or says it wrongly."""
    if not isinstance(value, dict):
        return f"{path}: found {inline(value)}, must be a table [{path}]"
    fitting = [
        table for table in _tables_in(annotation) if choice in table.model_fields and _fits(table, value, but=choice)
    ]
    options = list(dict.fromkeys(option for table in fitting for option in _options(table.model_fields[choice])))
    if choice not in value:
        return f"{path}.{choice}: missing, must be {_or([inline(option) for option in options])}"
    return f"{path}.{choice}: found {_shortened(inline(value[choice]))}; {did_you_mean(str(value[choice]), options)}"


def _out_of_place(key: str, table: type[Table], siblings: list[type[Table]], value: dict[str, Any]) -> str:
    """An unknown key: a slip of the pen, or one that belongs to another choice."""
    for choice in CHOICES:
        others = [
            option
            for other in siblings
            if key in other.model_fields
            for option in _options(other.model_fields.get(choice))
        ]
        others = [option for option in dict.fromkeys(others) if option != value.get(choice)]
        if others:
            belongs = _or([inline(option) for option in others])
            return f"does not apply to {choice} = {inline(value.get(choice))}; it belongs to {belongs}"
    return f"unknown; {did_you_mean(key, table.model_fields)}"


def _options(field: FieldInfo | None) -> tuple[str, ...]:
    return get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()


def _tables_in(annotation: Any) -> list[type[Table]]:
    """The tables that may stand at a place."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return [annotation]
    return [table for inner in get_args(annotation) for table in _tables_in(inner)]


def _chosen(candidates: list[type[Table]], value: dict[str, Any]) -> type[Table] | None:
    """The table whose choices are those that the file makes."""
    return next((table for table in candidates if _fits(table, value)), None)


def _fits(table: type[Table], value: dict[str, Any], but: str = "") -> bool:
    choices = [(choice, _options(table.model_fields.get(choice))) for choice in CHOICES if choice != but]
    return all(value.get(choice) in options for choice, options in choices if options and (choice in value or not but))


def _allowed(annotation: Any, field: FieldInfo | None, path: str) -> str:
    if field is not None and field.description:
        return field.description
    literals = [
        option
        for inner in (annotation, *get_args(annotation))
        if get_origin(inner) is Literal
        for option in get_args(inner)
    ]
    if literals:
        return _or([inline(option) for option in literals])
    for inner in get_args(annotation):
        for metadata in getattr(inner, "__metadata__", ()):
            if isinstance(metadata, FieldInfo) and metadata.description:
                return metadata.description
    if _tables_in(annotation):
        return f"a table [{re.sub(r'\[\d+\]', '', path)}]"
    return {bool: "true or false", str: "a string"}.get(annotation, "a string, a number, true or false")


def _near(value: object, annotation: Any) -> str:
    options = [
        option
        for inner in (annotation, *get_args(annotation))
        if get_origin(inner) is Literal
        for option in get_args(inner)
    ]
    guess = did_you_mean(value, options) if isinstance(value, str) and options else ""
    return f"; {guess}" if guess.startswith("did you mean") else ""


def _or(options: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(options[:-1]), *options[-1:]]))


def _shortened(text: str, width: int = 60) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
