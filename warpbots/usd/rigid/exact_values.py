"""Exact values of fields of rigid bodies and joints whose standard attribute is single precision or missing.

An exact value is used as long as the standard attributes agree with it to single precision, as in
`warpbots.usd.stage.attributes`.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np
from pxr import Usd

from warpbots.scene import JOINTS, Joint
from warpbots.usd.rigid.joint_kinematics import displacement
from warpbots.usd.rigid.named_kinds import aligned, closest_axis, single_axes
from warpbots.usd.stage.attributes import authored, clear, create
from warpbots.usd.stage.exact_fields import EXACT, JOINT_FIELDS
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.schema import rows

__all__ = ["exact_joint", "exact_pose", "agree", "load_exact", "note_unused", "store_exact"]

_AGREE = 1e-5
"""Largest difference between values in single precision and exact values, along a chain of joints [1, m or rad]."""

_NO_HOME = ("stiffness", "neutral", "start_velocity", "limit_stiffness", "limit_damping")


def load_exact(prim: Usd.Prim, field: str) -> np.ndarray | None:
    """The exact value of `field` on `prim`, or None if the prim has none."""
    name = EXACT + field
    return np.asarray(prim.GetAttribute(name).Get(), dtype=np.float64) if authored(prim, name) else None


def store_exact(prim: Usd.Prim, field: str, value: object) -> None:
    """Author the exact value of `field`; None is stored as an empty array."""
    clear(prim, EXACT + field)
    array = np.zeros(0) if value is None else np.asarray(value, dtype=np.float64).ravel()
    create(prim, EXACT + field, "double[]", array, uniform=True)


def agree(a: object, b: object) -> bool:
    """Whether two arrays agree to single precision."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape:
        return False
    known = x[np.isfinite(x)]
    return np.allclose(x, y, rtol=_AGREE, atol=_AGREE * max(1.0, np.abs(known).max(initial=0.0)))


def exact_pose(prim: Usd.Prim, pose: np.ndarray) -> np.ndarray:
    """The pose of a body with all joints at zero, with exact values if `prim` has them, shape (4, 4).

    `pose` is the same pose from standard attributes. The exact position and rotation are used only if they agree with
    `pose`.
    """
    result = pose.copy()
    position, rotation = load_exact(prim, "position"), load_exact(prim, "rotation")
    if position is not None and agree(position, pose[:3, 3]):
        result[:3, 3] = position
    if rotation is not None and rotation.size == 9 and agree(rotation.reshape(3, 3), pose[:3, :3]):
        result[:3, :3] = rotation.reshape(3, 3)
    return result


def note_unused(prim: Usd.Prim, fields: Iterable[str], note: Note) -> None:
    """Note the exact values of `fields` on the prim of a joint, if it has any; the caller leaves them out."""
    names = [EXACT + field for field in fields if authored(prim, EXACT + field)]
    if names:
        note(prim, f"{', '.join(names)}, which belong to another joint than its limits give; they are left out")


def exact_joint(prim: Usd.Prim, plain: Joint, note: Note) -> Joint:
    """The joint `plain`, with the exact values on `prim` that agree with it.

    Exact values of fields without a standard attribute are used as they are.

    Args:
        prim: The prim of the joint.
        plain: The joint as its standard attributes define it.
        note: Called with a prim and a description of exact values that are left out.

    Raises:
        SceneError: The exact values do not make a valid joint.
    """
    exact_values = {field: load_exact(prim, field) for field in JOINT_FIELDS}
    unfit = [field for field, value in exact_values.items() if value is not None and not _fits(value, field, plain)]
    note_unused(prim, unfit, note)
    said = {field: value for field, value in exact_values.items() if value is not None and field not in unfit}
    fields = {field: _given(said[field]) for field in _NO_HOME if field in said}
    if "position" in said and agree(said["position"], plain.position):
        fields["position"] = tuple(said["position"])
    fields |= _frame(said, plain)
    if "start" in said and _same_start(said["start"], plain):
        fields["start"] = _given(said["start"])
    for field in ("lower", "upper"):
        if field in said:
            fields[field] = _limit(said[field], field, plain)
    for field in ("damping", "armature"):
        elsewhere = any(authored(prim, row.name) for row in rows(f"Joint.{field}"))
        if field in said and (not elsewhere or agree(said[field], getattr(plain, field))):
            fields[field] = _given(said[field])
    for field in ("limit_stiffness", "limit_damping"):
        if fields.get(field) is not None:
            fields[field] = fields[field][0]
    return dataclasses.replace(plain, **fields) if fields else plain


def _fits(values: np.ndarray, field: str, joint: Joint) -> bool:
    """Whether an exact value has the number of components that `field` has in `joint`; none at all means None."""
    fixed = {"position": 3, "rotation": 9, "axis": 3, "limit_stiffness": 1, "limit_damping": 1}
    fixed["start"] = JOINTS[joint.kind].coordinates
    return values.size in (0, fixed.get(field, joint.freedom))


def _given(values: np.ndarray) -> tuple[float, ...] | None:
    return tuple(values.tolist()) if values.size else None


def _frame(said: dict[str, np.ndarray], plain: Joint) -> dict:
    """The exact rotation and axis of a joint, if they agree with `plain`, else nothing.

    For a joint with one axis, only the direction of the axis in the world is compared.
    """
    R = np.array(plain.rotation)
    exact = said["rotation"].reshape(3, 3) if "rotation" in said else R
    axis = said.get("axis", np.array(plain.axis))
    agrees = agree(exact @ axis, R @ plain.axis) if aligned(JOINTS[plain.kind]) else agree(exact, R)
    return {"rotation": tuple(map(tuple, exact.tolist())), "axis": tuple(axis.tolist())} if agrees else {}


def _same_start(exact: np.ndarray, plain: Joint) -> bool:
    """Whether two starts are the same pose; several coordinates may have one pose."""
    zero, axis = JOINTS[plain.kind].zero, np.array(plain.axis)
    here = zero if plain.start is None else plain.start
    there = exact if exact.size else zero
    return agree(displacement(plain.kind, axis, there), displacement(plain.kind, axis, here))


def _limit(exact: np.ndarray, field: str, plain: Joint) -> tuple[float, ...] | None:
    """The exact values of `lower` or `upper` if they agree with `plain`, else the values of `plain`.

    Coordinates whose axis in the file belongs to several coordinates have exact values only.
    """
    said, single = getattr(plain, field), single_axes(JOINTS[plain.kind], closest_axis(plain.axis))
    if not exact.size:
        return None
    if said is None and not np.isfinite(exact[single]).any():
        return _given(exact)
    if said is None and single.all():
        return None
    there = np.full(exact.shape, -np.inf if field == "lower" else np.inf) if said is None else np.array(said)
    return _given(exact) if agree(exact[single], there[single]) else _given(np.where(single, there, exact))
