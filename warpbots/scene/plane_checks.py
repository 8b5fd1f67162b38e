"""Checks of rigid bodies in 2D scenes: they stay in the plane z = 0."""

from collections.abc import Iterator, Sequence

import numpy as np

from warpbots.scene.joint import Joint
from warpbots.scene.joint_kinds import JOINTS
from warpbots.scene.rigid_body import Cloud, RigidBody

__all__ = ["plane_faults"]

_SLACK = 1e-9
"""Largest component across the plane of a direction in it, and the opposite [1]."""


def plane_faults(bodies: Sequence[RigidBody], joints: Sequence[Joint]) -> list[str]:
    """Faults of rigid bodies and joints that leave the plane z = 0, one sentence for each.

    Args:
        bodies: Rigid bodies of a 2D scene.
        joints: Their joints.
    """
    return [*_faults_of_bodies(bodies), *_faults_of_joints(joints)]


def _faults_of_bodies(bodies: Sequence[RigidBody]) -> Iterator[str]:
    for body in (b for b in bodies if b.flat or b.shape is None):
        what = f"RigidBody {body.name!r}"
        if body.position[2]:
            yield f"{what}: position must have z = 0 in a 2D scene, got {body.position}; give (x, y)"
        if not _about_z(body.rotation):
            yield f"{what}: rotation must be about z in a 2D scene, got {body.rotation}"
        if body.inertia is not None and body.inertia.center[2]:
            yield f"{what}: inertia must have its center at z = 0 in a 2D scene, got {body.inertia.center}"
        if isinstance(body.points, Cloud) and body.points.positions[:, 2].any():
            yield f"{what}: points must have z = 0 in a 2D scene; give Cloud positions of shape (n, 2)"


def _faults_of_joints(joints: Sequence[Joint]) -> Iterator[str]:
    for joint in joints:
        what = f"Joint {joint.name!r}"
        if joint.position is not None and joint.position[2]:
            yield f"{what}: position must have z = 0 in a 2D scene, got {joint.position}; give (x, y)"
        if not _about_z(joint.rotation):
            yield f"{what}: rotation must be about z in a 2D scene, got {joint.rotation}"
        for part in JOINTS[joint.kind].chain:
            z = abs(part.direction(joint.axis)[2])
            if part.type == "ball" or (part.axis is not None and z > _SLACK and part.type == "prismatic"):
                yield (
                    f"{what}: a {joint.kind} joint moves its child out of the plane of a 2D scene; use kind='free_2d', "
                    f"'planar', 'revolute' or 'prismatic'"
                )
                break
            if part.type == "revolute" and z < 1.0 - _SLACK:
                yield (
                    f"{what}: a {joint.kind} joint turns about z in a 2D scene, got the axis {joint.axis}; "
                    f"use (0, 0, 1)"
                )
                break
            if part.type == "prismatic" and z > _SLACK:
                yield (
                    f"{what}: a {joint.kind} joint moves along an axis in the plane of a 2D scene, got the axis "
                    f"{joint.axis}; give axis=(x, y)"
                )
                break


def _about_z(rotation: Sequence[Sequence[float]]) -> bool:
    """Whether a rotation matrix turns about z, upwards."""
    return bool(np.array_equal(np.array(rotation)[2], (0.0, 0.0, 1.0)))
