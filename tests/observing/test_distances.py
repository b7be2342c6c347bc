"""Wasserstein distances against closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import polylog
from scipy.stats import norm

from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere
from pde_solver.measures import TokenMeasure
from pde_solver.observing import distance_name, geodesic_distances, wasserstein

CIRCLE, SPHERE, LINE, PLANE = Sphere(2), Sphere(3), Euclidean(1), Euclidean(2)


def law(points, weights=None):
    points = np.asarray(points, dtype=float)
    weights = np.full(len(points), 1 / len(points)) if weights is None else np.asarray(weights, dtype=float)
    return TokenMeasure(points, weights[None])


def on_circle(angles, weights=None):
    return law(np.column_stack([np.cos(angles), np.sin(angles)]), weights)


def midpoints(n):
    return (np.arange(n) + 0.5) * 2 * np.pi / n


@pytest.mark.parametrize("angle", [1e-8, 0.3, np.pi / 2, 3.0, np.pi])
@pytest.mark.parametrize("p", [1, 2])
def test_two_diracs_are_as_far_as_their_points(angle, p):
    """W_p(δ_x, δ_y) = d(x, y), the angle on spheres."""
    assert wasserstein(on_circle([0.0]), on_circle([angle]), CIRCLE, p) == pytest.approx(angle, rel=1e-6)
    north, other = law([[0, 0, 1]]), law([[np.sin(angle), 0, np.cos(angle)]])
    assert wasserstein(north, other, SPHERE, p) == pytest.approx(angle, rel=1e-6)
    assert wasserstein(law([[-1.0]]), law([[angle - 1]]), LINE, p) == pytest.approx(angle, rel=1e-6)
    assert wasserstein(law([[0, 0]]), law([[0.6 * angle, 0.8 * angle]]), PLANE, p) == pytest.approx(angle, rel=1e-6)


def test_geodesic_distances_keep_their_digits():
    """arccos of a rounded inner product would give 0 for 1e-9, and π for π − 1e-9."""
    for angle in (1e-9, np.pi - 1e-9):
        x, y = np.array([[1.0, 0.0]]), np.array([[np.cos(angle), np.sin(angle)]])
        assert abs(geodesic_distances(x, y, CIRCLE)[0, 0] - angle) < 1e-15


def test_uniform_to_dirac_on_the_circle():
    """A uniform angle in (−π, π) has mean modulus π/2 and mean square π²/3; n midpoints err by O(n⁻²)."""
    uniform, dirac = on_circle(midpoints(2000)), on_circle([1.234])
    assert wasserstein(uniform, dirac, CIRCLE, 1) == pytest.approx(np.pi / 2, abs=1e-5)
    assert wasserstein(uniform, dirac, CIRCLE, 2) == pytest.approx(np.pi / np.sqrt(3), abs=1e-5)


@pytest.mark.parametrize(
    ("r", "value"), [(0.3, 1.4729462986335), (0.64979053760037, 1.0112951406911), (0.91855622200481, 0.47793588343069)]
)
def test_poisson_kernel_to_dirac(r, value):
    """Poisson kernel (1 − r²)/(2π |e^{iθ} − r|²) to δ_0: W₂² = ∫ θ² = π²/3 + 4 Li₂(−r), from its Fourier series.

    Trapezium rule for a smooth density and a kinked θ²: error O(n⁻²).
    """
    assert float((np.pi**2 / 3 + 4 * polylog(2, -r)).real ** 0.5) == pytest.approx(value, abs=1e-12)
    angles = midpoints(4000)
    density = (1 - r**2) / (1 - 2 * r * np.cos(angles) + r**2)
    assert wasserstein(on_circle(angles, density / density.sum()), on_circle([0.0]), CIRCLE, 2) == pytest.approx(
        value, abs=1e-6
    )


def test_gaussians_on_the_line():
    """W₂² = (m₁ − m₂)² + (s₁ − s₂)²; W₁ = |m₁ − m₂| for equal s. Both laws sampled at the same 4000 quantiles."""
    z = norm.ppf((np.arange(4000) + 0.5) / 4000)[:, None]
    z /= z.std()
    assert wasserstein(law(0.5 + 2 * z), law(-1 + 0.7 * z), LINE, 2) == pytest.approx(np.hypot(1.5, 1.3), rel=1e-12)
    assert wasserstein(law(0.5 + z), law(-1 + z[::-1]), LINE, 1) == pytest.approx(1.5, rel=1e-12)


def test_rotated_law_on_the_circle():
    """A law within an arc of 1 rad, rotated by 0.8: the rotation is optimal (for p = 1 too), also across angle 0."""
    angles = np.random.default_rng(1).uniform(-0.5, 0.5, 300)
    for p in (1, 2):
        assert wasserstein(on_circle(angles), on_circle(angles + 0.8), CIRCLE, p) == pytest.approx(0.8, rel=1e-12)


def test_translation_in_the_plane():
    """W_p of a translated law is the length of the translation; sliced W₂ is that over √D (orthonormal groups)."""
    cloud = np.random.default_rng(2).standard_normal((200, 2))
    a, b = law(cloud), law(cloud + np.array([0.3, -0.4]))
    assert wasserstein(a, b, PLANE, 1) == pytest.approx(0.5, rel=1e-9)
    assert wasserstein(a, b, PLANE, 2) == pytest.approx(0.5, rel=1e-9)
    assert wasserstein(a, b, PLANE, 2, "sliced") == pytest.approx(0.5 / np.sqrt(2), rel=1e-12)


def test_sliced_distance_of_diracs_on_the_sphere():
    """W₂: |x − y|/√3 exactly. W₁: mean |⟨θ, x − y⟩| = |x − y|/2 on S² (Archimedes); 3000 directions err by ~1 %."""
    a, b = law([[0, 0, 1]]), law([[1, 0, 0]])
    assert wasserstein(a, b, SPHERE, 2, "sliced") == pytest.approx(np.sqrt(2 / 3), rel=1e-12)
    assert wasserstein(a, b, SPHERE, 1, "sliced", projections=3000) == pytest.approx(np.sqrt(2) / 2, rel=0.02)


def test_entropic_distance_of_diracs_and_of_translated_clouds():
    """Between Diracs the divergence is the cost; for p = 2 on R^d a translation by c adds |c|² (Feydy et al.)."""
    assert wasserstein(law([[0, 0, 1]]), law([[1, 0, 0]]), SPHERE, 2, "entropic") == pytest.approx(np.pi / 2, rel=1e-9)
    cloud = np.random.default_rng(2).standard_normal((30, 2))
    a, b = law(cloud), law(cloud + np.array([0.3, -0.4]))
    assert wasserstein(a, b, PLANE, 2, "entropic", regularisation=0.5) == pytest.approx(0.5, rel=1e-5)
    assert wasserstein(a, a, PLANE, 2, "entropic", regularisation=0.5) < 1e-3


def test_exact_on_the_sphere_equals_the_circle_for_laws_on_a_great_circle():
    """Great circles are geodesic, so both solvers, quantiles and linear programming, must agree."""
    rng = np.random.default_rng(4)
    angles, weights = rng.uniform(0, 7, (2, 40)), rng.random((2, 40))
    weights /= weights.sum(axis=1, keepdims=True)
    a, b = (on_circle(angle, weight) for angle, weight in zip(angles, weights, strict=True))
    lifted = [TokenMeasure(np.column_stack([m.points, np.zeros(40)]), m.weights) for m in (a, b)]
    for p in (1, 2):
        assert wasserstein(*lifted, SPHERE, p) == pytest.approx(wasserstein(a, b, CIRCLE, p), rel=1e-9)


def test_zero_weights_do_not_count():
    a, b = law([[0.0], [100.0]], [1.0, 0.0]), law([[1.0]])
    assert wasserstein(a, b, LINE, 2) == 1
    many = law(np.random.default_rng(0).standard_normal((40_000, 2)), np.eye(1, 40_000)[0])
    assert distance_name(many, many, PLANE).startswith("W₁, exact between points")


def test_names_say_what_was_computed():
    dirac, many = law([[1, 0, 0]]), law(Sphere(3).retract(np.random.default_rng(0).standard_normal((3001, 3))))
    assert distance_name(on_circle([0]), on_circle([1]), CIRCLE, 1) == "W₁, exact on the circle"
    assert distance_name(law([[0.0]]), law([[0.0]]), LINE, 2) == "W₂, exact on the line"
    assert distance_name(many, dirac, SPHERE, 2) == "W₂, exact between points on the sphere S^2"
    assert distance_name(many, many, SPHERE, 2) == "sliced W₂, in R^3"
    assert distance_name(dirac, dirac, SPHERE, 1, "entropic") == "W₁, Sinkhorn divergence with ε = 0.05"
    assert distance_name(law([[0, 0]]), law([[0, 0]]), PLANE, 1) == "W₁, exact between points in R^2"


def test_auto_takes_the_slices_for_large_laws():
    rng = np.random.default_rng(0)
    a, b = (law(Sphere(3).retract(rng.standard_normal((3001, 3)) + shift)) for shift in (0.0, 0.1))
    assert wasserstein(a, b, SPHERE, projections=6) == wasserstein(a, b, SPHERE, method="sliced", projections=6)
    for method in ("exact", "entropic"):
        with pytest.raises(InputError, match="use method='sliced'"):
            wasserstein(a, b, SPHERE, method=method)


@pytest.mark.parametrize(
    ("points", "weights", "sentence"),
    [
        ([[1, 0], [0, 1]], [1.5, -0.5], "negative weights"),
        ([[1, 0], [0, 1]], [np.nan, 1], "not finite"),
        ([[1, 0], [0, np.inf]], [0.5, 0.5], "not finite"),
        ([[1, 0], [0, 1]], [0.5, 0.4], "must have mass 1, found 0.9"),
        ([[1, 0, 0]], [1], "must have points with 2 coordinates"),
    ],
)
def test_bad_laws_are_refused(points, weights, sentence):
    with pytest.raises(InputError, match=f"the second law.*{sentence}"):
        wasserstein(on_circle([0]), law(points, weights), CIRCLE)


def test_bad_options_are_refused():
    a = on_circle([0])
    with pytest.raises(InputError, match="one label, found 2"):
        wasserstein(a, TokenMeasure(a.points, np.ones((2, 1))), CIRCLE)
    with pytest.raises(InputError, match="p must be 1 or 2"):
        wasserstein(a, a, CIRCLE, 3)
    with pytest.raises(InputError, match="did you mean sliced"):
        wasserstein(a, a, CIRCLE, method="slice")
    with pytest.raises(InputError, match="projections must be"):
        wasserstein(a, a, CIRCLE, method="sliced", projections=0)
    with pytest.raises(InputError, match="regularisation must be"):
        wasserstein(a, a, CIRCLE, method="entropic", regularisation=0.0)


def some_law(manifold):
    """Small laws on a manifold, with coinciding points, zero weights and laws of one point among them."""
    size = manifold.ambient_dimension
    coordinate = st.integers(-4, 4).map(lambda k: k / 3)
    point = st.tuples(*[coordinate] * size).filter(lambda x: any(x))
    atom = st.tuples(point, st.integers(0, 5))

    def build(atoms):
        points, weights = (np.array(part, dtype=float) for part in zip(*atoms, strict=True))
        return law(manifold.retract(points), weights / weights.sum())

    return st.lists(atom, min_size=1, max_size=6).filter(lambda atoms: any(w for _, w in atoms)).map(build)


@pytest.mark.parametrize("manifold", [LINE, CIRCLE, PLANE, SPHERE], ids=str)
@pytest.mark.parametrize("method", ["exact", "sliced"])
@pytest.mark.parametrize("p", [1, 2])
def test_metric_axioms(manifold, method, p):
    @settings(derandomize=True, database=None, max_examples=25, deadline=None)
    @given(some_law(manifold), some_law(manifold), some_law(manifold))
    def axioms(a, b, c):
        def d(x, y):
            return wasserstein(x, y, manifold, p, method, projections=6)

        assert d(a, a) <= 1e-7  # the square root of round-off for p = 2
        assert d(a, b) == pytest.approx(d(b, a), abs=1e-7)
        assert d(a, c) <= d(a, b) + d(b, c) + 1e-7
        if d(a, b) < 1e-9 and method == "exact":
            assert np.allclose(a.integrate(lambda x: x), b.integrate(lambda x: x), atol=1e-7)

    axioms()
