"""Files of other programs: other units and axes, colliders, three dialects of deformables, bare meshes."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
import warp.examples
from pxr import Usd
from usd_cases import ROUND, SOLIDS, STATIC, prim, simple_scene, write_text

from warpbots import usd
from warpbots.scene import (
    Box,
    Cable,
    Capsule,
    Cylinder,
    HalfSpace,
    Material,
    Muscle,
    Obstacle,
    Posed,
    Pressure,
    SceneError,
    Sheet,
    Sphere,
    TetMesh,
    Truss,
    Union,
)

ASSETS = warp.examples.get_asset_directory()

METRES = '(\n upAxis = "Z"\n metersPerUnit = 1\n defaultPrim = "World"\n)\n'

MATERIAL = """
def Material "Rubber" (
    prepend apiSchemas = ["PhysicsMaterialAPI", "NewtonMPMMaterialAPI"]
) {
    float newton:mpm:youngsModulus = 50000
}
"""

BODY = 'prepend apiSchemas = ["PhysicsDeformableBodyAPI", "MaterialBindingAPI"]'
BOUND = "rel material:binding:physics = </World/Rubber>"

BLOCK = f"""
def Cube "Block" (
    {BODY}
) {{
    {BOUND}
}}
"""


def stage(path, content, header=METRES):
    return write_text(path / "foreign.usda", f'{header}\ndef Xform "World" {{\n{MATERIAL}\n{content}\n}}\n')


def test_centimetres_grams_and_y_up(tmp_path):
    """1 length = 0.01 m and 1 mass = 0.001 kg: pressure 0.1 Pa, density 1000 kg/m^3, stiffness 0.001 N/m."""
    header = '(\n upAxis = "Y"\n metersPerUnit = 0.01\n kilogramsPerUnit = 0.001\n defaultPrim = "Robot"\n)\n'
    path = write_text(
        tmp_path / "cm.usda",
        header
        + """
def Xform "Robot" {
    def PhysicsScene "Physics" {
        vector3f physics:gravityDirection = (0, -2, 0)
        float physics:gravityMagnitude = 981
        uniform double3[] warpbots:domain = [(-100, -50, -200), (100, 150, 200)]
    }
    def Material "Rubber" (
        prepend apiSchemas = ["PhysicsMaterialAPI"]
    ) {
        float physics:youngsModulus = 500000
        float physics:poissonsRatio = 0.4
        float physics:density = 1.07
    }
    def Xform "Leg" (
        prepend apiSchemas = ["PhysicsDeformableBodyAPI", "MaterialBindingAPI"]
    ) {
        rel material:binding:physics = </Robot/Rubber>
        double3 warpbots:velocity = (1, 100, 7)
        double3 xformOp:translate = (10, 20, 30)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Cube "Shape" {
            double size = 2
            double3 xformOp:scale = (1, 2, 3)
            uniform token[] xformOpOrder = ["xformOp:scale"]
        }
        def Sphere "foot" (
            prepend apiSchemas = ["WarpbotsRegionAPI"]
        ) {
            double radius = 5
        }
    }
    def Scope "chamber" (
        prepend apiSchemas = ["WarpbotsPressureAPI"]
    ) {
        string warpbots:region = "foot"
        double warpbots:maxPressure = 300000
    }
    def Scope "muscle" (
        prepend apiSchemas = ["WarpbotsMuscleAPI"]
    ) {
        string warpbots:region = "foot"
        double3 warpbots:direction = (0, 0, 1)
        double warpbots:maxStress = 100000
    }
    def BasisCurves "cable" (
        prepend apiSchemas = ["WarpbotsCableAPI"]
    ) {
        point3f[] points = [(0, 0, 0), (0, 50, 100)]
        double warpbots:stiffness = 20000
        double warpbots:restLength = 90
    }
    def Cube "Wall" (
        prepend apiSchemas = ["PhysicsCollisionAPI"]
    ) {
        double size = 100
    }
}
""",
    )
    scene = usd.read(path)
    body = scene.bodies[0]
    assert (scene.name, body.name) == ("Robot", "Leg")
    assert body.material == Material(5e4, 0.4, 1070.0)
    # (x, y, z) of the file is (x, -z, y) of the scene
    np.testing.assert_allclose(body.shape.bounds, [[0.09, -0.33, 0.18], [0.11, -0.27, 0.22]], rtol=1e-13)
    np.testing.assert_allclose(body.velocity, (0.01, -0.07, 1.0))
    np.testing.assert_allclose(body.regions["foot"].center, (0.1, -0.3, 0.2))
    assert math.isclose(body.regions["foot"].radius, 0.05)
    np.testing.assert_allclose(scene.gravity, (0.0, 0.0, -9.81))
    np.testing.assert_allclose(scene.domain, [[-1.0, -2.0, -0.5], [1.0, 2.0, 1.5]])
    chamber, muscle, cable = scene.actuators
    assert [type(a) for a in scene.actuators] == [Pressure, Muscle, Cable]
    np.testing.assert_allclose([chamber.max_pressure, muscle.max_stress], [3e4, 1e4])
    np.testing.assert_allclose(muscle.direction, (0.0, -1.0, 0.0))
    np.testing.assert_allclose([cable.stiffness, cable.rest_length], [20.0, 0.9])
    np.testing.assert_allclose(cable.waypoints, [[0.0, 0.0, 0.0], [0.0, -1.0, 0.5]])
    np.testing.assert_allclose(scene.obstacles[0].shape.bounds, [[-0.5] * 3, [0.5] * 3])


@pytest.mark.parametrize("unit", [1.0, 0.1, 0.01, 0.0254])
def test_any_unit_of_length(unit, tmp_path):
    header = f'(\n upAxis = "Z"\n metersPerUnit = {unit}\n)\n'
    scene = usd.read(stage(tmp_path, BLOCK, header))
    np.testing.assert_allclose(scene.bodies[0].shape.bounds, [[-unit] * 3, [unit] * 3])
    assert math.isclose(scene.bodies[0].material.youngs_modulus, 50000 / unit)
    assert scene.gravity == (0.0, 0.0, -9.81)


def test_the_unit_can_be_given(tmp_path):
    path = stage(tmp_path, BLOCK)
    scene = usd.read(path, meters_per_unit=0.01)
    np.testing.assert_allclose(scene.bodies[0].shape.upper, (0.01, 0.01, 0.01))
    assert scene.source is None  # nothing may be written over a file whose units are others than it says
    assert usd.read(path, meters_per_unit=1).source == str(path)


def test_colliders_become_obstacles(tmp_path):
    bound = "\nrel material:binding:physics = </World/Ice>"
    kinds = {
        "cube": ("Cube", "double size = 2"),
        "ball": ("Sphere", "double radius = 0.5"),
        "pin": ("Cylinder", 'double radius = 0.5\n double height = 2\n token axis = "X"'),
        "pill": ("Capsule", 'double radius = 0.5\n double height = 2\n token axis = "Y"'),
        "pill_1": ("Capsule_1", "double radiusTop = 0.5\n double radiusBottom = 0.5\n double height = 2"),
        "ground": ("Plane", 'token axis = "Z"'),
        "tet": (
            "Mesh",
            "point3f[] points = [(0,0,0),(1,0,0),(0,1,0),(0,0,1)]\n int[] faceVertexCounts = [3,3,3,3]\n"
            "int[] faceVertexIndices = [0,2,1,0,1,3,1,2,3,0,3,2]",
        ),
    }
    prims = "".join(
        prim(kind, name, "PhysicsCollisionAPI", "MaterialBindingAPI", text=text + bound)
        for name, (kind, text) in kinds.items()
    )
    frictions = "float physics:dynamicFriction = 0.1\n float physics:staticFriction = 0.2"
    ice = prim("Material", "Ice", "PhysicsMaterialAPI", text=frictions)
    off = prim("Cube", "off", "PhysicsCollisionAPI", text="bool physics:collisionEnabled = 0")
    bare = prim("Cube", "bare", "PhysicsCollisionAPI")
    obstacles = {o.name: o for o in usd.read(stage(tmp_path, BLOCK + ice + prims + off + bare)).obstacles}
    assert list(obstacles) == [*kinds, "bare"]
    assert {o.friction for name, o in obstacles.items() if name != "bare"} == {0.1}  # 0.1, not 0.1 in single precision
    assert (obstacles["bare"].friction, obstacles["bare"].condition) == (0.5, "friction")
    assert obstacles["cube"].shape == Box((-1, -1, -1), (1, 1, 1))
    assert obstacles["ball"].shape == Sphere((0, 0, 0), 0.5)
    assert obstacles["pin"].shape == Cylinder((-1, 0, 0), (1, 0, 0), 0.5)
    assert obstacles["pill"].shape == Capsule((0, -1, 0), (0, 1, 0), 0.5)
    assert obstacles["pill_1"].shape == Capsule((0, 0, -1), (0, 0, 1), 0.5)
    assert obstacles["ground"].shape == HalfSpace((0, 0, 0), (0, 0, 1))
    assert math.isclose(obstacles["tet"].shape.volume, 1 / 6)


CORNERS = "(0,0,0), (1,0,0), (1,1,0), (0,1,0)"


def curves(name, points, counts, widths, *apis, kind="linear", wrap="nonperiodic"):
    """Curves scaled to half the size of their points, with a width for each."""
    return prim(
        "BasisCurves",
        name,
        *apis,
        text=f"""{BOUND}
        point3f[] points = [{points}]
        int[] curveVertexCounts = {counts}
        uniform token type = "{kind}"
        uniform token wrap = "{wrap}"
        float[] widths = {widths} (interpolation = "uniform")
        double3 xformOp:scale = (0.5, 0.5, 0.5)
        uniform token[] xformOpOrder = ["xformOp:scale"]""",
    )


def test_curves_become_bars(tmp_path):
    """Corners that two curves share are one joint; curves that are not a body give no bars."""
    body = ("PhysicsDeformableBodyAPI", "MaterialBindingAPI")
    square = CORNERS + ", (0,0,0), (1,1,0)"
    hair = curves("hair", CORNERS, [4], [0.2])
    path = stage(tmp_path, curves("frame", square, [4, 2], [0.2, 0.4], *body) + hair)
    (frame,) = usd.read(path).bodies
    joints = [[0, 0, 0], [0.5, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0]]
    assert frame.shape == Truss(joints, [[0, 1], [1, 2], [2, 3], [0, 2]], np.float32([0.05, 0.05, 0.05, 0.1]))
    (ring,) = usd.read(stage(tmp_path, curves("ring", CORNERS, [4], [0.5], *body, wrap="periodic"))).bodies
    assert ring.shape == Truss(joints, [[0, 1], [1, 2], [2, 3], [3, 0]], 0.125)
    for text, message in (
        (curves("frame", square, [4, 2], [0.2, 0.4], *body, kind="cubic"), "frame: its curves are cubic"),
        (
            curves("frame", square, [4, 3], [0.2, 0.4], *body),
            "its curves have 7 points by their counts, but there are 6",
        ),
        (curves("frame", square, [4, 2], [0.2] * 3, *body), "2 curves, 6 points and 3 widths"),
    ):
        with pytest.raises(SceneError, match=message):
            usd.read(stage(tmp_path, text))


def test_only_static_friction(tmp_path):
    ice = prim("Material", "Ice", "PhysicsMaterialAPI", text="float physics:staticFriction = 0.2")
    bound = "rel material:binding:physics = </World/Ice>"
    cube = prim("Cube", "c", "PhysicsCollisionAPI", "MaterialBindingAPI", text=bound)
    assert usd.read(stage(tmp_path, BLOCK + ice + cube)).obstacles[0].friction == 0.2


def test_transforms_of_solids(tmp_path):
    def placed(kind, name, ops):
        order = ", ".join(f'"{op.split()[1]}"' for op in ops)
        return prim(
            kind, name, "PhysicsCollisionAPI", text="\n".join([*ops, f"uniform token[] xformOpOrder = [{order}]"])
        )

    move, scale = "double3 xformOp:translate = (1, 2, 3)", "float3 xformOp:scale = (2, 2, 2)"
    content = (
        placed("Cube", "turned", [move, "float xformOp:rotateZ = 90", "float3 xformOp:scale = (1, 2, 3)"])
        + placed("Cube", "tilted", [move, "float xformOp:rotateZ = 30"])
        + placed("Cube", "mirrored", [move, "float3 xformOp:scale = (-1, 1, 1)"])
        + placed("Sphere", "ball", [move, scale])
        + placed("Plane", "slope", [move, "float xformOp:rotateY = 90"])
    )
    shapes = {o.name: o.shape for o in usd.read(stage(tmp_path, BLOCK + content)).obstacles}
    assert shapes["turned"] == Box((-1, 1, 0), (3, 3, 6))
    assert isinstance(shapes["tilted"], Posed)
    assert shapes["tilted"].translation == (1, 2, 3)
    np.testing.assert_allclose(shapes["tilted"].rotation[0], (math.cos(math.pi / 6), -0.5, 0), atol=1e-7)
    assert shapes["mirrored"] == Box((0, 1, 2), (2, 3, 4))
    assert shapes["ball"] == Sphere((1, 2, 3), 2)
    assert shapes["slope"] == HalfSpace((1, 2, 3), (1, 0, 0))


@pytest.mark.parametrize(
    ("body", "sim", "attributes"),
    [
        ("PhysicsDeformableBodyAPI", "PhysicsVolumeDeformableSimAPI", "physics:"),
        ("PhysicsDeformableBodyAPI", "NewtonPointsDeformableSimAPI", "newton:mpm:"),
        ("OmniPhysicsDeformableBodyAPI", "OmniPhysicsVolumeDeformableSimAPI", "omniphysics:"),
    ],
)
def test_three_dialects_of_deformables(body, sim, attributes, tmp_path):
    content = f"""
def Material "Gum" {{
    float {attributes}youngsModulus = 30000
    float {attributes}poissonsRatio = 0.45
    float {"physics:" if attributes.startswith("newton") else attributes}density = 1100
}}
def Xform "Soft" (
    prepend apiSchemas = ["{body}", "MaterialBindingAPI"]
) {{
    rel material:binding:physics = </World/Gum>
    def Mesh "Skin" {{
        point3f[] points = [(0,0,0),(9,0,0),(0,9,0),(0,0,9)]
        int[] faceVertexCounts = [3,3,3,3]
        int[] faceVertexIndices = [0,2,1,0,1,3,1,2,3,0,3,2]
    }}
    def TetMesh "Sim" (
        prepend apiSchemas = ["{sim}"]
    ) {{
        point3f[] points = [(0,0,0),(1,0,0),(0,1,0),(0,0,1),(1,1,1)]
        int4[] tetVertexIndices = [(0,1,2,3),(2,1,3,4)]
    }}
}}
"""
    body = usd.read(stage(tmp_path, content)).bodies[0]
    assert body.name == "Soft"
    assert body.material == Material(3e4, 0.45, 1100.0)
    assert len(body.shape.surface) == 6  # the geometry for simulation, not the one for the eye; two tets share a face
    # although the second tet is turned inside out; its volume is |det| / 6 of the edges from (0, 1, 0)
    edges = np.array([(1, 0, 0), (0, 0, 1), (1, 1, 1)]) - (0, 1, 0)
    assert np.linalg.det(edges) < 0.0
    assert math.isclose(body.shape.volume, 1 / 6 - np.linalg.det(edges) / 6)


def test_density_of_the_body_goes_before_that_of_its_material(tmp_path):
    content = BLOCK.replace(BOUND, BOUND + "\nfloat physics:density = 1234")
    assert usd.read(stage(tmp_path, content)).bodies[0].material.density == 1234.0


def test_a_deformable_that_is_switched_off_is_no_body(tmp_path):
    off = BLOCK.replace("Block", "Off").replace(BOUND, BOUND + "\nbool omniphysics:deformableBodyEnabled = 0")
    assert [b.name for b in usd.read(stage(tmp_path, BLOCK + off)).bodies] == ["Block"]


def test_minus_infinity_and_zero_mean_not_given(tmp_path):
    material = MATERIAL.replace("= 50000", "= -inf\nfloat physics:youngsModulus = 7000\nfloat physics:density = 0")
    body = usd.read(stage(tmp_path, BLOCK.replace("Rubber", "R2") + material.replace("Rubber", "R2"))).bodies[0]
    assert body.material == Material(7000.0)


def test_particles_of_newton(tmp_path):
    """Newton takes width^3 for the volume of a particle; equal velocities of particles are that of the body."""
    content = f"""
def Points "Sand" (
    prepend apiSchemas = ["PhysicsDeformableBodyAPI", "NewtonPointsDeformableSimAPI", "MaterialBindingAPI"]
) {{
    {BOUND}
    point3f[] points = [(0,0,0),(0.5,0,0)]
    float[] widths = [0.5, 0.25]
    vector3f[] velocities = [(0,0,2),(0,0,2)]
    double3 xformOp:scale = (2, 2, 2)
    uniform token[] xformOpOrder = ["xformOp:scale"]
}}
"""
    body = usd.read(stage(tmp_path, content)).bodies[0]
    assert body.shape.positions.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert body.shape.volumes.tolist() == [1.0, 0.125]
    assert body.velocity == (0.0, 0.0, 2.0)


def test_what_cannot_be_simulated_is_listed_in_one_warning(tmp_path, heard):
    content = (
        BLOCK
        + """
def Xform "Link" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsArticulationRootAPI"]
) {
    def Cube "Collider" (
        prepend apiSchemas = ["PhysicsCollisionAPI"]
    ) {
    }
}
def PhysicsRevoluteJoint "Hinge" {
}
def Cone "Hat" (
    prepend apiSchemas = ["PhysicsCollisionAPI"]
) {
}
def Sphere "Egg" (
    prepend apiSchemas = ["PhysicsCollisionAPI"]
) {
    double3 xformOp:scale = (1, 1, 2)
    uniform token[] xformOpOrder = ["xformOp:scale"]
}
def Mesh "Sheet" (
    prepend apiSchemas = ["PhysicsCollisionAPI"]
) {
    point3f[] points = [(0,0,0),(1,0,0),(0,1,0)]
    int[] faceVertexCounts = [3]
    int[] faceVertexIndices = [0,1,2]
}
def Cube "Door" (
    prepend apiSchemas = ["PhysicsCollisionAPI"]
) {
    double3 xformOp:translate.timeSamples = { 0: (0,0,0), 9: (1,0,0) }
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Xform "Static" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI"]
) {
    bool physics:rigidBodyEnabled = 0
    def Cube "Post" (
        prepend apiSchemas = ["PhysicsCollisionAPI"]
    ) {
    }
}
def PhysicsScene "One" {
}
def PhysicsScene "Two" {
}
def Camera "Eye" {
}
def DistantLight "Sun" {
}
"""
    )
    scene = usd.read(stage(tmp_path, content))
    assert [o.name for o in scene.obstacles] == ["Hat", "Egg", "Sheet", "Door", "Post"]
    (door,) = (o.motion for o in scene.obstacles if o.name == "Door")
    assert door is not None
    assert len(heard.messages) == 1
    listed = {line.split(":")[0].removeprefix("/World/"): line for line in heard.lines}
    named = {"Hinge", "Hat", "Egg", "Sheet", "Two", "Link"}  # a link starts within them
    assert set(listed) == named
    words = {
        "Hinge": "without a moving rigid body",
        "Hat": "a mesh of 48 sides is used instead",
        "Egg": "scales",
        "Sheet": "an open surface; the space up to 0.1 m behind it is solid",
    }
    for name, word in words.items():
        assert word in listed[name]


SHIRT = """
point3f[] points = [(0,0,0),(1,0,0),(1,1,0),(0,1,0),(7,7,7)]
int[] faceVertexCounts = [4]
int[] faceVertexIndices = [0,1,2,3]
"""


def shirt(tmp_path, text="", material="", sim="PhysicsSurfaceDeformableSimAPI", unit=1.0):
    content = prim("Mesh", "Shirt", "PhysicsDeformableBodyAPI", sim, "MaterialBindingAPI", text=BOUND + SHIRT + text)
    header = f'(\n upAxis = "Z"\n metersPerUnit = {unit}\n defaultPrim = "World"\n)\n'
    path = stage(tmp_path, content, header)
    path.write_text(path.read_text().replace("youngsModulus = 50000", f"youngsModulus = 50000\n{material}"))
    return usd.read(path).bodies[0].shape


def test_cloth_becomes_a_sheet(tmp_path):
    """Polygons become triangles about their first corner; unused points are left out; the default thickness is 1 mm."""
    found = shirt(tmp_path)
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=float)
    assert found == Sheet(corners, [[0, 1, 2], [0, 2, 3]], 1e-3)
    left = shirt(tmp_path, 'uniform token orientation = "leftHanded"')
    assert left == Sheet(corners, [[2, 1, 0], [3, 2, 0]], 1e-3)


def test_thickness_and_bending_of_cloth(tmp_path):
    """Both are in units of the stage, here centimetres: 0.2 cm, and 3e5 kg cm^2/s^2 are 30 N m, under any transform."""
    grown = '\ndouble3 xformOp:scale = (2, 2, 2)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n'
    bending = "float physics:surfaceBendStiffness = 300000"
    found = shirt(tmp_path, "float[] physics:thicknesses = [0.2]" + grown, bending, unit=0.01)
    assert (found.thickness, found.bending) == (pytest.approx(2e-3), pytest.approx(30.0))
    np.testing.assert_allclose(found.area, 4e-4)
    older = shirt(tmp_path, material="float physics:surfaceThickness = 0.2", unit=0.01)
    assert older.thickness == pytest.approx(2e-3)
    omni = "float omniphysics:surfaceThickness = 0.2\nfloat omniphysics:surfaceBendStiffness = 3"
    found = shirt(tmp_path, material=omni, sim="OmniPhysicsSurfaceDeformableSimAPI")
    assert (found.thickness, found.bending) == (0.2, 3.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float[] physics:thicknesses = [0.1, 0.1, 0.2, 0.1, 0.1]", "are from 0.1 to 0.2; only uniform sheets"),
        ("float[] physics:thicknesses = [0]", "thickness must be a positive number, got 0"),
    ],
)
def test_cloth_that_is_no_sheet_is_refused_by_path(text, message, tmp_path):
    with pytest.raises(SceneError, match=f"/World/Shirt: .*{message}"):
        shirt(tmp_path, text)


def test_tetrahedra_and_cloth_of_newton(tmp_path):
    """Its test assets: a bare TetMesh in a y-up stage, and a cloth and two volumes beside two cables."""
    assets = Path(importlib.util.find_spec("newton").origin).parent / "tests" / "assets"
    (body,) = usd.read(assets / "tetmesh_with_material.usda", material=ROUND).bodies
    assert (body.shape.tets.tolist(), body.material.youngs_modulus) == ([[0, 1, 2, 3]], 3e5)
    np.testing.assert_allclose(body.shape.vertices, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, -1, 0]])
    mixed = Usd.Stage.Open(str(assets / "deformables_mixed.usda"))
    for cable in ("CableA", "CableB"):
        mixed.GetPrimAtPath(f"/World/{cable}").SetActive(False)
    mixed.Export(str(tmp_path / "mixed.usda"))
    cloth, *solids = usd.read(tmp_path / "mixed.usda", material=ROUND).bodies
    assert (cloth.shape.thickness, cloth.shape.bending, len(cloth.shape.faces)) == (1e-3, 1e-8, 2)
    assert [type(s.shape) for s in solids] == [TetMesh] * 2
    assert math.isclose(solids[0].shape.volume, 0.2**3 / 6, rel_tol=1e-6)


def test_a_left_handed_tetmesh_that_is_mirrored_and_scaled(tmp_path):
    """Its tetrahedra have positive volumes for any order of points; a point that no tetrahedron uses is left out."""
    content = f"""
def TetMesh "Gel" ({BODY}) {{
    {BOUND}
    uniform token orientation = "leftHanded"
    point3f[] points = [(9,9,9),(0,0,0),(1,0,0),(0,1,0),(0,0,1)]
    int4[] tetVertexIndices = [(1,3,2,4)]
    double3 xformOp:scale = (-1, 2, 3)
    uniform token[] xformOpOrder = ["xformOp:scale"]
}}
"""
    shape = usd.read(stage(tmp_path, content)).bodies[0].shape
    assert shape.tets.tolist() == [[0, 2, 1, 3]]  # mirrored twice
    assert math.isclose(shape.volume, 1.0)
    np.testing.assert_allclose(shape.bounds, [[-1, 0, 0], [0, 2, 3]])
    flat = content.replace("(0,0,1)]", "(1,1,0)]")
    with pytest.raises(SceneError, match="/World/Gel: TetMesh: of 1 tetrahedra 0 are inverted and 1 are flat"):
        usd.read(stage(tmp_path, flat))


@pytest.mark.parametrize(
    ("asset", "volume", "lower", "upper"),
    [
        ("bear.usd", 98.43, (-2.445, -4.890, 0.0), (2.445, 4.890, 5.542)),
        ("bunny.usd", 0.8758, (-0.956, -0.688, 0.021), (0.657, 0.542, 1.640)),
        ("cube.usd", 8.0, (-1, -1, -1), (1, 1, 1)),
    ],
)
def test_meshes_without_physics_become_bodies(asset, volume, lower, upper):
    """Volumes and boxes of Warp's example meshes, computed with trimesh."""
    scene = usd.read(f"{ASSETS}/{asset}", material=ROUND)
    name = asset.split(".")[0]
    assert [b.name for b in scene.bodies] == [name]
    assert scene.bodies[0].material == ROUND
    meshes = usd.read_meshes(f"{ASSETS}/{asset}")
    assert list(meshes) == [f"/root/{name}"]
    assert meshes[f"/root/{name}"] == scene.bodies[0].shape
    assert math.isclose(scene.bodies[0].shape.volume, volume, rel_tol=1e-3)
    np.testing.assert_allclose(scene.bounds, [lower, upper], atol=1e-3)


def test_polygons_are_cut_into_triangles(tmp_path):
    """A prism over a convex pentagon: area 1/2 |sum x_i y_(i+1) - x_(i+1) y_i|, height 1."""
    corners = [(0, 0), (2, 0), (3, 1), (1, 3), (-1, 1)]
    points = [(*c, z) for z in (0, 1) for c in corners]
    sides = [[k, (k + 1) % 5, (k + 1) % 5 + 5, k + 5] for k in range(5)]
    faces = [[4, 3, 2, 1, 0], [5, 6, 7, 8, 9], *sides]
    content = f"""
def Mesh "Prism" {{
    point3f[] points = {points}
    int[] faceVertexCounts = {[len(f) for f in faces]}
    int[] faceVertexIndices = {[c for f in faces for c in f]}
}}
"""
    mesh = usd.read_meshes(stage(tmp_path, content))["/World/Prism"]
    area = 0.5 * abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(corners, corners[1:] + corners[:1], strict=True)))
    assert math.isclose(mesh.volume, area)


def test_instances_and_references_are_looked_into(tmp_path):
    part = prim("Xform", "Part", text=prim("Cube", "Box", "PhysicsCollisionAPI"))
    write_text(tmp_path / "part.usda", '(\n defaultPrim = "Part"\n)\n' + part)
    content = "".join(
        f'def "{name}" (\n instanceable = true\n prepend references = @./part.usda@\n) {{\n'
        f'double3 xformOp:translate = ({x}, 0, 0)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n}}\n'
        for name, x in (("A", 0), ("B", 5))
    )
    obstacles = usd.read(stage(tmp_path, BLOCK + content)).obstacles
    assert [o.name for o in obstacles] == ["/World/A/Box", "/World/B/Box"]  # two that share a name go by their paths
    assert obstacles[1].shape == Box((4, -1, -1), (6, 1, 1))


def test_a_file_of_ours_under_a_reference_that_moves_it(tmp_path):
    """Every shape under a reference that is moved, turned and in other units is read where it is drawn."""
    parts = [*SOLIDS[3].values(), STATIC[3]["distance grid"]]
    scene = simple_scene(obstacles=[Obstacle(shape, name=f"o{k}") for k, shape in enumerate(parts)])
    usd.write(tmp_path / "robot.usda", scene)
    # 2 m up the y axis of a stage in centimetres, turned by 90 degrees about it, and scaled to centimetres
    path = write_text(
        tmp_path / "room.usda",
        '(\n upAxis = "Y"\n metersPerUnit = 0.01\n kilogramsPerUnit = 1\n)\n'
        'def Xform "Robot" (\n prepend references = @./robot.usda@\n) {\n'
        "double3 xformOp:translate = (0, 200, 0)\n double3 xformOp:rotateXYZ = (-90, 0, 90)\n"
        "double3 xformOp:scale = (100, 100, 100)\n"
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]\n}\n',
    )
    moved = usd.read(path, material=ROUND)
    # rotateXYZ turns about x first: (x, y, z) -> (x, z, -y), then about z: -> (-z, x, -y); z-up: (-z, y, x) + (0, 0, 2)
    turn = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    for old, new in zip(scene.obstacles, moved.obstacles, strict=True):
        inside_out = Posed(old.shape, (0.0, 0.0, 2.0), turn)
        if isinstance(old.shape, (Union, Posed)):
            continue  # their boxes are only bounds; their parts are among the others
        if isinstance(old.shape, Sheet):
            continue  # a thickness is in units of the stage, whatever transforms say
        np.testing.assert_allclose(new.shape.bounds, inside_out.bounds, rtol=1e-6, atol=1e-6, err_msg=old.name)
