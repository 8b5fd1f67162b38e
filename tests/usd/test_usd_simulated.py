"""A scene that is read from a stage can be simulated: worlds without bodies, siblings, moments, thin colliders."""

import dataclasses
import random

import numpy as np
import pytest
from usd_cases import prim, write_text

import warpbots as wb
from warpbots.solvers.scene_parts import takers

HEAD = '#usda 1.0\n(\n    metersPerUnit = 1\n    upAxis = "Z"\n    defaultPrim = "W"\n)\n'
RIGID = ("PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI")


def place(x, y, z):
    return f'double3 xformOp:translate = ({x}, {y}, {z})\n uniform token[] xformOpOrder = ["xformOp:translate"]\n'


def read(folder, *prims, **options):
    text = "".join(prims)
    return wb.usd.read(write_text(folder / "stage.usda", f'{HEAD}def Xform "W"\n{{\n{text}\n}}\n'), **options)


def joint(name, kind, first, second, at, text=""):
    base = f"rel physics:body0 = </W/{first}>\n" if first else ""
    text = f"{base}rel physics:body1 = </W/{second}>\n point3f physics:localPos0 = {tuple(at)}\n {text}"
    return prim(f"Physics{kind}Joint", name, text=text)


# worlds


def test_a_world_of_colliders_is_put_around_a_robot(tmp_path):
    """Its obstacles are read without a body; a body that falls on them comes to rest on the table."""
    table = prim("Cube", "Table", RIGID[1], text="double size = 1\n" + place(0, 0, -0.3))
    world = read(tmp_path, table, prim("Sphere", "Lamp"))
    assert (world.bodies, world.dim, [o.name for o in world.obstacles]) == ((), 3, ["Table"])
    np.testing.assert_allclose(world.bounds, [[-0.5, -0.5, -0.8], [0.5, 0.5, 0.2]])
    assert "Table" in str(world)
    cube = wb.SoftBody("cube", wb.shapes.Box((-0.05, -0.05, 0.21), (0.05, 0.05, 0.31)), wb.Material(1e5))
    scene = dataclasses.replace(wb.Scene([cube]), obstacles=world.obstacles)
    final = wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=0.02).rollout(None, 25).final
    assert final.position[0, :, 2].min() == pytest.approx(0.2, abs=2e-3)


def test_a_world_is_no_scene_to_simulate(tmp_path):
    world = read(tmp_path, prim("Plane", "Ground", RIGID[1]))
    for solver in (wb.MPM(), wb.Articulated(), wb.ProjectiveDynamics(0.1), wb.MassSpring(0.1)):
        with pytest.raises(
            wb.SceneError, match=r"Scene 'W': it has no body to simulate, only obstacles \(1\); put them"
        ):
            wb.Simulation(world, solver)
    wb.usd.write(tmp_path / "again.usda", dataclasses.replace(world, source=None))
    assert wb.usd.read(tmp_path / "again.usda") == world
    with pytest.raises(wb.SceneError, match="at least one body, got none, and no obstacles"):
        wb.Scene([])
    assert world._repr_mimebundle_()


def test_geometry_beside_a_world_is_named(tmp_path, heard):
    parts = prim("Cube", "Floor", RIGID[1], text=place(0, 0, -3)), prim("Sphere", "Lamp")
    read(tmp_path, *parts)
    assert "the whole file: geometry without physics; pass material=Material(youngs_modulus=...) to make" in heard.text
    assert "/W/Lamp" in heard.text
    assert [b.name for b in read(tmp_path, *parts, material=wb.Material(1e5)).bodies] == ["Lamp"]


# siblings


@pytest.mark.parametrize(("first", "second"), [("Fixed", "Revolute"), ("Fixed", "Fixed"), ("Revolute", "Prismatic")])
def test_siblings_on_a_base_without_geometry(first, second, tmp_path):
    """A body that is fixed to a base is one with it: its sibling touches it only by a law that names both."""
    base = prim(
        "Xform",
        "base",
        RIGID[0],
        RIGID[2],
        text="float physics:mass = 3\n float3 physics:diagonalInertia = (1, 1, 1)\n",
    )
    arms = [
        prim("Cube", n, *RIGID, text="double size = 0.1\n" + place(0, y, 0))
        for n, y in (("left", 0.2), ("right", -0.2))
    ]
    joints = joint("a", first, "base", "left", (0, 0.2, 0)), joint("b", second, "base", "right", (0, -0.2, 0))
    scene = read(tmp_path, base, *arms, *joints)
    pairs = {(c.points, c.solid) for c in scene.contacts}
    if (first, second) == ("Fixed", "Revolute"):
        assert pairs == {("left", "right"), ("right", "left")}
    assert bool(pairs) == ((first, second) != ("Fixed", "Fixed"))
    wb.Simulation(scene, wb.Articulated(), dt=1e-3).rollout(None, 2)


# moments


@pytest.mark.parametrize(
    ("moments", "said"),
    [
        ("0.2, 0.2000001, 0.4000003", False),
        ("0.001, 0.1, 0.10100013", False),
        ("0.1, 0.1, 0.202", True),
        ("0.1, 0, 0.1", True),
        ("0.1, 0.2, 0.3299", True),
    ],
)
def test_moments_that_no_body_has_become_the_nearest(moments, said, tmp_path, heard):
    body = prim(
        "Cube",
        "part",
        *RIGID,
        text=f"double size = 0.1\n float physics:mass = 1\n float3 physics:diagonalInertia = ({moments})\n",
    )
    scene = read(tmp_path, body)
    assert ("violate A + B >= C; taken as the nearest possible" in heard.text) == said
    found = np.linalg.eigvalsh(scene.rigid[0].inertia.moments)
    given = np.sort([float(m) for m in moments.split(",")])
    excess = max(given[2] - given[0] - given[1], 0.0)
    np.testing.assert_allclose(found, given + excess / 3.0 * np.array([1.0, 1.0, -1.0]), rtol=1e-6, atol=1e-9)
    wb.Simulation(scene, wb.Articulated(), dt=1e-3).rollout(None, 2)


def test_moments_far_from_possible_are_refused(tmp_path):
    body = prim(
        "Cube",
        "part",
        *RIGID,
        text="double size = 0.1\n float physics:mass = 1\n float3 physics:diagonalInertia = (0.1, 0.1, 0.4)\n",
    )
    with pytest.raises(wb.SceneError, match="/W/part: Inertia: no moment can exceed the other two together"):
        read(tmp_path, body)


# soft and rigid


def test_a_file_with_soft_and_loose_rigid_bodies_can_be_simulated(tmp_path, heard):
    ball = prim("Sphere", "ball", *RIGID, text="double radius = 0.1\n" + place(0, 0, 2))
    gum = prim("Cube", "gum", "PhysicsDeformableBodyAPI", text="double size = 0.2\n" + place(2, 0, 1))
    scene = read(tmp_path, ball, gum, material=wb.Material(1e5))
    assert not scene.contacts and not heard.text  # no other rigid body and no obstacle
    bone = prim("Cube", "bone", *RIGID, text="double size = 0.1\n" + place(2, 0, 1))
    for mixed in (scene, read(tmp_path, bone, gum, material=wb.Material(1e5))):
        wb.Simulation(mixed, wb.ProjectiveDynamics(0.05), dt=0.01)


# whatever it is


MESH = (
    "point3f[] points = [(0,0,0), (.1,0,0), (0,.1,0), (0,0,.1)]\n int[] faceVertexCounts = [3, 3, 3, 3]\n"
    "int[] faceVertexIndices = [0,2,1, 0,1,3, 1,2,3, 2,0,3]\n"
)
SOLIDS = {
    "Cube": "double size = 0.1\n", "Sphere": "double radius = 0.06\n", "Cone": "double radius = 0.05\n double height = 0.1\n",
    "Capsule": "double radius = 0.03\n double height = 0.1\n", "Cylinder": "double radius = 0.05\n double height = 0.1\n",
    "Mesh": MESH,
}  # fmt: skip
MOMENTS = ("0.1, 0.1, 0.1", "0.2, 0.2000001, 0.4000003", "0, 0, 0", "0.001, 0.1, 0.1009999", "0.1, 0.1, 0")


def drawn(rng):
    """A stage of up to five bodies at random: shapes, masses, moments, materials, scales, joints, drives and limits."""
    count, parts, at = rng.randint(1, 5), [], []
    for k in range(2):
        text = "".join(f"float physics:{n} = {rng.choice(v)}\n" for n, v in (
            ("dynamicFriction", (0, 0.3, 0.9)), ("staticFriction", (0, 0.3, 0.9)), ("restitution", (0, 0.5, 1)),
            ("density", (0, 500))))  # fmt: skip
        parts.append(prim("Material", f"M{k}", "PhysicsMaterialAPI", text=text))
    for k in range(count):
        at.append([round(rng.uniform(low, 1.0), 2) for low in (-1, -1, 0.3)])
        scale = f"double3 xformOp:scale = ({rng.choice((1, 1, 2, 0.01))}, 1, {rng.choice((1, 0.5))})\n"
        text = f'double3 xformOp:translate = {tuple(at[k])}\n uniform token[] xformOpOrder = ["xformOp:translate"'
        text = scale + text + ', "xformOp:scale"]\n' if rng.random() < 0.3 else text + "]\n"
        text += f"float physics:mass = {rng.choice((0, 1, 1e-6))}\n" * (rng.random() < 0.4)
        text += f"float3 physics:diagonalInertia = ({rng.choice(MOMENTS)})\n" * (rng.random() < 0.3)
        text += "vector3f physics:velocity = (0.1, 0, 0)\n" * (rng.random() < 0.2)
        text += "bool physics:kinematicEnabled = 1\n" * (rng.random() < 0.1)
        kind = rng.choice((*SOLIDS, None))
        if kind:
            bound = f"rel material:binding:physics = </W/M{rng.randint(0, 1)}>\n" * (rng.random() < 0.5)
            text += prim(kind, "Solid", RIGID[1], "MaterialBindingAPI", text=SOLIDS[kind] + bound)
        parts.append(prim("Xform", f"B{k}", RIGID[0], *RIGID[2:] * (rng.random() < 0.6), text=text))
    for k in range(1, count):
        kind, up = rng.choice(("Fixed", "Revolute", "Prismatic", "Spherical", "")), rng.choice((None, *range(k)))
        text = "bool physics:collisionEnabled = 1\n" * (rng.random() < 0.3)
        if kind in ("Revolute", "Prismatic"):
            text += f"float physics:lowerLimit = {rng.choice((-10, 0))}\n float physics:upperLimit = {rng.choice((5, 20))}\n"
        if not kind:
            for axis in rng.sample(("transX", "transY", "transZ", "rotX", "rotY", "rotZ"), 4):
                text += (
                    f"float limit:{axis}:physics:low = 1\n float limit:{axis}:physics:high = {rng.choice((-1, 2))}\n"
                )
        place_up = at[k] if up is None else np.subtract(at[k], at[up]).tolist()
        if rng.random() < 0.8:
            parts.append(joint(f"J{k}", kind, None if up is None else f"B{up}", f"B{k}", place_up, text))
    if rng.random() < 0.6:
        parts.append(prim(rng.choice(("Cube", "Plane")), "Floor", RIGID[1]))
    if rng.random() < 0.2:
        parts.append(prim("Cube", "Soft", "PhysicsDeformableBodyAPI", text="double size = 0.2\n" + place(3, 0, 1)))
    return parts


@pytest.mark.filterwarnings(
    "ignore:Contact .* is not resolved", "ignore:Joint .* beyond its limits", "ignore:.* deep in "
)
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 100))])
def test_whatever_a_stage_is_its_scene_can_be_simulated(seed, tmp_path, heard):
    """Or the reader refuses it by the path of a prim, or says that no solver takes it."""
    scene, refusal = None, ""
    try:
        scene = read(tmp_path, *drawn(random.Random(seed)), material=wb.Material(1e5))
    except wb.SceneError as error:
        refusal = str(error)
    if scene is None:
        assert "/W/" in refusal
        return
    scene.validate()
    if not scene.bodies:
        assert scene.obstacles
    elif not takers(scene):
        assert "no solver takes all of this scene" in heard.text
    else:
        solver = wb.ProjectiveDynamics(0.1) if scene.soft else wb.Articulated()
        try:
            wb.Simulation(scene, solver, dt=1e-3)
        except wb.SceneError as error:  # bodies of a random stage may overlap its floor
            refusal = str(error)
        assert not refusal or "start inside it" in refusal
