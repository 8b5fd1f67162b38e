"""Rigid bodies, joints, drives and contact in files: read as they are meant, written and read back to the last bit."""

import dataclasses
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdPhysics
from usd_cases import differences, findings, prim, rigid_scene, simple_scene, turn, write_text

import warpbots as wb
from warpbots import usd
from warpbots.scene import (
    Box,
    Capsule,
    HalfSpace,
    Inertia,
    Joint,
    Obstacle,
    RigidBody,
    Scene,
    SceneError,
    Servo,
    Sphere,
    Torque,
    TriangleMesh,
    contacts_between,
)
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.usd.rigid.robot_writer import start_poses

HEAD = '( metersPerUnit = 1\n upAxis = "Z" )\n'
LOCK = dict.fromkeys(("transX", "transY", "transZ", "rotX", "rotY", "rotZ"), (1, -1))


def cube(name, at=(0, 0, 0), text="", apis=(), inside=""):
    """A rigid cube of 0.2 m with the transform and the properties that `text` adds."""
    moved = f"double3 xformOp:translate = {tuple(at)}\n uniform token[] xformOpOrder = ["
    moved += '"xformOp:translate"]\n' if "xformOpOrder" not in text else ""
    moved = moved if "xformOpOrder" not in text else ""
    collider = prim("Cube", "Box", "PhysicsCollisionAPI", text="double size = 0.2")
    return prim("Xform", name, "PhysicsRigidBodyAPI", *apis, text=moved + text + "\n" + collider + inside)


def joint(kind, name="Hinge", first="/Base", second="/Arm", text="", apis=()):
    ends = (f"rel physics:body0 = <{first}>\n" if first else "") + (
        f"rel physics:body1 = <{second}>\n" if second else ""
    )
    return prim(kind, name, *apis, text=ends + text)


def limits(**said):
    """The properties and schemas of a PhysicsJoint with these limits: low and high."""
    text = "".join(
        f"float limit:{a}:physics:low = {lo}\n float limit:{a}:physics:high = {hi}\n" for a, (lo, hi) in said.items()
    )
    return {"text": text, "apis": tuple(f"PhysicsLimitAPI:{a}" for a in said)}


def locked(*free, **said):
    """Limits of a PhysicsJoint that locks all but some axes."""
    return limits(**{a: pair for a, pair in LOCK.items() if a not in free}, **said)


def stage(folder, *parts, head=HEAD):
    return write_text(folder / "robot.usda", head + "".join(parts))


def read(folder, *parts, head=HEAD, **options):
    return usd.read(stage(folder, *parts, head=head), **options)


def pair(folder, *parts, **options):
    """A base that floats, an arm at 1 m, and what joins them."""
    return read(folder, cube("Base"), cube("Arm", (1, 0, 0)), *parts, **options)


def notes(heard):
    """What the warning says, by prim."""
    return {line.split(":")[0]: line for line in heard.lines}


PLACES = "point3f physics:localPos0 = (0.5, 0, 0)\n point3f physics:localPos1 = (-0.5, 0, 0)\n"

KINDS = {
    "fixed": ("PhysicsFixedJoint", {}),
    "revolute": ("PhysicsRevoluteJoint", {"text": 'uniform token physics:axis = "Y"\n'}),
    "prismatic": ("PhysicsPrismaticJoint", {"text": 'uniform token physics:axis = "Z"\n'}),
    "ball": ("PhysicsSphericalJoint", {}),
    "D6 fixed": ("PhysicsJoint", locked()),
    "D6 revolute": ("PhysicsJoint", locked("rotY")),
    "D6 prismatic": ("PhysicsJoint", locked("transZ")),
    "D6 planar": ("PhysicsJoint", locked("transX", "transZ")),
    "D6 translational": ("PhysicsJoint", locked("transX", "transY", "transZ")),
    "D6 ball": ("PhysicsJoint", locked("rotX", "rotY", "rotZ")),
    "D6 free_2d": ("PhysicsJoint", locked("transX", "transZ", "rotY")),
    "D6 free": ("PhysicsJoint", locked(*LOCK)),
}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_joint(name, tmp_path):
    kind, said = KINDS[name]
    scene = pair(tmp_path, joint(kind, **{**said, "text": PLACES + said.get("text", "")}))
    (found,) = scene.joints
    assert (found.kind, found.parent, found.child) == (name.split()[-1], "Base", "Arm")
    assert found.position == (0.5, 0.0, 0.0)
    assert found.start is None
    axes = np.array(found.rotation)
    if found.kind in ("revolute", "prismatic"):
        assert (axes @ found.axis).tolist() == ([0, 1, 0] if found.kind == "revolute" else [0, 0, 1])
    if found.kind in ("planar", "free_2d"):
        assert abs(axes[1]).tolist() == [0, 0, 1]  # the third axis is the one across
        assert np.linalg.det(axes) == 1.0


def free_axes(scene):
    return [(j.name, j.kind, (np.array(j.rotation) @ j.axis).round(12).tolist()) for j in scene.joints]


def test_two_turns_are_a_chain_with_a_body_without_mass(tmp_path):
    said = locked("rotX", "rotZ", rotX=(-30, 60))
    scene = pair(tmp_path, joint("PhysicsJoint", "Gimbal", **said))
    assert free_axes(scene) == [("Gimbal/rotX", "revolute", [1, 0, 0]), ("Gimbal/rotZ", "revolute", [0, 0, 1])]
    assert [(j.parent, j.child) for j in scene.joints] == [("Base", "Arm/Gimbal/rotX"), ("Arm/Gimbal/rotX", "Arm")]
    between = next(b for b in scene.rigid if b.name == "Arm/Gimbal/rotX")
    assert between.shape is None
    assert between.inertia is None
    np.testing.assert_allclose(scene.joints[0].upper, math.radians(60))
    wb.Simulation(scene, wb.Articulated(), dt=0.01).rollout(None, 2)


def placed(folder, R, p, *parts):
    """Base at the origin and an arm at a pose, joined by `parts`."""
    rows = ", ".join(f"({r[0]}, {r[1]}, {r[2]}, {w})" for r, w in zip([*np.array(R).T, p], (0, 0, 0, 1), strict=False))
    arm = f'matrix4d xformOp:transform = ({rows})\n uniform token[] xformOpOrder = ["xformOp:transform"]\n'
    return read(folder, cube("Base"), cube("Arm", text=arm), *parts)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("free", [("rotX",), ("transY",), ("transX", "transZ"), ("transX", "transY", "transZ"), ("rotX", "rotY"), ("rotX", "rotY", "rotZ"), ("transX", "transZ", "rotY"), tuple(LOCK), ("transY", "rotY")], ids="+".join)  # fmt: skip
def test_a_scene_starts_where_the_file_has_the_bodies(free, back, tmp_path, heard):
    """Also where the body that is named first hangs on the other one."""
    q = {axis: 0.3 - 0.1 * k for k, axis in enumerate(free)}
    R, p = np.eye(3), np.array([q.get(f"trans{a}", 0.0) for a in "XYZ"])
    for k, a in enumerate("XYZ"):
        c, s = math.cos(q.get(f"rot{a}", 0.0)), math.sin(q.get(f"rot{a}", 0.0))
        i, j = (k + 1) % 3, (k + 2) % 3
        S = np.eye(3)
        S[i, i], S[i, j], S[j, i], S[j, j] = c, -s, s, c
        R = R @ S
    said = locked(*free)
    ends = ("/Arm", "/Base") if back else ("/Base", "/Arm")
    root = 'def Xform "Root" {}\n'
    if back:  # as seen from the arm, the base is displaced the other way
        R, p = R.T, -R.T @ p
    arm = placed(tmp_path, R, p, joint("PhysicsJoint", "J", *ends, **said), root)
    assert not heard.messages
    poses = start_poses(arm)
    # the first body is the root, unless the file says otherwise
    np.testing.assert_allclose(np.linalg.inv(poses["Base"]) @ poses["Arm"], matrix(R, p), atol=1e-6)
    held = read_held(tmp_path, R, p, joint("PhysicsJoint", "J", *ends, **said))
    poses = start_poses(held)
    assert held.joints[-1].child == "Arm"
    np.testing.assert_allclose(poses["Arm"], matrix(R, p), atol=1e-6)


def matrix(R, p):
    M = np.eye(4)
    M[:3, :3], M[:3, 3] = R, p
    return M


def read_held(folder, R, p, *parts):
    """As `placed`, with the base fixed to the world."""
    rows = ", ".join(f"({r[0]}, {r[1]}, {r[2]}, {w})" for r, w in zip([*np.array(R).T, p], (0, 0, 0, 1), strict=False))
    arm = f'matrix4d xformOp:transform = ({rows})\n uniform token[] xformOpOrder = ["xformOp:transform"]\n'
    hold = joint("PhysicsFixedJoint", "Hold", None, "/Base")
    return read(folder, cube("Base"), cube("Arm", text=arm), hold, *parts)


@pytest.mark.parametrize("back", [False, True])
def test_a_reversed_joint_has_the_same_range(back, tmp_path):
    """The limits of a hinge are those of its second body as seen from its first one."""
    ends = ("/Arm", "/Base") if back else ("/Base", "/Arm")
    range_ = "float physics:lowerLimit = -10\n float physics:upperLimit = 50\n"
    scene = pair(tmp_path, joint("PhysicsFixedJoint", "Hold", None, "/Base"), joint("PhysicsRevoluteJoint", "J", *ends, text=range_ + 'uniform token physics:axis = "Z"\n' + (PLACES if not back else "point3f physics:localPos1 = (0.5, 0, 0)\n point3f physics:localPos0 = (-0.5, 0, 0)\n")))  # fmt: skip
    hinge = scene.joints[-1]
    np.testing.assert_allclose((*hinge.lower, *hinge.upper), np.radians([-10, 50]))
    most = dataclasses.replace(hinge, start=hinge.upper)
    arm = start_poses(dataclasses.replace(scene, joints=[scene.joints[0], most], source=None))["Arm"]
    angle = math.degrees(math.atan2(arm[1, 0], arm[0, 0]))
    assert angle == pytest.approx(-50 if back else 50)


def test_a_pose_that_no_joint_reaches_is_named(tmp_path, heard):
    scene = pair(tmp_path, joint("PhysicsRevoluteJoint"))
    assert "violate it by 1 m" in notes(heard)["/Hinge"]
    assert scene.rigid[1].position == (0.0, 0.0, 0.0)  # where the joint has it


def test_a_start_outside_of_the_limits_is_named(tmp_path, heard):
    pair(
        tmp_path,
        joint("PhysicsRevoluteJoint", text=PLACES + "float physics:lowerLimit = 20\n float physics:upperLimit = 50\n"),
    )
    assert "outside its limits" in notes(heard)["/Hinge"]


def test_limits_in_other_units(tmp_path):
    head = '( metersPerUnit = 0.01\n upAxis = "Y" )\n'
    slide = 'uniform token physics:axis = "Y"\n float physics:lowerLimit = -50\n'
    scene = read(tmp_path, cube("Base"), cube("Arm"), joint("PhysicsPrismaticJoint", text=slide), head=head)
    (found,) = scene.joints
    assert found.lower == (-0.5,)
    assert found.upper == (math.inf,)
    np.testing.assert_allclose(np.array(found.rotation) @ found.axis, [0, 0, 1])  # up


def test_units_and_axes(tmp_path):
    """The same robot in metres with z up, and in centimetres and grams with y up."""

    def robot(length, mass, up):
        def p(x, y, z):
            return tuple(length * c for c in ((x, y, z) if up == "Z" else (x, z, -y)))

        weight = f"float physics:mass = {2 * mass}\n point3f physics:centerOfMass = {p(0.1, 0.2, 0.3)}\n"
        weight += f"float3 physics:diagonalInertia = {tuple(abs(mass * length**2 * c) for c in ((1, 2, 2.5) if up == 'Z' else (1, 2.5, 2)))}\n"
        gain = mass * length**2
        drive = f"float drive:angular:physics:stiffness = {gain}\n float drive:angular:physics:maxForce = inf\n"
        drive += "float drive:angular:physics:targetPosition = 90\n"
        text = f"point3f physics:localPos0 = {p(0.5, 0, 0)}\n point3f physics:localPos1 = {p(-0.5, 0, 0)}\n" + drive
        text += f'uniform token physics:axis = "{up}"\n'
        places = (cube("Base", p(0, 1, 0), weight, ("PhysicsMassAPI",)), cube("Arm", p(1, 1, 0)))
        places = tuple(c.replace("double size = 0.2", f"double size = {0.2 * length}") for c in places)
        places = (places[0].replace("float physics:mass", f"double3 xformOp:translate = {p(0, 1, 0)}\n uniform token[] xformOpOrder = [\"xformOp:translate\"]\n float physics:mass") if "translate" not in places[0] else places[0], places[1])  # fmt: skip
        head = f'( metersPerUnit = {1 / length}\n kilogramsPerUnit = {1 / mass}\n upAxis = "{up}" )\n'
        return read(
            tmp_path, *places, joint("PhysicsRevoluteJoint", text=text, apis=("PhysicsDriveAPI:angular",)), head=head
        )

    a, b = robot(1, 1, "Z"), robot(100, 1000, "Y")
    upright = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    for x, y in zip(a.rigid, b.rigid, strict=False):
        np.testing.assert_allclose(x.position, y.position, atol=1e-9)
        m, n = body_inertia(x), body_inertia(y)
        assert m.mass == pytest.approx(n.mass)
        np.testing.assert_allclose(m.moments, upright @ n.moments @ upright.T, rtol=1e-6)
        np.testing.assert_allclose(m.center, upright @ n.center, atol=1e-7)
    np.testing.assert_allclose(a.joints[0].position, b.joints[0].position, atol=1e-9)
    np.testing.assert_allclose(np.array(b.joints[0].rotation) @ b.joints[0].axis, [0, 0, 1], atol=1e-9)
    assert b.actuators[0].stiffness == pytest.approx(a.actuators[0].stiffness) == pytest.approx(180 / math.pi)
    assert b.actuators[0].target == pytest.approx(math.pi / 2)


DRIVE = "float drive:angular:physics:"


def driven(folder, text, kind="PhysicsRevoluteJoint", token="angular"):
    return pair(folder, joint(kind, text=PLACES + text, apis=(f"PhysicsDriveAPI:{token}",)))


def test_a_drive_with_stiffness_is_a_servo(tmp_path):
    text = f"{DRIVE}stiffness = 2\n {DRIVE}damping = 0.5\n {DRIVE}targetPosition = 30\n"
    (motor,) = driven(tmp_path, text + "float physics:lowerLimit = -45\n float physics:upperLimit = 90\n").actuators
    per = 180 / math.pi
    assert isinstance(motor, Servo)
    assert (motor.name, motor.joint) == ("Hinge", "Hinge")
    values = (motor.stiffness, motor.damping, motor.target, motor.reach)
    np.testing.assert_allclose(values, (2 * per, 0.5 * per, math.pi / 6, math.radians(67.5)))


def test_other_drives(tmp_path, heard):
    (motor,) = driven(tmp_path, f"{DRIVE}maxForce = 7\n").actuators
    assert motor == Torque("Hinge", "Hinge", 7.0)
    scene = driven(tmp_path, f"{DRIVE}damping = 2\n {DRIVE}targetVelocity = 3\n")
    assert scene.actuators == ()
    np.testing.assert_allclose(scene.joints[0].damping, 2 * 180 / math.pi)
    assert "targetVelocity" in notes(heard)["/Hinge"]
    heard.clear()
    scene = driven(tmp_path, f'{DRIVE}stiffness = 2\n uniform token drive:angular:physics:type = "acceleration"\n')
    assert scene.actuators == ()
    assert "of type acceleration" in notes(heard)["/Hinge"]


def test_a_drive_that_is_not_applied_is_named(tmp_path, heard):
    assert pair(tmp_path, joint("PhysicsRevoluteJoint", text=PLACES + f"{DRIVE}stiffness = 2\n")).actuators == ()
    assert "PhysicsDriveAPI:angular is not applied" in notes(heard)["/Hinge"]


def test_passive_joints(tmp_path, heard):
    text = "float physxJoint:armature = 0.01\n double mjc:damping = 0.5\n double mjc:stiffness = 3\n float newton:friction = 2\n"
    (found,) = pair(tmp_path, joint("PhysicsRevoluteJoint", text=PLACES + text)).joints
    assert (found.armature, found.damping, found.stiffness) == ((0.01,), (0.5,), (3.0,))
    assert "dry friction" in notes(heard)["/Hinge"]
    (found,) = pair(tmp_path, joint("PhysicsRevoluteJoint", text=PLACES + "float newton:damping = 1\n")).joints
    assert found.damping == pytest.approx((180 / math.pi,))


@pytest.mark.parametrize(
    ("parts", "words"),
    {
        "loop": (
            [joint("PhysicsRevoluteJoint", "A"), joint("PhysicsRevoluteJoint", "B", "/Arm", "/Base")],
            ["/B: the joint closes the loop", "/Base", "/Arm"],
        ),
        "loop through the world": (
            [joint("PhysicsFixedJoint", "A", None, "/Base"), joint("PhysicsFixedJoint", "B", None, "/Base")],
            ["/B: the joint closes the loop", "the world"],
        ),
        "excluded": (
            [joint("PhysicsFixedJoint", "B", text="bool physics:excludeFromArticulation = 1\n"), joint("PhysicsRevoluteJoint", "A")],
            ["/B: the joint (physics:excludeFromArticulation) closes the loop"],
        ),
        "drive on a fixed joint": (
            [joint("PhysicsFixedJoint", apis=("PhysicsDriveAPI:angular",))],
            ["/Hinge: it is a fixed joint with a drive (PhysicsDriveAPI:angular)"],
        ),
        "lower above upper": (
            [joint("PhysicsRevoluteJoint", text="float physics:lowerLimit = 9\n float physics:upperLimit = 3\n")],
            ["/Hinge: physics:lowerLimit = 9 is above physics:upperLimit = 3"],
        ),
        "unknown body": ([joint("PhysicsRevoluteJoint", second="/Leg")], ["/Hinge: its physics:body1 is /Leg, where there is no prim"]),
        "itself": ([joint("PhysicsRevoluteJoint", second="/Base")], ["/Hinge: both of its bodies are /Base"]),
    }.values(),
    ids=["loop", "world loop", "excluded", "fixed drive", "limits", "unknown body", "itself"],
)  # fmt: skip
def test_errors_name_the_prim(parts, words, tmp_path):
    with pytest.raises(SceneError) as error:
        pair(tmp_path, *parts)
    for word in words:
        assert word in str(error.value)


def test_two_roots(tmp_path):
    roots = cube("Base", apis=("PhysicsArticulationRootAPI",)), cube("Arm", apis=("PhysicsArticulationRootAPI",))
    with pytest.raises(SceneError, match="/Base and /Arm: two roots of one articulation"):
        read(tmp_path, *roots, joint("PhysicsRevoluteJoint"))
    inner = prim("Xform", "Robot", "PhysicsArticulationRootAPI", text="".join((roots[0], cube("Arm"), joint("PhysicsRevoluteJoint", first="/Robot/Base", second="/Robot/Arm"))))  # fmt: skip
    with pytest.raises(SceneError, match="/Robot and /Robot/Base: two roots"):
        read(tmp_path, inner)


def test_the_root_carries_the_others(tmp_path):
    scene = read(
        tmp_path, cube("Base"), cube("Arm", apis=("PhysicsArticulationRootAPI",)), joint("PhysicsRevoluteJoint")
    )
    assert [(j.parent, j.child) for j in scene.joints] == [("Arm", "Base")]


def test_joints_that_are_left_out_are_named(tmp_path, heard):
    off = joint("PhysicsRevoluteJoint", "Off", text="bool physics:jointEnabled = 0\n")
    scene = pair(
        tmp_path, off, joint("PhysicsDistanceJoint", "Rope"), joint("PhysicsFixedJoint", "Nothing", None, None)
    )
    assert scene.joints == ()
    found = notes(heard)
    assert "switched off" in found["/Off"]
    assert "PhysicsDistanceJoint" in found["/Rope"]
    assert "without a moving rigid body" in found["/Nothing"]


def test_a_joint_to_what_does_not_move_is_one_to_the_world(tmp_path):
    wall = prim(
        "Xform",
        "Wall",
        text='double3 xformOp:translate = (0, 0, 2)\n uniform token[] xformOpOrder = ["xformOp:translate"]',
    )
    scene = read(tmp_path, wall, cube("Arm", (0, 0, 2)), joint("PhysicsRevoluteJoint", first="/Wall"))
    assert scene.joints[0].parent is None
    assert scene.joints[0].position == (0.0, 0.0, 2.0)


def mass(folder, text="", *apis, collider="", more=""):
    """Inertia of a cube of 0.2 m with this text."""
    box = prim(
        "Cube",
        "Box",
        "PhysicsCollisionAPI",
        "PhysicsMassAPI",
        "MaterialBindingAPI",
        text="double size = 0.2\n" + collider,
    )
    scene = read(folder, prim("Xform", "Body", "PhysicsRigidBodyAPI", "PhysicsMassAPI", *apis, text=text + box), more)
    return body_inertia(scene.rigid[0])


def test_masses(tmp_path):
    cubic, moment = 0.008, 0.008 * 0.04 / 6
    assert mass(tmp_path).mass == pytest.approx(1000 * cubic)
    assert mass(tmp_path, "float physics:mass = 0\n float physics:density = 0\n").mass == pytest.approx(1000 * cubic)
    assert mass(tmp_path, "float physics:density = 500\n").mass == pytest.approx(500 * cubic)
    assert mass(
        tmp_path, "float physics:density = 500\n", collider="float physics:density = 300\n"
    ).mass == pytest.approx(300 * cubic)
    assert mass(tmp_path, collider="float physics:mass = 5\n").mass == pytest.approx(5)
    steel = prim("Material", "Steel", "PhysicsMaterialAPI", text="float physics:density = 7800\n")
    assert mass(tmp_path, collider="rel material:binding:physics = </Steel>\n", more=steel).mass == pytest.approx(
        7800 * cubic
    )
    found = mass(tmp_path, "float physics:mass = 4\n")
    np.testing.assert_allclose(found.moments, np.eye(3) * 4 / cubic * moment)
    found = mass(tmp_path, "float physics:mass = 4\n point3f physics:centerOfMass = (0, 0, 0.1)\n")
    np.testing.assert_allclose(found.center, (0, 0, 0.1))
    turned = "quatf physics:principalAxes = (0.70710678, 0, 0, 0.70710678)\n"
    found = mass(tmp_path, "float physics:mass = 4\n float3 physics:diagonalInertia = (1, 2, 2.5)\n" + turned)
    np.testing.assert_allclose(found.moments, np.diag([2, 1, 2.5]), atol=1e-7)


def test_masses_that_nothing_says(tmp_path, heard):
    bare = prim("Xform", "Bare", "PhysicsRigidBodyAPI")
    (body,) = read(tmp_path, bare).rigid
    assert body.inertia == Inertia(1.0, (0.0, 0.0, 0.0), (0.004, 0.004, 0.004))
    assert "ball of 1 kg" in notes(heard)["/Bare"]
    carrier = prim("Xform", "Base", "PhysicsRigidBodyAPI")
    scene = read(
        tmp_path, carrier, cube("Arm"), joint("PhysicsRevoluteJoint"), joint("PhysicsFixedJoint", "Hold", None, "/Base")
    )
    assert scene.rigid[0].inertia is None  # it carries what has mass


def body_shape(folder, *colliders, text=""):
    return read(folder, prim("Xform", "Body", "PhysicsRigidBodyAPI", text=text + "".join(colliders))).rigid[0].shape


SCALED = 'double3 xformOp:scale = {}\n uniform token[] xformOpOrder = ["xformOp:scale"]\n'
TET = """point3f[] points = [(0,0,0), (1,0,0), (0,1,0), (0,0,1), (0.1,0.1,0.1)]
int[] faceVertexCounts = [3,3,3{}]
int[] faceVertexIndices = [0,2,1, 0,1,3, 0,3,2{}]
"""
MESH = ("PhysicsCollisionAPI", "PhysicsMeshCollisionAPI")


def test_scale_and_mirrors_go_into_shapes(tmp_path):
    box = prim("Cube", "Box", "PhysicsCollisionAPI", text="double size = 1")
    assert body_shape(tmp_path, box, text=SCALED.format((1, 2, -4))) == Box((-0.5, -1, -2), (0.5, 1, 2))
    ball = prim("Sphere", "Ball", "PhysicsCollisionAPI", text="double radius = 1")
    assert body_shape(tmp_path, ball, text=SCALED.format((-2, -2, -2))) == Sphere((0, 0, 0), 2.0)
    mesh = prim("Mesh", "Tet", *MESH, text=TET.format(",3", ", 1,2,3"))
    assert body_shape(tmp_path, mesh, text=SCALED.format((-1, 1, 1))).volume == pytest.approx(1 / 6)
    many = body_shape(tmp_path, box, ball)
    assert [type(s) for s in many.shapes] == [Box, Sphere]


def test_approximations_of_meshes(tmp_path, heard):
    hull = 'uniform token physics:approximation = "{}"\n'
    opened, closed = TET.format("", ""), TET.format(",3", ", 1,2,3")
    shape = body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=opened + hull.format("convexHull")))
    assert isinstance(shape, TriangleMesh)
    assert shape.volume == pytest.approx(1 / 6)
    assert body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=closed + hull.format("boundingCube"))) == Box(
        (0, 0, 0), (1, 1, 1)
    )
    ball = body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=closed + hull.format("boundingSphere")))
    assert ball.radius == pytest.approx(math.sqrt(0.75))
    assert not heard.messages
    assert body_shape(tmp_path, prim("Mesh", "Tet", *MESH, text=opened)).volume == pytest.approx(1 / 6)
    assert "convex hull is used instead" in notes(heard)["/Body/Tet"]
    flat = prim(
        "Mesh",
        "Flat",
        *MESH,
        text="point3f[] points = [(0,0,0),(1,0,0),(0,1,0)]\n int[] faceVertexCounts = [3]\n int[] faceVertexIndices = [0,1,2]",
    )
    assert body_shape(tmp_path, flat) is None
    assert "lie in a plane" in notes(heard)["/Body/Flat"]


def test_a_cone_is_a_mesh_of_its_volume(tmp_path, heard):
    cone = prim(
        "Cone", "Hat", "PhysicsCollisionAPI", text='double radius = 0.5\n double height = 2\n uniform token axis = "X"'
    )
    shape = body_shape(tmp_path, cone)
    assert shape.volume == pytest.approx(math.pi * 0.25 * 2 / 3)
    np.testing.assert_allclose(np.array(shape.bounds)[:, 0], [-1, 1])
    assert "a cone" in notes(heard)["/Body/Hat"]


def test_what_belongs_to_a_body(tmp_path):
    """Colliders below it, but neither what is to be seen only nor those of bodies below it; what is off is no collider."""
    inner = cube("Inner", (0, 0, 1))
    seen = prim("Sphere", "Seen")
    off = prim("Sphere", "Off", "PhysicsCollisionAPI", text="bool physics:collisionEnabled = 0")
    still = cube("Still", text="bool physics:kinematicEnabled = 1\n")
    scene = read(tmp_path, cube("Outer", inside=inner + seen + off), still)
    assert [b.name for b in scene.rigid] == ["Outer", "Inner"]
    assert all(type(b.shape) is Box for b in scene.rigid)
    assert [o.name for o in scene.obstacles] == ["Box"]  # the kinematic one never moves


FLOOR = prim("Plane", "Floor", "PhysicsCollisionAPI")
RUBBER = prim(
    "Material",
    "Rubber",
    "PhysicsMaterialAPI",
    text="float physics:dynamicFriction = 0.9\n float physics:restitution = 0.3\n",
)
BIND = "rel material:binding:physics = </Rubber>\n"


def chain(folder, *parts, text="", hinge="", **options):
    """Three cubes on two hinges above a floor."""
    bodies = [cube(n, (k, 0, 1), text if n == "A" else "", ("MaterialBindingAPI",)) for k, n in enumerate("ABC")]
    bodies = [b.replace(", 1)", ", 1)") for b in bodies]
    at = "point3f physics:localPos0 = (1, 0, 0)\n"
    joints = [joint("PhysicsRevoluteJoint", f"J{a}{b}", f"/{a}", f"/{b}", text=at + hinge) for a, b in ("AB", "BC")]
    return read(folder, FLOOR, *bodies, *joints, *parts, **options)


def touching(scene):
    """Names of bodies and obstacles that touch under the laws of a scene."""
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.001)
    meeting, found = sim.model.contact_topology, set()
    for g, law in zip(meeting.pair_group.numpy(), meeting.pair_law.numpy(), strict=False):
        found.add((scene.rigid[meeting.group_body.numpy()[g]].name, scene.contacts[law].solid))
    return found


def test_bodies_touch_what_they_do_not_hang_on(tmp_path):
    scene = chain(tmp_path)
    assert len(scene.contacts) == 2
    (surface,) = {b.surface for b in scene.rigid}
    assert {b.points for b in scene.rigid} == {64}
    assert touching(scene) == {(b, s) for b in "ABC" for s in (surface, "Floor")} - {("B", surface)}
    assert chain(tmp_path, contact_points=5).rigid[0].points == 5
    none = chain(tmp_path, contact_points=0)
    assert not none.contacts
    assert not any(b.points for b in none.rigid)


def test_filters_and_collisions_at_joints(tmp_path):
    apart = prim("Scope", "Filter")
    scene = chain(
        tmp_path,
        apart,
        text='prepend rel physics:filteredPairs = </C>\n double3 xformOp:translate = (0, 0, 1)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n',
    )
    assert {("A", "C"), ("C", "A")} <= touching_bodies(scene)
    path = tmp_path / "robot.usda"
    text = path.read_text().replace('def Xform "A" (\n prepend apiSchemas = ["PhysicsRigidBodyAPI"', 'def Xform "A" (\n prepend apiSchemas = ["PhysicsFilteredPairsAPI", "PhysicsRigidBodyAPI"')  # fmt: skip
    path.write_text(text)
    assert touching_bodies(usd.read(path)) == set()
    meet = chain(tmp_path, hinge="bool physics:collisionEnabled = 1\n")
    assert touching_bodies(meet) == {(a, b) for a in "ABC" for b in "ABC" if a != b}


def touching_bodies(scene):
    """Pairs of bodies that touch."""
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.001)
    meeting, found = sim.model.contact_topology, set()
    bodies = sim.model.solids.body.numpy()
    for g, s in zip(meeting.pair_group.numpy(), meeting.pair_solid.numpy(), strict=False):
        other = int(bodies[s])
        if other >= 0:
            found.add((scene.rigid[meeting.group_body.numpy()[g]].name, scene.rigid[other].name))
    return found


def test_bodies_at_a_joint_of_several_axes_do_not_touch(tmp_path):
    """Between them is a body without mass, so that for the solver they are no neighbours."""
    scene = pair(tmp_path, FLOOR, joint("PhysicsJoint", "Gimbal", **locked("rotX", "rotZ")))
    assert touching_bodies(scene) == set()
    assert {law.solid for law in scene.contacts} == {"Floor"}


def test_friction_is_the_mean_of_both(tmp_path, heard):
    at = 'double3 xformOp:translate = (0, 0, 1)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    scene = read(tmp_path, RUBBER, FLOOR, cube("A", text=BIND + at, apis=("MaterialBindingAPI",)))
    (law,) = scene.contacts
    assert (law.points, law.solid, law.friction) == ("Rubber", "Floor", (0.9 + 0.5) / 2)
    assert scene.rigid[0].surface == "Rubber"
    assert law.restitution == (0.3 + 0.0) / 2
    assert not heard.messages


@pytest.mark.parametrize("e", [1.5, -0.5])
def test_a_coefficient_of_restitution_that_is_none_is_named(tmp_path, heard, e):
    at = 'double3 xformOp:translate = (0, 0, 1)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    wrong = RUBBER.replace("0.3", f"{e:g}")
    scene = read(tmp_path, wrong, FLOOR, cube("A", text=BIND + at, apis=("MaterialBindingAPI",)))
    assert scene.contacts[0].restitution is None
    assert f"physics:restitution = {e:g} is not in [0, 1]" in notes(heard)["/Rubber"]


def test_the_restitution_of_a_floor_counts_half_for_what_has_none(tmp_path):
    body = cube("A", (0, 0, 1))
    floor = prim("Plane", "Floor", "PhysicsCollisionAPI", "MaterialBindingAPI", text=BIND)
    (law,) = read(tmp_path, RUBBER, floor, body).contacts
    assert law.restitution == (0.3 + 0.0) / 2


def test_a_robot_that_does_not_touch_itself(tmp_path):
    for flag in ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions"):
        scene = chain(tmp_path, head=HEAD)
        text = (tmp_path / "robot.usda").read_text().replace('"PhysicsRigidBodyAPI"', '"PhysicsRigidBodyAPI", "PhysicsArticulationRootAPI"', 1)  # fmt: skip
        (tmp_path / "robot.usda").write_text(text.replace("double3 xformOp:translate", f"bool {flag} = 0\n double3 xformOp:translate", 1))  # fmt: skip
        scene = usd.read(tmp_path / "robot.usda")
        assert touching_bodies(scene) == set()
        assert {solid for _, solid in touching(scene)} == {"Floor"}


def test_too_much_contact_is_left_out_and_named(tmp_path, heard, monkeypatch):
    monkeypatch.setattr("warpbots.usd.rigid.body_contacts._MOST", 100)
    scene = chain(tmp_path)
    assert touching_bodies(scene) == set()
    assert "contact between bodies" in notes(heard)["the whole file"]


def test_a_body_that_starts_under_the_floor_is_named(tmp_path, heard):
    read(tmp_path, FLOOR, cube("A", (0, 0, -2)))
    assert "2 m deep in the obstacle 'Floor'" in notes(heard)["/A"]


def test_robots_of_one_kind_go_by_their_paths(tmp_path):
    """Instances of one robot, which share their prims until one of them is changed."""
    inner = cube("Base") + cube("Arm") + joint("PhysicsRevoluteJoint", first="/Robot/Base", second="/Robot/Arm")
    stage(tmp_path, prim("Xform", "Robot", text=inner), head='( metersPerUnit = 1\n defaultPrim = "Robot" )\n')
    place = 'def Xform "{}" ( instanceable = true\n prepend references = @robot.usda@ ) {{\n double3 xformOp:translate = ({}, 0, 0)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n}}\n'  # fmt: skip
    path = write_text(tmp_path / "two.usda", HEAD + place.format("One", 1) + place.format("Two", 2))
    scene = usd.read(path, contact_points=0)
    assert [b.name for b in scene.rigid] == ["/One/Base", "/One/Arm", "/Two/Base", "/Two/Arm"]
    assert [(j.name, j.child) for j in scene.joints] == [("/One/Hinge", "/One/Arm"), ("/Two/Hinge", "/Two/Arm")]
    assert [b.position[0] for b in scene.rigid] == [1, 1, 2, 2]
    trajectory = wb.Simulation(scene, wb.Articulated(), dt=1 / 60).rollout(None, 2)
    usd.write(tmp_path / "walk.usda", trajectory)
    now = trajectory.simulation.sense(trajectory.final).position[0, 3].cpu().numpy()
    opened = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    at = UsdGeom.XformCache(2.0).GetLocalToWorldTransform(opened.GetPrimAtPath("/Two/Arm")).ExtractTranslation()
    np.testing.assert_allclose(at, now, atol=1e-9)


def test_velocities_of_what_floats(tmp_path):
    text = "vector3f physics:velocity = (1, 2, 3)\n vector3f physics:angularVelocity = (0, 0, 90)\n"
    turned = text + 'float xformOp:rotateX = 90\n uniform token[] xformOpOrder = ["xformOp:rotateX"]\n'
    scene = read(tmp_path, cube("A", text=turned))
    (free,) = scene.joints
    assert (free.kind, free.parent, free.child) == ("free", None, "A")
    state = wb.Simulation(scene, wb.Articulated(), dt=0.01)
    seen = state.sense(state.state())
    np.testing.assert_allclose(seen.velocity[0, 0].cpu(), [1, 2, 3], atol=1e-12)
    np.testing.assert_allclose(seen.angular_velocity[0, 0].cpu(), [0, 0, math.pi / 2], atol=1e-12)


def test_everything_rigid_there_and_back(tmp_path):
    scene = rigid_scene()
    for extension in ("usda", "usdc"):
        usd.write(tmp_path / f"a.{extension}", scene)
        back = usd.read(tmp_path / f"a.{extension}")
        assert not differences(back, scene)
        assert back == scene
    usd.write(tmp_path / "again.usda", back)  # over what it was read from
    assert usd.read(tmp_path / "again.usda") == scene
    usd.write(tmp_path / "b.usda", scene)
    assert (tmp_path / "a.usda").read_bytes() == (tmp_path / "b.usda").read_bytes()


def test_articulations_begin_where_they_float_or_are_held(tmp_path):
    held = Joint("held", "revolute", None, "base")
    for first, root in ((pendulum().joints[0], "/World/Bodies/base"), (held, "/World/Joints/held")):
        usd.write(tmp_path / "a.usda", pendulum(joints=[first, pendulum().joints[1]]))
        written = Usd.Stage.Open(str(tmp_path / "a.usda"))
        marked = [p.GetPath() for p in written.Traverse() if p.HasAPI(UsdPhysics.ArticulationRootAPI)]
        assert marked == [root]


def test_soft_and_rigid_bodies_keep_their_order(tmp_path):
    soft, hard = simple_scene().bodies[0], RigidBody("hard", Box((0, 0, 0), (1, 1, 1)))
    other = dataclasses.replace(soft, name="soft")
    scene = simple_scene(bodies=[hard, other, dataclasses.replace(hard, name="last"), soft])
    usd.write(tmp_path / "a.usda", scene)
    assert usd.read(tmp_path / "a.usda") == scene


def test_what_is_written_passes_the_validators(tmp_path):
    usd.write(tmp_path / "a.usda", rigid_scene())
    assert findings(tmp_path / "a.usda") == []


def test_standard_attributes_alone_say_the_same_robot(tmp_path):
    """What other programs see: without what is ours, the same poses, joints, limits and weights."""
    scene = rigid_scene()
    usd.write(tmp_path / "a.usda", scene)
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    for each in stage.Traverse():
        for name in each.GetAuthoredPropertyNames():
            if name.startswith("warpbots:exact"):
                each.RemoveProperty(name)
    stage.Save()
    for scope in ("Actuators", "Contacts"):
        stage.RemovePrim(f"/World/{scope}")
    for body in stage.GetPrimAtPath("/World/Bodies").GetChildren():
        body.GetAttribute("warpbots:contactPoints").Set(0)
    stage.Save()
    back = usd.read(tmp_path / "a.usda")
    assert [m.joint for m in back.actuators] == ["to revolute", "to planar", "to free_2d"]  # from their drives
    a, b = start_poses(scene), start_poses(back)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], atol=1e-5)
    for x, y in zip(scene.rigid, back.rigid, strict=False):
        m, n = (None if i.shape is None and i.inertia is None else body_inertia(i) for i in (x, y))
        assert (m is None) == (n is None)
        if m is not None:
            np.testing.assert_allclose(m.moments, n.moments, rtol=1e-5, atol=1e-6)
    for x, y in zip(scene.joints, back.joints, strict=False):
        assert (x.name, x.kind, x.parent, x.child) == (y.name, y.kind, y.parent, y.child)
        for field in ("lower", "upper"):
            if getattr(x, field) is not None:
                np.testing.assert_allclose(getattr(x, field), getattr(y, field), rtol=1e-6)


def edited(path, prim_path, **values):
    stage = Usd.Stage.Open(str(path))
    for name, value in values.items():
        assert stage.GetPrimAtPath(prim_path).GetAttribute(name.replace("__", ":")).Set(value)
    stage.Save()
    return usd.read(path)


def test_who_edits_a_standard_attribute_is_obeyed(tmp_path):
    path, scene = tmp_path / "a.usda", rigid_scene()
    usd.write(path, scene)
    moved = edited(path, "/World/Joints/to_revolute", physics__lowerLimit=-60.0, drive__angular__physics__stiffness=2.0)
    before, now = (next(j for j in s.joints if j.name == "to revolute") for s in (scene, moved))
    assert now.lower == pytest.approx((-math.pi / 3,))
    assert dataclasses.replace(now, lower=before.lower) == before
    assert moved.actuators[0].stiffness == pytest.approx(360 / math.pi)
    assert dataclasses.replace(moved.actuators[0], stiffness=100 / 3) == scene.actuators[0]
    assert edited(path, "/World/Bodies/plain", physics__density=7.0).rigid[1].density == 7.0
    at = edited(path, "/World/Bodies/plain", xformOp__translate=(7, 8, 9)).rigid[1]
    assert at.position == (7.0, 8.0, 9.0)
    hung = edited(path, "/World/Joints/arm", physics__localPos0=(30.0, 0.0, 0.0))
    assert np.linalg.norm(np.subtract(hung.rigid[5].position, scene.rigid[5].position)) > 10.0


def test_robots_of_others_are_written_as_they_were_read(tmp_path):
    scene = chain(tmp_path)
    usd.write(tmp_path / "copy.usda", dataclasses.replace(scene, gravity=(0.0, 0.0, -1.62)))
    back = usd.read(tmp_path / "copy.usda")
    assert back == dataclasses.replace(scene, gravity=(0.0, 0.0, -1.62))
    changed = dataclasses.replace(scene, joints=scene.joints[:1])
    with pytest.raises(SceneError, match=r"/A: rigid bodies, joints, .* source=None"):
        usd.write(tmp_path / "copy.usda", changed)
    alone = dataclasses.replace(changed, source=None)
    usd.write(tmp_path / "alone.usda", alone)
    assert usd.read(tmp_path / "alone.usda") == alone


def test_robots_in_a_file_of_other_units(tmp_path):
    """Ours beside a soft body of another program, in centimetres and grams with y up."""
    usd.write(tmp_path / "soft.usda", simple_scene())
    other = Usd.Stage.Open(str(tmp_path / "soft.usda"))
    UsdGeom.SetStageMetersPerUnit(other, 0.01)
    UsdGeom.SetStageUpAxis(other, "Y")
    UsdPhysics.SetStageKilogramsPerUnit(other, 0.001)
    other.Save()
    soft, robot = usd.read(tmp_path / "soft.usda"), rigid_scene()
    parts = {f: (*getattr(soft, f), *getattr(robot, f)) for f in ("bodies", "joints", "contacts", "actuators")}
    scene = dataclasses.replace(soft, **parts)
    usd.write(tmp_path / "both.usda", scene)
    assert usd.read(tmp_path / "both.usda") == scene


def pendulum(**changes):
    bodies = [RigidBody("base", Box((-0.1,) * 3, (0.1,) * 3)), RigidBody("rod", Capsule((0, 0, 0), (0.5, 0, 0), 0.05))]
    joints = [
        Joint("free", "free", None, "base", start_velocity=(0.1, 0.2, 0.3, 1.0, 2.0, 3.0)),
        Joint("hinge", "revolute", "base", "rod", axis=(0, 1, 0), start=0.5, position=(0.1, 0, 0), rotation=turn(3)),
    ]
    return dataclasses.replace(Scene(bodies, joints=joints), **changes)


def worst(path, trajectory, every, fps=60.0):
    """Largest difference between the poses of prims in a file and those of the states."""
    stage, found = Usd.Stage.Open(str(path)), 0.0
    bodies = [p for p in stage.Traverse() if "PhysicsRigidBodyAPI" in p.GetAppliedSchemas()]
    names = [b.name for b in trajectory.scene.rigid]
    assert len(bodies) == len(names)
    for time, state in trajectory.states(every):
        now = trajectory.simulation.sense(state, **trajectory.parameters)
        cache = UsdGeom.XformCache(time * fps)
        for body in bodies:
            k = names.index(body.GetDisplayName() if body.HasAuthoredDisplayName() else body.GetName())
            M = np.array(cache.GetLocalToWorldTransform(body)).T
            R = M[:3, :3] / np.linalg.norm(M[:3, :3], axis=0)
            found = max(
                found,
                np.abs(M[:3, 3] - now.position[0, k].cpu().numpy()).max(),
                np.abs(R - now.rotation[0, k].cpu().numpy()).max(),
            )
            assert body.GetAttribute("physics:kinematicEnabled").Get() is True
    return found


def test_frames_are_the_poses_of_the_states(tmp_path):
    scene = pendulum()
    trajectory = wb.Simulation(scene, wb.Articulated(), dt=1 / 60).rollout(None, 12)
    usd.write(tmp_path / "walk.usda", trajectory, every=3)
    assert worst(tmp_path / "walk.usda", trajectory, 3) < 1e-9
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    times = UsdGeom.Xformable(stage.GetPrimAtPath("/World/Bodies/rod")).GetOrderedXformOps()[0].GetTimeSamples()
    assert times == [0.0, 3.0, 6.0, 9.0, 12.0]
    assert usd.read(tmp_path / "walk.usda") == scene
    assert usd.read(tmp_path / "walk_scene.usda") == scene
    assert findings(tmp_path / "walk.usda") == []


def test_frames_of_nested_and_scaled_bodies(tmp_path):
    """Prims of others stay where they are, whatever is above them."""
    inner = cube("Rod", (0.5, 0, 0), inside=cube("Tip", (0.5, 0, 0)))
    base = prim("Xform", "World", text='double3 xformOp:scale = (2, 2, 2)\n float xformOp:rotateX = 30\n uniform token[] xformOpOrder = ["xformOp:rotateX", "xformOp:scale"]\n' + inner)  # fmt: skip
    hinges = joint("PhysicsRevoluteJoint", "A", None, "/World/Rod", text="point3f physics:localPos1 = (-0.5, 0, 0)\n uniform token physics:axis = \"Y\"\n"), joint("PhysicsSphericalJoint", "B", "/World/Rod", "/World/Rod/Tip", text="point3f physics:localPos0 = (0.5, 0, 0)\n")  # fmt: skip
    scene = read(tmp_path, base, *hinges, contact_points=0)
    trajectory = wb.Simulation(scene, wb.Articulated(), dt=1 / 60).rollout(None, 6)
    usd.write(tmp_path / "walk.usda", trajectory)
    assert worst(tmp_path / "walk.usda", trajectory, 1) < 1e-9


def test_a_simulation_of_what_was_written_is_the_same(tmp_path):
    scene = pendulum(obstacles=[Obstacle(HalfSpace((0, 0, -0.3), (0, 0, 1)))], bodies=[dataclasses.replace(b, points=20) for b in pendulum().bodies], contacts=contacts_between({"base": 0.5, "rod": 0.3}, {"floor": 0.5}))  # fmt: skip
    usd.write(tmp_path / "a.usda", scene)
    ends = [
        wb.Simulation(s, wb.Articulated(), dt=0.01, substeps=12).rollout(None, 20).final
        for s in (scene, usd.read(tmp_path / "a.usda"))
    ]
    assert ends[0].q.tolist() == ends[1].q.tolist()


ASSETS = {
    # velocities, mass [kg] and masses of bodies as the importer of Newton 1.3 has them
    "ant": (14, 0.182176),
    "ant_mixed": (14, 0.182176),
    "humanoid": (27, 40.844021),
    "humanoid_mjc": (27, 40.844021),
    "cartpole_mjc": (2, 12.198739),
    "four_link_chain_articulation": (3, 8.0),
    "simple_articulation_with_mesh": (7, 500.0),
    "revolute_articulation": (1, 4.0),
    "pendulum_revolute_vs_d6": (2, 1000002.0),
    "actuator_test": (2, 1.0),  # its base is kinematic and so no body
    "cube_cylinder": (6, 1.2),
}


def asset(name):
    found = importlib.util.find_spec("newton")
    if found is None or not found.submodule_search_locations:
        pytest.skip("Newton, whose files these are, is not installed")
    path = Path(found.submodule_search_locations[0]) / "tests" / "assets" / f"{name}.usda"
    if not path.exists():
        pytest.skip(f"this Newton has no {path.name}")
    return path


@pytest.mark.parametrize("name", ASSETS)
def test_robots_of_newton(name, tmp_path):
    # in this file the robot starts 1.3 m below the floor
    scene = usd.read(asset(name), contact_points=0 if name == "humanoid_mjc" else 64)
    floating = sum(6 for b in scene.rigid if all(j.child != b.name for j in scene.joints))
    weight = sum(body_inertia(b).mass for b in scene.rigid if body_inertia(b))
    assert (sum(j.freedom for j in scene.joints) + floating, weight) == pytest.approx(ASSETS[name], rel=1e-5)
    sim = wb.Simulation(scene, wb.Articulated("bdf1"), dt=0.005)
    assert np.isfinite(sim.sense(sim.rollout(None, 100).final).position.cpu().numpy()).all()
    alone = dataclasses.replace(scene, source=None)
    usd.write(tmp_path / "a.usda", alone)
    assert not differences(usd.read(tmp_path / "a.usda"), alone)


def test_a_loop_of_newton_is_refused():
    with pytest.raises(SceneError, match="/Connect: the joint .* closes the loop"):
        usd.read(asset("mjc_schema_import"))


def test_a_free_joint_without_a_frame_is_read_back_without_one(tmp_path):
    """With a start and a velocity, beside one whose frame is given; another mass moves neither."""
    box = Box((0.0, 0.0, 0.0), (0.2, 0.4, 0.6))
    bodies = [RigidBody(n, box, position=(x, 1 / 3, 0.0), rotation=turn(1)) for n, x in (("a", 1.0), ("b", 3.0))]
    q = (0.3, 0.0, 1 / 7, 0.0, 0.6, 0.0, 0.8)
    joints = [
        Joint("of a", "free", None, "a", start=q, start_velocity=(1.0, 0, 0, 1 / 3, 0, 0)),
        Joint("of b", "free", None, "b", position=(3.0, 1 / 3, 0.0), start=q),
    ]
    scene = Scene(bodies, joints=joints)
    usd.write(tmp_path / "a.usda", scene)
    found = usd.read(tmp_path / "a.usda")
    assert found.joints == scene.joints
    assert [j.position is None for j in found.joints] == [True, False]
    poses = [wb.Simulation(s, wb.Articulated(), dt=0.01) for s in (scene, found)]
    poses = [sim.sense(sim.rollout(None, 5).final).position.tolist() for sim in poses]
    assert poses[0] == poses[1]
    sim = wb.Simulation(scene, wb.Articulated(), dt=0.01)
    kept = sim.scene_with(mass=sim.parameter("mass") * 2.0)
    assert [j.position is None for j in kept.joints] == [True, False]
    moved = sim.scene_with(center_of_mass=sim.parameter("center_of_mass") + 0.01)
    place = wb.Simulation(moved, wb.Articulated(), dt=0.01)
    np.testing.assert_allclose(place.sense(place.state()).position, sim.sense(sim.state()).position, atol=1e-12)
