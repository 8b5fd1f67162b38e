"""Obstacles and constraints that move, in files: kept to the last bit, played by any viewer, and read from time samples."""

import dataclasses

import numpy as np
import pytest
import torch
from pxr import Usd, UsdGeom, UsdPhysics
from usd_cases import findings, motion, moving_scene, numbers, prim, simple_scene, write_text

import warpbots as wb
from warpbots import usd
from warpbots.scene import Box, HalfSpace, Obstacle, PrescribedMotion, Scene, SceneError, VelocityDrive
from warpbots.solvers.obstacle_poses import obstacle_poses

TOOL = "/World/Obstacles/tool"


def shown(path, prim=TOOL, fps=60.0):
    """Function from a time to the transform of a prim, relative to its place in the scene, as a viewer shows it."""
    stage = Usd.Stage.Open(str(path))

    def at(time):
        world = UsdGeom.XformCache(time * fps).GetLocalToWorldTransform(stage.GetPrimAtPath(prim))
        return np.array(world).T

    return at


@pytest.mark.parametrize("extension", ["usda", "usdc"])
@pytest.mark.parametrize("dim", [2, 3])
def test_a_scene_that_moves_is_kept_to_the_last_bit(dim, extension, tmp_path):
    scene = moving_scene(dim)
    usd.write(tmp_path / f"moving.{extension}", scene)
    back = usd.read(tmp_path / f"moving.{extension}")
    for kind in ("obstacles", "constraints", "actuators"):
        assert getattr(back, kind) == getattr(scene, kind)
    assert back == scene
    usd.write(tmp_path / "again.usdc", back)
    assert usd.read(tmp_path / "again.usdc") == scene


def test_files_with_moving_obstacles_have_no_findings(tmp_path):
    usd.write(tmp_path / "moving.usdc", moving_scene(3))
    assert findings(tmp_path / "moving.usdc") == []


@pytest.mark.parametrize("interpolation", ["cubic", "linear"])
def test_viewers_show_the_motion_of_the_table(interpolation, tmp_path):
    """x = R (X - c) + c + d, at the poses of the table and at every frame in between."""
    table = motion(3, interpolation=interpolation, beyond="hold")
    tool = Obstacle(Box((0.1, 0.2, 0.3), (0.2, 0.4, 0.6)), name="tool", motion=table)
    usd.write(tmp_path / "tool.usda", Scene([], obstacles=[tool]))
    at, c = shown(tmp_path / "tool.usda"), np.array(table.pivot)
    for k, t in enumerate(table.times):
        R, p = rotation_matrix(table.rotations[k]), table.positions[k]
        np.testing.assert_allclose(at(t)[:3, :3], R, atol=1e-12)
        np.testing.assert_allclose(at(t)[:3, 3], c + p - R @ c, atol=1e-12)
    np.testing.assert_allclose(at(9.0), at(table.times[-1]))
    t = 7 / 60
    np.testing.assert_allclose(at(t)[:3, :3], played(table, t)[0], atol=1e-12)
    np.testing.assert_allclose(at(t)[:3, 3], played(table, t)[1], atol=1e-12)
    if interpolation == "linear":
        s = t / table.times[1]
        R = rotation_matrix((1 - s) * table.rotations[0] + s * table.rotations[1])
        np.testing.assert_allclose(at(t)[:3, :3], R, atol=1e-12)


def rotation_matrix(r):
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(r).as_matrix()


def test_the_obstacle_is_a_kinematic_body_and_the_stage_has_its_duration(tmp_path):
    usd.write(tmp_path / "moving.usda", moving_scene(3))
    stage = Usd.Stage.Open(str(tmp_path / "moving.usda"))
    for name, kinematic in {"tool": True, "shaker": True, "belt": True, "floor": False}.items():
        prim = stage.GetPrimAtPath(f"/World/Obstacles/{name}")
        assert prim.HasAPI(UsdPhysics.RigidBodyAPI) == kinematic
        if kinematic:
            assert UsdPhysics.RigidBodyAPI(prim).GetKinematicEnabledAttr().Get() is True
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 60.0)


def test_a_motion_is_removed_and_replaced_in_the_file(tmp_path):
    scene = moving_scene(3)
    usd.write(tmp_path / "a.usda", scene)
    back = usd.read(tmp_path / "a.usda")
    changed = [
        dataclasses.replace(o, motion=None if o.name == "tool" else o.motion, surface_velocity=None)
        for o in back.obstacles
    ]
    changed[2] = dataclasses.replace(changed[2], motion=motion(3, beyond="hold"))
    other = dataclasses.replace(back, obstacles=changed)
    usd.write(tmp_path / "b.usda", other)
    assert usd.read(tmp_path / "b.usda") == other
    np.testing.assert_array_equal(shown(tmp_path / "b.usda")(0.3), np.eye(4))
    assert "physxSurfaceVelocity:surfaceVelocity" not in (tmp_path / "b.usda").read_text()


@pytest.mark.parametrize("dim", [2, 3])
def test_files_in_centimetres_with_y_up(dim, tmp_path):
    """A file has the units and the axes of its stage; the scene that is read back is the same, up to rounding."""
    scene = moving_scene(dim)
    usd.write(tmp_path / "a.usda", scene)
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    if dim == 3:
        UsdGeom.SetStageUpAxis(stage, "Y")
    stage.Save()
    small = usd.read(tmp_path / "a.usda")
    table, other = scene.obstacles[1].motion, small.obstacles[1].motion
    turned = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    if dim == 3:
        np.testing.assert_allclose(other.positions, 0.01 * table.positions @ np.transpose(turned), rtol=1e-12)
        np.testing.assert_allclose(other.rotations, table.rotations @ np.transpose(turned), rtol=1e-12)
        np.testing.assert_allclose(other.pivot, 0.01 * np.array(turned) @ table.pivot, rtol=1e-12)
    usd.write(tmp_path / "b.usda", small)
    assert usd.read(tmp_path / "b.usda") == small


def test_a_table_without_times_names_the_attribute(tmp_path):
    usd.write(tmp_path / "a.usda", moving_scene(3))
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    stage.GetPrimAtPath(TOOL).RemoveProperty("warpbots:motion:times")
    stage.Save()
    with pytest.raises(SceneError, match=f"{TOOL}.*needs warpbots:motion:times"):
        usd.read(tmp_path / "a.usda")


def test_an_obstacle_that_is_also_free_is_refused(tmp_path):
    usd.write(tmp_path / "a.usda", moving_scene(3))
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    stage.GetPrimAtPath(TOOL).GetAttribute("physics:kinematicEnabled").Set(False)
    stage.Save()
    with pytest.raises(SceneError, match=f"{TOOL}.*cannot also move freely.*kinematicEnabled = true"):
        usd.read(tmp_path / "a.usda")


def rollout(scene, steps=12, **parameters):
    sim = wb.Simulation(scene, wb.MassSpring(0.05, damping=1e-3), dt=1 / 120, substeps=20)
    with torch.no_grad():
        return sim.rollout(torch.linspace(-1, 1, steps)[:, None].repeat(1, sim.channels), steps, **parameters)


def driven_scene(dim=3):
    """A block, a tool with a table and two drives, and one with drives alone."""
    axis = tuple(np.eye(dim)[0])
    obstacles, drives = [], []
    for k, name in enumerate(("tool", "free tool")):
        lower = np.full(dim, 0.3 + 0.4 * k)
        table = None if k else motion(dim, beyond="hold")
        obstacles.append(Obstacle(Box(tuple(lower), tuple(lower + 0.1)), name=name, motion=table))
        drives += [
            VelocityDrive(f"push {k}", name, 0.5 + k, axis),
            VelocityDrive(
                f"turn {k}", name, 3.0 - k, None if dim == 2 else tuple(numbers(3)), "rotation", tuple(lower)
            ),
        ]
    floor = Obstacle(HalfSpace((0.0,) * dim, tuple(np.eye(dim)[-1])))
    return simple_scene(dim, obstacles=[floor, *obstacles], actuators=drives)


@pytest.mark.parametrize("dim", [2, 3])
def test_frames_of_a_trajectory_are_the_poses_of_the_states(dim, tmp_path):
    """Rotation R and position p of each obstacle, from the table, the drives, and a parameter that was replaced."""
    scene = driven_scene(dim)
    sim = wb.Simulation(scene, wb.MassSpring(0.05, damping=1e-3), dt=1 / 120, substeps=20)
    speed = 1.7 * sim.parameter("drive_speed")
    trajectory = rollout(scene, drive_speed=speed)
    usd.write(tmp_path / "walk.usda", trajectory, every=2)
    at = {k: shown(tmp_path / "walk.usda", f"/World/Obstacles/{n}") for k, n in ((1, "tool"), (2, "free_tool"))}
    moved = 0.0
    for time, position, rotation in trajectory.obstacle_poses(2):
        for k, now in at.items():
            R, p = rotation[k], position[k]
            if dim == 2:
                S = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
                R, p = S @ R @ S.T, S @ p
            np.testing.assert_allclose(now(time)[:3, :3], R, atol=1e-12)
            np.testing.assert_allclose(now(time)[:3, 3], p, atol=1e-12)
            moved = max(moved, np.abs(p).max())
        np.testing.assert_array_equal(position[0], 0.0)
    assert moved > 0.05
    state = trajectory.final
    np.testing.assert_allclose(state.travel[0], (speed[0] * trajectory.control[0]).sum(0) / 120, atol=1e-12)
    assert usd.read(tmp_path / "walk_scene.usdc").obstacles == trajectory.designed.obstacles
    assert usd.read(tmp_path / "walk.usda") == usd.read(tmp_path / "walk_scene.usdc")
    assert findings(tmp_path / "walk.usda") == []


def test_a_trajectory_over_the_file_of_its_scene(tmp_path):
    """Reading the trajectory gives the scene, although its obstacles are elsewhere in the frames."""
    usd.write(tmp_path / "scene.usda", driven_scene())
    scene = usd.read(tmp_path / "scene.usda")
    usd.write(tmp_path / "walk.usda", rollout(scene), fps=24.0)
    assert usd.read(tmp_path / "walk.usda") == scene
    usd.write(tmp_path / "flat.usdz", rollout(scene))
    assert usd.read(tmp_path / "flat.usdz") == scene


def foreign(
    folder, text, kind="Cube", apis=("PhysicsCollisionAPI",), head='upAxis = "Z"\n metersPerUnit = 1', inside=""
):
    """The obstacle in a file of another program with one collider, whose transform `text` gives."""
    content = prim(kind, "Door", *apis, text=text + inside)
    return usd.read(write_text(folder / "door.usda", f"(\n {head}\n)\n{content}")).obstacles[0]


def ops(*order, **samples):
    """Transform ops in this order; each value is a text."""
    lines = [f"{kind} xformOp:{name.replace('__', ':')}{value}" for name, (kind, value) in samples.items()]
    names = ", ".join(f'"xformOp:{name}"' for name in order)
    return "\n".join([*lines, f"uniform token[] xformOpOrder = [{names}]\n"])


SLIDE = ops("translate", translate=("double3", ".timeSamples = { 24: (1, 0, 0), 36: (1, 2, 0), 60: (1, 2, 3) }"))


@pytest.mark.parametrize("kinematic", [True, False])
def test_an_animated_collider_is_an_obstacle_with_a_table(kinematic, tmp_path, heard):
    """Times in seconds after the start of the stage, displacements from the first sample, at which the shape is read."""
    apis = ("PhysicsCollisionAPI", *["PhysicsRigidBodyAPI"] * kinematic)
    text = SLIDE + "bool physics:kinematicEnabled = 1\n" * kinematic
    head = 'upAxis = "Z"\n metersPerUnit = 1\n startTimeCode = 12\n endTimeCode = 60\n timeCodesPerSecond = 24'
    door = foreign(tmp_path, text, apis=apis, head=head)
    assert door.shape == Box((0, -1, -1), (2, 1, 1))
    assert door.motion == PrescribedMotion(
        [0, 0.5, 1.0, 2.0], [[0, 0, 0], [0, 0, 0], [0, 2, 0], [0, 2, 3]], None, None, "linear", "hold"
    )
    late = foreign(tmp_path, text, apis=apis, head=head.replace("startTimeCode = 12", "startTimeCode = 30"))
    assert late.shape == door.shape
    np.testing.assert_allclose(late.motion.times, [0, 0.25, 1.25])
    np.testing.assert_allclose(late.motion.positions, [[0, 1, 0], [0, 2, 0], [0, 2, 3]])
    assert heard.messages == []


def test_units_and_axes_of_an_animated_collider(tmp_path):
    """In centimetres with y up, along y is upwards; time codes are 24 a second unless the file says otherwise."""
    door = foreign(tmp_path, SLIDE, head='upAxis = "Y"\n metersPerUnit = 0.01')
    np.testing.assert_allclose(door.motion.times, [0, 1.0, 1.5, 2.5])
    np.testing.assert_allclose(door.motion.positions[-1], [0.0, -0.03, 0.02], atol=1e-15)


def played(motion, t):
    """Transform of a table at the time t, by the kernel that solvers use."""
    R, p = obstacle_poses(Scene([], obstacles=[Obstacle(Box((0, 0, 0), (1, 1, 1)), motion=motion)]), [t])
    return R[0, 0], p[0, 0]


@pytest.mark.parametrize(
    "text",
    [
        ops("translate", "rotateZ", translate=("double3", " = (3, 0, 0)"), rotateZ=("float", ".timeSamples = { 0: 0, 48: 720 }")),
        ops("rotateXYZ", "translate", rotateXYZ=("float3", ".timeSamples = { 0: (0, 0, 0), 24: (90, 40, 10) }"), translate=("double3", " = (0.5, 0, 0)")),
        ops("translate:pivot", "orient", "scale", translate__pivot=("double3", " = (1, 2, 3)"), orient=("quatf", ".timeSamples = { 0: (1, 0, 0, 0), 24: (0, 0, 1, 0) }"), scale=("double3", " = (2, 2, 2)")),
        ops("transform", transform=("matrix4d", ".timeSamples = { 0: ((1,0,0,0),(0,1,0,0),(0,0,1,0),(0,0,0,1)), 24: ((0,1,0,0),(-1,0,0,0),(0,0,1,0),(5,0,0,1)) }")),
    ],
    ids=["turntable, two turns", "Euler angles about an offset", "quaternion", "matrix"],
)  # fmt: skip
def test_the_table_of_a_turning_collider_is_what_viewers_show(text, tmp_path):
    """Between time samples, too, where USD interpolates angles and quaternions and not rotation vectors."""
    door = foreign(tmp_path, text)
    stage = Usd.Stage.Open(str(tmp_path / "door.usda"))

    def world(code):
        return np.array(UsdGeom.XformCache(code).GetLocalToWorldTransform(stage.GetPrimAtPath("/Door"))).T

    place = world(0.0)
    for code in (0.0, 24.0) if "matrix4d" in text else np.linspace(0.0, 24.0, 9):
        R, p = played(door.motion, code / 24.0)
        expected = world(code) @ np.linalg.inv(place)
        np.testing.assert_allclose(R, expected[:3, :3], atol=2e-4)
        np.testing.assert_allclose(p, expected[:3, 3], atol=1e-3)


def test_an_animated_prim_above_moves_a_collider(tmp_path):
    """An Xform that turns, with a kinematic body below it; its two colliders become one obstacle each."""
    boxes = "".join(prim("Cube", f"Box_{k}", "PhysicsCollisionAPI") for k in range(2))
    body = prim("Xform", "Body", "PhysicsRigidBodyAPI", text="bool physics:kinematicEnabled = 1\n" + boxes)
    text = ops("rotateZ", rotateZ=("float", ".timeSamples = { 0: 0, 24: 90 }")) + body
    path = write_text(
        tmp_path / "a.usda", '(\n upAxis = "Z"\n metersPerUnit = 1\n)\n' + prim("Xform", "Arm", text=text)
    )
    found = usd.read(path).obstacles
    assert [o.name for o in found] == ["Box_0", "Box_1"]
    np.testing.assert_allclose(found[0].motion.rotations[-1], [0, 0, np.pi / 2], atol=1e-7)


def test_a_collider_that_turns_in_2d(tmp_path):
    """A 2D scene is the plane y = 0 of a stage with z up: there a turn from x to y is one from x to z, about -y."""
    usd.write(tmp_path / "a.usda", simple_scene(2, obstacles=[Obstacle(Box((0.2, 0.0), (0.3, 0.1)), name="tool")]))
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    xformable = UsdGeom.Xformable(stage.GetPrimAtPath(TOOL))
    move, turn = xformable.AddTranslateOp(), xformable.AddRotateYOp()
    for code, z, angle in ((0.0, 0.0, 0.0), (60.0, 0.5, -40.0)):
        move.Set((0.0, 0.0, z), code)
        turn.Set(angle, code)
    stage.Save()
    (tool,) = usd.read(tmp_path / "a.usda").obstacles
    assert tool.shape == Box((0.2, 0.0), (0.3, 0.1))
    np.testing.assert_allclose(tool.motion.rotations[-1], np.radians(40.0), rtol=1e-6)
    np.testing.assert_allclose(tool.motion.positions[-1], [0.0, 0.5], atol=1e-9)
    move.Set((0.0, 1.0, 0.0), 60.0)
    stage.Save()
    with pytest.raises(SceneError, match=f"{TOOL}.*leaves the plane of the 2D scene"):
        usd.read(tmp_path / "a.usda")


def test_a_new_motion_of_a_collider_of_another_program(tmp_path):
    """One that is animated, and one that is not; other content of the file stays."""
    content = prim("Cube", "Door", "PhysicsCollisionAPI", text=SLIDE) + prim("Cube", "Box", "PhysicsCollisionAPI")
    content += prim("Camera", "Eye")
    path = write_text(tmp_path / "room.usda", '(\n upAxis = "Z"\n metersPerUnit = 1\n)\n' + content)
    room = usd.read(path)
    new = [dataclasses.replace(o, motion=motion(3, beyond="hold")) for o in room.obstacles]
    for obstacles in (new, [dataclasses.replace(o, motion=None) for o in room.obstacles]):
        changed = dataclasses.replace(room, obstacles=obstacles)
        usd.write(tmp_path / "changed.usda", changed)
        assert usd.read(tmp_path / "changed.usda") == changed
    assert Usd.Stage.Open(str(tmp_path / "changed.usda")).GetPrimAtPath("/Eye")
    usd.write(tmp_path / "same.usda", room)
    assert usd.read(tmp_path / "same.usda") == room
    assert (tmp_path / "same.usda").read_text().count("timeSamples") == 1


def test_time_samples_that_stand_still_are_no_motion(tmp_path, heard):
    assert (
        foreign(tmp_path, ops("translate", translate=("double3", ".timeSamples = { 0: (1,0,0), 9: (1,0,0) }"))).motion
        is None
    )
    assert heard.messages == []


@pytest.mark.parametrize(
    ("text", "inside", "words"),
    [
        (ops("scale", scale=("double3", ".timeSamples = { 0: (1, 1, 1), 9: (2, 2, 2) }")), "", "/Door.*its size changes"),
        (ops("scale", scale=("double3", ".timeSamples = { 0: (1, 1, 1), 9: (1, 2, 1) }")), "", "/Door.*rotation, translation"),
        ("", prim("Cube", "Leaf", text=SLIDE), "/Door/Leaf.*moves relative to the collider /Door"),
    ],
)  # fmt: skip
def test_motions_that_no_obstacle_has_are_refused(text, inside, words, tmp_path):
    with pytest.raises(SceneError, match=words + ".*switch it off"):
        foreign(tmp_path, text, "Xform" if inside else "Cube", inside=inside)


def test_the_surface_velocity_of_physx(tmp_path, heard):
    """In axes of the body, or of the world; switched off; on a body that does not move."""
    apis = ("PhysicsCollisionAPI", "PhysicsRigidBodyAPI", "PhysxSurfaceVelocityAPI")
    turned = ops("rotateZ", rotateZ=("float", " = 90")) + "bool physics:kinematicEnabled = 1\n"
    speed = "vector3f physxSurfaceVelocity:surfaceVelocity = (30, 0, 0)\n"
    local, off = (f"bool physxSurfaceVelocity:surfaceVelocity{name} = 0\n" for name in ("LocalSpace", "Enabled"))
    head = 'upAxis = "Z"\n metersPerUnit = 0.01'
    cases = {"": (0, 0.3, 0), local: (0.3, 0, 0), off: None}
    for text, expected in cases.items():
        found = foreign(tmp_path, turned + speed + text, apis=apis, head=head).surface_velocity
        assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert heard.messages == []
    turns = "vector3f physxSurfaceVelocity:surfaceAngularVelocity = (0, 0, 90)\n"
    foreign(tmp_path, turned + speed + turns, apis=apis, head=head)
    assert "physxSurfaceVelocity:surfaceAngularVelocity = (0, 0, 90), which is not read" in str(heard.messages)
    spinning = turned.replace("xformOp:rotateZ = 90", "xformOp:rotateZ.timeSamples = { 0: 0, 24: 90 }")
    with pytest.raises(SceneError, match="/Door.*is in world axes, but the body turns.*LocalSpace = true"):
        foreign(tmp_path, spinning + speed + local, apis=apis, head=head)


def test_trajectories_over_animated_files(tmp_path):
    """A collider of another program keeps its animation; a drive moves it on, and reading gives the scene again."""
    content = prim("Cube", "Door", "PhysicsCollisionAPI", text=SLIDE + "double size = 2\n")
    content += prim(
        "Cube",
        "Box",
        "PhysicsCollisionAPI",
        text="double size = 2\n" + ops("translate", translate=("double3", " = (4, 0, 0)")),
    )
    head = '(\n upAxis = "Y"\n metersPerUnit = 0.1\n startTimeCode = 12\n endTimeCode = 60\n)\n'
    room = usd.read(write_text(tmp_path / "room.usda", head + content))
    drives = [VelocityDrive("a", "Door", 1.0, (0, 0, 1)), VelocityDrive("b", "Box", 1.0, (0, 1, 0))]
    for actuators in (drives, drives[1:]):
        scene = dataclasses.replace(simple_scene(), obstacles=room.obstacles, actuators=actuators, source=room.source)
        usd.write(tmp_path / "scene.usda", scene)
        scene = usd.read(tmp_path / "scene.usda")
        assert scene.obstacles == room.obstacles
        trajectory = rollout(scene)
        usd.write(tmp_path / "walk.usda", trajectory)
        back = usd.read(tmp_path / "walk.usda")
        assert back.obstacles == scene.obstacles and back == scene
        at = {k: shown(tmp_path / "walk.usda", f"/{name}") for k, name in enumerate(("Door", "Box"))}
        stage = usd_stage(tmp_path / "walk.usda")
        to_scene = np.diag([0.1, 0.1, 0.1, 1.0]) @ np.array([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
        places = {k: np.diag([1.0] * 4) for k in at}
        places[0][0, 3], places[1][0, 3] = 1.0, 4.0
        for time, position, rotation in trajectory.obstacle_poses(3):
            for k, now in at.items():
                D = np.eye(4)
                D[:3, :3], D[:3, 3] = rotation[k], position[k]
                np.testing.assert_allclose(to_scene @ now(time), D @ to_scene @ places[k], atol=1e-9)
        assert stage.GetStartTimeCode() == 0.0


def usd_stage(path):
    return Usd.Stage.Open(str(path))
