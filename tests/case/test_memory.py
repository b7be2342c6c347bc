"""Memory is counted before anything is built."""

import pytest
from mpi4py import MPI
from pydantic import TypeAdapter
from test_errors import GOOD

from pde_solver.case import load_case, memory
from pde_solver.case.mesh_tables import MeshTable
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.mesh.arguments import BYTES_PER_CELL


@pytest.mark.parametrize(
    ("manifold", "table"),
    [
        (Sphere(3), {"kind": "icosphere", "level": 2}),
        (Sphere(3), {"kind": "cubed-sphere", "cells": 3}),
        (Sphere(2), {"kind": "circle", "cells": 7}),
        (Euclidean(1), {"kind": "interval", "lower": 0.0, "upper": 1.0, "cells": 5}),
        (Euclidean(2), {"kind": "rectangle", "lower": [0.0, 0.0], "upper": [1.0, 1.0], "cells": [2, 3]}),
        (
            Euclidean(2),
            {"kind": "rectangle", "lower": [0.0, 0.0], "upper": [1.0, 1.0], "cells": [2, 3], "cell": "quadrilateral"},
        ),
        (Euclidean(3), {"kind": "box", "lower": [0.0] * 3, "upper": [1.0] * 3, "cells": [2, 3, 1]}),
        (
            Euclidean(3),
            {"kind": "box", "lower": [0.0] * 3, "upper": [1.0] * 3, "cells": [2, 3, 1], "cell": "hexahedron"},
        ),
    ],
)
def test_the_number_of_cells_is_known_before_they_are_built(manifold, table):
    settings = TypeAdapter(MeshTable).validate_python(table)
    mesh = settings.build(manifold, MPI.COMM_SELF)
    assert settings.size() == (mesh.cell_count, mesh.cell)


def case_of(tmp_path, text):
    path = tmp_path / "case.toml"
    path.write_text(text)
    return load_case(path)


def test_what_does_not_fit_is_refused_before_it_is_built(tmp_path, monkeypatch):
    case = case_of(tmp_path, GOOD)
    # 8 B · 10⁹ · (one unknown and a point of three coordinates) · 80 cells = 2.56 TB, and the mesh 0.05 MB
    monkeypatch.setattr(memory, "_available_here", lambda: 80.0 * BYTES_PER_CELL)
    monkeypatch.setattr(memory, "VECTORS", 1e9)
    with pytest.raises(InputError) as caught:
        case.simulation()
    assert str(caught.value).startswith("memory: the case takes about 2,560,001 MB for its mesh, unknowns and sources")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "tokens",
    [
        'kind = "particles"\ncount = 1000000000000',
        'kind = "particles"\nplacement = "quadrature"\nquadrature_order = 1000000',
    ],
)
def test_tokens_count_too(tmp_path, tokens):
    text = GOOD.replace('[mesh]\nkind = "icosphere"\nlevel = 1\n', "").replace('kind = "finite-volume"', tokens)
    with pytest.raises(InputError, match="memory: the case takes about"):
        case_of(tmp_path, text).simulation()


def test_galerkin_of_a_higher_degree_takes_more(tmp_path):
    needed = [
        memory.expected_memory(
            case_of(tmp_path, GOOD.replace('"finite-volume"', f'"discontinuous-galerkin"\ndegree = {degree}')).settings
        )
        for degree in (1, 2, 3)
    ]
    assert needed == sorted(needed)
    assert needed[0] > 80 * BYTES_PER_CELL
