"""Rank: what V-invariant subspaces keep, what Gaussians keep under any V, what layers without residual lose."""

import csv
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import schur

import pde_solver as ps
from pde_solver.solutions import GaussianClosure, softmax_covariance
from pde_solver.solutions.gaussian_layers import attention_layers_log_variance, residual_layers_log_variance

SOURCE = "derived for this project; the subject is that of arXiv:2604.23681"

GAUSSIANS = "arXiv:2606.07600"
DIRECT = ps.Evaluation(method="dense")
WEIGHTED = "particles, weighted by a Gauss–Hermite quadrature"

#: Singular values below this fraction of the largest count as zero; those that count are above 1e-3 of it.
GAP = 1e-10

R4 = (
    "model.dimension=4",
    "initial.mean=[0.3, -0.2, 0.1, 0.0]",
    "model.attention.0.query=[[1.0, 0.2, -0.1, 0.1], [0.0, 0.9, 0.3, 0.0], [0.2, 0.0, 0.8, -0.3]]",
    "model.attention.0.key=[[0.9, 0.0, 0.2, 0.0], [0.3, 1.0, 0.0, 0.4], [0.0, -0.2, 0.7, 0.1]]",
    "model.attention.0.value=[[-0.8, 0.5, 0.2, 0.1], [-0.3, -0.6, 0.1, 0.0], [0.2, -0.1, -0.5, 0.3], [0.1, 0.2, -0.4, -0.7]]",
)
SPACES = {"R³": (), "R⁴": R4}


def invariant_plane(matrix: np.ndarray) -> np.ndarray:
    """An orthonormal basis (d, 2) of the first invariant plane of the real Schur form, whose first block is 2 × 2 here."""
    form, vectors = schur(matrix)
    assert abs(form[2:, :2]).max() == 0
    return vectors[:, :2]


def with_drift(head: ps.Attention) -> ps.Model:
    """The head and the drift W = V/4 − I/10, which has the invariant subspaces of V."""
    d = len(head.value)
    return ps.Model(ps.Euclidean(d), head + ps.Linear(0.25 * head.value - 0.1 * np.eye(d)))


def changed(head: ps.Attention, normaliser: object, value: np.ndarray | None = None) -> ps.Attention:
    """The head with another normaliser, and with another value where one is given."""
    return ps.Attention(
        head.beta, head.query, head.key, head.value if value is None else value, normaliser, head.weight
    )


def tokens_at(model: ps.Model, points: np.ndarray, weights: np.ndarray | None, depths, step: float) -> list[np.ndarray]:
    """The positions of weighted tokens at the depths, on every rank."""
    weights = np.full(len(points), 1 / len(points)) if weights is None else weights
    particles = ps.Particles(model, quadrature=ps.TokenMeasure(points, weights[None]), evaluation=DIRECT)
    # the density 1 leaves the weights of the tokens as they are
    simulation = ps.Simulation(particles, ps.Expression("1"), depths[-1], scheme=ps.SSP(4, step=step))
    found: list[np.ndarray] = []
    simulation.observe(lambda snapshot: found.append(snapshot.law.gathered().points), at=depths)
    simulation.run()
    return found


def singular_values(points: np.ndarray) -> np.ndarray:
    """Of the matrix of tokens (n, d), relative to the largest."""
    values = np.linalg.svd(points, compute_uv=False)
    return values / values[0]


def gauss_hermite(order: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (order^r, r) and weights, of sum 1, of the standard Gaussian on R^r."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    points = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    grids = np.meshgrid(*[weights / weights.sum()] * dimension, indexing="ij")
    return points, np.prod(grids, axis=0).reshape(-1)


def covariance(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """∫ (x − m)(x − m)ᵀ dμ, (d, d)."""
    centred = points - weights @ points
    return centred.T @ (weights[:, None] * centred)


def check_invariant_subspaces(trial: ps.Trial) -> Iterator[ps.Check]:
    """60 tokens on a plane that V leaves invariant, with any Q and K, three normalisers, on R³ and R⁴."""
    depths = list(np.linspace(0, 2, 5))
    for space, changes in SPACES.items():
        head = trial.case(*changes).model.velocity.summands()[0]
        plane = invariant_plane(head.value)
        rng = np.random.default_rng(1)
        start = (0.4 + rng.standard_normal((60, 2)) * [0.9, 0.5]) @ plane.T
        for normaliser in (ps.Softmax(), ps.Unnormalised(), ps.L2()):
            found = tokens_at(with_drift(changed(head, normaliser)), start, None, depths, 0.1)
            away = [np.abs(x - x @ plane @ plane.T).max() for x in found]
            where = f"{space}, {type(normaliser).__name__}"
            yield ps.Check(
                f"largest distance of tokens from a V-invariant plane in {where}",
                max(away),
                0.0,
                5e-15,
                SOURCE,
                method="particles",
                exact=True,
            )
            yield ps.Check(
                f"numerical rank of the matrix of tokens at five depths, {where}",
                np.array([np.sum(singular_values(x) > GAP) for x in found]),
                np.full(5, 2),
                0.0,
                SOURCE,
                method="particles",
                exact=True,
            )
            yield ps.Check(
                f"second singular value against the first, over depth, {where}",
                min(singular_values(x)[1] for x in found),
                1e-3,
                0.0,
                SOURCE,
                relation="at least",
                method="particles",
                exact=True,
            )


def check_multiple_of_identity(trial: ps.Trial) -> Iterator[ps.Check]:
    """With V = v I tokens move by X' = v P X, so that the rank of any matrix of tokens stays; R⁴, ranks 1, 2 and 3."""
    head = trial.case(*R4).model.velocity.summands()[0]
    model = ps.Model(ps.Euclidean(4), changed(head, ps.Softmax(), -np.eye(4)))
    rng = np.random.default_rng(2)
    for rank in (1, 2, 3):
        start = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, 4))
        found = tokens_at(model, start, None, [0.0, 1.0, 2.0], 0.1)
        centred = [x - x.mean(axis=0) for x in found]
        yield ps.Check(
            f"numerical rank of {rank}-dimensional tokens and of the centred tokens at three depths, V = −I",
            np.array([[np.sum(singular_values(x) > GAP) for x in kind] for kind in (found, centred)]),
            np.full((2, 3), rank),
            0.0,
            SOURCE,
            method="particles",
            exact=True,
        )


def factor_flow(head: ps.Attention, mean: np.ndarray, factor: np.ndarray, stop: float) -> tuple[np.ndarray, np.ndarray]:
    """m and S = L Lᵀ of a Gaussian of rank r: L' = V S Aᵀ L, m' = V (m + S Aᵀ m), A = β QᵀK, integrated with L (d, r)."""
    form, d = head.beta * head.query.T @ head.key, len(mean)

    def rate(_t: float, state: np.ndarray) -> np.ndarray:
        together = state.reshape(d, -1)  # m beside L
        spread = together[:, 1:] @ together[:, 1:].T
        change = head.value @ spread @ form.T @ together
        change[:, 0] += head.value @ together[:, 0]
        return change.ravel()

    end = solve_ivp(rate, (0, stop), np.column_stack([mean, factor]).ravel(), method="DOP853", rtol=1e-13, atol=1e-15)
    together = end.y[:, -1].reshape(d, -1)
    return together[:, 0], together[:, 1:] @ together[:, 1:].T


def check_gaussians_of_rank_two(trial: ps.Trial) -> Iterator[ps.Check]:
    """A Gaussian on a plane that V does not leave invariant: the plane turns, the rank of the covariance stays."""
    stop, step = 1.0, 0.05 if trial.quick else 0.02
    # tolerances of the third singular value and of the covariance, quick and in full
    tolerances = {"R³": ((3e-9, 1.4e-14), (1.8e-10, 5e-12)), "R⁴": ((7e-9, 5e-14), (3.5e-10, 6e-12))}
    for space, changes in SPACES.items():
        of_rank, of_covariance = tolerances[space]
        head = trial.case(*changes).model.velocity.summands()[0]
        d = len(head.value)
        model = ps.Model(ps.Euclidean(d), head)
        mean = np.array([0.3, -0.2, 0.1, 0.0][:d])
        factor = np.array([[0.7, 0.1], [0.0, 0.6], [0.4, -0.3], [0.2, 0.3]])[:d]
        exact_mean, exact_covariance = factor_flow(head, mean, factor, stop)
        ends: list[np.ndarray] = []

        def errors(
            order: int,
            model=model,
            mean=mean,
            factor=factor,
            expected=exact_covariance,
            expected_mean=exact_mean,
            ends=ends,
        ) -> dict[str, float]:
            points, weights = gauss_hermite(order, 2)
            x = tokens_at(model, mean + points @ factor.T, weights, [0.0, stop], step)[-1]
            ends.append(covariance(x, weights))
            values = np.linalg.svd(np.sqrt(weights)[:, None] * (x - weights @ x), compute_uv=False)
            return {
                "σ₃/σ₁": values[2] / values[0],
                "S": np.abs(ends[-1] - expected).max(),
                "m": np.abs(weights @ x - expected_mean).max(),
            }

        study = ps.converge(errors, trial.resolutions(6, 9, 12, 16, 20, quick=3), abscissa="n")
        yield ps.Check(
            f"third singular value of the centred tokens against the first at t = {stop:g}, {space}",
            study.last("σ₃/σ₁"),
            0.0,
            of_rank[0 if trial.quick else 1],
            GAUSSIANS,
            method=WEIGHTED,
            study=study,
        )
        yield ps.Check(
            f"covariance of rank two at t = {stop:g}, {space}",
            ends[-1],
            exact_covariance,
            of_covariance[0 if trial.quick else 1],
            SOURCE,
            method=WEIGHTED,
            study=study,
        )
        turned = np.linalg.norm((np.eye(d) - factor @ np.linalg.pinv(factor)) @ ends[-1]) / np.linalg.norm(ends[-1])
        yield ps.Check(
            f"how far the tokens' covariance left the plane it began on, {space}: the plane is not invariant",
            turned,
            0.05,
            0.0,
            SOURCE,
            relation="at least",
            method=WEIGHTED,
            exact=True,
        )
        # the same start, but not Gaussian: four tokens of the same mean and covariance
        corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        x = tokens_at(model, mean + corners @ factor.T, None, [0.0, stop], step)[-1]
        yield ps.Check(
            f"third singular value for four tokens of the same mean and covariance, {space}: Gaussians are needed",
            singular_values(x - x.mean(axis=0))[2],
            1e-4,
            0.0,
            SOURCE,
            relation="at least",
            method="particles",
            exact=True,
        )


def check_closure(trial: ps.Trial) -> Iterator[ps.Check]:
    """The closed equations of the moments, where S₀ is singular (V = −I) and where it becomes so (general V)."""
    head = trial.case().model.velocity.summands()[0]
    factor = np.array([[0.7, 0.1], [0.0, 0.6], [0.4, -0.3]])
    singular = factor @ factor.T
    contracting = changed(head, ps.Softmax(), -np.eye(3))
    expected = softmax_covariance(1.0, -1.0, head.beta * head.query.T @ head.key, singular)
    step = 0.05 if trial.quick else 0.02
    found: list[np.ndarray] = []

    def error(order: int) -> float:
        points, weights = gauss_hermite(order, 2)
        model = ps.Model(ps.Euclidean(3), contracting)
        found.append(covariance(tokens_at(model, points @ factor.T, weights, [0.0, 1.0], step)[-1], weights))
        return np.abs(found[-1] - expected).max()

    study = ps.converge(error, trial.resolutions(6, 9, 12, 16, 20, quick=3), abscissa="n")
    yield ps.Check(
        "S(1) = (I + t S₀(A + Aᵀ))⁻¹ S₀ with a singular S₀, V = −I, R³",
        found[-1],
        expected,
        1e-9 if trial.quick else 2e-11,
        SOURCE,
        method=WEIGHTED,
        study=study,
    )

    model = ps.Model(ps.Euclidean(3), head)

    def least(size: float) -> float:
        closure = GaussianClosure(model, ps.Gaussian((0.3, -0.2, 0.1), singular + size * np.eye(3)))
        return float(np.linalg.eigvalsh(closure.moments(1.0)[1])[0])

    study = ps.converge(least, [1e-3, 1e-4, 1e-5, 1e-6], abscissa="δ")
    yield ps.Check(
        "order in δ of the least eigenvalue of S(1) from S₀ of rank two plus δI, general V, R³",
        study.order("error"),
        1.0,
        1e-5,  # the line bends at δ = 1e-3: 3e-6
        ps.DERIVED,
        method="moments of the Gaussian closure",
        study=study,
    )


def layered_variances(head: ps.Attention, start: float, layers: int, order: int, residual: float | None) -> np.ndarray:
    """s_l of the tokens √s₀ ξ, ξ at Gauss–Hermite points, moved by one layer of attention after the other."""
    model = ps.Model(ps.Euclidean(1), head)
    points, weights = gauss_hermite(order, 1)
    x, found = np.sqrt(start) * points, [start]
    for _ in range(layers):
        change = ps.velocity(model, 0.0, x, ps.TokenMeasure(x, weights[None]))[0]
        x = change if residual is None else x + residual * change
        found.append(float(weights @ x[:, 0] ** 2))
    return np.array(found)


def table(trial: ps.Trial, gain: float, column: str) -> np.ndarray:
    """A column of the table for va = gain and s₀ = 0.8."""
    with (trial.folder / "discrete_gaussian_layers.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["v*a"]) == gain and float(row["s0"]) == 0.8]
    return np.array([float(row[column]) for row in rows])


def check_layers(trial: ps.Trial) -> Iterator[ps.Check]:
    """Layers without residual: |va| s_l = (|va| s₀)^(3^l); with residual there is no collapse."""
    method = "layers of attention on a Gauss–Hermite quadrature"
    for gain in (1.0, -1.0):
        head = ps.Attention(1.0, value=[[gain]])
        known = table(trial, gain, "pure attention variance")
        closed = attention_layers_log_variance(head, 0.8, 5)
        runs: list[np.ndarray] = []

        def errors(order: int, head=head, known=known, closed=closed, runs=runs) -> dict[str, float]:
            runs.append(np.log(layered_variances(head, 0.8, 5, order, None)))
            return {
                "four layers": np.abs(runs[-1] - closed)[:5].max(),
                "five layers": np.abs(runs[-1] - np.log(known)).max(),
                "ratios": max(abs(b / a - 3) for a, b in pairwise(runs[-1])),
            }

        study = ps.converge(errors, [10, 20, 30, 40], abscissa="n")
        layer = np.arange(6)
        yield ps.Check(
            f"ln s_l of four layers of pure attention, va = {gain:g}, down to s = 1.4e-8",
            runs[-1][:5],
            closed[:5],
            4e-14,
            SOURCE,
            method=method,
            study=study,
        )
        yield ps.Check(
            f"ln s_l of five layers of pure attention, va = {gain:g}, down to s = 2.8e-24",
            runs[-1],
            np.log(known),
            3e-8,
            SOURCE,
            method=method,
            study=study,
            figure=ps.Figure(
                (
                    ps.Curve(layer, -closed, "−ln s₀ · 3^l", expected=True),
                    ps.Curve(layer, -runs[-1], "attention"),
                ),
                "layer",
                "−ln s",
                "log-y",
            ),
        )
        yield ps.Check(
            f"ln s_(l+1) / ln s_l of pure attention, va = {gain:g}: collapse is doubly exponential",
            np.array([b / a for a, b in pairwise(runs[-1])]),
            np.full(5, 3.0),
            2e-9,
            SOURCE,
            method=method,
            study=study,
        )

    # growth spreads the tilts beyond the quadrature's points, so va > 0 takes small steps
    for gain, start, layers, step, tolerance in (
        (-1.0, 0.8, 5, 1.0, 5e-13),  # the table has 13 digits
        (-1.0, 0.8, 200, 1.0, 1.6e-14),
        (1.0, 0.2, 8, 0.25, 4e-15),
    ):
        head = ps.Attention(1.0, value=[[gain]])
        known = residual_layers_log_variance(head, start, layers, step)
        if layers == 5:
            known = np.log(table(trial, gain, "residual (h=1) variance"))
        runs = []

        def residual_error(order: int, head=head, known=known, arguments=(start, layers, step), runs=runs) -> float:
            start, layers, step = arguments
            runs.append(layered_variances(head, start, layers, order, step))
            return np.abs(np.log(runs[-1]) - known).max()

        study = ps.converge(residual_error, [10, 20, 40, 60], abscissa="n")
        yield ps.Check(
            f"ln s_l of {layers} residual layers, va = {gain:g}, h = {step:g}, s₀ = {start:g}",
            np.log(runs[-1]),
            known,
            tolerance,
            SOURCE,
            method=method,
            study=study,
        )
        if layers == 200:
            layer = np.arange(1, layers + 1)
            yield ps.Check(
                "2 l s_l after 200 residual layers, va = −1: no collapse, only 1/(2l)",
                400 * runs[-1][-1],
                0.9,
                0.0,
                SOURCE,
                relation="at least",
                method=method,
                exact=True,
                figure=ps.Figure(
                    (ps.Curve(layer, 0.5 / layer, "1/(2l)", expected=True), ps.Curve(layer, runs[-1][1:], "attention")),
                    "layer",
                    "s",
                    "log-log",
                ),
            )


def check_great_circles(trial: ps.Trial) -> Iterator[ps.Check]:
    """Tokens of S² on a great circle in a V-invariant plane are the tokens of the circle with the matrices of that plane."""
    head = trial.case().model.velocity.summands()[0]
    plane = invariant_plane(head.value)
    angles = np.random.default_rng(3).uniform(0, 2 * np.pi, 50)
    start = np.column_stack([np.cos(angles), np.sin(angles)])
    weights = np.linspace(1, 2, 50) / np.linspace(1, 2, 50).sum()
    depths = [0.0, 1.0, 2.0]
    for normaliser in (ps.Softmax(), ps.Unnormalised(log_scale=4.0)):
        of_sphere = ps.Attention(4.0, head.query, head.key, head.value, normaliser)
        of_circle = ps.Attention(4.0, head.query @ plane, head.key @ plane, plane.T @ head.value @ plane, normaliser)
        found = tokens_at(ps.Model(ps.Sphere(3), of_sphere), start @ plane.T, weights, depths, 0.05)
        same = tokens_at(ps.Model(ps.Sphere(2), of_circle), start, weights, depths, 0.05)
        name = type(normaliser).__name__
        yield ps.Check(
            f"distance of the tokens of S² from the great circle, {name}",
            max(np.abs(x - x @ plane @ plane.T).max() for x in found),
            0.0,
            5e-15,
            SOURCE,
            method="particles",
            exact=True,
        )
        yield ps.Check(
            f"tokens on a great circle of S² against tokens of the circle, {name}",
            found[-1] @ plane,
            same[-1],
            1e-13,
            SOURCE,
            method="particles",
            exact=True,
        )
        moved = np.abs(same[-1] - start).max()
        yield ps.Check(
            f"how far the tokens of the circle moved, {name}: they are not at rest",
            moved,
            0.02,
            0.0,
            SOURCE,
            relation="at least",
            method="particles",
            exact=True,
        )
    # a small circle: three-dimensional span, two-dimensional affine hull
    heights = np.full(50, 0.5)
    small = np.column_stack([start * np.sqrt(0.75), heights])
    x = tokens_at(ps.Model(ps.Sphere(3), ps.Attention(4.0)), small, weights, [0.0, 1.0], 0.05)[-1]
    yield ps.Check(
        "third singular value of the centred tokens of a small circle of S², 0 at the start: the affine hull is not kept",
        singular_values(x - weights @ x)[2],
        1e-3,
        0.0,
        SOURCE,
        relation="at least",
        method="particles",
        exact=True,
    )
