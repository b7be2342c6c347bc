"""Neighbourhoods by shared vertices, against all pairs of cells. Ranks: see tests/mpi."""

import numpy as np
import pytest
from some_meshes import MESHES

from pde_solver.discretisations.halo import vertex_halo


@pytest.mark.parametrize("name", MESHES)
def test_neighbours_are_the_cells_that_share_a_vertex(name):
    mesh = MESHES[name]()
    halo = vertex_halo(mesh)
    topology = mesh.domain.topology
    vertices = [set(topology.connectivity(topology.dim, 0).links(cell)) for cell in range(mesh.owned_cells)]
    for cell, own in enumerate(vertices):
        found = halo.neighbours[halo.first[cell] : halo.first[cell + 1]]
        wanted = [other for other, others in enumerate(vertices) if other != cell and own & others]
        # by their places in the input, so that sums do not depend on the numbering
        assert found.tolist() == sorted(wanted, key=lambda other: mesh.input_index[other])


def test_without_other_ranks_there_is_nothing_to_fill():
    mesh = MESHES["triangles"]()
    halo = vertex_halo(mesh)
    values = np.random.default_rng(0).normal(size=(mesh.owned_cells, 2))
    filled = halo.filled(values)
    assert np.array_equal(filled, values)
    assert not np.shares_memory(filled, values)
    assert halo.exchange.size == halo.owned == mesh.owned_cells
    assert len(halo.exchange.sent) == 0
    assert halo.exchange.with_ghosts(values[:, 0]).base is values  # no copy


def test_the_array_of_a_width_is_always_the_same():
    """What the facet values of owned cells are written to must be what the ghosts' are read from."""
    exchange = vertex_halo(MESHES["triangles"]()).exchange
    assert exchange.vector(3) is exchange.vector(3)
    assert exchange.vector(3).array.shape == (3 * exchange.size,)
