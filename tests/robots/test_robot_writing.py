"""Scenes written as MJCF and URDF: MuJoCo moves them as warpbots does, and our reader gives them back."""

import dataclasses
import importlib.util
import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
import trimesh
from cases import dynamics
from mechanisms import random_tree
from scipy.spatial.transform import Rotation

import warpbots as wb
from warpbots.robots.contact_pairs import solid_pairs
from warpbots.robots.written_joints import written_joints
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.solvers.articulated.joint_limits import limit_laws

TURN = Rotation.from_rotvec((0.3, -0.8, 0.5)).as_matrix()
ASKEW = Rotation.from_rotvec((-0.4, 0.2, 1.1)).as_matrix()
HEAVY = wb.Inertia(1.3, (0.02, -0.03, 0.05), TURN @ np.diag((0.011, 0.014, 0.017)) @ TURN.T)


def brick(half=0.05, **values):
    return wb.RigidBody(values.pop("name", "brick"), wb.shapes.Box((-half,) * 3, (half,) * 3), **values)


def mechanism(kind, **values):
    """A heavy body on a joint of this kind, all frames rotated, and a rod on a hinge of the body."""
    body = wb.RigidBody("body", None, inertia=HEAVY, position=(0.1, 0.2, 1.0), rotation=TURN)
    rod = wb.RigidBody("rod", wb.shapes.Capsule((0, 0, 0), (0.3, 0, 0), 0.02), position=(0.3, 0.2, 1.1), rotation=ASKEW)
    place = {"position": (0.05, 0.1, 0.9), "rotation": ASKEW} | values.pop("place", {})
    joint = wb.Joint("joint", kind, None, "body", axis=(1, 2, -1), **place, **values)
    hinge = wb.Joint("hinge", "revolute", "body", "rod", position=(0.28, 0.2, 1.1), axis=(0, 1, 0.2), start=0.3)
    return wb.Scene([body, rod], joints=[joint, hinge], gravity=(0.4, -0.3, -9.7), name="mechanism")


def starts(kind, rng):
    """A start of a joint, at coordinates that are not zero."""
    freedom, count = wb.scene.JOINTS[kind].freedom, wb.scene.JOINTS[kind].coordinates
    q = 0.4 * rng.normal(size=count)
    if kind in ("ball", "free"):
        q[-4:] /= np.linalg.norm(q[-4:])
    return {"start": tuple(q), "start_velocity": tuple(rng.normal(size=freedom))} if freedom else {}


def equations(scene, path):
    """Mass matrix and other terms of the equations of motion at the start: ours, and the file's in our velocities."""
    wb.robots.save(path, scene)
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)
    mujoco.mj_resetDataKeyframe(theirs, data, 0)
    mujoco.mj_forward(theirs, data)
    M, T = np.zeros((theirs.nv, theirs.nv)), to_file(scene, theirs)
    try:
        mujoco.mj_fullM(theirs, data, M)
    except TypeError:
        mujoco.mj_fullM(theirs, M, data.qM)
    solver = wb.Articulated()
    model = solver.build(scene)
    found = dynamics(model, solver.state(model))
    rest = T.T @ (data.qfrc_bias - data.qfrc_passive)
    return (found.mass_matrix[0], found.bias[0] - found.force[0], found.acceleration[0]), (
        T.T @ M @ T,
        rest,
        data.qacc @ T,
    )


def to_file(scene, theirs):
    """Matrix T from our velocities to the velocities of the file, column by column."""
    joints, columns = written_joints(scene), []
    for joint in joints:
        for unit in np.eye(len(joint.velocity)):
            one = dataclasses.replace(joint, velocity=unit)
            column = np.zeros(theirs.nv)
            for piece in one.pieces:
                at = theirs.joint(piece.name).dofadr[0]
                column[at : at + piece.freedom] = one.velocity_to_file(piece)
            columns.append(column)
    return np.array(columns).T


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


# --- motion -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_equations_of_motion_are_those_of_mujoco(seed, tmp_path):
    """Random trees of every kind of joint in random frames, with damping and armature."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 2 * seed + 2)
    joints = [dataclasses.replace(j, **starts(j.kind, rng)) for j in tree.joints]
    ours, theirs = equations(dataclasses.replace(tree, joints=joints), tmp_path / "tree.xml")
    assert relative(ours[0], theirs[0]) < 1e-11
    assert relative(ours[1], theirs[1]) < 1e-10
    assert relative(ours[2], theirs[2]) < 1e-9


def test_springs_rest_where_they_did(tmp_path):
    """Springs of each coordinate of slides and hinges, and of balls at the zero rotation."""
    for kind in ("revolute", "prismatic", "planar", "free_2d", "ball", "free"):
        rng = np.random.default_rng(3)
        freedom = wb.scene.JOINTS[kind].freedom
        neutral = [0.0] * freedom if kind in ("ball", "free") else rng.normal(size=freedom).tolist()
        straight = {"ball": 0, "free": 3}.get(kind, freedom)
        stiffness = [*rng.uniform(1.0, 5.0, straight), *[2.0] * (freedom - straight)]
        scene = mechanism(kind, stiffness=stiffness, neutral=neutral, **starts(kind, rng))
        ours, theirs = equations(scene, tmp_path / "springs.xml")
        assert relative(ours[1], theirs[1]) < 1e-10, kind


MOTIONS = [
    ("revolute", {}), ("prismatic", {}), ("planar", {}), ("translational", {}), ("ball", {}), ("free_2d", {}),
    ("free", {}), ("free away from its body", {}), ("free", {"damping": (0.1,) * 3 + (0.2,) * 3}), ("fixed", {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), MOTIONS)
def test_free_motion_converges_to_that_of_mujoco(kind, values, tmp_path):
    """Against MuJoCo's RK4 in steps so short that their error does not matter. Half the step leaves a fourth of the
    error, although the signals of motors jump."""
    rng = np.random.default_rng(8)
    kind, away, _ = kind.partition(" away")
    scene = mechanism(kind, **values, **starts(kind, rng))
    joint, hinge = scene.joints
    if kind == "free" and not values and not away:  # so that MuJoCo's free joint may have motors
        joint = dataclasses.replace(joint, position=scene.rigid[0].position)
    motors = [wb.actuators.Torque(f"m{k}", "joint", 0.5, k) for k in range(0 if away else joint.freedom)]
    motors = [wb.actuators.Torque("push", "hinge", 0.2), *motors]
    scene = dataclasses.replace(scene, actuators=motors, joints=[joint, hinge])
    wb.robots.save(tmp_path / "free.xml", scene)
    control = rng.uniform(-1.0, 1.0, (8, len(motors)))
    replay = wb.robots.replay_in_mujoco(tmp_path / "free.xml", scene, control, 0.04, timestep=5e-4, integrator="RK4")
    errors = []
    for substeps in (20, 40, 80):
        sim = wb.Simulation(scene, wb.Articulated(), dt=0.04, substeps=substeps)
        motion = sim.rollout(torch.as_tensor(control), len(control), observe=lambda s: s.q)
        ours = np.vstack([sim.state().q.numpy(), motion.observation[0].numpy()])
        theirs = signed(scene, ours, replay.q)
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-12)
        errors.append(np.abs(ours - theirs).max())
    assert errors[2] < 1e-3
    assert 3.5 < errors[0] / errors[1] < 4.5 and 3.5 < errors[1] / errors[2] < 4.5, errors


def signed(scene, ours, theirs):
    """Coordinates of a replay with quaternions of the signs of ours: a quaternion and its negative are one rotation."""
    theirs = theirs.copy()
    for joint in (w for w in written_joints(scene) if w.joint.kind in ("ball", "free")):
        last = slice(joint.coordinates.stop - 4, joint.coordinates.stop)
        theirs[:, last] *= np.sign((ours[:, last] * theirs[:, last]).sum(axis=1))[:, None]
    return theirs


def test_servos_follow_their_targets(tmp_path):
    """Controls u move targets by u times their reach; without a control a servo holds its target."""
    scene = mechanism("translational", damping=2.0, stiffness=5.0)
    servos = [
        wb.actuators.Servo("s0", "joint", 400.0, 20.0, 0.1, 0.3, 2),
        wb.actuators.Servo("s1", "hinge", 5.0, 0.3, -0.4, 0.8),
    ]
    scene = dataclasses.replace(scene, actuators=servos)
    wb.robots.save(tmp_path / "servo.xml", scene)
    control = np.array([[0.0, 0.0], [0.5, -0.7], [-1.0, 1.0], [1.0, 0.2]])
    replay = wb.robots.replay_in_mujoco(tmp_path / "servo.xml", scene, control, 0.1, timestep=2e-4, integrator="RK4")
    sim = wb.Simulation(scene, wb.Articulated("sdirk2"), dt=0.1, substeps=500)
    motion = sim.rollout(torch.as_tensor(control), 4, observe=lambda s: s.q)
    np.testing.assert_allclose(motion.observation[0].numpy(), replay.q[1:], atol=2e-5)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "servo.xml"))
    np.testing.assert_array_equal(model.key_ctrl[0], (0.1, -0.4))


def test_limits_are_springs_of_their_stiffness(tmp_path):
    """A weight on a slide rests m g / k behind its limit."""
    joint = wb.Joint("rail", "prismatic", None, "brick", lower=-0.1, limit_stiffness=800.0, limit_damping=60.0)
    scene = wb.Scene([brick()], joints=[joint])
    wb.robots.save(tmp_path / "limit.xml", scene)
    replay = wb.robots.replay_in_mujoco(tmp_path / "limit.xml", scene, np.zeros((1, 0)), 3.0)
    assert replay.q[-1, 0] == pytest.approx(-0.1 - 9.81 / 800.0, rel=2e-4)


# --- contact ----------------------------------------------------------------------------------------------------------------


def slope(angle, law, points, height=0.0, velocity=0.0):
    """A brick on an incline, and its contact points: corners at its bottom."""
    corners = np.array([(x, y, -0.05) for x in (-0.05, 0.05) for y in (-0.05, 0.05)])
    turn = Rotation.from_rotvec((0.0, angle, 0.0)).as_matrix()
    ground = wb.Obstacle(wb.shapes.HalfSpace((0, 0, 0), tuple(turn[:, 2])), name="ground")
    body = brick(points=wb.Cloud(corners, 1e-4) if points else 24)
    place = {"position": tuple(turn @ (0, 0, 0.05 + height)), "rotation": turn}
    body = dataclasses.replace(body, **place)
    joint = wb.Joint("base", "free", None, "brick", **place, start_velocity=(velocity, 0, 0, 0, 0, 0))
    return wb.Scene([body], joints=[joint], obstacles=[ground], contacts=[law])


@pytest.mark.parametrize("contact", ["points", "solids"])
def test_a_brick_rests_as_deep_as_under_the_law(contact, tmp_path):
    """On four corners of 1 cm^2 it sinks by m g / (4 k A)."""
    scene = slope(0.0, wb.Contact("brick", "ground", 1e7, 1e7, 0.5, 1e5), points=True)
    wb.robots.save(tmp_path / "brick.xml", scene, contact=contact)
    replay = wb.robots.replay_in_mujoco(tmp_path / "brick.xml", scene, np.zeros((1, 0)), 4.0, timestep=5e-4)
    assert replay.contacts[-1] == 4
    assert replay.q[-1, 2] == pytest.approx(-9.81 / (4 * 1e7 * 1e-4), rel=1e-2)


def test_a_sticking_brick_creeps_and_a_sliding_one_slides(tmp_path):
    """At m g sin / (4 c A) below the cone; beyond it with the acceleration g (sin - mu cos)."""
    for angle, friction in ((0.3, 0.8), (0.6, 0.3)):
        scene = slope(angle, wb.Contact("brick", "ground", 1e7, 3e7, friction, 1e6), points=True)
        wb.robots.save(tmp_path / "slope.xml", scene, contact="points")
        replay = wb.robots.replay_in_mujoco(tmp_path / "slope.xml", scene, np.zeros((20, 0)), 0.05, timestep=1e-4)
        x = replay.q[:, 0]
        if friction == 0.8:
            assert (x[-1] - x[-11]) / 0.5 == pytest.approx(9.81 * math.sin(angle) / (4 * 1e6 * 1e-4), rel=0.02)
        else:
            gained = (x[-1] - 2.0 * x[-6] + x[-11]) / 0.25**2
            assert gained == pytest.approx(9.81 * (math.sin(angle) - friction * math.cos(angle)), rel=0.03)


def test_restitution_is_that_of_a_bounce(tmp_path):
    """A brick that falls flat by h comes back to e^2 h, and a little higher, as the spring does not pull at its end."""
    scene = slope(0.0, wb.Contact("brick", "ground", 1e8, 1e10, restitution=0.6), points=True, height=0.2)
    wb.robots.save(tmp_path / "bounce.xml", scene, contact="points")
    replay = wb.robots.replay_in_mujoco(tmp_path / "bounce.xml", scene, np.zeros((60, 0)), 0.01, timestep=2e-5)
    after = replay.q[22:, 2]
    assert after.max() + 0.2 == pytest.approx(0.36 * 0.2, rel=0.08)


def test_points_meet_rounded_edges_where_articulated_does(tmp_path):
    """A point falls onto the rounded edge of a box: the path is the same, while sharp edges give another path."""
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), 0.01), points=wb.Cloud(np.zeros((1, 3)), 1e-4))
    block = wb.Obstacle(wb.shapes.Box((-0.1, -0.1, -0.2), (0.1, 0.1, 0.0)), name="block", friction=0.0)
    law = wb.Contact("ball", "block", 1e7, 0.0)
    joint = wb.Joint("base", "translational", None, "ball", position=(0.095, 0, 0.01))
    scene = wb.Scene(
        [dataclasses.replace(ball, position=(0.095, 0, 0.01))], joints=[joint], obstacles=[block], contacts=[law]
    )
    paths = {}
    for rounding in (0.2, 0.0):
        sim = wb.Simulation(scene, wb.Articulated(rounding=rounding), dt=0.01, substeps=50)
        motion = sim.rollout(None, 12, observe=lambda s: s.q)
        wb.robots.save(tmp_path / "edge.xml", scene, contact="points", rounding=rounding)
        replay = wb.robots.replay_in_mujoco(tmp_path / "edge.xml", scene, np.zeros((12, 0)), 0.01, timestep=1e-5)
        np.testing.assert_allclose(replay.q[1:], motion.observation[0].numpy(), atol=2e-4)
        paths[rounding] = replay.q
    assert np.abs(paths[0.2] - paths[0.0]).max() > 5e-3


def chain_scene(contacts, base="revolute"):
    """Three bricks on hinges that overlap each other, a loose brick in all of them, and a floor under their corners."""
    used = {law.points for law in contacts}

    def block(name, position, surface=None):
        return brick(0.06, name=name, position=position, surface=surface, points=8 * bool({name, surface} & used))

    names = ("a", "b", "c")
    bodies = [block(n, (0.05 * k, 0.01 * k, 0.05 + 0.003 * k), "arm") for k, n in enumerate(names)]
    kinds = zip(names, (base, "revolute", "revolute"), (None, "a", "b"), strict=True)
    joints = [wb.Joint(n, kind, p, n, axis=(0, 1, 0)) for n, kind, p in kinds]
    loose = block("loose", (0.052, 0.03, 0.058))
    return wb.Scene([*bodies, loose], joints=joints, obstacles=[wb.floor()], contacts=contacts)


def meetings(path):
    """Pairs of bodies, 'world' among them, with contacts in MuJoCo."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    bodies = [[model.body(model.geom_bodyid[g]).name for g in pair] for pair in data.contact.geom]
    return {frozenset(pair) for pair in bodies}


def test_exactly_the_pairs_that_touch_here_touch_in_mujoco(tmp_path):
    law = wb.Contact("arm", "floor", 1e6)
    for contacts, expected in (
        ([law], {"a world", "b world", "c world"}),
        ([law, wb.Contact("arm", "loose", 1e6)], {"a world", "b world", "c world", "a loose", "b loose", "c loose"}),
        ([law, wb.Contact("loose", "b", 1e6)], {"a world", "b world", "c world", "b loose"}),
        ([wb.Contact("arm", "arm", 1e6), wb.Contact("loose", "floor", 1e6)], {"a c", "loose world"}),
        ([wb.Contact("a", "b", 1e6), law], {"a b", "a world", "b world", "c world"}),
    ):
        for contact in ("solids", "points"):
            wb.robots.save(tmp_path / "chain.xml", chain_scene(contacts), contact=contact)
            found = {" ".join(sorted(pair)) for pair in meetings(tmp_path / "chain.xml")}
            assert found == expected, contact


def test_neighbours_of_a_fixed_base_do_not_touch_it(tmp_path):
    """MuJoCo would let them touch, as it lets bodies touch the world."""
    scene = chain_scene([wb.Contact("arm", "arm", 1e6)], base="fixed")
    for contact in ("solids", "points"):
        wb.robots.save(tmp_path / "chain.xml", scene, contact=contact)
        assert meetings(tmp_path / "chain.xml") == {frozenset(("a", "c"))}


# --- reading back -----------------------------------------------------------------------------------------------------------


def world_axis(joint):
    return np.array(joint.rotation) @ joint.axis


def assert_same_robot(found, scene, atol=1e-9):
    """Bodies with their frames and inertia; joints with axes, limits, springs; motors; gravity."""
    assert {b.name for b in scene.rigid} <= {b.name for b in found.rigid}
    there = {b.name: b for b in found.rigid}
    for body in scene.rigid:
        own, other = body_inertia(body), body_inertia(there[body.name])
        np.testing.assert_allclose(there[body.name].position, body.position, atol=atol)
        np.testing.assert_allclose(there[body.name].rotation, body.rotation, atol=atol)
        assert (own is None) == (other is None)
        if own is not None:
            assert other.mass == pytest.approx(own.mass, rel=1e-12)
            np.testing.assert_allclose(other.center, own.center, atol=atol)
            np.testing.assert_allclose(other.moments, own.moments, rtol=0, atol=atol * np.abs(own.moments).max())
    joints = {j.name: j for j in found.joints}
    for joint in (j for j in scene.joints if j.kind in ("revolute", "prismatic")):
        other = joints[joint.name]
        assert (other.kind, other.child) == (joint.kind, joint.child)
        np.testing.assert_allclose(world_axis(other), world_axis(joint), atol=atol)
        np.testing.assert_allclose(other.position, joint.position, atol=atol)
        for field in ("start", "start_velocity", "stiffness", "neutral", "damping", "armature", "lower", "upper"):
            default = 0.0 if field.startswith("start") else None
            one, two = (getattr(j, field) if getattr(j, field) is not None else default for j in (joint, other))
            if field == "neutral" and not joint.stiffness[0]:
                continue
            if one is None:
                assert two is None
            else:
                np.testing.assert_allclose(two, np.broadcast_to(one, np.shape(two)), rtol=1e-12, atol=atol)
        if joint.lower is not None:
            (stiffness,), (damping,) = limit_laws(scene, joint)
            assert other.limit_stiffness == pytest.approx(stiffness, rel=1e-9)
            assert other.limit_damping == pytest.approx(damping, rel=1e-9)
    np.testing.assert_allclose(found.gravity, scene.gravity)


def arm(**joint):
    """A robot with the usual content: shapes of every kind, limits, springs, both kinds of motors, a floor."""
    mesh = trimesh.creation.icosphere(subdivisions=1, radius=0.04)
    turned = wb.shapes.Posed(wb.shapes.Box((-0.03, -0.02, -0.01), (0.03, 0.02, 0.01)), (0.1, 0, 0), TURN)
    fore = wb.shapes.Union((wb.shapes.Capsule((0, 0, 0), (0.2, 0, 0.1), 0.02), turned))
    bodies = [
        wb.RigidBody("base", wb.shapes.Cylinder((0, 0, 0), (0, 0, 0.1), 0.05)),
        wb.RigidBody("upper", wb.shapes.Capsule((0, 0, 0), (0.2, 0, 0), 0.03), position=(0, 0, 0.1), rotation=TURN, color=(0.2, 0.4, 0.6)),
        wb.RigidBody("fore", fore, 700.0, position=(0.2, 0, 0.2), rotation=ASKEW, points=20, surface="skin"),
        wb.RigidBody("hand", wb.shapes.TriangleMesh(mesh.vertices, mesh.faces), position=(0.4, 0, 0.3), points=20, surface="skin"),
    ]  # fmt: skip
    joints = [
        wb.Joint("base", "fixed", None, "base"),
        wb.Joint("turn", "revolute", "base", "upper", (0, 0, 0.1), TURN, axis=(1, 1, 0), lower=-1.0, upper=2.0,
                 damping=0.1, limit_stiffness=50.0, limit_damping=0.7, start=0.2, start_velocity=0.5),
        wb.Joint("rail", "prismatic", "upper", "fore", (0.2, 0, 0.2), axis=(0, 0, 1), upper=0.1, **joint),
        wb.Joint("wrist", "revolute", "fore", "hand", (0.4, 0, 0.3), axis=(0, 1, 0), start=-0.3),
    ]  # fmt: skip
    motors = [wb.actuators.Torque("turn", "turn", 3.0), wb.actuators.Torque("rail", "rail", 7.0)]
    return wb.Scene(
        bodies, motors, [wb.floor(-0.5)], joints=joints, name="arm",
        contacts=[wb.Contact("skin", "floor", 1e7, 1e8, 0.7, 1e5)],
    )  # fmt: skip


def test_mjcf_is_read_back_as_it_was(tmp_path, heard):
    scene = arm(stiffness=40.0, neutral=0.03, armature=0.02, damping=0.3)
    servo = wb.actuators.Servo("wrist", "wrist", 8.0, 0.4, 0.2, 0.9)
    scene = dataclasses.replace(scene, actuators=[*scene.actuators, servo])
    wb.robots.save(tmp_path / "arm.xml", scene)
    found = wb.robots.load(tmp_path / "arm.xml", keyframe="start")
    assert not heard.messages
    assert_same_robot(found, scene)
    assert found.name == "arm" and {p.name for p in tmp_path.iterdir()} == {"arm.xml", "arm_hand.obj"}
    assert found.actuators[:2] == scene.actuators[:2]
    for field in ("stiffness", "damping", "target", "reach"):
        assert getattr(found.actuators[2], field) == pytest.approx(getattr(servo, field), rel=1e-12)
    assert [(c.solid, c.friction) for c in found.contacts] == [("floor", 0.7)]
    shapes = {b.name: b.shape for b in found.rigid}
    np.testing.assert_allclose(shapes["base"].bounds, scene.rigid[0].shape.bounds, atol=1e-12)
    assert isinstance(shapes["upper"], wb.shapes.Capsule) and isinstance(shapes["fore"], wb.shapes.Union)
    np.testing.assert_allclose(shapes["fore"].bounds, scene.rigid[2].shape.bounds, atol=1e-12)
    assert shapes["hand"].volume == pytest.approx(scene.rigid[3].shape.volume, rel=1e-5)
    assert found.rigid[1].color == pytest.approx((0.2, 0.4, 0.6), rel=1e-6)


def test_urdf_is_read_back_as_it_was(tmp_path, heard):
    scene = arm(damping=0.3)
    wb.robots.save(tmp_path / "arm.urdf", scene)
    said = heard.text
    for word in (
        "start of joints: 'turn', 'wrist'",
        "limits: 'turn', 'rail'",
        "obstacle 'floor'",
        "contact 'skin on floor'",
    ):
        assert word in said
    found = wb.robots.load(tmp_path / "arm.urdf")
    plain = [dataclasses.replace(j, start=None, start_velocity=None) for j in scene.joints]
    limits = {j.name: {f: getattr(j, f) for f in ("limit_stiffness", "limit_damping")} for j in found.joints}
    plain = [dataclasses.replace(j, **limits[j.name]) if j.lower else j for j in plain]
    assert_same_robot(found, dataclasses.replace(scene, joints=plain))
    assert [(a.name, a.max_torque) for a in found.actuators] == [("turn", 3.0), ("rail", 7.0)]
    assert len(found.rigid[2].shape.shapes) == 4


def test_chains_of_urdf_move_as_the_joints_that_they_are(tmp_path, heard):
    """Planar, translational and free_2d joints, with massless links in between."""
    for kind in ("planar", "translational", "free_2d"):
        scene = mechanism(kind, damping=0.2)
        wb.robots.save(tmp_path / "chain.urdf", scene)
        found = wb.robots.load(tmp_path / "chain.urdf")
        assert [j.name for j in found.joints if j.kind != "fixed"][:2] == ["joint/x", "joint/y"]
        matrices = []
        for one in (scene, found):
            solver = wb.Articulated()
            model = solver.build(one)
            state = solver.state(model)
            state.q.assign(np.full(state.q.shape, 0.3))
            matrices.append(dynamics(model, state).mass_matrix[0])
        np.testing.assert_allclose(matrices[1], matrices[0], atol=1e-10)


def test_a_floating_urdf_floats(tmp_path):
    scene = wb.Scene([brick(position=(0.1, 0.2, 0.3), rotation=TURN)])
    wb.robots.save(tmp_path / "brick.urdf", scene)
    found = wb.robots.load(tmp_path / "brick.urdf")
    assert [j.kind for j in found.joints] == ["free"]
    np.testing.assert_allclose(found.joints[0].start[:3], (0.1, 0.2, 0.3), atol=1e-12)


NEWTON = importlib.util.find_spec("newton")
ASSETS = ("nv_ant.xml", "nv_humanoid.xml", "quadruped.urdf", "cartpole.urdf", "tabletop.xml")


@pytest.mark.skipif(NEWTON is None, reason="needs the robots that come with newton")
@pytest.mark.parametrize("asset", ASSETS)
def test_robots_of_others_survive_both_ways(asset, tmp_path):
    scene = wb.robots.load(Path(NEWTON.origin).parent / "examples/assets" / asset, ignore_loops=True)
    wb.robots.save(tmp_path / "copy.xml", scene)
    found = wb.robots.load(tmp_path / "copy.xml", keyframe="start")
    assert_same_robot(found, scene)
    touching = [{(frozenset((p.first, p.second)), p.friction) for p in solid_pairs(s)} for s in (found, scene)]
    assert touching[0] == touching[1]


# --- what is refused, and what is said --------------------------------------------------------------------------------------


def test_hollows_are_named(tmp_path, heard):
    bowl = trimesh.creation.annulus(0.05, 0.1, 0.04)
    ring = wb.shapes.TriangleMesh(bowl.vertices, bowl.faces)
    scene = wb.Scene(
        [wb.RigidBody("ring", ring, points=10)], obstacles=[wb.floor()], contacts=[wb.Contact("ring", "floor", 1e6)]
    )
    wb.robots.save(tmp_path / "ring.xml", scene)
    assert "convex hulls, which are larger than the meshes of 'ring' (by 3" in heard.text
    heard.clear()
    wb.robots.save(tmp_path / "ring.xml", dataclasses.replace(scene, contacts=(), bodies=[wb.RigidBody("ring", ring)]))
    assert not heard.messages


BALL = wb.SoftBody("jelly", wb.shapes.Sphere((0, 0, 1), 0.1), wb.Material(1e4))


@pytest.mark.parametrize(
    ("name", "scene", "said"),
    [
        ("a.txt", wb.Scene([brick()]), r"a\.txt: robots are written as MJCF \(\.xml, \.mjcf\) or URDF \(\.urdf\), got \.txt"),
        ("a.xml", wb.Scene([brick(), BALL]), r"the scene has SoftBody 'jelly'; leave them out, or write USD"),
        ("a.xml", mechanism("ball", damping=(0.1, 0.2, 0.3)), r"Joint 'joint': a ball has the same damping about all axes"),
        ("a.urdf", mechanism("ball"), r"Joint 'joint': URDF has no ball joints like it; write MJCF"),
        ("a.urdf", mechanism("revolute", armature=0.1), r"Joint 'joint': URDF has no armature, got armature \(0\.1,\); write"),
        ("a.urdf", mechanism("revolute", stiffness=0.1), r"Joint 'joint': URDF has no springs"),
        ("a.urdf", wb.Scene([brick(name="world")]), r"RigidBody 'world': in URDF this is the name of the world; rename it"),
        ("a.xml", wb.Scene([brick()], obstacles=[wb.Obstacle(wb.shapes.Heightfield((0, 0), 1.0, np.zeros((2, 2))))]),
         r"Obstacle 'floor': URDF and MJCF files are not written with a Heightfield; give it a Box"),
        ("a.xml", wb.Scene([brick(name="world")]), r"cannot be written as MJCF; MuJoCo says: .*world"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_and_leaves_nothing(name, scene, said, tmp_path):
    with pytest.raises(wb.SceneError, match=said):
        wb.robots.save(tmp_path / name, scene)
    assert not list(tmp_path.iterdir())


def test_a_servo_without_reach_is_refused(tmp_path):
    scene = dataclasses.replace(arm(), actuators=[wb.actuators.Servo("stay", "wrist", 5.0, reach=0.0)])
    with pytest.raises(
        wb.SceneError, match=r"Servo 'stay': .* got a reach of 0; give it a reach above 0, or give joint 'wrist'"
    ):
        wb.robots.save(tmp_path / "arm.xml", scene)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"contact": "meshes"}, "contact must be 'solids' or 'points', got 'meshes'"),
        ({"timestep": 0.0}, r"timestep must be positive \[s\]"),
        ({"rounding": 1.0}, r"rounding in \[0, 1\) \[1\], got 0\.002 and 1"),
    ],
)
def test_options_are_checked(options, said, tmp_path):
    with pytest.raises(wb.SceneError, match=said):
        wb.robots.save(tmp_path / "arm.xml", arm(), **options)


def test_all_files_are_written_or_none(tmp_path, monkeypatch):
    """The disk is full at the second of two files: meshes and robot are as they were."""
    wb.robots.save(tmp_path / "arm.xml", arm())
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    plain, written = Path.write_bytes, []

    def full(self, content):
        written.append(self.suffix)
        if self.suffix == ".xml":
            raise OSError(28, "No space left on device")
        return plain(self, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    bigger = dataclasses.replace(
        arm().rigid[3], shape=wb.shapes.TriangleMesh(2.0 * arm().rigid[3].shape.vertices, arm().rigid[3].shape.faces)
    )
    scene = dataclasses.replace(arm(), bodies=[*arm().rigid[:3], bigger])
    with pytest.raises(OSError, match=r"cannot write .*arm\.xml: No space left on device; nothing was changed"):
        wb.robots.save(tmp_path / "arm.xml", scene)
    assert written == [".obj", ".xml"]
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_replay_of_another_scene_is_refused(tmp_path):
    wb.robots.save(tmp_path / "arm.xml", arm())
    with pytest.raises(wb.SceneError, match=r"has the joints \['turn', 'rail', 'wrist'\]"):
        wb.robots.replay_in_mujoco(tmp_path / "arm.xml", wb.Scene([brick()]), np.zeros((1, 0)), 0.1)
    with pytest.raises(wb.SceneError, match=r"control must have shape \(steps, 2\), got \(4, 3\)"):
        wb.robots.replay_in_mujoco(tmp_path / "arm.xml", arm(), np.zeros((4, 3)), 0.1)
    with pytest.raises(wb.SceneError, match=r"times must be positive \[s\], got 0"):
        wb.robots.replay_in_mujoco(tmp_path / "arm.xml", arm(), np.zeros((4, 2)), 0.0)
