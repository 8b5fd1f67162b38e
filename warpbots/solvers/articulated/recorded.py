"""Scenes in which parameters of articulated bodies are replaced: joints, motors, bodies and contact laws.

Each function returns a changed copy of a scene. `values` maps the names of parameters to their values in one world.
"""

import contextlib
import dataclasses
from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from warpbots.scene import Cloud, Inertia, Joint, RigidBody, Scene, SceneError, Servo, Torque
from warpbots.solvers.articulated.contact_groups import points_of
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.solvers.articulated.robot import ArticulatedRobot
from warpbots.solvers.articulated.rolling_points import BALLS
from warpbots.solvers.records import changed, number, numbers, with_actuators

__all__ = ["FRAMES", "with_bodies", "with_contact_laws", "with_frames", "with_joints", "with_motors"]

Values = Mapping[str, np.ndarray]

FRAMES = ("joint_position", "joint_rotation", "body_position", "body_rotation")
"""Parameters for the poses of joints and bodies with all joints at zero."""

_SERVO = {"motor_stiffness": "stiffness", "motor_damping": "damping", "motor_target": "target", "motor_reach": "reach"}
_JOINT = {
    "joint_stiffness": "stiffness", "joint_neutral": "neutral", "joint_damping": "damping", "armature": "armature",
}  # fmt: skip
_LAW = ("stiffness", "damping", "friction", "viscosity", "restitution")


def with_motors(scene: Scene, values: Values) -> Scene:
    """Replace parameters of the motors of a scene.

    Args:
        scene: The scene.
        values: New parameters by name.
    """
    motors = [a for a in scene.actuators if isinstance(a, Torque | Servo)]
    for cls, fields in ((Torque, {"motor_torque": "max_torque"}), (Servo, _SERVO)):
        of_class = [isinstance(a, cls) for a in motors]
        scene = with_actuators(scene, cls, fields, {n: v[of_class] for n, v in values.items() if n in fields})
    return scene


def with_joints(scene: Scene, robot: ArticulatedRobot, values: Values, never: float) -> Scene:
    """Replace parameters of the springs, limits and rotors of the joints of a scene.

    Args:
        scene: The scene.
        robot: Robot of the scene, with its joints.
        values: New parameters by name.
        never: Value of a limit that stands for no limit [rad or m].
    """
    return _joined(scene, robot, {j.name: _sprung(j, robot.velocities[j.name], values, never) for j in robot.joints})


def _sprung(joint: Joint, at: slice, values: Values, never: float) -> Joint:
    if at.start == at.stop:
        return joint
    for name, field in _JOINT.items():
        if name in values:
            joint = changed(joint, **{field: numbers(values[name][at], getattr(joint, field))})
    limits = {}
    for name, field, none in (("joint_lower", "lower", -np.inf), ("joint_upper", "upper", np.inf)):
        if name in values:
            before = none if getattr(joint, field) is None else getattr(joint, field)
            given = np.where(np.abs(values[name][at]) >= never, none, values[name][at])
            limits[field] = numbers(given, before)
    if np.isfinite([*limits.values()]).any() or joint.lower is not None:
        joint = changed(joint, **limits)
    for field in ("limit_stiffness", "limit_damping"):
        if field in values and joint.lower is not None and len(np.unique(values[field][at])) == 1:
            before = np.nan if getattr(joint, field) is None else getattr(joint, field)
            joint = changed(joint, **{field: number(values[field][at][0], before)})
    return joint


def _joined(scene: Scene, robot: ArticulatedRobot, joints: Mapping[str, Joint]) -> Scene:
    """Replace joints of a scene by the joints of the same name in `joints`.

    The free joint that a floating body has implicitly is added to the scene if it has changed.
    """
    own = {joint.name for joint in scene.joints}
    new = [joints[j.name] for j in robot.joints if j.name not in own and joints[j.name] != j]
    return changed(scene, joints=[*(joints.get(j.name, j) for j in scene.joints), *new])


def with_frames(scene: Scene, robot: ArticulatedRobot, values: Values) -> Scene:
    """Replace the poses of joints and bodies of a scene, from the four parameters of frames.

    Args:
        scene: The scene.
        robot: Robot of the scene, with its joints.
        values: New parameters by name, including `joint_position`, `joint_rotation`, `body_position` and
            `body_rotation`.
    """
    rotation = {n: Rotation.from_quat(values[n]).as_matrix() for n in ("joint_rotation", "body_rotation")}
    poses: dict[int, tuple[np.ndarray, np.ndarray]] = {-1: (np.zeros(3), np.eye(3))}
    bodies, joints = list(scene.rigid), {}
    order = sorted(range(len(bodies)), key=lambda k: _depth(robot, k))
    for k in order:
        (p, R), joint, body = poses[robot.parents[k]], robot.joints[k], bodies[k]
        p, R = p + R @ values["joint_position"][k], R @ rotation["joint_rotation"][k]
        poses[k] = p, R
        bodies[k] = changed(body, **_frame(body, p + R @ values["body_position"][k], R @ rotation["body_rotation"][k]))
        joints[joint.name] = changed(joint, **_frame(joint, p, R))
    placed = iter(bodies)
    parts = [next(placed) if isinstance(b, RigidBody) else b for b in scene.bodies]
    return _joined(dataclasses.replace(scene, bodies=parts), robot, joints)


def _depth(robot: ArticulatedRobot, body: int) -> int:
    """Number of joints on the path from a body to the world."""
    return 0 if body < 0 else 1 + _depth(robot, robot.parents[body])


def _frame(part: RigidBody | Joint, position: np.ndarray, rotation: np.ndarray) -> dict:
    """Fields `position` and `rotation` of a new pose, as far as they differ from `part` by more than rounding."""
    near = {"rtol": 1e-12, "atol": 1e-12}
    fields = {}
    if not np.allclose(position, part.position, **near):
        fields["position"] = tuple(position.tolist())
    if not np.allclose(rotation, part.rotation, **near):
        fields["rotation"] = tuple(map(tuple, rotation.tolist()))
    return fields


def with_bodies(scene: Scene, robot: ArticulatedRobot, values: Values) -> Scene:
    """Replace the inertia and the contact points of the rigid bodies of a scene.

    Args:
        scene: The scene.
        robot: Robot of the scene, with the indices of the contact points of each body.
        values: New parameters by name.
    """
    bodies, k = list(scene.bodies), 0
    for i, body in enumerate(bodies):
        if isinstance(body, RigidBody):
            own = robot.contact_points[k]
            bodies[i] = _touching(_heavy(body, k, values), {n: v[own] for n, v in values.items() if n in _POINTS})
            k += 1
    return dataclasses.replace(scene, bodies=bodies)


_POINTS = ("contact_point", "contact_area")


def _heavy(body: RigidBody, k: int, values: Values) -> RigidBody:
    """Return `body` with the inertia of entry k of `values`.

    The body is returned unchanged if it already has this inertia, or if this inertia is physically impossible.
    """
    before = body_inertia(body)
    old = (0.0, (0.0,) * 3, np.zeros((3, 3))) if before is None else (before.mass, before.center, before.moments)
    names = ("mass", "center_of_mass", "inertia")
    mass, center, moments = (values[n][k] if n in values else o for n, o in zip(names, old, strict=True))
    if mass == old[0] and np.array_equal(center, old[1]) and np.array_equal(moments, old[2]):
        return body
    with contextlib.suppress(SceneError):
        return changed(body, inertia=Inertia(float(mass), tuple(map(float, center)), moments))
    return body


def _touching(body: RigidBody, values: Values) -> RigidBody:
    """Return `body` with the contact points of `values` as a cloud.

    The body is returned unchanged if it already has these points, or if its points roll over its surface.
    """
    groups = points_of(body)
    if not values or any(g.radii.any() or g.kind != BALLS for g in groups):
        return body  # no record can hold points that roll
    old = [np.concatenate([getattr(g, name) for g in groups]) for name in ("positions", "areas")] if groups else []
    positions, areas = (values.get(n, o) for n, o in zip(_POINTS, old, strict=True)) if groups else ((), ())
    if len(positions) != sum(len(g.areas) for g in groups) or all(map(np.array_equal, (positions, areas), old)):
        return body
    with contextlib.suppress(SceneError):
        return changed(body, points=Cloud(positions, areas))
    return body


def with_contact_laws(scene: Scene, values: Values) -> Scene:
    """Replace parameters of the contact laws of a scene.

    Args:
        scene: The scene.
        values: New parameters by name.
    """
    if not scene.laws:
        return scene
    laws = list(scene.laws)
    for i, law in enumerate(laws):
        fields = {f: values[f"contact_{f}"][i] for f in _LAW if f"contact_{f}" in values}
        if law.restitution is None:
            fields.pop("restitution", None)
        laws[i] = changed(law, **{f: number(v, getattr(law, f)) for f, v in fields.items()})
    return dataclasses.replace(scene, contacts=laws)
