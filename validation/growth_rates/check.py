"""Growth rates of small harmonics about the uniform law, on the circle and on the sphere, SA and USA."""

from collections.abc import Iterator

import numpy as np

import pde_solver as ps
from pde_solver.solutions import growth_rate

SOURCE = "derived for this project; the structure is that of arXiv:2410.23228"

CIRCLE = ("mesh.kind=circle",)
SPHERE = (
    "mesh={kind='icosphere', geometry_degree=2}",
    "model.manifold=sphere",
    "model.dimension=3",
    "discretisation.degree=2",
)


def harmonic(points: np.ndarray, degree: int) -> np.ndarray:
    """cos(lθ) on the circle, P_l(z) on S²."""
    if points.shape[1] == 2:
        return np.cos(degree * np.arctan2(points[:, 1], points[:, 0]))
    return np.polynomial.legendre.legval(points[:, 2], np.eye(degree + 1)[degree])


def measured_rate(trial: ps.Trial, changes: tuple[str, ...], degree: int, rate: float) -> float:
    """log of the growth of ∫ Y f per depth; the second order in the amplitude cancels between its two signs."""
    stop = 0.3 / rate
    ends = []
    for amplitude in (1e-4, -1e-4):
        simulation = trial.simulation(
            *changes, f"initial.degree={degree}", f"initial.amplitude={amplitude}", f"time.stop={stop!r}"
        )
        record = simulation.record(lambda s: s.law.integrate(lambda x: harmonic(x, degree))[0])
        simulation.run()
        ends.append(record.values)
    odd = ends[0] - ends[1]
    return float(np.log(odd[1] / odd[0]) / stop)


def rates(
    trial: ps.Trial,
    manifold: tuple[str, ...],
    sphere: ps.Sphere,
    key: str,
    resolutions: list[int],
    degrees: list[tuple[float, int, float, float]],
) -> Iterator[ps.Check]:
    """One check for each normaliser, β and degree; each β and degree with the tolerances of SA and of USA."""
    for normaliser, built in (("softmax", ps.Softmax()), ("unnormalised", ps.Unnormalised())):
        for beta, degree, *tolerances in degrees:
            exact = growth_rate(sphere, ps.Attention(beta, normaliser=built), degree)
            changes = (*manifold, f"model.attention.0.normaliser={normaliser}", f"model.attention.0.beta={beta}")
            found: list[float] = []

            def error(resolution: int, changes=changes, degree=degree, exact=exact, found=found) -> float:
                found.append(measured_rate(trial, (*changes, f"{key}={resolution}"), degree, exact))
                return abs(found[-1] - exact) / exact

            study = ps.converge(
                error,
                resolutions,
                resolution=lambda n: 2 * np.pi / n if key == "mesh.cells" else (4 * np.pi / (20 * 4**n)) ** 0.5,
            )
            name = "SA" if normaliser == "softmax" else "USA"
            yield ps.Check(
                f"λ_{degree} on {sphere}, {name}, β = {beta:g}",
                found[-1],
                exact,
                tolerances[normaliser == "unnormalised"],
                SOURCE,
                relation="relative",
                method="discontinuous Galerkin, degree 3"
                if key == "mesh.cells"
                else "discontinuous Galerkin, degree 2",
                study=study,
            )


def check_circle(trial: ps.Trial) -> Iterator[ps.Check]:
    """128 cells of degree 3."""
    # β, degree, and three times the errors of SA and of USA
    degrees = [
        (1.0, 1, 1.1e-8, 9e-9),
        (1.0, 3, 6.5e-9, 6.5e-9),
        (4.0, 1, 4.5e-9, 2e-9),
        (4.0, 2, 1.5e-8, 1.3e-8),
        (4.0, 5, 1.4e-8, 1.4e-8),
        (16.0, 4, 1.7e-8, 1.6e-8),
    ]
    yield from rates(trial, CIRCLE, ps.Sphere(2), "mesh.cells", [32, 64, 128], degrees)


def check_sphere(trial: ps.Trial) -> Iterator[ps.Check]:
    """Triangles of degree 2; degree 6 and up would be seeded by the icosahedron's own symmetry."""
    # 320 triangles, 1,280 triangles; the error depends on the degree alone
    tolerances = {1: 1.4e-4, 2: 1.7e-4, 4: 4e-4} if trial.quick else {1: 9e-6, 2: 1.1e-5, 4: 3e-5}
    degrees = [(b, n, tolerances[n], tolerances[n]) for b, n in ((1.0, 1), (1.0, 2), (4.0, 2), (4.0, 4))]
    yield from rates(trial, SPHERE, ps.Sphere(3), "mesh.level", trial.resolutions(1, 2, 3, quick=2), degrees)
