"""Poses and velocities of frames that move as prescribed, and their gradients, against closed forms and differences."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from warpbots.contact.moving_frames import belt_along, belt_slope
from warpbots.contact.solid_forms import solids_of
from warpbots.scene import Box, Constraint, Obstacle, PrescribedMotion, Scene, SceneError, SoftBody, VelocityDrive
from warpbots.scene import Material as Matter
from warpbots.solvers.motion_parameters import motion_parameters, with_motions
from warpbots.solvers.moving_frames import FrameState, MovingFrames

PIVOT = np.array([0.3, -0.2, 0.1])
TIMES = np.array([0.0, 0.1, 0.25, 0.3, 0.5])
POSITIONS = np.array([[0, 0, 0], [0.1, 0, 0.2], [0.2, 0.1, 0.1], [0.1, 0.3, 0], [0.4, 0.2, 0.1]], dtype=float)
ROTATIONS = np.array([[0, 0, 0], [0.3, 0, 0.2], [0.5, 0.4, 0.1], [0.9, 0.3, -0.4], [1.2, 0.2, 0.1]])
DEVICE = wp.get_device("cpu")


def scene_of(*drives, worlds=1, **motion):
    """A box that moves and a box that stays, both obstacles, above a clamped block."""
    tool = Obstacle(
        Box((0, 0, 0), (0.1, 0.2, 0.3)), name="tool", motion=PrescribedMotion(**motion) if motion else None,
        surface_velocity=(0.1, 0.0, -0.2),
    )  # fmt: skip
    still = Obstacle(Box((1, 0, 0), (1.1, 0.2, 0.3)), name="still")
    block = SoftBody("block", Box((0, 0, 1), (1, 1, 2)), Matter(1e4), regions={"all": Box((0, 0, 1), (1, 1, 2))})
    return Scene([block], obstacles=[still, tool], actuators=drives, constraints=[Constraint("all", name="held")])


def frames_of(scene, worlds=1):
    solids = solids_of([(-1, o.shape) for o in scene.obstacles], 8, 0.0, DEVICE)
    return MovingFrames(scene, worlds, DEVICE, solids), solids


def state_of(scene, time, travel=None, control=None, worlds=1):
    channels = len(scene.actuators)
    travel = np.zeros((worlds, channels)) if travel is None else travel
    control = np.zeros((worlds, channels)) if control is None else control

    def array(values):
        return wp.array(values, dtype=wp.float64, device=DEVICE, requires_grad=True)

    parameters = motion_parameters(scene, worlds, DEVICE)
    for a in parameters.values():
        a.requires_grad = True
    return FrameState(SimpleNamespace(**parameters), array(np.full(worlds, time)), array(travel), array(control))


TABLE = {"times": TIMES, "positions": POSITIONS, "rotations": ROTATIONS, "pivot": PIVOT}


@pytest.mark.parametrize("k", range(4))
def test_a_table_is_met_at_its_poses(k):
    scene = scene_of(**TABLE)
    frames, _ = frames_of(scene)
    frames.place(state_of(scene, TIMES[k]), 1e-3, 0.0)
    R = Rotation.from_rotvec(ROTATIONS[k]).as_matrix()
    assert frames.frames.rotation.numpy()[0, 0] == pytest.approx(R, abs=1e-14)
    assert frames.frames.position.numpy()[0, 0] == pytest.approx(PIVOT - R @ PIVOT + POSITIONS[k], abs=1e-14)


def test_points_on_obstacles_are_where_they_were_at_rest():
    """Points that obstacles carry along come back, and their depths in a box are those of the box at rest."""
    scene = scene_of(**TABLE)
    frames, _ = frames_of(scene)
    R = Rotation.from_rotvec(ROTATIONS[2]).as_matrix()
    X = np.array([[0.05, 0.1, 0.28], [0.13, 0.1, 0.1]])  # 0.02 m inside the tool, and 0.03 m outside
    x = X @ R.T + PIVOT - R @ PIVOT + POSITIONS[2]
    of, at = state_of(scene, TIMES[2]).parameters, (np.full(1, TIMES[2]), np.zeros((1, 0)), 0)
    points, axes = frames.on_obstacles(of, *at, x)
    np.testing.assert_allclose(points, [x, X], atol=1e-14)
    np.testing.assert_allclose(axes, [np.eye(3), R], atol=1e-14)
    assert [frames.depths(of, *at, y)[1] for y in x] == pytest.approx([0.02, -0.03], abs=1e-14)


@wp.kernel(enable_backward=False)
def slope_kernel(belt: wp.vec3d, n: wp.vec3d, slope_out: wp.array[wp.mat33d]):
    slope_out[0] = belt_slope(belt, n)


def test_a_belt_moves_along_its_surface_for_normals_of_any_length():
    belt, n = np.array([0.3, -0.5, 0.2]), np.array([0.4, 1.5, -0.9])
    along = belt - n * (n @ belt) / (n @ n)
    np.testing.assert_allclose(belt_along(wp.vec3d(*belt), wp.vec3d(*n)), along, atol=1e-15)
    np.testing.assert_allclose(belt_along(wp.vec3d(*belt), wp.vec3d()), belt, atol=0.0)
    columns = [np.array(belt_along(wp.vec3d(*belt), wp.vec3d(*(n + h)))) for h in 1e-5 * np.r_[np.eye(3), -np.eye(3)]]
    differences = (np.array(columns[:3]) - columns[3:]).T / 2e-5
    slope = wp.zeros(1, dtype=wp.mat33d)
    wp.launch(slope_kernel, 1, [wp.vec3d(*belt), wp.vec3d(*n)], [slope])
    np.testing.assert_allclose(slope.numpy()[0], differences, atol=1e-10)


def test_cubic_interpolation_is_exact_for_a_parabola_and_linear_for_a_line():
    for interpolation, power in (("cubic", 2), ("linear", 1)):
        motion = {"times": TIMES, "positions": (TIMES**power)[:, None] * [1.0, -2.0, 0.5]}
        scene = scene_of(**motion, interpolation=interpolation)
        frames, _ = frames_of(scene)
        for t in (0.03, 0.17, 0.28, 0.41):
            frames.place(state_of(scene, t), 1e-3, 0.0)
            expected = t**power * np.array([1.0, -2.0, 0.5])
            assert frames.frames.position.numpy()[0, 0] == pytest.approx(expected, abs=1e-14), interpolation


def test_a_table_that_repeats_has_a_continuous_velocity_over_its_ends():
    t = np.linspace(0.0, 1.0, 41)
    motion = {"times": t, "positions": np.sin(2 * np.pi * t)[:, None] * [1.0, 0.0, 0.0], "beyond": "repeat"}
    scene = scene_of(**motion)
    frames, _ = frames_of(scene)
    for time in (0.9999, 1.0001, 7.3):
        frames.place(state_of(scene, time), 1e-6, 0.0)
        assert frames.frames.position.numpy()[0, 0, 0] == pytest.approx(np.sin(2 * np.pi * time), abs=2e-4)
        velocity = frames.frames.linear.numpy()[0, 0]
        assert velocity[0] == pytest.approx(2 * np.pi * np.cos(2 * np.pi * time), abs=0.03)


@pytest.mark.parametrize("ahead", [0.0, 0.02, 0.05])
def test_the_velocity_at_a_point_is_the_displacement_of_the_step(ahead):
    drives = (
        VelocityDrive("slide", "tool", 0.5, axis=(0, 1, 1)),
        VelocityDrive("turn", "tool", 3.0, axis=(1, 0, 1), kind="rotation", pivot=(0.1, 0.2, 0.3)),
    )
    scene, h = scene_of(*drives, **TABLE), 0.05
    frames, solids = frames_of(scene)
    travel, control = np.array([[0.2, 0.4]]), np.array([[0.7, -0.6]])
    speed = np.array([0.5, 3.0])

    def pose(t, own):
        frames.place(state_of(scene, t, own, control), 1e-6, 0.0)
        return frames.frames.rotation.numpy()[0, 0].copy(), frames.frames.position.numpy()[0, 0].copy()

    ends = [pose(0.12 + a, travel + a * control * speed) for a in (0.0, h, ahead)]
    (R0, p0), (R1, p1), (R, p) = ends
    frames.place(state_of(scene, 0.12, travel, control), h, ahead)
    poses = [getattr(frames.solids, name).numpy()[0, 1] for name in ("rotation", "position", "linear", "spin")]
    x = np.array([0.4, -0.7, 0.2])
    X = R.T @ (x - p)
    assert poses[2] + poses[3] @ (x - poses[1]) == pytest.approx((R1 - R0) @ X / h + (p1 - p0) / h, abs=1e-12)
    assert frames.solids.belt.numpy()[0, 1] == pytest.approx(R @ scene.obstacles[1].surface_velocity, abs=1e-14)
    assert poses[0] == pytest.approx(R @ solids.rotation.numpy()[1], abs=1e-14)
    assert poses[1] == pytest.approx(R @ solids.position.numpy()[1] + p, abs=1e-14)
    turn = Rotation.from_rotvec(travel[0, 1] * np.array([1, 0, 1]) / np.sqrt(2)).as_matrix()
    pivot = np.array([0.1, 0.2, 0.3])
    drive = (turn, pivot - turn @ pivot + travel[0, 0] * np.array([0, 1, 1]) / np.sqrt(2))
    alone = scene_of(*drives)
    other, _ = frames_of(alone)
    other.place(state_of(alone, 0.0, travel, control), h, 0.0)
    assert other.frames.rotation.numpy()[0, 0] == pytest.approx(drive[0], abs=1e-14)
    assert other.frames.position.numpy()[0, 0] == pytest.approx(drive[1], abs=1e-14)
    assert frames.solids.position.numpy()[0, 0] == pytest.approx(solids.position.numpy()[0])  # of the one that stays


def test_gradients_of_poses_agree_with_differences():
    drives = (
        VelocityDrive("slide", "tool", 0.5, axis=(0, 1, 1)),
        VelocityDrive("turn", "tool", 3.0, axis=(1, 0, 1), kind="rotation", pivot=(0.1, 0.2, 0.3)),
        VelocityDrive("belt", "tool", 0.7, axis=(1, 0, 0), kind="surface"),
        VelocityDrive("jaw", "held", 0.3, axis=(1, 2, 0)),
    )
    scene, h, ahead, worlds = scene_of(*drives, **TABLE, beyond="hold"), 0.05, 0.02, 2
    frames, _ = frames_of(scene, worlds)
    rng = np.random.default_rng(3)
    travel, control = rng.normal(size=(2, worlds, 4))
    weight = {
        (k, n): rng.normal(size=getattr(getattr(frames, k), n).numpy().shape)
        for k in ("frames", "solids") for n in ("rotation", "position", "linear", "spin", "belt")
    }  # fmt: skip
    ends = rng.normal(size=travel.shape)
    of = state_of(scene, 0.22, travel, control, worlds)
    travel_out = wp.zeros_like(of.travel, requires_grad=True)

    def loss():
        frames.place(of, h, ahead)
        frames.advance(of, h, travel_out)
        value = sum((getattr(getattr(frames, k), n).numpy() * w).sum() for (k, n), w in weight.items())
        return value + (travel_out.numpy() * ends).sum()

    loss()
    frames.clear_gradients()
    for (k, n), w in weight.items():
        getattr(getattr(frames, k), n).grad.assign(w)
    travel_out.grad.assign(ends)
    frames.adj_advance(of, h, travel_out)
    frames.adj_place(of, h, ahead)
    arrays = {**vars(of.parameters), "time": of.time, "travel": of.travel, "control": of.control}
    for name, array in arrays.items():
        gradient, value = array.grad.numpy().copy(), array.numpy().copy()
        direction, e = rng.normal(size=value.shape), 1e-6
        pair = []
        for sign in (1.0, -1.0):
            array.assign(value + sign * e * direction)
            pair.append(loss())
        array.assign(value)
        difference = (pair[0] - pair[1]) / (2.0 * e)
        assert (gradient * direction).sum() == pytest.approx(difference, rel=1e-6), name


def test_parameters_return_into_the_scene():
    drives = (VelocityDrive("slide", "tool", 0.5, axis=(0, 1, 1)), VelocityDrive("jaw", "held", 0.3, axis=(1, 2, 0)))
    scene = scene_of(*drives, **TABLE)
    values = {name: a.numpy()[0] + 0.125 for name, a in motion_parameters(scene, 1, DEVICE).items()}
    new = with_motions(scene, values)
    assert new.obstacles[1].motion.positions == pytest.approx(POSITIONS + 0.125)
    assert new.obstacles[1].motion.rotations == pytest.approx(ROTATIONS + 0.125)
    assert [a.max_speed for a in new.actuators] == [0.625, 0.425]
    assert new.obstacles[1].surface_velocity == pytest.approx((0.225, 0.125, -0.075))
    assert {n: a.numpy()[0].tolist() for n, a in motion_parameters(new, 1, DEVICE).items()} == {
        n: v.tolist() for n, v in values.items()
    }


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"times": [0.0, 1.0, 1.0]}, "times must be at least two numbers that increase from 0"),
        ({"times": [0.1, 1.0]}, "times must be at least two numbers that increase from 0"),
        ({"positions": [[0, 0, 0]]}, "positions must have one row for each of the 2 times, got 1 rows"),
        ({"positions": None}, "give positions, rotations, or both"),
        ({"rotations": [[0, 0, 0], [0, 0, 1]]}, "rotations need a pivot"),
        ({"rotations": [[0, 0, 0], [0, 0, 2]], "pivot": (0, 0, 0)}, "more than a quarter turn"),
        ({"rotations": [0, 1], "pivot": (0, 0, 0)}, r"rotations must have shape \(n, 3\) in 3D"),
        ({"pivot": (0, 0)}, "pivot must have 3 coordinates"),
        ({"interpolation": "spline"}, "interpolation must be one of cubic, linear"),
        ({"beyond": "stop"}, "beyond must be one of error, hold, repeat"),
        ({"beyond": "repeat"}, "must end with the pose with which it begins"),
    ],
)  # fmt: skip
def test_a_bad_table_is_refused(change, text):
    good = {"times": [0.0, 1.0], "positions": [[0, 0, 0], [1, 0, 0]]}
    with pytest.raises(SceneError, match=text):
        PrescribedMotion(**good | change)


@pytest.mark.parametrize(
    ("drive", "text"),
    [
        ({"moves": "nothing"}, "there is no obstacle or constraint 'nothing'; the scene has held, still, tool"),
        ({"max_speed": 0.0}, "max_speed must be a positive number"),
        ({"kind": "screw"}, "kind must be one of translation, rotation, surface"),
        ({"axis": None}, "kind 'translation' needs an axis"),
        ({"axis": (1, 0)}, "VelocityDrive 'd' is 2D in a 3D scene"),
        ({"kind": "rotation"}, "needs a pivot"),
        ({"pivot": (0, 0, 0)}, "'translation' has no pivot"),
        ({"kind": "surface", "moves": "held"}, "constraint 'held' has no surface"),
    ],
)
def test_a_bad_drive_is_refused(drive, text):
    good = {"name": "d", "moves": "tool", "max_speed": 1.0, "axis": (1, 0, 0)}
    with pytest.raises(SceneError, match=text):
        scene_of(VelocityDrive(**good | drive))
