"""Converts joints of a file to joints of a scene, with zero poses of bodies and start coordinates of joints.

A scene has the pose of every body with all joints at zero, where the two frames of each joint coincide. A file has the
pose at which each body starts. A joint of a file without a counterpart in a scene, such as one with two or three
limited rotations, becomes a chain of joints with one axis each, and massless bodies between them.
"""

from typing import NamedTuple

import numpy as np
from pxr import Usd

from warpbots.scene import JOINTS, Joint, JointKind, RigidBody, SceneError
from warpbots.usd.rigid.body_tree import Branch
from warpbots.usd.rigid.exact_values import exact_joint, exact_pose, load_exact, note_unused
from warpbots.usd.rigid.joint_kinematics import closest, displacement, misfit, solve
from warpbots.usd.rigid.joint_reader import Freedom, JointPrim
from warpbots.usd.rigid.named_kinds import BY_AXES, FreeAxis, aligned, closest_axis, free_axes, named_kind, single_axes
from warpbots.usd.stage.applied_schemas import RIGID_API
from warpbots.usd.stage.attributes import number, schemas
from warpbots.usd.stage.exact_fields import JOINT_FIELDS
from warpbots.usd.stage.faults import LocatedError
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.transforms import inverse, matrix_of, snap
from warpbots.usd.stage.units import StageUnits

__all__ = ["JointChain", "ChainJoint", "joint_chain"]

_FITS = 1e-3
"""Largest misfit between the pose of a body in the file and a pose that its joint can reach [m and rad]."""

_ZERO = 1e-6
"""Coordinates [m or rad] below which a joint starts at zero: the rounding of frames in single precision."""


class ChainJoint(NamedTuple):
    """A joint of a scene, with its origin in the file.

    Attributes:
        joint: The joint.
        prim: The prim of the joint in the file.
        freedoms: Degrees of freedom of the joint in the file, in the order of the velocities of `joint`; empty for ball
            joints.
    """

    joint: Joint
    prim: Usd.Prim
    freedoms: tuple[Freedom, ...]


class JointChain(NamedTuple):
    """A body with the joints that connect it to its parent.

    Attributes:
        steps: The joints from the parent to the body.
        between: Massless bodies between the joints in `steps`.
        zero: Pose of the body with all joints at zero, shape (4, 4).
    """

    steps: list[ChainJoint]
    between: list[RigidBody]
    zero: np.ndarray


class _Link(NamedTuple):
    kind: str
    axis: np.ndarray
    place: np.ndarray
    prim: JointPrim
    freedoms: tuple[Freedom, ...]
    name: str


def joint_chain(
    branch: Branch, names: tuple[str | None, str], zero: np.ndarray, now: tuple[np.ndarray, np.ndarray],
    child: Usd.Prim, frame: StageUnits, note: Note,
) -> JointChain:  # fmt: skip
    """The joints of the scene for the connection `branch`.

    Args:
        branch: Connection of a body, or of the world, to its child.
        names: Names of parent and child, None for the world.
        zero: Pose of the parent with all joints at zero, shape (4, 4).
        now: Poses of parent and child in the file, each of shape (4, 4).
        child: Prim of the child.
        frame: Units and axes of the stage.
        note: Called with a prim and a description of anything that is left out or changed on reading.

    Raises:
        SceneError: A number is outside its range; the message names the prim.
    """
    up, down = (1, 0) if branch.reversed else (0, 1)
    first = branch.joints[0]
    place = snap(zero @ first.ends[up].frame)
    rest = exact_pose(child, snap(place @ inverse(first.ends[down].frame)))
    links = []
    for joint in branch.joints:
        links += _links(joint, branch.reversed, rest @ joint.ends[down].frame, frame, note)
    links = links[::-1] if branch.reversed else links
    for joint in branch.joints[1:]:
        distance, angle = misfit(zero @ joint.ends[up].frame, rest @ joint.ends[down].frame)
        if max(distance, angle) > _FITS:
            note(joint.prim, f"its frames and those of {first.prim.GetPath()} differ by {distance:.3g} m "
                 f"and {angle:.3g} rad; the frame of its second body is used")  # fmt: skip
    if len(links) > 1:
        for joint in branch.joints:
            note_unused(joint.prim, JOINT_FIELDS, note)
    coordinates = _start(
        links, zero @ inverse(now[0]) @ now[1], rest, first.prim, RIGID_API not in schemas(child), frame.meters, note
    )
    steps, between, carrier = [], [], names[0]
    for k, (link, start) in enumerate(zip(links, coordinates, strict=True)):
        target = names[1] if k + 1 == len(links) else f"{names[1]}/{link.name}"
        joint = _joint(link, carrier, target, start, len(links) == 1, frame, note)
        steps.append(ChainJoint(joint, link.prim.prim, link.freedoms))
        if k + 1 < len(links):
            between.append(RigidBody(target, None, position=tuple(rest[:3, 3]), rotation=rest[:3, :3]))
        carrier = target
    return JointChain(steps, between, rest)


def _loose(freedom: Freedom) -> bool:
    """Whether a degree of freedom has neither limits nor a drive."""
    return freedom.drive is None and not np.isfinite([freedom.lower, freedom.upper]).any()


def _matched(joint: JointPrim, kind: JointKind, axes: list[FreeAxis]) -> tuple[Freedom, ...] | None:
    """Degrees of freedom of `joint`, ordered as the velocities of `kind`; None if `kind` has other free axes.

    Args:
        joint: The joint of a file.
        kind: The kind of joint of a scene.
        axes: The axis of the joint in the file for each velocity of `kind`.
    """
    free = {(f.angular, f.axis): f for f in joint.freedoms}
    if set(axes) != set(free) or (kind.ball and not all(map(_loose, joint.freedoms))):
        return None
    return tuple(free[axis] for axis in axes)


def _named(joint: JointPrim, name: str, back: bool, place: np.ndarray, note: Note) -> _Link:
    """The joint of the kind `name`.

    Raises:
        SceneError: `joint` has other free axes, or its second body is nearer to the root of its tree; the message names
            the prim.
    """
    kind = JOINTS[name]
    if back:
        raise LocatedError(
            joint.prim.GetPath(),
            f"its second body carries its first, but a joint of the kind {name!r} has another inverse; make the root "
            f"of the articulation (PhysicsArticulationRootAPI) a body on the side of its first body",
        )
    said = load_exact(joint.prim, "axis")
    for axis in np.eye(3) if aligned(kind) else [np.eye(3)[2] if said is None else said]:
        freedoms = _matched(joint, kind, free_axes(kind, closest_axis(axis)))
        if freedoms is not None:
            alone = _alone(joint, freedoms, single_axes(kind, closest_axis(axis)), note)
            return _Link(name, axis, place, joint, () if kind.ball else alone, joint.name)
    raise LocatedError(
        joint.prim.GetPath(),
        f"its free axes are {', '.join(f.token for f in joint.freedoms) or 'none'}, which are not those of its kind "
        f"{name!r}; correct its limits, or remove {rows('Joint.kind')[0].name} to read one joint for each free axis",
    )


def _alone(joint: JointPrim, freedoms: tuple[Freedom, ...], single: np.ndarray, note: Note) -> tuple[Freedom, ...]:
    """The `freedoms`, without limits and drives of axes that occur several times."""
    lost = {f.token for f, own in zip(freedoms, single, strict=True) if not own and not _loose(f)}
    for token in sorted(lost):
        note(joint.prim, f"limits or a drive of {token}, which are left out, because its kind has this axis several "
             f"times")  # fmt: skip
    return tuple(
        f if own else f._replace(lower=-np.inf, upper=np.inf, drive=None)
        for f, own in zip(freedoms, single, strict=True)
    )


def _links(joint: JointPrim, back: bool, place: np.ndarray, frame: StageUnits, note: Note) -> list[_Link]:
    """Joints of a scene with the motion of `joint`: one joint if a kind has this motion, else a chain of joints."""
    sign = -1.0 if back else 1.0
    if joint.ball:
        return [_Link("ball", np.eye(3)[2], place, joint, (), joint.name)]
    named = named_kind(joint.prim, frame)
    if named is not None:
        return [_named(joint, named, back, place, note)]
    for name in BY_AXES:
        kind = JOINTS[name]
        if back and len(kind.chain) > 1 and name != "free":
            continue  # the inverse motion is not of the same kind
        for shift in range(3):
            freedoms = _matched(joint, kind, [(angular, (axis + shift) % 3) for angular, axis in free_axes(kind, 0)])
            if freedoms is None:
                continue
            freedoms = () if kind.ball else freedoms
            if kind.has_axis:
                return [_Link(name, sign * np.eye(3)[shift], place, joint, freedoms, joint.name)]
            turned = place @ matrix_of(np.roll(np.eye(3), -shift, axis=1), np.zeros(3)) if shift else place
            return [_Link(name, np.eye(3)[2], turned, joint, freedoms, joint.name)]
    return [
        _Link(
            "revolute" if f.angular else "prismatic", sign * np.eye(3)[f.axis], place, joint, (f,),
            f"{joint.name}/{f.token}",
        )
        for f in joint.freedoms
    ]  # fmt: skip


def _start(
    links: list[_Link], moved: np.ndarray, rest: np.ndarray, prim: Usd.Prim, foreign: bool, meters: float, note: Note
) -> list[np.ndarray]:
    """Coordinates of `links` that bring a body from the pose `rest` as close as possible to the pose `moved`."""
    if len(links) == 1:
        link = links[0]
        target = inverse(link.place) @ moved @ inverse(rest) @ link.place
        said = load_exact(link.prim.prim, "start")
        guess = said if said is not None and said.size == JOINTS[link.kind].coordinates else None
        found = [_within(link, solve(link.kind, link.axis, target, guess))]
    else:
        found = _search(links, moved, rest)
    reached = _reached(links, found, rest)
    distance, angle = misfit(reached, moved)
    if max(distance, angle) > _FITS:
        note(prim, f"the poses of its bodies violate it by {distance:.3g} m and {angle:.3g} "
             f"rad; the joint takes precedence")  # fmt: skip
    found = [np.where(np.abs(q) < _ZERO, 0.0, q) for q in found]
    for link, q in zip(links, found, strict=True):
        for freedom, value in zip(link.freedoms, q, strict=False):  # ball joints have none
            if foreign and not freedom.lower - _FITS <= value <= freedom.upper + _FITS:
                note(prim, f"it starts at {value:.4g}, outside its limits {freedom.lower:.4g} to "
                     f"{freedom.upper:.4g}, which push it back")  # fmt: skip
            state = number(link.prim.prim, f"state:{freedom.token}:physics:position")
            unit = np.pi / 180.0 if freedom.angular else meters
            if state is not None and abs(state * unit - value) > _FITS:
                note(prim, f"state:{freedom.token}:physics:position = {state:g}; it starts at the poses of its bodies "
                     f"instead, at {value / unit:.4g}")  # fmt: skip
    return found


def _reached(links: list[_Link], coordinates: list[np.ndarray], rest: np.ndarray) -> np.ndarray:
    pose = rest
    for link, q in zip(reversed(links), reversed(coordinates), strict=True):
        pose = link.place @ displacement(link.kind, link.axis, q) @ inverse(link.place) @ pose
    return pose


def _search(links: list[_Link], moved: np.ndarray, rest: np.ndarray) -> list[np.ndarray]:
    """Coordinates of a chain of joints with one coordinate each; angles are in [-pi, pi]."""

    def pose(q: np.ndarray) -> np.ndarray:
        return _reached(links, list(q[:, None]), rest)

    found = np.zeros(len(links))
    if np.abs(pose(found) - moved)[:3].max() >= _ZERO:
        found = closest(pose, moved, found)
        found -= 2.0 * np.pi * np.round(found / (2.0 * np.pi)) * [link.kind == "revolute" for link in links]
    return list(found[:, None])


def _within(link: _Link, q: np.ndarray) -> np.ndarray:
    """The coordinates `q`, with each angle shifted by full turns so that it is within its limits, if possible."""
    for k, freedom in enumerate(link.freedoms):
        if freedom.angular and not freedom.lower <= q[k] <= freedom.upper:
            turned = [q[k] + n * 2.0 * np.pi for n in (-1, 1, -2, 2)]
            fitting = [angle for angle in turned if freedom.lower <= angle <= freedom.upper]
            q = np.array([*q[:k], *(fitting[:1] or [q[k]]), *q[k + 1 :]])
    return q


def _joint(
    link: _Link, parent: str | None, child: str, start: np.ndarray, alone: bool, frame: StageUnits, note: Note
) -> Joint:  # fmt: skip
    lower, upper = ([getattr(f, side) for f in link.freedoms] for side in ("lower", "upper"))
    limited = np.isfinite([*lower, *upper]).any()
    place, prim = snap(link.place), link.prim.prim
    moving = start[:-1] if JOINTS[link.kind].ball else start
    rates = _rates(link, frame)
    try:
        joint = Joint(
            name=link.name, kind=link.kind, parent=parent, child=child, position=tuple(place[:3, 3].tolist()),
            rotation=place[:3, :3], axis=tuple(link.axis.tolist()),
            start=tuple(start.tolist()) if np.any(moving) else None,
            lower=tuple(lower) if limited else None, upper=tuple(upper) if limited else None,
            start_velocity=rates if any(rates) else None, **_passive(link, frame), **_soft_limits(link, frame, note),
        )  # fmt: skip
        return exact_joint(prim, joint, note) if alone else joint
    except SceneError as error:
        raise LocatedError(prim.GetPath(), error) from None


def _rates(link: _Link, frame: StageUnits) -> tuple[float, ...]:
    """Initial velocities from PhysicsJointStateAPI [rad/s or m/s]; empty for ball and free joints."""
    said = ((f, number(link.prim.prim, f"state:{f.token}:physics:velocity")) for f in link.freedoms)
    return tuple((rate or 0.0) * (np.pi / 180.0 if f.angular else frame.meters) for f, rate in said)


def _soft_limits(link: _Link, frame: StageUnits, note: Note) -> dict[str, float]:
    """The field `limit_stiffness`, if PhysxLimitAPI gives all degrees of freedom the same value; else no field."""
    found = set()
    for f in link.freedoms:
        stiffness = number(link.prim.prim, rows("Joint.limit_stiffness")[0].name.format(axis=f.token))
        per = 180.0 / np.pi if f.angular else 1.0
        found.add((stiffness or 0.0) * frame.factor("N m" if f.angular else "N/m") * per)
    if len(found) > 1:
        note(link.prim.prim, "physxLimit stiffnesses that differ between the axes of a joint, which are left out")
    return {"limit_stiffness": found.pop()} if len(found) == 1 and min(found) > 0.0 else {}


def _passive(link: _Link, frame: StageUnits) -> dict[str, tuple[float, ...]]:
    """Stiffness, damping and armature for each velocity of a joint, by field.

    The damping of a drive without stiffness is added to the damping of the joint.
    """
    angular = JOINTS[link.kind].angular.tolist()
    drives = [f.drive for f in link.freedoms] or [None] * len(angular)
    idle = [d.damping if d and not d.stiffness else 0.0 for d in drives]
    found = {field: [_value(link.prim.prim, field, t, frame) for t in angular] for field in _UNITS}
    found["damping"] = [a + b for a, b in zip(found["damping"], idle or [0.0] * len(angular), strict=True)]
    return {field: tuple(values) for field, values in found.items()}


_UNITS = {"stiffness": ("N m", "N/m"), "damping": ("N m", "N/m"), "armature": ("kg m^2", "kg")}


def _value(prim: Usd.Prim, field: str, angular: bool, frame: StageUnits) -> float:
    for row in rows(f"Joint.{field}"):
        value = number(prim, row.name)
        if value is not None:
            per = 180.0 / np.pi if angular and row.unit.endswith("deg") else 1.0
            return value * frame.factor(_UNITS[field][0 if angular else 1]) * per
    return 0.0
