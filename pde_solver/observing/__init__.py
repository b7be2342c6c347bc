"""What is seen of a run: quantities and when, their records, distances between laws, progress, guards."""

from pde_solver.observing.distances import distance_name, geodesic_distances, wasserstein
from pde_solver.observing.guards import Guards, Reference
from pde_solver.observing.progress import Progress
from pde_solver.observing.quantities import (
    QUANTITIES,
    Quantity,
    by_name,
    cluster_count,
    clusters,
    default_quantities,
    energy_dissipation,
    entropy,
    first_moment,
    interaction_energy,
    label_order_parameters,
    mass,
    maximum_density,
    minimum_density,
    order_parameter,
    second_moment,
    variance,
    velocity_norm,
    wall_flux,
    wasserstein_to,
)
from pde_solver.observing.record import Record
from pde_solver.observing.schedule import Schedule
from pde_solver.observing.snapshot import Snapshot

__all__ = [
    "QUANTITIES",
    "Guards",
    "Progress",
    "Quantity",
    "Record",
    "Reference",
    "Schedule",
    "Snapshot",
    "by_name",
    "cluster_count",
    "clusters",
    "default_quantities",
    "distance_name",
    "energy_dissipation",
    "entropy",
    "first_moment",
    "geodesic_distances",
    "interaction_energy",
    "label_order_parameters",
    "mass",
    "maximum_density",
    "minimum_density",
    "order_parameter",
    "second_moment",
    "variance",
    "velocity_norm",
    "wall_flux",
    "wasserstein",
    "wasserstein_to",
]
