"""Gaussians under softmax and L2 attention on R, R² and R³: moments and densities against the closure, and closed forms."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import pde_solver as ps
from pde_solver.solutions import GaussianClosure

CLOSURE = "derived for this project; that Gaussians are preserved: arXiv:2501.18322"
FV2 = "finite volume, order 2"
DG2 = "discontinuous Galerkin, degree 2"
PARTICLES = "particles, weighted by a quadrature"

Moments = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Head:
    """V, Q, K, with weights e^{⟨Qx, Ky⟩} ("softmax") or e^{−|Qx − Ky|²/2} ("l2")."""

    value: list[list[float]]
    query: list[list[float]]
    key: list[list[float]]
    normaliser: str = "l2"

    def table(self) -> str:
        """It as the case says it: β = 4 with half of Q and of K, so that a β that is lost would be seen."""
        query, key = ((np.array(matrix) / 2).tolist() for matrix in (self.query, self.key))
        return f"{{value={self.value}, beta=4.0, query={query}, key={key}, normaliser='{self.normaliser}'}}"

    def term(self) -> ps.Attention:
        """It as it stands here, whatever the case makes of it."""
        normaliser = ps.L2() if self.normaliser == "l2" else ps.Softmax()
        return ps.Attention(1.0, query=self.query, key=self.key, value=self.value, normaliser=normaliser)


def softmax(value: list[list[float]], form: list[list[float]]) -> Head:
    """The head with V and the score ⟨x, A y⟩ = ⟨Aᵀ x, y⟩."""
    return Head(value, np.transpose(form).tolist(), np.eye(len(form)).tolist(), "softmax")


@dataclass(frozen=True)
class Example:
    """Heads, a drift, a Gaussian, and the box that holds it to about six standard deviations at all depths.

    Args:
        heads: their velocities add.
        mean: m₀.
        covariance: S₀.
        lower: the box's lower corner.
        upper: its upper corner.
        stop: the depth.
        drift: W x + b, as a change of the case.
    """

    heads: tuple[Head, ...]
    mean: list[float]
    covariance: list[list[float]]
    lower: list[float]
    upper: list[float]
    stop: float
    drift: tuple[str, ...] = ()

    def changes(self) -> tuple[str, ...]:
        """What it changes in the case, but for the mesh."""
        heads = ", ".join(head.table() for head in self.heads)
        return (
            f"model={{manifold='euclidean', dimension={len(self.mean)}, attention=[{heads}]}}",
            f"initial={{law='gaussian', mean={self.mean}, covariance={self.covariance}}}",
            f"time.stop={self.stop}",
            *self.drift,
        )

    def closure(self) -> GaussianClosure:
        """The closure of the heads and the drift as they stand here."""
        terms: list[ps.Attention | ps.Linear] = [head.term() for head in self.heads]
        if self.drift:
            terms.append(ps.Linear([[0.5]], [0.2]))
        return GaussianClosure(
            ps.Model(ps.Euclidean(len(self.mean)), sum(terms[1:], terms[0])), ps.Gaussian(self.mean, self.covariance)
        )

    def mesh(self, cells: int) -> str:
        """The interval, squares or cubes of the box."""
        n = len(self.mean)
        if n == 1:
            return f"mesh={{kind='interval', lower={self.lower[0]}, upper={self.upper[0]}, cells={cells}}}"
        kind, cell = {2: ("rectangle", "quadrilateral"), 3: ("box", "hexahedron")}[n]
        corners = f"lower={self.lower}, upper={self.upper}"
        return f"mesh={{kind='{kind}', {corners}, cells={[cells] * n}, cell='{cell}'}}"

    def tokens(self, cells: int) -> tuple[str, ...]:
        """A quadrature of the box."""
        corners = f"lower={self.lower}, upper={self.upper}, cells={[cells] * len(self.mean)}"
        return ("mesh=", f"discretisation={{kind='particles', placement='quadrature', quadrature_order=4, {corners}}}")


ON_THE_LINE = {"mean": [0.7], "covariance": [[0.5]], "lower": [-4.5], "upper": [6.0]}
IN_THE_PLANE = {
    "mean": [0.5, -0.3],
    "covariance": [[0.6, 0.1], [0.1, 0.3]],
    "lower": [-4.6, -5.4],
    "upper": [5.4, 4.2],
    "stop": 1.0,
}
GENERAL = softmax([[-1.0, 0.5], [-0.5, -0.3]], [[1.0, 0.2], [-0.1, 0.6]])
EXAMPLES = {
    "V = 1, A = −1": Example((softmax([[1.0]], [[-1.0]]),), stop=2.0, **ON_THE_LINE),
    "V = −1, A = 1": Example((softmax([[-1.0]], [[1.0]]),), stop=2.0, **ON_THE_LINE),
    "V = −1, A = 1, drift x/2 + 1/5": Example(
        (softmax([[-1.0]], [[1.0]]),),
        [0.3],
        [[0.05]],
        [-5.0],
        [5.5],
        4.0,
        ("model.linear={matrix=[[0.5]], offset=[0.2]}",),
    ),
    "L2, V = 1": Example((Head([[1.0]], [[1.0]], [[1.0]]),), [0.7], [[0.5]], [-7.0], [10.0], 1.0),
    "V = −I, A symmetric": Example((softmax([[-1.0, 0.0], [0.0, -1.0]], [[1.0, 0.3], [0.3, 0.5]]),), **IN_THE_PLANE),
    "V = I, A not symmetric": Example(
        (softmax([[1.0, 0.0], [0.0, 1.0]], [[-1.0, -0.8], [0.4, -0.5]]),), **IN_THE_PLANE
    ),
    "V and A general": Example((GENERAL,), **IN_THE_PLANE),
    "two heads": Example((GENERAL, softmax([[-0.2, 0.0], [0.3, 0.1]], [[0.5, 0.0], [0.7, 0.4]])), **IN_THE_PLANE),
    "L2, V, Q and K general": Example(
        (Head([[-0.8, 0.3], [-0.2, -0.5]], [[1.0, 0.2], [-0.3, 0.8]], [[0.9, -0.4], [0.1, 1.1]]),), **IN_THE_PLANE
    ),
    "V and A general in R³": Example(
        (
            softmax(
                [[-1.0, 0.2, 0.0], [0.0, -0.6, 0.3], [0.1, 0.0, -0.4]],
                [[0.8, 0.1, -0.2], [0.0, 0.5, 0.3], [0.2, -0.1, 0.7]],
            ),
        ),
        [0.3, -0.2, 0.4],
        [[0.5, 0.1, 0.0], [0.1, 0.4, -0.05], [0.0, -0.05, 0.3]],
        [-3.75, -3.85, -3.0],
        [4.35, 3.45, 3.8],
        0.5,
    ),
}


def moments_of(snapshot: ps.Snapshot) -> Moments:
    """The mean and the covariance of the law."""
    mean = snapshot.law.integrate(lambda x: x)[0]
    return mean, snapshot.law.integrate(lambda x: np.einsum("mi,mj->mij", x, x))[0] - np.outer(mean, mean)


def flat(moments: Moments) -> np.ndarray:
    """The entries of the mean, then those of the covariance."""
    return np.concatenate([moments[0], np.ravel(moments[1])])


def elementary_covariance(name: str) -> np.ndarray | None:
    """S at the stop in elementary functions, without the package's closure; None where there is no such formula."""
    example = EXAMPLES[name]
    t, start, head = example.stop, np.array(example.covariance), example.heads[0]
    value = np.array(head.value)
    if example.drift:  # s* / (1 + (s*/s₀ − 1) e^{−2wt}), w = 1/2, s* = w / |v a| = 1/2
        return 0.5 / (1 + (0.5 / start - 1) * np.exp(-t))
    if (
        head.normaliser == "softmax"
        and len(example.heads) == 1
        and np.array_equal(value, value[0, 0] * np.eye(len(value)))
    ):
        form = np.transpose(head.query) @ head.key
        return np.linalg.inv(np.linalg.inv(start) - t * value[0, 0] * (form + form.T))
    return None


def moments(
    trial: ps.Trial,
    name: str,
    method: str,
    values: list[int],
    tolerance: float,
    *,
    alone: float | None = None,
    density: float | None = None,
) -> Iterator[ps.Check]:
    """Mean and covariance at the stop against the closure, and the density's error.

    Args:
        trial: of this claim.
        name: a key of `EXAMPLES`.
        method: Galerkin or particles.
        values: cells along an axis.
        tolerance: of the moments, at the last of them.
        alone: tolerance of the covariance alone, where the mean's error is larger.
        density: tolerance of the density in L², if it is measured.
    """
    example = EXAMPLES[name]
    found: list[np.ndarray] = []

    def changes(cells: int) -> tuple[str, ...]:
        placed = example.tokens(cells) if method == PARTICLES else (example.mesh(cells),)
        # in R² and R³ sums are larger, and the mesh's error is larger too
        precision = () if len(example.mean) == 1 else ("evaluation.tolerance=1e-6",)
        return (*example.changes(), *placed, *precision)

    closure = example.closure()
    expected = flat(closure.moments(example.stop))
    width = example.upper[0] - example.lower[0]

    def run(cells: int) -> ps.Measurement:
        simulation = trial.simulation(*changes(cells))
        outcome = simulation.run()
        assert outcome.completed, str(outcome)
        found.append(flat(moments_of(simulation.snapshot)))
        error = np.abs(found[-1] - expected)
        errors = {"moments": error.max(), "covariance": error[len(example.mean) :].max()}
        if density is not None:
            errors |= ps.measured(simulation, lambda x: closure.density(example.stop, x), distance=False).errors
        return ps.Measurement(width / cells, errors, simulation.discretisation.unknowns)

    study = ps.converge(run, values)
    yield ps.Check(
        f"mean and covariance at t = {example.stop:g}, {name}",
        found[-1],
        expected,
        tolerance,
        CLOSURE,
        method=method,
        study=study,
    )
    covariance = elementary_covariance(name)
    if covariance is not None:
        yield ps.Check(
            f"covariance at t = {example.stop:g} in elementary functions, {name}",
            found[-1][len(example.mean) :],
            covariance.ravel(),
            alone or tolerance,
            ps.DERIVED,
            method=method,
            study=study,
        )
    if density is not None:
        yield ps.Check(
            f"L² error of the density, {name}", study.last("L2"), 0.0, density, CLOSURE, method=method, study=study
        )
        yield ps.Check(
            f"observed order in L², {name}",
            study.order("L2"),
            2.8,
            0.0,
            CLOSURE,
            relation="at least",
            method=method,
            study=study,
        )


def check_line(trial: ps.Trial) -> Iterator[ps.Check]:
    """Softmax with both signs of V, with a drift, and L2."""
    quick = trial.quick
    tolerances = {  # of the moments, of the covariance alone, of the density
        "V = 1, A = −1": (1e-5, 6.5e-6, 5e-4) if quick else (3e-7, 2e-7, 6e-5),
        "V = −1, A = 1": (1.7e-8, None, 4.5e-4) if quick else (6e-10, None, 6e-5),
        "V = −1, A = 1, drift x/2 + 1/5": (1.5e-5, None, 8e-4) if quick else (3e-7, None, 6e-5),
        "L2, V = 1": (1.5e-6, None, 7e-5) if quick else (5e-8, None, 9e-6),
    }
    cells = trial.resolutions(40, 80, 160, quick=2)
    for name, (tolerance, alone, density) in tolerances.items():
        yield from moments(trial, name, DG2, cells, tolerance, alone=alone, density=density)


def check_tokens_on_the_line(trial: ps.Trial) -> Iterator[ps.Check]:
    """The same with tokens at the points of a quadrature, four in each cell."""
    tolerances = {
        "V = 1, A = −1": (16, 2e-8, 8e-9),
        "V = −1, A = 1": (16, 1.5e-8, 3.5e-10),
        "V = −1, A = 1, drift x/2 + 1/5": (32, 2.5e-6, None),
        "L2, V = 1": (32, 5e-8, None),
    }
    for name, (cells, tolerance, alone) in tolerances.items():
        yield from moments(trial, name, PARTICLES, [cells // 4, cells // 2, cells], tolerance, alone=alone)


def check_law_of_l2(trial: ps.Trial) -> Iterator[ps.Check]:
    """L2 attention on R with V = 1: ln s − 1/s grows by 2t, so the variance never blows up."""
    example = EXAMPLES["L2, V = 1"]
    depths: list[float] = []
    variances: list[float] = []

    def run(cells: int) -> float:
        simulation = trial.simulation(*example.changes(), example.mesh(cells))
        record = simulation.record(ps.variance, every=0.25)
        simulation.run()
        depths[:], variances[:] = record.times, np.ravel(record.values)
        return float(np.abs(grown(variances) - 2 * np.array(depths)).max())

    def grown(s) -> np.ndarray:
        return np.log(s) - 1 / np.array(s) - (np.log(0.5) - 1 / 0.5)

    study = ps.converge(run, trial.resolutions(40, 80, 160, quick=2), resolution=lambda cells: 17 / cells)
    expected = 2 * np.array(depths)
    yield ps.Check(
        "growth of ln s − 1/s at depths up to 1, L2, V = 1",
        grown(variances),
        expected,
        2.5e-6 if trial.quick else 7.5e-8,
        ps.DERIVED,
        method=DG2,
        study=study,
        figure=ps.Figure(
            [ps.Curve(depths, grown(variances), "measured"), ps.Curve(depths, expected, "2t", expected=True)],
            "depth t",
            "growth of ln s − 1/s",
        ),
    )


def check_finite_volumes(trial: ps.Trial) -> Iterator[ps.Check]:
    """The density by finite volumes, in L¹."""
    example = EXAMPLES["V = −1, A = 1"]
    density, distance = (3.5e-3, 5e-4) if trial.quick else (9e-4, 1.3e-4)

    def run(cells: int) -> ps.Measurement:
        case = trial.case(*example.changes(), example.mesh(cells), "discretisation={kind='finite-volume', order=2}")
        closure, simulation = example.closure(), case.simulation()
        simulation.run()
        return ps.measured(simulation, lambda x: closure.density(example.stop, x))

    study = ps.converge(run, trial.resolutions(128, 256, 512, quick=2))
    yield ps.Check(
        "L¹ error of the density, V = −1, A = 1", study.last("L1"), 0.0, density, CLOSURE, method=FV2, study=study
    )
    yield ps.Check("W₁ error, V = −1, A = 1", study.last("W1"), 0.0, distance, CLOSURE, method=FV2, study=study)
    yield ps.Check(
        "observed order in L¹, V = −1, A = 1",
        study.order("L1"),
        1.8,
        0.0,
        CLOSURE,
        relation="at least",
        method=FV2,
        study=study,
    )


def check_plane(trial: ps.Trial) -> Iterator[ps.Check]:
    """Squares, and tokens at the points of a quadrature; the order of the density is seen on 48 squares a side."""
    if trial.quick:
        coarse = [4, 6]
        yield from moments(trial, "V = I, A not symmetric", PARTICLES, coarse, 7.5e-4, alone=3.2e-4)
        yield from moments(trial, "two heads", PARTICLES, coarse, 5.5e-4)
        yield from moments(trial, "L2, V, Q and K general", PARTICLES, coarse, 4e-4)
        return
    yield from moments(trial, "V and A general", DG2, [16, 32, 48], 4e-7, density=7.5e-4)
    for name, galerkin, tokens, alone in (
        ("V = −I, A symmetric", 7.5e-6, 6e-5, 9e-6),
        ("V = I, A not symmetric", 6e-5, 2e-4, 2.6e-5),
        ("V and A general", None, 8e-5, None),
        ("two heads", 7e-6, 1.2e-4, None),
        ("L2, V, Q and K general", 2.3e-6, 3.5e-5, None),
    ):
        if galerkin is not None:
            yield from moments(trial, name, DG2, [12, 18, 24], galerkin)
        yield from moments(trial, name, PARTICLES, [4, 6, 8], tokens, alone=alone)


def check_space(trial: ps.Trial) -> Iterator[ps.Check]:
    """Cubes, and tokens at the points of a quadrature."""
    name = "V and A general in R³"
    if not trial.quick:
        yield from moments(trial, name, DG2, [6, 9], 3.5e-3)
    cells, tolerance = ([2, 3], 1.7e-2) if trial.quick else ([3, 4, 5], 4e-4)
    yield from moments(trial, name, PARTICLES, cells, tolerance)
