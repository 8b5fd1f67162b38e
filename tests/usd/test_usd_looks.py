"""What a motion looks like in other programs: meshes with normals, materials, a camera that sees all of it, lights."""

import dataclasses

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom, UsdShade, UsdUtils
from usd_cases import ROUND, Particles, Trajectory, findings, simple_scene

from warpbots import usd
from warpbots.scene import Box, Material, Obstacle, RigidBody, Scene, SoftBody, Sphere, floor, walls
from warpbots.surfaces.plates import plate
from warpbots.surfaces.triangles import creased, vertex_normals

H = 0.1  # distance between particles


def grid(dim):
    """Particles of a cube or a square of 1 m, shape (1000, 3) or (100, 2)."""
    axis = np.arange(H / 2, 1.0, H)
    return np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def turned(angle, x):
    """The points `x` turned about the y axis, which is out of the plane in 2D, around the origin."""
    c, s = np.cos(angle), np.sin(angle)
    y = x.copy()
    y[:, 0], y[:, -1] = c * x[:, 0] + s * x[:, -1], c * x[:, -1] - s * x[:, 0]
    return y


class Moving(Trajectory):
    """A cube or a square whose particles move as `move` says: positions [m] from time [s] and rest positions."""

    def __init__(self, dim, move, steps=8, obstacles=(), control_interval=1 / 60, **material):
        body = SoftBody("block", Box((0.0,) * dim, (1.0,) * dim), Material(1e5, **material), color=(0.2, 0.4, 0.8))
        self.scene = Scene([body], obstacles=list(obstacles), name="moving")
        self.steps, self.control_interval, self._move = steps, control_interval, move
        x = grid(dim)
        self.matter = Particles(x, np.full(len(x), H**dim), np.zeros(len(x), dtype=int))

    def frames(self, every=1):
        x, dt = self.matter.position, 1e-6
        for k in range(0, self.steps + 1, every):
            t = k * self.control_interval
            yield t, self._move(t, x), (self._move(t + dt, x) - self._move(t - dt, x)) / (2.0 * dt)


def written(trajectory, path, **options):
    usd.write(path, trajectory, **options)
    assert findings(path) == []
    assert usd.read(path) == trajectory.scene
    return Usd.Stage.Open(str(path))


def surface(stage):
    return UsdGeom.Mesh(stage.GetPrimAtPath("/World/Bodies/block/Surface"))


@pytest.mark.parametrize("dim", [2, 3])
def test_the_mesh_of_a_body_turns_with_it(dim, tmp_path):
    """Vertices, normals and velocities of a rigid rotation are those of the first frame, turned."""
    rate = 2.0
    stage = written(Moving(dim, lambda t, x: turned(rate * t, x)), tmp_path / "turn.usda", velocities=True)
    mesh = surface(stage)
    start, normals = (np.asarray(a.Get(0.0), float) for a in (mesh.GetPointsAttr(), mesh.GetNormalsAttr()))
    assert np.ptp(start, axis=0)[[0, 2]] == pytest.approx(1.0, abs=0.03)
    assert mesh.GetSubdivisionSchemeAttr().Get() == "none"
    assert mesh.GetNormalsInterpolation() == "vertex"
    assert np.einsum("ni,ni->n", normals, start - start.mean(axis=0)).min() > 0.0
    faces = np.asarray(mesh.GetFaceVertexIndicesAttr().Get()).reshape(-1, 3)
    a, b, c = np.moveaxis(start[faces], 1, 0)
    assert (np.einsum("ni,ni->n", np.cross(b - a, c - a), normals[faces[:, 0]]) > 0.0).all()
    for code in (0.0, 3.0, 8.0):
        angle = rate * code / 60.0
        here = np.asarray(mesh.GetPointsAttr().Get(code), float)
        np.testing.assert_allclose(here, turned(angle, start), atol=1e-4)
        np.testing.assert_allclose(mesh.GetNormalsAttr().Get(code), turned(angle, normals), atol=0.01)
        swept = np.cross([0.0, rate, 0.0], here)
        np.testing.assert_allclose(mesh.GetVelocitiesAttr().Get(code), swept, atol=2e-3 * rate)
    assert mesh.GetNormalsAttr().GetNumTimeSamples() < 5  # USD interpolates between them
    np.testing.assert_array_equal(mesh.GetNormalsAttr().Get(), mesh.GetNormalsAttr().Get(0.0))


def test_a_surface_ends_where_matter_tears(tmp_path):
    """Two halves of a cube move apart: faces across the gap are gone, particles beside it appear, and not before."""
    stage = written(
        Moving(3, lambda t, x: x + np.where(x[:, :1] > 0.5, [[12.0 * t, 0.0, 0.0]], 0.0)), tmp_path / "tear.usda"
    )
    mesh, cloud = surface(stage), UsdGeom.Points(stage.GetPrimAtPath("/World/Bodies/block/Particles"))
    counts = [len(mesh.GetFaceVertexCountsAttr().Get(code)) for code in (0.0, 8.0)]
    assert counts[1] < counts[0]
    assert not np.asarray(cloud.GetWidthsAttr().Get(0.0)).any()
    shown = np.asarray(cloud.GetWidthsAttr().Get(8.0)) > 0.0
    assert 0.1 < shown.mean() < 0.9
    assert np.abs(grid(3)[shown, 0] - 0.5).max() < 0.45  # none at the far ends
    assert UsdGeom.Imageable(cloud).ComputePurpose() == "default"
    first = np.asarray(mesh.GetFaceVertexIndicesAttr().Get(8.0)).reshape(-1, 3)
    corner = np.asarray(mesh.GetPointsAttr().Get(8.0))[first]
    assert np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2).max() < 5.0 * H


def test_fluids_are_drawn_as_their_particles(tmp_path):
    trajectory = Moving(3, lambda t, x: x + [0.0, 0.0, t], law="weakly_compressible")
    stage = written(trajectory, tmp_path / "water.usda")
    mesh = surface(stage)
    points = np.asarray(mesh.GetPointsAttr().Get(6.0)).reshape(1000, 6, 3)
    np.testing.assert_allclose(points.mean(axis=1), grid(3) + [0.0, 0.0, 0.1], atol=1e-5)
    radius = np.linalg.norm(points - points.mean(axis=1, keepdims=True), axis=2)
    np.testing.assert_allclose(4.0 / 3.0 * np.pi * radius**3, H**3, rtol=1e-4)  # float32
    assert mesh.GetNormalsAttr().GetNumTimeSamples() == 0


def picture(stage, code):
    """Coordinates in the picture of the corners of the block at a time code, each in [-1, 1] if it is in view."""
    (camera,) = (UsdGeom.Camera(p) for p in stage.Traverse() if p.IsA(UsdGeom.Camera))
    assert camera.GetPrim().GetName() == UsdUtils.GetPrimaryCameraName()
    frustum = camera.GetCamera(code).frustum
    seen = frustum.ComputeViewMatrix() * frustum.ComputeProjectionMatrix()
    points = surface(stage).GetPointsAttr().Get(code)
    return np.array([seen.Transform(Gf.Vec3d(p)) for p in points])[:, :2]


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(("distance", "moves"), [(6.0, False), (60.0, True)])
def test_the_camera_sees_the_whole_motion(dim, distance, moves, tmp_path):
    """At rest if the way is short; else it goes along, and the body is large all the time.

    `distance` is the way in a second [m]; the motion takes half a second.
    """

    def move(t, x):
        y = x.copy()
        y[:, 0] += distance * t
        y[:, -1] += 1.0 + np.sin(9.0 * t)
        return y

    trajectory = Moving(dim, move, steps=30, obstacles=[floor(dim=dim)])
    stage = written(trajectory, tmp_path / "fly.usda", particles=False)
    places = [picture(stage, code) for code in (0.0, 7.0, 15.0, 30.0)]
    assert np.abs(places).max() < 1.0
    sizes = [np.ptp(p, axis=0).max() for p in places]
    assert min(sizes) > (0.1 if moves else 0.2)
    (camera,) = (UsdGeom.Xformable(p) for p in stage.Traverse() if p.IsA(UsdGeom.Camera))
    assert camera.TransformMightBeTimeVarying() == moves
    bound = stage.GetRootLayer().customLayerData["cameraSettings"]["boundCamera"]
    assert stage.GetPrimAtPath(bound) == camera.GetPrim()


def test_materials_have_the_colours_of_pictures(tmp_path):
    """Shaders take linear values; the meshes of bodies, of rigid bodies and of obstacles are bound to them."""
    rigid = RigidBody("bone", Sphere((0.0, 0.0, 0.0), 0.1), color=(0.5, 0.0, 1.0))
    usd.write(tmp_path / "rigid.usda", Scene([rigid], contacts=()))
    still = written(Moving(3, lambda t, x: x, obstacles=[floor()]), tmp_path / "still.usda")
    for stage, path, color in (
        (still, "/World/Bodies/block/Surface", (0.0331, 0.1329, 0.6038)),
        (still, "/World/Obstacles/floor/Surface", (0.5071, 0.4770, 0.4339)),
        (Usd.Stage.Open(str(tmp_path / "rigid.usda")), "/World/Bodies/bone/Shape", (0.2140, 0.0, 1.0)),
    ):
        bound, _ = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath(path)).ComputeBoundMaterial()
        shader, _, _ = bound.ComputeSurfaceSource()
        assert shader.GetIdAttr().Get() == "UsdPreviewSurface"
        np.testing.assert_allclose(shader.GetInput("diffuseColor").Get(), color, atol=1e-4)


def test_a_material_of_another_program_stays(tmp_path):
    usd.write(tmp_path / "robot.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "robot.usda"))
    paint = UsdShade.Material.Define(stage, "/World/Paint")
    UsdShade.MaterialBindingAPI(stage.GetPrimAtPath("/World/Bodies/block")).Bind(paint)
    stage.Save()
    scene = usd.read(tmp_path / "robot.usda")
    changed = dataclasses.replace(scene, bodies=[dataclasses.replace(scene.bodies[0], color=(0.1, 0.2, 0.3))])
    usd.write(tmp_path / "again.usda", changed)
    usd.write(tmp_path / "walk.usda", Trajectory(scene))
    for name, part in (("again", "Shape"), ("walk", "Surface")):
        stage = Usd.Stage.Open(str(tmp_path / f"{name}.usda"))
        prim = stage.GetPrimAtPath(f"/World/Bodies/block/{part}")
        assert UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0].GetPath() == "/World/Paint"


def test_lights_have_a_variant_for_omniverse(tmp_path):
    usd.write(tmp_path / "scene.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    lighting = stage.GetPrimAtPath("/World/Lights").GetVariantSet("lighting")
    found = {}
    for name in lighting.GetVariantNames():
        lighting.SetVariantSelection(name)
        found[name] = stage.GetPrimAtPath("/World/Lights/Sun").GetAttribute("inputs:intensity").Get()
    assert set(found) == {"preview", "omniverse"}
    assert found["omniverse"] > 100.0 * found["preview"]
    assert findings(stage) == []


def test_walls_do_not_hide_the_scene(tmp_path):
    scene = simple_scene(obstacles=[floor(), *walls((-1.0, -1.0, 0.0), (1.0, 1.0, 1.0))])
    usd.write(tmp_path / "room.usda", scene)
    stage = Usd.Stage.Open(str(tmp_path / "room.usda"))
    planes = {str(p.GetPath()): UsdGeom.Imageable(p).ComputePurpose() for p in stage.Traverse() if p.IsA(UsdGeom.Plane)}
    assert planes.pop("/World/Obstacles/floor/Shape") == "default"
    assert "guide" in planes.values()


@pytest.mark.parametrize("dim", [2, 3])
def test_a_scene_with_surfaces(dim, tmp_path):
    body = SoftBody("block", Box((0.0,) * dim, (1.0,) * dim), ROUND)
    scene = Scene([body], obstacles=[floor(dim=dim), Obstacle(Sphere((2.0,) * dim, 0.5), name="rock")])
    usd.write(tmp_path / "scene.usdc", scene, surfaces=True)
    stage = Usd.Stage.Open(str(tmp_path / "scene.usdc"))
    for path in ("Bodies/block", "Obstacles/floor", "Obstacles/rock"):
        assert stage.GetPrimAtPath(f"/World/{path}/Surface").IsA(UsdGeom.Mesh)
        assert UsdGeom.Imageable(stage.GetPrimAtPath(f"/World/{path}/Shape")).ComputePurpose() == "guide"
    assert findings(stage) == []
    assert usd.read(tmp_path / "scene.usdc") == scene
    wide = dataclasses.replace(
        usd.read(tmp_path / "scene.usdc"), bodies=[SoftBody("block", Sphere((0.0,) * dim, 0.1), ROUND)]
    )
    usd.write(tmp_path / "again.usdc", wide)
    assert usd.read(tmp_path / "again.usdc") == wide


def test_a_plate_is_closed_and_has_the_area_of_its_shape():
    points, side, faces = plate(Sphere((0.0, 0.0), 1.0), 0.1)
    x = np.tile(np.insert(points, 1, 0.0, axis=1), (2, 1))
    x[:, 1] = 0.05 * side
    a, b, c = np.moveaxis(x[faces], 1, 0)
    assert np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6.0 == pytest.approx(0.1 * np.pi, rel=0.01)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    assert set(map(tuple, edges)) == set(map(tuple, edges[:, ::-1]))


def test_creases_divide_a_cube_and_nothing_divides_a_fold_that_is_flat():
    import trimesh

    cube, ball = trimesh.creation.box(), trimesh.creation.icosphere(subdivisions=2)
    origin, faces = creased(np.array(cube.vertices), np.array(cube.faces))
    assert len(origin) == 24
    normals = vertex_normals(np.array(cube.vertices)[origin], faces)
    np.testing.assert_allclose(np.abs(normals).max(axis=1), 1.0)
    assert len(creased(np.array(ball.vertices), np.array(ball.faces))[0]) == len(ball.vertices)
