"""Adds a camera and lights to stages that have none, and lets the camera follow a motion."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdUtils

from warpbots.scene import Scene
from warpbots.usd.stage.applied_schemas import RESULT_API
from warpbots.usd.stage.attributes import apply, schemas
from warpbots.usd.stage.prim_editing import Target, free_path
from warpbots.usd.stage.units import StageUnits

__all__ = ["LIGHTING", "MotionBox", "add_camera_and_lights", "follow"]

LIGHTING = {"preview": (0.7, 0.45), "omniverse": (900.0, 150.0)}
"""Variants of ``Lights``: irradiance of the sun and radiance of the sky.

The first variant, which is selected, suits Blender, which gives a sun four times the intensity of its prim, and
usdview. Omniverse expects photometric units; its values are those of the viewer of Newton.
"""

_VARIANTS = "lighting"

_SKY = (0.90, 0.95, 1.0)
"""Colour of the sky: the background in Blender."""

_FOCAL, _APERTURE = 50.0, (36.0, 24.0)
"""Focal length, and width and height of the picture: those of a photo camera with a normal lens [mm]."""

_FROM = {2: (0.12, -1.0, 0.16), 3: (0.6, -0.8, 0.45)}
"""Direction from the scene to the camera in lifted scene coordinates, by dimension."""

_SUN = (0.3, -0.5, 0.8)
"""Direction from the scene to the light."""

_ROOM = 1.12
"""Size of what the picture shows, divided by the size of the scene or the motion."""

_FAR = 4.0
"""Distance of a camera that sees a whole motion divided by the distance for one moment; above it, the camera moves."""

_SMOOTH = (0.5, 0.25, 0.12, 0.06)
"""Standard deviations of the times over which the path of a moving camera is averaged [s]; the first one is taken with
which the camera keeps up with the bodies."""

_KEEPS_UP = 1.5
"""Largest distance of a camera on an averaged path divided by the distance on the exact path."""


def add_camera_and_lights(target: Target, scene: Scene) -> None:
    """Define a camera if the stage has none, and a sun and a sky if it has no light."""
    prims = list(target.stage.Traverse(Usd.TraverseInstanceProxies()))
    if not any(prim.IsA(UsdGeom.Camera) for prim in prims):
        camera = _add_camera(target)
        lower, upper = (target.frame.lift(corner) for corner in scene.bounds)
        middle, radius = (lower + upper) / 2.0, target.extent / 2.0
        middle = np.where(np.isfinite(middle), middle, 0.0)
        distance = _ROOM * radius / math.sin(math.atan(_APERTURE[1] / 2.0 / _FOCAL))
        axes = _looking_back(_FROM[scene.dim])
        _focus(camera, distance, target.frame)
        _place(target.frame, camera.GetPrim(), axes, middle + distance * axes[:, 2])
    if not any(prim.HasAPI(UsdLux.LightAPI) for prim in prims):
        _add_lights(target)


def _add_lights(target: Target) -> None:
    sun = UsdLux.DistantLight.Define(target.stage, target.path("Lights", "Sun"))
    sun.CreateNormalizeAttr(True)  # the intensity is the irradiance of a surface, for any size of the sun
    _place(target.frame, sun.GetPrim(), _looking_back(_SUN), np.zeros(3))
    sky = UsdLux.DomeLight.Define(target.stage, target.path("Lights", "Sky"))
    sky.CreateColorAttr(_SKY)
    variants = sun.GetPrim().GetParent().GetVariantSets().AddVariantSet(_VARIANTS)
    for name, intensities in LIGHTING.items():
        variants.AddVariant(name)
        variants.SetVariantSelection(name)
        with variants.GetVariantEditContext():
            for light, intensity in zip((sun, sky), intensities, strict=True):
                light.CreateIntensityAttr(intensity)
    variants.SetVariantSelection(next(iter(LIGHTING)))


def _add_camera(target: Target) -> UsdGeom.Camera:
    """A camera with the name that usdview looks for."""
    path = free_path(target.stage, target.base, UsdUtils.GetPrimaryCameraName())
    camera = UsdGeom.Camera.Define(target.stage, path)
    apply(camera.GetPrim(), RESULT_API)
    camera.CreateFocalLengthAttr(_FOCAL)
    camera.CreateHorizontalApertureAttr(_APERTURE[0])
    camera.CreateVerticalApertureAttr(_APERTURE[1])
    return camera


class MotionBox(NamedTuple):
    """The boxes around the bodies of a motion.

    Attributes:
        codes: Time codes, shape (n,).
        corners: Corners of all boxes at each time code in lifted scene coordinates [m], shape (n, k, 3).
    """

    codes: np.ndarray
    corners: np.ndarray

    @classmethod
    def around(
        cls, stage: Usd.Stage, paths: Sequence[Sdf.Path], codes: Iterable[float], frame: StageUnits
    ) -> "MotionBox | None":
        """The boxes around the visible geometry at and below the prims `paths`; None if there is none."""
        cache = UsdGeom.BBoxCache(Usd.TimeCode.Default(), [UsdGeom.Tokens.default_, UsdGeom.Tokens.render])
        codes, moments = np.array(list(codes)), []
        for code in codes:
            cache.SetTime(Usd.TimeCode(code))
            boxes = [cache.ComputeWorldBound(stage.GetPrimAtPath(path)) for path in paths]
            found = [_corners(box) for box in boxes if not box.GetRange().IsEmpty()]
            moments.append(np.concatenate(found) if found else np.zeros((0, 3)))
        count = min(map(len, moments), default=0)
        if not count or count != max(map(len, moments)):
            return None
        return cls(codes, np.stack(moments) @ frame.to_scene[:3, :3].T + frame.to_scene[:3, 3])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the box around the whole motion [m], each of shape (3,)."""
        return self.corners.min(axis=(0, 1)), self.corners.max(axis=(0, 1))


def _corners(box: Gf.BBox3d) -> np.ndarray:
    matrix = np.array(box.GetMatrix())
    corners = np.array([box.GetRange().GetCorner(k) for k in range(8)])
    return corners @ matrix[:3, :3] + matrix[3, :3]


def follow(target: Target, motion: MotionBox, floor: float | None, rate: float) -> Sdf.Path | None:
    """Make the camera of warpbots see all of `motion`, or move with it if that would make the bodies small.

    Args:
        target: The stage; time samples are written to its edit target.
        motion: The boxes around the bodies.
        floor: Height of the floor [m], of which the part close below the bodies is shown, too; None without a floor.
        rate: Time codes per second.

    Returns:
        Path of the camera; None if the stage has only cameras of others.
    """
    cameras = [prim for prim in target.stage.Traverse(Usd.TraverseInstanceProxies()) if prim.IsA(UsdGeom.Camera)]
    own = [prim for prim in cameras if RESULT_API in schemas(prim)]
    if cameras and not own:
        return None
    camera = UsdGeom.Camera(own[0]) if own else _add_camera(target)
    frame, axes = target.frame, _looking_back(_FROM[target.frame.dim])
    corners = motion.corners
    lower, upper = motion.bounds
    if floor is not None and lower[2] - floor < np.ptp([lower, upper], axis=0).max():
        corners = np.concatenate([corners, np.insert(corners[..., :2], 2, floor, axis=-1)], axis=1)
    still = _eyes(corners.reshape(1, -1, 3) @ axes)
    each = _eyes(corners @ axes)
    near = float((each[:, 2] - (corners @ axes)[..., 2].mean(axis=1)).max())
    far = float(still[0, 2] - (corners @ axes)[..., 2].mean())
    if far <= _FAR * near:
        _focus(camera, far, frame)
        _place(frame, camera.GetPrim(), axes, axes @ still[0])
        return camera.GetPath()
    _focus(camera, near, frame)
    for code, eye in zip(motion.codes, _smooth_path(each, corners @ axes, motion.codes / rate), strict=True):
        _place(frame, camera.GetPrim(), axes, axes @ eye, code)
    return camera.GetPath()


def _eyes(corners: np.ndarray) -> np.ndarray:
    """The nearest places of a camera that sees all corners.

    Args:
        corners: Coordinates to the right, upwards and towards the camera [m], shape (n, k, 3).

    Returns:
        Places in the same coordinates, shape (n, 3): for the sides of the picture, with half width t relative to
        the distance, right - eye <= t (eye - toward) and so on, so that opposite sides give the place across the
        picture, and their sum the distance.
    """
    slopes = np.array(_APERTURE) / (2.0 * _ROOM * _FOCAL)
    across, toward = corners[..., :2], corners[..., 2:]
    high, low = (sign * across + slopes * toward for sign in (1.0, -1.0))
    high, low = high.max(axis=1), low.max(axis=1)
    return np.concatenate([(high - low) / 2.0, ((high + low) / (2.0 * slopes)).max(axis=1, keepdims=True)], axis=1)


def _smooth_path(eyes: np.ndarray, corners: np.ndarray, times: np.ndarray) -> np.ndarray:
    """A path of the camera without jerks on which all corners are always in the picture, shape (n, 3).

    Args:
        eyes: The nearest places at each time, from `_eyes`.
        corners: Coordinates of the corners, as in `_eyes`.
        times: Times [s], shape (n,).
    """
    slopes = np.array(_APERTURE) / (2.0 * _ROOM * _FOCAL)
    path, toward = eyes, corners[..., 2].mean(axis=1)
    for smooth in _SMOOTH:
        weight = np.exp(-0.5 * ((times[:, None] - times) / smooth) ** 2)
        path = weight @ eyes / weight.sum(axis=1, keepdims=True)
        beside = np.abs(corners[..., :2] - path[:, None, :2]) / slopes  # distance at which a corner is at the edge
        path[:, 2] += np.maximum((beside.max(axis=2) + corners[..., 2]).max(axis=1) - path[:, 2], 0.0).max()
        if (path[:, 2] - toward).max() <= _KEEPS_UP * (eyes[:, 2] - toward).max():
            return path
    return eyes


def _focus(camera: UsdGeom.Camera, distance: float, frame: StageUnits) -> None:
    camera.CreateClippingRangeAttr(Gf.Vec2f(1e-2 * distance / frame.meters, 1e2 * distance / frame.meters))
    camera.CreateFocusDistanceAttr(distance / frame.meters)


def _looking_back(away: tuple[float, ...] | np.ndarray) -> np.ndarray:
    """Axes, as columns, of a prim whose +z points along `away`, with y as vertical as possible, shape (3, 3)."""
    z = np.array(away) / np.linalg.norm(away)
    x = np.cross([0.0, 0.0, 1.0], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def _place(
    frame: StageUnits, prim: Usd.Prim, axes: np.ndarray, position: np.ndarray, code: float | None = None
) -> None:
    """Give a prim a pose in lifted scene coordinates; its local unit of length remains the unit of the stage.

    Args:
        frame: Units and axes of the stage.
        prim: The prim.
        axes: Axes of the prim as columns, shape (3, 3).
        position: Its origin [m], shape (3,).
        code: Time code; None for all times.
    """
    parent, to_stage = prim.GetParent(), np.linalg.inv(frame.to_scene)
    pose = np.eye(4)
    pose[:3, :3] = frame.meters * to_stage[:3, :3] @ axes
    pose[:3, 3] = to_stage[:3, :3] @ position + to_stage[:3, 3]
    xformable = UsdGeom.Xformable(prim)
    ops = {op.GetOpName(): op for op in xformable.GetOrderedXformOps()}
    op = ops.get("xformOp:transform") or xformable.AddTransformOp()
    op.Set(Gf.Matrix4d(pose.T.tolist()), Usd.TimeCode.Default() if code is None else code)
    if not np.allclose(frame.matrix(parent), frame.to_scene):
        xformable.SetResetXformStack(True)
