"""Makes the mesh files of this folder with gmsh and meshio: python meshes/make.py [folder].

Needs gmsh (and its system libraries libglu1-mesa libxrender1 libxcursor1 libxft2 libxinerama1), meshio and h5py.
"""

import math
import sys
from pathlib import Path

import gmsh
import meshio
import numpy as np


def sphere_of_patches(size: float) -> None:
    """The unit sphere as people draw it in gmsh: eight patches between arcs about a centre point."""
    geo = gmsh.model.geo
    centre = geo.addPoint(0, 0, 0, size)
    tips = {
        (axis, side): geo.addPoint(*(side * (axis == k) for k in range(3)), size)
        for axis in range(3)
        for side in (1, -1)
    }
    arcs = {}
    for axis in range(3):
        for a in (1, -1):
            for b in (1, -1):
                ends = (axis, a), ((axis + 1) % 3, b)
                arcs[ends] = geo.addCircleArc(tips[ends[0]], centre, tips[ends[1]])
    for x in (1, -1):
        for y in (1, -1):
            for z in (1, -1):
                # the same loop for every octant, so that half of the patches face inward
                loop = [arcs[(0, x), (1, y)], arcs[(1, y), (2, z)], arcs[(2, z), (0, x)]]
                geo.addSurfaceFilling([geo.addCurveLoop(loop)])
    geo.synchronize()


def set_size(size: float) -> None:
    """Ask gmsh for elements of this size everywhere."""
    gmsh.option.setNumber("Mesh.MeshSizeMin", size)
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)


def write(path: Path, version: float = 4.1, order: int = 1, dimension: int = 2) -> None:
    """Mesh the current gmsh model and write all of it, points and curves too."""
    gmsh.option.setNumber("Mesh.MshFileVersion", version)
    gmsh.option.setNumber("Mesh.SaveAll", 1)
    gmsh.model.mesh.generate(dimension)
    gmsh.model.mesh.setOrder(order)
    gmsh.write(str(path))


def main(folder: Path) -> None:
    """Write all files into the folder."""
    gmsh.initialize()
    gmsh.option.setNumber("General.Terminal", 0)

    for name, version, order in (("sphere_msh41", 4.1, 1), ("sphere_msh22", 2.2, 1), ("sphere_order2", 4.1, 2)):
        gmsh.model.add(name)
        sphere_of_patches(0.45)
        write(folder / f"{name}.msh", version, order)

    gmsh.model.add("sphere_quads")
    sphere_of_patches(1.5)
    gmsh.option.setNumber("Mesh.SubdivisionAlgorithm", 1)
    write(folder / "sphere_quads_order2.msh", 4.1, order=2)
    gmsh.option.setNumber("Mesh.SubdivisionAlgorithm", 0)

    for name, size, order in (("box_msh22", 0.7, 1), ("box_order2", 2, 2)):
        gmsh.model.add(name)
        gmsh.model.occ.addBox(-1, -1, -1, 2, 2, 2)
        gmsh.model.occ.synchronize()
        set_size(size)
        write(folder / f"{name}.msh", 2.2, order, dimension=3)

    gmsh.model.add("cubes")
    face = gmsh.model.occ.addRectangle(0, 0, 0, 2, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.mesh.setTransfiniteSurface(face)
    gmsh.model.mesh.setRecombine(2, face)
    gmsh.model.occ.extrude([(2, face)], 0, 0, 1, numElements=[1], recombine=True)
    gmsh.model.occ.synchronize()
    write(folder / "cubes_order2.msh", 4.1, order=2, dimension=3)

    gmsh.model.add("disc")
    gmsh.model.occ.addDisk(0, 0, 0, 2, 2)
    gmsh.model.occ.synchronize()
    set_size(0.6)
    write(folder / "disc_order2.msh", 4.1, order=2)
    gmsh.finalize()

    x, y = (axis.reshape(-1) for axis in np.meshgrid(np.linspace(-2, 2, 13), np.linspace(-1, 1, 7)))
    lower_left = (13 * np.arange(6)[:, None] + np.arange(12)).reshape(-1)
    quads = lower_left[:, None] + [0, 1, 14, 13]
    meshio.Mesh(np.column_stack([x, y, np.full_like(x, 0.5)]), [("quad", quads)]).write(folder / "rectangle.vtu")

    angles = 2 * math.pi * np.arange(40) / 40 + 0.05 * np.sin(np.arange(40))
    circle = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(40)])
    lines = np.column_stack([np.arange(40), np.roll(np.arange(40), -1)])
    meshio.Mesh(circle, [("line", lines)]).write(folder / "circle.vtk")

    octahedron = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]], dtype=float)
    faces = [[a, b, c] for a in (0, 3) for b in (1, 4) for c in (2, 5)]
    meshio.Mesh(octahedron, [("triangle", np.array(faces))]).write(folder / "octahedron.xdmf", data_format="XML")
    meshio.Mesh(octahedron, [("triangle", np.array(faces))]).write(folder / "octahedron.stl")
    meshio.Mesh(octahedron, [("triangle", np.array(faces))]).write(folder / "octahedron.off")

    cubes = np.array([[x, y, z] for z in range(3) for y in range(3) for x in range(4)], dtype=float)
    low = np.array([x + 4 * y + 12 * z for z in range(2) for y in range(2) for x in range(3)])
    hexahedra = low[:, None] + [0, 1, 5, 4, 12, 13, 17, 16]
    meshio.Mesh(cubes, [("hexahedron", hexahedra)]).write(folder / "cubes.vtk", binary=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
