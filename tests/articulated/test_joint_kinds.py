"""Kinds of joints follow from one table, and the recipe that adds one, as CONTRIBUTING.md has it."""

import numpy as np
import pytest
import torch

import warpbots as wb
from warpbots.design.export.motion import moves_of
from warpbots.scene import JOINTS, ElementaryJoint, JointKind

UNIVERSAL = JointKind((ElementaryJoint("revolute", "x"), ElementaryJoint("revolute", "y")))
HEAVY = wb.Inertia(2.0, (0.01, -0.02, 0.03), np.diag([0.02, 0.03, 0.04]))
FRAME = {"position": (0.05, 0.1, 0.9), "rotation": ((0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6))}


@pytest.fixture
def universal(monkeypatch):
    """The recipe: one line in the table."""
    monkeypatch.setitem(JOINTS, "universal", UNIVERSAL)


def mechanism(kind, start, rate, **values):
    """A body on one joint."""
    body = wb.RigidBody(
        "body", wb.shapes.Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), inertia=HEAVY, position=(0.1, 0.2, 1)
    )
    joint = wb.Joint("joint", kind, None, "body", axis=(1, 2, -1), start=start, start_velocity=rate, **FRAME, **values)
    return wb.Scene([body], joints=[joint])


def chain(first, second, start, rate):
    """The same body on two joints with one velocity each, and a body without mass between them."""
    scene = mechanism("fixed", None, None)
    between = wb.RigidBody("between", None)
    joints = [
        wb.Joint(name, kind, parent, child, axis=axis, start=q, start_velocity=v, **FRAME)
        for (name, (kind, axis)), (parent, child), q, v in zip(
            {"one": first, "two": second}.items(), ((None, "between"), ("between", "body")), start, rate, strict=True
        )
    ]
    return wb.Scene([between, *scene.rigid], joints=joints)


def motion(scene, steps=20):
    """Coordinates and velocities over time."""
    sim = wb.Simulation(scene, wb.Articulated(), 5e-3)
    return sim.rollout(None, steps, observe=lambda s: torch.cat([s.q, s.qd], dim=-1)).observation


@pytest.mark.verification
def test_a_cylindrical_joint_is_a_prismatic_one_and_a_revolute_one_about_the_same_axis():
    axis = (1, 2, -1)
    one = motion(mechanism("cylindrical", (0.1, 0.4), (0.3, -0.5)))
    two = motion(chain(("prismatic", axis), ("revolute", axis), (0.1, 0.4), (0.3, -0.5)))
    torch.testing.assert_close(one, two, rtol=0.0, atol=1e-12 if one.dtype == torch.float64 else 2e-6)


@pytest.mark.verification
def test_a_kind_from_one_line_moves_as_its_elementary_joints(universal):
    one = motion(mechanism("universal", (0.2, 0.4), (0.3, -0.5)))
    two = motion(chain(("revolute", (1, 0, 0)), ("revolute", (0, 1, 0)), (0.2, 0.4), (0.3, -0.5)))
    torch.testing.assert_close(one, two, rtol=0.0, atol=1e-12 if one.dtype == torch.float64 else 2e-6)


@pytest.mark.parametrize("kind", ["cylindrical", "universal"])
def test_a_kind_from_one_line_is_in_files(kind, universal, tmp_path):
    """USD keeps all fields; MJCF and URDF move as MuJoCo's joints."""
    import mujoco

    scene = mechanism(kind, (0.2, 0.4), (0.3, -0.5), lower=(-0.5, -1.0), upper=(0.6, 1.2), damping=(0.1, 0.2))
    wb.usd.write(tmp_path / "scene.usda", scene)
    assert wb.usd.read(tmp_path / "scene.usda") == scene

    wb.robots.save(tmp_path / "scene.xml", scene)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    sim = wb.Simulation(scene, wb.Articulated(), 1e-3)
    found = sim.dynamics(sim.state()).acceleration[0].numpy()
    np.testing.assert_allclose(found, data.qacc, rtol=2e-5, atol=2e-5)

    plain = mechanism(kind, None, None, lower=(-0.5, -1.0), upper=(0.6, 1.2), damping=(0.1, 0.2))
    wb.robots.save(tmp_path / "scene.urdf", plain)
    joints = wb.robots.load(tmp_path / "scene.urdf").joints
    assert [j.kind for j in joints] == [part.type for part in JOINTS[kind].chain]
    assert [(j.lower, j.upper) for j in joints] == [((-0.5,), (0.6,)), ((-1.0,), (1.2,))]


def test_a_kind_from_one_line_is_swept_for_parts_that_print(universal):
    scene = mechanism("universal", None, None, lower=(-0.5, -1.0), upper=(0.6, 1.2))
    moves, assumed = moves_of(scene.joints[0])
    assert [(m.turns, len(m.axes)) for m in moves] == [(True, 1), (True, 1)]
    assert assumed is None


@pytest.mark.parametrize("kind", JOINTS)
def test_coordinates_that_reach_a_pose_are_found_again(kind):
    from warpbots.usd.rigid.joint_kinematics import displacement, solve

    rng = np.random.default_rng(3)
    axis = np.array([0.48, 0.64, -0.6])
    q = 0.5 * rng.normal(size=JOINTS[kind].coordinates)
    if JOINTS[kind].ball:
        q[-4:] /= np.linalg.norm(q[-4:]) * (np.sign(q[-1]) or 1.0)
    np.testing.assert_allclose(solve(kind, axis, displacement(kind, axis, q)), q, atol=1e-12)


def test_two_turns_are_found_by_least_squares(universal):
    from warpbots.usd.rigid.joint_kinematics import displacement, solve

    q = np.array([0.3, -0.7])
    np.testing.assert_allclose(
        solve("universal", np.eye(3)[0], displacement("universal", np.eye(3)[0], q)), q, atol=1e-10
    )


def test_impossible_kinds_are_refused():
    with pytest.raises(ValueError, match="a ball can only be the last elementary joint"):
        JointKind((ElementaryJoint("ball"), ElementaryJoint("revolute")))
    with pytest.raises(ValueError, match="type must be one of prismatic, revolute, ball, got 'screw'"):
        ElementaryJoint("screw")
    with pytest.raises(ValueError, match="the axis of a ball joint must be None, got 'x'"):
        ElementaryJoint("ball", "x")
