"""Drawing points on a sphere: uniformly, and at a given polar angle about an axis."""

import numpy as np


def uniform_on_sphere(count: int, rng: np.random.Generator, ambient_dimension: int) -> np.ndarray:
    """Independent uniform points of S^{d−1}, (count, d): directions of standard normal vectors."""
    vectors = rng.standard_normal((count, ambient_dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def around_axis(versine: np.ndarray, axis: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Points x with 1 − ⟨x, axis⟩ = versine, uniform about the axis.

    The versine rather than the cosine is given because it keeps its digits near the axis.

    Args:
        versine: (n,) values of 1 − cos of the polar angle, in [0, 2].
        axis: (d,) unit vector.
        rng: source of randomness.

    Returns:
        (n, d) points on the sphere.
    """
    tangent = rng.standard_normal((len(versine), len(axis)))
    tangent -= (tangent @ axis)[:, None] * axis
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    sine = np.sqrt(np.clip(versine * (2 - versine), 0, None))
    points = (1 - versine)[:, None] * axis + sine[:, None] * tangent
    return points / np.linalg.norm(points, axis=1, keepdims=True)
