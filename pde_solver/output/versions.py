"""What computed a result: every result file says so."""

import platform
from importlib.metadata import version

import dolfinx
import h5py
from mpi4py import MPI
from petsc4py import PETSc


def versions() -> dict[str, str]:
    """The package and everything under it that can change a digit."""
    return {
        "pde_solver": version("pde-solver"),
        "python": platform.python_version(),
        "dolfinx": dolfinx.__version__,
        "petsc": ".".join(map(str, PETSc.Sys.getVersion())),
        "mpi": " ".join(MPI.Get_library_version().split("\n")[0].replace("Version:", "").split()),
        **{name: version(name) for name in ("mpi4py", "numpy", "scipy", "numba", "h5py")},
    }


def sign(file: h5py.File) -> None:
    """Write the versions into an HDF5 file, as one attribute."""
    file.attrs["versions"] = ", ".join(f"{name} {number}" for name, number in versions().items())
