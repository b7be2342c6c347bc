"""A model bound to a mesh or to tokens."""

from pde_solver.discretisations.base import CellNodes, Discretisation
from pde_solver.discretisations.discontinuous_galerkin import DiscontinuousGalerkin
from pde_solver.discretisations.finite_volume import FiniteVolume
from pde_solver.discretisations.particles import Particles

__all__ = ["CellNodes", "DiscontinuousGalerkin", "Discretisation", "FiniteVolume", "Particles"]
