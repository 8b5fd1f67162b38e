"""Conversion from the units and axes of a stage to the units and axes of a scene.

A scene is in SI units with z up (y up in 2D); the units and axes of a stage are given by `metersPerUnit`,
`kilogramsPerUnit` and `upAxis`. A 2D scene lies in the plane y = 0 of a z-up stage: the point (x, y) of the scene is
the point (x, 0, y) of the stage. *Lifted* scene coordinates are three-dimensional: the coordinates of a 3D scene, or
(x, 0, y) for a point (x, y) of a 2D scene. Rigid bodies have poses in three dimensions in every scene: those of a 2D
scene are in *flat* coordinates, (x, y, 0) for a point (x, y).
"""

import dataclasses

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from warpbots.scene import SceneError
from warpbots.usd.stage.transforms import snap

__all__ = [
    "PLAYED",
    "START",
    "UNITS",
    "StageUnits",
    "is_played",
    "local_matrix",
    "own_transform",
    "stage_frame",
    "time_code",
]

PLAYED = "warpbots"
"""Suffix of the transform ops that show the motion of an obstacle, in addition to the ops of its place in a scene."""

START = Usd.TimeCode.EarliestTime()
"""Time at which a stage is read: the first time sample, or the default value if there is none."""

UNITS = {
    "1": (0, 0),
    "s": (0, 0),
    "1/s": (0, 0),
    "m": (0, 1),
    "1/m": (0, -1),
    "m/s": (0, 1),
    "m/s^2": (0, 1),
    "N": (1, 1),
    "N/m": (1, 0),
    "N m": (1, 2),
    "N m s": (1, 2),
    "N s/m": (1, 0),
    "Pa": (1, -1),
    "Pa/m": (1, -2),
    "Pa s/m": (1, -2),
    "Pa s/m^2": (1, -3),
    "V/m": (0, -1),
    "kg": (1, 0),
    "kg m^2": (1, 2),
}
"""Exponents of kilogram and metre in each unit; time is in seconds and voltage in volts everywhere."""

_Y_UP_TO_Z_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


@dataclasses.dataclass(frozen=True)
class StageUnits:
    """Units and axes of one stage.

    Attributes:
        dim: 2 or 3: dimension of the scene.
        meters: Metres per unit of length.
        kilograms: Kilograms per unit of mass.
        to_scene: Transform from stage coordinates to lifted scene coordinates [m], shape (4, 4).
    """

    dim: int
    meters: float
    kilograms: float
    to_scene: np.ndarray

    @property
    def lifting(self) -> np.ndarray:
        """Transform from flat to lifted scene coordinates, shape (4, 4); the identity in 3D."""
        lifting = np.eye(4)
        if self.dim == 2:
            lifting[:3, :3] = _Y_UP_TO_Z_UP
        return lifting

    @property
    def rigid(self) -> "StageUnits":
        """The same units, with a transform from stage coordinates to the coordinates of poses of rigid bodies [m]."""
        return dataclasses.replace(self, to_scene=self.lifting.T @ self.to_scene)

    def factor(self, unit: str) -> float:
        """Factor from stage units to SI units."""
        kilogram, metre = (1, -self.dim) if unit == "kg/m^dim" else UNITS[unit]
        return self.kilograms**kilogram * self.meters**metre

    def matrix(self, prim: Usd.Prim, time: Usd.TimeCode = START) -> np.ndarray:
        """Transform from local coordinates of `prim` to lifted scene coordinates [m], shape (4, 4).

        Obstacles are in their places in the scene, without the motion that `PLAYED` ops show.
        """
        return snap(self.to_scene @ _to_stage(prim, time))

    def lift(self, vectors: np.ndarray) -> np.ndarray:
        """Scene vectors of shape (..., dim) as lifted vectors of shape (..., 3)."""
        vectors = np.asarray(vectors, dtype=np.float64)
        return vectors if self.dim == 3 else np.insert(vectors, 1, 0.0, axis=-1)

    def drop(self, vectors: np.ndarray) -> np.ndarray:
        """Lifted vectors of shape (..., 3) as scene vectors of shape (..., dim)."""
        return vectors if self.dim == 3 else vectors[..., [0, 2]]


def stage_frame(stage: Usd.Stage, dim: int, meters_per_unit: float | None = None) -> StageUnits:
    """Units and axes of `stage`.

    Args:
        stage: The stage.
        dim: 2 or 3: dimension of the scene in it.
        meters_per_unit: Metres per unit of length; None for the unit of the stage.

    Raises:
        SceneError: The stage does not define its unit of length, or a unit is not a positive number.
    """
    name = stage.GetRootLayer().identifier
    if meters_per_unit is None and not UsdGeom.StageHasAuthoredMetersPerUnit(stage):
        raise SceneError(
            f"{name}: the file does not define its unit of length (metersPerUnit); add it to the file, or pass "
            f"meters_per_unit=1.0 if it is in metres, 0.01 if it is in centimetres"
        )
    meters = float(meters_per_unit if meters_per_unit is not None else UsdGeom.GetStageMetersPerUnit(stage))
    kilograms = float(UsdPhysics.GetStageKilogramsPerUnit(stage))
    for what, value in (("metersPerUnit", meters), ("kilogramsPerUnit", kilograms)):
        if not (np.isfinite(value) and value > 0.0):
            raise SceneError(f"{name}: {what} must be a positive number, got {value:g}")
    to_scene = np.eye(4)
    to_scene[:3, :3] = meters * (np.eye(3) if UsdGeom.GetStageUpAxis(stage) == "Z" else _Y_UP_TO_Z_UP)
    return StageUnits(dim, meters, kilograms, to_scene)


def local_matrix(prim: Usd.Prim, parent: np.ndarray, root: np.ndarray, time: Usd.TimeCode = START) -> np.ndarray:
    """Transform from local coordinates of `prim` to a target frame, shape (4, 4).

    Args:
        prim: A prim.
        parent: Transform from coordinates of the parent of `prim` to the target frame, shape (4, 4).
        root: Transform from stage coordinates to the target frame, shape (4, 4); used if the prim resets its transform.
        time: Time code.
    """
    xformable = UsdGeom.Xformable(prim)
    if not xformable:
        return parent
    local = np.array(own_transform(xformable, time)).T
    return (root if xformable.GetResetXformStack() else parent) @ local


def time_code(time: float, rate: float, start: float = 0.0) -> float:
    """Time code of `time` [s], with `rate` time codes per second after the code `start`.

    A code within 1e-6 of a whole number is rounded to this number.
    """
    code = start + time * rate
    return float(round(code)) if abs(code - round(code)) < 1e-6 else float(code)


def is_played(op: UsdGeom.XformOp) -> bool:
    """Whether an op shows the motion of an obstacle."""
    return op.GetName().endswith(f":{PLAYED}")


def own_transform(xformable: UsdGeom.Xformable, time: Usd.TimeCode = START) -> Gf.Matrix4d:
    """Transform from local coordinates to coordinates of the parent, without the motion that `PLAYED` ops show."""
    if not _plays(xformable.GetPrim()):
        return xformable.GetLocalTransformation(time)
    return xformable.GetLocalTransformation([op for op in xformable.GetOrderedXformOps() if not is_played(op)], time)


def _plays(prim: Usd.Prim) -> bool:
    """Whether ops of `prim` show the motion of an obstacle; they come first."""
    order = prim.GetAttribute("xformOpOrder").Get()
    return bool(order) and any(name.endswith(f":{PLAYED}") for name in order[:2])


def _played_above(prim: Usd.Prim) -> bool:
    """Whether ops of `prim`, or of a prim above it, show the motion of an obstacle."""
    while prim and not prim.IsPseudoRoot():
        if _plays(prim):
            return True
        prim = prim.GetParent()
    return False


def _to_stage(prim: Usd.Prim, time: Usd.TimeCode) -> np.ndarray:
    """Transform from local coordinates of `prim` to stage coordinates, shape (4, 4)."""
    if not _played_above(prim):
        return np.array(UsdGeom.XformCache(time).GetLocalToWorldTransform(prim)).T
    parent = prim.GetParent()
    above = np.eye(4) if parent.IsPseudoRoot() else _to_stage(parent, time)
    return local_matrix(prim, above, np.eye(4), time)
