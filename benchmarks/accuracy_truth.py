"""The problem that `accuracy.py` solves, how large it is made, and its exact solution, which is kept on disk."""

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_figure import CLUSTERED, SMOOTH, STOPS
from rivals import reference, weighted_characteristics
from rivals.refined_sphere import RefinedSphere, refined_sphere

import pde_solver as ps

BETA = 4.0
SPHERE = ps.Sphere(3)
MODEL = ps.Model(SPHERE, ps.Attention(BETA))
#: f ∝ 0.3 + Σ_k a_k e^{κ_k (⟨x, c_k⟩ − 1)}; each part's weight is its integral.
BUMPS = ((2.0, 6.0, (1.0, 1.0, 1.0)), (1.5, 10.0, (-1.0, 0.5, 0.2)), (0.7, 4.0, (0.1, -0.9, -0.4)))
LAW = ps.Mixture(
    [ps.Uniform(), *(ps.VonMisesFisher(centre, kappa) for _, kappa, centre in BUMPS)],
    [0.3 * 4 * np.pi, *(a * 2 * np.pi / kappa * -np.expm1(-2 * kappa) for a, kappa, _ in BUMPS)],
)
#: Level of the smallest triangles of the quadrature at T = 6.
FINEST = 14


@dataclass(frozen=True)
class Sizes:
    """How large the problems are.

    Args:
        order: of the reference's quadrature; a coarser one, by the factor 0.8, says how far it can be trusted.
        step: of the reference.
        grid: order of the quadrature on which estimates are compared at T = 2.
        galerkin_check: degree of the Galerkin run that the reference is compared with at T = 2.
        share: of the mass that a triangle of the quadrature at T = 6 may hold.
        published: tokens and how many seeds.
        independent: tokens.
        weighted: orders of the quadratures.
        harmonics: degrees L.
        volumes: levels of the icosphere.
        elements: levels of the icosphere for each degree.
        patience: seconds after which a run is not repeated.
    """

    order: int
    step: float
    grid: int
    galerkin_check: int
    share: float
    published: dict[int, int]
    independent: tuple[int, ...]
    weighted: tuple[int, ...]
    harmonics: tuple[int, ...]
    volumes: tuple[int, ...]
    elements: dict[int, tuple[int, ...]]
    patience: float


FULL = Sizes(
    order=160,
    step=0.025,
    grid=96,
    galerkin_check=96,
    share=1e-4,
    published={100: 8, 1000: 4, 4000: 1},
    independent=(1_000, 10_000, 100_000),
    weighted=(9, 13, 25, 33, 49, 70, 100),
    harmonics=(8, 16, 24, 32, 64),
    volumes=(2, 3, 4, 5, 6),
    elements={2: (1, 2, 3, 4), 3: (1, 2, 3, 4)},
    patience=3.0,
)
QUICK = Sizes(
    order=40,
    step=0.05,
    grid=48,
    galerkin_check=40,
    share=1e-3,
    published={100: 4, 1000: 1},
    independent=(300, 1_000),
    weighted=(9, 13, 25),
    harmonics=(16, 24, 32),
    volumes=(2, 3),
    elements={2: (1, 2), 3: (1,)},
    patience=0.2,
)


class Truth:
    """The exact solution, and the errors of what the methods found."""

    def __init__(self, sizes: Sizes, folder: Path) -> None:
        key = f"{LAW} {BETA} {sizes.order} {sizes.step} {sizes.share} {reference.DEGREE} {max(sizes.volumes)}"
        path = folder / f"accuracy-{hashlib.sha256(key.encode()).hexdigest()[:12]}.npz"
        if not path.exists():
            print(f"computing the reference, to be kept in {path}", flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **_computed(sizes))
        kept = np.load(path)
        tokens = ps.TokenMeasure(kept["tokens"], kept["weights"])
        self.solution = reference.Reference(BETA, sizes.step, kept["charges"], kept["moments"], tokens)
        self.uncertainty = dict(zip(STOPS, kept["uncertainty"], strict=True))
        self.density_uncertainty = float(kept["density_uncertainty"])
        names = [name for name in kept if name.startswith("level")]
        ancestors = {int(name.removeprefix("level")): kept[name] for name in names}
        self.clustered = RefinedSphere(kept["points"], kept["measures"], kept["values"], ancestors)
        smooth = ps.sphere_quadrature(SPHERE, sizes.grid)
        #: for each depth points, measures and exact values, to compare estimates with that are known everywhere
        self.grids = {
            SMOOTH: (smooth.points, smooth.weights[0], self.density(SMOOTH, smooth.points)),
            CLUSTERED: (self.clustered.points, self.clustered.measures, self.clustered.values),
        }

    def density(self, t: float, points: np.ndarray) -> np.ndarray:
        return self.solution.density(LAW, t, points)

    def moment_error(self, t: float, found: np.ndarray) -> float:
        return _relative(found, self.solution.moments_at(t))


def _relative(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _computed(sizes: Sizes) -> dict[str, Any]:
    """What is kept of the reference."""
    placed = weighted_characteristics.placed
    fine = reference.solve(placed(LAW, sizes.order), BETA, CLUSTERED, sizes.step)
    coarse = reference.solve(placed(LAW, int(0.8 * sizes.order)), BETA, CLUSTERED, sizes.step)
    exact = partial(fine.density, LAW, CLUSTERED)
    sphere = refined_sphere(exact, fine.tokens, max(sizes.volumes), FINEST, sizes.share)
    # the same density with the coarser velocity, at one point in 20
    some = slice(None, None, 20)
    other = coarse.density(LAW, CLUSTERED, sphere.points[some])
    difference = sphere.measures[some] @ np.abs(other - sphere.values[some])
    return {
        "charges": fine.charges,
        "moments": fine.moments,
        "tokens": fine.tokens.points,
        "weights": fine.tokens.weights,
        "uncertainty": [_relative(coarse.moments_at(t), fine.moments_at(t)) for t in STOPS],
        "density_uncertainty": difference / (sphere.measures[some] @ sphere.values[some]),
        "points": sphere.points,
        "measures": sphere.measures,
        "values": sphere.values,
        **{f"level{level}": sphere.ancestors[level] for level in sizes.volumes},
    }
