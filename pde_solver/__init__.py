"""Mean-field continuity equation of transformers: finite volumes, discontinuous Galerkin, particles.

>>> import pde_solver as ps
>>> model = ps.Model(ps.Sphere(3), ps.Attention(beta=4.0))
>>> print(model)
Attention(beta=4) on the sphere S^2

The names are those of `pde_solver.api`, which is imported when the first of them is asked for: so the command
line answers at once, and a wrong launcher is told before MPI dies of it.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from pde_solver.launcher import abort_when_a_rank_fails, refuse_foreign_launcher

refuse_foreign_launcher()
abort_when_a_rank_fails()

import h5py  # noqa: E402, F401  must come before dolfinx when numba is installed, or it breaks

try:  # noqa: SIM105
    import dolfinx_solver  # noqa: F401  the wheel with DOLFINx and PETSc; absent where a site has its own
except ModuleNotFoundError:
    pass

if TYPE_CHECKING:
    from pde_solver.api import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name != "__all__":
        raise AttributeError(name)
    if importlib.util.find_spec(f"pde_solver.{name}") is not None:
        return importlib.import_module(f"pde_solver.{name}")
    try:
        return getattr(importlib.import_module("pde_solver.api"), name)
    except AttributeError:
        raise AttributeError(f"module 'pde_solver' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*importlib.import_module("pde_solver.api").__all__, "__version__"]
