"""Content that other programs show: a camera, lights, and values as colours."""

import dataclasses

import numpy as np
import pytest
import torch
from designs import designed, varied
from pxr import Gf, Usd, UsdGeom, UsdLux, UsdPhysics
from usd_cases import findings, prim, rigid_scene, simple_scene, write_text

import warpbots as wb
from warpbots import usd
from warpbots.quantities import ColorMap

DT = 2e-3
FPS = 1.0 / DT


def of_type(stage, *types):
    return [p for p in stage.Traverse() if any(p.IsA(t) for t in types)]


def corners(scene):
    lower, upper = scene.bounds
    box = np.stack(np.meshgrid(*zip(lower, upper, strict=True), indexing="ij"), axis=-1).reshape(-1, len(lower))
    return box if scene.dim == 3 else np.insert(box, 1, 0.0, axis=-1)


@pytest.mark.parametrize("scene", [simple_scene(2), simple_scene(3), rigid_scene()], ids=["2d", "3d", "rigid"])
def test_the_camera_frames_the_scene(scene, tmp_path):
    """All corners of the bounding box are in the picture, and fill a large part of it."""
    usd.write(tmp_path / "scene.usda", scene)
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    (camera,) = of_type(stage, UsdGeom.Camera)
    frustum = UsdGeom.Camera(camera).GetCamera().frustum
    seen = frustum.ComputeViewMatrix() * frustum.ComputeProjectionMatrix()
    places = np.array([seen.Transform(Gf.Vec3d(*map(float, p))) for p in corners(scene)])
    assert np.abs(places).max() < 1.0
    assert np.ptp(places[:, :2], axis=0).max() > 0.6


def test_other_units_and_axes(tmp_path):
    """The camera sees the same in a stage in centimetres with y up."""
    stage = Usd.Stage.CreateNew(str(tmp_path / "source.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    stage.SetDefaultPrim(stage.DefinePrim("/World", "Xform"))
    stage.Save()
    scene = dataclasses.replace(simple_scene(), source=str(tmp_path / "source.usda"), name="World")
    usd.write(tmp_path / "scene.usda", scene)
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    (camera,) = of_type(stage, UsdGeom.Camera)
    frustum = UsdGeom.Camera(camera).GetCamera().frustum
    seen = frustum.ComputeViewMatrix() * frustum.ComputeProjectionMatrix()
    places = np.array([seen.Transform(Gf.Vec3d(100 * x, 100 * z, -100 * y)) for x, y, z in corners(scene)])
    assert np.abs(places).max() < 1.0
    assert frustum.ComputeUpVector()[1] > 0.5


def test_a_stage_with_its_own_keeps_them(tmp_path):
    usd.write(tmp_path / "robot.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "robot.usda"))
    for own in of_type(stage, UsdGeom.Camera, UsdLux.DistantLight, UsdLux.DomeLight):
        stage.RemovePrim(own.GetPath())
    UsdGeom.Camera.Define(stage, "/World/Mine")
    UsdLux.RectLight.Define(stage, "/World/Lamp")
    stage.Save()
    usd.write(tmp_path / "again.usda", usd.read(tmp_path / "robot.usda"))
    stage = Usd.Stage.Open(str(tmp_path / "again.usda"))
    assert [p.GetName() for p in of_type(stage, UsdGeom.Camera)] == ["Mine"]
    assert [p.GetName() for p in stage.Traverse() if p.HasAPI(UsdLux.LightAPI)] == ["Lamp"]


def shown(file, color):
    """Prims with values of this name: values, colours, and the positions of their points, by time code."""
    stage, found = Usd.Stage.Open(str(file)), {}
    for part in stage.Traverse():
        primvar = UsdGeom.PrimvarsAPI(part).GetPrimvar(color)
        if primvar.HasAuthoredValue():
            colors = UsdGeom.PrimvarsAPI(part).GetPrimvar("displayColor")
            times = part.GetAttribute("points").GetTimeSamples()
            found[str(part.GetPath())] = [
                tuple(np.array(a) for a in (primvar.ComputeFlattened(t), colors.ComputeFlattened(t)))
                for t in times
            ]  # fmt: skip
    return found


def of_particles(found):
    """The only entry of `shown` that belongs to particles."""
    (frames,) = (frames for path, frames in found.items() if path.endswith("/Particles"))
    return frames


def test_a_stiffness_is_shown_on_the_particles(tmp_path):
    sim = designed("mpm")
    E = sim.parameter("youngs_modulus") * torch.linspace(1.0, 50.0, 16)
    fine = wb.Simulation(sim.scene, sim.solver, DT, 400)
    usd.write(tmp_path / "walk.usda", fine.rollout(None, 2, youngs_modulus=E), fps=FPS, color="youngs_modulus")
    found = shown(tmp_path / "walk.usda", "youngs_modulus")
    frames = of_particles(found)
    for values, _ in next(found[path] for path in found if path.endswith("/Surface")):
        assert np.isin(values, E[0].numpy().astype(np.float32)).all()  # a vertex has the value of the nearest particle
    assert len(frames) == 3
    for values, colors in frames:
        np.testing.assert_allclose(values, E[0].numpy(), rtol=1e-6)
        lightness = colors @ [0.2126, 0.7152, 0.0722]
        assert (np.diff(lightness) > 0.0).all()  # lighter is stiffer
    assert findings(tmp_path / "walk.usda") == []
    assert usd.read(tmp_path / "walk.usda").bodies[0].color == sim.scene.bodies[0].color


def test_an_activation_is_shown_in_time(tmp_path):
    """Regions have the sum of the signals of their actuators in the interval that ends at the frame, red for contraction.

    A pressure expands its region.
    """
    sim = designed("mpm")
    control = torch.linspace(-0.5, 0.4, 3 * sim.channels).reshape(3, sim.channels)
    usd.write(tmp_path / "walk.usda", sim.rollout(control, 3), fps=FPS, color="activation")
    frames = of_particles(shown(tmp_path / "walk.usda", "activation"))
    signs = [(-1 if isinstance(a, wb.actuators.Pressure) else 1) * hasattr(a, "region") for a in sim.scene.actuators]
    assert min(signs) < 0 < max(signs)
    driving = torch.tensor(signs, dtype=control.dtype)
    root = sim.region("root").numpy()
    for k, (values, colors) in enumerate(frames):
        u = float((control[max(k - 1, 0)] * driving).sum())
        np.testing.assert_allclose(values, np.where(root, u, 0.0), atol=1e-6)
        red, _, blue = colors[root][0]
        assert (red > blue) == (u > 0.0)
    assert findings(tmp_path / "walk.usda") == []


def test_a_mesh_of_the_user_keeps_its_colour(tmp_path):
    """It is drawn in colours of values, and reads as before; bodies without such elements stay as they are."""
    sim = designed("projective")
    values = {"thickness": varied(sim)["thickness"]}
    walk = sim.rollout(None, 2, **values)
    usd.write(tmp_path / "walk.usda", walk, fps=FPS, color="thickness")
    assert list(shown(tmp_path / "walk.usda", "thickness")) == ["/World/Bodies/cloth/Shape"]
    assert usd.read(tmp_path / "walk.usda") == walk.designed
    assert findings(tmp_path / "walk.usda") == []


@pytest.mark.parametrize("color", ["stress", "activation", None])
def test_a_motion_is_simulated_once(color, tmp_path, monkeypatch):
    """Also with bodies of two kinds, an obstacle that moves, and a range of colours that is known only at the end."""
    jelly = wb.SoftBody("jelly", wb.scene.Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)), wb.Material(1e4))
    ball = wb.RigidBody("ball", wb.scene.Sphere((0.05, 0.05, 0.15), 0.03), density=800.0)
    sinks = wb.PrescribedMotion((0.0, 0.1), ((0.0, 0.0, 0.0), (0.0, 0.0, -0.01)))
    plate = wb.Obstacle(wb.scene.Box((-0.1, -0.1, -0.2), (0.2, 0.2, 0.0)), name="plate", motion=sinks)
    scene = wb.Scene([jelly, ball], obstacles=[plate])
    walk = wb.Simulation(scene, wb.Coupled(wb.MPM(dx=0.05), wb.Articulated()), DT, 10).rollout(None, 4)
    step, steps = wb.Simulation.step, []
    monkeypatch.setattr(wb.Simulation, "step", lambda *given, **more: steps.append(1) or step(*given, **more))
    usd.write(tmp_path / "walk.usda", walk, fps=FPS, color=color)
    assert len(steps) == 4
    if color == "stress":
        largest = max(float(values.max()) for values, _ in of_particles(shown(tmp_path / "walk.usda", color)))
        stage = Usd.Stage.Open(str(tmp_path / "walk.usda"))
        said = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/World/Bodies/jelly/Particles")).GetPrimvar("displayColor")
        assert said.GetAttr().GetCustomDataByKey("warpbots:upper") == pytest.approx(largest, rel=1e-6)


def test_there_is_nothing_of_that_name(tmp_path):
    sim = designed("mpm")
    with pytest.raises(
        ValueError, match="color must be one of activation, stress, strain, youngs_modulus, .*, got 'friction'"
    ):
        usd.write(tmp_path / "walk.usda", sim.rollout(None, 1), color="friction")
    with pytest.raises(ValueError, match="color='activation' needs soft bodies"):
        usd.write(tmp_path / "walk.usda", designed("articulated").rollout(None, 1), color="activation")
    assert list(tmp_path.iterdir()) == []


def test_colours_follow_the_logarithm_over_decades():
    wide, narrow = ColorMap("E", 1e3, 1e5), ColorMap("E", 1e3, 9e3)
    np.testing.assert_allclose(wide.colors(np.array([1e4])), narrow.colors(np.array([5e3])))
    ends = narrow.colors(np.array([0.0, 1e3, 9e3, 1e9]))
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[2], ends[3])


CLOTH = prim(
    "Mesh", "Cloth", "PhysicsDeformableBodyAPI", "PhysicsSurfaceDeformableSimAPI", "MaterialBindingAPI",
    text="""
    point3f[] points = [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0.1, 0.1, 0)]
    int[] faceVertexCounts = [3, 3]
    int[] faceVertexIndices = [0, 1, 2, 1, 3, 2]
    float[] physics:thicknesses = [0.002]
    color3f[] primvars:displayColor = [(0.1, 0.75, 0.2)]
    rel material:binding:physics = </Rubber>""",
) + prim(
    "Material", "Rubber", "PhysicsMaterialAPI", "PhysicsVolumeDeformableMaterialAPI",
    text="float physics:youngsModulus = 1e5\nfloat physics:density = 1000",
)  # fmt: skip


def test_a_mesh_that_is_a_body_keeps_its_colour(tmp_path):
    """As in files of other programs: the colours of its motion are on the prim that has the colour of the body."""
    source = '(\n upAxis = "Z"\n metersPerUnit = 1\n defaultPrim = "Cloth"\n)\n' + CLOTH
    scene = usd.read(write_text(tmp_path / "cloth.usda", source))
    assert scene.bodies[0].color == (0.1, 0.75, 0.2)
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.1), DT, 1)
    usd.write(tmp_path / "fall.usda", sim.rollout(None, 2), fps=FPS, color="youngs_modulus")
    assert list(shown(tmp_path / "fall.usda", "youngs_modulus")) == ["/Cloth"]
    assert usd.read(tmp_path / "fall.usda") == scene
