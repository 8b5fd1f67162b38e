"""The software renderer: sizes, places and order of what it draws."""

import numpy as np
import pytest

from warpbots.contact import signed_distance
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Posed,
    Scene,
    SoftBody,
    Sphere,
    TriangleMesh,
    Union,
)  # fmt: skip
from warpbots.scene import Material as M
from warpbots.surfaces.clipped import slab, surface
from warpbots.view import Camera
from warpbots.view.raster import Canvas, brightness
from warpbots.view.rigid_bodies import Facets
from warpbots.view.visible_particles import outward, visible

TURN = ((0.8, 0.0, 0.6), (0.0, 1.0, 0.0), (-0.6, 0.0, 0.8))
TETRAHEDRON = TriangleMesh(
    np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.3]]),
    np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]),
)
GRID = np.stack(np.meshgrid(*3 * [np.linspace(-0.3, 0.3, 31)], indexing="ij"), axis=-1)
BALL = DistanceGrid(np.linalg.norm(GRID, axis=-1) - 0.2, (-0.3, -0.3, -0.3), 0.02)
SOLIDS = {  # shape, volume [m^3]
    "box": (Box((-0.1, -0.2, -0.1), (0.1, 0.2, 0.3)), 0.2 * 0.4 * 0.4),
    "sphere": (Sphere((0.1, 0.0, 0.0), 0.2), 4.0 / 3.0 * np.pi * 0.2**3),
    "capsule": (Capsule((-0.2, 0.0, 0.0), (0.2, 0.0, 0.0), 0.1), np.pi * 0.1**2 * (0.4 + 4.0 / 3.0 * 0.1)),
    "cylinder": (Cylinder((0.0, 0.0, -0.2), (0.1, 0.0, 0.2), 0.1), np.pi * 0.1**2 * np.hypot(0.4, 0.1)),
    "mesh": (TETRAHEDRON, 0.3**3 / 6.0),
    "posed box": (Posed(Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), (0.1, 0.0, 0.0), TURN), 0.2**3),
    "union": (Union((Sphere((-0.2, 0.0, 0.0), 0.1), Box((0.1, 0.1, 0.1), (0.2, 0.2, 0.2)))), 4e-3 / 3.0 * np.pi + 1e-3),
    "distance grid": (BALL, 4.0 / 3.0 * np.pi * 0.2**3),
}


def volume(vertices, faces):
    """Enclosed volume [m^3]: positive if faces are counter-clockwise seen from outside."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0


@pytest.fixture
def camera():
    ball = SoftBody("b", Sphere((0.0, 0.0, 0.0), 0.1), M(1e4))
    cube = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.5
    return Camera.around(Scene((ball,)), cube)


@pytest.mark.parametrize("name", SOLIDS)
def test_surfaces_are_closed_and_look_outwards(name):
    shape, expected = SOLIDS[name]
    vertices, faces = surface(shape, np.full(3, -1.0), np.full(3, 1.0))
    assert volume(vertices, faces) == pytest.approx(expected, rel=0.02)
    assert np.abs(signed_distance(shape, vertices)).max() < 0.012  # a cell: corners of sampled solids are rounded


def test_a_solid_ends_with_a_face_where_the_view_ends():
    vertices, faces = surface(Sphere((0.0, 0.0, 0.0), 0.2), np.array([-1.0, -1.0, 0.0]), np.full(3, 1.0))
    assert volume(vertices, faces) == pytest.approx(0.5 * 4.0 / 3.0 * np.pi * 0.2**3, rel=0.02)


def test_a_solid_outside_of_the_view_has_no_surface():
    for shape in (
        Sphere((3.0, 0.0, 0.0), 0.2),
        Box((2.0, 0.0, 0.0), (3.0, 1.0, 1.0)),
        HalfSpace((0, 0, -2), (0, 0, 1)),
    ):
        vertices, faces = surface(shape, np.full(3, -1.0), np.full(3, 1.0))
        assert len(vertices) == len(faces) == 0


def test_an_incline_is_cut_by_the_view():
    plane = HalfSpace((0.0, 0.0, 0.1), (0.3, -0.1, 1.0))
    lower, upper = np.array([-1.0, -0.5, -1.0]), np.array([1.0, 0.5, 1.0])
    vertices, faces = surface(plane, lower, upper)
    assert np.abs(signed_distance(plane, vertices)).max() < 1e-9
    corner = vertices[faces]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    area = 0.5 * np.linalg.norm(normal, axis=1).sum()
    assert area == pytest.approx(2.0 * 1.0 / plane.normal[2])  # the plane leaves through the sides alone
    assert (normal @ np.array(plane.normal) > 0.0).all()


def test_terrain_has_its_heights():
    x = np.linspace(0.0, 1.0, 11)
    terrain = Heightfield((0.0, 0.0), 0.1, 0.2 * x[:, None] + 0.1 * x[None, :] ** 2)
    vertices, faces = surface(terrain, np.array([0.0, 0.0, -1.0]), np.array([1.0, 1.0, 1.0]))
    nodes = np.round(vertices[:, :2] / 0.1).astype(int)
    np.testing.assert_allclose(vertices[:, 2], terrain.heights[nodes[:, 0], nodes[:, 1]], atol=1e-12)
    corner = vertices[faces]
    assert (np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])[:, 2] > 0.0).all()


def test_a_slab_is_the_section_in_depth():
    vertices, faces = slab(Sphere((0.1, 0.2), 0.2), np.full(2, -0.5), np.full(2, 0.5), depth=0.05)
    assert volume(vertices, faces) == pytest.approx(np.pi * 0.2**2 * 0.1, rel=0.1)  # its edges are chamfered
    rim = np.linalg.norm(vertices[:, [0, 2]] - (0.1, 0.2), axis=1).max()
    assert rim == pytest.approx(0.2, abs=0.005)
    assert np.abs(vertices[:, 1]).max() == pytest.approx(0.05, rel=0.05)


def test_a_ball_is_round_and_in_its_place(camera):
    height = round(300 / camera.aspect)
    canvas = Canvas.blank(camera, 300, height)
    center, radius = np.array([[0.1, -0.2, 0.05]]), np.array([0.12])
    image = canvas.picture(center, radius, np.array([[1.0, 0.0, 0.0]]))
    per_metre = 300 / (camera.window[1] - camera.window[0])[0]
    cover = image[..., 3] / 255.0
    assert cover.sum() == pytest.approx(np.pi * (0.12 * per_metre) ** 2, rel=0.02)
    rows, columns = np.mgrid[:height, :300] + 0.5
    u = camera.window[0][0] + (columns * cover).sum() / cover.sum() / per_metre
    v = camera.window[1][1] - (rows * cover).sum() / cover.sum() / per_metre
    np.testing.assert_allclose([u, v], camera.project(center)[0], atol=0.5 / per_metre)


@pytest.mark.parametrize("nearer", [0, 1])
def test_the_nearer_ball_is_seen(camera, nearer):
    toward = camera.axes[2]
    center = np.array([0.2, -0.2])[[nearer, 1 - nearer]][:, None] * toward
    image = Canvas.blank(camera, 100, 100).picture(center, np.full(2, 0.1), np.eye(3)[:2])
    shown = image[image[..., 3] == 255]
    assert (np.argmax(shown[:, :3], axis=1) == nearer).all()


def test_balls_that_meet_are_cut_half_way(camera):
    center = 0.05 * np.array([-camera.axes[0], camera.axes[0]])
    image = Canvas.blank(camera, 300, round(300 / camera.aspect)).picture(center, np.full(2, 0.1), np.eye(3)[:2])
    red, green = ((image[..., c] > 2.0 * image[..., 1 - c]).sum() for c in (0, 1))
    assert red > 500
    assert red == pytest.approx(green, rel=0.03)


def test_triangles_hide_and_are_hidden(camera):
    toward = camera.axes[2]
    triangle = 0.4 * np.array([-camera.axes[0] - camera.axes[1], camera.axes[0] - camera.axes[1], camera.axes[1]])
    canvas = Canvas.blank(camera, 100, 100)
    canvas.add_triangles(triangle, np.array([[0, 1, 2]]), (0.0, 1.0, 0.0))
    before = canvas.nearest.copy()
    u, v = camera.project(np.zeros((1, 3)))[0] - camera.window[0]
    width, height = camera.window[1] - camera.window[0]
    row, column = int(100 - 100 * v / height), int(100 * u / width)
    for side, channel in ((0.3, 0), (-0.3, 1)):
        image = canvas.picture(side * toward[None], np.array([0.05]), np.array([[1.0, 0.0, 0.0]]))
        assert np.argmax(image[row, column, :3]) == channel
    np.testing.assert_array_equal(canvas.nearest, before)


def test_colours_and_normals_are_interpolated_between_corners(camera):
    """At a point of a triangle the weights of the corners are the areas of the opposite triangles."""
    u, v, toward = camera.axes
    corner = 0.4 * np.array([[-u - v, u - v, v]])
    normal = np.array([[toward + 0.4 * u, toward - 0.4 * u, toward + 0.3 * v]])
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    canvas = Canvas.blank(camera, 200, 200)
    none = np.zeros((0, 3))
    image = canvas.picture(none, np.zeros(0), none, None, Facets(corner, normal, 0.8 * np.eye(3)[None]))
    assert (image[..., 3] == 255).sum() > 2000
    for weights in ([0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [1 / 3, 1 / 3, 1 / 3]):
        (place,) = canvas.pixels((np.array(weights) @ corner[0])[None]) / 2.0  # two rows of the buffer are a row
        column, row = (int(p) for p in place)
        n = np.array(weights) @ normal[0]
        shown = 0.8 * np.array(weights) * brightness(n[None] / np.linalg.norm(n), camera)
        np.testing.assert_allclose(image[row, column, :3] / 255.0, shown, atol=0.012)


def test_faces_that_look_away_are_not_drawn(camera):
    canvas = Canvas.blank(camera, 50, 50)
    triangle = 0.4 * np.array([-camera.axes[0], camera.axes[0], camera.axes[1]])
    canvas.add_triangles(triangle, np.array([[0, 2, 1]]), (0.0, 1.0, 0.0))
    assert (canvas.nearest == -1).all()


def test_shadows_lie_below_bodies_and_nowhere_else(camera):
    plate = np.stack(np.meshgrid(*2 * [np.linspace(-0.1, 0.1, 41)], [0.3]), axis=-1).reshape(-1, 3)
    canvas = Canvas.blank(camera, 200, 200)
    image = canvas.picture(plate, np.full(len(plate), 0.01), np.ones_like(plate), floor=-0.5)
    below, aside = camera.project(np.array([[0.0, 0.0, -0.5], [0.3, -0.3, -0.5]])) - camera.window[0]
    scale = 200 / (camera.window[1] - camera.window[0])
    dark = [image[int(200 - v * scale[1]), int(u * scale[0]), 3] for u, v in (below, aside)]
    assert dark[0] > 20
    assert dark[1] == 0


def test_only_particles_inside_of_a_body_are_left_out():
    lattice = np.stack(np.meshgrid(*3 * [np.arange(12.0)], indexing="ij"), axis=-1).reshape(-1, 3)
    shown = visible(lattice, np.full(len(lattice), 0.6))
    hull = ((lattice == 0.0) | (lattice == 11.0)).any(axis=1)
    assert shown[hull].all()
    assert not shown[np.abs(lattice - 5.5).max(axis=1) < 2.0].any()


def test_normals_of_a_ball_of_particles_are_radial():
    lattice = np.stack(np.meshgrid(*3 * [np.arange(-10.0, 11.0)], indexing="ij"), axis=-1).reshape(-1, 3)
    distance = np.linalg.norm(lattice, axis=1)
    x = lattice[distance <= 10.0]
    rim = np.linalg.norm(x, axis=1) > 9.0
    normal = outward(x, np.full(len(x), 0.6))[rim]
    along = np.einsum("ni,ni->n", normal, x[rim]) / np.linalg.norm(x[rim], axis=1)
    assert along.min() > 0.85
    assert along.mean() > 0.97
