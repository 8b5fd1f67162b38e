"""Joints of files: kinds, axes, limits, units and starts, and errors that name their prims."""

import dataclasses
import math

import numpy as np
import pytest
from rigid_prims import LOCK, PLACES, cube, joint, locked, notes, pair, read
from usd_cases import prim

import warpbots as wb
from warpbots.scene import (
    SceneError,
)
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.usd.rigid.robot_writer import start_poses

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
    """Also if the first body of a joint is the child of the second one."""
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


def test_what_is_said_of_a_joint_comes_in_one_order(tmp_path, heard):
    """The order does not follow Python's hashes of text, which differ from run to run."""
    text = PLACES + "".join(f"float physxLimit:{axis}:damping = {k + 1}\n" for k, axis in enumerate(sorted(LOCK)))
    apis = tuple(f"PhysxLimitAPI:{axis}" for axis in reversed(LOCK))
    pair(tmp_path, joint("PhysicsJoint", text=text, apis=apis))
    said = [line.partition(": ")[2] for line in heard.lines if "physxLimit" in line]
    assert said == [f"physxLimit:{axis}:damping = {k + 1}, which is not read" for k, axis in enumerate(sorted(LOCK))]


def test_a_joint_to_what_does_not_move_is_one_to_the_world(tmp_path):
    wall = prim(
        "Xform",
        "Wall",
        text='double3 xformOp:translate = (0, 0, 2)\n uniform token[] xformOpOrder = ["xformOp:translate"]',
    )
    scene = read(tmp_path, wall, cube("Arm", (0, 0, 2)), joint("PhysicsRevoluteJoint", first="/Wall"))
    assert scene.joints[0].parent is None
    assert scene.joints[0].position == (0.0, 0.0, 2.0)
