"""Every flag and field of MuJoCo is read, named in a warning, or without effect on motion; a new one is noticed."""

import mujoco
import numpy as np
import pytest

import warpbots as wb
from warpbots.robots.option_flags import DISABLED, ENABLED

BODY = """<worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="a" pos="0 0 1"><joint name="j" axis="0 1 0" range="-30 30" stiffness="2" damping=".3" frictionloss=".1"/>
    <geom size=".1" pos=".3 0 0"/></body>
  <body name="b" pos="2 0 1"><joint name="k" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body></worldbody>
  <equality><joint name="pair" joint1="j" joint2="k"/></equality>
  <actuator><motor name="m" joint="j" group="3"/><motor name="n" joint="k"/></actuator>"""


@pytest.fixture
def load(tmp_path):
    def load(option, body=BODY, **options):
        path = tmp_path / "robot.xml"
        path.write_text(f'<mujoco><compiler angle="degree"/><option>{option}</option>{body}</mujoco>')
        return wb.robots.load(path, **{"ignore_loops": True, **options})

    return load


def flag(name, value="disable"):
    return f'<flag {name}="{value}"/>'


def test_every_flag_is_known():
    """A flag of a newer MuJoCo fails here: apply it, name it, or list it as without effect."""
    for kind, known in (("Disable", DISABLED), ("Enable", ENABLED)):
        members = getattr(mujoco, f"mjt{kind}Bit").__members__
        assert {name.partition("_")[2] for name in members if "_" in name} <= set(known)


def test_flags_switch_off(load):
    plain = load("")
    assert plain.gravity == (0.0, 0.0, -9.81) and plain.contacts and len(plain.actuators) == 2
    joint = plain.joints[0]
    assert joint.lower and joint.stiffness == (2.0,) and joint.damping == (0.3,)
    assert load(flag("gravity")).gravity == (0.0, 0.0, 0.0)
    assert load(flag("spring")).joints[0].stiffness == (0.0,)
    assert load(flag("damper")).joints[0].damping == (0.0,)
    assert load(flag("limit")).joints[0].lower is None
    assert not load(flag("contact")).contacts and load(flag("contact")).rigid[0].shape
    assert not load(flag("actuation")).actuators
    still = load(flag("constraint"), ignore_loops=False)
    assert not still.contacts and still.joints[0].lower is None
    load(flag("equality"), ignore_loops=False)


def test_dry_friction_that_is_off_is_not_named(load, heard):
    load("")
    assert "frictionloss" in heard.text
    heard.clear()
    load(flag("frictionloss"))
    assert "frictionloss" not in heard.text


def test_actuators_of_a_group_that_is_off_do_not_act(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(f'<mujoco><option actuatorgroupdisable="3"/>{BODY}</mujoco>')
    assert [a.name for a in wb.robots.load(path, ignore_loops=True).actuators] == ["n"]


@pytest.mark.parametrize(("name", "value"), [("clampctrl", "disable"), ("override", "enable")])
def test_flags_that_are_not_obeyed_are_named(load, heard, name, value):
    load(flag(name, value))
    assert f"<flag {name}={value!r}>" in heard.text


def test_contact_in_other_words_is_named(load, heard):
    geom = '<worldbody><body name="a"><freejoint/><geom size=".1" {}/></body></worldbody>'
    for words, said in (
        ('margin=".01"', "a contact margin of 0.01 m"), ('solref="-1000 -1"', "bouncing"), ('solref=".02 .1"', "bouncing"),
        ('solref="-1000 -60"', ""), ('surfacevel="1 0 0 0 0 0"', "surfacevel"), ('adhesion="2"', "adhesion"),
    ):  # fmt: skip
        heard.clear()
        load("", geom.format(words))
        assert said in heard.text and bool(said) == bool(heard.messages)


READ = """body: parentid rootid weldid jntnum jntadr dofnum dofadr pos quat ipos iquat mass inertia
jnt: type qposadr dofadr bodyid pos axis stiffness range limited actfrclimited actfrcrange solref solimp
dof: jntid armature damping invweight0
geom: type bodyid dataid matid contype conaffinity condim pos quat size friction priority rbound rgba
eq: type obj1id obj2id objtype active0
actuator: trntype dyntype gaintype biastype trnid gainprm biasprm gear ctrllimited ctrlrange forcelimited forcerange group"""
NAMED = """body: gravcomp mocapid plugin
jnt: stiffnesspoly springyield actgravcomp margin plasticadr
dof: dampingpoly frictionloss
geom: margin gap solref surfacevel adhesion plugin fluid
eq: data
actuator: damping armature dampingpoly plugin actadr actnum actlimited actrange actearly dynprm cranklength ctrlspec history historyadr delay"""
QUIET = """body: treeid geomnum geomadr simple sameframe subtreemass invweight0 margin user contype conaffinity bvhadr bvhnum
jnt: group user actuatorid
dof: bodyid parentid treeid Madr simplenum solref solimp M0 length
geom: group sameframe castshadow solmix solimp aabb user
eq: solref solimp
actuator: ctrladr ctrlnum outadr outnum acc0 length0 lengthrange user"""


def fields(text):
    return {
        f"{kind}_{name}"
        for line in text.splitlines()
        for kind, _, names in [line.partition(":")]
        for name in names.split()
    }


def test_no_field_is_overlooked():
    """All fields of bodies, joints, geoms, equalities and actuators in MuJoCo are accounted for."""
    prefixes = ("body_", "jnt_", "dof_", "geom_", "eq_", "actuator_")
    there = {name for name in dir(mujoco.MjModel) if name.startswith(prefixes)}
    known = fields(READ) | fields(NAMED) | fields(QUIET)
    assert not there - known


def test_no_option_is_overlooked():
    read = {"gravity", "disableflags", "disableactuator"}
    named = {"density", "viscosity", "wind", "enableflags", "o_margin", "o_solref", "o_solimp", "o_friction"}
    quiet = {
        "timestep", "apirate", "impratio", "tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance", "magnetic",
        "sleep_tolerance", "integrator", "cone", "jacobian", "solver", "iterations", "ls_iterations",
        "noslip_iterations", "ccd_iterations", "sdf_initpoints", "sdf_iterations",
    }  # fmt: skip
    there = {name for name in dir(mujoco.MjOption) if not name.startswith("_")}
    assert not there - read - named - quiet


def test_delays_of_actuators_are_named(load, heard):
    actuator = '<actuator><motor name="slow" joint="j" delay=".02" nsample="4"/></actuator>'
    load("", '<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>' + actuator)
    assert "actuator 'slow': its delay" in heard.text


@pytest.mark.parametrize(("joint", "motors", "line"), [
    ('actuatorfrcrange="-.5 2"', '<motor name="m" joint="j"/>', "'m': its joint's force range [-0.5, 2]; here"),
    ("", '<motor name="m" joint="j" forcerange="-.5 2"/>', "'m': its force range [-0.5, 2]; here"),
    ('actuatorfrcrange="-1 1"', '<motor joint="j"/><motor joint="j"/>', "'j': the limit of its 2 motors together; here"),
])  # fmt: skip
def test_limits_of_force_that_a_torque_cannot_have_are_named(load, heard, joint, motors, line):
    body = f'<worldbody><body><joint name="j" {joint}/><geom size=".1"/></body></worldbody>'
    load("", f"{body}<actuator>{motors}</actuator>")
    assert line in heard.text


def test_limits_of_force_that_a_torque_has_are_kept_in_silence(load):
    body = '<worldbody><body><joint name="j" actuatorfrcrange="-2 2"/><geom size=".1"/></body></worldbody>'
    (motor,) = load("", body + '<actuator><motor joint="j" gear="5" forcerange="-.3 .3"/></actuator>').actuators
    assert motor.max_torque == 1.5


def test_actuators_of_several_controls_are_named_and_shift_no_other(load, heard):
    body = '<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><actuator>{}</actuator>'
    dc = '<dcmotor name="dc" joint="j" motorconst=".05" resistance="1" input="pos vel" controller="1 0 .1"/>'
    motor = '<motor name="m" joint="j" ctrlrange="-3 3"/>'
    home = '<keyframe><key name="home" ctrl="1 2 3"/></keyframe>'
    scene = load("", body.format(dc + motor) + home)
    assert [(a.name, a.max_torque) for a in scene.actuators] == [("m", 3.0)]
    assert "actuator 'dc': it has several controls or forces" in heard.text


EQUALITY = """<worldbody><body name="a"><joint/><geom size=".1"/></body><body name="b" pos="1 0 0"><joint/><geom size=".1"/></body>
  <body name="hand" mocap="true"/></worldbody><equality>{}</equality>"""


def test_a_body_that_is_guided_from_outside_is_no_loop(load, heard):
    load("", EQUALITY.format('<weld body1="hand" body2="a"/>'), ignore_loops=False)
    assert "equality: weld of 'hand' and 'a'" in heard.text


def test_loops_without_a_name_say_what_they_join(load):
    with pytest.raises(wb.SceneError, match=r"connect of 'b' and 'a'; remove them"):
        load("", EQUALITY.format('<connect body1="b" body2="a" anchor="0 0 0"/>'), ignore_loops=False)
    load("", EQUALITY.format('<connect body1="b" body2="a" anchor="0 0 0" active="false"/>'), ignore_loops=False)


def test_the_weight_of_what_falls_is_that_of_the_flag(load):
    """Without gravity a free body stays where it is."""
    scene = load(flag("gravity"), '<worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody>')
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.01)
    np.testing.assert_array_equal(sim.sense(sim.rollout(None, 5).final).position[0, 0], np.zeros(3))


PAIRS = """<worldbody><geom name="floor" type="plane" size="1 1 1" conaffinity="2" contype="0" friction=".4"/>
  <body name="a" pos="0 0 1"><freejoint/><geom name="ga" size=".1" contype="1" conaffinity="0" friction=".3"/></body>
  <body name="b" pos="1 0 1"><freejoint/><geom name="gb" size=".1" contype="2" conaffinity="0" friction=".5"/></body></worldbody>
  <contact>{}</contact>"""


def touching(scene):
    surfaces = {n: b.name for b in scene.rigid for n in (b.name, b.surface)}
    return {(surfaces[c.points], surfaces.get(c.solid, c.solid), c.friction) for c in scene.contacts}


def test_explicit_pairs_are_contacts_with_their_friction(load, heard):
    """Without pairs only b touches the floor; a pair needs no bits, and has its own friction, none for condim 1."""
    assert touching(load("", PAIRS.format(""))) == {("b", "floor", 0.5)}
    pair = '<pair geom1="{}" geom2="{}" condim="{}" friction="{} 1 .1 .1 .1"/>'.format
    scene = load("", PAIRS.format(pair("ga", "floor", 3, 0.9) + pair("gb", "floor", 3, 0.2)))
    assert touching(scene) == {("a", "floor", 0.9), ("b", "floor", 0.2)}
    assert touching(load("", PAIRS.format(pair("ga", "gb", 1, 0.9)))) == {
        ("a", "b", 0.0),
        ("b", "a", 0.0),
        ("b", "floor", 0.5),
    }
    assert not heard.messages


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('condim="6"', "torsional"),
        ('margin=".01"', "a contact margin of 0.01 m"),
        ('solref="-1000 -1"', "bouncing contact"),
    ],
)
def test_what_pairs_say_besides_friction_is_named(load, heard, words, said):
    load("", PAIRS.format(f'<pair geom1="ga" geom2="floor" {words}/>'))
    assert f"pair of 'a' and 'world': {said}" in heard.text or f"pair of 'world' and 'a': {said}" in heard.text


def test_pairs_of_what_is_only_seen_are_named(load, heard):
    body = PAIRS.replace('contype="1" conaffinity="0"', 'contype="0" conaffinity="0"')
    load("", body.format('<pair geom1="ga" geom2="floor"/>'))
    assert "explicit contact pairs of 'world' and 'a', between geoms" in heard.text
