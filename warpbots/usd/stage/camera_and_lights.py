"""Adds a camera that frames the scene, and lights, to stages that have none."""

import math

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdLux

from warpbots.scene import Scene
from warpbots.usd.stage.prim_editing import Target, free_path

__all__ = ["add_camera_and_lights"]

_FOCAL, _APERTURE = 50.0, (36.0, 24.0)
"""Focal length, and width and height of the picture: those of a photo camera with a normal lens [mm]."""

_FROM = {2: (0.0, -1.0, 0.0), 3: (0.6, -0.8, 0.45)}
"""Direction from the scene to the camera in lifted scene coordinates, by dimension."""

_SUN = (0.3, -0.5, 0.8)
"""Direction from the scene to the light."""

_ROOM = 1.1
"""Radius of the region that the picture shows, divided by the radius of the scene."""

_KEY, _FILL = 3.0, 0.4
"""Irradiance of the sun and radiance of the sky: white matter in the sun is about as bright as a picture can show."""


def add_camera_and_lights(target: Target, scene: Scene) -> None:
    """Define a camera if the stage has none, and a sun and a sky if it has no light."""
    prims = list(target.stage.Traverse(Usd.TraverseInstanceProxies()))
    if not any(prim.IsA(UsdGeom.Camera) for prim in prims):
        _add_camera(target, scene)
    if not any(prim.HasAPI(UsdLux.LightAPI) for prim in prims):
        sun = UsdLux.DistantLight.Define(target.stage, target.path("Lights", "Sun"))
        sun.CreateIntensityAttr(_KEY)
        sun.CreateNormalizeAttr(True)  # the intensity is the irradiance of a surface, for any size of the sun
        _place(target, sun.GetPrim(), _looking_back(_SUN), np.zeros(3))
        UsdLux.DomeLight.Define(target.stage, target.path("Lights", "Sky")).CreateIntensityAttr(_FILL)


def _add_camera(target: Target, scene: Scene) -> None:
    lower, upper = (target.frame.lift(corner) for corner in scene.bounds)
    middle, radius = (lower + upper) / 2.0, target.extent / 2.0
    middle = np.where(np.isfinite(middle), middle, 0.0)
    distance = _ROOM * radius / math.sin(math.atan(_APERTURE[1] / 2.0 / _FOCAL))
    away = np.array(_FROM[scene.dim]) / np.linalg.norm(_FROM[scene.dim])
    camera = UsdGeom.Camera.Define(target.stage, free_path(target.stage, target.base, "Camera"))
    camera.CreateFocalLengthAttr(_FOCAL)
    camera.CreateHorizontalApertureAttr(_APERTURE[0])
    camera.CreateVerticalApertureAttr(_APERTURE[1])
    unit = target.frame.meters
    camera.CreateClippingRangeAttr(Gf.Vec2f(1e-2 * distance / unit, 1e2 * distance / unit))
    camera.CreateFocusDistanceAttr(distance / unit)
    _place(target, camera.GetPrim(), _looking_back(away), middle + distance * away)


def _looking_back(away: tuple[float, ...] | np.ndarray) -> np.ndarray:
    """Axes, as columns, of a prim whose +z points along `away`, with y as vertical as possible, shape (3, 3)."""
    z = np.array(away) / np.linalg.norm(away)
    x = np.cross([0.0, 0.0, 1.0], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def _place(target: Target, prim: Usd.Prim, axes: np.ndarray, position: np.ndarray) -> None:
    """Give a prim a pose in lifted scene coordinates; its local unit of length remains the unit of the stage."""
    frame, parent = target.frame, prim.GetParent()
    to_stage = np.linalg.inv(frame.to_scene)
    pose = np.eye(4)
    pose[:3, :3] = frame.meters * to_stage[:3, :3] @ axes
    pose[:3, 3] = to_stage[:3, :3] @ position + to_stage[:3, 3]
    xformable = UsdGeom.Xformable(prim)
    xformable.AddTransformOp().Set(Gf.Matrix4d(pose.T.tolist()))
    if not np.allclose(frame.matrix(parent), frame.to_scene):
        xformable.SetResetXformStack(True)
