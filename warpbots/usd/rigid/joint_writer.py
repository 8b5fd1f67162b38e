"""Writes joints as prims of UsdPhysics, each with two frames, limits, and drives for other programs."""

import numpy as np
from pxr import Gf, Usd, UsdPhysics

from warpbots.scene import JOINTS, Joint, Scene, Servo, Torque
from warpbots.usd.rigid.exact_values import store_exact
from warpbots.usd.rigid.named_kinds import aligned, closest_axis, free_axes, single_axes, write_kind
from warpbots.usd.stage.attributes import apply, author_row, create, quaternion
from warpbots.usd.stage.prim_editing import Target, rename
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import inverse, matrix_of
from warpbots.usd.stage.units import StageUnits

__all__ = ["write_joint"]

_TYPES = {
    "fixed": "PhysicsFixedJoint", "revolute": "PhysicsRevoluteJoint", "prismatic": "PhysicsPrismaticJoint",
    "ball": "PhysicsSphericalJoint",
}  # fmt: skip

_ALL = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
_TURNS = ("angular", "rotX", "rotY", "rotZ")
_LOCKED = (1.0, -1.0)
"""Limits that mean "locked" in UsdPhysics: the lower one is above the upper one."""

_NEWTON_JOINT = "NewtonJointAPI"


def _tokens(joint: Joint) -> tuple[str, ...]:
    """UsdPhysics names of the axes that belong to the velocities of a joint; empty for spherical joints."""
    if joint.kind in _TYPES:
        return {"revolute": ("angular",), "prismatic": ("linear",)}.get(joint.kind, ())
    axes = free_axes(JOINTS[joint.kind], closest_axis(joint.axis))
    return tuple(f"{'rot' if angular else 'trans'}{'XYZ'[axis]}" for angular, axis in axes)


def write_joint(target: Target, scene: Scene, joint: Joint, bodies: dict[str, Usd.Prim]) -> Usd.Prim:
    """Author `joint`; the caller adds exact values later.

    Args:
        target: The stage to write to.
        scene: The scene that contains the joint.
        joint: The joint.
        bodies: Prims of all rigid bodies by name.
    """
    frame = target.frame
    prim = target.stage.DefinePrim(target.path("Joints", joint.name), _TYPES.get(joint.kind, "PhysicsJoint"))
    rename(prim, joint.name)
    write_kind(prim, joint.kind, frame)
    if JOINTS[joint.kind].has_axis and not aligned(JOINTS[joint.kind]):
        store_exact(prim, "axis", joint.axis)
    place = matrix_of(joint.rotation, joint.position)
    if aligned(JOINTS[joint.kind]):
        k, turned = _aligned(np.array(joint.axis))
        place = place @ matrix_of(turned, np.zeros(3))
    if joint.kind in ("revolute", "prismatic"):
        create(prim, rows("axis of a joint")[0].name, "token", "XYZ"[k], uniform=True)
    rest = {b.name: matrix_of(b.rotation, b.position) for b in scene.rigid}
    physics = UsdPhysics.Joint(prim)
    for side, name in enumerate((joint.parent, joint.child)):
        here = np.linalg.inv(frame.rigid.to_scene) @ place if name is None else inverse(rest[name]) @ place
        turned = here[:3, :3] / np.cbrt(np.linalg.det(here[:3, :3]))
        if name is not None:
            (physics.CreateBody0Rel, physics.CreateBody1Rel)[side]().SetTargets([bodies[name].GetPath()])
        author_row(prim, rows("place at a body")[side], Gf.Vec3f(*here[:3, 3].tolist()))
        author_row(prim, rows("turn at a body")[side], quaternion(turned))
    _write_limits(prim, joint, frame)
    _write_drives(prim, joint, scene, frame)
    _write_passive(prim, joint, frame)
    return prim


def _aligned(axis: np.ndarray) -> tuple[int, np.ndarray]:
    """Index of the coordinate axis most parallel to `axis`, and a rotation from this coordinate axis to `axis`."""
    k = closest_axis(axis)
    start = np.eye(3)[k]
    if axis[k] < 0.0:
        half = np.diag([1.0 if i == (k + 1) % 3 else -1.0 for i in range(3)])  # half a turn about another axis
        _, rest = _aligned(half @ axis)
        return k, half @ rest
    v, c = np.cross(start, axis), float(start @ axis)
    K = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return k, np.eye(3) + K + K @ K / (1.0 + c)


def _per(token: str, frame: StageUnits) -> float:
    """Factor from a length or an angle in a file to SI units."""
    return np.pi / 180.0 if token in _TURNS else frame.meters


def _write_limits(prim: Usd.Prim, joint: Joint, frame: StageUnits) -> None:
    single = single_axes(JOINTS[joint.kind], closest_axis(joint.axis))
    limits = {
        token: (joint.lower[k], joint.upper[k]) if joint.lower is not None and single[k] else (-np.inf, np.inf)
        for k, token in enumerate(_tokens(joint))
    }
    if joint.kind in _TYPES:
        for token, pair in limits.items():
            for side, value in zip(("lower", "upper"), pair, strict=True):
                if np.isfinite(value):
                    row = rows(f"Joint.{side}")[0]
                    create(prim, row.name, row.type, value / _per(token, frame))
        return
    for token in _ALL:
        locked = token not in limits
        pair = _LOCKED if locked else limits[token]
        if not np.isfinite(pair).any():
            continue
        UsdPhysics.LimitAPI.Apply(prim, token)
        for side, value in zip(("lower", "upper"), pair, strict=True):
            if np.isfinite(value):
                row = rows(f"Joint.{side}")[1]
                create(prim, row.name.format(axis=token), row.type, value if locked else value / _per(token, frame))


def _write_drives(prim: Usd.Prim, joint: Joint, scene: Scene, frame: StageUnits) -> None:
    """Author a drive for the first motor of each axis; other programs simulate it."""
    if JOINTS[joint.kind].ball:
        return
    single = single_axes(JOINTS[joint.kind], closest_axis(joint.axis))
    for k, token in enumerate(_tokens(joint)):
        motor = next(
            (a for a in scene.actuators if isinstance(a, Torque | Servo) and (a.joint, a.axis) == (joint.name, k)), None
        )
        if motor is None or not single[k]:
            continue
        UsdPhysics.DriveAPI.Apply(prim, token)
        angular = token in _TURNS
        gain = frame.factor("N m" if angular else "N/m") / (np.pi / 180.0 if angular else 1.0)
        if isinstance(motor, Servo):
            values = {
                "stiffness": motor.stiffness / gain, "damping": motor.damping / gain,
                "target": motor.target / _per(token, frame),
            }  # fmt: skip
        else:
            force = motor.max_torque / frame.factor("N m" if angular else "N")
            values = {"stiffness": 0.0, "damping": 0.0, "force": force}
        for part, value in values.items():
            row = rows(f"motor {part}")[0]
            create(prim, row.name.format(axis=token), row.type, value)
        create(prim, f"drive:{token}:physics:type", "token", "force", uniform=True)


def _write_passive(prim: Usd.Prim, joint: Joint, frame: StageUnits) -> None:
    """Author armature and damping of a joint, each only if its value is the same for all velocities of the joint."""
    angular = set(JOINTS[joint.kind].angular.tolist())
    for field, units in (("armature", ("kg m^2", "kg")), ("damping", ("N m", "N/m"))):
        values = set(getattr(joint, field))
        if len(values) != 1 or len(angular) != 1 or values == {0.0}:
            continue
        angle = True in angular
        factor = frame.factor(units[0 if angle else 1])
        factor *= 180.0 / np.pi if angle and field == "damping" else 1.0
        row = rows(f"Joint.{field}")[0]
        apply(prim, _NEWTON_JOINT)
        create(prim, row.name, row.type, values.pop() / factor)
