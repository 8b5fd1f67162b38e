"""Default stiffness and damping of joint limits.

The defaults follow from the inertia that a joint carries and from the motors and springs of the joint. A limit that
stops an inertia I like a critically damped spring of the frequency w = 1 / `TIME` has

    k = I w^2,    d = 2 sqrt(k I),

so that a body at a lever arm r exceeds the limit by g / (r w^2) under its weight, for any mass. For a translation, I is
the armature plus the mass of all bodies that the joint carries. For a rotation, I is the armature plus the largest
principal moment of inertia of these bodies about the origin of the joint at zero coordinates. The largest moment is
used because the bodies may have another orientation when they reach the limit. Motors and springs of the joint also
push against the limit: k is at least a hundred times their stiffness, and a motor alone moves the joint beyond the
limit by at most `GIVES`.
"""

import numpy as np

from warpbots.scene import JOINTS, Joint, Scene, Servo, Torque
from warpbots.solvers.articulated.inertia import Moments, body_inertia

__all__ = ["GIVES", "TIME", "drive_stiffness", "is_angle", "limit_laws"]

TIME = 5e-3
"""Time constant of a limit [s]; MuJoCo's default for a load that rests on a limit is 4.5 ms."""

GIVES = {True: 1e-2, False: 1e-3}
"""Largest excess over a limit that a motor can cause [rad or m]; the key says whether the coordinate is an angle."""

_STIFFER = 100.0
"""Ratio of the stiffness of a limit to the stiffness of springs and servos of the joint."""


def limit_laws(scene: Scene, joint: Joint, matter: tuple[Moments, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Stiffness and damping of the limits of a joint: the values that the joint gives, or else the defaults.

    Args:
        scene: Scene with the joint, the bodies that the joint carries, and its motors.
        joint: A joint with limits.
        matter: Soft matter that the joint carries in addition to rigid bodies: the mass, the centre, and the moments of
            inertia about the centre of each piece, at zero coordinates.

    Returns:
        Stiffness [N m/rad or N/m] and damping [N m s/rad or N s/m], each of shape (velocities,).
    """
    inertia = _inertia(scene, joint, matter)
    k = np.maximum(inertia / TIME**2, drive_stiffness(scene, joint))
    if joint.limit_stiffness is not None:
        k = np.full(joint.freedom, joint.limit_stiffness)
    d = 2.0 * np.sqrt(k * inertia)
    if joint.limit_damping is not None:
        d = np.full(joint.freedom, joint.limit_damping)
    return k, d


def is_angle(joint: Joint) -> np.ndarray:
    """Whether each coordinate of a joint with limits is an angle, shape (velocities,)."""
    return JOINTS[joint.kind].angular


def _inertia(scene: Scene, joint: Joint, matter: tuple[Moments, ...]) -> np.ndarray:
    """Inertia that a joint moves along or about each of its axes [kg m^2 or kg], shape (velocities,)."""
    children: dict[str | None, list[str]] = {}
    for j in scene.joints:
        children.setdefault(j.parent, []).append(j.child)
    carried = [joint.child]
    for name in carried:
        carried += children.get(name, [])
    parts = list(matter)
    for body in scene.rigid:
        inertia = body_inertia(body) if body.name in carried else None
        if inertia is not None:
            R = np.array(body.rotation)
            center = np.array(body.position) + R @ np.array(inertia.center)
            parts.append((inertia.mass, center, R @ np.array(inertia.moments) @ R.T))
    about = np.zeros((3, 3))
    for m, center, moments in parts:
        r = center - np.array(joint.position)
        about += moments + m * (r @ r * np.eye(3) - np.outer(r, r))
    turned = about[2, 2] if scene.dim == 2 else float(np.linalg.eigvalsh(about)[-1])
    mass = sum(m for m, _, _ in parts)
    return np.where(is_angle(joint), turned, mass) + np.array(joint.armature)


def drive_stiffness(scene: Scene, joint: Joint) -> np.ndarray:
    """Least stiffness that the limits of a joint need against its springs and motors [N m/rad or N/m].

    The result has shape (velocities,).
    """
    k, gives = _STIFFER * np.array(joint.stiffness), np.where(is_angle(joint), GIVES[True], GIVES[False])
    for motor in scene.actuators:
        if isinstance(motor, Torque | Servo) and motor.joint == joint.name:
            i = motor.axis
            k[i] += motor.max_torque / gives[i] if isinstance(motor, Torque) else _STIFFER * motor.stiffness
    return k
