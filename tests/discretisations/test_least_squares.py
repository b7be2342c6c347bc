"""Gradients by least squares in tangent spaces."""

import numpy as np
import pytest
from some_meshes import FLAT, MESHES

import pde_solver as ps
from pde_solver.discretisations.halo import vertex_halo
from pde_solver.discretisations.least_squares import least_squares, tangent_differences, tangent_frames
from pde_solver.mesh import facet_geometry


def gradients(mesh, function):
    """The cells' points and the least-squares gradients of a function's values there, as vectors of R^D."""
    halo, points = vertex_halo(mesh), facet_geometry(mesh).cell_points
    frames = tangent_frames(mesh.manifold, points)
    weights = least_squares(halo.first, tangent_differences(halo.first, halo.neighbours, points, points, frames))
    cell = np.repeat(np.arange(halo.owned), np.diff(halo.first))
    values = function(points)
    result = np.zeros((halo.owned, weights.shape[1]))
    np.add.at(result, cell, weights * (values[halo.neighbours] - values[cell])[:, None])
    return points, np.einsum("ci,cid->cd", result, frames)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_frames_of_spheres_are_orthonormal_and_tangential(width):
    points = np.random.default_rng(2).normal(size=(200, width))
    points = np.concatenate([points / np.linalg.norm(points, axis=1, keepdims=True), np.eye(width), -np.eye(width)])
    frames = tangent_frames(ps.Sphere(width), points)
    assert frames.shape == (len(points), width - 1, width)
    assert np.abs(np.einsum("nid,nd->ni", frames, points)).max() < 1e-15
    assert np.abs(np.einsum("nid,njd->nij", frames, frames) - np.eye(width - 1)).max() < 1e-15


def test_a_frame_depends_on_its_point_alone():
    points = np.random.default_rng(2).normal(size=(50, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    frames = tangent_frames(ps.Sphere(3), points)
    assert np.array_equal(tangent_frames(ps.Sphere(3), points[17:]), frames[17:])


def test_frames_of_flat_space_are_the_axes():
    assert np.array_equal(tangent_frames(ps.Euclidean(3), np.ones((2, 3))), [np.eye(3)] * 2)


@pytest.mark.parametrize("name", FLAT)
def test_exact_for_linear_functions_even_in_corners(name):
    """A linear function's gradient is its slope, whatever the neighbours are, as long as they span the space."""
    mesh = MESHES[name]()
    slope = np.array([0.7, -1.3, 2.1])[: mesh.manifold.dimension]
    _, found = gradients(mesh, lambda points: points @ slope + 0.4)
    assert np.abs(found - slope).max() < 1e-12


def test_least_norm_where_neighbours_do_not_span_the_space():
    """One neighbour tells the slope towards it, and nothing across; no neighbour tells nothing."""
    weights = least_squares(np.array([0, 1, 1]), np.array([[3.0, 4.0]]))
    assert weights == pytest.approx(np.array([[3.0, 4.0]]) / 25, abs=1e-15)


def spherical_errors(mesh):
    """|∇⟨e, x⟩ − P_x e| of each cell for the least-squares gradient."""
    direction = np.array([0.3, -0.5, 0.8])[: mesh.manifold.ambient_dimension]
    points, found = gradients(mesh, lambda points: points @ direction)
    return np.linalg.norm(found - mesh.manifold.project(points, np.broadcast_to(direction, points.shape)), axis=1)


@pytest.mark.parametrize(("mesh", "resolutions"), [(ps.icosphere, (4, 5)), (ps.cubed_sphere, (16, 32))])
def test_on_the_sphere(mesh, resolutions):
    """⟨e, x⟩ curves by −½|Δ|²⟨e, x⟩, which costs ½ |Σ c |Δ|²|: O(h²) where a cell's neighbours lie symmetrically.

    That is nearly everywhere; along the edges of the icosahedron or cube, where the grids of two faces meet, it is O(h).
    """
    coarse, fine = (spherical_errors(mesh(resolution)) for resolution in resolutions)
    assert np.log2(np.median(coarse) / np.median(fine)) > 1.8
    assert np.log2(coarse.max() / fine.max()) > 0.8
    assert np.median(fine) < 1e-4
    assert fine.max() < 1e-2


def test_on_the_circle():
    """Two neighbours at equal distances: the curvature cancels, but the chord is shorter than the arc, once projected.

    The difference quotient along the tangent is (⟨e, y₊⟩ − ⟨e, y₋⟩) / (2 sin h) = ⟨e, τ⟩ exactly.
    """
    assert spherical_errors(ps.circle(24)).max() < 1e-13
