"""Pictures show obstacles where they are."""

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import warpbots as wb
from warpbots.surfaces.clipped import box_corners
from warpbots.view import k3d_plot
from warpbots.view.camera import Camera
from warpbots.view.motion import collect
from warpbots.view.moving_obstacles import at_start, displaced
from warpbots.view.palette import GROUND

TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def scene(dim):
    """A small body, a paddle that starts 0.2 m to the right of its place and turns, and a plate with a drive."""
    lower, end = np.zeros(dim), np.full(dim, 0.1)
    shift, turn = 0.2 * np.eye(dim)[0], np.array([0.0, np.pi / 2]) if dim == 2 else np.outer([0, np.pi / 2], [0, 0, 1])
    motion = wb.PrescribedMotion([0.0, 0.1], np.stack([shift, 2 * shift]), turn, tuple(lower), "linear", "hold")
    paddle = wb.Obstacle(wb.shapes.Box(tuple(lower + 0.3), tuple(lower + 0.4)), name="paddle", motion=motion)
    plate = wb.Obstacle(wb.shapes.HalfSpace(tuple(-0.05 * end), tuple(np.eye(dim)[-1])), name="plate")
    body = wb.SoftBody("body", wb.shapes.Box(tuple(lower), tuple(end)), wb.Material(1e5))
    lift = wb.actuators.VelocityDrive("lift", "plate", 0.1, tuple(-np.eye(dim)[-1]))
    return wb.Scene([body], [lift], [paddle, plate], gravity=(0.0,) * dim)


@pytest.fixture(scope="module", params=[2, 3])
def run(request):
    sim = wb.Simulation(scene(request.param), wb.MassSpring(0.05, damping=1e-3), dt=0.01, substeps=10)
    with torch.no_grad():
        return sim.rollout(torch.ones(10, 1), 10)


def test_displacements_of_shapes():
    """x = R X + p: a box, and a half-space that remains one."""
    box = displaced(wb.shapes.Box((0, 0, 0), (1, 2, 3)), np.array([10.0, 0, 0]), TURN)
    np.testing.assert_allclose(box.bounds, [[8, 0, 0], [10, 1, 3]], atol=1e-12)
    plane = displaced(wb.shapes.HalfSpace((1, 0, 0), (1, 0, 0)), np.array([0, 0, 5.0]), TURN)
    assert plane == wb.shapes.HalfSpace((0, 1, 5), (0, 1, 0))
    flat = displaced(wb.shapes.Box((0, 0), (1, 2)), np.array([10.0, 0, 0]), TURN)
    np.testing.assert_allclose(flat.bounds, [[8, 0], [10, 1]], atol=1e-12)


def test_poses_of_a_trajectory_are_those_of_table_and_drive(run):
    dim = run.scene.dim
    for time, position, rotation in run.obstacle_poses(5):
        s = time / 0.1
        np.testing.assert_allclose(position[0], [0.2 + 0.2 * s, 0, 0], atol=1e-12)
        c = np.cos(s * np.pi / 2), np.sin(s * np.pi / 2)
        np.testing.assert_allclose(rotation[0], [[c[0], -c[1], 0], [c[1], c[0], 0], [0, 0, 1]], atol=1e-12)
        np.testing.assert_allclose(position[1], -0.1 * time * np.eye(3)[dim - 1], atol=1e-12)
    sim = run.simulation
    twice = {name: 2.0 * sim.parameter(name) for name in ("motion_position", "drive_speed")}
    with torch.no_grad():
        *_, (_, position, _) = sim.rollout(torch.ones(10, 1), 10, **twice).obstacle_poses(10)
    np.testing.assert_allclose(position, [[0.8, 0, 0], -0.02 * np.eye(3)[dim - 1]], atol=1e-12)


def drawn(run, frames, which):
    """Whether ground is drawn at points of the plane y = 0.35 (or of the picture in 2D) at a frame of a motion."""
    motion, dim = collect(run, frames), run.scene.dim
    camera = Camera.around(motion.scene, box_corners(np.full(dim, -0.05), np.full(dim, 0.65)))
    figure = Figure(figsize=(8, 8 / camera.aspect), dpi=100)
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1))
    stage = wb.view.picture.SceneAxes(motion.scene, motion.particles, camera, ax, motion.solids, skins=motion.skins)
    for k in range(which + 1):  # earlier moments leave nothing behind
        stage.show(motion.position[k], motion.control[k], poses=motion.poses[k], obstacles=motion.obstacles[k])
    ax.set_axis_off()
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255.0

    def at(x):
        p = ax.transData.transform(camera.project(np.array([x])))[0]
        return image[image.shape[0] - 1 - round(p[1]), round(p[0])]

    return at


def test_frames_show_obstacles_in_their_places(run):
    """The centre of the paddle is at (0.55, 0.35) at the start, at 0.4 + (-0.35, 0.35) at the end."""
    z = [] if run.scene.dim == 2 else [0.4]  # on the upper face
    first, last = drawn(run, [0, 10], 0), drawn(run, [0, 10], 1)
    start, end, place = ([0.55, 0.35, *z], [0.05, 0.35, *z], [0.35, 0.35, *z])
    paper = np.ones(3)
    for at, here, elsewhere in ((first, start, (end, place)), (last, end, (start, place))):
        assert np.abs(at(here) - GROUND).max() < 0.1 and np.abs(at(here) - paper).max() > 0.02
        for other in elsewhere:
            np.testing.assert_allclose(at(other), paper, atol=0.02)


def test_a_picture_of_a_scene_has_obstacles_at_their_first_poses(run):
    position, rotation = at_start(run.scene)
    np.testing.assert_allclose(position[0], [0.2, 0, 0])
    ax = Figure(figsize=(6, 6)).add_subplot()
    wb.view.draw(run.scene, run.matter, ax=ax)
    with pytest.raises(ValueError, match=r"obstacles\[0\] must have shape \(2, 3\)"):
        wb.view.draw(run.scene, run.matter, ax=ax, obstacles=(position[:1], rotation))


def test_cameras_see_the_way_of_an_obstacle():
    """A bounded obstacle that comes close is in view where it is close, also if it starts far away."""
    fixed = scene(3)
    x = np.array([[0.0, 0, 0], [0.1, 0.1, 0.1]])
    far, near = (wb.shapes.Box((a, 0, 0), (a + 0.05, 0.1, 0.1)) for a in (3.0, 0.11))
    alone, both = (Camera.around(fixed, x, obstacles=shapes).box[1][0] for shapes in ([far], [far, near]))
    assert both > alone + 0.04
    assert near.bounds[1][0] < both < far.bounds[0][0]


def test_widgets_move_obstacles(run):
    plot = k3d_plot.new_plot(collect(run, [0, 5, 10]))
    meshes = {o.name: o for o in plot.objects if o.name in ("paddle", "plate")}
    matrix = meshes["paddle"].model_matrix["2"]
    corners = np.c_[meshes["paddle"].vertices, np.ones(len(meshes["paddle"].vertices))] @ matrix.T
    lower, upper = corners[:, :3].min(axis=0), corners[:, :3].max(axis=0)
    np.testing.assert_allclose([lower[0], upper[0]], [0.0, 0.1], atol=2e-3)
    up = 1 if run.scene.dim == 3 else 2
    np.testing.assert_allclose([lower[up], upper[up]], [0.3, 0.4], atol=2e-3)
    assert meshes["plate"].model_matrix["1"][2, 3] == pytest.approx(-0.005, abs=1e-6)
