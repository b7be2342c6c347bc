"""What the solver needs from its environment, and the command that installs what is missing."""

import importlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pde_solver.launcher import is_alone, matching_launcher


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        subject: what it is.
        found: what was found.
        remedy: what to do where something is missing; empty if all is well.
    """

    subject: str
    found: str
    remedy: str = ""


def _python() -> Finding:
    version = f"{sys.version.split()[0]} ({sys.executable})"
    good = (3, 12) <= sys.version_info[:2] <= (3, 14)
    return Finding("Python", version, "" if good else "use Python 3.12, 3.13 or 3.14")


def _compiler() -> Finding:
    """Forms of the user's own, and those of the tests, are compiled in C with Python's headers, so do just that."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(command[0]) is None and shutil.which("gcc") is not None and "CC" not in os.environ:
        command = ["gcc"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "header.c"
        source.write_text("#include <Python.h>\n")
        include = f"-I{sysconfig.get_path('include')}"
        try:
            tried = subprocess.run(
                [*command, include, "-c", str(source), "-o", str(source.with_suffix(".o"))],
                capture_output=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return Finding("C compiler", "missing", "apt-get install gcc libc6-dev")
    if tried.returncode == 0:
        return Finding("C compiler", f"{shutil.which(command[0])}, with Python.h")
    if b"Python.h" in tried.stderr:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
        return Finding("C compiler", f"{command[0]}, but no Python.h in {include[2:]}", f"apt-get install {package}")
    return Finding("C compiler", f"{command[0]} does not compile a file", "apt-get install gcc libc6-dev")


def _dolfinx() -> Finding:
    try:
        importlib.import_module("pde_solver.parallel")  # sets the order in which h5py, DOLFINx and MPI are loaded
        dolfinx = importlib.import_module("dolfinx")
        petsc = importlib.import_module("petsc4py.PETSc")
    except ImportError as error:
        return Finding("DOLFINx", f"missing ({error})", "pip install dolfinx-solver-real")
    version = f"{dolfinx.__version__}, PETSc {'.'.join(map(str, petsc.Sys.getVersion()))}"
    if petsc.ScalarType(0).dtype.kind == "c":
        return Finding("DOLFINx", f"{version}, for complex numbers", "pip install dolfinx-solver-real")
    return Finding("DOLFINx", version)


def _mpi() -> Finding:
    try:
        library = importlib.import_module("mpi4py.MPI").Get_library_version()
    except (ImportError, RuntimeError) as error:
        return Finding("MPI", f"missing ({error})", "pip install mpi4py mpich")
    words = library.split("\n")[0].replace("Version:", "").replace(",", " ").split()
    return Finding("MPI", f"{' '.join(words[:4])}, mpi4py {importlib.metadata.version('mpi4py')}")


def _launcher() -> Finding:
    launcher = shutil.which(matching_launcher())
    if launcher is None:
        return Finding("MPI launcher", "missing", "pip install mpich")
    if not is_alone():
        return Finding("MPI launcher", f"{launcher}, in use")
    try:
        tried = subprocess.run([launcher, "-n", "2", "true"], capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return Finding("MPI launcher", f"{launcher} does not end", "look at its output: mpiexec -n 2 true")
    remedy = "" if tried.returncode == 0 else "look at its output: mpiexec -n 2 true"
    return Finding("MPI launcher", f"{launcher}{', but it fails' if remedy else ''}", remedy)


def _package(name: str) -> Callable[[], Finding]:
    def look() -> Finding:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return Finding(name, f"missing ({error})", f"pip install {name}")
        return Finding(name, importlib.metadata.version(name))

    return look


def _kernel_cache() -> Finding:
    """Numba keeps compiled kernels beside the source, or where that cannot be written in the user's cache."""
    beside = Path(__file__).parent
    if "NUMBA_CACHE_DIR" not in os.environ and os.access(beside, os.W_OK):
        return Finding("cache of kernels", str(beside))
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path.home() / ".cache" / "numba")
    return _writable("cache of kernels", folder, "NUMBA_CACHE_DIR")


def _writable(subject: str, folder: Path, variable: str) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Finding(subject, str(folder))
    except OSError as error:
        return Finding(subject, f"{folder} cannot be written ({error.strerror})", f'export {variable}="$(mktemp -d)"')


def examine() -> list[Finding]:
    """Look at everything that a run needs."""
    looks = (
        _python,
        _compiler,
        _dolfinx,
        _mpi,
        _launcher,
        _package("numba"),
        _package("h5py"),
        _kernel_cache,
    )
    return [look() for look in looks]
