"""A law that is given by its tokens."""

from pathlib import Path

import numpy as np
from mpi4py import MPI

from pde_solver.densities.arguments import vector
from pde_solver.densities.law import Law
from pde_solver.errors import InputError
from pde_solver.manifolds import Manifold, Sphere
from pde_solver.parallel import on_root

#: How far from the manifold a point may lie.
TOLERANCE = 1e-6


class PointCloud(Law):
    """The discrete law Σ_j w_j δ_{y_j} of given points: it is drawn from or deposited on a mesh, and has no density.

    Args:
        points: y_j, (n, D).
        weights: w_j ≥ 0, (n,), scaled to the sum 1; None gives all the same.

    Raises:
        InputError: if the points are not finite or the weights do not fit; on use, if a point is not on the manifold.
    """

    def __init__(self, points: object, weights: object = None) -> None:
        self._points = _as_points(points)
        count = len(self._points)
        found = vector("PointCloud: weights", np.ones(count) if weights is None else weights)
        if len(found) != count or min(found) < 0 or sum(found) == 0:
            raise InputError(f"PointCloud: {count} points need as many weights ≥ 0, not all zero, found {len(found)}.")
        self._weights = np.array(found) / np.sum(found)
        for array in (self._points, self._weights):
            array.flags.writeable = False

    @classmethod
    def load(cls, path: str | Path, comm: MPI.Comm = MPI.COMM_WORLD) -> "PointCloud":
        """The points (n, D) of a NumPy file, read on rank 0 and sent to all.

        Args:
            path: a file `.npy`.
            comm: the ranks that want them; every one must call.

        Raises:
            InputError: on all ranks, if there is no such file or it holds no array (n, D) of finite numbers.
        """
        return on_root(comm, lambda: cls(_read(Path(path))))

    @property
    def points(self) -> np.ndarray:
        """y_j, (n, D)."""
        return self._points

    @property
    def weights(self) -> np.ndarray:
        """w_j, (n,), of sum 1."""
        return self._weights

    def tokens_on(self, manifold: Manifold) -> np.ndarray:
        """The points, put on the manifold exactly, (n, D).

        Raises:
            InputError: if one lies farther than 1e-6 from it, or has another number of coordinates.
        """
        if self._points.shape[1] != manifold.ambient_dimension:
            raise InputError(
                f"PointCloud: points have {self._points.shape[1]} coordinates, "
                f"but tokens on {manifold} have {manifold.ambient_dimension}."
            )
        if isinstance(manifold, Sphere):
            deviation = np.abs(np.linalg.norm(self._points, axis=1) - 1)
            worst = int(np.argmax(deviation))
            if deviation[worst] > TOLERANCE:
                raise InputError(
                    f"PointCloud: point {worst} lies {deviation[worst]:.3g} off {manifold} "
                    f"(allowed: {TOLERANCE:g}); divide the points by their lengths first."
                )
        return manifold.retract(self._points)

    def density(self, points: np.ndarray, manifold: Manifold) -> np.ndarray:
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError(
            "PointCloud: a cloud has no density at a point; it is deposited on a mesh, or used for particles."
        )

    def sample(self, count: int, rng: np.random.Generator, manifold: Manifold) -> np.ndarray:
        """Tokens (count, D): the cloud itself if it has so many points of equal weight, else draws with replacement."""
        tokens = self.tokens_on(manifold)
        if count == len(tokens) and np.ptp(self._weights) == 0:
            return tokens.copy()
        return tokens[rng.choice(len(tokens), size=count, p=self._weights)]

    def __repr__(self) -> str:
        weighted = "" if np.ptp(self._weights) == 0 else "weighted "
        return f"PointCloud({len(self._points)} {weighted}points in R^{self._points.shape[1]})"


def _as_points(value: object) -> np.ndarray:
    try:
        points = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError("PointCloud: points must be an array (n, D) of numbers, found something else.") from None
    if points.ndim != 2 or not points.size:
        raise InputError(
            f"PointCloud: points must be an array (n, D), one row for each token, found shape {points.shape}."
        )
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise InputError(
            f"PointCloud: all coordinates must be finite, found {points[bad][0].tolist()} in row {np.argmax(bad)}."
        )
    return points


def _read(path: Path) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"PointCloud: there is no file {path}.") from None
    except OSError as error:
        raise InputError(f"PointCloud: {path} cannot be read: {error.strerror or 'no NumPy file'}.") from None
    except (ValueError, EOFError):
        raise InputError(
            f"PointCloud: {path} is no whole NumPy file (.npy) of numbers; write it with numpy.save."
        ) from None
    if not isinstance(found, np.ndarray):
        raise InputError(f"PointCloud: {path} holds several arrays (.npz); save the points alone with numpy.save.")
    if not np.issubdtype(found.dtype, np.number) or np.iscomplexobj(found):
        raise InputError(f"PointCloud: {path} must hold real numbers, found the type {found.dtype}.")
    return found
