"""2D shapes of rigid bodies, which are drawn upright like all 2D shapes, in the plane of their bodies."""

import numpy as np
from pxr import Gf, Usd, UsdGeom

from warpbots.usd.stage.units import StageUnits

__all__ = ["lay_down", "laid"]

_PLANE = "plane"
"""Suffix of the transform op that turns a shape into the plane of its body."""


def lay_down(prim: Usd.Prim, frame: StageUnits) -> None:
    """Turn the shape of a rigid body from lifted to flat coordinates; does nothing in 3D."""
    if frame.dim == 2:
        xformable = UsdGeom.Xformable(prim)
        drawn = xformable.GetOrderedXformOps()
        turn = xformable.AddTransformOp(opSuffix=_PLANE)
        turn.Set(Gf.Matrix4d(frame.lifting.tolist()))  # the transpose, as USD writes it, of the inverse
        xformable.SetXformOpOrder([turn, *drawn])


def laid(prim: Usd.Prim) -> np.ndarray:
    """The transform that `lay_down` gave to a shape, shape (4, 4); the identity for other shapes."""
    attribute = prim.GetAttribute(f"xformOp:transform:{_PLANE}") if prim else None
    return np.array(attribute.Get()).T if attribute else np.eye(4)
