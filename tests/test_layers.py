"""The floor plan: imports point downward only, and siblings do not know each other."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pde_solver"

#: From the top floor to the ground; the rooms of one floor are siblings.
FLOORS = [
    ["__main__"],
    ["cli"],
    ["doctor", "api"],
    ["command"],
    ["validation", "studies"],
    ["case"],
    ["checks"],
    ["convergence"],
    ["simulation"],
    ["stepping", "output"],
    ["observing"],
    ["discretisations"],
    ["mesh", "solutions"],
    ["kernel_sums"],
    ["models"],
    ["densities", "positions"],
    ["labels", "measures"],
    ["manifolds"],
    ["parallel", "compiled"],
    ["errors", "launcher", "threads"],
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path}: relative import; write the full name")
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = (name or "").split(".")
            if parts == ["pde_solver"] and isinstance(node, ast.ImportFrom):
                rooms |= {alias.name for alias in node.names}
            elif parts[0] == "pde_solver":
                rooms.add(parts[1] if len(parts) > 1 else "")
    return rooms


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def test_every_room_has_a_floor():
    assert {room_of(path) for path in SOURCES} <= set(FLOOR), "give the new room a floor"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downward(path):
    room = room_of(path)
    for other in imported_rooms(path):
        assert other, f"{path} imports the package root; import from the room instead"
        if other != room:
            assert FLOOR[other] > FLOOR[room], f"{room} (floor {FLOOR[room]}) imports {other} (floor {FLOOR[other]})"
