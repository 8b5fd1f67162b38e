"""Trajectories: moving particles over the file of the scene, which stays as it is."""

import dataclasses
import hashlib
import tracemalloc
import warnings

import numpy as np
import pytest
import warp.examples
from cases import to_numpy
from pxr import Sdf, Usd, UsdGeom
from usd_cases import ROUND, SOLIDS, Trajectory, findings, full_scene, names, octahedron, simple_scene, write_text

from warpbots import usd
from warpbots.scene import Box, Cable, Constraint, Material, RigidBody, Scene, SoftBody, Sphere, Truss
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated, MassSpring


def lifted(array, dim):
    return np.asarray(array, dtype=np.float32) if dim == 3 else np.insert(np.asarray(array, np.float32), 1, 0, axis=1)


def particles(stage):
    """All visible moving particles of `stage`, in the order of the file."""
    found = [UsdGeom.Points(p) for p in stage.Traverse() if p.GetTypeName() == "Points"]
    return [p for p in found if p.ComputeVisibility() == "inherited" and p.GetPointsAttr().GetNumTimeSamples()]


def particles_of(stage, body):
    """The moving particles of `body`: below its prim, or beside the prim if it is geometry itself."""
    inside = [
        p
        for p in particles(stage)
        if (p.GetPrim().GetParent().GetDisplayName() or p.GetPrim().GetParent().GetName()) == body.name
    ]
    (cloud,) = inside or [p for p in particles(stage) if p.GetPrim().GetName() == f"{body.name}_particles"]
    return cloud


def assert_frames(stage, trajectory, fps=60.0, every=1):
    assert len(particles(stage)) == len(trajectory.scene.bodies)
    clouds = [particles_of(stage, body) for body in trajectory.scene.bodies]
    dim, members = trajectory.scene.dim, trajectory.matter.body
    for time, position, velocity in trajectory.frames(every):
        for k, cloud in enumerate(clouds):
            np.testing.assert_array_equal(cloud.GetPointsAttr().Get(time * fps), lifted(position[members == k], dim))
            if cloud.GetVelocitiesAttr().HasAuthoredValue():
                np.testing.assert_array_equal(
                    cloud.GetVelocitiesAttr().Get(time * fps), lifted(velocity[members == k], dim)
                )
    return clouds


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("extension", ["usda", "usdc"])
def test_a_scene_without_file(dim, extension, tmp_path):
    scene = full_scene(dim)
    trajectory = Trajectory(scene)
    usd.write(tmp_path / f"walk.{extension}", trajectory)
    assert names(tmp_path) == [f"walk.{extension}", "walk_results.usdc", "walk_scene.usda"]
    stage = Usd.Stage.Open(str(tmp_path / f"walk.{extension}"))
    clouds = assert_frames(stage, trajectory)
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 6.0)
    assert (stage.GetTimeCodesPerSecond(), stage.GetFramesPerSecond()) == (60.0, 60.0)
    assert stage.GetDefaultPrim().GetName() == "World"
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    for k, cloud in enumerate(clouds):
        volume = trajectory.matter.volume[trajectory.matter.body == k]
        np.testing.assert_allclose(np.asarray(cloud.GetWidthsAttr().Get()) ** dim, volume, rtol=1e-5)
        np.testing.assert_allclose(cloud.GetDisplayColorAttr().Get()[0], trajectory.scene.colors[k], rtol=1e-6)
        assert list(cloud.GetIdsAttr().Get()) == list(range(len(volume)))
    assert usd.read(tmp_path / f"walk.{extension}") == scene


def test_springs_are_curves_that_follow_their_masses(tmp_path):
    """All springs if requested, the bars of a truss always; a motion without springs refuses the request."""
    scene = Scene([SoftBody(name, SOLIDS[2][name], ROUND) for name in ("box", "truss")])
    trajectory = Simulation(scene, MassSpring(0.05), 1e-3, substeps=None).rollout(None, 4)
    lattice = trajectory.matter
    for springs in (True, False):
        usd.write(tmp_path / "run.usda", trajectory, fps=1000.0, springs=springs)
        stage = Usd.Stage.Open(str(tmp_path / "run.usda"))
        for k, body in enumerate(scene.bodies):
            prim = stage.GetPrimAtPath(f"/World/Bodies/{body.name}/Springs")
            assert bool(prim) == (springs or body.name == "truss")
            if not prim:
                continue
            ends = lattice.ends[lattice.body[lattice.ends[:, 0]] == k]
            assert list(UsdGeom.BasisCurves(prim).GetCurveVertexCountsAttr().Get()) == [2] * len(ends)
            for time, position, _ in trajectory.frames():
                found = UsdGeom.BasisCurves(prim).GetPointsAttr().Get(round(1000.0 * time))
                np.testing.assert_array_equal(found, lifted(position[ends.ravel()], 2))
        assert not findings(tmp_path / "run.usda")
    with pytest.raises(ValueError, match="springs=True needs a trajectory of MassSpring"):
        usd.write(tmp_path / "run.usda", Trajectory(simple_scene()), springs=True)


def test_cables_follow_the_matter_and_are_read_at_rest(tmp_path):
    """Their curves go through the masses at the waypoints, as in pictures."""
    body = SoftBody("arm", Box((0, 0, 0), (0.2, 0.1, 0.1)), Material(1e5, 0.25), {"root": Box((0, 0, 0), (1e-6, 1, 1))})
    cable = Cable("cable", [(0.001, 0.0, 0.1), (0.1, 0.001, 0.1), (0.2, 0.0, 0.099)], 100.0)
    scene = Scene([body], [cable], constraints=[Constraint("root")])
    sim = Simulation(scene, MassSpring(0.05), 5e-3, substeps=None)
    motion = sim.rollout([[1.0]] * 10, 10)
    usd.write(tmp_path / "pull.usda", motion)
    assert usd.read(tmp_path / "pull.usda") == scene
    stage = Usd.Stage.Open(str(tmp_path / "pull.usda"))
    curve = UsdGeom.BasisCurves(stage.GetPrimAtPath("/World/Actuators/cable"))
    places = np.asarray(curve.GetPointsAttr().Get(0.05 * 60.0))
    start, end = (to_numpy(s.position)[0] for s in (sim.state(), motion.final))
    nearest = [np.linalg.norm(start - p, axis=1).argmin() for p in cable.waypoints]
    np.testing.assert_allclose(places, end[nearest], atol=1e-7)
    assert np.abs(end - start)[nearest].max() > 1e-3


def test_a_motion_of_a_rigid_body_is_read_without_a_warning(tmp_path):
    """Its file makes the body kinematic, which is not a part of the scene."""
    scene = Scene([RigidBody("ball", Sphere((0, 0, 0), 0.1))])
    usd.write(tmp_path / "fall.usda", Simulation(scene, Articulated(), 0.01).rollout(None, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert usd.read(tmp_path / "fall.usda") == scene


def test_broken_springs_have_no_width(tmp_path):
    """A bar drawn beyond its breaking strain is gone from the first step on."""
    frame = Truss([[0, 0], [1, 0], [0, 1]], [[0, 1], [0, 2]], 0.05)
    body = SoftBody("frame", frame, Material(1e4, 0.25, 1000.0, breaking_strain=0.1))
    sim = Simulation(Scene([body], gravity=(0.0, 0.0)), MassSpring(1.0), 1e-3)
    drawn = sim.state().position.clone()
    drawn[0, 1, 0] = 1.2
    usd.write(tmp_path / "run.usda", sim.rollout(None, 2, sim.state(position=drawn)), fps=1000.0)
    stage = Usd.Stage.Open(str(tmp_path / "run.usda"))
    bars = UsdGeom.BasisCurves(stage.GetPrimAtPath("/World/Bodies/frame/Springs"))
    assert bars.GetWidthsInterpolation() == "uniform"
    for code, widths in ((0, [0.1, 0.1]), (1, [0.0, 0.1]), (2, [0.0, 0.1])):
        np.testing.assert_allclose(bars.GetWidthsAttr().Get(code), widths, rtol=1e-6)
    assert not findings(tmp_path / "run.usda")


def test_the_rest_shape_is_hidden_and_obstacles_are_not(tmp_path):
    usd.write(tmp_path / "walk.usda", Trajectory(simple_scene()))
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    seen = {
        str(prim.GetPath())
        for prim in stage.Traverse()
        if prim.IsA(UsdGeom.Gprim)
        and UsdGeom.Imageable(prim).ComputeVisibility() == "inherited"
        and UsdGeom.Imageable(prim).ComputePurpose() == "default"
    }
    assert seen == {"/World/Bodies/block/Surface", "/World/Obstacles/floor/Surface"}
    for unseen in ("/World/Bodies/block/Particles", "/World/Obstacles/floor/Shape"):
        assert UsdGeom.Imageable(stage.GetPrimAtPath(unseen)).ComputePurpose() == "guide"


def test_without_surfaces_particles_are_drawn_and_without_particles_there_are_none(tmp_path):
    usd.write(tmp_path / "points.usda", Trajectory(simple_scene()), surfaces=False)
    usd.write(tmp_path / "skins.usda", Trajectory(simple_scene()), particles=False)
    points, skins = (Usd.Stage.Open(str(tmp_path / f"{name}.usda")) for name in ("points", "skins"))
    assert not points.GetPrimAtPath("/World/Bodies/block/Surface")
    cloud = UsdGeom.Imageable(points.GetPrimAtPath("/World/Bodies/block/Particles"))
    assert (cloud.ComputeVisibility(), cloud.ComputePurpose()) == ("inherited", "default")
    assert skins.GetPrimAtPath("/World/Bodies/block/Surface")
    assert not skins.GetPrimAtPath("/World/Bodies/block/Particles")


def test_the_file_of_the_scene_is_untouched_and_a_motion_elsewhere_moves_with_its_own(tmp_path):
    """A motion in the folder of its scene shares the file; elsewhere the scene is written beside it."""
    for folder in ("scenes", "out", "moved"):
        (tmp_path / folder).mkdir()
    source = tmp_path / "scenes" / "robot.usda"
    usd.write(source, simple_scene())
    before = hashlib.sha256(source.read_bytes()).hexdigest()
    trajectory = Trajectory(usd.read(source))
    for folder, scene in (("scenes", "robot.usda"), ("out", "walk_scene.usda")):
        usd.write(tmp_path / folder / "walk.usda", trajectory)
        assert names(tmp_path / folder) == sorted([scene, "walk.usda", "walk_results.usdc"])
        layer = Sdf.Layer.FindOrOpen(str(tmp_path / folder / "walk.usda"))
        assert list(layer.subLayerPaths) == ["./walk_results.usdc", f"./{scene}"]
        assert_frames(Usd.Stage.Open(layer), trajectory)
        assert usd.read(tmp_path / folder / "walk.usda") == trajectory.scene
    assert hashlib.sha256(source.read_bytes()).hexdigest() == before
    for file in list((tmp_path / "out").iterdir()):
        file.rename(tmp_path / "moved" / file.name)
    source.unlink()
    assert_frames(Usd.Stage.Open(str(tmp_path / "moved" / "walk.usda")), trajectory)


def test_the_results_only_add(tmp_path):
    """Every prim that the scene has is an `over` in the results."""
    usd.write(tmp_path / "walk.usda", Trajectory(full_scene(3)))
    scene, results = (Sdf.Layer.FindOrOpen(str(tmp_path / name)) for name in ("walk_scene.usda", "walk_results.usdc"))
    paths = []
    results.Traverse("/", lambda p: paths.append(p) if p.IsPrimPath() else None)
    assert len(paths) > 20
    for path in paths:
        own = results.GetPrimAtPath(path)
        assert (own.specifier == Sdf.SpecifierOver) == bool(scene.GetPrimAtPath(path)), path


def test_a_changed_scene_is_written_beside_and_keeps_what_its_source_has(tmp_path):
    usd.write(tmp_path / "robot.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "robot.usda"))
    UsdGeom.Camera.Define(stage, "/World/Eye")
    stage.Save()
    scene = usd.read(tmp_path / "robot.usda")
    scene = dataclasses.replace(scene, gravity=(0.0, 0.0, -1.62))
    usd.write(tmp_path / "moon.usda", Trajectory(scene))
    assert usd.read(tmp_path / "moon.usda") == scene
    assert Usd.Stage.Open(str(tmp_path / "moon.usda")).GetPrimAtPath("/World/Eye")


FOREIGN = """(
    upAxis = "Y"
    metersPerUnit = 0.01
    startTimeCode = 5
    endTimeCode = 9
    timeCodesPerSecond = 24
)
def Xform "Root" (
    kind = "component"
) {
    def Material "Gum" {
        float newton:mpm:youngsModulus = 100
    }
    def Mesh "Naked" (
        prepend apiSchemas = ["PhysicsDeformableBodyAPI", "MaterialBindingAPI"]
    ) {
        rel material:binding:physics = </Root/Gum>
        point3f[] points = [(0,0,0),(9,0,0),(0,9,0),(0,0,9)]
        int[] faceVertexCounts = [3,3,3,3]
        int[] faceVertexIndices = [0,2,1,0,1,3,1,2,3,0,3,2]
        normal3f[] normals = [(0,0,-1),(0,-1,0),(1,1,1),(-1,0,0)] (
            interpolation = "uniform"
        )
        uniform token subdivisionScheme = "none"
        float3[] extent = [(0,0,0),(9,9,9)]
        double3 xformOp:translate = (1, 2, 3)
        uniform token[] xformOpOrder = ["xformOp:translate"]
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
        def Cube "Bone" {
            float3[] extent = [(-1,-1,-1),(1,1,1)]
        }
    }
}
"""


def test_over_a_foreign_scene_in_centimetres_with_y_up(tmp_path):
    """Particles of a body that is geometry itself are beside it, all at their positions of the scene."""
    path = write_text(tmp_path / "foreign.usda", FOREIGN)
    trajectory = Trajectory(usd.read(path))
    usd.write(tmp_path / "walk.usda", trajectory)
    assert names(tmp_path) == ["foreign.usda", "walk.usda", "walk_results.usdc"]
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    clouds = assert_frames(stage, trajectory)
    assert [str(c.GetPath()) for c in clouds] == ["/Root/Naked_particles", "/Root/Dressed/Particles"]
    assert (UsdGeom.GetStageUpAxis(stage), UsdGeom.GetStageMetersPerUnit(stage)) == ("Y", 0.01)
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (0.0, 6.0, 60.0)
    for cloud in clouds:
        world = np.array(UsdGeom.XformCache(0.0).GetLocalToWorldTransform(cloud.GetPrim())).T
        # (x, y, z) metres with z up are (x, z, -y) in centimetres with y up
        np.testing.assert_allclose(world[:3], [[100, 0, 0, 0], [0, 0, 100, 0], [0, -100, 0, 0]], atol=1e-12)
    for name in ("Naked", "Dressed/Skin", "Dressed/Bone"):
        assert UsdGeom.Imageable(stage.GetPrimAtPath(f"/Root/{name}")).ComputeVisibility() == "invisible"
    assert usd.read(tmp_path / "walk.usda") == trajectory.scene


def test_a_trajectory_over_a_trajectory(tmp_path):
    usd.write(tmp_path / "first.usda", Trajectory(simple_scene(), count=9))
    second = Trajectory(usd.read(tmp_path / "first.usda"), count=7, steps=3)
    usd.write(tmp_path / "second.usda", second)
    stage = Usd.Stage.Open(str(tmp_path / "second.usda"))
    assert_frames(stage, second)
    assert stage.GetEndTimeCode() == 3.0
    assert usd.read(tmp_path / "second.usda") == second.scene


def test_a_large_scene_is_written_in_binary(tmp_path):
    scene = usd.read(f"{warp.examples.get_asset_directory()}/bear.usd", material=ROUND)
    usd.write(tmp_path / "walk.usda", Trajectory(dataclasses.replace(scene, source=None)))
    assert names(tmp_path) == ["walk.usda", "walk_results.usdc", "walk_scene.usdc"]


def test_meshes_without_physics(tmp_path):
    """The file of the scene marks no bodies, so the scene is written beside it; the bear stays in its file."""
    trajectory = Trajectory(usd.read(f"{warp.examples.get_asset_directory()}/bear.usd", material=ROUND))
    usd.write(tmp_path / "walk.usda", trajectory)
    assert usd.read(tmp_path / "walk.usda") == trajectory.scene
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    assert_frames(stage, trajectory)
    assert UsdGeom.Imageable(stage.GetPrimAtPath("/root/bear")).ComputeVisibility() == "invisible"


@pytest.mark.parametrize(
    ("interval", "fps", "codes"),
    [
        (1 / 60, 60, [0, 1, 2, 3]),
        (0.05, 60, [0, 3, 6, 9]),
        (5e-3, 60, [0, 0.3, 0.6, 0.9]),
        (0.1, 24, [0, 2.4, 4.8, 7.2]),
        (1e-3, 1000, [0, 1, 2, 3]),
    ],
)
def test_time_codes_are_seconds_times_fps(interval, fps, codes, tmp_path):
    trajectory = Trajectory(simple_scene(), steps=3, control_interval=interval)
    usd.write(tmp_path / "walk.usda", trajectory, fps=fps)
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    found = particles(stage)[0].GetPointsAttr().GetTimeSamples()
    np.testing.assert_allclose(found, codes, rtol=1e-12)
    assert all(c == round(c) for c in found) == all(isinstance(c, int) for c in codes)
    assert stage.GetTimeCodesPerSecond() == fps
    assert_frames(stage, trajectory, fps)


def test_every_and_velocities(tmp_path):
    trajectory = Trajectory(simple_scene())
    usd.write(tmp_path / "walk.usda", trajectory, every=3, velocities=True)
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    (cloud,) = assert_frames(stage, trajectory, every=3)
    assert cloud.GetPointsAttr().GetTimeSamples() == [0, 3, 6]
    assert cloud.GetVelocitiesAttr().GetTimeSamples() == [0, 3, 6]
    usd.write(tmp_path / "still.usda", trajectory)
    stage = Usd.Stage.Open(str(tmp_path / "still.usda"))
    assert not particles(stage)[0].GetVelocitiesAttr().HasAuthoredValue()


def test_writing_again_over_files_that_are_open(tmp_path):
    """USD keeps open layers in a registry; a stage that somebody has open shows the new frames."""
    first, second = (Trajectory(simple_scene(), steps=n) for n in (3, 5))
    usd.write(tmp_path / "walk.usda", first)
    stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
    usd.write(tmp_path / "walk.usda", second)
    assert_frames(stage, second)
    assert stage.GetEndTimeCode() == 5.0
    assert_frames(Usd.Stage.Open(str(tmp_path / "walk.usda")), second)


def test_a_body_without_particles(tmp_path):
    scene = simple_scene()
    scene = dataclasses.replace(
        scene, bodies=[*scene.bodies, SoftBody("speck", octahedron(), scene.bodies[0].material)]
    )
    trajectory = Trajectory(scene)
    trajectory.matter.body[:] = 0
    usd.write(tmp_path / "walk.usda", trajectory)
    assert not findings(tmp_path / "walk.usda")


def test_memory_does_not_grow_with_the_number_of_frames(tmp_path, monkeypatch):
    """Flushed frames are not kept: 40 frames need no more memory than 20 (in Python; for USD see the benchmark)."""
    monkeypatch.setattr("warpbots.usd.trajectory_writer._FLUSH", 2**16)

    def peak(steps):
        tracemalloc.start()
        usd.write(tmp_path / "walk.usda", Trajectory(simple_scene(), count=5000, steps=steps))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(40) < 1.1 * peak(20)


def test_frames_are_flushed_as_they_come(tmp_path, monkeypatch):
    monkeypatch.setattr("warpbots.usd.trajectory_writer._FLUSH", 1)
    sizes = []

    class Watched(Trajectory):
        def frames(self, every=1):
            for frame in super().frames(every):
                sizes.append(sum(p.stat().st_size for p in tmp_path.glob(".*results*")))
                yield frame

    usd.write(tmp_path / "walk.usda", Watched(simple_scene(), count=1000))
    assert all(b - a >= 12 * 1000 for a, b in zip(sizes[1:], sizes[2:], strict=False))
