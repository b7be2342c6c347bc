"""The kernels of a finite-volume stage: limited linear reconstruction at facets, upwind fluxes, step limit; serial loops.

A stage is bound by memory, so every number is read once and as short as it may be. The reconstruction works on blocks
of cells that stand side by side in the vector lanes; a block's fluxes follow as soon as the blocks around it are
reconstructed, while their facet values are still in the cache.
"""

import functools

import numpy as np

from pde_solver.compiled import compiled

#: Cells in one block, the length of the innermost loops.
LANES = 64
#: Neighbours that share one load and store of the sums; every block has a multiple of so many rows.
GROUP = 4

# No liberties with floating point here: both sides of a facet must round its flux alike.
# Rows of a block's work space: the gathered neighbours, the cells themselves, extremes, then gradients and facet values.
_OWN, _LOW, _HIGH, _GRADIENT = GROUP, GROUP + 1, GROUP + 2, GROUP + 3


def in_lanes(
    first: np.ndarray, neighbours: np.ndarray, coefficients: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Neighbourhoods of blocks of LANES cells: row r of a block holds the r-th neighbour of each of its cells.

    Where a cell has fewer neighbours than the block has rows, it is its own neighbour with weight 0.

    Args:
        first: (cells + 1,) where each cell's neighbours begin.
        neighbours: (·,) their numbers.
        coefficients: (·, d) least-squares weights.

    Returns:
        (blocks + 1,) where each block's rows begin; (rows, LANES) neighbours; (rows, d, LANES) weights in single
        precision.
    """
    cells = len(first) - 1
    blocks = -(-cells // LANES)
    counts = np.zeros(blocks * LANES, dtype=np.int64)
    counts[:cells] = np.diff(first)
    most = counts.reshape(blocks, LANES).max(axis=1)
    first_row = np.append(0, np.cumsum(-(-most // GROUP) * GROUP))
    rows, dimension = int(first_row[-1]), coefficients.shape[1]
    placed = np.empty((rows, LANES), dtype=np.int32)
    weights = np.zeros((rows, dimension, LANES), dtype=np.float32)
    _place(first, neighbours, coefficients, first_row, placed, weights)
    return first_row, placed, weights


def offsets_in_lanes(offsets: np.ndarray) -> np.ndarray:
    """Offsets (cells, facets, d) of blocks of LANES cells in single precision, zeros beyond: (blocks, facets, d, LANES)."""
    cells, facets, dimension = offsets.shape
    blocks = -(-cells // LANES)
    padded = np.zeros((blocks * LANES, facets, dimension), dtype=np.float32)
    padded[:cells] = offsets
    return np.ascontiguousarray(padded.reshape(blocks, LANES, facets, dimension).transpose(0, 2, 3, 1))


@compiled
def _place(first, neighbours, coefficients, first_row, placed, weights):
    cells = len(first) - 1
    for block in range(len(first_row) - 1):
        for lane in range(LANES):
            cell = min(block * LANES + lane, cells - 1)
            for row in range(first_row[block], first_row[block + 1]):
                placed[row, lane] = cell
            if block * LANES + lane < cells:
                row = first_row[block]
                for k in range(first[cell], first[cell + 1]):
                    placed[row, lane] = neighbours[k]
                    for axis in range(coefficients.shape[1]):
                        weights[row, axis, lane] = coefficients[k, axis]
                    row += 1


@compiled(inline=True)
def _reconstruct_block(
    block, density, first_row, neighbours, coefficients, offsets, owned, work, values, dimension, facets
):
    """Limited facet values of a block's cells; the arguments are those of `reconstruct`."""
    begin = block * LANES
    # These loops gather, and stay scalar because `work` could overlap `density`: where processors must keep
    # gathered data from leaking, their own gather instruction takes three times as long.
    for lane in range(LANES):
        work[_OWN * LANES + lane] = density[np.uint64(min(begin + lane, owned - 1))]
    for lane in range(LANES):
        for row in range(_LOW, _GRADIENT + dimension):
            work[row * LANES + lane] = 0.0
    for row in range(first_row[block], first_row[block + 1], GROUP):
        indices = neighbours[row : row + GROUP]
        for k in range(GROUP):
            for lane in range(LANES):
                work[k * LANES + lane] = density[np.uint32(indices[k, lane])]
        weights = coefficients[row : row + GROUP]
        for lane in range(LANES):
            for k in range(GROUP):
                difference = work[k * LANES + lane] - work[_OWN * LANES + lane]
                work[_LOW * LANES + lane] = min(work[_LOW * LANES + lane], difference)
                work[_HIGH * LANES + lane] = max(work[_HIGH * LANES + lane], difference)
                for axis in range(dimension):
                    work[(_GRADIENT + axis) * LANES + lane] += weights[k, axis, lane] * difference
    steps = _GRADIENT + dimension
    arms = offsets[block]
    for lane in range(LANES):
        last = 0.0
        largest = 0.0
        smallest = 0.0
        for facet in range(facets - 1):
            step = 0.0
            for axis in range(dimension):
                step += work[(_GRADIENT + axis) * LANES + lane] * arms[facet, axis, lane]
            work[(steps + facet) * LANES + lane] = step
            largest = max(largest, step)
            smallest = min(smallest, step)
            last -= step
        work[(steps + facets - 1) * LANES + lane] = last
        largest = max(largest, last)
        smallest = min(smallest, last)
        # ψ grows, so the largest and the smallest step decide
        high = work[_HIGH * LANES + lane] / (largest + 1e-300)
        low = work[_LOW * LANES + lane] / (smallest - 1e-300)
        y = min(1.5, min(high, low))
        factor = y - y * y * y * (4.0 / 27.0)
        for facet in range(facets):
            work[(steps + facet) * LANES + lane] = (
                work[_OWN * LANES + lane] + factor * work[(steps + facet) * LANES + lane]
            )
    for lane in range(min(LANES, owned - begin)):
        for facet in range(facets):
            values[np.uint64((begin + lane) * facets + facet)] = work[np.uint64((steps + facet) * LANES + lane)]


@compiled(inline=True)
def _flux_block(block, values, normal_velocity, cell_facets, sides, opposite, volumes, owned, rate, facets):
    """Minus the divergence in a block's cells; the arguments are those of `second_order_rate`."""
    # unsigned, so that the compiler need not think of numbers that count from the end
    for cell in range(np.uint64(block * LANES), np.uint64(min((block + 1) * LANES, owned))):
        leaving = 0.0
        for k in range(np.uint64(facets)):
            side = sides[cell, k]
            u = side * normal_velocity[np.uint32(cell_facets[cell, k])]
            inside, outside = values[cell * np.uint64(facets) + k], values[np.uint32(opposite[cell, k])]
            flux = u * (inside if u > 0 else outside)
            leaving += flux if side != 0 else 0.0
        rate[cell] = -leaving / volumes[cell]


@functools.cache
def reconstruction_kernels(dimension: int, facets: int):
    """The kernels (`reconstruct`, `second_order_rate`) for cells of this dimension with so many facets.

    Both numbers are constants of the machine code, so that the short loops over them vanish. They capture
    nothing but these numbers, or the machine code could not be kept on disk.
    """

    @compiled
    def reconstruct(blocks, density, first_row, neighbours, coefficients, offsets, owned, work, values):
        """Facet values of the cells of some blocks: the least-squares gradient, scaled back to the neighbours' range.

        With Δ the largest admissible and a the reconstructed difference at a facet, the gradient is multiplied by the
        smallest ψ(Δ/a), ψ(y) = y − 4y³/27 for y < 3/2 and 1 beyond: smooth, and ψ(y) ≤ y keeps the value between the
        extremes of the cell and its neighbours, so facet values are ≥ 0 where the densities are. The differences of
        a cell's facets add up to 0 (the last one is minus the sum of the others), so its facet values average to its
        mean. Neighbours are all cells that share a vertex: those that share a facet are too few on triangles and
        tetrahedra. Weights and offsets may be rounded, since limiter and sum act on the differences that they give.

        Args:
            blocks: (·,) the blocks' numbers.
            density: (owned or more,) cell means, and where neighbours are ghosts those of the ghosts.
            first_row: (all blocks + 1,), neighbours: (rows, LANES), coefficients: (rows, dimension, LANES) by `in_lanes`.
            offsets: (all blocks, facets − 1, dimension, LANES) from the cell's centre to its facets but the last.
            owned: how many cells there are.
            work: (GROUP + 3 + dimension + facets) · LANES numbers to work on.
            values: (owned · facets or more,) written: the facet values, cell by cell.

        Source: the limiter function of Michalak and Ollivier-Gooch, J. Comput. Phys. 228 (2009) 8693.
        """
        for block in blocks:
            _reconstruct_block(
                block, density, first_row, neighbours, coefficients, offsets, owned, work, values, dimension, facets
            )

    @compiled
    def second_order_rate(
        density,
        first_row,
        neighbours,
        coefficients,
        offsets,
        work,
        values,
        ready,
        normal_velocity,
        cell_facets,
        sides,
        opposite,
        volumes,
        rate,
    ):
        """−(1/|c|) Σ_facets F with the upwind flux F = max(u, 0) f⁻ + min(u, 0) f⁺ out of each cell, f by `reconstruct`.

        Each cell evaluates its own fluxes. The cell behind a facet finds the same two values and the same ±u, so the
        flux that leaves one is bit for bit the one that enters the other.

        Args:
            density, first_row, neighbours, coefficients, offsets, work: as `reconstruct` takes them.
            values: as `reconstruct` writes them; those of ghosts are there already.
            ready: (blocks,) the last block that must be reconstructed before a block's fluxes, never falling.
            normal_velocity: (all facets,) u = velocity · (normal times facet measure).
            cell_facets: (owned, facets) the facets of each cell.
            sides: (owned, facets) whether the normal points out (1) or in (−1); 0 at walls, which nothing crosses.
            opposite: (owned, facets) where in `values` the value on the other side is.
            volumes: (owned,) of the cells.
            rate: (owned,) written.
        """
        owned = len(volumes)
        done = 0
        for block in range(len(ready)):
            _reconstruct_block(
                block, density, first_row, neighbours, coefficients, offsets, owned, work, values, dimension, facets
            )
            while done < len(ready) and ready[done] <= block:
                _flux_block(done, values, normal_velocity, cell_facets, sides, opposite, volumes, owned, rate, facets)
                done += 1

    return reconstruct, second_order_rate


def work_space(dimension: int, facets: int) -> np.ndarray:
    """What the kernels of this dimension and number of facets work on."""
    return np.zeros((_GRADIENT + dimension + facets) * LANES)


@functools.cache
def facet_kernels(facets: int):
    """The kernels (`first_order_rate`, `smallest_step`) for cells with so many facets."""

    @compiled
    def first_order_rate(density, normal_velocity, cell_facets, sides, opposite, volumes, rate):
        """−(1/|c|) Σ_facets F with the upwind flux of the cell means; bit for bit antisymmetric as at second order.

        Args:
            density: (owned or more,) cell means, and where neighbours are ghosts those of the ghosts.
            opposite: (owned, facets) the cell on the other side.
            normal_velocity, cell_facets, sides, volumes, rate: as `second_order_rate` takes them.
        """
        for cell in range(len(volumes)):
            leaving = 0.0
            for k in range(facets):
                side = sides[cell, k]
                if side != 0:
                    u = side * normal_velocity[np.uint32(cell_facets[cell, k])]
                    leaving += u * density[np.uint32(cell if u > 0 else opposite[cell, k])]
            rate[cell] = -leaving / volumes[cell]

    @compiled
    def smallest_step(order, normal_velocity, cell_facets, sides, volumes):
        """min over cells of |c| / Σ u⁺ (order 1) or |c| / (facets · max u⁺) (order 2).

        A nan sets no limit: what it does to the density is seen there.

        Args:
            order: 1 or 2.
            normal_velocity, cell_facets, sides, volumes: as `second_order_rate` takes them.
        """
        least = np.inf
        for cell in range(len(volumes)):
            total = 0.0
            largest = 0.0
            for k in range(facets):
                u = sides[cell, k] * normal_velocity[np.uint32(cell_facets[cell, k])]
                if sides[cell, k] != 0 and u > 0:
                    total += u
                    largest = max(largest, u)
            least = min(least, volumes[cell] / (total if order == 1 else facets * largest))
        return least

    return first_order_rate, smallest_step
