"""The extremes of ∬ e^{⟨x, Dy⟩} μ(dx) μ(dy): their values, that no law is beyond them, and that descent and ascent end there."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import pde_solver as ps
from pde_solver.solutions.energy_extremisers import (
    circle_minimiser,
    four_atom_state,
    maximum_energy,
    minimum_energy,
    uniform_energy,
)

SETTING = "derived for this project; the setting is that of arXiv:2501.03096"
GALERKIN, WEIGHTED = "discontinuous Galerkin, degree 3", "particles, weighted by a quadrature"


def head(matrix: np.ndarray, sign: float) -> str:
    """The change of the case to QᵀK = D, V = ± D: + ascends the energy, − descends it."""
    query, value = matrix.tolist(), (sign * matrix).tolist()
    return f"model.attention=[{{beta=1.0, normaliser='unnormalised', query={query}, value={value}}}]"


def on(matrix: np.ndarray) -> tuple[str, ...]:
    """The change of the case to the sphere of D."""
    d = len(matrix)
    return () if d == 2 else ("model.manifold=sphere", f"model.dimension={d}", "initial={law='uniform'}")


def tokens(order: int) -> tuple[str, ...]:
    """Tokens at the points of a quadrature."""
    kind = f"discretisation={{kind='particles', placement='quadrature', quadrature_order={order}}}"
    return ("mesh=", kind, "evaluation.method=dense")


def energy(snapshot: ps.Snapshot) -> float:
    """∬ e^{⟨x, Dy⟩} dμ dμ: the interaction energy is half of it, as β = 1."""
    return 2 * ps.interaction_energy(snapshot)


def coefficients(snapshot: ps.Snapshot) -> np.ndarray:
    """∫ cos 2θ dμ and ∫ cos 4θ dμ."""
    return snapshot.law.integrate(
        lambda x: np.cos(np.multiply.outer(np.arctan2(x[:, 1], x[:, 0]), np.array([2.0, 4.0])))
    )[0]


def atoms(trial: ps.Trial, matrix: np.ndarray, points, weights=None) -> ps.Simulation:
    """Tokens at given points, for the energy and the ascent of D."""
    points = np.asarray(points, dtype=float)
    weights = np.ones(len(points)) if weights is None else weights
    model = trial.case(*on(matrix), head(matrix, 1.0), *tokens(2)).model
    placed = ps.Particles(model, quadrature=ps.TokenMeasure(points, np.asarray(weights)[None]))
    return ps.Simulation(placed, ps.Uniform(), 1.0)


def check_values(trial: ps.Trial) -> Iterator[ps.Check]:
    """The energies of laws made of atoms, and of the uniform law on meshes."""
    rounding = {"relation": "relative", "method": "particles", "exact": True}
    for d in (2, 3, 4):
        eye, top = np.eye(d), np.eye(d)[:1]
        stretched = np.diag([1.0, 0.7, 0.4, 0.2][:d])
        turn = np.linalg.qr(np.arange(1.0, d * d + 1).reshape(d, d) ** 2)[0]
        turned = turn @ stretched @ turn.T
        turned = (turned + turned.T) / 2
        for name, matrix, points, expected in (
            ("Dirac, D = I: the maximum e", eye, top, np.e),
            ("Dirac at the top eigenvector: the maximum e^λmax", turned, turn[:, :1].T, maximum_energy(turned)),
            ("Dirac, D = −I: the minimum 1/e", -eye, top, minimum_energy(-eye)),
            ("two antipodal atoms, D = −I: the maximum cosh 1", -eye, [top[0], -top[0]], maximum_energy(-eye)),
        ):
            found = energy(atoms(trial, matrix, points).snapshot)
            yield ps.Check(f"energy of a {name}, S^{d - 1}", found, expected, 1e-14, SETTING, **rounding)
        order = 12 if d < 4 else 8
        found = energy(trial.simulation(*on(eye), head(eye, 1.0), *tokens(order), "initial={law='uniform'}").snapshot)
        yield ps.Check(
            f"energy of the uniform law, D = I: the minimum, S^{d - 1}",
            found,
            uniform_energy(ps.Sphere(d)),
            1e-13,
            SETTING,
            relation="relative",
            method=WEIGHTED,
            exact=True,  # the quadrature is exact to rounding for e^{⟨x, y⟩}
        )

    levels = trial.resolutions(0, 1, 2, 3, quick=2)
    kinds = {
        "discontinuous Galerkin, degree 2": ("discretisation.degree=2",),
        "finite volume, order 2": ("discretisation={kind='finite-volume'}",),
    }
    for method, kind in kinds.items():
        found = []

        def error(level: int, kind=kind, found=found) -> float:
            mesh = f"mesh={{kind='icosphere', level={level}}}"
            found.append(energy(trial.simulation(*on(np.eye(3)), head(np.eye(3), 1.0), mesh, *kind).snapshot))
            return abs(found[-1] - np.sinh(1)) / np.sinh(1)

        study = ps.converge(error, levels, resolution=lambda n: (4 * np.pi / (20 * 4**n)) ** 0.5)
        galerkin = "Galerkin" in method
        yield ps.Check(
            "energy of the uniform law, D = I: the minimum sinh 1, S^2",
            found[-1],
            np.sinh(1),
            ((8e-13, 3e-10) if trial.quick else (5e-15, 4e-13))[not galerkin],
            SETTING,
            relation="relative",
            method=method,
            study=study,
        )


def check_four_atoms(trial: ps.Trial) -> Iterator[ps.Check]:
    """Atoms of 1/4 at (±a, ±b), tanh a² = d₂ tanh(d₂ b²), stand still; elsewhere they do not; the minimum is lower."""
    for second in (0.5,) if trial.quick else (0.25, 0.5, 0.75):
        squared, expected = four_atom_state(second)
        signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        simulation = atoms(trial, np.diag([1.0, second]), signs * np.sqrt([squared, 1 - squared]))
        common = {"method": "particles", "exact": True}
        yield ps.Check(
            f"energy of the four-atom state, d₂ = {second:g}",
            energy(simulation.snapshot),
            expected,
            1e-14,
            SETTING,
            **common,
        )
        speed = ps.velocity_norm(simulation.snapshot)
        yield ps.Check(f"velocity at the four-atom state, d₂ = {second:g}", speed, 0.0, 1e-15, SETTING, **common)
        off = atoms(trial, np.diag([1.0, second]), signs * np.sqrt([squared + 0.01, 0.99 - squared]))
        yield ps.Check(
            f"velocity at atoms moved by 0.01 in a², d₂ = {second:g}: they do not stand still",
            ps.velocity_norm(off.snapshot),
            1e-3,
            0.0,
            SETTING,
            relation="at least",
            **common,
        )
        if second >= 0.3:
            yield ps.Check(
                f"energy at the minimiser's density on 16 cells, d₂ = {second:g}: below that of the four-atom state",
                energy(at_minimiser(trial, second, 16).snapshot),
                expected - 1e-4,
                0.0,
                SETTING,
                relation="at most",
                method=GALERKIN,
                exact=True,
            )


class Minimiser(ps.Law):
    """1/(2π) (1 + 2 Σ_j c_j cos 2jθ)."""

    def __init__(self, second: float) -> None:
        self.coefficients = circle_minimiser(second)[1]

    def density(self, points: np.ndarray, manifold: ps.Sphere) -> np.ndarray:
        """Relative to arc length."""
        j = 2 * np.arange(1, len(self.coefficients) + 1)
        waves = np.cos(np.multiply.outer(np.arctan2(points[:, 1], points[:, 0]), j))
        return (1 + 2 * waves @ self.coefficients) / (2 * np.pi)

    def is_normalised(self, manifold: ps.Sphere) -> bool:
        """It has mass one."""
        return True

    def sample(self, count: int, rng: np.random.Generator, manifold: ps.Sphere) -> np.ndarray:
        """No tokens are drawn from it."""
        raise ps.InputError("Minimiser: no tokens are drawn from it; take a mesh, or tokens placed by a quadrature.")


def at_minimiser(trial: ps.Trial, second: float, cells: int) -> ps.Simulation:
    """Descent from the minimiser's density."""
    case = trial.case(head(np.diag([1.0, second]), -1.0), f"mesh.cells={cells}")
    return ps.Simulation(case.simulation().discretisation, Minimiser(second), 1.0)


def check_minimiser(trial: ps.Trial) -> Iterator[ps.Check]:
    """The minimiser's density on a mesh: its energy is the least one, and it stands still under descent."""
    for second in (0.5,) if trial.quick else (0.5, 0.9, 1.1):
        least, law, found = circle_minimiser(second)[0], Minimiser(second), []

        def errors(cells: int, second=second, least=least, law=law, found=found) -> dict[str, float]:
            simulation = at_minimiser(trial, second, cells)
            found.append([energy(simulation.snapshot), ps.velocity_norm(simulation.snapshot)])
            simulation.run()
            moved = simulation.discretisation.density_error(
                simulation.state, lambda x: law.density(x, simulation.discretisation.model.manifold)
            )
            found[-1].append(moved.l2)
            return {"E": abs(found[-1][0] - least), "|X|": found[-1][1], "L2": moved.l2}

        study = ps.converge(errors, trial.resolutions(4, 8, 16, 32, quick=3), resolution=lambda n: 2 * np.pi / n)
        for k, quantity, expected, tolerance in (
            (0, "energy at the minimiser's density", least, 4e-15),
            (
                1,
                "velocity at the minimiser's density",
                0.0,
                1e-8 if trial.quick else 8e-12 if second == 0.5 else 1.5e-12,
            ),
            (
                2,
                "L² distance from the minimiser's density after descent from it to t = 1",
                0.0,
                5e-4 if trial.quick else 1e-4 if second == 0.5 else 1.4e-6,
            ),
        ):
            yield ps.Check(
                f"{quantity}, d₂ = {second:g}", found[-1][k], expected, tolerance, SETTING, method=GALERKIN, study=study
            )


def check_bounds(trial: ps.Trial) -> Iterator[ps.Check]:
    """Energies of random laws, of one to thirty tokens: none is beyond the extremes."""
    rng = np.random.default_rng(5)
    matrices = {f"diag(1, {second:g})": np.diag([1.0, second]) for second in (0.5, 0.9, 1.1)}
    matrices |= {"I, S^2": np.eye(3), "−I, S^2": -np.eye(3)}
    for name, matrix in matrices.items():
        found = []
        for count in range(1, 11 if trial.quick else 31):
            points = rng.standard_normal((count, len(matrix)))
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            found.append(energy(atoms(trial, matrix, points, rng.exponential(size=count)).snapshot))
        least = circle_minimiser(matrix[1, 1])[0] if len(matrix) == 2 else minimum_energy(matrix)
        for extreme, bound, relation in (
            (min(found), least, "at least"),
            (max(found), maximum_energy(matrix), "at most"),
        ):
            yield ps.Check(
                f"energies of random laws, D = {name}: {relation} the extreme",
                extreme,
                bound,
                1e-14,
                SETTING,
                relation=relation,
                method="particles",
                exact=True,
            )


def over_depth(depths: np.ndarray, errors: dict[str, np.ndarray]) -> ps.Study:
    """How far a run still is from its limit, over depth."""
    rows = {t: {name: values[k] for name, values in errors.items()} for k, t in enumerate(depths)}
    return replace(ps.converge(rows.get, list(rows), abscissa="depth"), refines=False)


def check_descent(trial: ps.Trial) -> Iterator[ps.Check]:
    """V = −D, from a law without symmetry: the energy falls to the least one, the law becomes the minimiser."""
    fine, coarse, mesh = (WEIGHTED, tokens(64)), (WEIGHTED, tokens(32)), (GALERKIN, ("mesh.cells=16",))
    # tolerances of the energy and of the two coefficients: three times what is left at that depth, see README.md
    cases = [
        (0.5, fine, 800.0, (5e-8, 2e-6, 4e-4)),
        (0.9, coarse, 800.0, (1e-8, 8e-8, 4e-5)),
        (1.0, coarse, 800.0, (1e-8, 8e-8, 6e-7)),
        (1.1, coarse, 800.0, (1e-8, 1.5e-7, 2.5e-5)),
        (0.9, mesh, 100.0, (2e-7, 1e-6, 8e-4)),
        (1.0, mesh, 100.0, (2e-7, 1.5e-6, 1.6e-4)),
    ]
    if trial.quick:
        cases = [(0.5, fine, 200.0, (4e-6, 1e-4, 8e-2))]
    for second, (method, places), stop, (of_energy, of_first, of_second) in cases:
        matrix = np.diag([1.0, second])
        least, expected = circle_minimiser(second)
        simulation = trial.simulation(head(matrix, -1.0), *places, f"time.stop={stop}")
        depths = [0.0, *(stop / 2.0**k for k in range(8, -1, -1))]
        energies = simulation.record(energy, at=depths)
        waves = simulation.record(coefficients, at=depths)
        simulation.run()
        excess = energies.values - least
        study = over_depth(
            energies.times[1:],
            {
                "E": np.abs(excess[1:]),
                "c₁": np.abs(waves.values[1:, 0] - expected[0]),
                "c₂": np.abs(waves.values[1:, 1] - expected[1]),
            },
        )
        name = "the uniform law" if second == 1 else "the minimiser"
        common = {"source": SETTING, "method": method}
        yield ps.Check(
            f"energy after descent to {name}, d₂ = {second:g}",
            energies.values[-1],
            least,
            of_energy,
            study=study,
            figure=ps.Figure(
                (ps.Curve(energies.times[1:], excess[1:], "energy above the least"),), "t", "E − E_min", "log-log"
            ),
            **common,
        )
        yield ps.Check(
            f"∫ cos 2θ dμ after descent to {name}, d₂ = {second:g}",
            waves.values[-1, 0],
            expected[0],
            of_first,
            study=study,
            **common,
        )
        yield ps.Check(
            f"∫ cos 4θ dμ after descent to {name}, d₂ = {second:g}",
            waves.values[-1, 1],
            expected[1],
            of_second,
            study=study,
            **common,
        )
        yield ps.Check(
            f"largest change of the energy from one depth to the next in descent, d₂ = {second:g}",
            float(np.diff(energies.values).max()),
            0.0,
            1e-13,
            relation="at most",
            exact=True,
            **common,
        )
        yield ps.Check(
            f"energies during descent against the least one, d₂ = {second:g}",
            float(energies.values.min()),
            least,
            1e-13,
            relation="at least",
            exact=True,
            **common,
        )


def check_mesh(trial: ps.Trial) -> Iterator[ps.Check]:
    """Descent and ascent on meshes against tokens at the same depth."""
    stop = 2.0 if trial.quick else 10.0
    cases = [("descent", np.diag([1.0, 0.5]), -1.0, stop, 2.5e-7 if trial.quick else 1e-8)]
    cases += [("descent", np.diag([1.0, 1.1]), -1.0, stop, 2.5e-9)]  # not when quick
    cases += [("ascent", np.diag([1.0, 0.5]), 1.0, 1.0, 5e-7 if trial.quick else 1.5e-8)]
    for name, matrix, sign, end, tolerance in cases[:: 2 if trial.quick else 1]:
        change = (head(matrix, sign), f"time.stop={end}")
        fine = trial.simulation(*change, *tokens(100), f"time={{stop={end}, scheme='ssp-4', step=0.02}}")
        fine.run()
        expected = np.array([energy(fine.snapshot), *coefficients(fine.snapshot)])
        found = []

        def error(cells: int, change=change, expected=expected, found=found) -> float:
            simulation = trial.simulation(*change, f"mesh.cells={cells}")
            simulation.run()
            found.append(np.array([energy(simulation.snapshot), *coefficients(simulation.snapshot)]))
            return float(np.abs(found[-1] - expected).max())

        study = ps.converge(error, trial.resolutions(8, 16, 32, 64, quick=3), resolution=lambda n: 2 * np.pi / n)
        yield ps.Check(
            f"energy, ∫ cos 2θ, ∫ cos 4θ in {name} at t = {end:g}, D = diag(1, {matrix[1, 1]:g}), mesh against tokens",
            found[-1],
            expected,
            tolerance,
            SETTING,
            method=GALERKIN,
            study=study,
        )


def check_ascent(trial: ps.Trial) -> Iterator[ps.Check]:
    """V = D: a law in a cap climbs to the maximum e^{λmax}; for D = −I a balanced law to cosh 1; descent to 1/e."""
    cap = "initial={law='uniform-on', region='cap', center=[1.0, 0.6], angle=1.2}"
    ball = "initial={law='uniform-on', region='cap', center=[1.0, 0.5, 0.3], angle=1.0}"
    balanced = "initial={law='expression', formula='1 + 0.5*cos(2*theta)'}"
    random = ("mesh=", "discretisation={kind='particles', count=100, seed=1}", "evaluation.method=dense")
    eye = np.eye(2)
    cases = [
        ("ascent, D = I, circle", eye, 1.0, (cap, *random), maximum_energy(eye), 10.0),
        ("ascent, D = diag(1, 0.5), circle", np.diag([1.0, 0.5]), 1.0, (cap, *random), np.e, 16.0),
        ("ascent, D = diag(1.2, 0.8, 0.4), S^2", np.diag([1.2, 0.8, 0.4]), 1.0, (ball, *random), np.exp(1.2), 16.0),
        ("ascent, D = −I, balanced law, circle", -eye, 1.0, (balanced, *tokens(20)), maximum_energy(-eye), 20.0),
        ("descent, D = −I, circle", -eye, -1.0, (cap, *random), minimum_energy(-eye), 40.0),
    ]
    for name, matrix, sign, places, expected, stop in cases[:: 3 if trial.quick else 1]:
        change = (*on(matrix), *places, head(matrix, sign), f"time={{stop={stop}, scheme='ssp-4', step=0.1}}")
        simulation = trial.simulation(*change)
        energies = simulation.record(energy, every=stop / 10)
        simulation.run()
        study = over_depth(energies.times[1:], {"E": np.abs(energies.values[1:] - expected)})
        yield ps.Check(
            f"energy after {name}",
            energies.values[-1],
            expected,
            1e-13,
            SETTING,
            method=WEIGHTED if places[0] is balanced else "particles",
            study=study,
            figure=ps.Figure(
                (
                    ps.Curve(energies.times, np.full(len(energies), expected), "the extreme", expected=True),
                    ps.Curve(energies.times, energies.values, "energy"),
                ),
                "t",
                "E",
            ),
        )
