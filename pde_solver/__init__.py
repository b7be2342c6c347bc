"""Mean-field continuity equation of transformers: Eulerian solver, particles, validation."""

import h5py  # noqa: F401  must come before dolfinx when numba is installed, or it breaks

try:
    import dolfinx_solver  # noqa: F401  the wheel with DOLFINx and PETSc; absent where a site has its own
except ModuleNotFoundError:
    pass
