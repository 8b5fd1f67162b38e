"""Bodies of tetrahedra and cloth in files: their schemas and attributes, changes to them, and their nodes in motion."""

import dataclasses

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdShade
from usd_cases import (
    ODD,
    ROUND,
    MeshTrajectory,
    Trajectory,
    findings,
    kites,
    names,
    octahedron,
    simple_scene,
    turn,
    write_text,
)

from warpbots import usd
from warpbots.scene import Box, Obstacle, Posed, SceneError, Sheet, SoftBody, TetMesh, Union

CLOTH = Sheet.rectangle((0.1, 0.2), (0.5, 1.0 / 3.0), 1e-3, (2, 3), 1.0 / 7.0, bending=1e-3 / 7.0)


def meshes(**changes):
    """A body of tetrahedra and a cloth."""
    bodies = [SoftBody("gel", kites(1.0 / 3.0), ODD), SoftBody("cloth", CLOTH, ROUND, color=(0.5, 0.25, 0.125))]
    return simple_scene(**{"bodies": bodies, "actuators": ()} | changes)


def with_bodies(*shapes):
    return meshes(bodies=[SoftBody(f"b{k}", shape, ROUND) for k, shape in enumerate(shapes)])


def material_of(prim):
    return UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")[0].GetPrim()


def test_others_find_what_they_simulate(tmp_path):
    usd.write(tmp_path / "a.usda", meshes())
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    gel, cloth = (stage.GetPrimAtPath(f"/World/Bodies/{name}/Shape") for name in ("gel", "cloth"))
    assert (gel.GetTypeName(), cloth.GetTypeName()) == ("TetMesh", "Mesh")
    assert gel.GetPrimTypeInfo().GetAppliedAPISchemas() == ["PhysicsVolumeDeformableSimAPI"]
    assert cloth.GetPrimTypeInfo().GetAppliedAPISchemas() == ["PhysicsSurfaceDeformableSimAPI"]
    mesh = UsdGeom.TetMesh(gel)
    assert str(mesh.GetOrientationAttr().Get()) == "rightHanded"
    assert not UsdGeom.TetMesh.FindInvertedElements(mesh)
    np.testing.assert_array_equal(mesh.GetTetVertexIndicesAttr().Get(), kites().tets)
    expected = UsdGeom.TetMesh.ComputeSurfaceFaces(mesh)
    found = mesh.GetSurfaceFaceVertexIndicesAttr().Get()
    assert canonical(found) == canonical(expected)
    np.testing.assert_allclose(cloth.GetAttribute("physics:thicknesses").Get(), [1e-3])
    assert cloth.GetAttribute("physics:thicknesses:elementType").Get() == "constant"
    assert "PhysicsSurfaceDeformableMaterialAPI" in material_of(cloth).GetPrimTypeInfo().GetAppliedAPISchemas()
    np.testing.assert_allclose(material_of(cloth).GetAttribute("physics:surfaceBendStiffness").Get(), 1e-3 / 7.0)
    assert not material_of(gel).HasAttribute("physics:surfaceBendStiffness")
    assert findings(stage) == []


def canonical(faces):
    """Faces as a set, each beginning with its lowest vertex."""
    return {tuple(np.roll(f, -int(np.argmin(f)))) for f in np.asarray(faces).reshape(-1, 3).tolist()}


@pytest.mark.parametrize(
    "shape",
    [
        Posed(CLOTH, (0.1, 0.2, 0.3), turn(3)),
        Posed(kites(0.1), (0.1, 0.2, 0.3), turn(3)),
        Union((CLOTH, dataclasses.replace(CLOTH, bending=None, thickness=0.1 / 7.0))),
        Union((kites(1.0 / 3.0), Box((0, 0, 0), (1, 1, 1)))),
    ],
    ids=["posed cloth", "posed tetrahedra", "two kinds of cloth", "tetrahedra and a box"],
)
def test_meshes_within_shapes(shape, tmp_path):
    usd.write(tmp_path / "a.usda", with_bodies(shape))
    assert usd.read(tmp_path / "a.usda") == with_bodies(shape)
    assert findings(tmp_path / "a.usda") == []


@pytest.mark.parametrize("bending", [None, 0.0, 0.3, 1.0 / 3.0])
def test_the_bending_of_a_file_that_is_written_over(bending, tmp_path):
    """The former value of the material is not used."""
    usd.write(tmp_path / "a.usda", meshes())
    scene = usd.read(tmp_path / "a.usda")
    changed = dataclasses.replace(scene.bodies[1], shape=dataclasses.replace(CLOTH, bending=bending))
    usd.write(tmp_path / "b.usda", dataclasses.replace(scene, bodies=[scene.bodies[0], changed]))
    assert usd.read(tmp_path / "b.usda").bodies[1].shape.bending == bending


def test_what_another_program_says_counts(tmp_path):
    path = tmp_path / "a.usda"
    usd.write(path, meshes())
    stage = Usd.Stage.Open(str(path))
    cloth = stage.GetPrimAtPath("/World/Bodies/cloth/Shape")
    cloth.GetAttribute("physics:thicknesses").Set([0.5])
    material_of(cloth).GetAttribute("physics:surfaceBendStiffness").Set(0.25)
    stage.Save()
    found = usd.read(path).bodies[1].shape
    assert found == dataclasses.replace(CLOTH, thickness=0.5, bending=0.25)


def test_a_cloth_that_is_an_obstacle_keeps_its_bending(tmp_path):
    scene = simple_scene(obstacles=[Obstacle(CLOTH)])
    usd.write(tmp_path / "a.usda", scene)
    assert usd.read(tmp_path / "a.usda") == scene


CENTIMETRES = '(\n upAxis = "Y"\n metersPerUnit = 0.01\n kilogramsPerUnit = 0.001\n)\ndef Xform "World" {\n}\n'


def test_cloth_in_a_file_in_other_units(tmp_path):
    """Written over a file in centimetres and grams: a thickness of 0.1 cm, and g cm^2/s^2 are 1e-7 N m."""
    write_text(tmp_path / "room.usda", CENTIMETRES + 'def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}\n')
    scene = dataclasses.replace(meshes(), source=str(tmp_path / "room.usda"))
    scene = dataclasses.replace(scene, obstacles=[Obstacle(Box((-0.01,) * 3, (0.01,) * 3), name="c")], name="World")
    usd.write(tmp_path / "b.usda", scene)
    assert usd.read(tmp_path / "b.usda") == scene
    stage = Usd.Stage.Open(str(tmp_path / "b.usda"))
    cloth = stage.GetPrimAtPath("/World/Bodies/cloth/Shape")
    np.testing.assert_allclose(cloth.GetAttribute("physics:thicknesses").Get(), [0.1])
    np.testing.assert_allclose(material_of(cloth).GetAttribute("physics:surfaceBendStiffness").Get(), 1e4 / 7.0)


def test_closed_meshes_of_a_file_as_shapes(tmp_path):
    usd.write(tmp_path / "a.usda", meshes(bodies=meshes().bodies[:1]))
    (mesh,) = usd.read_meshes(tmp_path / "a.usda").values()
    assert (len(mesh.faces), mesh.volume) == (6, pytest.approx(kites(1.0 / 3.0).volume))
    usd.write(tmp_path / "b.usda", meshes())
    with pytest.raises(SceneError, match="/World/Bodies/cloth/Shape: TriangleMesh is not watertight"):
        usd.read_meshes(tmp_path / "b.usda")


# motion


def world_points(prim, code):
    """Points of a prim in the world of its stage, at a time code."""
    points = np.asarray(UsdGeom.PointBased(prim).GetPointsAttr().Get(code), dtype=np.float64)
    world = np.array(UsdGeom.XformCache(code).GetLocalToWorldTransform(prim))
    return points @ world[:3, :3] + world[3, :3]


def assert_moves(stage, trajectory, paths, to_scene=lambda x: x, every=1):
    for time, position, _ in trajectory.frames(every):
        for mesh, path in zip(trajectory.matter.surfaces, paths, strict=True):
            found = to_scene(world_points(stage.GetPrimAtPath(path), round(60.0 * time)))
            np.testing.assert_allclose(found, position[mesh.nodes], rtol=1e-6, atol=1e-6)


OWN = ["/World/Bodies/gel/Shape", "/World/Bodies/cloth/Shape"]


def test_the_points_of_the_bodies_themselves_move(tmp_path):
    trajectory = MeshTrajectory(meshes())
    usd.write(tmp_path / "walk.usda", trajectory, velocities=True)
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    assert_moves(stage, trajectory, OWN)
    assert not [p for p in stage.Traverse() if p.GetTypeName() == "Points"]
    for path in OWN:
        prim = stage.GetPrimAtPath(path)
        assert UsdGeom.Imageable(prim).ComputeVisibility() == "inherited"
        assert UsdGeom.PointBased(prim).GetVelocitiesAttr().GetNumTimeSamples() == 7
        lower, upper = UsdGeom.Boundable(prim).GetExtentAttr().Get(3.0)
        points = np.asarray(UsdGeom.PointBased(prim).GetPointsAttr().Get(3.0))
        np.testing.assert_array_equal([lower, upper], [points.min(0), points.max(0)])
    assert findings(tmp_path / "walk.usda") == []


def test_normals_turn_with_the_cloth(tmp_path):
    """A vertex has the mean of the normals of the faces around it, weighted by their areas."""
    trajectory = MeshTrajectory(meshes())
    usd.write(tmp_path / "walk.usda", trajectory)
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    cloth = UsdGeom.Mesh(stage.GetPrimAtPath(OWN[1]))
    for code in (0.0, 4.0):
        a, b, c = np.moveaxis(np.asarray(cloth.GetPointsAttr().Get(code), dtype=np.float64)[CLOTH.faces], 1, 0)
        n = np.cross(b - a, c - a)
        mean = np.array([n[(CLOTH.faces == k).any(axis=1)].sum(axis=0) for k in range(len(CLOTH.vertices))])
        expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        np.testing.assert_allclose(cloth.GetNormalsAttr().Get(code), expected, atol=1e-5)
    assert cloth.GetNormalsInterpolation() == "vertex"


def test_the_shape_at_rest_stays_what_it_was(tmp_path):
    """The file reads as its scene, although its first frame is not at rest, as does a motion over this motion."""
    first = MeshTrajectory(meshes())
    usd.write(tmp_path / "first.usda", first)
    assert usd.read(tmp_path / "first.usda") == first.scene
    second = MeshTrajectory(usd.read(tmp_path / "first.usda"), steps=3)
    usd.write(tmp_path / "second.usda", second)
    stage = Usd.Stage.Open(str(tmp_path / "second.usda"))
    assert_moves(stage, second, OWN)
    assert stage.GetEndTimeCode() == 3.0
    assert usd.read(tmp_path / "second.usda") == second.scene


def test_nodes_after_particles_and_particles_after_nodes(tmp_path):
    """Each motion hides the results of the motion before it."""
    for k, kinds in enumerate([(Trajectory, MeshTrajectory), (MeshTrajectory, Trajectory)]):
        scene = meshes()
        for name, kind in zip("ab", kinds, strict=True):
            usd.write(tmp_path / f"{name}{k}.usda", kind(scene))
            scene = usd.read(tmp_path / f"{name}{k}.usda")
        stage = Usd.Stage.Open(str(tmp_path / f"b{k}.usda"))
        bodies = [p for p in stage.Traverse() if p.IsA(UsdGeom.Gprim) and "Bodies" in str(p.GetPath())]
        bodies = [p for p in bodies if UsdGeom.Imageable(p).ComputePurpose() == "default"]
        seen = [str(p.GetPath()) for p in bodies if UsdGeom.Imageable(p).ComputeVisibility() == "inherited"]
        assert seen == [OWN[0].replace("Shape", "Surface"), OWN[1] if k == 0 else OWN[1].replace("Shape", "Surface")]
        assert all(len(UsdGeom.Mesh.Get(stage, path).GetPointsAttr().GetTimeSamples()) for path in seen)


def test_a_body_that_a_solver_has_meshed_gets_its_surface(tmp_path):
    """Nodes within it are not shown, the shape at rest is hidden, and the edges of a cube stay sharp."""
    box = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)] + [[0.5] * 3], dtype=float)
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]  # fmt: skip
    solid = TetMesh.oriented(corners, [(*f, 8) for f in faces])
    trajectory = MeshTrajectory(with_bodies(box, octahedron(0.2)), {"b0": solid, "b1": solid})
    usd.write(tmp_path / "walk.usda", trajectory)
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    for k, body in enumerate(trajectory.scene.bodies):
        surface = UsdGeom.Mesh(stage.GetPrimAtPath(f"/World/Bodies/b{k}/Surface"))
        faces = np.reshape(surface.GetFaceVertexIndicesAttr().Get(), (-1, 3))
        for time, position, _ in trajectory.frames():
            nodes = position[trajectory.matter.surfaces[k].nodes]
            found = np.asarray(surface.GetPointsAttr().Get(round(60 * time)))
            np.testing.assert_allclose(found[faces], nodes[solid.surface], atol=1e-6)
        assert len(found) == 24  # each corner once for each of the three sides that meet in it
        normals = np.asarray(surface.GetNormalsAttr().Get(Usd.TimeCode.Default()))[faces]
        corners = solid.vertices[solid.surface]
        out = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        np.testing.assert_allclose(np.einsum("fci,fi->fc", normals, out), 1.0, atol=0.05)
        np.testing.assert_allclose(surface.GetDisplayColorAttr().Get()[0], trajectory.scene.colors[k], rtol=1e-6)
        hidden = UsdGeom.Imageable(stage.GetPrimAtPath(f"/World/Bodies/b{k}/Shape"))
        assert hidden.ComputeVisibility() == "invisible"
    assert findings(tmp_path / "walk.usda") == []
    assert usd.read(tmp_path / "walk.usda") == trajectory.scene
    usd.write(tmp_path / "again.usda", MeshTrajectory(usd.read(tmp_path / "walk.usda"), {"b0": solid, "b1": solid}))
    assert names(tmp_path).count("again_scene.usda") == 0


FOREIGN = """(
    upAxis = "Y"
    metersPerUnit = 0.01
)
def Xform "Root" {
    def Material "Gum" {
        float newton:mpm:youngsModulus = 100
    }
    def Xform "Dressed" (
        prepend apiSchemas = ["PhysicsDeformableBodyAPI", "MaterialBindingAPI"]
    ) {
        rel material:binding:physics = </Root/Gum>
        double3 xformOp:translate = (1, 2, 3)
        double3 xformOp:scale = (2, 2, 2)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
        def Cube "Skin" {
            float3[] extent = [(-1,-1,-1),(1,1,1)]
        }
        def TetMesh "Sim" (
            prepend apiSchemas = ["PhysicsVolumeDeformableSimAPI"]
        ) {
            point3f[] points = [(0,0,0),(10,0,0),(0,10,0),(0,0,10)]
            int4[] tetVertexIndices = [(0,1,2,3)]
            float3[] extent = [(0,0,0),(10,10,10)]
            double3 xformOp:translate = (5, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
    }
    def Mesh "Flag" (
        prepend apiSchemas = ["PhysicsDeformableBodyAPI", "PhysicsSurfaceDeformableSimAPI", "MaterialBindingAPI"]
    ) {
        rel material:binding:physics = </Root/Gum>
        point3f[] points = [(0,0,0),(10,0,0),(10,10,0),(0,10,0)]
        int[] faceVertexCounts = [4]
        int[] faceVertexIndices = [0,1,2,3]
        normal3f[] normals = [(0,0,1)] (
            interpolation = "uniform"
        )
        uniform token subdivisionScheme = "none"
        float3[] extent = [(0,0,0),(10,10,0)]
    }
}
"""


def test_over_a_foreign_scene_in_centimetres_with_y_up(tmp_path):
    """Points move in coordinates of their prim; prims drawn beside the mesh are hidden; a polygon has normals."""
    path = write_text(tmp_path / "foreign.usda", FOREIGN)
    trajectory = MeshTrajectory(usd.read(path))
    usd.write(tmp_path / "walk.usda", trajectory)
    assert names(tmp_path) == ["foreign.usda", "walk.usda", "walk_results.usdc"]
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    order = {"Dressed": "/Root/Dressed/Sim", "Flag": "/Root/Flag"}
    to_scene = lambda x: 0.01 * x @ np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    assert_moves(stage, trajectory, [order[b.name] for b in trajectory.scene.bodies], to_scene)
    assert UsdGeom.Imageable(stage.GetPrimAtPath("/Root/Dressed/Skin")).ComputeVisibility() == "invisible"
    assert UsdGeom.Imageable(stage.GetPrimAtPath("/Root/Dressed/Sim")).ComputeVisibility() == "inherited"
    assert len(UsdGeom.Mesh(stage.GetPrimAtPath("/Root/Flag")).GetNormalsAttr().Get(2.0)) == 4
    assert usd.read(tmp_path / "walk.usda") == trajectory.scene
