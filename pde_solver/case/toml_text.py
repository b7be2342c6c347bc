"""TOML in and out: text to a dictionary with overrides, and back with every value written."""

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pde_solver.errors import InputError

_NOTHING = object()


def read_toml(path: Path) -> dict[str, Any]:
    """The dictionary in a TOML file; every way in which it cannot be read is a sentence.

    Raises:
        InputError: if there is no such file, or it is no UTF-8 or no TOML (with line and column), or empty.
    """
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory; give the case file in it.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {_with_position_first(str(error))}") from None
    if not tables:
        raise InputError(
            f"{path}: is empty; a case needs at least the tables [model], [discretisation], [initial] and [time]."
        )
    return tables


def _with_position_first(message: str) -> str:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, flags=re.DOTALL)
    if found is None:
        return f"no valid TOML: {message}."
    place = f"line {found[2]}, column {found[3]}" if found[2] else "end of file"
    return f"{place}: no valid TOML: {found[1][0].lower()}{found[1][1:]}."


def with_overrides(tables: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """The tables after `key.path=value` for each override; entries of arrays are called by number, from 0.

    A value is read as TOML, and as a string where it is none; no value takes the key (or the table) out.

    Raises:
        InputError: if an override has no "=", or its path leads nowhere.
    """
    for override in overrides:
        path, equals, value = override.partition("=")
        keys = [key.strip() for key in path.replace("[", ".").replace("]", "").split(".")]
        if not equals or not all(keys):
            raise InputError(f"override {override!r}: must be key.path=value, for example time.stop=2.")
        _put(tables, keys, _value(value.strip()) if value.strip() else _NOTHING, override)
    return tables


def _put(tables: dict[str, Any], keys: list[str], value: object, override: str) -> None:
    place: Any = tables
    for depth, key in enumerate(keys):
        last = depth == len(keys) - 1
        where = ".".join(keys[:depth])
        if isinstance(place, list):
            if not key.isdecimal() or int(key) >= len(place):
                raise InputError(
                    f"override {override}: {where} has {len(place)} entries, called 0 to {len(place) - 1}; found {key}."
                )
            at: str | int = int(key)
        elif isinstance(place, dict):
            at = key
            if not last:
                place.setdefault(key, {})
        else:
            raise InputError(f"override {override}: {where} is {inline(place)}, no table.")
        if last and value is _NOTHING:
            place.pop(at, None) if isinstance(place, dict) else place.pop(int(at))
            return
        if last:
            place[at] = value
        place = place[at]


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def write_toml(tables: Mapping[str, Any]) -> str:
    """TOML text of nested dictionaries, lists, strings and numbers; None is left out."""
    return "\n".join(_table((), tables)).strip() + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{_key(key)} = {inline(value)}" for key, value in table.items() if not _is_table(value) and value is not None
    ]
    for key, value in table.items():
        if not _is_table(value):
            continue
        inner = (*path, _key(key))
        header = ".".join(inner)
        for entry in value if isinstance(value, list) else [value]:
            lines += ["", f"[[{header}]]" if isinstance(value, list) else f"[{header}]", *_table(inner, entry)]
    return lines


def _is_table(value: object) -> bool:
    """A dictionary, or a list of them that is not empty."""
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _string(text: str) -> str:
    """JSON's escapes are TOML's, but for the character 127."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(value: object) -> str:
    """One value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case float() if not math.isfinite(value):
            return str(value)
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(inline(entry) for entry in value)}]"
        case Mapping():
            return f"{{{', '.join(f'{_key(key)} = {inline(entry)}' for key, entry in value.items())}}}"
        case _:
            return str(value)
