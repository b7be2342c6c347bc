"""dE/dt of the interaction energy against the recorded dissipation, and the energy never falls."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import pde_solver as ps

SOURCE = "derived for this project; the energy is that of arXiv:2312.10794"

#: How many depths the polynomial through the recorded energies has.
NODES = 14

#: log_scale makes the velocity of order one.
SA = 'model.attention=[{beta=4.0, normaliser="softmax"}]'
USA = 'model.attention=[{beta=4.0, normaliser="unnormalised", log_scale=3.0}]'
#: V = QᵀK is symmetric, with one eigenvalue of either sign.
SYMMETRIC = (
    'model.attention=[{beta=2.0, normaliser="softmax", query=[[1.0, 0.5], [0.0, 1.0]], key=[[1.0, 0.5], [0.0, -0.85]], '
    "value=[[1.0, 0.5], [0.5, -0.6]]}]"
)
SPHERE = (
    "model.manifold=sphere",
    "model.dimension=3",
    "initial.components.0.mean=[1.0, 0.0, 0.0]",
    "initial.components.1.mean=[0.0, 1.0, 0.0]",
)
PARTICLES = ("mesh=", 'discretisation={kind="particles", count=200, seed=1}', "evaluation.method=dense")
DG, FV, TOKENS = "discontinuous Galerkin, degree {}", "finite volume, order 2", "particles"


def differentiation(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev points of [0, 1] with both ends, (n,), and the matrix of the derivative of the polynomial through them."""
    k = np.arange(nodes)
    x = (1 - np.cos(np.pi * k / (nodes - 1))) / 2
    c = np.where((k == 0) | (k == nodes - 1), 2.0, 1.0) * (-1.0) ** k
    matrix = np.outer(c, 1 / c) / (x[:, None] - x[None, :] + np.eye(nodes))
    return x, matrix - np.diag(matrix.sum(axis=1))


def rates(simulation: ps.Simulation, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Depths, dE/dt of the recorded energies (by the polynomial through them) and the recorded dissipation, (n,) each."""
    x, matrix = differentiation(nodes)
    depths = [*(simulation.stop * x[:-1]), simulation.stop]
    energy = simulation.record(ps.interaction_energy, at=depths)
    dissipation = simulation.record(ps.energy_dissipation, at=depths)
    simulation.run()
    return energy.times, matrix @ energy.values / simulation.stop, dissipation.values


def largest_gap(measured: np.ndarray, recorded: np.ndarray) -> float:
    """max |dE/dt − D| / max D."""
    return float(np.abs(measured - recorded).max() / np.abs(recorded).max())


def identity(
    trial: ps.Trial,
    name: str,
    changes: tuple[str, ...],
    key: str,
    resolutions: list[int],
    method: str,
    tolerance: float,
    order: float,
) -> Iterator[ps.Check]:
    """dE/dt = D at all recorded depths, under refinement of the mesh."""
    runs = []

    def error(resolution: int) -> float:
        runs.append(rates(trial.simulation(*changes, f"{key}={resolution}"), NODES))
        return largest_gap(*runs[-1][1:])

    study = ps.converge(
        error,
        resolutions,
        resolution=lambda n: 2 * np.pi / n if key == "mesh.cells" else (4 * np.pi / (20 * 4**n)) ** 0.5,
    )
    depths, measured, recorded = runs[-1]
    yield ps.Check(
        f"dE/dt at {NODES} depths, {name}",
        measured,
        recorded,
        tolerance,
        SOURCE,
        relation="relative",
        method=method,
        study=study,
        figure=ps.Figure(
            (
                ps.Curve(depths, recorded, "recorded dissipation", expected=True),
                ps.Curve(depths, measured, "derivative of the energy"),
            ),
            "t",
            "dE/dt",
        ),
    )
    yield ps.Check(
        f"observed order of dE/dt, {name}",
        study.order("error"),
        order,
        0.0,
        SOURCE,
        relation="at least",
        method=method,
        study=study,
    )


def check_start(trial: ps.Trial) -> Iterator[ps.Check]:
    """Energy and dissipation of the two bumps at t = 0 on the circle, β = 4, against integrals over angles."""
    angles = 2 * np.pi * np.arange(400) / 400
    bumps = zip((0.6, 0.4), (4.0, 6.0), (0.0, np.pi / 2), strict=True)
    law = sum(share * np.exp(k * np.cos(angles - at)) / np.exp(k * np.cos(angles)).sum() for share, k, at in bumps)
    between = angles[:, None] - angles
    kernel = np.exp(4 * np.cos(between))
    partition, pull = kernel @ law, -(np.sin(between) * kernel) @ law
    usa = np.exp(-3.0)
    for name, head, scale, rate, tolerance in (
        ("SA", SA, 1.0, law @ (pull**2 / partition), 2e-12),
        ("USA", USA, usa, law @ (usa * pull) ** 2, 5e-13),
    ):
        expected = np.array([scale * (law @ partition) / 8, rate])
        found = []

        def error(cells: int, head=head, expected=expected, found=found) -> float:
            snapshot = trial.simulation(head, f"mesh.cells={cells}").snapshot
            found.append(np.array([ps.interaction_energy(snapshot), ps.energy_dissipation(snapshot)]) / expected)
            return float(np.abs(found[-1] - 1).max())

        study = ps.converge(error, [16, 32, 64], resolution=lambda n: 2 * np.pi / n)
        yield ps.Check(
            f"energy and dissipation at t = 0 over their values, {name}, circle",
            found[-1],
            np.ones(2),
            tolerance,
            SOURCE,
            method=DG.format(3),
            study=study,
        )


def check_circle(trial: ps.Trial) -> Iterator[ps.Check]:
    """SA, USA and a head V = QᵀK: Galerkin and finite volumes."""
    quick = trial.quick
    # measured on the finest mesh, quick and full: README.md
    for name, head, galerkin, volumes in (
        ("SA", SA, (1.5e-6, 4e-8), (0.05, 2.5e-3)),
        ("USA", USA, (4e-6, 8e-8), (0.04, 2e-3)),
        ("SA, V = QᵀK", SYMMETRIC, (8e-7, 4e-8), (0.02, 1e-3)),
    ):
        if quick and name == "USA":
            continue
        change = ("mesh.cells", trial.resolutions(16, 32, 64, quick=2), DG.format(3), galerkin[not quick], 3.5)
        yield from identity(trial, f"{name}, circle", (head,), *change)
        kind = (head, "discretisation={kind='finite-volume'}")
        change = ("mesh.cells", trial.resolutions(32, 64, 128, 256, quick=2), FV, volumes[not quick], 1.8)
        yield from identity(trial, f"{name}, circle", kind, *change)


def check_sphere(trial: ps.Trial) -> Iterator[ps.Check]:
    """SA and USA: Galerkin and finite volumes on triangles."""
    quick = trial.quick
    for name, head, galerkin, volumes in (
        ("USA", USA, 1.5e-5, (0.12, 8e-3)),
        ("SA", SA, 8e-6, (0.2, 1e-2)),
    )[: 1 if quick else 2]:
        mesh = (head, *SPHERE, "mesh={kind='icosphere'}")
        if not quick:
            change = ("mesh.level", [1, 2, 3], DG.format(2), galerkin, 3.3)
            yield from identity(trial, f"{name}, S²", (*mesh, "discretisation.degree=2"), *change)
        change = ("mesh.level", trial.resolutions(1, 2, 3, 4, quick=2), FV, volumes[not quick], 1.7)
        yield from identity(trial, f"{name}, S²", (*mesh, "discretisation={kind='finite-volume'}"), *change)


def check_particles(trial: ps.Trial) -> Iterator[ps.Check]:
    """For tokens the identity is exact; what is left is the polynomial through the recorded energies."""
    cases = (  # the last has one depth less, as rounding would be seen beside its error at 14
        ("SA, circle", (SA,), NODES, 1.2e-11),
        ("USA, circle", (USA,), NODES, 5e-11),
        ("SA, V = QᵀK, circle", (SYMMETRIC,), NODES, 5e-10),
        ("SA, S²", (SA, *SPHERE), NODES, 2e-11),
        ("USA, S²", (USA, *SPHERE), NODES - 1, 1.8e-11),
    )
    for name, changes, most, tolerance in cases[:: 4 if trial.quick else 1]:
        runs = []

        def error(nodes: int, changes=changes, runs=runs) -> float:
            steps = "time={stop=1.0, scheme='rk-5', tolerance=1e-12}"
            runs.append(rates(trial.simulation(*changes, *PARTICLES, steps), nodes))
            return largest_gap(*runs[-1][1:])

        study = replace(ps.converge(error, [4, 6, 8, 11, most], abscissa="depths"), refines=False)
        yield ps.Check(
            f"dE/dt at {most} depths, 200 tokens, {name}",
            runs[-1][1],
            runs[-1][2],
            tolerance,
            SOURCE,
            relation="relative",
            method=TOKENS,
            study=study,
        )


def double_sum(model: ps.Model, points: np.ndarray, weights: np.ndarray) -> float:
    """Σ_h a_h / (2β_h) Σ_z π_z Σ_ij k_h(x_i, x_j) w_zi ν_zj, written out."""
    law = np.asarray(model.labels.weights) @ weights
    energy = 0.0
    for head in model.velocity.summands():
        eye = np.eye(points.shape[1])
        q, k = (points @ (eye if m is None else m).T for m in (head.query, head.key))
        match head.normaliser:
            case ps.L2():
                exponent = -head.beta * ((q[:, None] - k[None, :]) ** 2).sum(axis=2) / 2
            case ps.Unnormalised(log_scale):
                exponent = head.beta * q @ k.T - log_scale
            case _:
                exponent = head.beta * q @ k.T
        energy += head.weight / (2 * head.beta) * (law @ np.exp(exponent) @ law)
    return float(energy)


def check_direction(trial: ps.Trial) -> Iterator[ps.Check]:
    """The dissipation is the derivative of the energy in the direction of the velocity, with the energy written out here."""
    s = np.array([[1.0, 0.3, 0.0], [0.3, -0.5, 0.2], [0.0, 0.2, 0.4]])
    usa = ps.Unnormalised(log_scale=2.0)
    bump = ps.VonMisesFisher((1.0, 0.5, 0.2), 2.0)
    models = {
        "SA, V = QᵀK": ps.Model(ps.Sphere(3), ps.Attention(2.0, key=s, value=s)),
        "USA, three heads": ps.Model(
            ps.Sphere(3),
            ps.Attention(3.0, normaliser=usa)
            + ps.Attention(1.5, key=s, value=s, weight=2.0, normaliser=usa)
            + ps.Attention(1.0, query=-s, value=-s, weight=-0.7, normaliser=ps.Unnormalised()),
        ),
        "L2": ps.Model(ps.Sphere(3), ps.Attention(2.0, normaliser=ps.L2())),
        "SA, two labels": ps.Model(ps.Sphere(3), ps.Attention(2.0), ps.Labels((0.3, 0.7))),
    }
    tolerances = dict(zip(models, (5e-9, 5e-9, 6e-10, 7e-11), strict=True))
    for name, model in models.items():
        if trial.quick and name == "L2":
            continue
        labels = model.labels.count
        law: ps.Law | list[ps.Law] = bump if labels == 1 else [bump, ps.VonMisesFisher((0.0, 0.0, 1.0), 1.0)]
        places = {
            TOKENS: ps.Particles(model, count=60, seed=2),
            DG.format(2): ps.DiscontinuousGalerkin(model, ps.icosphere(0), 2),
            FV: ps.FiniteVolume(model, ps.icosphere(1)),
        }
        recorded, moved = [], []
        for method, discretisation in places.items():
            snapshot = ps.Simulation(discretisation, law, 1.0).snapshot
            measure = snapshot.measure.gathered()
            # each label's mass moves with its own velocity
            field = ps.velocity(model, 0.0, measure.points, measure)
            x = np.tile(measure.points, (labels, 1))
            v = field.reshape(-1, 3)
            w = np.zeros((labels, labels, len(measure.points)))
            w[np.arange(labels), np.arange(labels)] = measure.weights
            w = w.reshape(labels, -1)
            yield ps.Check(
                f"interaction energy against the double sum, {name}",
                ps.interaction_energy(snapshot),
                double_sum(model, x, w),
                1e-13,
                ps.DERIVED,
                relation="relative",
                method=method,
                exact=True,
            )
            recorded.append(ps.energy_dissipation(snapshot))
            moved.append(
                lambda size, x=x, v=v, w=w, model=model: double_sum(model, model.manifold.retract(x + size * v), w)
            )
        found: list[np.ndarray] = []
        rate = np.array(recorded)

        def error(size: float, moved=moved, rate=rate, found=found) -> float:
            near, far = (np.array([at(h) - at(-h) for at in moved]) for h in (size, 2 * size))
            found.append((8 * near - far) / (12 * size))  # of order four
            return float(np.abs(found[-1] / rate - 1).max())

        study = ps.converge(error, [0.08, 0.04, 0.02, 0.01], abscissa="step")
        yield ps.Check(
            f"dE along X, {name}",
            found[-1] / rate,
            np.ones(len(rate)),
            tolerances[name],
            ps.DERIVED,
            method="particles, discontinuous Galerkin, finite volume",
            study=study,
        )


def check_never_falls(trial: ps.Trial) -> Iterator[ps.Check]:
    """From two bumps until they have clustered, on coarse meshes."""
    time = "time={stop=3.0}"
    circle = {
        DG.format(3): (),
        DG.format(1): ("discretisation.degree=1",),
        FV: ("discretisation={kind='finite-volume'}",),
        TOKENS: PARTICLES,
    }
    ball = "mesh={kind='icosphere', level=1}"
    sphere = {
        DG.format(2): (*SPHERE, ball, "discretisation.degree=2"),
        FV: (*SPHERE, "mesh={kind='icosphere', level=2}", "discretisation={kind='finite-volume'}"),
        TOKENS: (*SPHERE, *PARTICLES),
    }
    usa = USA.replace("log_scale=3.0", "log_scale=2.0")
    for where, methods, heads in (
        ("circle", circle, {"SA": SA, "USA": usa, "SA, V = QᵀK": SYMMETRIC}),
        ("S²", sphere, {"SA": SA, "USA": usa}),
    ):
        for name, head in heads.items():
            for method, changes in methods.items():
                if trial.quick and (name, method) not in {("SA", DG.format(3)), ("SA", TOKENS), ("USA", FV)}:
                    continue
                simulation = trial.simulation(head, *changes, time)
                energy = simulation.record(ps.interaction_energy, every=0.125)
                simulation.run()
                yield ps.Check(
                    f"least change of the energy from one depth to the next, {name}, {where}",
                    float(np.diff(energy.values).min()),
                    0.0,
                    1e-12,
                    SOURCE,
                    relation="at least",
                    method=method,
                    exact=True,
                    figure=ps.Figure((ps.Curve(energy.times, energy.values, "energy"),), "t", "E"),
                )
                yield ps.Check(
                    f"growth of the energy up to t = 3, {name}, {where}: it does rise",
                    float(energy.values[-1] / energy.values[0]),
                    1.2,
                    0.0,
                    SOURCE,
                    relation="at least",
                    method=method,
                    exact=True,
                )
    simulation = trial.simulation(SA.replace("}", ", value=[[-1.0, 0.0], [0.0, -1.0]]}"))
    energy = simulation.record(ps.interaction_energy, every=0.125)
    simulation.run()
    yield ps.Check(
        "largest change of the energy from one depth to the next for V = −I, SA, circle: there it falls",
        float(np.diff(energy.values).max()),
        0.0,
        0.0,
        SOURCE,
        relation="at most",
        method=DG.format(3),
        exact=True,
    )
