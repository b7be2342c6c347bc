"""Convergence studies of cases: what is varied, what the runs are held against, and what is kept."""

from pde_solver.studies.run import CaseStudy, study_case

__all__ = ["CaseStudy", "study_case"]
