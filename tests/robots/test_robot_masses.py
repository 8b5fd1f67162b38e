"""Masses of links: by the definition of URDF where a file gives none, and corrected where they are impossible."""

import math

import mujoco
import numpy as np
import pytest
from cases import dynamics

import warpbots as wb

BALL = "<collision><geometry><sphere radius='.1'/></geometry></collision>"


@pytest.fixture
def load(tmp_path):
    def load(text, name="robot.urdf", **options):
        path = tmp_path / name
        path.write_text(text)
        return wb.robots.load(path, **options)

    return load


def inertial(mass, moments=(1.0, 1.0, 1.0)):
    values = " ".join(f'{k}="{v}"' for k, v in zip(("ixx", "iyy", "izz"), moments, strict=True))
    return f'<inertial><mass value="{mass}"/><inertia {values} ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name, inside=""):
    return f'<link name="{name}">{inside}</link>'


def joint(parent, child, kind="continuous", xyz="0 0 0"):
    return (
        f'<joint name="to_{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="0 1 0"/></joint>'
    )


def robot(*parts):
    return f'<robot name="r">{"".join(parts)}</robot>'


def mass_matrix(scene):
    solver = wb.Articulated()
    model = solver.build(scene, 1, "cpu")
    import warp as wp

    u = wp.zeros((1, model.channels), dtype=wp.float64, device="cpu")
    return dynamics(model, solver.state(model), u).mass_matrix[0]


def test_a_solid_without_an_inertial_weighs_nothing(load):
    """A pendulum of 2 kg at 0.5 m has M = 2 * 0.25 + I, with or without a solid that is fixed to it at its tip."""
    arm = inertial(2.0, (0.1, 0.1, 0.1)).replace("<mass", '<origin xyz=".5 0 0"/><mass')
    parts = (
        link("base"),
        link("arm", arm),
        joint("base", "arm"),
        link("tip", BALL),
        joint("arm", "tip", "fixed", "1 0 0"),
    )
    scene = load(robot(*parts))
    assert mass_matrix(scene)[0, 0] == pytest.approx(0.6, abs=1e-9)
    assert {b.name for b in scene.rigid if b.shape} == {"tip"}


def test_a_solid_that_moves_without_any_mass_weighs_as_water_and_is_named(load, heard):
    parts = (
        link("base", inertial(1.0)),
        link("ball", BALL),
        joint("base", "ball"),
        link("frame"),
        joint("ball", "frame", "fixed"),
    )
    scene = load(robot(*parts))
    ball = next(b for b in scene.rigid if b.name == "ball")
    assert ball.inertia.mass == pytest.approx(1000.0 * 4.0 / 3.0 * math.pi * 1e-3)
    assert "1000 kg/m^3: 'ball' (4.19 kg; 4.189 kg in all)" in heard.text


def test_a_massless_link_between_masses_stays_without(load):
    parts = link("base"), link("a", BALL), joint("base", "a"), link("b", inertial(1.0)), joint("a", "b", xyz="1 0 0")
    masses = {b.name: b.inertia.mass for b in load(robot(*parts)).rigid if b.inertia}
    assert masses["a"] < 1e-12 and masses["b"] == 1.0


def test_a_joint_that_moves_nothing_is_held_and_named(load, heard):
    parts = link("base", inertial(1.0)), link("frame"), joint("base", "frame")
    scene = load(robot(*parts))
    assert {j.child: j.kind for j in scene.joints}["frame"] == "fixed"
    assert "taken as fixed: 'to_frame'" in heard.text


def test_a_floating_link_without_inertial_weighs_as_its_solid(load):
    assert load(robot(link("ball", BALL)), fixed_base=False).rigid[0].inertia.mass == pytest.approx(4.18879, rel=1e-5)


def test_what_the_file_says_of_its_geometry_is_obeyed(load):
    """``inertiafromgeom`` of the file, or of the user, includes every solid."""
    arm = link("arm", inertial(2.0) + BALL)
    own = robot('<mujoco><compiler inertiafromgeom="true"/></mujoco>', link("base"), arm, joint("base", "arm"))
    plain = robot(link("base"), arm, joint("base", "arm"))
    for scene in (load(own), load(plain, compiler={"inertiafromgeom": True})):
        assert scene.rigid[1].inertia.mass == pytest.approx(4.18879, rel=1e-5)
    assert load(plain).rigid[1].inertia.mass == 2.0


def test_moments_without_a_mass_are_kept(load):
    """A rotor: its moment turns with the joint, M = 0.7 + 1."""
    parts = (
        link("base"),
        link("rotor", inertial(0.0, (0.7, 0.7, 0.7))),
        joint("base", "rotor"),
        link("rim", inertial(1.0)),
    )
    scene = load(robot(*parts, joint("rotor", "rim", "fixed")))
    assert mass_matrix(scene)[0, 0] == pytest.approx(1.7)


def test_a_mass_below_zero_is_refused(load):
    with pytest.raises(wb.SceneError, match=r"link 'arm' has a mass of -1 kg; give one of 0 or more"):
        load(robot(link("base"), link("arm", inertial(-1)), joint("base", "arm")))


def test_mjcf_that_moves_no_mass_is_refused(load):
    text = '<mujoco><worldbody><body name="b"><joint name="j"/></body></worldbody></mujoco>'
    with pytest.raises(wb.SceneError, match=r"joint 'j' moves body 'b', which has no mass"):
        load(text, "robot.xml")


def test_moments_that_no_body_has_become_the_nearest(load, heard):
    """C - A - B = 0.3: A and B take a third of it, C gives one; their sum of squared changes is least on A + B = C."""
    scene = load(robot(link("base"), link("arm", inertial(1.0, (0.6, 2.0, 2.9))), joint("base", "arm")))
    np.testing.assert_allclose(np.diag(scene.rigid[1].inertia.moments), (0.7, 2.1, 2.8), rtol=1e-6)
    assert "body 'arm': its principal moments of inertia 0.6, 2, 2.9" in heard.text


def test_moments_off_by_rounding_are_read_in_silence(load, heard):
    """A rod, whose third moment is of the size of rounding, about turned axes."""
    c, s = math.cos(0.3), math.sin(0.3)
    moments = f'ixx="{c * c}" iyy="{s * s}" izz="1.0000001" ixy="{-c * s}" ixz="0" iyz="0"'
    arm = f'<inertial><mass value="1"/><inertia {moments}/></inertial>'
    scene = load(robot(link("base"), link("arm", arm), joint("base", "arm")))
    np.testing.assert_allclose(np.linalg.eigvalsh(scene.rigid[1].inertia.moments), (0.0, 1.0, 1.0), atol=1e-6)
    assert scene.rigid[1].inertia.moments[0, 1] == pytest.approx(-c * s, rel=1e-6)
    assert not heard.messages


def test_moments_far_from_those_of_a_body_are_refused_unless_balanced(load):
    text = robot(link("base"), link("arm", inertial(1.0, (0.1, 0.2, 3.0))), joint("base", "arm"))
    with pytest.raises(wb.SceneError, match=r"'arm' has the principal moments .*compiler=\{'balanceinertia': True\}"):
        load(text)
    moments = load(text, compiler={"balanceinertia": True}).rigid[1].inertia.moments
    np.testing.assert_allclose(np.diag(moments), 1.1)


def test_moments_that_hardly_count_are_mended_however_far_they_are(load):
    """A sensor on a heavy arm, and a body that does not move."""
    arm, sensor = link("arm", inertial(1.0)), link("sensor", inertial(1e-3, (1e-6, 1e-6, 1e-4)))
    load(robot(link("base"), arm, sensor, joint("base", "arm"), joint("arm", "sensor", "fixed")))
    load(robot(link("base", inertial(1.0, (0.1, 0.2, 3.0))), arm, joint("base", "arm")))


def test_attributes_of_the_compiler_are_checked(load):
    text = robot(link("base"), link("arm", inertial(2.0)), joint("base", "arm"))
    assert load(text, compiler={"boundmass": 3.0}).rigid[1].inertia.mass == 3.0
    with pytest.raises(wb.SceneError, match=r"compiler\['fusestatic'\]: there is no such attribute; known are bal"):
        load(text, compiler={"fusestatic": True})
    with pytest.raises(wb.SceneError, match=r"compiler\['balanceinertia'\] must be True or False, got 'yes'"):
        load(text, compiler={"balanceinertia": "yes"})


@pytest.mark.parametrize(
    "moments", [(1.0, 2.0, 3.0), (0.1, 0.2, 0.3), (1e-7, 1.0, 1.0), (1.0, 2.0, 3.000004), (2.0, 1.0, 3.0000001)]
)
@pytest.mark.parametrize("name", ["robot.urdf", "robot.xml"])
def test_balancing_leaves_moments_that_a_body_can_have(load, heard, moments, name):
    """A plate stays a plate, also where the digits of its moments are rounded."""
    text = robot(
        '<mujoco><compiler balanceinertia="true"/></mujoco>',
        link("base"),
        link("arm", inertial(1.0, moments)),
        joint("base", "arm"),
    )
    if name == "robot.xml":
        words = " ".join(map(str, moments))
        text = f"""<mujoco><compiler balanceinertia="true"/><worldbody><body name="arm"><joint/>
          <inertial pos="0 0 0" mass="1" diaginertia="{words}"/></body></worldbody></mujoco>"""
    found = next(b for b in load(text, name).rigid if b.name == "arm").inertia.moments
    np.testing.assert_allclose(np.diag(found), moments, rtol=4e-6, atol=1e-8)
    assert not heard.messages


def test_balancing_of_other_moments_is_named(load, heard):
    text = robot(
        '<mujoco><compiler balanceinertia="true"/></mujoco>',
        link("base"),
        link("arm", inertial(1.0, (1.0, 2.0, 5.0))),
        joint("base", "arm"),
    )
    assert next(b for b in load(text).rigid if b.name == "arm").inertia.moments[0, 0] == pytest.approx(8.0 / 3.0)
    assert "body 'arm': its principal moments of inertia" in heard.text and "balanceinertia sets each to" in heard.text


COMPILED = """<mujoco><compiler {}/><default><geom density="700"/></default><worldbody><body name="a" pos="0 0 1" euler="20 -30 40">
  <joint name="j" axis="0 1 0" range="-30 50"/><inertial mass="2" pos=".1 0 0" diaginertia=".1 .2 .25"/><geom size=".1" group="1"/>
  <geom size=".05" pos=".2 0 0" contype="0" conaffinity="0" group="2"/>
  <body name="b" pos=".3 0 0" axisangle="1 1 0 50"><geom type="box" size=".1 .2 .3" group="1"/><geom size=".2" group="2"/>
  <body name="c"><joint type="slide"/><inertial mass=".001" pos="0 0 0" diaginertia="1e-6 1e-6 1e-6"/></body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    "words",
    [
        "", 'boundmass="1.5"', 'boundinertia=".15"', 'settotalmass="20"', 'inertiafromgeom="true"', 'inertiafromgeom="false"',
        'inertiagrouprange="1 1"', 'inertiafromgeom="true" inertiagrouprange="2 2"', 'angle="radian"', 'eulerseq="ZYX"',
        'autolimits="true"', 'fusestatic="true"', 'discardvisual="true"', 'fusestatic="true" discardvisual="true" settotalmass="3"',
        'alignfree="true"', 'balanceinertia="true"', 'inertiafromgeom="auto" boundmass=".5" boundinertia=".3"',
    ],
)  # fmt: skip
def test_options_of_the_compiler_mean_what_they_mean_in_mujoco(load, tmp_path, monkeypatch, words):
    """Total mass, mass matrix and limits are those of MuJoCo's own model."""
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its log
    text = COMPILED.format(words)
    if 'inertiafromgeom="false"' in words:
        text = text.replace(
            '<body name="b" pos=".3 0 0" axisangle="1 1 0 50">',
            '<body name="b" pos=".3 0 0"><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>',
        )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = load(text, "robot.xml", contact_points=0)
    assert sum(b.inertia.mass for b in scene.rigid) == pytest.approx(model.body_mass.sum(), rel=1e-9)
    expected = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, expected)
    np.testing.assert_allclose(mass_matrix(scene), expected, rtol=1e-5)
    limits = {j.name: (j.lower, j.upper) for j in scene.joints}["j"]
    np.testing.assert_allclose(np.ravel(limits), model.jnt_range[0], rtol=1e-12)
