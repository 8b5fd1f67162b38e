"""No physics of a file is lost silently: every attribute of every schema, on every kind of prim."""

import dataclasses
import functools
import re

import numpy as np
import pytest
from pxr import Gf, Sdf, Tf, Usd, UsdShade

import warpbots as wb
from warpbots.usd.reader import read_stage
from warpbots.usd.stage.schema import TABLE
from warpbots.usd.stage.unread_physics import _NUMERICS

SCENE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
    kilogramsPerUnit = 1
)
def PhysicsScene "Scene" {}
def PhysicsCollisionGroup "Group" (prepend apiSchemas = ["CollectionAPI:colliders"])
{
    rel collection:colliders:includes = </Base>
}
def PhysicsCollisionGroup "Other" (prepend apiSchemas = ["CollectionAPI:colliders"])
{
    rel collection:colliders:includes = </Free>
}
def Material "Gum" (prepend apiSchemas = ["PhysicsMaterialAPI", "PhysicsVolumeDeformableMaterialAPI"])
{
    float physics:youngsModulus = 2e5
}
def Material "Steel" (prepend apiSchemas = ["PhysicsMaterialAPI"])
{
    float physics:dynamicFriction = 0.4
}
def Material "Stone" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {}
def Cube "Soft" (prepend apiSchemas = ["PhysicsDeformableBodyAPI", "PhysicsMassAPI", "MaterialBindingAPI"])
{
    rel material:binding:physics = </Gum>
    double size = 0.1
    double3 xformOp:translate = (0, 5, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Xform "Base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI", "PhysicsFilteredPairsAPI"])
{
    double3 xformOp:translate = (0, 0, 2)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Cube "Solid" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI", "MaterialBindingAPI"])
    {
        rel material:binding:physics = </Steel>
        double size = 0.1
    }
}
def Mesh "Ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMeshCollisionAPI", "PhysicsMassAPI", "MaterialBindingAPI"])
{
    rel material:binding:physics = </Steel>
    point3f[] points = [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1), (0.02, 0.02, 0.02)]
    int[] faceVertexCounts = [3, 3, 3, 3, 3, 3]
    int[] faceVertexIndices = [0, 1, 3, 1, 2, 3, 2, 0, 3, 0, 4, 1, 1, 4, 2, 2, 4, 0]
    double3 xformOp:translate = (1, 0, 3)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def PhysicsRevoluteJoint "Hinge" (prepend apiSchemas = ["PhysicsDriveAPI:angular"])
{
    rel physics:body0 = </Base>
    rel physics:body1 = </Ball>
    point3f physics:localPos0 = (1, 0, 1)
    float physics:lowerLimit = -40
    float physics:upperLimit = 50
    float drive:angular:physics:stiffness = 3
}
def Cube "Free" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"])
{
    double size = 0.1
    double3 xformOp:translate = (0, 3, 2)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Cube "Hung" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
{
    double size = 0.1
    double3 xformOp:translate = (0, 3, 4)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def PhysicsJoint "Slide" (prepend apiSchemas = ["PhysicsLimitAPI:transX", "PhysicsLimitAPI:transY", "PhysicsLimitAPI:transZ", "PhysicsLimitAPI:rotX", "PhysicsLimitAPI:rotY", "PhysicsLimitAPI:rotZ", "PhysicsDriveAPI:transX"])
{
    rel physics:body0 = </Free>
    rel physics:body1 = </Hung>
    point3f physics:localPos0 = (0, 0, 2)
    float limit:transX:physics:low = -1
    float limit:transX:physics:high = 1
    float limit:transY:physics:low = 1
    float limit:transY:physics:high = -1
    float limit:transZ:physics:low = 1
    float limit:transZ:physics:high = -1
    float limit:rotX:physics:low = 1
    float limit:rotX:physics:high = -1
    float limit:rotY:physics:low = 1
    float limit:rotY:physics:high = -1
    float limit:rotZ:physics:low = 1
    float limit:rotZ:physics:high = -1
    float drive:transX:physics:stiffness = 3
}
def Cube "Floor" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"])
{
    rel material:binding:physics = </Stone>
    double size = 1
    double3 xformOp:translate = (0, 0, -0.5)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""
PRIMS = (
    "/Scene", "/Group", "/Gum", "/Steel", "/Stone", "/Soft", "/Base", "/Base/Solid", "/Ball", "/Hinge", "/Slide",
    "/Free", "/Floor",
)  # fmt: skip


def blocks(*names):
    """The file with some of its prims."""
    head, *rest = SCENE.split("\ndef ")
    return "\ndef ".join([head, *(b for b in rest if b.split('"')[1] in names)])


SOFT = blocks("Scene", "Gum", "Stone", "Soft", "Floor")
RIGID = blocks("Scene", "Group", "Other", "Steel", "Stone", "Base", "Ball", "Hinge", "Free", "Hung", "Slide", "Floor")
NO_MASS = {"/Floor": ("omniphysics:mass", "physics:mass", "physics:density", "physics:centerOfMass", "physics:diagonalInertia",
                      "physics:principalAxes"),
           "/Stone": ("physics:density", "omniphysics:density")}  # fmt: skip
"""What does not move has no use for a mass."""
NO_EFFECT = {
    "/Hinge": ("physics:excludeFromArticulation",), "/Slide": ("physics:excludeFromArticulation",),
    "/Group": ("physics:mergeGroup",),
}  # fmt: skip
"""In which coordinates another engine computes a joint, which here only decides where a loop is cut; what a group merges
with if it is alone."""
RELATIONSHIP = Usd.PrimDefinition.Relationship
PHYSICS = re.compile("Physics|Newton|Mjc|Omni")
MORE = {
    **{f"physics:{name}": Sdf.ValueTypeNames.Float for name in (
        "thickness", "surfaceStretchStiffness", "surfaceShearStiffness", "curvesThickness", "linearDamping", "unheardOf")},
    **{f"omniphysics:{name}": Sdf.ValueTypeNames.Float for name in (
        "mass", "dynamicFriction", "staticFriction", "surfaceThickness", "youngsModulus", "density")},
    "omniphysics:kinematicEnabled": Sdf.ValueTypeNames.Bool, "physxDeformable:linearDamping": Sdf.ValueTypeNames.Float,
    "omniphysics:restShapePoints": Sdf.ValueTypeNames.Point3fArray, "physics:restTetVtxIndices": Sdf.ValueTypeNames.IntArray,
    "physxRigidBody:linearDamping": Sdf.ValueTypeNames.Float, "newton:contactMargin": Sdf.ValueTypeNames.Float,
    "newton:contactStiffness": Sdf.ValueTypeNames.Float, "mjc:solref": Sdf.ValueTypeNames.DoubleArray,
    "physxMaterial:compliantContactStiffness": Sdf.ValueTypeNames.Float,
    "state:angular:physics:velocity": Sdf.ValueTypeNames.Float,
    "state:transX:physics:position": Sdf.ValueTypeNames.Float,
    "physxLimit:angular:stiffness": Sdf.ValueTypeNames.Float, "physxLimit:angular:restitution": Sdf.ValueTypeNames.Float,
    "warpbots:maxPresure": Sdf.ValueTypeNames.Double,
}  # fmt: skip
"""Attributes of schemas that OpenUSD does not register; one of them is of no schema, one is a slip."""


@functools.cache
def registered():
    """Attributes and relationships of the registered physics schemas: types, defaults and allowed tokens by name."""
    registry, found = Usd.SchemaRegistry(), {}
    for kind in Tf.Type.FindByName("UsdSchemaBase").GetAllDerivedTypes():
        schema = registry.GetSchemaTypeName(kind)
        if not schema or not PHYSICS.match(schema):
            continue
        prim = registry.FindAppliedAPIPrimDefinition(schema) or registry.FindConcretePrimDefinition(schema)
        for name in prim.GetPropertyNames() if prim else ():
            name_of = [name.replace("__INSTANCE_NAME__", axis) for axis in ("angular", "transX", "rotZ")]
            for full in dict.fromkeys(name_of):
                if full.partition(":")[0] in ("physics", "drive", "limit", "newton", "mjc"):
                    said = prim.GetAttributeDefinition(name) or prim.GetRelationshipDefinition(name)
                    if full not in found or schema.endswith("API"):  # collisionEnabled of colliders, not of joints
                        found[full] = said
    return found


def other_value(prim, name):
    """A value that the attribute does not have by default, or a path for a relationship."""
    said = prim.GetPrimDefinition().GetAttributeDefinition(name) or registered().get(name)
    if isinstance(said, RELATIONSHIP):
        return None, Sdf.Path("/Other" if name == "physics:filteredGroups" else "/Free")
    kind = said.GetTypeName() if said else MORE[name]
    default = said.GetFallbackValue() if said else None
    allowed = [str(word) for word in (said.GetMetadata("allowedTokens") or ())] if said else []
    if name == "physics:approximation":
        return kind, "convexHull"  # others keep the mesh
    if allowed:
        return kind, next(word for word in allowed if word != default)
    values = {
        "bool": not default, "int": 7, "token": "odd", "string": "odd", "float3": Gf.Vec3f(0.1, 0.2, 0.25),
        "vector3f": Gf.Vec3f(0.1, 0.2, 0.3), "point3f": Gf.Vec3f(0.01, 0.02, 0.03),
        "quatf": Gf.Quatf(0.5, 0.5, 0.5, 0.5), "float": 0.37, "double": 0.37, "point3f[]": [Gf.Vec3f(1, 2, 3)],
        "int[]": [3, 2], "double[]": [0.1, 0.2],
    }  # fmt: skip
    return kind, values[str(kind)]


def author(prim, name):
    kind, value = other_value(prim, name)
    if kind is None:
        prim.CreateRelationship(name, custom=False).AddTarget(value)
    else:
        prim.CreateAttribute(name, kind, custom=False).Set(value)


def opened(text=RIGID):
    layer = Sdf.Layer.CreateAnonymous(".usda")
    assert layer.ImportFromString(text)
    return Usd.Stage.Open(layer)


def place_of(path):
    """The file in which a prim is tried."""
    return SOFT if path in ("/Gum", "/Soft") else RIGID


@functools.cache
def plain(text=RIGID):
    scene, said = read(opened(text))
    return scene, tuple(said)


def read(stage):
    """The scene, under one name, and the notes of the warning."""
    scene, found = read_stage(stage, material=wb.Material(1e5))
    return dataclasses.replace(scene, name="scene"), found.left_out


def news(text, *edits):
    """Notes of the warning after attributes were authored on prims, and whether the scene changed."""
    stage = opened(text)
    for path, name in edits:
        author(stage.GetPrimAtPath(path), name)
    try:
        scene, said = read(stage)
    except wb.SceneError as refusal:
        return str(refusal), False
    before, always = plain(text)
    return "\n".join(f"{p}: {what}" for p, what in set(said) - set(always)), scene != before


def test_what_is_read_is_read_in_silence():
    for text, counts in ((SOFT, (1, 0, 0, 1, 0)), (RIGID, (0, 4, 2, 1, 4)), (SCENE, (1, 4, 2, 1, 4))):
        scene, said = plain(text)
        parts = scene.soft, scene.rigid, scene.joints, scene.obstacles, scene.laws
        assert tuple(map(len, parts)) == counts
        assert not said


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("path", PRIMS)
def test_every_attribute_is_read_or_named(path, mixed):
    """All at once, then those without a note one by one: each must change the scene or be named."""
    text = SCENE if mixed else place_of(path)
    stage = opened(text)
    there = stage.GetPrimAtPath(path).GetAuthoredPropertyNames()
    names = [n for n in dict.fromkeys((*registered(), *MORE)) if n not in there and not _NUMERICS.fullmatch(n)]
    names = [n for n in names if n not in NO_MASS.get(path, ()) + NO_EFFECT.get(path, ())]
    assert len(names) > 40
    # those whose values switch a prim off, or contradict others, are tried one by one
    alone = [n for n in names if n.endswith(("Enabled", "body0", "body1", "velocity")) or n in ("physics:axis",)]
    said, _ = news(text, *((path, name) for name in names if name not in alone))
    silent = [name for name in names if name not in said]
    for name in silent:
        said, changed = news(text, (path, name))
        assert changed or name in said or path in said, f"{path}: {name} changes nothing and is not named"


@pytest.mark.parametrize("path", ["/Soft", "/Free"])
@pytest.mark.parametrize("name", ["physics:mass", "physics:velocity", "physics:density"])
def test_what_a_body_is_given_is_read(path, name):
    said, changed = news(place_of(path), (path, name))
    assert changed and not said


def test_rows_of_the_table_are_read_where_they_belong():
    """Names without a registered schema: each changes the scene on prims of its own schema, and is named elsewhere."""
    places = {"Material": "/Gum", "Inertia": "/Soft"}
    for row in TABLE:
        path = places.get(row.sets.partition(".")[0])
        if path is None or row.kind != "number" or row.name in registered() or row.name.startswith("warpbots:"):
            continue
        stage = opened(SOFT)
        prim = stage.GetPrimAtPath(path)
        for other in TABLE:
            if other.sets == row.sets and other.name != row.name:
                prim.RemoveProperty(other.name)
        prim.CreateAttribute(row.name, Sdf.ValueTypeNames.Float, custom=False).Set(0.37)
        scene, _ = read(stage)
        assert scene != plain(SOFT)[0], row.name
        elsewhere = opened()
        elsewhere.GetPrimAtPath("/Hinge").CreateAttribute(row.name, Sdf.ValueTypeNames.Float, custom=False).Set(0.37)
        _, said = read(elsewhere)
        assert any(p == "/Hinge" and f"{row.name} = 0.37, which is not read" in what for p, what in said)


def test_attributes_that_change_in_time_are_named():
    """Only the first value of an attribute is used; equal samples are one value."""
    stage = opened(SCENE)
    for path, name in (("/Gum", "physics:youngsModulus"), ("/Hinge", "drive:angular:physics:stiffness"),
                       ("/Hinge", "physics:lowerLimit")):  # fmt: skip
        attribute = stage.GetPrimAtPath(path).GetAttribute(name)
        first = attribute.Get()
        for time in (0, 1, 2):
            attribute.Set(first * (1 if name == "physics:lowerLimit" else 1 + time), time)
    stage.GetPrimAtPath("/Soft").CreateAttribute("physics:gripe", Sdf.ValueTypeNames.Float).Set(1.0, 3)
    scene, said = read(stage)
    before, always = plain(SCENE)
    assert scene == before
    assert sorted(set(said) - set(always)) == [
        ("/Gum", "physics:youngsModulus, which changes in time; its first value counts, 200000"),
        ("/Hinge", "drive:angular:physics:stiffness, which changes in time; its first value counts, 3"),
        ("/Soft", "physics:gripe = 1, which is not read"),
    ]


def test_values_that_are_those_of_the_schema_are_quiet():
    """Authored or not, they mean the same; an attribute without effect on static prims is quiet as well."""
    stage = opened()
    for name, said in registered().items():
        if isinstance(said, RELATIONSHIP) or said.GetFallbackValue() is None:
            continue
        for path in ("/Group", "/Stone"):
            prim = stage.GetPrimAtPath(path)
            prim.CreateAttribute(name, said.GetTypeName(), custom=False).Set(said.GetFallbackValue())
    for name in NO_MASS["/Floor"]:
        author(stage.GetPrimAtPath("/Floor"), name)
    _, said = read(stage)
    assert not said


def test_the_same_of_many_is_one_line(tmp_path, heard):
    stage = opened()
    for k in range(30):
        prim = stage.DefinePrim(f"/Many/Ball{k}", "Sphere")
        prim.SetMetadata("apiSchemas", Sdf.TokenListOp.CreateExplicit(["PhysicsRigidBodyAPI"]))
        prim.CreateAttribute("physxRigidBody:linearDamping", Sdf.ValueTypeNames.Float).Set(0.5)
        prim.CreateAttribute("physxRigidBody:angularDamping", Sdf.ValueTypeNames.Float).Set(1.0 + k)
    stage.GetRootLayer().Export(str(tmp_path / "many.usda"))
    wb.usd.read(tmp_path / "many.usda")
    lines = [line for line in heard.lines if "Damping" in line]
    assert lines == [
        "/Many/Ball0 and 29 others: physxRigidBody:angularDamping from 1 to 30, which is not read",
        "/Many/Ball0 and 29 others: physxRigidBody:linearDamping = 0.5, which is not read",
    ]


# materials: wherever they are bound


def rubber(stage, path="/Rubber", **values):
    prim = UsdShade.Material.Define(stage, path).GetPrim()
    for name, value in ({"youngsModulus": 3e5, "density": 700.0} | values).items():
        prim.CreateAttribute(f"physics:{name}", Sdf.ValueTypeNames.Float, custom=False).Set(value)
    return UsdShade.Material(prim)


def bind_to_group(stage, material):
    prim = stage.GetPrimAtPath("/")
    prim = stage.DefinePrim("/World", "Xform")
    collection = Usd.CollectionAPI.Apply(prim, "gums")
    collection.CreateIncludesRel().AddTarget("/World/Soft")
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(collection, material, "gums", materialPurpose="physics")


BINDINGS = {
    "physics": lambda stage, m: UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/World/Soft")).Bind(m, materialPurpose="physics"),
    "all purposes": lambda stage, m: UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/World/Soft")).Bind(m),
    "inherited": lambda stage, m: UsdShade.MaterialBindingAPI.Apply(stage.DefinePrim("/World", "Xform")).Bind(m, materialPurpose="physics"),
    "a collection": bind_to_group,
}  # fmt: skip


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_material_is_found_however_it_is_bound(binding):
    layer = Sdf.Layer.CreateAnonymous(".usda")
    block = SCENE[SCENE.index('def Cube "Soft"') : SCENE.index('def Xform "Base"')]
    head = SCENE[: SCENE.index("def PhysicsScene")]
    layer.ImportFromString(
        f'{head}def Xform "World" {{ {block.replace("rel material:binding:physics = </Gum>", "")} }}'
    )
    stage = Usd.Stage.Open(layer)
    BINDINGS[binding](stage, rubber(stage))
    scene, said = read(stage)
    assert not said
    assert (scene.bodies[0].material.youngs_modulus, scene.bodies[0].material.density) == (3e5, 700.0)
    stage.GetPrimAtPath("/Rubber").CreateAttribute("physics:oddity", Sdf.ValueTypeNames.Float).Set(2.0)
    _, said = read(stage)
    assert said == [("/Rubber", "physics:oddity = 2, which is not read")]


def test_a_material_that_nothing_is_made_of_is_quiet():
    stage = opened(SOFT)
    rubber(stage, oddity=3.0)
    assert not read(stage)[1]


def test_materials_of_single_parts_are_named():
    """Of a body of two colliders, an obstacle of two, a soft body of two, and the faces of a mesh."""
    stage = opened(SCENE)
    material = rubber(stage, dynamicFriction=0.9)
    for path in ("/Base/Other", "/Soft/Other"):
        prim = stage.DefinePrim(path, "Cube")
        prim.GetAttribute("size").Set(0.1)
        prim.SetMetadata("apiSchemas", Sdf.TokenListOp.CreateExplicit(["PhysicsCollisionAPI", "MaterialBindingAPI"]))
        UsdShade.MaterialBindingAPI(prim).Bind(material, materialPurpose="physics")
    subset = stage.DefinePrim("/Ball/Half", "GeomSubset")
    UsdShade.MaterialBindingAPI.Apply(subset).Bind(material, materialPurpose="physics")
    said = dict(read(stage)[1])
    assert said["/Base/Other"].startswith(
        "friction and restitution of its material; the whole body has those of /Base/S"
    )
    assert said["/Ball/Half"].startswith("the physics material /Rubber of a part of the surface")


# units


def in_units(text, metres, kilograms):
    """The same file with another unit of length and of mass: every dimensioned number is converted."""
    powers = {
        "physics:youngsModulus": (1, -1), "physics:density": (1, -3), "physics:mass": (1, 0), "double size": (0, 1),
        "physics:velocity": (0, 1), "physics:localPos0": (0, 1), "xformOp:translate": (0, 1), "points": (0, 1),
        "physics:diagonalInertia": (1, 2), "physics:centerOfMass": (0, 1), "transX:physics:low": (0, 1),
        "transX:physics:high": (0, 1), "transX:physics:stiffness": (1, 0), "angular:physics:stiffness": (1, 2),
        "angular:physics:damping": (1, 2), "angular:physics:maxForce": (1, 2), "gravityMagnitude": (0, 1),
    }  # fmt: skip

    def convert(line):
        name = next((n for n in powers if f"{n} =" in line), None)
        if name is None:
            return line
        left, _, right = line.partition(" = ")
        factor = kilograms ** -powers[name][0] * metres ** -powers[name][1]
        return f"{left} = " + re.sub(r"-?[\d.]+(e-?\d+)?", lambda n: repr(float(n[0]) * factor), right)

    text = "\n".join(map(convert, text.splitlines()))
    return text.replace("metersPerUnit = 1", f"metersPerUnit = {metres}").replace(
        "kilogramsPerUnit = 1", f"kilogramsPerUnit = {kilograms}"
    )


FULL = (
    SCENE.replace('def Cube "Soft" (', 'def Cube "Soft" (').replace(
        "rel material:binding:physics = </Gum>",
        "rel material:binding:physics = </Gum>\n    float physics:mass = 2\n    vector3f physics:velocity = (1, 2, 3)",
    )
    .replace('def Cube "Free" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"])\n{',
             'def Cube "Free" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"])\n{\n'
             "    float physics:mass = 3\n    float3 physics:diagonalInertia = (0.1, 0.2, 0.25)\n"
             "    point3f physics:centerOfMass = (0.01, 0.02, 0.03)\n    vector3f physics:velocity = (1, 2, 3)")
    .replace("float drive:angular:physics:stiffness = 3",
             "float drive:angular:physics:stiffness = 3\n    float drive:angular:physics:damping = 2")
    .replace('def Material "Steel" (prepend apiSchemas = ["PhysicsMaterialAPI"])\n{',
             'def Material "Steel" (prepend apiSchemas = ["PhysicsMaterialAPI"])\n{\n    float physics:density = 7000')
    .replace('def PhysicsScene "Scene" {}', 'def PhysicsScene "Scene" {\n    float physics:gravityMagnitude = 3.7\n}')
)  # fmt: skip


def numbers(scene):
    """All numbers of a scene."""
    return np.array([float(n) for n in re.findall(r"(?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?(?![\w.])", repr(scene))])


@pytest.mark.parametrize(("metres", "kilograms"), [(0.01, 1.0), (1.0, 0.001), (0.1, 0.5)])
def test_the_same_scene_in_other_units(metres, kilograms):
    scenes = []
    for text in (FULL, in_units(FULL, metres, kilograms)):
        layer = Sdf.Layer.CreateAnonymous(".usda")
        assert layer.ImportFromString(text)
        scene, said = read(Usd.Stage.Open(layer))
        assert not said
        scenes.append(scene)
    a, b = scenes
    assert a.gravity[2] == pytest.approx(-3.7)
    assert a.bodies[0].material.density == pytest.approx(2000.0) and a.bodies[0].velocity == (1.0, 2.0, 3.0)
    np.testing.assert_allclose(numbers(b), numbers(a), rtol=2e-6, atol=1e-9)


# where prims come from, and what hides them


BALL = 'def Sphere "Ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"{}])\n{{\n    double radius = 0.1\n{}}}\n'


def test_what_comes_by_reference_payload_and_instance_is_named_there(tmp_path, heard):
    """An unread attribute is named at every place where its file is referenced; a missing payload, too."""
    head = SCENE[: SCENE.index("def PhysicsScene")]
    odd = BALL.format(', "PhysxRigidBodyAPI"', "    float physxRigidBody:linearDamping = 0.5\n")
    (tmp_path / "part.usda").write_text(f'{head}def Xform "Part"\n{{\n{odd}}}\n')
    arcs = {
        "A": "references = @part.usda@</Part>",
        "B": "payload = @part.usda@</Part>",
        "C": "payload = @gone.usda@</Part>",
    }
    prims = [f'def Xform "{n}" (\n    prepend {arc}\n)\n{{\n}}\n' for n, arc in arcs.items()]
    prims += [
        f'def Xform "I{k}" (\n    instanceable = true\n    prepend references = @part.usda@</Part>\n)\n{{\n}}\n'
        for k in (0, 1)
    ]
    (tmp_path / "all.usda").write_text(head + "".join(prims))
    scene = wb.usd.read(tmp_path / "all.usda", contact_points=0)
    assert len(scene.rigid) == 4
    text = "physxRigidBody:linearDamping = 0.5, which is not read"
    assert f"/A/Ball and 3 others: {text}" in heard.lines
    assert any(line.startswith("/C: it refers to a file that cannot be found") for line in heard.lines)


@pytest.mark.parametrize(
    ("hides", "there"), [("active = false", False), ('visibility = "invisible"', True), ('purpose = "guide"', True)]
)
def test_what_is_seen_is_not_what_is_simulated(hides, there, tmp_path, heard):
    """An inactive prim is left out without a note; physics of invisible prims and guides takes part."""
    head = SCENE[: SCENE.index("def PhysicsScene")]
    extra = "    float physxRigidBody:linearDamping = 0.5\n"
    if not there:
        ball = BALL.format("", extra).replace("(prepend", "(\n    active = false\n    prepend")
    else:
        ball = BALL.format("", f"{extra}    {'uniform ' if 'purpose' in hides else ''}token {hides}\n")
    (tmp_path / "hidden.usda").write_text(head + ball + BALL.format("", "").replace("Ball", "Other"))
    scene = wb.usd.read(tmp_path / "hidden.usda")
    assert [b.name for b in scene.rigid] == ["Ball", "Other"][not there :]
    assert ("linearDamping" in heard.text) == there
