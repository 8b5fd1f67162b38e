"""Joint motors: drives of UsdPhysics, and actuators that warpbots has written as separate prims.

A drive with a stiffness becomes a `Servo`. A drive with a maximum force but neither stiffness nor damping becomes a
`Torque`. The damping of a drive without stiffness is added to the damping of its joint.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from warpbots.scene import Servo, Torque
from warpbots.usd.rigid.exact_values import agree
from warpbots.usd.rigid.joint_chains import ChainJoint
from warpbots.usd.rigid.joint_reader import Drive
from warpbots.usd.stage.inventory import Note

__all__ = ["Claim", "claim", "read_drives"]


class Claim(NamedTuple):
    """Actuators that have a prim in the file, and the joint velocities that these actuators drive.

    Attributes:
        actuators: The actuators; if another program has edited the drive of an actuator, the actuator has the new
            values.
        taken: Driven joint velocities, each as a pair: name of the joint, and index of the velocity.
    """

    actuators: list
    taken: set[tuple[str, int]]


def claim(actuators: list, steps: list[ChainJoint], note: Note) -> Claim:
    """The `actuators` with the values that their drives have in the file, and the joint velocities that they drive."""
    at = {step.joint.name: step for step in steps}
    taken: set[tuple[str, int]] = set()
    result = []
    for motor in actuators:
        if isinstance(motor, Torque | Servo):
            place = motor.joint, motor.axis
            freedoms = at[motor.joint].freedoms if motor.joint in at else ()
            if place not in taken and motor.axis < len(freedoms) and freedoms[motor.axis].drive is not None:
                drive = freedoms[motor.axis].drive
                motor = _now(motor, drive)
                if isinstance(motor, Torque) and drive.stiffness:
                    note(
                        at[motor.joint].prim,
                        f"the stiffness of the drive of {freedoms[motor.axis].token}; its motor {motor.name!r} is a "
                        f"Torque",
                    )
            taken.add(place)
        result.append(motor)
    return Claim(result, taken)


def _now(motor: Torque | Servo, drive: Drive) -> Torque | Servo:
    if isinstance(motor, Torque):
        same = not np.isfinite(drive.force) or _equal(drive.force, motor.max_torque)
        return motor if same else dataclasses.replace(motor, max_torque=drive.force)
    changes = {
        field: getattr(drive, field) for field in ("stiffness", "damping", "target")
        if not _equal(getattr(drive, field), getattr(motor, field))
    }  # fmt: skip
    return dataclasses.replace(motor, **changes) if changes else motor


def _equal(a: float, b: float) -> bool:
    return agree(a / b, 1.0) if b else a == 0.0


def read_drives(step: ChainJoint, taken: set[tuple[str, int]], note: Note) -> list[Torque | Servo]:
    """Motors for the drives of the joint `step`, except drives of joint velocities in `taken`."""
    driven = [(k, f) for k, f in enumerate(step.freedoms) if f.drive is not None]
    found: list[Torque | Servo] = []
    for k, freedom in driven:
        drive, joint = freedom.drive, step.joint.name
        if np.isfinite(drive.force) and (drive.stiffness or drive.damping):
            note(
                step.prim,
                f"the maximum force {drive.force:g} of the drive of {freedom.token}; a Servo has no such limit",
            )
        if (joint, k) in taken:
            continue
        name = joint if len(step.freedoms) == 1 else f"{joint}/{freedom.token}"
        if drive.stiffness > 0.0:
            half = (freedom.upper - freedom.lower) / 2.0
            reach = half if np.isfinite(half) else 1.0
            found.append(Servo(name, joint, drive.stiffness, drive.damping, drive.target, reach, k))
        elif not drive.damping and np.isfinite(drive.force) and drive.force > 0.0:
            found.append(Torque(name, joint, drive.force, k))
    return found
