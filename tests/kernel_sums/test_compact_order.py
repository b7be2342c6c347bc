import numpy as np
import pytest

from pde_solver.kernel_sums.compact_order import compact_order


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1_000])
def test_compact_order_is_an_order_with_compact_runs(count):
    rng = np.random.default_rng(6)
    points = rng.random((count, 2))
    order = compact_order(points, 64)
    assert np.array_equal(np.sort(order), np.arange(count))
    areas = [np.prod(np.ptp(points[order[begin : begin + 64]], axis=0)) for begin in range(0, count, 64)]
    assert sum(areas) <= 1
