"""Surfaces of solids that do not deform."""

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from warpbots.contact import signed_distance
from warpbots.meshing.convex_hulls import with_fewer_vertices
from warpbots.meshing.fitted import fitted_surface
from warpbots.meshing.refinement import refined
from warpbots.scene import Box, Capsule, Cylinder, Posed, Sphere, TriangleMesh, Union

TURN = Rotation.from_euler("xyz", [40, 35, 20], degrees=True).as_matrix()

SOLIDS = {
    "box": Box((0.0, 0.0, 0.0), (0.1, 0.03, 0.05)),
    "sphere": Sphere((0.01, 0.02, 0.03), 0.05),
    "capsule": Capsule((0.0, 0.0, 0.0), (0.05, 0.1, 0.02), 0.02),
    "cylinder": Cylinder((0.0, 0.0, 0.0), (0.05, 0.1, 0.02), 0.02),
    "mesh": TriangleMesh(*fitted_surface(Box((0.0, 0.0, 0.0), (0.1, 0.03, 0.05)), 1.0)),
    "turned": Posed(Box((0.0, 0.0, 0.0), (0.1, 0.03, 0.05)), (1.0, 2.0, 3.0), TURN),
}


@pytest.mark.parametrize("kind", SOLIDS)
def test_surfaces_of_bones_are_closed_and_true(kind):
    """Vertices are on the shape, edges about a cell long, every edge has two faces, and the volume is about that of it."""
    shape, cell = SOLIDS[kind], 0.012
    vertices, faces = fitted_surface(shape, cell)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    both = {tuple(e) for e in edges.tolist()}
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    volume = np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0
    length = np.linalg.norm(vertices[edges[:, 1]] - vertices[edges[:, 0]], axis=1)
    round_volume = {
        "sphere": 4 / 3 * np.pi * 0.05**3,
        "capsule": np.pi * 0.02**2 * (np.sqrt(0.0129) + 4 / 3 * 0.02),
        "cylinder": np.pi * 0.02**2 * np.sqrt(0.0129),
    }
    expected = round_volume.get(kind, 0.1 * 0.03 * 0.05)
    assert np.abs(signed_distance(shape, vertices)).max() < 1e-6
    assert len(both) == len(edges)
    assert all((e[1], e[0]) in both for e in both)
    assert length.max() < 2.0 * cell
    assert (0.94 if kind in round_volume else 1.0 - 1e-9) * expected < volume < expected * (1.0 + 1e-9)


def test_a_box_keeps_its_corners():
    vertices, _ = fitted_surface(SOLIDS["box"], 0.012)
    corners = np.stack(np.meshgrid([0.0, 0.1], [0.0, 0.03], [0.0, 0.05], indexing="ij"), axis=-1).reshape(-1, 3)
    assert np.linalg.norm(vertices[:, None] - corners, axis=2).min(axis=0).max() < 1e-12


def test_faces_inside_another_part_of_a_union_are_left_out():
    parts = Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)), Box((0.03, 0.03, 0.05), (0.07, 0.07, 0.2))
    vertices, faces = fitted_surface(Union(parts), 0.01)
    middle = vertices[faces].mean(axis=1)
    assert np.abs(signed_distance(Union(parts), middle)).max() < 0.007  # faces that are cut by the other part stay
    assert len(faces) < sum(len(fitted_surface(p, 0.01)[1]) for p in parts)


def test_refinement_cuts_long_edges_alone():
    """A flat square of two triangles: the same area, the same orientation, no edge over the limit, nothing if short."""
    square, halves = (
        np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=float),
        np.array([[0, 1, 2], [0, 2, 3]]),
    )
    vertices, faces = refined(square, halves, 0.3)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    up = np.cross(b - a, c - a)[:, 2] / 2.0
    assert up.min() > 0.0
    assert up.sum() == np.float64(1.0)
    assert max(np.linalg.norm(b - a, axis=1).max(), np.linalg.norm(c - b, axis=1).max()) <= 0.3
    assert np.array_equal(vertices[:4], square)
    assert refined(square, halves, 2.0)[1] is halves


@pytest.mark.parametrize("error", [2e-4, 1e-3])
def test_a_convex_mesh_of_fewer_vertices_is_off_by_the_error_at_most(error):
    """A flat ellipsoid: vertices are some of its own, and it needs most of the error."""
    ball = trimesh.creation.icosphere(subdivisions=4)
    mesh = TriangleMesh(ball.vertices * [0.1, 0.06, 0.02], ball.faces)
    fewer = with_fewer_vertices(mesh, error)
    assert {*map(tuple, fewer.vertices.tolist())} <= {*map(tuple, mesh.vertices.tolist())}
    assert len(fewer.vertices) < len(mesh.vertices) / 2
    assert 0.7 * error < signed_distance(fewer, mesh.vertices).max() <= error


def test_small_and_concave_meshes_keep_their_vertices():
    """A thin ring, which is not convex, and a ball of 162 vertices, whose surface has fewer than 200."""
    ring, ball = trimesh.creation.annulus(0.05, 0.1, 0.03, sections=300), trimesh.creation.icosphere(subdivisions=2)
    for plain in (ring, ball):
        mesh = TriangleMesh(plain.vertices, plain.faces)
        assert np.array_equal(fitted_surface(mesh, 10.0)[0], mesh.vertices)
