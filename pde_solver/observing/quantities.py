"""What is observed: functions of a snapshot. Every rank calls them, and every rank gets the value.

A quantity is any function of a `Snapshot` to a number or an array; its `__name__` heads the column of a table.
"The law" is that of a token whatever its label, μ = Σ_z π_z μ_z.
"""

from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from pde_solver.densities import Law
from pde_solver.discretisations.base import Discretisation
from pde_solver.errors import InputError, did_you_mean
from pde_solver.kernel_sums import Evaluation, energy, velocity
from pde_solver.measures import TokenMeasure
from pde_solver.observing.clustering import count_clusters
from pde_solver.observing.distances import Method, wasserstein
from pde_solver.observing.snapshot import Snapshot
from pde_solver.parallel import on_root, sum_over_ranks


class Quantity(Protocol):
    """A function of a snapshot, with a name."""

    __name__: str

    def __call__(self, snapshot: Snapshot, /) -> float | np.ndarray:
        """The value, the same on every rank."""
        ...


def mass(snapshot: Snapshot) -> float | np.ndarray:
    """The mass μ_z(M) of every label's law: a number for one label, (labels,) for several."""
    masses = snapshot.measure.mass()
    return float(masses[0]) if len(masses) == 1 else masses


def minimum_density(snapshot: Snapshot) -> float:
    """The least density over all labels, relative to the surface measure; nan for tokens."""
    return float(snapshot.discretisation.density_range(snapshot.state)[0])


def maximum_density(snapshot: Snapshot) -> float:
    """The largest density over all labels, relative to the surface measure; nan for tokens."""
    return float(snapshot.discretisation.density_range(snapshot.state)[1])


def entropy(snapshot: Snapshot) -> float:
    """Σ_z π_z ∫ f_z log f_z, f_z relative to the surface measure; nan for tokens."""
    return float(np.dot(snapshot.model.labels.weights, snapshot.discretisation.entropy(snapshot.state)))


def interaction_energy(snapshot: Snapshot) -> float:
    """The interaction energy of the attention in force, see `kernel_sums.energy`."""
    return float(energy.interaction_energy(snapshot.model, snapshot.t, snapshot.measure))


def energy_dissipation(snapshot: Snapshot) -> float:
    """dE/dt of the interaction energy, where attention is its gradient flow; an InputError elsewhere."""
    return float(energy.energy_dissipation(snapshot.model, snapshot.t, snapshot.measure))


def first_moment(snapshot: Snapshot) -> np.ndarray:
    """The mean token ∫ x dμ of the law, (D,)."""
    return snapshot.law.integrate(lambda x: x)[0]


def second_moment(snapshot: Snapshot) -> np.ndarray:
    """∫ x xᵀ dμ of the law, (D, D)."""
    return snapshot.law.integrate(lambda x: x[:, :, None] * x[:, None, :])[0]


def variance(snapshot: Snapshot) -> float:
    """∫ |x − m|² dμ about the mean m of the law."""
    mean = first_moment(snapshot)
    return float(snapshot.law.integrate(lambda x: np.sum((x - mean) ** 2, axis=1))[0])


def order_parameter(snapshot: Snapshot) -> float:
    """R = |∫ x dμ|: on spheres 0 for the uniform law and 1 for a Dirac."""
    return float(np.linalg.norm(first_moment(snapshot)))


def label_order_parameters(snapshot: Snapshot) -> np.ndarray:
    """R_z = |∫ x dμ_z| of the law of each label, (labels,)."""
    return np.linalg.norm(snapshot.measure.integrate(lambda x: x), axis=1)


def velocity_norm(snapshot: Snapshot) -> float:
    """(Σ_z π_z ∫ |X_z|² dμ_z)^{1/2}, with the velocity X of the model summed afresh at the points of the measure."""
    points = snapshot.measure.points
    field = velocity(snapshot.model, snapshot.t, points, snapshot.measure, evaluation=Evaluation())
    squares = np.einsum("zm,zmd,zmd->z", snapshot.measure.weights, field, field)
    return float(np.sqrt(np.dot(snapshot.model.labels.weights, sum_over_ranks(snapshot.comm, squares))))


def wall_flux(snapshot: Snapshot) -> float:
    """∫ over the walls of f (X·n)⁺: the mass per depth that the walls hold back; 0 where there is no wall."""
    return float(snapshot.discretisation.wall_flux(snapshot.t, snapshot.state))


def clusters(distance: float = 0.25, floor: float = 0.05) -> Quantity:
    """How many clusters the law has at a resolution of one's own, see `clustering.count_clusters`.

    Args:
        distance: points closer than this belong together: an angle on spheres, a length in R^d.
        floor: the share of tokens that may lie in sparse places; and the share of the heaviest cluster below which
            another does not count.

    Returns:
        A quantity called `cluster_count`.

    Raises:
        InputError: distance is not a finite number > 0, or floor not in (0, 1).
    """
    if not (np.isfinite(distance) and distance > 0):
        raise InputError(f"clusters: distance must be a finite number > 0, found {distance!r}.")
    if not 0 < floor < 1:
        raise InputError(f"clusters: floor must lie between 0 and 1, found {floor!r}.")

    def cluster_count(snapshot: Snapshot) -> int:
        """The number of clusters of the law."""
        return count_clusters(
            snapshot.law, snapshot.model.manifold, distance, floor, on_mesh=snapshot.discretisation.has_density
        )

    return cluster_count


def cluster_count(snapshot: Snapshot) -> int:
    """How many clusters the law has at distance 0.25: connected parts of where it is dense, without the lightest."""
    return int(clusters()(snapshot))


def wasserstein_to(
    target: Law | TokenMeasure, p: int = 2, method: Method = "auto", *, samples: int = 3000, name: str | None = None
) -> Quantity:
    """The distance W_p of the law to a fixed one, see `distances.wasserstein`.

    Args:
        target: a token measure of one label, such as a Dirac; or a law. A law stands for what it would be as an initial
            state on a mesh, and beside tokens for a sample (whose error, ~ samples^{−1/2} or worse, the distance has).
        p: 1 or 2.
        method: "auto", "exact", "sliced" or "entropic".
        samples: how many tokens stand for a law beside tokens, drawn with a fixed seed.
        name: of the column; `wasserstein_1_to_target` or `wasserstein_2_to_target` by default.

    Raises:
        InputError: target is neither a law nor a token measure.
    """
    if not isinstance(target, Law | TokenMeasure):
        raise InputError(f"wasserstein_to: target must be a law or a token measure, found {target!r}.")
    known: WeakKeyDictionary[Discretisation, TokenMeasure] = WeakKeyDictionary()

    def distance(snapshot: Snapshot) -> float:
        """W_p of the law to the target."""
        where = snapshot.discretisation
        if where not in known:
            known[where] = _discretised(target, where, samples) if isinstance(target, Law) else target.gathered()
        law, manifold = snapshot.law.gathered(), snapshot.model.manifold
        return on_root(snapshot.comm, lambda: wasserstein(law, known[where], manifold, p, method))

    distance.__name__ = distance.__qualname__ = f"wasserstein_{p}_to_target" if name is None else name
    return distance


def _discretised(target: Law, where: Discretisation, samples: int) -> TokenMeasure:
    """The whole target on every rank."""
    if where.has_density:
        return Snapshot(0.0, 0, where.initial(target), where).law.gathered()
    # not `initial`, which would give running tokens new weights
    points = target.sample(samples, np.random.default_rng(0), where.model.manifold)
    return TokenMeasure(points, np.full((1, samples), 1 / samples))


def default_quantities(discretisation: Discretisation) -> tuple[Quantity, ...]:
    """What a run records unless told otherwise: all that applies to the manifold and to the discretisation."""
    general: list[Quantity] = [
        mass,
        interaction_energy,
        order_parameter,
        first_moment,
        variance,
        velocity_norm,
        cluster_count,
    ]
    if discretisation.has_density:
        general[1:1] = [minimum_density, maximum_density, entropy]
        if discretisation.model.manifold.volume == np.inf:  # a box in R^d has walls
            general.append(wall_flux)
    return tuple(general)


#: Quantities by the names that a case file uses.
QUANTITIES: dict[str, Quantity] = {
    quantity.__name__: quantity
    for quantity in (
        mass,
        minimum_density,
        maximum_density,
        entropy,
        interaction_energy,
        energy_dissipation,
        order_parameter,
        label_order_parameters,
        first_moment,
        second_moment,
        variance,
        velocity_norm,
        cluster_count,
        wall_flux,
    )
}


def by_name(name: str) -> Quantity:
    """The quantity of this name.

    Raises:
        InputError: there is none; the sentence names the nearest.
    """
    if name not in QUANTITIES:
        raise InputError(f"quantities: unknown quantity {name!r}; {did_you_mean(name, QUANTITIES)}")
    return QUANTITIES[name]
