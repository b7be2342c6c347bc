"""`python -m pde_solver` is the command `pde-solver`."""

from pde_solver.cli import main

if __name__ == "__main__":
    main()
