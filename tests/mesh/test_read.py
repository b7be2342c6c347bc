import math
from pathlib import Path

import meshio
import numpy as np
import pytest

from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.mesh import facet_geometry, read_mesh
from tests.mesh.test_curved import area_and_distance

FOLDER = Path(__file__).parents[2] / "meshes"
SPHERE_NOTES = {"1 node that no cell uses was dropped."}

# name: manifold, cell type, cells, degree, measure of the curved domain and how near it must be, notes among others.
# The measures are those of the solids that were meshed; the cell counts are what gmsh and the script wrote.
FILES = {
    "sphere_msh41.msh": (Sphere(3), "triangle", 228, 1, 4 * math.pi, 0.05, SPHERE_NOTES),
    "sphere_msh22.msh": (Sphere(3), "triangle", 228, 1, 4 * math.pi, 0.05, SPHERE_NOTES),
    "sphere_order2.msh": (Sphere(3), "triangle", 228, 2, 4 * math.pi, 3e-4, SPHERE_NOTES),
    "sphere_quads_order2.msh": (Sphere(3), "quadrilateral", 144, 2, 4 * math.pi, 1e-4, SPHERE_NOTES),
    "disc_order2.msh": (
        Euclidean(2),
        "triangle",
        97,
        2,
        4 * math.pi,
        2e-5,
        {"the constant coordinate z = 0 was dropped."},
    ),
    "box_msh22.msh": (
        Euclidean(3),
        "tetrahedron",
        204,
        1,
        8,
        1e-13,
        {"cells left out: 8 vertex, 36 line, 156 triangle."},
    ),
    "box_order2.msh": (Euclidean(3), "tetrahedron", 24, 2, 8, 1e-13, set()),
    "cubes_order2.msh": (Euclidean(3), "hexahedron", 2, 2, 2, 1e-13, set()),
    "cubes.vtk": (Euclidean(3), "hexahedron", 12, 1, 12, 1e-13, set()),
    "rectangle.vtu": (Euclidean(2), "quadrilateral", 72, 1, 8, 1e-13, {"the constant coordinate z = 0.5 was dropped."}),
    "circle.vtk": (Sphere(2), "interval", 40, 1, 2 * math.pi, 5e-3, {"the constant coordinate z = 0 was dropped."}),
    "octahedron.xdmf": (Sphere(3), "triangle", 8, 1, 4 * math.sqrt(3), 1e-13, set()),
    "octahedron.stl": (Sphere(3), "triangle", 8, 1, 4 * math.sqrt(3), 1e-13, set()),
    "octahedron.off": (Sphere(3), "triangle", 8, 1, 4 * math.sqrt(3), 1e-13, set()),
}


def test_all_files_of_the_folder_are_read():
    assert {path.name for path in FOLDER.iterdir() if path.suffix not in (".md", ".py") and path.is_file()} == set(
        FILES
    )
    readme = (FOLDER / "README.md").read_text()
    assert all(name.split(".")[0] in readme for name in FILES)


@pytest.mark.parametrize("name", FILES)
def test_real_files(name, capfd):
    manifold, cell, cells, degree, measure, tolerance, notes = FILES[name]
    mesh = read_mesh(FOLDER / name, manifold)
    assert (mesh.cell, mesh.cell_count, mesh.geometry_degree) == (cell, cells, degree)
    assert mesh.description == f"{name}, {cells} {cell} cells, geometry degree {degree}"
    assert notes <= set(mesh.notes)
    assert abs(area_and_distance(mesh)[0] / measure - 1) < tolerance
    geometry = facet_geometry(mesh)
    if manifold.volume < math.inf:
        assert abs(geometry.cell_volumes.sum() / manifold.volume - 1) < 1e-14
        assert not geometry.wall.any()
    assert capfd.readouterr() == ("", "")


def test_both_gmsh_formats_hold_the_same_mesh():
    meshes = [read_mesh(FOLDER / f"sphere_msh{version}.msh", Sphere(3)) for version in (22, 41)]
    assert [set(mesh.notes) for mesh in meshes] == 2 * [set(meshes[0].notes)]
    corners = [mesh.cell_coordinates.mean(axis=1) for mesh in meshes]
    ordered = [points[np.lexsort(points.round(9).T)] for points in corners]
    assert np.allclose(*ordered, atol=1e-12)


OCTAHEDRON = meshio.read(FOLDER / "octahedron.off")
FORMATS = {
    "a.msh": ("gmsh", {"binary": True}),
    "b.msh": ("gmsh22", {"binary": True}),
    "c.msh": ("gmsh22", {"binary": False}),
    "a.vtk": ("vtk42", {"binary": True}),
    "b.vtk": ("vtk", {"binary": True}),
    "a.vtu": ("vtu", {"binary": False}),
    "b.vtu": ("vtu", {"compression": "lzma"}),
    "a.xdmf": ("xdmf", {}),
    "a.ply": ("ply", {"binary": True}),
    "a.obj": ("obj", {}),
    "a.mesh": ("medit", {}),
    "a.inp": ("abaqus", {}),
    "a.med": ("med", {}),
    "a.stl": ("stl", {"binary": True}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, tmp_path, capsys):
    file_format, options = FORMATS[name]
    path = tmp_path / "pläne und netze" / name
    path.parent.mkdir()
    meshio.write(path, OCTAHEDRON, file_format=file_format, **options)
    capsys.readouterr()
    mesh = read_mesh(path, Sphere(3))
    assert mesh.cell_count == 8
    assert capsys.readouterr() == ("", "")


def big_endian_vtu(path):
    meshio.write(path, OCTAHEDRON, file_format="vtu", binary=False)
    path.write_text(path.read_text().replace('byte_order="LittleEndian"', 'byte_order="BigEndian"'))


def test_byte_order_of_vtu_text_does_not_matter(tmp_path):
    big_endian_vtu(tmp_path / "big.vtu")
    assert read_mesh(tmp_path / "big.vtu", Sphere(3)).cell_count == 8


def test_gaps_in_node_numbers(tmp_path):
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", "3", "10 0 0 0", "25 1 0 0", "7 0 1 0", "$EndNodes"]
    lines += ["$Elements", "1", "3 2 2 0 1 10 25 7", "$EndElements", ""]
    (tmp_path / "gaps.msh").write_text("\n".join(lines))
    mesh = read_mesh(tmp_path / "gaps.msh", Euclidean(2))
    assert facet_geometry(mesh).cell_volumes.tolist() == [0.5]


@pytest.mark.parametrize("name", FILES)
def test_truncated_files_are_refused(name, tmp_path, capsys):
    manifold = FILES[name][0]
    data = (FOLDER / name).read_bytes()
    path = tmp_path / name
    whole = read_mesh(FOLDER / name, manifold).digest
    for length in np.linspace(1, len(data) - 3, 20).astype(int):
        path.write_bytes(data[:length])
        try:
            assert read_mesh(path, manifold).digest == whole  # only a line end or a closing tag was lost
        except InputError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
    assert capsys.readouterr() == ("", "")


def write(path, text):
    path.write_text(text)
    return path


def points_and(*blocks):
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0], [2, 1, 0]], dtype=float)
    return meshio.Mesh(points, list(blocks))


@pytest.mark.parametrize(
    ("make", "manifold", "sentence"),
    [
        (lambda d: d / "none.msh", Sphere(3), "none.msh: there is no such file."),
        (lambda d: d, Sphere(3), "this is a directory"),
        (
            lambda d: write(d / "a.mhs", "x"),
            Sphere(3),
            "the suffix '.mhs' is no mesh format that can be read; did you mean",
        ),
        (lambda d: write(d / "a", "x"), Sphere(3), "the suffix '' is no mesh format"),
        (lambda d: write(d / "a.msh", ""), Sphere(3), "a.msh: the file is empty."),
        (lambda d: write(d / "a.msh", "hello\n"), Sphere(3), "cannot be read as gmsh"),
        (lambda d: write(d / "a.vtu", "<x"), Sphere(3), "cannot be read as vtu"),
        (lambda d: write(d / "a.off", "OFF\n"), Sphere(3), "the header does not end"),
        (lambda d: write(d / "a.ply", "ply\n"), Sphere(3), "the header does not end"),
        (
            lambda d: write(d / "a.msh", "$MeshFormat\n4 0 8\n$EndMeshFormat\n"),
            Sphere(3),
            "gmsh format 4.0 cannot be read; save the mesh as version 4.1 or 2.2.",
        ),
        (lambda d: FOLDER / "cubes.vtk", Sphere(3), "needs triangle or quadrilateral cells, found 12 hexahedron."),
        (lambda d: FOLDER / "cubes.vtk", Sphere(4), "there are no meshes of the sphere S^3"),
        (lambda d: FOLDER / "circle.vtk", Euclidean(1), "y varies from"),
        (lambda d: FOLDER / "rectangle.vtu", Sphere(3), "must lie on the unit sphere"),
    ],
)
def test_what_cannot_be_read(make, manifold, sentence, tmp_path, capsys):
    with pytest.raises(InputError) as caught:
        read_mesh(make(tmp_path), manifold)
    assert sentence in str(caught.value)
    assert capsys.readouterr() == ("", "")


def test_mixed_blocks(tmp_path):
    quad, triangle = ("quad", np.array([[0, 1, 2, 3]])), ("triangle", np.array([[1, 4, 2], [4, 5, 2]]))
    points_and(quad, triangle).write(tmp_path / "mixed.vtu")
    with pytest.raises(InputError, match="one kind, found 1 quad and 2 triangle"):
        read_mesh(tmp_path / "mixed.vtu", Euclidean(2))
    points_and(triangle, ("line", np.array([[0, 1]])), ("vertex", np.array([[3]]))).write(tmp_path / "left.vtu")
    mesh = read_mesh(tmp_path / "left.vtu", Euclidean(2))
    assert mesh.notes[0] == "cells left out: 1 line, 1 vertex."
    points_and(quad, ("quad", np.array([[1, 4, 5, 2]]))).write(tmp_path / "blocks.vtu")
    assert read_mesh(tmp_path / "blocks.vtu", Euclidean(2)).cell_count == 2


def test_serendipity_cells_keep_their_corners(tmp_path):
    points = np.array([[0, 0], [2, 0], [2, 2], [0, 2], [1, 0], [2, 1], [1, 2], [0, 1]], dtype=float)
    flat = np.column_stack([points, np.zeros(8)])
    meshio.Mesh(flat, [("quad8", np.arange(8)[None])]).write(tmp_path / "quad8.vtu")
    mesh = read_mesh(tmp_path / "quad8.vtu", Euclidean(2))
    assert "of the 8 nodes of a quad8 cell only the first 4 were used." in mesh.notes
    assert facet_geometry(mesh).cell_volumes.tolist() == pytest.approx([4.0], rel=1e-14)


def test_projection(tmp_path):
    points = 3 * OCTAHEDRON.points
    meshio.Mesh(points, OCTAHEDRON.cells).write(tmp_path / "large.stl")
    with pytest.raises(InputError, match="pass project=True"):
        read_mesh(tmp_path / "large.stl", Sphere(3))
    mesh = read_mesh(tmp_path / "large.stl", Sphere(3), project=True)
    assert np.abs(np.linalg.norm(mesh.domain.geometry.x, axis=1) - 1).max() < 1e-15


def test_unreadable_file(tmp_path):
    path = write(tmp_path / "a.msh", "$MeshFormat\n")
    path.chmod(0)
    try:
        path.read_text()
    except PermissionError:
        with pytest.raises(InputError, match="cannot be opened"):
            read_mesh(path, Sphere(3))
    else:
        pytest.skip("this user may read everything")
