"""Rigid bodies are drawn as their solids, where they are, in all views; with soft matter beside them or without."""

import base64
import io

import numpy as np
import pytest
from flat_scenes import disc_and_jelly
from PIL import Image
from view_cases import GREEN, RED

import warpbots as wb
from warpbots.scene import Box, Capsule, Cylinder, DistanceGrid, Obstacle, Posed, Scene, SoftBody, Sphere, Union
from warpbots.view import Camera, animate, draw, film_strip, live_view, save_html
from warpbots.view.covered_pixels import covered
from warpbots.view.drawables import NO_PARTICLES
from warpbots.view.figure_layout import axes_layout, columns_for
from warpbots.view.film import figure_of, image_of
from warpbots.view.motion import collect, evenly
from warpbots.view.picture import SceneAxes
from warpbots.view.raster import Canvas, brightness
from warpbots.view.rigid_bodies import BodyPoses, Facets, facets, outline, poses_at_zero, solids_of

BLUE = (0.1, 0.2, 0.9)
TURN = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # a quarter turn about y


def mechanism() -> Scene:
    """A red arm that swings, a green ball that falls onto a floor, and a mass without a shape on a spring."""
    bodies = (
        wb.RigidBody("arm", Box((-0.03, -0.03, -0.4), (0.03, 0.03, 0.0)), color=RED),
        wb.RigidBody("ball", Sphere((0.3, 0.0, 0.0), 0.06), position=(0.0, 0.0, -0.3), points=200, color=GREEN),
        wb.RigidBody("mass", None, inertia=wb.Inertia(0.1, (0.0, -0.4, 0.0), (1e-4, 1e-4, 1e-4)), color=BLUE),
    )
    joints = (
        wb.Joint("hinge", "revolute", None, "arm", axis=(0.0, 1.0, 0.0), start=1.2),
        wb.Joint("slide", "prismatic", None, "mass", stiffness=20.0),
    )
    law = wb.Contact("ball", "floor", 1e7, 1e7, 0.5, 1e5)
    return Scene(
        bodies,
        (wb.actuators.Torque("motor", "hinge", 0.1),),
        (wb.floor(-0.6),),
        joints=joints,
        contacts=(law,),
        name="swing",
    )


@pytest.fixture(scope="module")
def swing():
    """A motion of 30 control intervals, 0.3 s, in two worlds; in the second one the arm starts at 0.7 rad."""
    sim = wb.Simulation(mechanism(), wb.Articulated(), dt=0.01, worlds=2)
    q = sim.state().q
    q[1, sim.model.robot.coordinates["hinge"]] = 0.7
    return sim.rollout(None, 30, sim.state(q=q))


def at(image, ax, points):
    """Colours of a picture under points of the axes, shape (n, 3)."""
    column, row = np.floor(ax.transData.transform(points)).astype(int).T
    return image[row, column]


def alike(shown, color):
    """Whether colours, shape (n, 3), are shades of another one."""
    hue = shown / np.maximum(shown.max(axis=-1, keepdims=True), 1e-9)
    return np.abs(hue - np.array(color) / max(color)).max(axis=-1) < 0.1


def test_a_trajectory_says_how_many_bodies_moved(swing):
    assert repr(swing) == "Trajectory of 'swing': 3 rigid bodies, 30 control intervals, 0.3 s"


def test_a_trajectory_shows_itself_as_a_picture(swing, monkeypatch):
    monkeypatch.setenv("WARPBOTS_STATIC", "1")
    bundle = swing._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/png"}
    assert Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).size[0] == 1200


def test_poses_are_those_that_are_sensed(swing):
    times, position, rotation = zip(*swing.poses(every=20, world=1), strict=True)
    np.testing.assert_allclose(times, [0.0, 0.2, 0.3])
    r = swing.simulation.sense(swing.final)
    np.testing.assert_array_equal(position[-1], r.position[1].cpu().numpy())
    np.testing.assert_array_equal(rotation[-1], r.rotation[1].cpu().numpy())
    c, s = np.cos(0.7), np.sin(0.7)
    np.testing.assert_allclose(rotation[0][0], [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]], atol=1e-12)
    collected = collect(swing, [0, 20, 30], world=1).poses
    np.testing.assert_array_equal(collected.position, position)
    np.testing.assert_array_equal(collected.rotation, rotation)


def test_collected_moments_are_those_of_the_trajectory_under_its_parameters():
    sim = wb.Simulation(mechanism(), wb.Articulated(), dt=0.01)
    moved = sim.parameter("joint_position")
    moved[0, 0] += moved.new_tensor([0.0, 0.5, 0.0])
    motion = collect(sim.rollout(None, 4, joint_position=moved), [0, 4])
    assert motion.position.shape == (2, 0, 3)
    assert motion.poses.rotation.shape == (2, 3, 3, 3)
    np.testing.assert_allclose(motion.poses.position[:, 0], [[0.0, 0.5, 0.0]] * 2)


def test_bodies_are_in_their_colours_where_they_are(swing, axes, pixels):
    camera = collect(swing, [0, 30]).camera()
    centers = np.array([[0.0, 0.0, -0.2], [0.3, 0.0, 0.0], [0.0, -0.4, 0.0]])  # in the frames of the bodies
    moments = [(p, R) for _, p, R in swing.poses(30)]
    places = [camera.project(np.einsum("bij,bj->bi", R, centers) + p) for p, R in moments]
    for (p, R), here, elsewhere in zip(moments, places, places[::-1], strict=True):
        ax = draw(swing.scene, ax=axes(), poses=(p, R), camera=camera)
        image = pixels(ax.figure)
        shown, empty = at(image, ax, here), at(image, ax, elsewhere)
        for k, color in enumerate((RED, GREEN, BLUE)):
            assert alike(shown[k], color)
        assert not alike(empty[0], RED)
        assert not alike(empty[1], GREEN)


def test_without_poses_all_joints_are_at_zero(swing, axes, pixels):
    ax = draw(swing.scene, ax=axes())
    poses = poses_at_zero(swing.scene)
    camera = Camera.around(swing.scene, outline(swing.scene, solids_of(swing.scene), poses))
    assert alike(at(pixels(ax.figure), ax, camera.project(np.array([[0.0, 0.0, -0.3], [0.3, 0.0, -0.3]]))), RED)[0]
    assert ax.get_xlim() == pytest.approx((camera.window[0][0], camera.window[1][0]))


@pytest.mark.parametrize("nearer", [0, 1])
def test_the_nearer_body_hides_the_other(nearer, axes, pixels):
    cube = Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1))
    scene = Scene((wb.RigidBody("a", cube, color=RED), wb.RigidBody("b", cube, color=GREEN)))
    corners = np.array([[-0.5, -0.5, -0.5], [0.5, 0.5, 0.5]])
    camera = Camera.around(scene, corners)
    position = np.array([0.4, -0.4])[[nearer, 1 - nearer]][:, None] * camera.axes[2]
    ax = draw(scene, ax=axes(), poses=(position, np.array([np.eye(3)] * 2)), camera=camera)
    image = pixels(ax.figure)
    seen = [alike(image, color).sum() for color in (RED, GREEN)]
    assert seen[nearer] > 500
    assert seen[1 - nearer] < 0.02 * seen[nearer]


def test_obstacles_hide_bodies_and_bodies_hide_obstacles(axes, pixels):
    ball = wb.RigidBody("ball", Sphere((0.0, 0.0, 0.05), 0.05), color=RED)
    share = {}
    for y in (-0.065, 0.065):  # the viewer looks along +y
        scene = Scene((ball,), (), (Obstacle(Box((-0.1, y - 0.01, 0.0), (0.1, y + 0.01, 0.1)), name="wall"),))
        camera = Camera.around(scene, np.array([[-0.05] * 3, [0.05, 0.05, 0.1]]), azimuth=-90.0, elevation=5.0)
        share[y] = alike(pixels(draw(scene, ax=axes(), camera=camera).figure), RED).mean()
    assert share[0.065] > 0.02
    assert share[-0.065] < 0.05 * share[0.065]


def test_soft_matter_and_bodies_are_in_one_picture(axes, pixels):
    soft = SoftBody("soft", Box((-0.2, -0.05, -0.05), (-0.1, 0.05, 0.05)), wb.Material(1e4), color=RED)
    particles = wb.MPM(dx=0.02).build(Scene((soft,))).matter
    scene = Scene((soft, wb.RigidBody("bone", Box((0.1, -0.05, -0.05), (0.2, 0.05, 0.05)), color=GREEN)))
    ax = draw(scene, particles, ax=axes())
    camera = Camera.around(scene, np.concatenate([particles.position, np.array([[0.2, 0.05, 0.05]])]))
    shown = at(pixels(ax.figure), ax, camera.project(np.array([[-0.15, 0.0, 0.0], [0.15, 0.0, 0.0]])))
    assert alike(shown[0], RED)
    assert alike(shown[1], GREEN)


def test_a_slender_body_is_as_wide_as_it_is():
    scene = Scene((wb.RigidBody("rod", Cylinder((-0.4, 0.0, -0.4), (0.4, 0.0, 0.4), 0.01), color=RED),))
    camera = Camera.around(scene, np.array([[-0.4] * 3, [0.4] * 3]), azimuth=-90.0, elevation=1e-6)
    canvas = Canvas.blank(camera, 600, round(600 / camera.aspect))
    none = np.zeros((0, 3))
    image = canvas.picture(none, np.zeros(0), none, None, facets(solids_of(scene), poses_at_zero(scene)))
    per_metre = 600 / (camera.window[1] - camera.window[0])[0]
    assert image[..., 3].sum() / 255.0 == pytest.approx(0.02 * 0.8 * np.sqrt(2.0) * per_metre**2, rel=0.02)


def test_triangles_cover_the_pixels_whose_centres_they_hold(rng):
    corner = rng.uniform(-10.0, 60.0, (300, 3, 2))
    corner[200:, 2] = corner[200:, :2].mean(axis=1) + rng.uniform(-0.3, 0.3, (100, 2))  # slender ones
    columns, rows = 50, 40
    pixel, depth, face = covered(corner, rng.uniform(0.0, 1.0, (300, 3)), columns, rows)
    q = np.stack(np.meshgrid(np.arange(columns) + 0.5, np.arange(rows) + 0.5), axis=-1).reshape(-1, 2)
    side = lambda a, b: (b - a)[:, None, 0] * (q - a[:, None])[..., 1] - (b - a)[:, None, 1] * (q - a[:, None])[..., 0]
    a, b, c = np.moveaxis(corner, 1, 0)
    turns = np.stack([side(a, b), side(b, c), side(c, a)])
    inside = (turns >= 0.0).all(axis=0) | (turns <= 0.0).all(axis=0)
    found = np.zeros_like(inside)
    found[face, pixel] = True
    np.testing.assert_array_equal(found, inside)
    assert (depth >= 0.0).all() and (depth <= 1.0).all()


def test_a_ball_is_shaded_as_round():
    scene = Scene((wb.RigidBody("ball", Sphere((0.0, 0.0, 0.0), 0.1), color=(0.5, 0.5, 0.5)),))
    camera = Camera.around(scene, np.array([[-0.1] * 3, [0.1] * 3]))
    canvas, none = Canvas.blank(camera, 400, round(400 / camera.aspect)), np.zeros((0, 3))
    image = canvas.picture(none, np.zeros(0), none, None, facets(solids_of(scene), poses_at_zero(scene))) / 255.0
    rows, columns = np.nonzero(image[..., 3] == 1.0)
    size = (camera.window[1] - camera.window[0]) / (canvas.width, canvas.height)
    u, v = camera.window[0][0] + (columns + 0.5) * size[0], camera.window[1][1] - (rows + 0.5) * size[1]
    high = np.sqrt(np.maximum(0.01 - u**2 - v**2, 0.0))
    normal = np.stack([u, v, high], axis=1) / 0.1 @ camera.axes
    middle = u**2 + v**2 < 0.008
    assert np.abs(image[rows, columns, 0] - 0.5 * brightness(normal, camera))[middle].max() < 0.012


def test_edges_of_a_box_are_sharp():
    (solid,) = solids_of(Scene((wb.RigidBody("b", Box((0.0, 0.0, 0.0), (0.1, 0.2, 0.3))),)))
    np.testing.assert_allclose(np.sort(np.abs(solid.normals), axis=1), [[0.0, 0.0, 1.0]] * 24, atol=1e-12)


def test_bodies_cast_shadows_on_the_floor():
    plate = wb.RigidBody("plate", Box((-0.1, -0.1, 0.29), (0.1, 0.1, 0.3)))
    scene = Scene((plate,))
    camera = Camera.around(scene, np.array([[-0.5] * 3, [0.5] * 3]))
    canvas, none = Canvas.blank(camera, 200, 200), np.zeros((0, 3))
    image = canvas.picture(none, np.zeros(0), none, -0.5, facets(solids_of(scene), poses_at_zero(scene)))
    below, aside = camera.project(np.array([[0.0, 0.0, -0.5], [0.3, -0.3, -0.5]])) - camera.window[0]
    scale = 200 / (camera.window[1] - camera.window[0])
    dark = [image[int(200 - v * scale[1]), int(u * scale[0]), 3] for u, v in (below, aside)]
    assert dark[0] > 20
    assert dark[1] == 0


def volume(solid):
    a, b, c = (solid.vertices[solid.faces[:, k]] for k in range(3))
    return np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0


def test_every_shape_has_a_surface():
    grid = np.stack(np.meshgrid(*3 * [np.linspace(-0.3, 0.3, 31)], indexing="ij"), axis=-1)
    ball = DistanceGrid(np.linalg.norm(grid, axis=-1) - 0.2, (-0.3, -0.3, -0.3), 0.02)
    turned = Posed(Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)), (1.0, 0.0, 0.0), TURN.tolist())
    shapes = (ball, Union((turned, Box((2.0, 0.0, 0.0), (2.1, 0.1, 0.2)))), Capsule((0, 0, 0), (0, 0, 0.4), 0.1))
    expected = (4.0 / 3.0 * np.pi * 0.2**3, 3e-3, np.pi * 0.01 * (0.4 + 4.0 / 3.0 * 0.1))
    solids = solids_of(Scene([wb.RigidBody(f"b{k}", s) for k, s in enumerate(shapes)]))
    for solid, value in zip(solids, expected, strict=True):
        assert volume(solid) == pytest.approx(value, rel=0.03)


def test_a_body_without_shape_and_mass_is_not_drawn(axes, pixels):
    scene = Scene((wb.RigidBody("frame", None, color=RED), wb.RigidBody("box", Box((0, 0, 0), (0.1, 0.1, 0.1)))))
    assert len(solids_of(scene)[0].faces) == 0
    assert not alike(pixels(draw(scene, ax=axes()).figure), RED).any()


def test_the_camera_sees_all_and_ends_at_the_floor(swing):
    motion = collect(swing, evenly(30, 16))
    camera = motion.camera()
    for k in range(len(motion)):
        seen = camera.project(facets(motion.solids, motion.poses[k]).corner.reshape(-1, 3))
        assert (seen > camera.window[0]).all()
        assert (seen < camera.window[1]).all()
    assert camera.box[0][2] == -0.6


def test_what_sinks_into_the_floor_a_little_stands_on_it(swing):
    solids, poses = solids_of(swing.scene), poses_at_zero(swing.scene)
    position = poses.position.copy()
    position[1, 2] = -0.6 + 0.06 - 1e-4
    lowest = outline(swing.scene, solids, BodyPoses(position, poses.rotation))[:, 2].min()
    assert lowest == -0.6
    position[1, 2] -= 0.2  # it has fallen through
    assert outline(swing.scene, solids, BodyPoses(position, poses.rotation))[:, 2].min() < -0.75


def test_a_strip_shows_the_ball_where_it_falls(swing):
    strip = film_strip(swing, frames=3)
    motion = collect(swing, evenly(30, 3))
    camera = motion.camera()
    columns = columns_for(camera, 12.0, 3)
    (_, height), places = axes_layout(camera, 12.0, -(-3 // columns), columns)
    assert strip.size == (1200, 2 * round(50 * height))
    centers = motion.poses.rotation[:, 1] @ [0.3, 0.0, 0.0] + motion.poses.position[:, 1]
    for (left, bottom, width, tall), p in zip(places, centers, strict=False):
        box = np.array(
            [left * 1200, (1 - bottom - tall) * 100 * height, (left + width) * 1200, (1 - bottom) * 100 * height]
        )
        panel = strip.crop(tuple(int(v) for v in box.round()))
        rows = np.nonzero(alike(np.asarray(panel) / 255.0, GREEN))[0]
        center = camera.project(p[None])[0, 1]
        lower, upper = camera.window
        assert rows.mean() == pytest.approx((upper[1] - center) / (upper[1] - lower[1]) * panel.height, abs=2.0)


def test_a_film_has_its_frames(swing, tmp_path):
    path = animate(tmp_path / "swing.gif", swing, fps=20.0, width=160, world=1)
    with Image.open(path) as film:
        assert film.n_frames == 7


def test_meshes_of_the_widget_move_as_the_bodies_do(swing):
    pytest.importorskip("k3d")
    plot = live_view(swing, 10).children[0]
    meshes = {o.name: o for o in plot.objects if o.name in ("arm", "ball", "mass")}
    assert list(meshes) == ["arm", "ball", "mass"]
    assert not [o for o in plot.objects if o.name == "particles"]
    solids, moments = solids_of(swing.scene), list(swing.poses(10))
    for k, mesh in enumerate(meshes.values()):
        np.testing.assert_array_equal(mesh.vertices, solids[k].vertices.astype(np.float32))
        assert list(mesh.model_matrix) == ["0", "1", "2", "3"]
        for (_, p, R), matrix in zip(moments, mesh.model_matrix.values(), strict=True):
            np.testing.assert_array_equal(matrix[:3], np.column_stack([R[k], p[k]]).astype(np.float32))
            np.testing.assert_array_equal(matrix[3], [0.0, 0.0, 0.0, 1.0])


def test_a_page_is_written(swing, tmp_path):
    pytest.importorskip("k3d")
    assert "<title>swing</title>" in save_html(tmp_path / "swing.html", swing, 15).read_text(encoding="utf-8")


def test_what_makes_no_sense_is_refused(swing, flat, axes):
    assert swing.matter is None
    with pytest.raises(ValueError, match=r"frames: scene 'swing' has no soft bodies; see poses and joints"):
        next(swing.frames())
    with pytest.raises(ValueError, match=r"joints: scene 'bar & disc' has no rigid bodies; see frames"):
        next(flat.joints())
    with pytest.raises(ValueError, match=r"poses: scene 'bar & disc' has no rigid bodies; see frames"):
        next(flat.poses())
    p, R = np.zeros((3, 3)), np.array([np.eye(3)] * 3)
    with pytest.raises(ValueError, match=r"draw: poses\[0\] must have shape \(3, 3\), got \(2, 3\)"):
        draw(swing.scene, ax=axes(), poses=(p[:2], R))
    R[1, 0, 2] = np.nan
    with pytest.raises(ValueError, match=r"draw: poses\[1\] must be finite, got nan at index \(1, 0, 2\)"):
        draw(swing.scene, ax=axes(), poses=(p, R))


def test_no_facets_leave_the_canvas_empty():
    camera = Camera.around(Scene((wb.RigidBody("b", Sphere((0, 0, 0), 0.1)),)), np.eye(3))
    none = np.zeros((0, 3))
    assert (Canvas.blank(camera, 20, 20).picture(none, np.zeros(0), none, None, Facets.none()) == 0).all()


def test_a_disc_of_a_2d_scene_is_an_area_in_its_colour_and_a_plate_in_a_browser():
    scene = disc_and_jelly()
    (solid,) = solids_of(scene)
    assert np.abs(solid.vertices[:, :2]).max() == pytest.approx(0.04, rel=0.02)
    assert 0.0 < np.abs(solid.vertices[:, 2]).max() < 0.004
    poses = poses_at_zero(scene)
    camera = Camera.around(scene, outline(scene, (solid,), poses))
    figure, places = figure_of(camera, 300)
    SceneAxes(scene, NO_PARTICLES, camera, figure.add_axes(places[0]), (solid,)).show(np.zeros((0, 3)), poses=poses)
    picture = np.asarray(image_of(figure)) / 255.0
    share = (np.abs(picture - solid.color).max(axis=-1) < 0.02).mean()
    (left, bottom), (right, top) = camera.window
    x, y, width, height = places[0]
    expected = np.pi * 0.04**2 / ((right - left) * (top - bottom)) * width * height
    assert share == pytest.approx(expected, rel=0.08)
