"""A warning about steps so long that they do not resolve the swing of a hanging body.

Both integrators are stable in steps of any length, and damp what they do not resolve. That is meant for stiff joints,
limits and contacts, but a swing under gravity then has another motion. The table is the amplitude of a pendulum of the
period T after five periods, relative to its amplitude of 0.5 rad at the start.

    T / step     100     50      20      10      5       2       1
    SDIRK2       1.00    1.00    0.99    0.97    0.84    0.32    0.05
    BDF1         0.46    0.21    0.02    0       0       0       0
"""

import math
from collections.abc import Sequence

import numpy as np

from warpbots.scene import JOINTS, Joint
from warpbots.solvers.articulated.model import ArticulatedModel

__all__ = ["carried_at", "line_of", "unresolved_swing"]

_STEPS = 5.0
"""Least number of steps in a period, with which SDIRK2 loses a sixth of the amplitude in five periods [1]."""


def unresolved_swing(model: ArticulatedModel, h: float) -> str | None:
    """Warning that names the hinge or ball whose body swings fastest, if steps of length `h` do not resolve its swing.

    Only joints without springs, damping, limits and motors are examined.

    Args:
        model: The model.
        h: Length of a step [s].
    """
    driven = {motor.joint for motor in model.robot.motors.values()}
    free = [k for k, joint in enumerate(model.robot.joints) if joint.name not in driven and _swings_freely(joint)]
    above = [line_of(model.robot.parents, k) for k in range(len(model.robot.bodies))] if free else []
    periods = {
        model.robot.joints[k].name: _period(model, k, [i for i, line in enumerate(above) if k in line]) for k in free
    }
    name = min(periods, key=lambda each: periods[each], default=None)
    if name is None or h <= periods[name] / _STEPS:
        return None
    return (
        f"Joint {name!r}: what hangs on it swings with a period of {periods[name]:.3g} s, which steps of {h:.3g} s do "
        f"not resolve: its motion is damped, or ends upside down; use steps of at most {periods[name] / _STEPS:.2g} s, "
        f"and of a hundredth of the period for an accurate swing"
    )


def _swings_freely(joint: Joint) -> bool:
    kind = JOINTS[joint.kind]
    turns = len(kind.chain) == 1 and bool(kind.angular.all())
    return turns and joint.lower is None and not np.any(joint.stiffness) and not np.any(joint.damping)


def _period(model: ArticulatedModel, body: int, carried: list[int]) -> float:
    """Period of small swings of bodies under gravity [s]; infinity without one.

    The joint of `body` carries all of them. They are rigid together, at zero coordinates, and turn about the axis of
    the joint; on a ball about the axis on which the period is longest.
    """
    joint, gravity = model.robot.joints[body], model.gravity.numpy()[0]
    m, d, inertia = carried_at(model, carried, joint.position)
    direction = JOINTS[joint.kind].chain[0].direction(joint.axis)
    axes = [np.array(joint.rotation) @ direction] if not JOINTS[joint.kind].ball else list(np.eye(3))
    swings = []
    for axis in axes:
        lever, across = m @ (d - np.outer(d @ axis, axis)), gravity - (gravity @ axis) * axis
        torque = np.linalg.norm(lever) * np.linalg.norm(across)
        if torque > 1e-6 * np.linalg.norm(gravity) * (m @ np.linalg.norm(d, axis=1)):
            swings.append(2.0 * math.pi * math.sqrt(axis @ inertia @ axis / torque))
    return max(swings, default=math.inf)


def carried_at(
    model: ArticulatedModel, bodies: list[int], origin: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses [kg], shape (n,), and places of bodies at zero coordinates, and their inertia about a point.

    Args:
        model: The model.
        bodies: Indices of the bodies.
        origin: The point [m], shape (3,).

    Returns:
        Masses [kg], shape (n,); centres of mass from the point [m], shape (n, 3); the matrix of inertia of all bodies
        about the point [kg m^2], shape (3, 3).
    """
    mass, local, moments = (a.numpy()[0] for a in (model.mass, model.center_of_mass, model.inertia))
    R = np.array([model.scene.rigid[k].rotation for k in bodies])
    at = np.array([model.scene.rigid[k].position for k in bodies]) - np.array(origin)
    d = at + np.einsum("kij,kj->ki", R, local[bodies])
    m = mass[bodies]
    inertia = np.einsum("kij,kjl,kml->im", R, moments[bodies], R)
    inertia += (m * (d * d).sum(1)).sum() * np.eye(3) - np.einsum("k,ki,kj->ij", m, d, d)
    return m, d, inertia


def line_of(parents: tuple[int, ...], body: int) -> set[int]:
    """A body and all that carry it, by index."""
    line = set()
    while body >= 0:
        line.add(body)
        body = parents[body]
    return line
