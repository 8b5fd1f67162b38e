"""Motion of obstacles as time samples of transform ops, which any viewer plays.

These ops precede the ops for the place of an obstacle in the scene. They only show the motion: reading uses the ops for
the place, and the table of the motion (`warpbots.usd.stage.motion_tables`).
"""

import dataclasses

import numpy as np
from pxr import Gf, Usd, UsdGeom

from warpbots.gradients import turn
from warpbots.scene import Obstacle, PrescribedMotion, Scene, SceneError
from warpbots.solvers.obstacle_poses import obstacle_poses
from warpbots.usd.stage.prim_editing import editable
from warpbots.usd.stage.transforms import matrix_of, rigid, snap
from warpbots.usd.stage.units import PLAYED, StageUnits, is_played, own_transform, time_code

__all__ = ["PlayedPrim", "lifted", "play", "played_prim", "stop_playing"]

_PIECES = 64
"""Largest number of samples for one interval of a table."""

_SPATIAL = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Rotation from (x, y, 0), a point of a 2D scene, to lifted coordinates (x, 0, y)."""


@dataclasses.dataclass
class PlayedPrim:
    """A prim of an obstacle whose motion is written as time samples.

    Attributes:
        prim: The prim.
        frame: Units and axes of the stage.
        place: Transform from local coordinates of the prim to lifted scene coordinates in the place of the obstacle
            [m], shape (4, 4).
        similar: Whether the motion is a rotation and a translation in coordinates of the parent as well.
        turned: Quaternion of the previous frame; the next quaternion gets the sign with which it is closer to this one.
    """

    prim: Usd.Prim
    frame: StageUnits
    place: np.ndarray
    similar: bool
    turned: np.ndarray | None = None

    def write(self, rotation: np.ndarray, position: np.ndarray, code: float) -> int:
        """Write the displacement of the obstacle at a time code; returns the number of bytes.

        Args:
            rotation: Rotation R from the place of the obstacle, shape (3, 3), as in `obstacle_poses`.
            position: Position p [m], shape (3,).
            code: The time code.
        """
        from scipy.spatial.transform import Rotation

        xformable = UsdGeom.Xformable(self.prim)
        ops = xformable.GetOrderedXformOps()
        own = np.array(own_transform(xformable, code)).T
        parent = self.frame.to_scene
        if not xformable.GetResetXformStack():
            parent = parent @ np.array(UsdGeom.XformCache(code).GetParentToWorldTransform(self.prim)).T
        shift = np.linalg.inv(parent) @ lifted(rotation, position, self.frame) @ self.place @ np.linalg.inv(own)
        if not self.similar:
            ops[0].Set(Gf.Matrix4d(shift.T.tolist()), code)
            return 136
        quaternion = Rotation.from_matrix(shift[:3, :3]).as_quat()
        if self.turned is not None and np.dot(self.turned, quaternion) < 0.0:
            quaternion = -quaternion  # interpolation between two frames takes the shorter path
        self.turned = quaternion
        x, y, z, w = quaternion.tolist()
        ops[0].Set(Gf.Vec3d(*snap(shift[:3, 3]).tolist()), code)
        ops[1].Set(Gf.Quatd(w, x, y, z), code)
        return 56


def lifted(rotation: np.ndarray, position: np.ndarray, frame: StageUnits) -> np.ndarray:
    """A displacement, as in `obstacle_poses`, in lifted scene coordinates [m], shape (4, 4)."""
    M = matrix_of(rotation, position)
    if frame.dim == 3:
        return M
    turn = matrix_of(_SPATIAL, np.zeros(3))
    return turn @ M @ turn.T


def played_prim(prim: Usd.Prim, frame: StageUnits) -> PlayedPrim:
    """Prepare a prim of an obstacle, on the layer that is being edited, for time samples of its motion."""
    prim = editable(prim)
    place, parent = frame.matrix(prim), frame.matrix(prim.GetParent())
    try:
        rigid(parent)
        similar = True
    except SceneError:  # the parent shears or stretches
        similar = False
    stop_playing(prim)
    xformable = UsdGeom.Xformable(prim)
    own, reset = xformable.GetOrderedXformOps(), xformable.GetResetXformStack()
    own = [op for op in own if not is_played(op)]
    xformable.ClearXformOpOrder()
    double = UsdGeom.XformOp.PrecisionDouble
    if similar:
        shown = [xformable.AddTranslateOp(double, PLAYED), xformable.AddOrientOp(double, PLAYED)]
    else:
        shown = [xformable.AddTransformOp(double, PLAYED)]
    xformable.SetXformOpOrder([*shown, *own], reset)
    return PlayedPrim(prim, frame, place, similar)


def stop_playing(prim: Usd.Prim) -> None:
    """Remove the time samples of the motion of an obstacle from the layer that is being edited."""
    xformable = UsdGeom.Xformable(prim)
    ops, reset = xformable.GetOrderedXformOps(), xformable.GetResetXformStack()
    shown = [op for op in ops if is_played(op)]
    if shown:
        xformable.SetXformOpOrder([op for op in ops if not is_played(op)], reset)
        for op in shown:
            prim.RemoveProperty(op.GetName())


def play(prim: Usd.Prim, obstacle: Obstacle, frame: StageUnits) -> None:
    """Write time samples of the motion of an obstacle with a table on its prim, in addition to the table."""
    stage = prim.GetStage()
    rate = stage.GetTimeCodesPerSecond()
    time = _moments(obstacle.motion, 1.0 / rate)
    with turn:
        rotation, position = obstacle_poses(Scene((), obstacles=[obstacle]), time)
    shown = played_prim(prim, frame)
    for t, R, p in zip(time, rotation[:, 0], position[:, 0], strict=True):
        shown.write(R, p, time_code(t, rate, stage.GetStartTimeCode()))


def _moments(motion: PrescribedMotion, interval: float) -> np.ndarray:
    """Times of the poses of a table [s], and times in between if the interpolation by a viewer would differ."""
    if motion.interpolation == "linear" and motion.rotations is None:
        return motion.times
    steps = np.clip(np.ceil(np.diff(motion.times) / interval - 1e-6), 1, _PIECES).astype(int)
    parts = [
        np.linspace(a, b, n, endpoint=False) for a, b, n in zip(motion.times, motion.times[1:], steps, strict=False)
    ]
    return np.concatenate([*parts, motion.times[-1:]])
