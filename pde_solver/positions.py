"""Labels that are positions: cells of (0, 1], and the causal mixing of tokens that attend to those before them."""

import math
from collections.abc import Callable
from numbers import Real

import numpy as np
from scipy.special import exprel

from pde_solver.errors import InputError
from pde_solver.labels import Labels


def position_edges(count: int, grading: float = 2.0) -> np.ndarray:
    """Edges e_i = (i / n)^grading of n cells of (0, 1], (n + 1,).

    Grading 1 gives equal cells. With 2 they are finer towards 0, where the causal average has a logarithmic singularity.

    Args:
        count: n ≥ 1.
        grading: ≥ 1.

    Raises:
        InputError: if n is no whole number ≥ 1, or the grading is less than 1.
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"positions: count must be a whole number ≥ 1, found {count!r}.")
    if not isinstance(grading, Real) or isinstance(grading, bool) or not 1 <= grading < math.inf:
        raise InputError(f"positions: grading must be a finite number ≥ 1, found {grading!r}.")
    return (np.arange(count + 1) / count) ** float(grading)


def causal_mixing(edges: np.ndarray, slope: float = 0.0, window: float = math.inf) -> np.ndarray:
    """Whom the node of each cell attends to: mixing_{zz′} = ∫ over the cell z′ of k(s_z, s′) ds′, (n, n).

    k(s, s′) = e^{λs′} / ∫ e^{λu} du, integrated and defined for max(0, s − window) < s′ < s: the causal average (λ = 0), ALiBi
    (λ > 0), or either in a window. s_z is the middle of its cell, and of its own cell it sees the half before it. Rows sum to
    one, up to rounding. The integrals over cells are exact, so that the law at a node stands for its cell: order two in the
    cells' lengths where laws are smooth in s.

    Args:
        edges: (n + 1,) edges of the cells, increasing from 0 to 1, as of `position_edges`.
        slope: λ ≥ 0.
        window: how far back a token sees, > 0.

    Raises:
        InputError: if the edges do not increase from 0 to 1, λ is negative or the window not positive.

    Source: the graphon of arXiv:2605.09213; the rule is derived for this project.
    """
    edges = np.asarray(edges, dtype=float)
    if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0 or edges[-1] != 1 or not np.all(np.diff(edges) > 0):
        raise InputError("causal_mixing: edges must increase from 0 to 1; take position_edges(count).")
    if not isinstance(slope, Real) or isinstance(slope, bool) or not 0 <= slope < math.inf:
        raise InputError(f"causal_mixing: slope must be a finite number ≥ 0, found {slope!r}.")
    if not isinstance(window, Real) or isinstance(window, bool) or not window > 0:
        raise InputError(f"causal_mixing: window must be > 0, found {window!r}.")
    nodes = (edges[1:] + edges[:-1]) / 2
    first = np.maximum(nodes - window, 0.0)[:, None]
    lower = np.clip(edges[None, :-1], first, nodes[:, None])
    upper = np.clip(edges[None, 1:], first, nodes[:, None])
    length = nodes[:, None] - first
    # ∫ e^{λu} du over [a, b], relative to the whole, as e^{−λ(s−b)} (b − a) φ(−λ(b − a)) with φ(x) = (eˣ − 1)/x: nothing overflows
    part = np.exp(-slope * (nodes[:, None] - upper)) * (upper - lower) * exprel(-slope * (upper - lower))
    return part / (length * exprel(-slope * length))


def position_labels(
    count: int,
    *,
    grading: float = 2.0,
    mixing: Callable[[np.ndarray], np.ndarray] | None = causal_mixing,
) -> Labels:
    """Labels s in (0, 1], the positions of tokens: the middles of n cells, with the cells' lengths as masses.

    Args:
        count: n, how many.
        grading: of the cells, see `position_edges`.
        mixing: edges (n + 1,) -> who attends to whom, (n, n); by default the causal average. None: everybody to everybody.

    Returns:
        Labels with `nodes`.

    Raises:
        InputError: as `position_edges` and `Labels`.

    Example:
        >>> alibi = position_labels(64, mixing=lambda edges: causal_mixing(edges, slope=1.0))
        >>> bool(abs(alibi.mixing.sum(axis=1) - 1).max() < 1e-14)
        True
    """
    edges = position_edges(count, grading)
    nodes = (edges[1:] + edges[:-1]) / 2
    masses = np.diff(edges)
    return Labels(masses.tolist(), np.tile(masses, (count, 1)) if mixing is None else mixing(edges), nodes)
