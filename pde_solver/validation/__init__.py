"""The validation suite: claims in folders, their checks, and a report that people read."""

from pde_solver.validation.claim import Claim, find_claims
from pde_solver.validation.suite import examine
from pde_solver.validation.trial import Trial
from pde_solver.validation.verdict import Verdict

__all__ = ["Claim", "Trial", "Verdict", "examine", "find_claims"]
