"""What is solved: terms of the velocity and the model that they make. No numerics here."""

from pde_solver.models.attention import Attention
from pde_solver.models.linear import Linear
from pde_solver.models.model import Model
from pde_solver.models.normalisers import L2, Normaliser, Softmax, Unnormalised
from pde_solver.models.terms import Layers, Sum, Term

__all__ = ["L2", "Attention", "Layers", "Linear", "Model", "Normaliser", "Softmax", "Sum", "Term", "Unnormalised"]
