"""What surrounds the bodies of a motion: surfaces of rigid bodies and obstacles, ground, looks, camera and lights."""

from collections.abc import Sequence

import numpy as np
from pxr import Sdf, UsdGeom

from warpbots.scene import Heightfield, RigidBody, Scene, Shape
from warpbots.surfaces.ground_height import floor_height
from warpbots.usd.geometry.looks import GROUND, GROUND_ROUGHNESS, RIGID_ROUGHNESS, ensure_look
from warpbots.usd.geometry.shape_surfaces import GROUND_REACH, hide_walls, write_surfaces
from warpbots.usd.stage.camera_and_lights import MotionBox, add_camera_and_lights, follow
from warpbots.usd.stage.inventory import Inventory
from warpbots.usd.stage.prim_editing import Target, editable
from warpbots.usd.stage.prim_roles import is_ours

__all__ = ["complete"]

_NEAR = 0.5
"""Distance up to which obstacles are in the picture, and half of their largest size, relative to the motion."""

_MOST = 1000
"""Largest number of frames from which the camera takes the place of the bodies."""


def complete(
    target: Target, scene: Scene, found: Inventory, shown: Sequence[Sdf.Path], codes: Sequence[float], surfaces: bool
) -> Sdf.Path | None:
    """Author what surrounds the bodies of a motion, whose time samples are written already.

    Args:
        target: The stage.
        scene: The scene.
        found: The prims of the stage.
        shown: Paths of the prims that move.
        codes: Time codes of all frames.
        surfaces: Whether rigid bodies and obstacles have meshes.

    Returns:
        Path of the camera that shows the motion; None if the stage has only cameras of others.
    """
    stage, frame = target.stage, target.frame
    solids = {prim.GetPath(): scene.obstacles[k].shape for k, prim in enumerate(found.obstacles.values())}
    some = [codes[k] for k in np.unique(np.linspace(0, len(codes) - 1, min(len(codes), _MOST)).round().astype(int))]
    motion = MotionBox.around(stage, shown, some, frame)
    middle, reach = None, 0.0
    if motion is not None:
        lower, upper = motion.bounds
        middle, reach = (lower + upper) / 2.0, GROUND_REACH * float(np.linalg.norm(upper - lower))
    colors = zip(scene.bodies, scene.colors, strict=True)
    rigid = [(b, color, found.bodies[b.name].GetPath()) for b, color in colors if isinstance(b, RigidBody)]
    for body, color, path in rigid:
        if body.shape is not None:
            _dress(target, path, body.shape, color, RIGID_ROUGHNESS, surfaces)
    for path, shape in solids.items():
        _dress(target, path, shape, GROUND, GROUND_ROUGHNESS, surfaces, middle, reach)
    add_camera_and_lights(target, scene)
    if motion is None:
        return None
    near = [path for path, shape in solids.items() if path not in shown and _is_near(shape, motion, frame.lift)]
    if near:
        motion = MotionBox.around(stage, [*shown, *near], some, frame) or motion
    return follow(target, motion, floor_height(scene), stage.GetTimeCodesPerSecond())


def _dress(
    target: Target, path: Sdf.Path, shape: Shape, color: tuple[float, float, float], roughness: float, surfaces: bool,
    middle: np.ndarray | None = None, reach: float = 0.0,
) -> None:  # fmt: skip
    """Give a rigid body or an obstacle that warpbots wrote a look, and a mesh."""
    prim = target.stage.GetPrimAtPath(path)
    if not is_ours(prim):
        return
    editable(prim)
    prim = target.stage.GetPrimAtPath(path)
    ensure_look(prim, color, roughness)
    if surfaces and UsdGeom.Imageable(prim).ComputeVisibility() != UsdGeom.Tokens.invisible:
        write_surfaces(prim, shape, middle, reach)
    hide_walls(prim, shape)


def _is_near(shape: Shape, motion: MotionBox, lift) -> bool:
    if isinstance(shape, Heightfield) or not np.isfinite(shape.bounds).all():
        return False
    lower, upper = motion.bounds
    low, high = (lift(corner) for corner in shape.bounds)
    room = _NEAR * float((upper - lower).max())
    close = (low < upper + room).all() and (high > lower - room).all()
    return bool(close and (high - low).max() < 2.0 * (upper - lower).max())
