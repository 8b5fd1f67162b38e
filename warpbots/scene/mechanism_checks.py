"""Checks of the references between rigid bodies, joints, motors and contacts."""

from collections.abc import Collection, Sequence

from warpbots.scene.actuators import Actuator
from warpbots.scene.contact_law import Contact
from warpbots.scene.joint import Joint
from warpbots.scene.joint_motors import Servo, Torque
from warpbots.scene.obstacle import Obstacle
from warpbots.scene.rigid_body import RigidBody

__all__ = [
    "contact_faults",
    "drive_faults",
    "idle_contact_faults",
    "joint_faults",
    "neighbours",
    "touched_bodies",
    "whole_bodies",
]


def joint_faults(bodies: Sequence[RigidBody], joints: Sequence[Joint], soft: Collection[str] = ()) -> list[str]:
    """Messages about joints that name bodies that do not exist, and about joints that do not form trees.

    `soft` holds the names of soft bodies.
    """
    names = [b.name for b in bodies]
    faults = []
    carrier: dict[str, Joint] = {}
    for joint in joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in names and not (role == "parent" and name is None):
                other = "; the soft body of that name takes an Attachment" if name in soft else ""
                faults.append(
                    f"Joint {joint.name!r}: there is no rigid body {name!r} to be its {role}{other}; the scene has "
                    f"{', '.join(names) or 'none'}" + (", or None for the world" if role == "parent" else "")
                )
        if joint.child in carrier:
            faults.append(
                f"Joint {joint.name!r}: body {joint.child!r} is already the child of joint "
                f"{carrier[joint.child].name!r}; two joints with one child close a loop, and a robot must be a tree: "
                f"leave one out"
            )
        carrier.setdefault(joint.child, joint)
    faults += [
        f"Joint {joint.name!r}: it has the name of a floating body, whose own joint has that name; rename one"
        for joint in joints
        if joint.name in names and joint.name not in carrier
    ]
    loops: set[frozenset] = set()
    for name in carrier:
        seen = [name]
        while (joint := carrier.get(seen[-1])) is not None and joint.parent is not None and joint.parent not in seen:
            seen.append(joint.parent)
        if joint is not None and joint.parent is not None:
            loops.add(frozenset(seen[seen.index(joint.parent) :]))
    faults += [
        f"Joints: bodies {', '.join(sorted(loop))} are connected in a loop; a robot must be a tree: leave one of "
        f"their joints out, or connect one to the world (parent=None)"
        for loop in loops
    ]
    return faults


def drive_faults(
    actuators: Sequence[Actuator | Torque | Servo], joints: Sequence[Joint], bodies: Sequence[RigidBody] = ()
) -> list[str]:
    """Messages about motors whose joint does not exist, or whose joint has no velocity with the index `axis`."""
    known, floating = {j.name: j for j in joints}, {b.name for b in bodies} - {j.child for j in joints}
    faults = []
    for motor in (a for a in actuators if isinstance(a, Torque | Servo)):
        what, joint = f"{type(motor).__name__} {motor.name!r}", known.get(motor.joint)
        if joint is None and motor.joint in floating:
            faults.append(f"{what}: body {motor.joint!r} floats without a Joint; a motor needs one, of kind 'free' say")
        elif joint is None:
            faults.append(f"{what}: there is no joint {motor.joint!r}; the scene has {', '.join(known) or 'none'}")
        elif joint.freedom == 0:
            faults.append(f"{what}: joint {joint.name!r} is fixed; a motor needs a joint that moves")
        elif not 0 <= motor.axis < joint.freedom:
            faults.append(
                f"{what}: axis must be in 0 to {joint.freedom - 1} for the {joint.kind} joint {joint.name!r}, got "
                f"{motor.axis}"
            )
        elif isinstance(motor, Servo) and motor.axis >= joint.straight:
            faults.append(f"{what}: a quaternion has no position to hold; use a Torque, or a spring of {joint.name!r}")
    return faults


def contact_faults(
    bodies: Sequence[RigidBody], obstacles: Sequence[Obstacle], contacts: Sequence[Contact], soft: Collection[str] = ()
) -> list[str]:
    """Messages about contacts whose bodies cannot touch or do not exist, and about contact points without a contact.

    Args:
        bodies: Rigid bodies.
        obstacles: Obstacles.
        contacts: Contact laws.
        soft: Names of soft bodies.
    """
    with_points = {n for b in bodies if b.points for n in (b.name, b.surface) if n} | {*soft}
    solid = {n for b in bodies if b.shape is not None for n in (b.name, b.surface) if n} | {o.name for o in obstacles}
    solid |= {*soft}
    empty = {n for b in bodies if b.shape is None for n in (b.name, b.surface) if n}
    faults = []
    for contact in contacts:
        if contact.points not in with_points:
            faults.append(
                f"Contact {contact.name!r}: there is no body or surface {contact.points!r} with points; those with "
                f"points are {', '.join(sorted(with_points)) or 'none (give a RigidBody points=...)'}"
            )
        if contact.solid in empty - solid:
            faults.append(
                f"Contact {contact.name!r}: {contact.solid!r} has no shape, which would be its solid; give its "
                f"RigidBody a shape"
            )
        elif contact.solid not in solid:
            faults.append(
                f"Contact {contact.name!r}: there is no body, surface or obstacle {contact.solid!r}; the "
                f"scene has {', '.join(sorted(solid)) or 'none'}"
            )
    used = {c.points for c in contacts}
    faults += [
        f"RigidBody {b.name!r}: it has contact points, but no contact names it or its surface; add a Contact, or "
        f"leave the points out"
        for b in bodies
        if b.points and not {b.name, b.surface} & used
    ]
    return faults


def idle_contact_faults(
    bodies: Sequence[RigidBody],
    joints: Sequence[Joint],
    obstacles: Sequence[Obstacle],
    contacts: Sequence[Contact],
    soft: Collection[str] = (),
) -> list[str]:
    """Messages about contacts of rigid bodies that apply to no pair: see `touched_bodies`.

    Args:
        bodies: Rigid bodies.
        joints: All joints, which form trees.
        obstacles: Obstacles.
        contacts: Contact laws, all of whose names exist.
        soft: Names of soft bodies.
    """
    joined, others = neighbours(bodies, joints), {o.name for o in obstacles} | {*soft}
    faults = []
    for contact in contacts:
        if contact.solid in others or contact.points in soft:
            continue
        own = [b for b in bodies if b.points and contact.points in (b.name, b.surface)]
        if not any(touched_bodies(contact, body, bodies, joined) for body in own):
            faults.append(
                f"Contact {contact.name!r}: all bodies that it names are one body or neighbours at a joint, which are "
                f"never in contact; name another body, or two neighbours by their own names instead of a surface"
            )
    return faults


def touched_bodies(
    contact: Contact, body: RigidBody, bodies: Sequence[RigidBody], joined: Collection[frozenset[str]]
) -> list[RigidBody]:
    """The rigid bodies that the points of a body may touch under a contact law.

    A body never touches itself, and neighbours at a joint touch only if the law has the names of both.

    Args:
        contact: The law.
        body: The body with the points, which the law names.
        bodies: All bodies.
        joined: Neighbours at joints, from `neighbours`.
    """
    solids = [b for b in bodies if b is not body and b.shape is not None and contact.solid in (b.name, b.surface)]
    pairs = [(b, frozenset((body.name, b.name))) for b in solids]
    return [b for b, names in pairs if names == {contact.points, contact.solid} or names not in joined]


def whole_bodies(bodies: Sequence[RigidBody], joints: Sequence[Joint]) -> dict[str, str]:
    """Map the name of each body to the name of the first body of its chain of fixed joints.

    A body that is not the child of a fixed joint is mapped to itself.

    Args:
        bodies: All bodies.
        joints: All joints, which form trees.
    """
    fixed = {j.child: j.parent for j in joints if j.kind == "fixed" and j.parent is not None}

    def whole(name: str) -> str:
        while name in fixed:
            name = fixed[name]
        return name

    return {b.name: whole(b.name) for b in bodies}


def neighbours(bodies: Sequence[RigidBody], joints: Sequence[Joint]) -> set[frozenset[str]]:
    """Pairs of bodies connected by a joint; two such bodies are in contact only if a contact names both of them.

    Bodies fixed to one another count as one body. Bodies without a shape have no extent, so their parent and their
    child count as connected.

    Args:
        bodies: All bodies.
        joints: All joints, which form trees.
    """
    on = {j.child: j for j in joints}
    shaped = {b.name for b in bodies if b.shape is not None}

    whole = whole_bodies(bodies, joints)

    def carrier(name: str) -> str | None:
        up = on[name].parent if name in on else None
        while up is not None and whole[up] not in solid:
            up = on[whole[up]].parent if whole[up] in on else None
        return up and whole[up]

    solid = {whole[name] for name in shaped}
    above = {w: carrier(w) for w in whole.values()}
    parts: dict[str | None, list[str]] = {}
    for name in shaped:
        parts.setdefault(whole[name], []).append(name)
    near = [(own, [*own, *parts.get(above[whole[own[0]]], [])]) for own in parts.values()]
    return {frozenset((a, b)) for own, others in near for a in own for b in others if a != b}
