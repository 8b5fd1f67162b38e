"""Frequent content of files of Isaac, Omniverse and OpenUSD: instances, open ground, switches, soft limits, groups."""

import math
import re

import numpy as np
import pytest
from usd_cases import ROUND, prim, write_text

from warpbots import usd
from warpbots.contact.distance import signed_distance
from warpbots.scene import Box, SceneError, Sheet, TriangleMesh
from warpbots.usd.geometry.open_surfaces import solid_behind
from warpbots.usd.geometry.tessellation import cube, sphere

HEADER = '(\n upAxis = "Z"\n metersPerUnit = {unit}\n)\n'
RIGID = ("PhysicsRigidBodyAPI", "PhysicsCollisionAPI")
QUAD = "point3f[] points = [(-1,-2,0),(1,-2,0),(1,2,0),(-1,2,0)]\n int[] faceVertexCounts = [4]\n"


def place(x=0.0, y=0.0, z=0.0):
    return f'double3 xformOp:translate = ({x}, {y}, {z})\n uniform token[] xformOpOrder = ["xformOp:translate"]\n'


def read(tmp_path, content, unit=1, **options):
    return usd.read(write_text(tmp_path / "daily.usda", HEADER.format(unit=unit) + content), **options)


@pytest.fixture
def said(heard):
    """The notes of the warnings, a line for each prim."""
    return lambda: heard.text


def ball(name, text="", *schemas):
    return prim("Sphere", name, *RIGID, *schemas, text="double radius = 0.1\n" + text)


# instances


ROCKS = """
def PointInstancer "Rocks" (
    inactiveIds = [12]
) {
    point3f[] positions = [(1,0,0), (2,0,0), (3,0,0)]
    quath[] orientations = [(1,0,0,0), (0.7071,0,0,0.7071), (1,0,0,0)]
    float3[] scales = [(1,1,1), (2,2,2), (1,1,1)]
    vector3f[] velocities = [(0,0,0), (0,1,0), (0,0,0)]
    int[] protoIndices = [0, 1, 0]
    int64[] ids = [10, 11, 12]
    rel prototypes = [</World/Rocks/Protos/Ball>, </World/Rocks/Protos/Brick>]
    over "Protos" {
%s
    }
}
"""


def test_every_instance_is_a_body_at_its_own_pose(tmp_path, said):
    """An instance is at T_parent T R S of the instancer, its velocity is in the axes of the instancer."""
    brick = prim("Xform", "Brick", "PhysicsRigidBodyAPI", text=place(z=0.5) + prim("Cube", "Geo", RIGID[1],
                 text="double size = 0.1"))  # fmt: skip
    rocks = ROCKS % (ball("Ball") + brick)
    scene = read(tmp_path, f'def Xform "World" {{\n{place(z=1)}{rocks}}}\n')
    assert [b.name for b in scene.bodies] == ["Ball", "Brick"]
    np.testing.assert_allclose([b.position for b in scene.bodies], [[1, 0, 1], [2, 0, 2]])
    turned = scene.bodies[1]
    np.testing.assert_allclose(turned.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(turned.shape.bounds, [[-0.1] * 3, [0.1] * 3], rtol=1e-6)
    np.testing.assert_allclose(np.array(turned.rotation) @ scene.joints[0].start_velocity[:3], (0, 1, 0), atol=1e-6)
    assert scene.source is None
    assert "/World/Rocks: a point instancer; its 2 instances" in said()


def test_instances_without_physics_are_no_bodies_of_a_file_with_some(tmp_path):
    rocks = ROCKS % (prim("Sphere", "Ball") + prim("Cube", "Brick"))
    scene = read(tmp_path, f'def Xform "World" {{\n{rocks}{ball("Marble")}}}\n')
    assert [b.name for b in scene.bodies] == ["Marble"]
    assert scene.source is not None
    assert len(read(tmp_path, f'def Xform "World" {{\n{rocks}}}\n', material=ROUND).bodies) == 2


def test_instances_of_colliders_are_obstacles_and_write_themselves(tmp_path):
    rocks = ROCKS % (prim("Sphere", "Ball", RIGID[1]) + prim("Cube", "Brick", RIGID[1]))
    scene = read(tmp_path, f'def Xform "World" {{\n{rocks}{ball("Marble")}}}\n')
    assert [o.shape.center for o in scene.obstacles if o.name == "Ball"] == [(1.0, 0.0, 0.0)]
    usd.write(tmp_path / "again.usda", scene)
    assert usd.read(tmp_path / "again.usda") == scene


@pytest.mark.parametrize("wrong", ["protoIndices = [0, 1, 2]", "protoIndices = [0, 1]"])
def test_instances_that_do_not_fit(wrong, tmp_path, said):
    rocks = (ROCKS % (ball("Ball") + ball("Brick"))).replace("protoIndices = [0, 1, 0]", wrong)
    fault = r"/World/Rocks: (its protoIndices must index 2|it has 2 protoIndices)"
    with pytest.raises(SceneError, match=fault):
        read(tmp_path, f'def Xform "World" {{\n{rocks}}}\n')
    bare = rocks.replace("PhysicsRigidBodyAPI", "").replace("PhysicsCollisionAPI", "") + prim("Cube", "Box")
    assert len(read(tmp_path, f'def Xform "World" {{\n{bare}}}\n', material=ROUND).bodies) == 1
    assert re.search(fault, said())


ROBOT = """
def Xform "Robot" {
    def Sphere "Base" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]
    ) {
        double radius = 10
    }
    def Xform "Arm" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
        prepend variantSets = "size"
        variants = {
            string size = "small"
        }
    ) {
        double3 xformOp:translate = (100, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        variantSet "size" = {
            "large" {
                def Cube "Geo" (
                    prepend apiSchemas = ["PhysicsCollisionAPI"]
                ) {
                    double size = 20
                }
            }
            "small" {
                def Cube "Geo" (
                    prepend apiSchemas = ["PhysicsCollisionAPI"]
                ) {
                    double size = 10
                }
            }
        }
    }
    def PhysicsRevoluteJoint "Hinge" (
        prepend apiSchemas = ["PhysicsDriveAPI:angular"]
    ) {
        rel physics:body0 = </Robot/Base>
        rel physics:body1 = </Robot/Arm>
        uniform token physics:axis = "Z"
        point3f physics:localPos0 = (100, 0, 0)
        float drive:angular:physics:stiffness = 100
        float drive:angular:physics:damping = 10
        float drive:angular:physics:targetPosition = 90
    }
}
"""


def test_robots_that_share_one_prototype(tmp_path):
    """Native instances of one robot, a payload in centimetres with a variant; gains are per degree."""
    write_text(tmp_path / "robot.usda", HEADER.format(unit=0.01) + ROBOT)
    two = "".join(
        f'def Xform "R{k}" (\n instanceable = true\n prepend payload = @./robot.usda@</Robot>\n) {{\n{place(y=300 * k)}}}\n'
        for k in range(2)
    )
    scene = read(tmp_path, two, unit=0.01)
    assert (len(scene.bodies), len(scene.joints), len(scene.actuators)) == (4, 2, 2)
    arms = [b for b in scene.bodies if "Arm" in b.name]
    np.testing.assert_allclose([b.position for b in arms], [[1, 0, 0], [1, 3, 0]])
    np.testing.assert_allclose(arms[0].shape.bounds, [[-0.05] * 3, [0.05] * 3])
    assert all(j.position == b.position for j, b in zip(scene.joints, arms, strict=True))
    servo, torque = scene.actuators[1], 1e-4  # of 1 kg cm^2/s^2
    assert servo.stiffness == pytest.approx(100.0 * torque * 180.0 / math.pi)
    assert servo.damping == pytest.approx(10.0 * torque * 180.0 / math.pi)
    assert servo.target == pytest.approx(math.pi / 2.0)


# ground


def test_an_open_quad_is_ground(tmp_path, said):
    """Its upper side is where it is drawn, for both windings and every kind of prim."""
    for corners in ("[0,1,2,3]", "[3,2,1,0]"):
        for approximation in ("none", "convexHull"):
            text = (
                f'{QUAD} int[] faceVertexIndices = {corners}\n uniform token physics:approximation = "{approximation}"'
            )
            scene = read(tmp_path, ball("Ball", place(z=1)) + prim("Mesh", "Ground", RIGID[1], text=text))
            assert scene.obstacles[0].shape == Box((-1.0, -2.0, -0.2), (1.0, 2.0, 0.0))
            assert {c.solid for c in scene.contacts} == {"Ground"}
    assert "/Ground: an open surface; the space up to 0.2 m behind it is solid" in said()
    assert "which faces downwards and is taken as facing upwards" in said()


def grid(n=9):
    """A terrain of n x n points over the unit square: vertices and faces."""
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
    k = np.arange(n * n).reshape(n, n)
    a, b, c, d = (part.ravel() for part in (k[:-1, :-1], k[1:, :-1], k[1:, 1:], k[:-1, 1:]))
    points = np.stack([x, y, 0.1 * np.sin(6 * x) * np.cos(5 * y)], axis=-1).reshape(-1, 3)
    return points, np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


def test_terrain_is_solid_below():
    points, faces = grid()
    shape, words = solid_behind(points, faces)
    assert isinstance(shape, TriangleMesh) and "behind it is solid" in words
    assert shape.bounds[0][2] == pytest.approx(points[:, 2].min() - 0.1)
    corner = points[faces]
    middle, normal = corner.mean(axis=1), np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    below = (
        normal[:, 2] / 2.0 * (middle[:, 2] - shape.bounds[0][2])
    ).sum()  # a prism has its area times its mean height
    assert shape.volume == pytest.approx(below)
    up = 0.01 * normal / np.linalg.norm(normal, axis=1, keepdims=True)
    np.testing.assert_allclose(np.sign(signed_distance(shape, np.concatenate([middle + up, middle - up]))),
                               np.repeat([1.0, -1.0], len(faces)))  # fmt: skip


def test_a_tilted_quad_of_many_faces_is_a_slab():
    """Divided into faces of both windings, it is still one plate with its own normal."""
    points, faces = grid()
    points[:, 2] = 0.0
    faces[::3] = faces[::3, ::-1]
    angle = 0.4
    turn = np.array([[1, 0, 0], [0, math.cos(angle), -math.sin(angle)], [0, math.sin(angle), math.cos(angle)]])
    shape, _ = solid_behind(points @ turn.T, faces)
    inside = np.array([[0.5, 0.5, -0.03], [0.5, 0.5, 0.03], [0.5, 0.5, -0.13]]) @ turn.T
    np.testing.assert_allclose(signed_distance(shape, inside), [-0.03, 0.03, 0.03], atol=1e-12)


def test_a_hole_is_closed_and_a_tray_gets_walls():
    points, faces = sphere(1.0)
    closed, words = solid_behind(points, faces[:-3])
    assert "holes are closed" in words and closed.volume == pytest.approx(4.0 / 3.0 * math.pi, rel=1e-2)
    corners, sides = cube()
    tray = sides[~(corners[sides][..., 2] == 1.0).all(axis=1)]
    shape, words = solid_behind(corners, tray)
    assert isinstance(shape, Sheet) and "thickness of 0.0833 m" in words
    np.testing.assert_allclose(signed_distance(shape, np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0]])),
                               [1.0 - 1 / 24, -1 / 24], atol=1e-6)  # fmt: skip


def test_ground_that_cannot_be_read_is_refused(tmp_path):
    """Without it bodies would fall; a collider without any geometry is only named."""
    bad = QUAD.replace("(1,2,0)", "(inf,2,0)") + " int[] faceVertexIndices = [0,1,2,3]"
    with pytest.raises(SceneError, match=r"/Ground: .*switch it off \(physics:collisionEnabled\)"):
        read(tmp_path, ball("Ball", place(z=1)) + prim("Mesh", "Ground", RIGID[1], text=bad))
    assert read(tmp_path, ball("Ball", place(z=1)) + prim("Mesh", "Ground", RIGID[1])).obstacles == ()


@pytest.mark.parametrize(
    ("kind", "text", "volume"),
    [
        ("Sphere", "double radius = 0.5", math.pi / 6.0),
        ("Cylinder", "double radius = 0.5\n double height = 2", math.pi / 2.0),
        ("Capsule", "double radius = 0.5\n double height = 2", math.pi / 2.0 + math.pi / 6.0),
        ("Cone", "double radius = 0.5\n double height = 2", math.pi / 6.0),
    ],
)
def test_what_is_round_may_be_scaled_in_any_way(kind, text, volume, tmp_path):
    """A scale (1, 2, 3) makes six times the volume; a polygon of 48 sides has the area of its circle."""
    scale = 'double3 xformOp:scale = (1, 2, 3)\n uniform token[] xformOpOrder = ["xformOp:scale"]\n'
    shape = read(tmp_path, prim("Xform", "Body", RIGID[0], text=prim(kind, "Geo", RIGID[1], text=text + "\n" + scale)))
    assert shape.bodies[0].shape.volume == pytest.approx(6.0 * volume, rel=5e-3)


# files without physics


def test_meshes_that_are_open_become_sheets_of_the_thickness_that_is_said(tmp_path, said):
    quad = f'def Mesh "Cloth" {{\n{QUAD} int[] faceVertexIndices = [0,1,2,3]\n}}\n'
    with pytest.raises(SceneError, match=r"/Cloth: TriangleMesh is not watertight.*pass thickness="):
        read(tmp_path, quad, material=ROUND)
    shape = read(tmp_path, quad, material=ROUND, thickness=2e-3).bodies[0].shape
    assert isinstance(shape, Sheet) and (shape.area, shape.thickness) == (8.0, 2e-3)
    with pytest.raises(SceneError, match=r"thickness must be positive \[m\], or None"):
        read(tmp_path, quad, material=ROUND, thickness=0.0)
    scene = read(tmp_path, quad + 'def Cube "Box" {\n}\ndef BasisCurves "Hair" {\n}\n', material=ROUND)
    assert [b.name for b in scene.bodies] == ["Box"]
    assert "/Cloth: TriangleMesh is not watertight" in said() and "/Hair: a BasisCurves, which is not a solid" in said()


def test_geometry_without_physics_is_not_taken_for_rigid(tmp_path, said):
    assert read(tmp_path, 'def Cube "Box" {\n}\n', material=ROUND).bodies[0].material == ROUND
    assert "1 kg" not in said()


# switches


def test_a_body_that_is_switched_off_is_neither_soft_nor_rigid(tmp_path):
    soft = ("PhysicsDeformableBodyAPI", "PhysicsRigidBodyAPI")
    off = prim("Cube", "Jelly", *soft, text="bool physics:rigidBodyEnabled = 0")
    assert read(tmp_path, off, material=ROUND).soft[0].name == "Jelly"
    off = prim("Cube", "Jelly", *soft, text="bool omniphysics:deformableBodyEnabled = 0")
    assert read(tmp_path, off).rigid[0].name == "Jelly"
    with pytest.raises(SceneError, match="/Jelly: a rigid body that is also marked as a soft body"):
        read(tmp_path, prim("Cube", "Jelly", *soft), material=ROUND)
    still = prim("Cube", "Stone", "PhysicsRigidBodyAPI", text="bool physics:rigidBodyEnabled = 0")
    assert read(tmp_path, still, material=ROUND).soft[0].name == "Stone"


def joint(a, b, text="", kind="Revolute", *schemas):
    return prim(f"Physics{kind}Joint", f"J{a}{b}", *schemas,
                text=f"rel physics:body0 = </{a}>\n rel physics:body1 = </{b}>\n{text}")  # fmt: skip


@pytest.mark.parametrize("switch", ["active = false", 'kind = "x"'])
def test_a_joint_of_a_body_that_is_not_there(switch, tmp_path, said):
    """The body is inactive, or a class; its joint is left out and does not attach the other body to the world."""
    gone = ball("B").replace("(\n", f"(\n    {switch}\n", 1)
    gone = gone.replace("def ", "class ", 1) if "kind" in switch else gone
    scene = read(tmp_path, ball("A") + gone + joint("A", "B"))
    assert [b.name for b in scene.bodies] == ["A"] and not scene.joints
    assert "/JAB: a joint of /B, which is inactive" in said()


# joints


def test_loops_are_cut_where_that_is_wanted(tmp_path, said):
    ring = "".join(ball(name) for name in "ABC") + joint("A", "B") + joint("B", "C") + joint("C", "A")
    with pytest.raises(SceneError, match=r"/JBC: the joint closes the loop /B - /A - /C;.*or pass ignore_loops=True"):
        read(tmp_path, ring)
    scene = read(tmp_path, ring, ignore_loops=True)
    assert [j.name for j in scene.joints] == ["JAB", "JCA"]
    assert "/JBC: the joint closes the loop /B - /A - /C; it is left out" in said()
    usd.write(tmp_path / "again.usda", scene)
    assert usd.read(tmp_path / "again.usda", ignore_loops=True) == scene


def test_limits_and_states_of_physx(tmp_path, said):
    """Per degree in the file, per radian in the scene; the initial velocity of the joint is in degrees per second."""
    text = (
        "float physics:lowerLimit = -10\n float physics:upperLimit = 20\n float physxLimit:angular:stiffness = 2\n"
        "float physxLimit:angular:damping = 3\n float state:angular:physics:velocity = 90\n"
        "float state:angular:physics:position = 7"
    )
    found = read(tmp_path, ball("A") + ball("B") + joint("A", "B", text, "Revolute", "PhysxLimitAPI:angular")).joints[0]
    assert found.limit_stiffness == pytest.approx(2.0 * 180.0 / math.pi)
    assert found.start_velocity == pytest.approx((math.pi / 2.0,))
    assert "/JAB: physxLimit:angular:damping = 3, which is not read" in said()
    assert "/JAB: state:angular:physics:position = 7; it starts at the poses of its bodies instead, at 0" in said()


# what is not read


def test_physics_that_is_not_read_is_named_once_for_each_kind(tmp_path, said):
    damping = "float physxRigidBody:angularDamping = {}\n bool physxRigidBody:disableGravity = 0\n"
    many = "".join(ball(f"B{k}", damping.format(2.0), "PhysxRigidBodyAPI") for k in range(6))
    tendon = joint("B0", "B1", "float physxTendon:t:stiffness = 5", "Revolute", "PhysxTendonAxisAPI:t",
                   "PhysxMimicJointAPI:rotX")  # fmt: skip
    force = prim("Xform", "Wind", "PhysxForceAPI", text="vector3f physxForce:force = (1, 0, 0)")
    actuator = 'def MjcActuator "Motor" {\n float mjc:gear = 3\n}\n'
    scene = prim("PhysicsScene", "Scene", "PhysxSceneAPI", text="bool physxScene:enableCCD = 1")
    read(tmp_path, many + tendon + force + actuator + scene)
    lines = said().splitlines()[1:]
    for words in (
        "/B0 and 5 others: physxRigidBody:angularDamping = 2, which is not read",
        "/JB0B1: PhysxTendonAxisAPI, a tendon, which is not simulated",
        "/JB0B1: PhysxMimicJointAPI:rotX; joints move independently",
        "/Wind: PhysxForceAPI, which warpbots does not support",
        "/Motor: a MjcActuator; motors are drives of joints",
    ):
        assert sum(words in line for line in lines) == 1, words
    assert len(lines) == 5  # no line says what changes nothing, or what its schema stands for


def test_collision_groups(tmp_path):
    """A and B are in a group that does not meet itself, C in one that does not meet the ground."""
    group = "rel collection:colliders:includes = [{}]\n rel physics:filteredGroups = {}"
    text = "".join(ball(name, place(x=k)) for k, name in enumerate("ABC")) + prim("Plane", "Ground", RIGID[1])
    for name, members, apart in (("G1", "</A>, </B>", "</G1>"), ("G2", "</C>", "</G3>"), ("G3", "</Ground>", "[]")):
        text += prim("PhysicsCollisionGroup", name, "CollectionAPI:colliders", text=group.format(members, apart))
    scene = read(tmp_path, text)
    called = {b.name: {b.name, b.surface} for b in scene.bodies} | {"Ground": {"Ground"}}
    met = {
        a + b for a in "ABC" for b in ("A", "B", "C", "Ground") if a != b
        for c in scene.contacts if c.points in called[a] and c.solid in called[b]
    }  # fmt: skip
    assert met == {"AC", "CA", "BC", "CB", "AGround", "BGround"}


def test_soft_bodies_of_older_omniverse(tmp_path):
    stiff = "float physxDeformableBodyMaterial:youngsModulus = 5000\n float physxDeformableBodyMaterial:density = 300"
    rubber = prim("Material", "Rubber", "PhysxDeformableBodyMaterialAPI", text=stiff)
    schemas = ("PhysicsCollisionAPI", "PhysxDeformableBodyAPI", "MaterialBindingAPI")
    cube_ = prim("Cube", "Jelly", *schemas, text="rel material:binding:physics = </Rubber>")
    scene = read(tmp_path, rubber + cube_)
    assert (scene.soft[0].material.youngs_modulus, scene.soft[0].material.density) == (5000.0, 300.0)
    assert scene.obstacles == ()


def test_a_trigger_resists_nothing(tmp_path, said):
    zone = prim("Cube", "Zone", "PhysicsCollisionAPI", "PhysxTriggerAPI")
    assert read(tmp_path, ball("Ball", place(z=5)) + zone).obstacles == ()
    assert "/Zone: a trigger, which resists nothing" in said()


def test_what_stands_for_a_mesh_may_be_said_above_it(tmp_path):
    """A tetrahedron with a notched corner becomes its hull if an Xform above it says so."""
    mesh = prim("Mesh", "Geo", text=f"{QUAD.replace('(-1,2,0)', '(0,0,1)')} int[] faceVertexIndices = [0,1,2,3]")
    group = prim("Xform", "collisions", "PhysicsCollisionAPI", "PhysicsMeshCollisionAPI",
                 text=f'uniform token physics:approximation = "boundingCube"\n{mesh}')  # fmt: skip
    body = read(tmp_path, prim("Xform", "Link", "PhysicsRigidBodyAPI", text=group)).bodies[0]
    assert body.shape == Box((-1.0, -2.0, 0.0), (1.0, 2.0, 1.0))


def test_a_kinematic_body_with_a_velocity_stands_still(tmp_path, said):
    text = "bool physics:kinematicEnabled = 1\n vector3f physics:velocity = (1, 0, 0)\n"
    scene = read(tmp_path, ball("Ball", place(z=5)) + prim("Cube", "Belt", *RIGID, text=text))
    assert [o.name for o in scene.obstacles] == ["Belt"]
    assert "/Belt: a kinematic body with a velocity; only time samples of its transform move it" in said()


def test_a_mass_that_belongs_to_nothing_is_named(tmp_path, said):
    inner = prim("Xform", "Inner", "PhysicsMassAPI", text="float physics:mass = 3\n" + prim("Cube", "Geo", RIGID[1]))
    read(tmp_path, prim("Xform", "Body", "PhysicsRigidBodyAPI", text=inner))
    assert "/Body/Inner: a mass or density of a prim that is neither body nor collider" in said()


def test_what_starts_in_an_obstacle_is_named(tmp_path, said):
    text = f"{QUAD} int[] faceVertexIndices = [0,1,2,3]"
    read(tmp_path, ball("Ball", place(z=-0.05)) + prim("Mesh", "Ground", RIGID[1], text=text))
    assert "/Ball: it starts 0.05 m deep in the obstacle 'Ground'" in said()
