"""Writes poses of rigid bodies at every frame, as time samples on the prims of the bodies.

The layer of the results makes the bodies kinematic, so that a player shows the motion and does not simulate the bodies.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics

from warpbots.scene import Scene
from warpbots.trajectory import Trajectory, poses_at
from warpbots.usd.rigid.exact_values import store_exact
from warpbots.usd.stage.applied_schemas import MOTION_API
from warpbots.usd.stage.attributes import apply
from warpbots.usd.stage.exact_fields import REST_POSE
from warpbots.usd.stage.inventory import Inventory
from warpbots.usd.stage.prim_editing import editable
from warpbots.usd.stage.prim_roles import body_of
from warpbots.usd.stage.transforms import matrix_of, pose_of
from warpbots.usd.stage.units import StageUnits

__all__ = ["pose_frames"]

_SUFFIX = "sim"


class _MovingBody(NamedTuple):
    """A prim of a rigid body that moves.

    Attributes:
        index: Index of the rigid body in `Scene.rigid`.
        prim: The prim.
        scale: Transform from local coordinates of the prim to the frame of the body [m], shape (4, 4).
        parent: Transform from coordinates of the parent prim to local coordinates of the prim of `above`, or to scene
            coordinates if `above` is None [m], shape (4, 4).
        above: Index, in the list of moving bodies, of the nearest moving body above the prim; None if there is none.
        stretch: Scale factors along the axes of the local transform of the prim, shape (3,); None if the transform
            shears.
        turned: List that holds the quaternion of the previous frame. The next quaternion gets the sign that brings it
            closer to this one.
    """

    index: int
    prim: Usd.Prim
    scale: np.ndarray
    parent: np.ndarray
    above: int | None
    stretch: np.ndarray | None
    turned: list


def pose_frames(
    found: Inventory,
    scene: Scene,
    trajectory: Trajectory[Any],
    frame: StageUnits,
    states: Iterable[tuple[float, Any]],
) -> Iterator[tuple[float, Callable[[float], int]]]:
    """Prepare the prims of all rigid bodies on the layer that is being edited, and yield the frames.

    Args:
        found: The prims of the stage.
        scene: The scene that reading the stage gives.
        trajectory: The motion.
        frame: Units and axes of the stage.
        states: Times [s] and states of the frames.

    Yields:
        Time [s], and a function that writes the frame at a time code and returns the number of its bytes.

    Raises:
        ValueError: A pose is not finite.
    """
    moving = _moving_bodies(found, scene, frame)
    for time, state in states:
        position, rotation = poses_at(trajectory.simulation, state, **trajectory.parameters)
        yield float(time), functools.partial(_write_poses, moving, position, rotation)


def _moving_bodies(found: Inventory, scene: Scene, frame: StageUnits) -> list[_MovingBody]:
    """Prepare the prims of all rigid bodies for time samples of poses on the edited layer; parents come first."""
    names, frame = {body.name: k for k, body in enumerate(scene.rigid)}, frame.rigid
    stage = next(iter(found.bodies.values())).GetStage()
    paths = sorted((prim.GetPath(), names[name]) for name, prim in found.rigid.items())
    for path, _ in paths:  # paths, because prims of instances expire when one of them is changed
        editable(stage.GetPrimAtPath(path))
    prims = [(stage.GetPrimAtPath(path), index) for path, index in paths]
    matrices = {prim.GetPath(): frame.matrix(prim) for prim, _ in prims}
    place = {prim.GetPath(): k for k, (prim, _) in enumerate(prims)}
    result = []
    for prim, index in prims:
        pose, scale = pose_of(matrices[prim.GetPath()])
        above = None if UsdGeom.Xformable(prim).GetResetXformStack() else body_of(prim.GetParent())
        parent = frame.to_scene if UsdGeom.Xformable(prim).GetResetXformStack() else frame.matrix(prim.GetParent())
        if above is not None:
            parent = np.linalg.inv(matrices[above.GetPath()]) @ parent
        local = np.linalg.inv(frame.matrix(prim.GetParent())) @ pose @ scale
        _, rest = pose_of(local)
        square = np.allclose(rest, np.diag(np.diag(rest)), atol=1e-9)
        result.append(
            _MovingBody(
                index, prim, scale, parent, place[above.GetPath()] if above is not None else None,
                np.diag(rest)[:3].copy() if square else None, [],
            )
        )  # fmt: skip
    for moving in result:
        store_exact(moving.prim, REST_POSE, pose_of(matrices[moving.prim.GetPath()])[0])
        _prepare(moving)
    return result


def _prepare(moving: _MovingBody) -> None:
    xformable = UsdGeom.Xformable(moving.prim)
    reset = xformable.GetResetXformStack()
    xformable.ClearXformOpOrder()
    double = UsdGeom.XformOp.PrecisionDouble
    if moving.stretch is None:
        xformable.AddTransformOp(double, _SUFFIX)
    else:
        xformable.AddTranslateOp(double, _SUFFIX)
        xformable.AddOrientOp(double, _SUFFIX)
        if not np.allclose(moving.stretch, 1.0, rtol=0.0, atol=1e-12):
            xformable.AddScaleOp(double, _SUFFIX).Set(Gf.Vec3d(*moving.stretch.tolist()))
    if reset:
        xformable.SetResetXformStack(True)
    UsdPhysics.RigidBodyAPI(moving.prim).CreateKinematicEnabledAttr(True)
    apply(moving.prim, MOTION_API)


def _write_poses(moving: list[_MovingBody], position: np.ndarray, rotation: np.ndarray, code: float) -> int:
    """Write one frame.

    Args:
        moving: The prims, from `_moving_bodies`.
        position: Origins of the bodies [m], shape (n_bodies, 3).
        rotation: Axes of the bodies as columns, shape (n_bodies, 3, 3).
        code: Time code of the frame.

    Returns:
        The number of bytes of the frame.

    Raises:
        ValueError: A pose is not finite.
    """
    from scipy.spatial.transform import Rotation

    now: list[np.ndarray] = []
    for body in moving:
        p, R = np.asarray(position[body.index]), np.asarray(rotation[body.index])
        if not (np.isfinite(p).all() and np.isfinite(R).all()):
            raise ValueError(
                f"the position of {body.prim.GetPath()} at time code {code:g} is {p.tolist()}; the simulation has "
                f"diverged, reduce its time step"
            )
        now.append(matrix_of(R, p) @ body.scale)
        parent = body.parent if body.above is None else now[body.above] @ body.parent
        local = np.linalg.inv(parent) @ now[-1]
        ops = {op.GetOpType(): op for op in UsdGeom.Xformable(body.prim).GetOrderedXformOps()}
        if body.stretch is None:
            ops[UsdGeom.XformOp.TypeTransform].Set(Gf.Matrix4d(local.T.tolist()), code)
            continue
        ops[UsdGeom.XformOp.TypeTranslate].Set(Gf.Vec3d(*local[:3, 3].tolist()), code)
        quaternion = Rotation.from_matrix(local[:3, :3] / body.stretch).as_quat()
        if body.turned and np.dot(body.turned[0], quaternion) < 0.0:
            quaternion = -quaternion  # interpolation between two frames takes the shorter way
        body.turned[:] = [quaternion]
        x, y, z, w = quaternion.tolist()
        ops[UsdGeom.XformOp.TypeOrient].Set(Gf.Quatd(w, x, y, z), code)
    return 56 * len(moving)
