"""Robots from files: the same equations of motion as MuJoCo's, the same names, and nothing left out in silence."""

import dataclasses
import importlib.util
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
import warp as wp
from cases import dynamics

import warpbots as wb
from warpbots.robots.mujoco_source import read

INERTIAL = '<inertial pos=".02 -.01 .03" mass="{}" diaginertia=".011 .013 .017" quat=".9 .1 .3 -.2"/>'

EVERY_JOINT = f"""
<mujoco model="zoo">
  <compiler angle="degree"/>
  <option gravity=".3 -.2 -9.7"/>
  <worldbody>
    <body name="floating" pos="1 2 3" quat=".5 .2 -.4 .7">
      <freejoint name="root"/>{INERTIAL.format(1.3)}
      <body name="arm" pos=".1 .2 .3" euler="10 20 30">
        <joint name="ball" type="ball" pos=".05 -.04 .1" damping=".03" stiffness=".7" armature=".004"/>
        {INERTIAL.format(0.7)}
        <body name="slide_after" pos=".3 0 -.1" euler="-40 15 5">
          <joint name="rail" type="slide" axis="1 2 -1" pos=".2 .1 0" ref=".15" springref=".05" stiffness="3"
                 damping=".2" range="-.1 .4"/>
          <joint name="turn" type="hinge" axis="0 1 3" pos="-.1 .06 .02" ref="25" springref="-10" stiffness=".4"/>
          <joint name="twist" type="hinge" axis="1 0 .2" pos=".03 .0 .07" ref="-35" armature=".02"/>
          {INERTIAL.format(0.4)}
          <body name="welded" pos="0 .1 .2" euler="0 90 0">{INERTIAL.format(0.2)}
            <body name="tip" pos=".1 0 0"><joint type="hinge" axis="0 1 0"/>{INERTIAL.format(0.1)}</body>
          </body>
        </body>
      </body>
    </body>
    <body name="hanging" pos="0 0 2" euler="45 0 0">
      <joint name="shoulder" type="ball" stiffness="1"/>
      <joint name="pump" type="slide" axis="0 1 1"/>{INERTIAL.format(0.9)}
    </body>
    <body name="post" pos="0 3 0">{INERTIAL.format(2.0)}
      <body name="gate" pos=".2 0 0"><joint name="hinge" axis="0 0 1" ref="60"/>{INERTIAL.format(0.5)}</body>
    </body>
  </worldbody>
</mujoco>
"""

LINK = """
<link name="{0}">
  <inertial>
    <origin xyz=".01 .02 -.03" rpy=".1 .2 .3"/><mass value="{1}"/>
    <inertia ixx=".02" ixy=".001" ixz="-.002" iyy=".03" iyz=".003" izz=".025"/>
  </inertial>
  <visual><geometry><mesh filename="package://nowhere/pretty.dae"/></geometry></visual>
  <collision><origin xyz="0 0 -.1"/><geometry><sphere radius=".05"/></geometry></collision>
</link>"""
JOINT = """
<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz=".1 .2 -.3" rpy="{4}"/>
  <axis xyz="{5}"/>{6}</joint>"""
URDF = (
    '<robot name="arm">'
    + "".join(LINK.format(n, m) for n, m in (("base", 3.0), ("upper", 1.0), ("lower", 0.8), ("hand", 0.3), ("rod", 0.2)))
    + '<link name="empty"/>'
    + JOINT.format("shoulder", "revolute", "base", "upper", "1 2 3", "0 1 0",
                   '<limit lower="-1" upper="2" effort="40" velocity="3"/><dynamics damping=".3"/>')
    + JOINT.format("dummy", "continuous", "upper", "empty", ".3 0 0", "1 0 0", "")
    + JOINT.format("elbow", "continuous", "empty", "lower", "0 0 .4", "0 1 1", '<limit effort="7" velocity="1"/>')
    + JOINT.format("wrist", "fixed", "lower", "hand", "0 .5 0", "0 0 1", "")
    + JOINT.format("gripper", "prismatic", "hand", "rod", "0 0 1", "1 0 0",
                   '<limit lower="0" upper=".1" effort="0" velocity="1"/>')
    + "</robot>"
)  # fmt: skip

BOX = "<geom type='box' size='.1 .1 .1' {}/>"


def mjcf(body, rest=""):
    return f"<mujoco><worldbody>{body}</worldbody>{rest}</mujoco>"


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def compare(path, seed=0, control=0.0, to_mujoco=None, **options):
    """Greatest differences between warpbots and MuJoCo at random coordinates and velocities, which are the same numbers
    in both but for the order of quaternions: places, mass matrix, bias, accelerations."""
    scene = wb.robots.load(path, contact_points=0, **options)
    scene = dataclasses.replace(scene, joints=[dataclasses.replace(j, lower=None, upper=None) for j in scene.joints])
    solver = wb.Articulated()
    model = solver.build(scene, 1, "cpu")
    robot, source = model.robot, read(path)
    theirs = source.model
    off = mujoco.mjtDisableBit
    theirs.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_EQUALITY | off.mjDSBL_FRICTIONLOSS
    data = mujoco.MjData(theirs)
    rng = np.random.default_rng(seed)
    q, v = 0.7 * rng.normal(size=len(robot.start)), rng.normal(size=robot.freedom)
    order = np.zeros(theirs.nv, dtype=int)
    for j, name in enumerate(source.joints):
        at, dofs = robot.coordinates[name], robot.velocities[name]
        own = q[at]
        if source.joint_kind(j) in ("ball", "free"):
            own[-4:] /= np.linalg.norm(own[-4:])
        turned = own.copy()
        if source.joint_kind(j) in ("ball", "free"):
            turned[-4:] = np.roll(own[-4:], 1)
        a, b = theirs.jnt_qposadr[j], theirs.jnt_dofadr[j]
        data.qpos[a : a + len(own)] = turned
        data.qvel[b : b + dofs.stop - dofs.start] = v[dofs]
        order[b : b + dofs.stop - dofs.start] = np.arange(dofs.start, dofs.stop)
    if to_mujoco is not None:
        data.ctrl[:] = to_mujoco
    mujoco.mj_forward(theirs, data)
    M = np.zeros((theirs.nv, theirs.nv))
    try:
        mujoco.mj_fullM(theirs, data, M)
    except TypeError:
        mujoco.mj_fullM(theirs, M, data.qM)
    state = solver.state(model)
    state.q.assign(q[None])
    state.qd.assign(v[None])
    u = wp.array(np.broadcast_to(control, (1, model.channels)), dtype=wp.float64, device="cpu")
    ours = dynamics(model, state, u)
    readings = solver.readings(model)
    solver.sense(model, state, u, readings)
    named = [(robot.bodies.index(name), k) for k, name in enumerate(source.bodies) if k]
    mine, yours = map(list, zip(*named, strict=True))
    turns = data.xmat.reshape(-1, 3, 3)[yours]
    bias = data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator
    return {
        "place": np.abs(readings.position.numpy()[0, mine] - data.xpos[yours]).max(),
        "turn": np.abs(readings.rotation.numpy()[0, mine] - turns).max(),
        "mass": relative(ours.mass_matrix[0][np.ix_(order, order)], M),
        "bias": relative((ours.bias - ours.force)[0][order], bias),
        "acceleration": relative(ours.acceleration[0][order], data.qacc),
    }


def check(path, **options):
    for seed in range(3):
        found = compare(path, seed, **options)
        assert max(found.values()) < 1e-9, found


def drop(scene, seconds=1.0, dt=0.005):
    """The last state of a fall at rest controls, and its readings."""
    sim = wb.Simulation(scene, wb.Articulated(), dt=dt)
    state = sim.rollout(None, round(seconds / dt)).final
    return sim, state, sim.sense(state)


# --- the same motion ---------------------------------------------------------------------------------------------------


def test_every_kind_of_joint_moves_as_in_mujoco(write):
    """References, anchors, several joints in a body, nested frames, springs, dampers and rotors."""
    check(write(EVERY_JOINT))


def test_urdf_moves_as_in_mujoco(write):
    """Fixed links are kept, as is a link without mass between two joints."""
    path = write(URDF, "arm.urdf")
    check(path)
    scene = wb.robots.load(path)
    assert [b.name for b in scene.bodies] == ["base", "upper", "empty", "lower", "hand", "rod"]
    kinds = {j.child: j.kind for j in scene.joints}
    assert kinds == {"base": "fixed", "upper": "revolute", "empty": "revolute", "lower": "revolute", "hand": "fixed",
                     "rod": "prismatic"}  # fmt: skip
    assert scene.rigid[2].inertia is None and scene.rigid[4].inertia.mass == pytest.approx(0.3)


def test_motors_push_as_in_mujoco(write):
    """u = 1 is the end of the range of control, through gears, gains and limits of force."""
    path = write(
        mjcf(
            """<body name="a"><freejoint name="f"/><geom size=".1"/>
               <body name="b" pos=".2 0 0"><joint name="h" axis="0 1 0" range="-1 2" limited="true"/><geom size=".1"/>
               <body name="c" pos=".2 0 0"><joint name="s" type="slide" axis="1 0 1"/><geom size=".1"/>
               <body name="d" pos=".2 0 0"><joint name="o" type="ball"/><geom size=".1"/></body></body></body></body>""",
            """<actuator><motor name="m" joint="h" gear="3" ctrlrange="-2 2"/>
               <motor name="weak" joint="s" gear="5" forcerange="-.5 .5" ctrlrange="-2 2"/>
               <motor name="spin" joint="o" gear="0 2 0"/><motor name="jet" joint="f" gear="0 0 0 0 0 4"/>
               <position name="p" joint="h" kp="7" kv=".3" gear="2" ctrlrange="-1 3"/>
               <position name="free_range" joint="h" kp="7"/></actuator>""",
        )
    )
    scene = wb.robots.load(path)
    motors = {a.name: a for a in scene.actuators}
    assert [type(a).__name__ for a in scene.actuators] == ["Torque"] * 4 + ["Servo"] * 2
    assert motors["m"].max_torque == 6.0 and motors["weak"].max_torque == 2.5
    assert (motors["spin"].axis, motors["jet"].axis) == (1, 5)
    assert (motors["p"].stiffness, motors["p"].target, motors["p"].reach) == (28.0, 0.5, 1.0)
    assert motors["free_range"].reach == pytest.approx(np.deg2rad(1.5))
    check(path, control=0.5, to_mujoco=[1.0, 0.25, 0.5, 0.5, 2.0, np.deg2rad(0.5 + 0.75)])


def test_the_limit_of_effort_of_urdf_is_a_motor(write):
    scene = wb.robots.load(write(URDF, "arm.urdf"))
    assert [(a.name, a.joint, a.max_torque) for a in scene.actuators] == [("shoulder", "shoulder", 40.0),
                                                                         ("elbow", "elbow", 7.0)]  # fmt: skip


def test_limits_are_those_of_the_file(write):
    """In radians and metres; stiff as MuJoCo's: a load rests as deep behind the limit there as here."""
    path = write(
        mjcf(
            """<body name="a"><joint name="h" axis="0 1 0" range="-30 40" solimplimit=".93 .93 .001"/><geom size=".1" pos="1 0 0"/></body>"""
        )
    )
    joint = wb.robots.load(path).joints[0]
    assert np.rad2deg([joint.lower[0], joint.upper[0]]) == pytest.approx([-30.0, 40.0])
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 5000)
    load = -data.qfrc_bias[0] + 0.0
    assert load / joint.limit_stiffness == pytest.approx(data.qpos[0] - joint.upper[0], rel=1e-2)


@pytest.mark.filterwarnings("ignore:Joint .* beyond its limits")  # the keyframe of the file is
def test_a_keyframe_is_a_start(write):
    text = EVERY_JOINT.replace("</mujoco>", '<keyframe><key name="home" qpos="{}" qvel="{}"/></keyframe></mujoco>')
    model = mujoco.MjModel.from_xml_string(EVERY_JOINT)
    q, v = model.qpos0 + 0.1 * np.arange(model.nq), 0.1 * np.arange(model.nv)
    path = write(text.format(" ".join(map(str, q)), " ".join(map(str, v))))
    for options in ({}, {"keyframe": "home"}):
        sim = wb.Simulation(wb.robots.load(path, contact_points=0, **options), wb.Articulated(), dt=0.01)
        model = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(model)
        if options:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        mujoco.mj_forward(model, data)
        readings, bodies = sim.sense(sim.state()), sim.model.robot.bodies
        for k in range(1, model.nbody):
            at = bodies.index(model.body(k).name)
            np.testing.assert_allclose(readings.position[0, at], data.xpos[k], atol=1e-9)
            np.testing.assert_allclose(readings.rotation[0, at].reshape(-1), data.xmat[k], atol=1e-9)
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, k, velocity, 0)
            np.testing.assert_allclose(readings.angular_velocity[0, at], velocity[:3], atol=1e-9)
            np.testing.assert_allclose(readings.velocity[0, at], velocity[3:], atol=1e-9)
    with pytest.raises(wb.SceneError, match=r"no keyframe 'hom'; the file has home"):
        wb.robots.load(path, keyframe="hom")


# --- what floats ---------------------------------------------------------------------------------------------------------


def test_a_base_is_fixed_or_floats_as_asked(write):
    arm = write(URDF, "arm.urdf")
    assert {j.child: j.kind for j in wb.robots.load(arm, fixed_base=False).joints}["base"] == "free"
    toy = (
        '<body name="toy" pos="0 0 5"><freejoint/><geom size=".1"/></body><body name="table">'
        + BOX.format("")
        + "</body>"
    )
    robot = '<body name="dog" pos="1 2 3" euler="0 0 90"><freejoint name="r"/><geom size=".1"/>{}</body>'
    leg = '<body name="leg"><joint name="hip"/><geom size=".1"/></body>'
    path = write(mjcf(toy + robot.format(leg)))
    asked = {f: {j.child: j.kind for j in wb.robots.load(path, fixed_base=f).joints} for f in (None, True, False)}
    assert asked[None] == asked[False] == {"toy": "free", "table": "fixed", "dog": "free", "leg": "revolute"}
    assert asked[True] == {"toy": "free", "table": "fixed", "dog": "fixed", "leg": "revolute"}
    dog = next(b for b in wb.robots.load(path, fixed_base=True).rigid if b.name == "dog")
    np.testing.assert_allclose(dog.position, (1, 2, 3))
    np.testing.assert_allclose(np.array(dog.rotation)[:, 0], (0, 1, 0), atol=1e-12)


# --- solids and contact -------------------------------------------------------------------------------------------------


def test_solids_are_where_mujoco_has_them(write, tmp_path):
    """MuJoCo's own rays towards the middle of a geom meet it where its surface is here."""
    (tmp_path / "wedge.obj").write_text("v 0 0 0\nv .4 0 0\nv 0 .3 0\nv 0 0 .2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    pose = 'pos=".1 -.2 .3" euler="20 -30 40"'
    kinds = {
        "sphere": 'size=".1"', "capsule": 'size=".1 .2"', "cylinder": 'size=".1 .2"', "box": 'size=".1 .2 .3"',
        "ellipsoid": 'size=".1 .2 .3"', "mesh": 'mesh="wedge"',
    }  # fmt: skip
    for kind, size in kinds.items():
        path = write(
            mjcf(
                f'<body name="a" pos="1 0 0" euler="0 0 30"><freejoint/><geom type="{kind}" {size} {pose}/></body>',
                '<asset><mesh name="wedge" file="wedge.obj"/></asset>',
            )
        )
        body = wb.robots.load(path, contact_points=0).rigid[0]
        model = mujoco.MjModel.from_xml_path(str(path))
        lower, upper = body.shape.bounds
        from warpbots.solvers.articulated.point_cloud import surface_mesh

        surface = surface_mesh(body.shape)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        R, p = data.xmat[1].reshape(3, 3), data.xpos[1]
        hit = np.zeros(1, dtype=np.int32)
        for x in surface.triangles_center[:: max(1, len(surface.faces) // 40)]:
            out = (x - surface.centroid) / np.linalg.norm(x - surface.centroid)
            far = mujoco.mj_ray(model, data, p + R @ (x + 2.0 * out), -R @ out, None, 1, -1, hit)
            assert far == pytest.approx(2.0, abs=3e-3), kind


def test_geoms_of_the_world_and_planes_are_obstacles(write):
    ground = '<geom name="ground" type="plane" size="1 1 1" pos="0 0 .5" euler="90 0 0" friction=".8"/>' + BOX.format(
        ""
    )
    path = write(mjcf(ground + '<body name="a" pos="0 0 3"><freejoint/><geom size=".1" friction=".3"/></body>'))
    scene = wb.robots.load(path)
    plane, box = scene.obstacles
    assert (plane.name, box.name, plane.friction) == ("ground", "geom 1", 0.8)
    np.testing.assert_allclose(plane.shape.normal, (0, -1, 0), atol=1e-12)
    np.testing.assert_allclose(plane.shape.point, (0, 0, 0.5))
    assert {c.solid: c.friction for c in scene.contacts} == {"ground": 0.8, "geom 1": 1.0}


def bodies_that_meet(scene):
    """Pairs (body with points, solid it touches) of the built model, by name."""
    model = wb.Articulated().build(scene, 1, "cpu")
    m, names = model.contact_topology, [*model.robot.bodies, "world"]
    group, solid = m.group_body.numpy(), model.solids.body.numpy()
    return {(names[group[g]], names[solid[s]]) for g, s in zip(m.pair_group.numpy(), m.pair_solid.numpy(), strict=True)}


def test_neighbours_masks_and_exclusions_do_not_touch(write):
    """MuJoCo's own rules: neighbours at a joint, also by several joints or with welded links between; bits; pairs."""
    text = mjcf(
        """<geom name="floor" type="plane" size="1 1 1"/>
        <body name="a"><freejoint/><geom size=".1"/>
          <body name="b" pos=".1 0 0"><joint axis="1 0 0"/><joint axis="0 1 0"/><geom size=".1"/>
            <body name="w"><geom size=".1"/><body name="c"><joint/><geom size=".1"/></body></body></body>
          <body name="d"><joint/><geom size=".1"/></body><body name="e"><joint/><geom size=".1"/></body>
          <body name="ghost"><joint/><geom size=".1" contype="0" conaffinity="0"/></body>
          <body name="feeler"><joint/><geom size=".1" contype="2" conaffinity="0"/></body></body>""",
        '<contact><exclude body1="d" body2="e"/></contact>',
    )
    found = bodies_that_meet(wb.robots.load(write(text)))
    model = mujoco.MjModel.from_xml_string(text.replace('size=".1"', 'size="1"'))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    name = lambda g: model.body(model.geom_bodyid[g]).name
    touching = {frozenset((name(c.geom1), name(c.geom2))) for c in data.contact}
    assert {frozenset(pair) for pair in found} == touching
    alone = bodies_that_meet(wb.robots.load(write(text), self_contact=False))
    assert {solid for _, solid in alone} == {"world"}


def test_two_that_are_slippery_do_not_rub(write):
    text = '<geom name="floor" type="plane" size="1 1 1"{0}/><body name="a"><freejoint/><geom size=".1"{0}/></body>'
    mu = [wb.robots.load(write(mjcf(text.format(c)))).contacts[0].friction for c in (' condim="1"', "")]
    assert mu == [0.0, 1.0]


def test_nothing_to_touch_is_no_points(write):
    """Two neighbours without a ground: no contact is written that joins nothing."""
    scene = wb.robots.load(write(mjcf('<body name="a"><joint/><geom size=".1"/></body>')))
    assert not scene.contacts and not scene.rigid[0].points
    scene = wb.robots.load(write(mjcf('<body name="a"><joint/><geom size=".1"/></body>')), obstacles=[wb.floor(-1.0)])
    assert [c.solid for c in scene.contacts] == ["floor"] and scene.rigid[0].points == 64
    wb.Articulated().build(scene, 1, "cpu")


def test_a_robot_falls_and_rests_on_its_floor(write):
    """A box of 8 kg on the floor: it carries its weight, and sinks less than a millimetre."""
    path = write(mjcf('<geom name="floor" type="plane" size="1 1 1"/><body name="a" pos="0 0 .15"><freejoint/>'
                      + BOX.format("") + "</body>"))  # fmt: skip
    scene = wb.robots.load(path)
    sim, state, readings = drop(scene, 1.5, dt=2e-3)
    assert float(readings.contact_normal.sum()) == pytest.approx(8.0 * 9.81, rel=1e-3)
    assert 0.099 < float(readings.position[0, 0, 2]) < 0.1
    assert float(readings.kinetic_energy.sum()) < 1e-6


# --- what is not understood -----------------------------------------------------------------------------------------------


def test_every_part_that_is_left_out_is_named_in_one_warning(write, heard):
    path = write(
        mjcf(
            """<geom name="floor" type="plane" size="1 1 1" condim="6"/>
            <body name="a" gravcomp="1"><joint name="j" frictionloss=".1"/><geom name="g" size=".1" friction=".2"/>
              <geom size=".1"/><site name="s"/><site name="t" pos="1 0 0"/>
              <body name="b" pos="1 0 0"><joint name="k" type="ball" range="0 50" limited="true"/><geom size=".1"/></body></body>
            <body name="hand" mocap="true"/>
            <body name="hill"><freejoint/><geom size=".1" priority="1"/></body>
            <geom name="terrain" type="hfield" hfield="h"/>""",
            """<asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset>
            <tendon><spatial name="rope"><site site="s"/><site site="t"/></spatial></tendon>
            <option density="1.2"/>
            <contact><pair geom1="floor" geom2="g"/></contact>
            <actuator><velocity name="v" joint="j" kv="1"/><motor name="site_motor" site="s"/>
              <motor name="pull" tendon="rope"/><general name="slow" joint="j" dyntype="filter" dynprm="1"/>
              <position name="held" joint="j" kp="1" forcerange="-1 1"/><motor name="back" joint="j" gear="-1"/>
              <motor name="half" joint="j" ctrlrange="0 1"/><position name="ballpos" joint="k" kp="1"/></actuator>""",
        )
    )
    scene = wb.robots.load(path)
    (text,) = heard.messages
    for part in (
        "(frictionloss): 'j'", "joint 'k': the limit of a ball joint", "body 'a': gravity compensation", "body 'hand'",
        "geoms of body 'world': torsional",
        "1 tendon", "density", "geom 'terrain' of 'world': a hfield", "actuator 'v'",
        "actuator 'site_motor': it drives a site", "actuator 'pull': it drives a tendon", "actuator 'slow'",
        "actuator 'held': its force limit", "actuator 'back': its gear", "actuator 'half': its control range",
        "actuator 'ballpos'",
    ):  # fmt: skip
        assert part in text, f"{part} is not in\n{text}"
    assert [a.name for a in scene.actuators] == ["held", "back", "half"]


def test_nothing_is_said_of_what_is_understood(write, heard):
    wb.robots.load(write(EVERY_JOINT))
    wb.robots.load(write(URDF, "arm.urdf"))
    assert not heard.messages


@pytest.mark.parametrize("loop", ["connect", "weld", "joint"])
def test_a_loop_is_refused_or_left_out_by_name(write, heard, loop):
    hinge = '<body name="{0}" pos="{1} 0 0"><joint name="{0}"/><geom size=".1"/></body>'
    ends = 'joint1="a" joint2="b"' if loop == "joint" else 'body1="a" body2="b"'
    anchor = 'anchor="0 0 0"' if loop == "connect" else ""
    path = write(
        mjcf(hinge.format("a", 0) + hinge.format("b", 1), f'<equality><{loop} name="bar" {ends} {anchor}/></equality>')
    )
    with pytest.raises(wb.SceneError, match=rf"{loop} 'bar'.*ignore_loops=True"):
        wb.robots.load(path)
    wb.robots.load(path, ignore_loops=True)
    assert f"equality: {loop} 'bar'" in heard.text


def test_a_joint_that_mimics_is_refused(write, heard):
    limit = '<limit effort="7" velocity="1"/>'
    path = write(URDF.replace(limit, limit + '<mimic joint="shoulder" multiplier="2"/>'), "arm.urdf")
    with pytest.raises(wb.SceneError, match=r"'elbow'.*ignore_loops=True"):
        wb.robots.load(path)
    wb.robots.load(path, ignore_loops=True)
    assert "'elbow'" in heard.text


def test_files_that_cannot_be_read(write, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*nothing\.xml"):
        wb.robots.load(tmp_path / "nothing.xml")
    with pytest.raises(wb.SceneError, match=r"robots are read from URDF .* got \.stl"):
        wb.robots.load(write("solid", "a.stl"))
    with pytest.raises(wb.SceneError, match=r"broken\.xml cannot be read as XML: no element found"):
        wb.robots.load(write("<mujoco>", "broken.xml"))
    with pytest.raises(wb.SceneError, match="MuJoCo says: .*frog"):
        wb.robots.load(write(mjcf('<body name="b"><geom size=".1"/><frog name="a"/></body>')))
    with pytest.raises(wb.SceneError, match="keyword: 'tail'.*; correct the element that it names, or remove it"):
        wb.robots.load(write(mjcf('<body name="b"><joint type="tail"/><geom size=".1"/></body>')))
    with pytest.raises(wb.SceneError, match="has no bodies"):
        wb.robots.load(write(mjcf("")))
    with pytest.raises(wb.SceneError, match=r"MuJoCo says: .*arm\.stl"):
        wb.robots.load(
            write(mjcf('<body><geom type="mesh" mesh="arm"/></body>', '<asset><mesh file="arm.stl"/></asset>'))
        )


def test_without_mujoco_the_remedy_is_named(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"pip install 'warpbots\[robots\]'"):
        wb.robots.load(write(EVERY_JOINT))


def test_meshes_of_packages_are_found_above_the_file(write, tmp_path):
    folder = tmp_path / "my_robot" / "urdf"
    (tmp_path / "my_robot" / "meshes").mkdir(parents=True)
    folder.mkdir()
    (tmp_path / "my_robot" / "meshes" / "a.obj").write_text(
        "v 0 0 0\nv .4 0 0\nv 0 .3 0\nv 0 0 .2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    path = folder / "a.urdf"
    path.write_text(
        '<robot name="r"><link name="a"><collision><geometry><mesh filename="package://my_robot/meshes/a.obj"/>'
        "</geometry></collision></link></robot>"
    )
    shape = wb.robots.load(path, contact_points=0).rigid[0].shape
    assert shape.volume == pytest.approx(0.4 * 0.3 * 0.2 / 6.0, rel=1e-6)


# --- files that somebody else wrote -----------------------------------------------------------------------------------------

NEWTON = importlib.util.find_spec("newton")
ASSETS = (
    "examples/assets/nv_ant.xml", "examples/assets/nv_humanoid.xml", "examples/assets/quadruped.urdf",
    "tests/assets/humanoid.urdf", "examples/assets/cartpole.urdf", "examples/assets/tabletop.xml",
    "tests/assets/constraints.xml",
)  # fmt: skip


@pytest.mark.skipif(NEWTON is None, reason="needs the robots that come with newton")
@pytest.mark.parametrize("asset", ASSETS)
def test_robots_of_newton_move_as_in_mujoco(asset):
    check(Path(NEWTON.origin).parent / asset, ignore_loops=True)
