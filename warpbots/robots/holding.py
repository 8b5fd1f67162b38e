"""Robots that stand and hold a pose, whatever their files say of that."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from warpbots.robots.mujoco_source import unique
from warpbots.scene import Inertia, Joint, RigidBody, Scene, SceneError, Servo, Torque
from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.solvers.articulated.point_cloud import contact_cloud

__all__ = ["hold_pose", "set_down"]

_GRAVITY = 9.81
_SAG, _SINK = 0.02, 1e-3
"""How far joints give way under a weight: turns [rad], slides [m]."""

_AT_ZERO = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
_SHORTEST = 0.01
"""Least lever of a weight [m]."""


@checked
def hold_pose(
    scene: Scene,
    pose: Mapping[str, float | Sequence[float]] | None = None,
    *,
    stiffness: float | None = None,
    damping: float | None = None,
) -> Scene:
    """A scene whose robot starts in a pose and holds it at u = 0, by a `Servo` on every joint that has a motor.

    For files whose motors are torques, and for those without motors: ``wb.hold_pose(wb.load_robot("a1.urdf"))``. Where
    no joint has a motor all hinges and slides are held, and in any case those that `pose` names; all others go as they
    went, as do balls and free joints. A `Servo` of the scene is aimed at the pose and keeps its name, gains and reach.
    One in the place of a `Torque` takes its name, others that of their joint; u = 1 moves them to the further limit of
    the joint, or by 1 rad or 1 m. No servo has a limit of force.

    The default stiffness lets a joint give way by 0.02 rad, or 1 mm, under the weight that it carries at its lever with
    all joints at zero; where a robot floats, under that on the heavier side of the joint. The default damping is
    critical for that weight. This is stiff for light links, which implicit steps do not mind.

    Args:
        scene: A scene of rigid bodies.
        pose: Coordinates by the names of joints, shapes as in `Joint.start`, those of a free joint among them; the
            other joints are held where they start.
        stiffness: Proportional gain of all servos [N m/rad or N/m]; None for those of the scene, and the default.
        damping: Derivative gain of all servos [N m s/rad or N s/m]; likewise.

    Raises:
        SceneError: There is no such joint, its coordinates are others, or a gain is out of range.
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
        if joints[name].kind not in ("ball", "free")
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
    """A scene whose floating robots start upon the ground, wherever their files put them.

    URDF knows no place of a base, so that the legs of a robot that floats begin inside of the floor. Every tree of
    bodies whose root is on a free joint is lifted, or let down, until the lowest of its contact points at the start is
    at `height`: ``wb.set_down(wb.load_robot("a1.urdf", fixed_base=False, obstacles=[wb.floor()]))``.

    Args:
        scene: A scene of rigid bodies.
        height: Where the lowest point is to be [m].

    Raises:
        SceneError: No robot with contact points floats.
    """
    clouds = {b.name: cloud for b in scene.rigid if (cloud := contact_cloud(b))}
    still = dataclasses.replace(
        scene, contacts=(), actuators=(), bodies=[dataclasses.replace(b, points=0) for b in scene.rigid]
    )
    sim = Simulation(still, Articulated(), dt=1.0)
    readings = sim.sense(sim.state())
    joints, chains = {j.child: j for j in scene.joints}, _chains(scene)
    lowest: dict[str, float] = {}
    for k, body in enumerate(scene.rigid):
        root = chains[body.name][-1]
        if body.name in clouds and root in joints and joints[root].kind == "free":
            points = readings.position[0, k].numpy() + clouds[body.name].positions @ readings.rotation[0, k].numpy().T
            lowest[root] = min(lowest.get(root, math.inf), float(points[:, 2].min()))
    if not lowest:
        raise SceneError(
            "set_down: no body with contact points hangs on a free joint; load the robot with fixed_base=False and "
            "contact_points above 0"
        )
    for root, bottom in lowest.items():
        joint = joints[root]
        start = np.array(joint.start or _AT_ZERO)
        start[:3] += (height - bottom) * np.array(joint.rotation)[2]  # upwards in the frame of the joint
        joints[root] = dataclasses.replace(joint, start=tuple(start))
    return dataclasses.replace(scene, joints=[joints[j.child] for j in scene.joints])


def _servo(scene: Scene, chains: dict[str, list[str]], joint: Joint, axis: int, given: dict[str, float]) -> Servo:
    """A servo that holds a velocity of a joint where it starts, with given gains or the default ones."""
    target = joint.start[axis] if joint.start is not None else 0.0
    limits = [] if joint.lower is None else [joint.lower[axis], joint.upper[axis]]
    reach = max((abs(limit - target) for limit in limits if math.isfinite(limit)), default=1.0)
    turns = joint.kind == "revolute"
    mass, lever = _load(scene, chains, joint)
    stiffness = given.get("stiffness", _GRAVITY * mass * lever / _SAG if turns else _GRAVITY * mass / _SINK)
    if stiffness == mass == 0.0:
        raise SceneError(f"hold_pose: joint {joint.name!r} carries no weight from which gains follow; give a stiffness")
    frequency = math.sqrt(_GRAVITY / (_SAG * lever if turns else _SINK))
    damping = given.get("damping", 2.0 * stiffness / frequency)
    return Servo(joint.name, joint.name, stiffness, damping, target, reach, axis)


def _load(scene: Scene, chains: dict[str, list[str]], joint: Joint) -> tuple[float, float]:
    """Mass that a joint carries [kg], and its mean distance from the joint with all joints at zero [m]."""
    root = chains[joint.child][-1]
    beyond = {b.name for b in scene.rigid if joint.child in chains[b.name]}
    whole = {b.name for b in scene.rigid if chains[b.name][-1] == root}
    kinds = {j.child: j.kind for j in scene.joints}
    sides = [beyond, whole - beyond] if kinds.get(root, "free") in ("free", "free_2d") else [beyond]
    loads = []
    for side in sides:
        weights = [(b, i) for b in scene.rigid if b.name in side and (i := body_inertia(b))]
        mass = sum(i.mass for _, i in weights)
        moment = sum(i.mass * math.dist(_center(b, i), joint.position) for b, i in weights)
        loads.append((mass, max(moment / mass, _SHORTEST) if mass else _SHORTEST))
    return max(loads, key=math.prod)


def _chains(scene: Scene) -> dict[str, list[str]]:
    """Every body and those that carry it, the nearest first."""
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
