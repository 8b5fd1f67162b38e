"""Prescribed motions of colliders of other programs, from the time samples of their transforms.

The time of a motion begins at the start time code of the stage, which is 0 by default. USD interpolates every transform
op linearly, and holds the last time sample. So the table is linear and has the poses at the time samples; if transform
ops turn a collider, it also has poses in between.
"""

from collections.abc import Iterator

import numpy as np
from pxr import Gf, Usd, UsdGeom

from warpbots.scene import PrescribedMotion, SceneError
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.prim_roles import geometry_of
from warpbots.usd.stage.transforms import rigid
from warpbots.usd.stage.units import StageUnits, is_played

__all__ = ["is_animated", "sampled_motion"]

_TURN = 0.05
"""Largest rotation between two poses of a table where transform ops turn [rad]."""

_STILL = 1e-9
"""Largest displacement that counts as rounding, relative to the distance from the origin or to 1 m, and largest such
rotation [rad]."""

_ROTATE = {UsdGeom.XformOp.TypeRotateX, UsdGeom.XformOp.TypeRotateY, UsdGeom.XformOp.TypeRotateZ}
_EULER = {getattr(UsdGeom.XformOp, f"TypeRotate{order}") for order in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")}


def is_animated(prim: Usd.Prim) -> bool:
    """Whether the transform of `prim`, or of a prim above it, changes in time."""
    return any(_changing(part) for part in _chain(prim))


def sampled_motion(prim: Usd.Prim, frame: StageUnits) -> PrescribedMotion | None:
    """The motion of the collider `prim` relative to the place at which its shape is read; None if it stays there.

    Raises:
        SceneError: The collider changes its size, its parts move relative to each other, it leaves the plane of a 2D
            scene, a spline moves it, or it turns too far between two samples; the message names the prim.
    """
    for part in geometry_of(prim):
        inner = part
        while inner != prim:
            if inner.IsA(UsdGeom.Xformable) and _changing(UsdGeom.Xformable(inner)):
                raise LocatedError(
                    inner.GetPath(),
                    f"it moves relative to the collider {prim.GetPath()}; make it a separate collider",
                )
            inner = inner.GetParent()
    if not is_animated(prim):
        return None
    stage = prim.GetStage()
    codes = np.array(_codes(prim))
    start = stage.GetStartTimeCode()
    codes = np.unique([start, *codes[codes > start]])
    if len(codes) == 1:
        codes = np.array([start, start + stage.GetTimeCodesPerSecond()])
    try:
        return _table(prim, codes, (codes - start) / stage.GetTimeCodesPerSecond(), frame)
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def _table(prim: Usd.Prim, codes: np.ndarray, times: np.ndarray, frame: StageUnits) -> PrescribedMotion | None:
    from scipy.spatial.transform import Rotation

    place = frame.matrix(prim)
    pivot = place[:3, 3]
    turns, shifts = np.zeros((len(codes), 3)), np.zeros((len(codes), 3))
    for k, code in enumerate(codes):
        R, p, scale = rigid(frame.matrix(prim, code) @ np.linalg.inv(place))
        if abs(scale - 1.0) > 1e-5:
            raise SceneError(
                f"its size changes with time, by the factor {scale:.6g} at time code {code:g}; an obstacle keeps its "
                f"shape, so remove the time samples of its scale"
            )
        turns[k] = _closest(Rotation.from_matrix(R).as_rotvec(), turns[k - 1] if k else np.zeros(3))
        shifts[k] = R @ pivot + p - pivot
    turns[np.abs(turns) < _STILL], shifts[np.abs(shifts) < _STILL * max(1.0, np.abs(pivot).max())] = 0.0, 0.0
    if not turns.any() and not shifts.any():
        return None
    rotations = turns if turns.any() else None
    if frame.dim == 2:
        if np.abs(shifts[:, 1]).max() > 1e-6 or np.abs(turns[:, [0, 2]]).max() > 1e-6:
            raise SceneError("it leaves the plane of the 2D scene; remove this part of its motion")
        rotations = -turns[:, 1] if turns.any() else None
    return PrescribedMotion(
        times, frame.drop(shifts) if shifts.any() else None, rotations,
        None if rotations is None else tuple(frame.drop(pivot).tolist()), "linear", "hold",
    )  # fmt: skip


def _closest(turn: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The rotation vector of the rotation `turn`, plus or minus full turns, that is closest to `before`."""
    angle, far = np.linalg.norm(turn), np.linalg.norm(before)
    axis = turn / angle if angle > 1e-9 else before / far if far > 0.0 else np.zeros(3)
    return turn + 2.0 * np.pi * np.round((before - turn) @ axis / (2.0 * np.pi)) * axis


def _chain(prim: Usd.Prim) -> Iterator[UsdGeom.Xformable]:
    """`prim`, and the prims above it whose transforms act on it."""
    while prim and not prim.IsPseudoRoot():
        xformable = UsdGeom.Xformable(prim)
        if xformable:
            yield xformable
            if xformable.GetResetXformStack():
                return
        prim = prim.GetParent()


def _changing(xformable: UsdGeom.Xformable) -> list[UsdGeom.XformOp]:
    """The ops of a prim that change in time, without the ops with which warpbots shows the motion of an obstacle."""
    return [op for op in xformable.GetOrderedXformOps() if op.MightBeTimeVarying() and not is_played(op)]


def _codes(prim: Usd.Prim) -> list[float]:
    """Time codes of all time samples that move `prim`, and codes in between where transform ops turn it.

    Raises:
        SceneError: A spline moves the prim.
    """
    ops = [op for part in _chain(prim) for op in _changing(part)]
    if any(op.GetAttr().HasSpline() for op in ops):
        raise LocatedError(prim.GetPath(), "a spline moves it, which is not read; bake the spline into time samples")
    samples = sorted({code for op in ops for code in op.GetTimeSamples()})
    if any(op.GetOpType() == UsdGeom.XformOp.TypeTransform for op in ops):
        return samples  # between the samples of a matrix, USD shears
    found = samples[:1]
    for a, b in zip(samples, samples[1:], strict=False):
        count = max(1, int(np.ceil(sum(_angle(op, a, b) for op in ops) / _TURN)))
        found += [a + (b - a) * k / count for k in range(1, count)] + [b]
    return found


def _angle(op: UsdGeom.XformOp, start: float, end: float) -> float:
    """Upper bound of the angle by which an op turns between two neighbouring time codes [rad]."""
    kind = op.GetOpType()
    if kind in _ROTATE:
        return float(np.radians(abs(op.Get(end) - op.Get(start))))
    if kind in _EULER:
        return float(np.radians(np.abs(np.subtract(op.Get(end), op.Get(start))).sum()))
    if kind == UsdGeom.XformOp.TypeOrient:
        a, b = (Gf.Quatd(op.Get(code)).GetNormalized() for code in (start, end))
        cosine = a.GetReal() * b.GetReal() + Gf.Dot(a.GetImaginary(), b.GetImaginary())
        return float(2.0 * np.arccos(min(1.0, abs(cosine))))
    return 0.0
