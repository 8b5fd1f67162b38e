"""Reads joints of UsdPhysics: their two frames, the axes along or about which they move, their limits and drives.

Angles are in degrees in a file, and in radians in the results of this module. A joint moves the frame of its second
body (frame 1) relative to the frame of its first body (frame 0).
"""

from typing import NamedTuple

import numpy as np
from pxr import Sdf, Usd

from warpbots.usd.stage.attributes import authored, axis_number, enabled, number, schemas, targets_of, value_of
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.ledger import mark_below, mark_named
from warpbots.usd.stage.prim_roles import body_of
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import inverse, matrix_of, pose_of, quaternion_matrix, transform
from warpbots.usd.stage.units import StageUnits

__all__ = ["Drive", "JointSide", "Freedom", "JointPrim", "read_joint_prim"]

_D6 = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
_ENDLESS = 1e30
"""Magnitude from which a number means infinity: some programs write the largest number of single precision."""


class Drive(NamedTuple):
    """A drive, in SI units.

    Attributes:
        stiffness: Stiffness of the drive [N m/rad or N/m].
        damping: Damping of the drive [N m s/rad or N s/m].
        target: Target position [rad or m].
        force: Maximum torque or force [N m or N]; may be infinite.
    """

    stiffness: float
    damping: float
    target: float
    force: float


class Freedom(NamedTuple):
    """One degree of freedom of a joint.

    Attributes:
        token: Name of the axis in the file: linear, angular, transX, rotX, ...
        angular: Whether the degree of freedom is a rotation.
        axis: Index of the axis in the frame of the joint: 0, 1 or 2.
        lower: Lower limit [rad or m]; may be infinite.
        upper: Upper limit [rad or m]; may be infinite.
        drive: Drive of this degree of freedom, or None.
    """

    token: str
    angular: bool
    axis: int
    lower: float
    upper: float
    drive: Drive | None


class JointSide(NamedTuple):
    """One side of a joint.

    Attributes:
        body: The rigid body, or None for the world.
        frame: Frame of the joint on this side, in the frame of `body`, or in the world frame if `body` is None, shape
            (4, 4).
    """

    body: Usd.Prim | None
    frame: np.ndarray


class JointPrim(NamedTuple):
    """A joint of a file.

    Attributes:
        prim: The prim.
        name: Name of the joint.
        ends: The two sides of the joint: first and second body.
        freedoms: Degrees of freedom of the joint: first translations, then rotations, applied in this order.
        ball: Whether the joint rotates freely about its centre; `freedoms` is then empty.
        excluded: Whether the file excludes the joint from articulations.
        touching: Whether the two bodies of the joint may be in contact.
    """

    prim: Usd.Prim
    name: str
    ends: tuple[JointSide, JointSide]
    freedoms: tuple[Freedom, ...]
    ball: bool
    excluded: bool
    touching: bool


def read_joint_prim(prim: Usd.Prim, name: str, frame: StageUnits, note: Note) -> JointPrim | None:
    """The joint at `prim`; None, with a note, if it is left out.

    Raises:
        SceneError: Attributes of the joint contradict each other; the message names the prim.
    """
    why = _useless(prim, frame)
    if why:
        note(prim, why)
        mark_named(prim)
        return None
    ends = _end(prim, 0, frame), _end(prim, 1, frame)
    if ends[0].body == ends[1].body:
        raise LocatedError(
            prim.GetPath(), f"both of its bodies are {ends[0].body.GetPath()}; name two, or one for the world"
        )
    kind = str(prim.GetTypeName())
    freedoms = _READERS[kind](prim, frame, note)
    ball = kind == "PhysicsSphericalJoint"
    _refuse_drives(prim, freedoms, ball, note)
    _note_rest(prim, freedoms, note)
    excluded = authored(prim, "physics:excludeFromArticulation") and bool(
        value_of(prim, "physics:excludeFromArticulation")
    )
    touching = authored(prim, "physics:collisionEnabled") and enabled(prim, "physics:collisionEnabled")
    return JointPrim(prim, name, ends, freedoms, ball, excluded, touching)


def _useless(prim: Usd.Prim, frame: StageUnits) -> str | None:
    """Why the joint at `prim` is left out; None if it is read."""
    if not enabled(prim, "physics:jointEnabled"):
        return "a joint that is switched off"
    kind = str(prim.GetTypeName())
    if kind not in _READERS:
        return f"a joint of the kind {kind}; known are {', '.join(_READERS)}"
    off = [path for side in (0, 1) for path in _targets(prim, side)[:1] if _switched_off(prim.GetStage(), path)]
    if off:
        return f"a joint of {off[0]}, which is inactive (active = false) or a class"
    if all(_end(prim, side, frame).body is None for side in (0, 1)):
        return "a joint without a moving rigid body"
    return None


def _end(prim: Usd.Prim, side: int, frame: StageUnits) -> JointSide:
    """Side 0 or 1 of the joint at `prim`."""
    place, turned = (rows(f"{what} at a body")[side].name for what in ("place", "turn"))
    p = np.zeros(3)
    if authored(prim, place):
        p = np.asarray(value_of(prim, place)).astype(str).astype(np.float64)
    R = np.eye(3)
    if authored(prim, turned):
        q = value_of(prim, turned)
        R = quaternion_matrix(*q.GetImaginary(), q.GetReal())
    targets = _targets(prim, side)
    other = prim.GetStage().GetPrimAtPath(targets[0]) if targets else None
    if targets and not other:
        raise LocatedError(
            prim.GetPath(),
            f"its physics:body{side} is {targets[0]}, where there is no prim; name a rigid body, or none for the world",
        )
    matrix = frame.rigid.matrix(other) if other else frame.rigid.to_scene
    pose, scale = pose_of(matrix)
    local = matrix_of(R, transform(scale, p[None])[0])
    body = body_of(other) if other else None
    if body is None:
        return JointSide(None, pose @ local)
    return JointSide(body, local if body == other else inverse(pose_of(frame.rigid.matrix(body))[0]) @ pose @ local)


def _targets(prim: Usd.Prim, side: int) -> list[Sdf.Path]:
    return targets_of(prim, f"physics:body{side}")


def _switched_off(stage: Usd.Stage, path: Sdf.Path) -> bool:
    """Whether the prim at `path` or an ancestor is inactive or abstract."""
    there = (stage.GetPrimAtPath(prefix) for prefix in path.GetPrefixes())
    return any(prim and (not prim.IsActive() or prim.IsAbstract()) for prim in there)


def _fixed(prim: Usd.Prim, frame: StageUnits, note: Note) -> tuple[Freedom, ...]:
    return ()


def _revolute(prim: Usd.Prim, frame: StageUnits, note: Note) -> tuple[Freedom, ...]:
    return _single(prim, "angular", frame, note)


def _prismatic(prim: Usd.Prim, frame: StageUnits, note: Note) -> tuple[Freedom, ...]:
    return _single(prim, "linear", frame, note)


def _single(prim: Usd.Prim, token: str, frame: StageUnits, note: Note) -> tuple[Freedom, ...]:
    names = (rows("Joint.lower")[0].name, rows("Joint.upper")[0].name)
    word = value_of(prim, rows("axis of a joint")[0].name) or "X"
    axis = axis_number(word, f"{prim.GetPath()}: ")
    return _freedom(prim, token, axis, names, False, frame, note)


def _generic(prim: Usd.Prim, frame: StageUnits, note: Note) -> tuple[Freedom, ...]:
    """Degrees of freedom of a PhysicsJoint."""
    found: list[Freedom] = []
    for k, token in enumerate(_D6):
        names = tuple(rows(f"Joint.{side}")[1].name.format(axis=token) for side in ("lower", "upper"))
        found += _freedom(prim, token, k % 3, names, True, frame, note)
        if any(authored(prim, n) for n in names) and f"PhysicsLimitAPI:{token}" not in schemas(prim):
            note(prim, f"limits of {token} without PhysicsLimitAPI:{token}; they count all the same")
    return tuple(found)


def _freedom(
    prim: Usd.Prim, token: str, axis: int, names: tuple[str, ...], locks: bool, frame: StageUnits, note: Note
) -> tuple[Freedom, ...]:
    """The degree of freedom of one axis; empty if it is locked."""
    angular = token.startswith(("ang", "rot"))
    unit = np.pi / 180.0 if angular else frame.meters
    said = [number(prim, name) for name in names]
    lower = -np.inf if said[0] is None or said[0] <= -_ENDLESS else said[0]
    upper = np.inf if said[1] is None or said[1] >= _ENDLESS else said[1]
    if lower > upper and not locks:
        raise LocatedError(prim.GetPath(), f"{names[0]} = {lower:g} is above {names[1]} = {upper:g}; swap them")
    if lower == upper != 0.0:
        note(prim, f"{token} is locked at {lower:g}; it is taken as locked at 0")
    if lower >= upper:
        return ()
    return (Freedom(token, angular, axis, lower * unit, upper * unit, _drive(prim, token, angular, frame, note)),)


def _spherical(prim: Usd.Prim, frame: StageUnits, note: Note) -> tuple[Freedom, ...]:
    cone = [number(prim, f"physics:coneAngle{k}Limit") for k in (0, 1)]
    if any(c is not None and 0.0 <= c < _ENDLESS for c in cone):
        note(prim, f"the cone of {cone[0]} and {cone[1]} degrees of a ball joint, which is left out; it rotates freely")
    return ()


def _drive(prim: Usd.Prim, token: str, angular: bool, frame: StageUnits, note: Note) -> Drive | None:
    names = {part: rows(f"motor {part}")[0].name.format(axis=token) for part in ("stiffness", "damping", "target",
             "force")}  # fmt: skip
    if f"PhysicsDriveAPI:{token}" not in schemas(prim):
        if any(authored(prim, name) for name in names.values()):
            note(prim, f"a drive of {token} that is left out, because PhysicsDriveAPI:{token} is not applied")
            mark_below(prim, f"drive:{token}:")
        return None
    if authored(prim, f"drive:{token}:physics:type"):
        kind = str(value_of(prim, f"drive:{token}:physics:type"))
        if kind != "force":
            note(prim, f"a drive of {token} of type {kind}, which is left out; drives must be of type force")
            mark_below(prim, f"drive:{token}:")
            return None
    if number(prim, f"drive:{token}:physics:targetVelocity"):
        note(prim, f"the targetVelocity of the drive of {token}; motors hold positions or exert torques")
    values = {part: number(prim, name) for part, name in names.items()}
    per = 180.0 / np.pi if angular else 1.0  # per degree to per radian
    gain = frame.factor("N m" if angular else "N/m") * per
    force = values["force"]
    force = np.inf if force is None or force >= _ENDLESS else force * frame.factor("N m" if angular else "N")
    return Drive(
        (values["stiffness"] or 0.0) * gain, (values["damping"] or 0.0) * gain,
        (values["target"] or 0.0) * (1.0 / per if angular else frame.meters), force,
    )  # fmt: skip


def _refuse_drives(prim: Usd.Prim, freedoms: tuple[Freedom, ...], ball: bool, note: Note) -> None:
    """Note the drives of axes along or about which the joint does not move.

    Raises:
        SceneError: The joint is fixed, but has a drive.
    """
    driven = {api.partition(":")[2] for api in schemas(prim) if api.startswith("PhysicsDriveAPI:")}
    lost = sorted(driven - {f.token for f in freedoms})
    if lost and not freedoms and not ball:
        raise LocatedError(
            prim.GetPath(),
            f"it is a fixed joint with a drive ({', '.join(f'PhysicsDriveAPI:{t}' for t in lost)}); "
            f"take the drive away, or let the joint move",
        )
    for token in lost:
        note(prim, f"a drive of {token}, which is locked or part of a ball joint; it is left out")
        mark_below(prim, f"drive:{token}:")


def _note_limit(prim: Usd.Prim, token: str, tokens: set[str], note: Note) -> None:
    """Note values of PhysxLimitAPI other than stiffnesses, and all values for axes that do not move."""
    for what in ("damping", "restitution") if token in tokens else ("stiffness", "damping", "restitution"):
        value = number(prim, f"physxLimit:{token}:{what}")
        if value:
            note(prim, f"physxLimit:{token}:{what} = {value:g}, which is not read")


def _note_rest(prim: Usd.Prim, freedoms: tuple[Freedom, ...], note: Note) -> None:
    for name in ("physics:breakForce", "physics:breakTorque"):
        value = number(prim, name)
        if value is not None and value < _ENDLESS:
            note(prim, f"{name} = {value:g}; joints do not break")
    for name in ("newton:friction", "physxJoint:jointFriction", "mjc:frictionloss"):
        if number(prim, name):
            note(prim, f"dry friction of a joint ({name} = {number(prim, name):g}), which is left out")
    for api in sorted(schemas(prim)):
        if "Mimic" in api or "Equality" in api:
            note(prim, f"{api}; joints move independently")
            mark_below(prim, "physxMimicJoint", "newton:mimic", "newton:constraintMimic", "mjc:equality", "mjc:poly")
        if api.startswith("PhysxLimitAPI:"):
            _note_limit(prim, api.partition(":")[2], {f.token for f in freedoms}, note)
    if number(prim, "mjc:springref"):
        note(prim, f"mjc:springref = {number(prim, 'mjc:springref'):g}; its spring is taken as relaxed at 0")


_READERS = {
    "PhysicsFixedJoint": _fixed,
    "PhysicsRevoluteJoint": _revolute,
    "PhysicsPrismaticJoint": _prismatic,
    "PhysicsSphericalJoint": _spherical,
    "PhysicsJoint": _generic,
}
"""Readers of degrees of freedom by the type of joint."""
