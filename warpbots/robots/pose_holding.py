"""Makes robots hold a pose (`hold_pose`) and stand on the ground (`set_down`)."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from warpbots.robots.names import unique
from warpbots.scene import JOINTS, Cloud, Inertia, Joint, RigidBody, Scene, SceneError, Servo, Torque, parts_of
from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated
from warpbots.solvers.articulated.contact_groups import closed_group_of, points_of
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.solvers.articulated.point_cloud import surface_mesh

__all__ = ["hold_pose", "set_down"]

_GRAVITY = 9.81
_SAG, _SINK = 0.02, 1e-3
"""Deflection of held joints under the weight that they carry: rotations [rad], translations [m]."""

_AT_ZERO = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
_SHORTEST = 0.01
"""Shortest lever arm that is assumed for a weight [m]."""


@checked
def hold_pose(
    scene: Scene,
    pose: Mapping[str, float | Sequence[float]] | None = None,
    *,
    stiffness: float | None = None,
    damping: float | None = None,
) -> Scene:
    """A scene whose robot starts in a pose and holds this pose at u = 0, by a `Servo` on every joint that has a motor.

    This is for files with torque motors or without motors: ``wb.robots.hold_pose(wb.robots.load("a1.urdf"))``. If no
    joint has a motor, all revolute and prismatic joints are held. Joints named in `pose` are always held. All other
    joints move as before, as do ball and free joints. A `Servo` of the scene gets the pose as its target and keeps its
    name, gains and reach. A new servo has the name of the `Torque` that it replaces, or else the name of its joint. For
    a joint with limits, u = 1 or u = -1 moves the target to the farther limit; for a joint without limits, u = 1 moves
    the target by 1 rad or 1 m. Servos have no force limit.

    With the default stiffness a joint deflects by 0.02 rad, or 1 mm, under the weight that it carries with all joints
    at zero. In a floating robot, this is the weight of the bodies on the side of the joint that has the larger moment.
    The default damping is critical for the same weight. For light links these gains are stiff, which implicit time
    steps can handle.

    Args:
        scene: A scene of rigid bodies.
        pose: Coordinates by joint name, with shapes as in `Joint.start`; free joints may be included. All other joints
            are held at their start coordinates.
        stiffness: Proportional gain of all servos [N m/rad or N/m]; None to keep the gains of servos in the scene and
            to use the default for new servos.
        damping: Derivative gain of all servos [N m s/rad or N s/m]; None has the same meaning as for `stiffness`.

    Raises:
        SceneError: `pose` names an unknown joint or has a wrong number of coordinates, or a gain is out of range.
    """
    pose = pose or {}
    joints = {j.name: j for j in scene.joints}
    unknown = [name for name in pose if name not in joints]
    if unknown:
        raise SceneError(f"hold_pose: there is no joint {unknown[0]!r}; the scene has {', '.join(joints) or 'none'}")
    joints |= {name: dataclasses.replace(joints[name], start=start) for name, start in pose.items()}
    given = {name: gain for name, gain in (("stiffness", stiffness), ("damping", damping)) if gain is not None}
    driven = [(m.joint, m.axis) for m in scene.actuators if isinstance(m, Torque | Servo)]
    named = [(name, axis) for name in pose for axis in range(joints[name].freedom)]
    every = [(j.name, 0) for j in scene.joints if j.kind in ("revolute", "prismatic")]
    chains = _chains(scene)
    held = {
        (name, axis): _servo(scene, chains, joints[name], axis, given)
        for name, axis in dict.fromkeys([*(driven or every), *named])
        if not JOINTS[joints[name].kind].ball
    }
    motors, waiting = [], dict(held)
    for motor in scene.actuators:
        place = (motor.joint, motor.axis) if isinstance(motor, Torque | Servo) else None
        if place not in held:
            motors.append(motor)
        elif place in waiting:
            servo = waiting.pop(place)
            aimed = dataclasses.replace(motor, target=servo.target, **given) if isinstance(motor, Servo) else servo
            motors.append(dataclasses.replace(aimed, name=motor.name))
    taken = {m.name for m in motors}
    motors += [dataclasses.replace(servo, name=unique(servo.name, taken)) for servo in waiting.values()]
    return dataclasses.replace(scene, joints=tuple(joints.values()), actuators=tuple(motors))


@checked
def set_down(scene: Scene, height: float = 0.0) -> Scene:
    """A scene whose floating robots start on the ground, whatever their height in the file is.

    URDF does not contain a pose of the base; therefore the legs of a floating robot may start inside the floor. Every
    tree of bodies with a free joint at its root is moved vertically until the lowest point of its bodies with contact
    points is at `height` at the start:
    ``wb.robots.set_down(wb.robots.load("a1.urdf", fixed_base=False, obstacles=[wb.floor()]))``.

    Args:
        scene: A scene of rigid bodies.
        height: Height of the lowest point of each robot [m].

    Raises:
        SceneError: There is no floating robot with contact points.
    """
    touching = {b.name for b in scene.rigid if b.points}
    still = dataclasses.replace(
        scene, contacts=(), actuators=(), bodies=[dataclasses.replace(b, points=0) for b in scene.rigid]
    )
    sim = Simulation(still, Articulated(), dt=1e-4)
    readings = sim.sense(sim.state(), steps=False)
    joints, chains = {j.child: j for j in scene.joints}, _chains(scene)
    lowest: dict[str, float] = {}
    for k, body in enumerate(scene.rigid):
        root = chains[body.name][-1]
        if body.name in touching and root in joints and joints[root].kind == "free":
            below = _lowest(body, readings.rotation[0, k].numpy())
            lowest[root] = min(lowest.get(root, math.inf), float(readings.position[0, k, 2]) + below)
    if not lowest:
        raise SceneError(
            "set_down: there is no floating robot with contact points; load the robot with fixed_base=False and "
            "contact_points above 0"
        )
    for root, bottom in lowest.items():
        joint = joints[root]
        start = np.array(joint.start or _AT_ZERO)
        start[:3] += (height - bottom) * np.array(joint.rotation)[2]  # upwards in the frame of the joint
        joints[root] = dataclasses.replace(joint, start=tuple(start))
    return dataclasses.replace(scene, joints=[joints[j.child] for j in scene.joints])


def _lowest(body: RigidBody, rotation: np.ndarray) -> float:
    """Height of the lowest point of a body above its origin [m]: of the given cloud of points, or of its surface."""
    if isinstance(body.points, Cloud):
        return min(group.lowest(rotation) for group in points_of(body))
    forms = [(part, closed_group_of(body, part)) for part in parts_of(body.shape)]
    return min(
        float((surface_mesh(part).vertices @ rotation[2]).min()) if form is None else form.lowest(rotation)
        for part, form in forms
    )


def _servo(scene: Scene, chains: dict[str, list[str]], joint: Joint, axis: int, given: dict[str, float]) -> Servo:
    """A servo that holds one coordinate of a joint at its start, with given or default gains."""
    target = joint.start[axis] if joint.start is not None else 0.0
    limits = [] if joint.lower is None else [joint.lower[axis], joint.upper[axis]]
    reach = max((abs(limit - target) for limit in limits if math.isfinite(limit)), default=1.0)
    turns = JOINTS[joint.kind].angular[axis]
    mass, lever = _load(scene, chains, joint)
    stiffness = given.get("stiffness", _GRAVITY * mass * lever / _SAG if turns else _GRAVITY * mass / _SINK)
    if stiffness == mass == 0.0:
        raise SceneError(
            f"hold_pose: joint {joint.name!r} carries no weight, which would determine the gains; pass a stiffness"
        )
    frequency = math.sqrt(_GRAVITY / (_SAG * lever if turns else _SINK))
    damping = given.get("damping", 2.0 * stiffness / frequency)
    return Servo(joint.name, joint.name, stiffness, damping, target, reach, axis)


def _load(scene: Scene, chains: dict[str, list[str]], joint: Joint) -> tuple[float, float]:
    """Mass that a joint carries [kg], and mean distance of this mass from the joint with all joints at zero [m].

    In a floating robot, the joint carries the bodies on one of its two sides: the side with the larger moment is used.
    """
    root = chains[joint.child][-1]
    beyond = {b.name for b in scene.rigid if joint.child in chains[b.name]}
    whole = {b.name for b in scene.rigid if chains[b.name][-1] == root}
    kinds = {j.child: j.kind for j in scene.joints}
    sides = [beyond, whole - beyond] if JOINTS[kinds.get(root, "free")].floats else [beyond]
    loads = []
    for side in sides:
        weights = [(b, i) for b in scene.rigid if b.name in side and (i := body_inertia(b))]
        mass = sum(i.mass for _, i in weights)
        moment = sum(i.mass * math.dist(_center(b, i), joint.position) for b, i in weights)
        loads.append((mass, max(moment / mass, _SHORTEST) if mass else _SHORTEST))
    return max(loads, key=math.prod)


def _chains(scene: Scene) -> dict[str, list[str]]:
    """For every body, the list of its name and the names of its ancestors, the nearest ancestor first."""
    on = {j.child: j.parent for j in scene.joints}
    chains = {}
    for body in scene.rigid:
        chain = [body.name]
        while (up := on.get(chain[-1])) is not None:
            chain.append(up)
        chains[body.name] = chain
    return chains


def _center(body: RigidBody, inertia: Inertia) -> np.ndarray:
    return np.array(body.position) + np.array(body.rotation) @ inertia.center
