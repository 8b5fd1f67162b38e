"""A robot on the host: its joints as a tree of elementary joints, and the indices of its parts in the arrays."""

import dataclasses
import functools

import numpy as np

from warpbots.scene import JOINTS, Joint, RigidBody, Scene, SceneError, Servo, Torque
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.solvers.articulated.joints import BALL, COORDINATES, FIXED, FREEDOM, PRISMATIC, REVOLUTE

__all__ = ["Element", "ArticulatedRobot", "joint_of", "placed", "robot_of"]

_TYPES = {"prismatic": PRISMATIC, "revolute": REVOLUTE, "ball": BALL}


@dataclasses.dataclass(frozen=True, eq=False)
class Element:
    """An element of the tree of a robot: an elementary joint.

    Attributes:
        kind: Code of the kind of the elementary joint (`joints`).
        axis: Unit axis of the element in the frame of the joint, shape (3,).
        body: Index of the body whose joint contains this element.
        parent: Index of the element that carries this element, or -1 if the world carries it.
        first: Whether this element is the first of its joint.
        last: Whether this element is the last of its joint.
        dof: Index of the first velocity of this element.
        coordinate: Index of the first coordinate of this element.
    """

    kind: int
    axis: np.ndarray
    body: int
    parent: int
    first: bool
    last: bool
    dof: int
    coordinate: int


@dataclasses.dataclass(frozen=True, eq=False)
class ArticulatedRobot:
    """A robot: names of its bodies and joints, and their indices in arrays.

    Bodies and their joints are in the order of `Scene.rigid`.

    Attributes:
        bodies: Names of the bodies.
        joints: The joint that carries each body.
        parents: For each body, the index of the parent body, or -1 for the world.
        elements: Elementary joints of all joints, parents before children.
        coordinates: For each name of a joint, the slice of its coordinates in an array of all coordinates.
        velocities: For each name of a joint, the slice of its velocities in an array of all velocities.
        start: Joint coordinates at time 0 [rad, m or quaternions], shape (n_coordinates,).
        start_velocity: Joint velocities at time 0 [rad/s or m/s], shape (n_velocities,).
        motors: The motors by their control channels.
        sprung: Whether any joint has a spring.
        limited: Whether any joint has limits.
        contact_points: For each body, the indices of its contact points; None if contact forces are not reported at
            points.
    """

    bodies: tuple[str, ...]
    joints: tuple[Joint, ...]
    parents: tuple[int, ...]
    elements: tuple[Element, ...]
    coordinates: dict[str, slice]
    velocities: dict[str, slice]
    start: np.ndarray
    start_velocity: np.ndarray
    motors: dict[int, Torque | Servo]
    sprung: bool
    limited: bool
    contact_points: tuple[np.ndarray, ...] | None = None

    @property
    def freedom(self) -> int:
        """Number of joint velocities."""
        return len(self.start_velocity)

    @functools.cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the elements of each level of the tree; siblings are adjacent.

        The world carries the elements of the first level, and each later level holds the children of the previous one.
        """
        levels = [tuple(n for n, e in enumerate(self.elements) if e.parent < 0)]
        while levels[-1]:
            levels.append(tuple(n for p in levels[-1] for n, e in enumerate(self.elements) if e.parent == p))
        return tuple(levels[:-1])

    def body(self, name: str) -> int:
        """Index of the body with the given name.

        Raises:
            KeyError: There is no body of this name.
        """
        if name not in self.bodies:
            raise KeyError(f"there is no rigid body {name!r}; the scene has {', '.join(self.bodies)}")
        return self.bodies.index(name)


def robot_of(scene: Scene) -> ArticulatedRobot:
    """Build the robot of a scene from its rigid bodies and joints.

    Raises:
        SceneError: A joint moves nothing that has mass.
    """
    bodies = scene.rigid
    names = tuple(b.name for b in bodies)
    joints = tuple(joint_of(b, scene) for b in bodies)
    parents = tuple(-1 if j.parent is None else names.index(j.parent) for j in joints)
    _refuse_weightless(bodies, joints, parents)
    elements: list[Element] = []
    coordinates: dict[str, slice] = {}
    velocities: dict[str, slice] = {}
    carrier: dict[int, int] = {-1: -1}
    dof = coordinate = 0
    for k in _parents_first(parents):
        joint, kinds = joints[k], _elementary(joints[k])
        start = dof, coordinate
        for i, (kind, axis) in enumerate(kinds):
            parent = len(elements) - 1 if i else carrier[parents[k]]
            elements.append(Element(kind, axis, k, parent, i == 0, i + 1 == len(kinds), dof, coordinate))
            dof, coordinate = dof + FREEDOM[kind], coordinate + COORDINATES[kind]
        carrier[k] = len(elements) - 1
        velocities[joint.name], coordinates[joint.name] = slice(start[0], dof), slice(start[1], coordinate)
    position, velocity = np.zeros(coordinate), np.zeros(dof)
    for joint in joints:
        position[coordinates[joint.name]], velocity[velocities[joint.name]] = _start(joint)
    return ArticulatedRobot(
        bodies=names, joints=joints, parents=parents, elements=tuple(elements), coordinates=coordinates,
        velocities=velocities, start=position, start_velocity=velocity,
        motors={c: a for c, a in enumerate(scene.actuators) if isinstance(a, Torque | Servo)},
        sprung=any(any(j.stiffness) for j in joints),
        limited=any(np.isfinite([*(j.lower or ()), *(j.upper or ())]).any() for j in joints),
    )  # fmt: skip


def joint_of(body: RigidBody, scene: Scene) -> Joint:
    """The joint that carries a body, with a frame.

    A body without a joint in the scene floats: it has a joint of six freedoms, or of three in a 2D scene, with its
    frame at the centre of mass.
    """
    for joint in scene.joints:
        if joint.child == body.name:
            return placed(joint, body)
    if scene.dim == 2:
        return Joint(body.name, "free_2d", None, body.name, position=_center(body))
    return placed(Joint(body.name, "free", None, body.name), body)


def placed(joint: Joint, child: RigidBody) -> Joint:
    """Return `joint` with a frame: a free joint without a frame gets a frame at the centre of mass of its child."""
    if joint.position is not None:
        return joint
    return dataclasses.replace(joint, position=_center(child))


def _center(body: RigidBody) -> tuple[float, ...]:
    """Centre of mass of a body in the world with all joint coordinates at zero [m]."""
    inertia = body_inertia(body)
    center = np.zeros(3) if inertia is None else np.array(inertia.center)
    return tuple((np.array(body.position) + np.array(body.rotation) @ center).tolist())


def _parents_first(parents: tuple[int, ...]) -> list[int]:
    """Indices of the bodies in depth-first order, parents before children."""
    children: dict[int, list[int]] = {}
    for k, parent in enumerate(parents):
        children.setdefault(parent, []).append(k)
    order, waiting = [], children.get(-1, [])[::-1]
    while waiting:
        k = waiting.pop()
        order.append(k)
        waiting += children.get(k, [])[::-1]
    return order


def _elementary(joint: Joint) -> list[tuple[int, np.ndarray]]:
    """Kind and axis of each elementary joint that a joint consists of."""
    chain = JOINTS[joint.kind].chain
    return [(_TYPES[part.type], part.direction(joint.axis)) for part in chain] or [(FIXED, np.eye(3)[2])]


def _start(joint: Joint) -> tuple[np.ndarray, np.ndarray]:
    kind = JOINTS[joint.kind]
    position = kind.zero if joint.start is None else np.array(joint.start, dtype=np.float64)
    if kind.ball:
        position[-4:] /= np.linalg.norm(position[-4:])
    return position, np.zeros(kind.freedom) if joint.start_velocity is None else np.array(joint.start_velocity)


def _refuse_weightless(bodies: tuple[RigidBody, ...], joints: tuple[Joint, ...], parents: tuple[int, ...]) -> None:
    carries = np.array([body_inertia(b) is not None for b in bodies])
    for k in reversed(_parents_first(parents)):
        if parents[k] >= 0:
            carries[parents[k]] |= carries[k]
    for body, joint, heavy in zip(bodies, joints, carries, strict=True):
        if joint.freedom and not heavy and min(joint.armature) == 0.0:
            raise SceneError(
                f"Joint {joint.name!r}: it moves {body.name!r}, which has no mass and carries none; give it a shape, "
                f"an inertia or an armature"
            )
