"""Robots hold a pose: the controls of a keyframe, servos that are put on joints, and what is said where they cannot."""

import mujoco
import numpy as np
import pytest

import warpbots as wb
from warpbots.scene import contacts_between

pytestmark = pytest.mark.filterwarnings("ignore:.*is not resolved by steps")

ARM = """<mujoco><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" range="-170 -20"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
    <body name="lower" pos="0 0 -.3"><joint name="elbow" axis="0 1 0" range="0 150"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.25" size=".02"/></body></body></worldbody>
  <actuator>
    <position name="a" joint="shoulder" kp="60" kv="3" ctrlrange="-2.9 -.4"/>
    <position name="b" joint="elbow" kp="90" kv="1.5" gear="-1.5" ctrlrange="-4 0"/>
  </actuator>
  <keyframe><key name="home" qpos="-.6 1" ctrl="-.7 -1.4"/><key name="far" qpos="-.6 1" ctrl="-9 9"/></keyframe>
</mujoco>"""

TABLE = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
  <body name="base" pos="0 0 .4"><freejoint name="root"/><geom type="box" size=".2 .15 .05" density="400"/>
  {}</body></worldbody></mujoco>"""
LEG = """<body name="thigh{0}" pos="{1} {2} -.05"><joint name="hip{0}" axis="0 1 0" range="-60 60"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.15" size=".015"/>
  <body name="shin{0}" pos="0 0 -.15"><joint name="knee{0}" axis="0 1 0" range="-150 -20"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.15" size=".01"/><geom type="sphere" pos="0 0 -.15" size=".02"/></body></body>"""
QUADRUPED = TABLE.format("".join(LEG.format(k, 0.18 * x, 0.12 * y) for k, (x, y) in enumerate(np.ndindex(2, 2)))
                         .replace("0.0 ", "-.18 "))  # fmt: skip


def final(scene, seconds=2.0, dt=0.002):
    sim = wb.Simulation(scene, wb.Articulated(), dt=dt)
    return sim, sim.rollout(None, round(seconds / dt)).final


def test_a_keyframe_brings_its_controls(write):
    """Servos end where MuJoCo's do at the controls of the keyframe, without any control here; u = 1 or -1 is the further
    end of the range, and controls beyond it are its end."""
    path = write(ARM)
    scene = wb.robots.load(path, keyframe="home", contact_points=0)
    a, b = scene.actuators
    assert (a.target, a.reach) == pytest.approx((-0.7, 2.2))
    assert (b.target, b.reach) == pytest.approx((1.4 / 1.5, 2.6 / 1.5))
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 3000)
    _, state = final(scene, 6.0)
    np.testing.assert_allclose(state.q[0].numpy(), data.qpos, atol=1e-5)
    assert abs(data.qpos[0] + 0.6) < 0.2
    far = wb.robots.load(path, keyframe="far", contact_points=0).actuators
    assert [m.target for m in far] == pytest.approx([-2.9, 0.0])
    assert wb.robots.load(path).actuators[0].target == pytest.approx(-1.65)


def test_controls_of_motors_in_a_keyframe_are_named(write, heard):
    text = ARM.replace('<position name="b" joint="elbow" kp="90" kv="1.5" gear="-1.5" ctrlrange="-4 0"/>',
                       '<motor name="b" joint="elbow"/>')  # fmt: skip
    wb.robots.load(write(text), keyframe="home")
    assert "actuator 'b': its control -1.4 in the keyframe; here u = 0 means no torque" in heard.text


def test_a_quadruped_without_motors_stands(write):
    """Its legs weigh grams, its servos hold 5 kg, and steps are of 2 ms: no joint gives way by more than 0.02 rad, which
    is what the default gains are for, and the base stays where it is."""
    pose = {f"{joint}{k}": angle for k in range(4) for joint, angle in (("hip", 0.7), ("knee", -1.4))}
    height = 0.05 + 2 * 0.15 * np.cos(0.7) + 0.02
    scene = wb.robots.hold_pose(
        wb.robots.load(write(QUADRUPED)), pose | {"root": (0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0)}
    )
    sim, state = final(scene)
    q = state.q[0].numpy()
    for name, angle in pose.items():
        assert q[sim.model.robot.coordinates[name]][0] == pytest.approx(angle, abs=0.02)
    root = q[sim.model.robot.coordinates["root"]]
    assert root[2] == pytest.approx(height, abs=0.01) and abs(root[6]) > np.cos(np.deg2rad(1.0) / 2)
    assert float(state.qd.abs().max()) < 0.01


def test_robots_are_set_down(write):
    """A quadruped with bent legs ends on its feet, one whose joint lies on its side too, and what is fixed stays; it
    rests where it was set down but for the depth at which contact carries it."""
    pose = {f"{joint}{k}": angle for k in range(4) for joint, angle in (("hip", 0.7), ("knee", -1.4))}
    bent = wb.robots.hold_pose(wb.robots.load(write(QUADRUPED)), pose)
    scene = wb.robots.set_down(bent, height=0.1)
    (root,) = (j for j in scene.joints if j.kind == "free")
    assert root.start[2] - 0.1 == pytest.approx(0.05 + 2 * 0.15 * np.cos(0.7) + 0.02, abs=1e-3)
    sim, state = final(wb.robots.set_down(bent), 0.5)
    assert float(state.q[0, 2]) == pytest.approx(root.start[2] - 0.1, abs=2e-3)
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), 0.2), points=500)
    sideways = ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))
    (lying,) = wb.robots.set_down(
        wb.Scene(
            (ball,), obstacles=[wb.floor()], joints=[wb.Joint("j", "free", None, "ball", rotation=sideways)],
            contacts=contacts_between({"ball": 0.0}, {"floor": 0.5}),
        )
    ).joints  # fmt: skip
    assert lying.start[:3] == pytest.approx((0.0, 0.2, 0.0), abs=2e-3)
    with pytest.raises(wb.SceneError, match="there is no floating robot with contact points"):
        wb.robots.set_down(wb.robots.load(write(ARM)))


def test_a_mesh_is_set_down_on_its_corner():
    """Contact points of a mesh are samples; none of few is at its lowest corner."""
    corners = np.array([[0, 0, -0.3], [0.2, 0, 0.1], [-0.1, 0.2, 0.1], [-0.1, -0.2, 0.1], [0, 0, 0.2]])
    lower, upper = ([[0, 2, 1], [0, 3, 2], [0, 1, 3]], [[4, 1, 2], [4, 2, 3], [4, 3, 1]])
    shape = wb.shapes.TriangleMesh(corners, np.array(lower + upper))
    turn = np.deg2rad(90.0) / 2.0
    joint = wb.Joint("j", "free", None, "top", (0, 0, 0), start=(0, 0, 5, np.sin(turn), 0, 0, np.cos(turn)))
    scene = wb.Scene(
        (wb.RigidBody("top", shape, points=8),), obstacles=[wb.floor()], joints=[joint],
        contacts=contacts_between({"top": 0.0}, {"floor": 0.5}),
    )  # fmt: skip
    (lying,) = wb.robots.set_down(scene, height=0.01).joints
    assert lying.start[2] == pytest.approx(0.21, abs=1e-9)  # y turns to z


def test_gains_hold_the_weight_of_what_a_joint_carries():
    """A bar of 2 kg sinks by 0.02 rad about its end, and comes back critically damped; a slider sinks by a millimetre."""
    bar = wb.RigidBody("bar", None, inertia=wb.Inertia(2.0, (0.5, 0, 0), (1e-3, 1e-3, 1e-3)))
    scenes = [
        wb.robots.hold_pose(wb.Scene((bar,), joints=[wb.Joint("j", kind, None, "bar", axis=axis)]))
        for kind, axis in (("revolute", (0, 1, 0)), ("prismatic", (0, 0, 1)))
    ]
    turn, slide = (final(scene)[1].q[0, 0] for scene in scenes)
    assert float(turn) == pytest.approx(0.02, rel=1e-2) and float(slide) == pytest.approx(-1e-3, rel=1e-6)
    servo = scenes[0].actuators[0]
    assert servo.stiffness == pytest.approx(2.0 * 9.81 * 0.5 / 0.02)
    assert servo.damping == pytest.approx(2.0 * np.sqrt(servo.stiffness * 2.0 * 0.5**2))


def test_what_hold_pose_keeps_and_replaces(write):
    """Servos keep gains and reach, torques give their names, joints without a motor stay free unless they are named."""
    text = ARM.replace('<position name="b" joint="elbow" kp="90" kv="1.5" gear="-1.5" ctrlrange="-4 0"/>', "")
    text = text.replace(' ctrl="-.7 -1.4"', "").replace(' ctrl="-9 9"', "")
    scene = wb.robots.load(write(text), contact_points=0)
    (held,) = wb.robots.hold_pose(scene, {"shoulder": -1.0}).actuators
    assert (held.name, held.stiffness, held.damping, held.target) == ("a", 60.0, 3.0, -1.0)
    assert held.reach == scene.actuators[0].reach
    both = wb.robots.hold_pose(scene, {"elbow": 0.4}, stiffness=5.0, damping=0.5)
    assert [(m.name, m.stiffness, m.damping, m.target) for m in both.actuators] == [("a", 5.0, 0.5, 0.0),
                                                                                    ("elbow", 5.0, 0.5, 0.4)]  # fmt: skip
    assert {j.name: j.start for j in both.joints} == {"shoulder": (0.0,), "elbow": (0.4,)}
    torque = wb.robots.load(write(text.replace("position", "motor").replace('kp="60" kv="3"', "")), contact_points=0)
    (servo,) = wb.robots.hold_pose(torque).actuators
    assert isinstance(servo, wb.actuators.Servo) and (servo.name, servo.joint, servo.target) == ("a", "shoulder", 0.0)
    with pytest.raises(wb.SceneError, match=r"there is no joint 'wrist'; the scene has shoulder, elbow"):
        wb.robots.hold_pose(scene, {"wrist": 0.0})
    with pytest.raises(wb.SceneError, match="stiffness must be a positive number"):
        wb.robots.hold_pose(scene, stiffness=0.0)


def test_a_start_outside_of_limits_is_said(write, heard):
    wb.robots.load(write(ARM))
    assert "starts outside the limits of 'shoulder', by up to 0.35 rad or m" in heard.text
    assert "keyframe='home', or hold_pose(scene, {...})" in heard.text
    heard.clear()
    wb.robots.load(write(ARM), keyframe="home")
    assert "outside of the limits" not in heard.text


def test_a_start_deep_in_a_wall_is_named_and_can_be_left_out(write):
    """A floor that stands upright, as in files for another axis: half of the robot is in it."""
    path = write(QUADRUPED.replace('type="plane"', 'type="plane" zaxis="0 1 0" pos="0 .5 0"'))
    sim = wb.Simulation(wb.robots.load(path), wb.Articulated(max_iterations=2), dt=0.002)
    with pytest.raises(wb.SimulationError, match=r"did not converge .* '(thigh|shin)\d' is 0\.7 m inside of 'floor'"):
        sim.rollout(None, 1)
    alone = wb.robots.load(path, surroundings=False, obstacles=[wb.floor()])
    assert [o.name for o in alone.obstacles] == ["floor"] and alone.obstacles[0].shape.normal == (0.0, 0.0, 1.0)
    final(alone, 0.1)
