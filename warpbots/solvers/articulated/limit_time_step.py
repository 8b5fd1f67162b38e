"""A warning about joint limits that are so stiff that steps do not resolve a hit.

A limit of stiffness k stops an inertia I within about pi / w, with w = sqrt(k / I). If this is much shorter than a step
of length h, SDIRK2 throws the joint back at a wrong speed, which may be above the speed of the hit. The table gives the
error of the energy after a hit, divided by the energy of the hit: the root mean square over all times within a step at
which the hit can begin, and in parentheses the largest energy after it. Correct are 1 without damping and 0.07 with
critical damping. BDF1 never gains energy, and with critical damping its error is at most 0.07 at every step length.

    h w     without damping     critical damping
    1       0.07 (1.1)          0.02 (0.10)
    2       0.19 (1.1)          0.17 (0.4)
    3       0.51 (2.0)          0.23 (0.5)
    5       0.46 (0.7)          0.32 (0.9)
    10      0.56 (1.2)          0.49 (1.4)
    50      0.63 (1.8)          0.77 (1.7)
"""

import math

import numpy as np

from warpbots.scene import JOINTS, Joint
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.unresolved_swings import carried_at, line_of

__all__ = ["unresolved_limit"]

_LONGEST = 3.0
"""Product h w up to which hits count as resolved [1]; MuJoCo's default limits, with w = 223/s, are up to 13 ms."""


def unresolved_limit(model: ArticulatedModel, integrator: str, h: float) -> str | None:
    """Warning that names the joint with the limit that steps of length `h` resolve worst; None without one.

    Only limits with a given stiffness are examined. The bodies that a joint carries count as rigid together, at zero
    coordinates, so that true limits may be stiffer for their inertia.

    Args:
        model: The model.
        integrator: Name of the integrator.
        h: Length of a step [s].
    """
    if integrator == "bdf1":
        return None
    stiffness, period, worst = model.limit_stiffness.numpy()[0], math.inf, None
    for k, joint in enumerate(model.robot.joints):
        if joint.lower is None or joint.limit_stiffness is None:
            continue
        for k_limit, inertia, angle, lower, upper in zip(
            stiffness[model.robot.velocities[joint.name]], _inertias(model, k, joint), JOINTS[joint.kind].angular,
            joint.lower, joint.upper, strict=True,
        ):  # fmt: skip
            bounded = math.isfinite(lower) or math.isfinite(upper)
            if bounded and k_limit > 0.0 and 0.0 < inertia < k_limit * period**2:
                period, worst = math.sqrt(inertia / k_limit), (joint.name, k_limit, inertia, angle)
    if worst is None or h <= _LONGEST * period:
        return None
    name, k_limit, inertia, angle = worst
    stiff, heavy = ("N m/rad", "kg m^2") if angle else ("N/m", "kg")
    return (
        f"Joint {name!r}: its limits of {k_limit:.3g} {stiff}, which stop {inertia:.3g} {heavy} within "
        f"{math.pi * period:.2g} s, are not resolved by steps of {h:.3g} s: a hit may throw it back faster than it "
        f"came; use steps of at most {_LONGEST * period:.2g} s, a limit_stiffness of at most "
        f"{inertia * (_LONGEST / h) ** 2:.2g} {stiff}, or integrator='bdf1', under which unresolved limits do not "
        f"bounce"
    )


def _inertias(model: ArticulatedModel, body: int, joint: Joint) -> list[float]:
    """Inertia that a joint moves along or about each of its axes, at zero coordinates [kg or kg m^2]."""
    carried = [k for k in range(len(model.robot.bodies)) if body in line_of(model.robot.parents, k)]
    mass, _, moments = carried_at(model, carried, joint.position)
    armature = model.armature.numpy()[0][model.robot.velocities[joint.name]]
    found = []
    for elementary, rotor in zip(JOINTS[joint.kind].chain, armature, strict=True):
        axis = np.array(joint.rotation) @ elementary.direction(joint.axis)
        found.append(float((axis @ moments @ axis if elementary.type == "revolute" else mass.sum()) + rotor))
    return found
