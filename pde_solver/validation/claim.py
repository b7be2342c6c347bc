"""A claim: a folder with a case, the functions that check it, and a page that says what is claimed and by whom."""

import importlib.util
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pde_solver.checks import Check
from pde_solver.errors import InputError, did_you_mean
from pde_solver.validation.trial import Trial

CASE, CHECKS, PAGE = "case.toml", "check.py", "README.md"
#: The suite's list of papers.
PAPERS = "papers.toml"

CheckFunction = Callable[[Trial], Iterator[Check]]


@dataclass(frozen=True)
class Claim:
    """What is claimed, and how it is checked.

    Args:
        name: of the folder.
        folder: where it lies.
        title: the heading of its page.
        page: the page, Markdown without the heading.
    """

    name: str
    folder: Path
    title: str
    page: str

    @classmethod
    def read(cls, folder: Path) -> "Claim":
        """Read a folder.

        Raises:
            InputError: if one of its three files is missing, or the page has no heading.
        """
        missing = [name for name in (CASE, CHECKS, PAGE) if not (folder / name).is_file()]
        if missing:
            raise InputError(f"{folder}: is no claim, as it has no {' and no '.join(missing)}.")
        heading, _, page = (folder / PAGE).read_text(encoding="utf-8").partition("\n")
        if not heading.startswith("# "):
            raise InputError(f"{folder / PAGE}: must begin with a heading, '# What is claimed'.")
        return cls(folder.name, folder, heading[2:].strip(), page.strip())

    def functions(self) -> dict[str, CheckFunction]:
        """The check functions of check.py, `check_*`, by name and in the order of the file.

        Raises:
            InputError: if there is none.
            Exception: whatever the file itself raises.
        """
        path = self.folder / CHECKS
        specification = importlib.util.spec_from_file_location(f"claim_{self.name}", path)
        assert specification is not None  # the file ends in .py
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        found = {name: value for name, value in vars(module).items() if name.startswith("check_") and callable(value)}
        if not found:
            raise InputError(f"{path}: has no function check_...(trial) that yields checks.")
        return found


def find_claims(suite: Path, names: Iterable[str] = ()) -> list[Claim]:
    """The claims of a suite, in the order of their names.

    Args:
        suite: the folder that holds their folders.
        names: which of them; all by default.

    Raises:
        InputError: if there is no such suite, or no claim of one of the names.
    """
    if not suite.is_dir():
        raise InputError(f"{suite}: there is no such folder; give one with a folder for each claim, --suite DIR.")
    folders = {path.name: path for path in sorted(suite.iterdir()) if _is_meant_as_claim(path)}
    if not folders:
        raise InputError(f"{suite}: holds no claims; a claim is a folder with {CASE}, {CHECKS} and {PAGE}.")
    wanted = list(dict.fromkeys(names)) or list(folders)
    for name in wanted:
        if name not in folders:
            raise InputError(f"{suite}: no claim {name!r}; {did_you_mean(name, folders)}")
    return [Claim.read(folders[name]) for name in wanted]


def _is_meant_as_claim(folder: Path) -> bool:
    """Whether any of the three files is there: a claim without its checks must not be passed over in silence."""
    return any((folder / name).is_file() for name in (CASE, CHECKS, PAGE))


def known_papers(suite: Path) -> dict[str, str]:
    """Authors and titles by arXiv number, from the suite's papers.toml if it has one.

    Raises:
        InputError: if that is no TOML table of strings.
    """
    path = suite / PAPERS
    if not path.is_file():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no valid TOML: {error}.") from None
    wrong = [number for number, words in tables.items() if not isinstance(words, str)]
    if wrong:
        raise InputError(f'{path}: {wrong[0]}: must be a string, as in "2312.10794" = "authors, title".')
    return tables
