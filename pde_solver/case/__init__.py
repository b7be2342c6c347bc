"""Cases: a TOML file, with changes from the command line, turned into the objects of the package."""

from pde_solver.case.case import Case, load_case

__all__ = ["Case", "load_case"]
