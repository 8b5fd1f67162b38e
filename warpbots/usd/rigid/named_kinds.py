"""Kinds of joints that a file stores by name and chain, because the free axes of a PhysicsJoint do not determine them.

Free axes are a set: they say neither the order of turns and slides nor that an axis occurs twice. They determine the
kinds in `BY_AXES`. All other kinds of `warpbots.scene.JOINTS` are stored in ``warpbots:kind`` and ``warpbots:chain``.
So a file is read in the same way whatever kinds there are.
"""

from collections.abc import Sequence

import numpy as np
from pxr import Usd

from warpbots.scene import JOINTS, JointKind
from warpbots.usd.stage.attributes import get, put
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.units import StageUnits

__all__ = ["BY_AXES", "FreeAxis", "aligned", "closest_axis", "free_axes", "named_kind", "single_axes", "write_kind"]

BY_AXES = (
    "fixed", "revolute", "prismatic", "cylindrical", "planar", "translational", "ball", "free_2d", "free",
)  # fmt: skip
"""Kinds that free axes determine: translations before rotations, no axis twice."""

FreeAxis = tuple[bool, int]
"""Whether a degree of freedom of a PhysicsJoint is a rotation, and the index of its axis: 0, 1 or 2."""


def free_axes(kind: JointKind, own: int) -> list[FreeAxis]:
    """The axis of a PhysicsJoint for each velocity of a joint.

    Args:
        kind: The kind of the joint.
        own: Index of the axis of the PhysicsJoint that stands for `Joint.axis`.
    """
    found = []
    for part in kind.chain:
        axes = range(3) if part.type == "ball" else ["xyz".index(part.axis)] if part.axis else [own]
        found += [(part.type != "prismatic", axis) for axis in axes]
    return found


def closest_axis(axis: Sequence[float]) -> int:
    """Index of the coordinate axis most parallel to `axis`, a vector of shape (3,)."""
    return int(np.argmax(np.abs(axis)))


def single_axes(kind: JointKind, own: int) -> np.ndarray:
    """Whether each velocity of a joint has an axis of the PhysicsJoint for itself, shape (freedom,), bool.

    Limits and drives of an axis that belongs to several velocities are stored as exact values and motors only.
    """
    axes = free_axes(kind, own)
    return np.array([axes.count(axis) == 1 for axis in axes], dtype=bool)


def aligned(kind: JointKind) -> bool:
    """Whether the axis of all elementary joints is `Joint.axis`, which is then an axis of the frame in the file."""
    return bool(kind.chain) and all(part.type != "ball" and part.axis is None for part in kind.chain)


def write_kind(prim: Usd.Prim, kind: str, frame: StageUnits) -> None:
    """Author name and chain of a kind that free axes do not determine."""
    if kind not in BY_AXES:
        put(prim, "Joint.kind", kind, frame)
        put(prim, "chain of a joint", _text(JOINTS[kind]), frame)


def named_kind(prim: Usd.Prim, frame: StageUnits) -> str | None:
    """The kind that the joint at `prim` names, or None if it names none.

    Raises:
        SceneError: `JOINTS` has no kind with this name and chain; the message names the prim.
    """
    name, chain = get(prim, "Joint.kind", frame), get(prim, "chain of a joint", frame)
    if name is None:
        return None
    if name not in JOINTS:
        raise LocatedError(
            prim.GetPath(),
            f"its kind is {name!r}, a chain of {chain}; add this line to JOINTS of warpbots.scene before reading",
        )
    if _text(JOINTS[name]) != chain:
        raise LocatedError(
            prim.GetPath(),
            f"its kind is {name!r}, a chain of {chain}, but in JOINTS this kind is a chain of {_text(JOINTS[name])}; "
            f"give one of them another name",
        )
    return name


def _text(kind: JointKind) -> str:
    """The chain in words, as ``"revolute z, prismatic axis, ball"``; "axis" stands for `Joint.axis`."""
    return ", ".join(part.type if part.type == "ball" else f"{part.type} {part.axis or 'axis'}" for part in kind.chain)
