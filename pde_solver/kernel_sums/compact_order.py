"""Sorting of points so that those which follow one another are close together."""

import numpy as np

from pde_solver.compiled import compiled


@compiled
def compact_order(rows, size):
    """An order of points (n, k) in which each run of `size`, from a multiple of it, is compact: a k-d tree's leaves."""
    points, order = rows.copy(), np.arange(len(rows))
    segments = [(0, len(rows))]
    while len(segments):
        begin, end = segments.pop()
        if end - begin <= size:
            continue
        widest, width = 0, -1.0
        for a in range(rows.shape[1]):
            low = high = points[begin, a]
            for i in range(begin, end):
                low, high = min(low, points[i, a]), max(high, points[i, a])
            if high - low > width:
                widest, width = a, high - low
        middle = begin + size * ((end - begin + size) // (2 * size))
        _select(points, order, begin, end - 1, middle, widest)
        segments.append((begin, middle))
        segments.append((middle, end))
    return order


@compiled
def _select(points, order, low, high, middle, a):
    """Reorder so that no coordinate a before `middle` is larger than one after it (Hoare's selection)."""
    while low < high:
        pivot = points[(low + high) // 2, a]
        i, j = low, high
        while i <= j:
            while points[i, a] < pivot:
                i += 1
            while points[j, a] > pivot:
                j -= 1
            if i <= j:
                for c in range(points.shape[1]):
                    points[i, c], points[j, c] = points[j, c], points[i, c]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return
