"""A scene written over a copy of its source file: unknown content stays, known content is exact."""

import dataclasses
import hashlib

import numpy as np
import pytest
import warp.examples
from pxr import Usd, UsdGeom
from usd_cases import (
    ODD,
    ROUND,
    SOLIDS,
    STATIC,
    Trajectory,
    blob,
    differences,
    findings,
    full_scene,
    numbers,
    octahedron,
    prim,
    simple_scene,
    write_text,
)

from warpbots import usd
from warpbots.scene import Box, Cable, HalfSpace, Muscle, Obstacle, Pressure, SceneError, SoftBody, Sphere

TET = """
        point3f[] points = [(0, 0, 0), (10, 0, 0), (0, 10, 0), (0, 0, 10)]
        int[] faceVertexCounts = [3, 3, 3, 3]
        int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2]
"""

METRES = '(\n metersPerUnit = 1\n upAxis = "Z"\n)\n'

LAB = f"""(
    "Somebody else's file"
    customLayerData = {{
        string creator = "them"
        string owner = "lab"
    }}
    defaultPrim = "Lab"
    endTimeCode = 48
    kilogramsPerUnit = 0.001
    metersPerUnit = 0.01
    startTimeCode = 0
    subLayers = [@./lights.usda@]
    timeCodesPerSecond = 24
    upAxis = "Y"
)
def Xform "Lab" (
    prepend variantSets = "look"
    variants = {{
        string look = "red"
    }}
) {{
    custom string user:tag = "keep me"
    custom asset user:shader = @OmniPBR.mdl@
    def Mesh "Bodies" {{
        {TET}
    }}
    double3 xformOp:translate = (3, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Camera "Eye" {{
        float focalLength = 35
        double3 xformOp:translate.timeSamples = {{ 0: (0, 0, 0), 48: (1, 0, 0) }}
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    def "Table" (
        prepend references = @./parts/table.usda@
    ) {{
    }}
    def Material "Rubber" (
        prepend apiSchemas = ["PhysicsMaterialAPI"]
    ) {{
        float physics:youngsModulus = 500000
        custom float vendor:shore = 30
    }}
    def Mesh "Bear" (
        prepend apiSchemas = ["PhysicsDeformableBodyAPI", "MaterialBindingAPI"]
    ) {{
        {TET}
        rel material:binding = </Lab/Fur>
        rel material:binding:physics = </Lab/Rubber>
        custom int vendor:id = 7
        color3f[] primvars:displayColor = [(1, 0, 0), (0, 1, 0)]
    }}
    def Material "Fur" {{
    }}
    def Cube "Wall" (
        prepend apiSchemas = ["PhysicsCollisionAPI"]
    ) {{
        double size = 20
        custom string vendor:paint = "white"
    }}
    variantSet "look" = {{
        "blue" {{
            custom string vendor:colour = "blue"

        }}
        "red" {{
            custom string vendor:colour = "red"

        }}
    }}
}}
"""

TABLE = """(
    defaultPrim = "Table"
    metersPerUnit = 0.01
)
def Xform "Table" {
    custom asset vendor:photo = @./wood.png@
    def Cube "Top" (
        prepend apiSchemas = ["PhysicsCollisionAPI"]
    ) {
        double size = 30
    }
}
"""


@pytest.fixture
def lab(tmp_path):
    (tmp_path / "parts").mkdir()
    write_text(tmp_path / "parts" / "table.usda", TABLE)
    write_text(
        tmp_path / "lights.usda", 'over "Lab" {\n def DistantLight "Sun" {\n float inputs:intensity = 3\n }\n}\n'
    )
    return write_text(tmp_path / "lab.usda", LAB)


def changed_in_every_way(scene):
    """Another material, regions, velocity and colour for the bear; new bodies, obstacles, actuators and settings."""
    bear = dataclasses.replace(
        scene.bodies[0],
        material=ODD,
        regions={"head": Sphere(tuple(numbers(3)), 0.1), "all": HalfSpace((0, 0, 9), (0, 0, 1))},
        region_materials={"head": dataclasses.replace(ODD, density=1 / 7)},
        velocity=tuple(numbers(3)),
        color=tuple(np.abs(numbers(3)) % 1.0),
    )
    others = [SoftBody(name, shape, ODD) for name, shape in SOLIDS[3].items()]
    changes = full_scene(3)
    obstacles = [dataclasses.replace(o, condition="slip", friction=1 / 3) for o in scene.obstacles]
    return dataclasses.replace(
        scene,
        bodies=[*others[:3], bear, *others[3:]],
        actuators=[
            Pressure("chamber", "head", 1e4 / 3),
            Muscle("muscle", "all", tuple(numbers(3)), 1e4 / 7),
            Cable("cable", tuple(map(tuple, numbers(3, 3))), 1 / 3, 1 / 7),
        ],
        obstacles=[*obstacles, *(Obstacle(s, name=n) for n, s in STATIC[3].items())],
        gravity=changes.gravity,
        domain=changes.domain,
        task=changes.task,
        name="my lab",
    )


def assert_lab_is_whole(path, folder):
    stage = Usd.Stage.Open(str(path))
    layer = stage.GetRootLayer()
    assert layer.comment == "Somebody else's file"
    assert (layer.customLayerData["owner"], layer.customLayerData["creator"]) == ("lab", "them")
    assert (layer.startTimeCode, layer.endTimeCode, layer.timeCodesPerSecond) == (0, 48, 24)
    assert UsdGeom.GetStageUpAxis(stage) == "Y"
    assert UsdGeom.GetStageMetersPerUnit(stage) == 0.01
    root = stage.GetDefaultPrim()
    assert root.GetPath() == "/Lab"
    assert root.GetAttribute("user:tag").Get() == "keep me"
    assert root.GetAttribute("user:shader").Get().path == "OmniPBR.mdl"  # found on a search path, not in a folder
    eye = stage.GetPrimAtPath("/Lab/Eye")
    assert eye.GetAttribute("focalLength").Get() == 35
    assert eye.GetAttribute("xformOp:translate").GetTimeSamples() == [0, 48]
    assert stage.GetPrimAtPath("/Lab/Sun").GetAttribute("inputs:intensity").Get() == 3
    assert stage.GetPrimAtPath("/Lab/Rubber").GetAttribute("vendor:shore").Get() == 30
    looks = root.GetVariantSet("look")
    assert looks.GetVariantNames() == ["blue", "red"]
    assert root.GetAttribute("vendor:colour").Get() == "red"
    stage.SetEditTarget(stage.GetSessionLayer())
    looks.SetVariantSelection("blue")
    assert root.GetAttribute("vendor:colour").Get() == "blue"
    photo = stage.GetPrimAtPath("/Lab/Table").GetAttribute("vendor:photo").Get()
    assert photo.path == "./wood.png"  # as it stands in the file that is referred to, which is found:
    assert stage.GetPrimAtPath("/Lab/Table/Top").GetAttribute("size").Get() == 30
    assert str(folder) not in layer.ExportToString()  # paths to other files stay relative
    return stage


def test_unchanged_is_untouched(lab, tmp_path):
    scene = usd.read(lab)
    usd.write(tmp_path / "copy.usda", scene)
    assert usd.read(tmp_path / "copy.usda") == scene
    stage = assert_lab_is_whole(tmp_path / "copy.usda", tmp_path)
    bear = stage.GetPrimAtPath("/Lab/Bear")
    assert bear.GetAttribute("vendor:id").Get() == 7
    assert bear.GetRelationship("material:binding").GetTargets() == ["/Lab/Fur"]
    assert bear.GetRelationship("material:binding:physics").GetTargets() == ["/Lab/Rubber"]
    assert len(bear.GetAttribute("primvars:displayColor").Get()) == 2


def test_everything_changed_in_another_folder(lab, tmp_path):
    (tmp_path / "deep" / "down").mkdir(parents=True)
    path = tmp_path / "deep" / "down" / "new.usda"
    scene = changed_in_every_way(usd.read(lab))
    usd.write(path, scene)
    back = usd.read(path, asset_root=tmp_path)
    assert not differences(back, scene)
    stage = assert_lab_is_whole(path, tmp_path)
    bear, wall = (stage.GetPrimAtPath(f"/Lab/{name}") for name in ("Bear", "Wall"))
    assert bear.IsActive()
    assert bear.GetAttribute("vendor:id").Get() == 7
    assert wall.GetAttribute("vendor:paint").Get() == "white"
    # and once more over the result, which has prims of ours now
    again = dataclasses.replace(
        back, bodies=[dataclasses.replace(b, material=ROUND) for b in back.bodies[:4] if not b.regions], actuators=()
    )
    usd.write(path, again)
    assert not differences(usd.read(path, asset_root=tmp_path), again)
    assert_lab_is_whole(path, tmp_path)


def test_the_source_stays_as_it_is(lab, tmp_path):
    before = hashlib.sha256(lab.read_bytes()).hexdigest()
    usd.write(tmp_path / "new.usda", changed_in_every_way(usd.read(lab)))
    usd.write(tmp_path / "walk.usda", Trajectory(usd.read(lab)))
    assert hashlib.sha256(lab.read_bytes()).hexdigest() == before


def test_another_shape_replaces_a_foreign_prim_and_keeps_it_inactive(lab, tmp_path):
    scene = usd.read(lab)
    bear = dataclasses.replace(scene.bodies[0], shape=octahedron(1 / 3))
    wall = dataclasses.replace(scene.obstacles[1], shape=Box((1 / 3, 0, 0), (1, 1, 1)))
    scene = dataclasses.replace(scene, bodies=[bear], obstacles=[scene.obstacles[0], wall])
    usd.write(tmp_path / "new.usda", scene)
    assert not differences(usd.read(tmp_path / "new.usda"), scene)
    stage = assert_lab_is_whole(tmp_path / "new.usda", tmp_path)
    assert not stage.GetPrimAtPath("/Lab/Bear").IsActive()
    assert stage.GetPrimAtPath("/Lab/Bear").GetAttribute("vendor:id").Get() == 7


def test_parts_that_are_left_out_go(lab, tmp_path):
    scene = changed_in_every_way(usd.read(lab))
    usd.write(tmp_path / "all.usda", scene)
    fewer = dataclasses.replace(usd.read(tmp_path / "all.usda"), bodies=scene.bodies[:1], obstacles=(), actuators=())
    usd.write(tmp_path / "fewer.usda", fewer)
    assert not differences(usd.read(tmp_path / "fewer.usda"), fewer)


def test_writing_over_the_own_source_again_and_again_does_not_grow(lab):
    def prims():
        stage = Usd.Stage.Open(str(lab))
        return len(list(stage.TraverseAll()))

    sizes = []
    for k in range(1, 5):
        scene = usd.read(lab)
        bear = dataclasses.replace(
            scene.bodies[0],
            shape=octahedron(k / 7),
            material=dataclasses.replace(ODD, density=k),
            regions={"a b": Box((0, 0, 0), (k, k, k))},
            region_materials={"a b": dataclasses.replace(ODD, youngs_modulus=k)},
        )
        obstacle = Obstacle(Sphere((0, 0, -9), k), friction=k / 7, name="ball")
        scene = dataclasses.replace(
            scene,
            bodies=[bear],
            obstacles=[obstacle],
            actuators=[Muscle("m", "a b", (k, 1, 1), k), Cable("c", ((0, 0, 0), (k, 0, 0)), k)],
        )
        usd.write(lab, scene)
        assert not differences(usd.read(lab), scene)
        sizes.append(prims())
    assert sizes[1:] == [sizes[1]] * 3


@pytest.mark.parametrize("asset", ["bear.usd", "bunny.usd"])
def test_meshes_without_physics_stay_where_they_are(asset, tmp_path):
    scene = usd.read(f"{warp.examples.get_asset_directory()}/{asset}", material=ODD)
    usd.write(tmp_path / "soft.usdc", scene)
    assert usd.read(tmp_path / "soft.usdc") == scene
    stage = Usd.Stage.Open(str(tmp_path / "soft.usdc"))
    mesh = stage.GetPrimAtPath(f"/root/{scene.bodies[0].name}")
    assert mesh.GetTypeName() == "Mesh"
    assert mesh.HasAttribute("tetraIndices") == (asset == "bear.usd")  # somebody's own attribute


def test_dropping_one_of_several_meshes(tmp_path):
    content = "".join(f'def Mesh "{name}" {{\n{TET}\n}}\n' for name in "AB")
    path = write_text(tmp_path / "two.usda", METRES + prim("Xform", "Root", text=content))
    scene = usd.read(path, material=ROUND)
    one = dataclasses.replace(scene, bodies=scene.bodies[1:])
    usd.write(tmp_path / "one.usda", one)
    assert [b.name for b in usd.read(tmp_path / "one.usda").bodies] == ["B"]
    stage = Usd.Stage.Open(str(tmp_path / "one.usda"))
    assert stage.GetPrimAtPath("/Root/A").IsActive()  # it was nobody's body


def test_an_instance_stops_to_be_shared_where_it_is_changed(tmp_path):
    post = prim("Xform", "P", text=prim("Cube", "Box", "PhysicsCollisionAPI"))
    write_text(tmp_path / "post.usda", '(\n defaultPrim = "P"\n)\n' + post)
    posts = "".join(
        f'def "{name}" (\n instanceable = true\n prepend references = @./post.usda@\n) {{\n'
        f'double3 xformOp:translate = ({9 * k}, 0, 0)\n uniform token[] xformOpOrder = ["xformOp:translate"]\n}}\n'
        for k, name in enumerate("ABC")
    )
    content = prim("Mesh", "M", text=TET) + posts
    path = write_text(tmp_path / "fence.usda", METRES + prim("Xform", "R", text=content))
    scene = usd.read(path, material=ROUND)
    first, second, third = scene.obstacles
    moved = dataclasses.replace(third, shape=Box((0, 0, 5), (1, 1, 6)))
    scene = dataclasses.replace(scene, obstacles=[dataclasses.replace(first, friction=1 / 3), second, moved])
    usd.write(tmp_path / "new.usda", scene)
    assert not differences(usd.read(tmp_path / "new.usda"), scene)
    stage = Usd.Stage.Open(str(tmp_path / "new.usda"))
    assert [stage.GetPrimAtPath(f"/R/{name}").IsInstance() for name in "ABC"] == [False, True, False]
    # one alone of the three would be read as "Box", not by its path
    alone = dataclasses.replace(scene, obstacles=[dataclasses.replace(third, name=second.name)])
    for obstacles in ([second], [second, first], [third, second], alone.obstacles):
        fewer = dataclasses.replace(scene, obstacles=obstacles)
        usd.write(tmp_path / "fewer.usda", fewer)
        assert not differences(usd.read(tmp_path / "fewer.usda"), fewer)


def test_a_material_bound_further_down_gives_way(tmp_path):
    """Geometry of another program may have its own material below the body; the new material is that of the body."""
    stone = prim("Material", "Stone", text="float newton:mpm:youngsModulus = 1e9")
    mesh = prim("Mesh", "M", "MaterialBindingAPI", text="rel material:binding:physics = </R/Stone>" + TET)
    body = prim("Xform", "Body", "PhysicsDeformableBodyAPI", text=mesh)
    path = write_text(tmp_path / "a.usda", METRES + prim("Xform", "R", text=stone + body))
    scene = usd.read(path)
    assert scene.bodies[0].material.youngs_modulus == 1e9
    scene = dataclasses.replace(scene, bodies=[dataclasses.replace(scene.bodies[0], material=ODD)])
    usd.write(tmp_path / "b.usda", scene)
    assert usd.read(tmp_path / "b.usda") == scene


def test_nothing_is_written_that_reads_back_as_something_else(lab, tmp_path, monkeypatch):
    """A file of another program may have unforeseen content: here the new gravity has no effect."""
    monkeypatch.setattr("warpbots.usd.stage.scene_settings._write_gravity", lambda *args: None)
    scene = dataclasses.replace(usd.read(lab), gravity=(0.0, 0.0, -1.62))
    with pytest.raises(SceneError, match=r"read back with different gravity; write .*replace\(scene, source=None\)"):
        usd.write(tmp_path / "moon.usda", scene)
    assert not (tmp_path / "moon.usda").exists()


def test_what_is_added_has_no_findings(lab, tmp_path):
    """The validators have no findings in the written file that they do not have in its source."""
    usd.write(tmp_path / "new.usdc", changed_in_every_way(usd.read(lab)))
    assert set(findings(tmp_path / "new.usdc")) <= set(findings(lab))


def test_what_somebody_puts_beside_our_shape_is_no_matter(tmp_path):
    usd.write(tmp_path / "a.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    UsdGeom.Cube.Define(stage, "/World/Bodies/block/Hat")
    stage.Save()
    assert usd.read(tmp_path / "a.usda") == simple_scene()


def test_a_silhouette_over_a_source_of_ours(tmp_path):
    usd.write(tmp_path / "a.usda", simple_scene(2))
    scene = usd.read(tmp_path / "a.usda")
    scene = dataclasses.replace(scene, bodies=[dataclasses.replace(scene.bodies[0], shape=blob())])
    usd.write(tmp_path / "a.usda", scene)
    assert usd.read(tmp_path / "a.usda") == scene


def test_a_source_that_is_gone(lab, tmp_path):
    scene = usd.read(lab)
    lab.unlink()
    with pytest.raises(SceneError, match=r"Scene.source .*lab.usda no longer exists.*source=None"):
        usd.write(tmp_path / "new.usda", scene)
    assert not (tmp_path / "new.usda").exists()
    usd.write(tmp_path / "new.usda", dataclasses.replace(scene, source=None))
    assert usd.read(tmp_path / "new.usda") == scene
