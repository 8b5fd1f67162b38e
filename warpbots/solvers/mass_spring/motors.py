"""Motors on a lattice: the masses that each motor drives, and the rate at which a motor slows down at u = 0."""

import functools

import numpy as np
import warp as wp

from warpbots.scene import Motor, Scene, SceneError
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mass_spring.lattice import Lattice

__all__ = ["fastest_decay", "motor_arrays", "motors_of"]


@functools.cache
def motor_arrays() -> type:
    """Warp struct type of the motors and the masses that they drive."""

    @wp.struct
    class MotorArrays:
        """Motors of a scene and the masses of their sides; all worlds share the arrays.

        Motor k has two sides: the stator is side 2 k, the rotor is side 2 k + 1. An entry is a mass of a side.

        start: Index in `mass` of the first entry of each side, followed by the total number of entries,
            shape (2 n_motors + 1,).
        mass: Indices of the masses of the sides, side after side, shape (n_entries,).
        driven: Indices of the masses that belong to at least one side, shape (n_driven,).
        row: Index in `side` of the first entry of each driven mass, followed by the total number of entries, shape
            (n_driven + 1,).
        side: Indices of the sides to which each driven mass belongs, driven mass after driven mass, shape
            (n_entries,).
        axis: Indices of the masses at the start and the end of each axis, shape (n_motors, 2); in 2D both indices are
            equal.
        channel: Control channel of each motor, shape (n_motors,).
        masses: Number of masses of one world.
        """

        start: wp.array[int]
        mass: wp.array[int]
        driven: wp.array[int]
        row: wp.array[int]
        side: wp.array[int]
        axis: wp.array2d[int]
        channel: wp.array[int]
        masses: int

    return MotorArrays


def motors_of(scene: Scene, lattice: Lattice, device: wp.Device) -> object:
    """The motors of `scene` as a Warp struct.

    Raises:
        SceneError: The stator or the rotor of a motor has no moment of inertia about the axis.
    """
    motors = [(c, a) for c, a in enumerate(scene.actuators) if isinstance(a, Motor)]
    points = {a.name: a.points for a in scene.attachments}
    sides, axes = [], []
    for _, motor in motors:
        ends = [int(np.linalg.norm(lattice.position - p, axis=1).argmin()) for p in points[motor.attachment]]
        axes.append([ends[0], ends[-1]])
        for region in (motor.stator, motor.rotor):
            sides.append(np.flatnonzero(lattice.regions[region]))
            if _inertia(lattice, sides[-1], axes[-1]) <= 0.0:
                raise SceneError(
                    f"Motor {motor.name!r}: the masses of region {region!r} lie on a line along its axis and "
                    f"have no moment of inertia about it; make the region wider"
                )
    mass = np.concatenate([np.zeros(0, dtype=int), *sides])
    side = np.repeat(np.arange(len(sides)), [len(s) for s in sides])
    order = np.lexsort((side, mass))
    driven, row = np.unique(mass[order], return_index=True)
    arrays = motor_arrays()()
    arrays.masses = len(lattice)
    for field, values in (
        ("start", np.cumsum([0, *map(len, sides)])),
        ("mass", mass),
        ("driven", driven),
        ("row", [*row, len(mass)]),
        ("side", side[order]),
        ("channel", [c for c, _ in motors]),
        ("axis", np.reshape(axes, (-1, 2))),
    ):
        setattr(arrays, field, device_array(values, device, int))
    return arrays


def _inertia(lattice: Lattice, side: np.ndarray, ends: list[int]) -> float:
    """Moment of inertia [kg m^2] of a side of a motor at rest, about an axis through the centre of mass of the side.

    `side` lists the masses of the side; `ends` are the two masses that give the direction of the axis.
    """
    x, m = lattice.position[side], lattice.mass[side]
    r = x - (m @ x) / m.sum()
    if x.shape[1] == 3:
        n = lattice.position[ends[1]] - lattice.position[ends[0]]
        r = np.cross(n / np.linalg.norm(n), r)
    return float((m[:, None] * r**2).sum()) if (r**2).sum() > 1e-12 * (x**2).sum() else 0.0


def fastest_decay(lattice: Lattice, motors: object, torque: np.ndarray, speed: np.ndarray) -> float:
    """Largest rate [1/s] at which a motor of any world slows down at u = 0: T / w (1 / I_0 + 1 / I_1).

    T is the torque and w the speed of the motor, I_0 and I_1 are the moments of inertia of its stator and rotor.
    """
    axis, start, mass = (a.numpy() for a in (motors.axis, motors.start, motors.mass))
    inertia = [_inertia(lattice, mass[start[s] : start[s + 1]], list(axis[s // 2])) for s in range(2 * len(axis))]
    compliance = (1.0 / np.reshape(inertia, (-1, 2))).sum(axis=1)
    return float((torque / speed * compliance).max())
