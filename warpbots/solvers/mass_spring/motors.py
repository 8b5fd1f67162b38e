"""Motors: torques between regions that turn about an attachment; differentiated by Warp.

A motor has two sides, 0 the stator and 1 the rotor. About its centre of mass c and along the axis n a side has the
moment of inertia and the angular velocity

    I = sum m |n x r|^2,   w = 1/I sum m (n x r) . (v - v_c),   r = x - c,

and a torque T is the forces f = T / I m n x r: no net force, and torque T along n. Both sides have the axis of the
attachment where it is now, so that momentum and the angular momentum along the axis are kept.

Vectors are nodes, with zeros behind the components that there are; in 2D the axis is z. Loops are dynamic but only
accumulate, which is what Warp's backward pass allows; what is not linear in sums is a kernel of its own.
"""

import functools

import numpy as np
import warp as wp

from warpbots.numerics import NODE, Launch, clear_gradients, launch_adjoints, launch_all, real
from warpbots.scene import Motor, Scene, SceneError
from warpbots.solvers.mass_spring.lattice import Lattice

__all__ = ["MotorScratch", "adj_turn", "fastest_decay", "motor_arrays", "motor_kernels", "motors_of", "turn"]


@functools.cache
def motor_arrays() -> type:
    """Warp struct of which masses motors turn."""

    @wp.struct
    class MotorArrays:
        """Motors of a scene; the same in all worlds.

        start: First entry of each side, two sides for each motor and one more for the end, shape (2 n_motors + 1,).
        mass: Mass of each entry, shape (n_entries,).
        turned: Masses that any motor turns, shape (n_turned,).
        row: First item of each of them in `side`, one more for the end, shape (n_turned + 1,).
        side: Sides that a turned mass belongs to, shape (n_entries,).
        axis: Masses at the start and the end of each axis, equal in 2D, shape (n_motors, 2).
        channel: Control channel of each motor, shape (n_motors,).
        masses: Number of masses of one world.
        """

        start: wp.array[int]
        mass: wp.array[int]
        turned: wp.array[int]
        row: wp.array[int]
        side: wp.array[int]
        axis: wp.array2d[int]
        channel: wp.array[int]
        masses: int

    return MotorArrays


class MotorScratch:
    """Sums over the sides of motors, with gradients; every stage fills them anew.

    Attributes:
        mass: Masses [kg], shape (worlds, n_sides).
        moment: Sums of mass times position [kg m], shape (worlds, n_sides).
        momentum: Sums of mass times velocity [kg m/s], shape (worlds, n_sides).
        inertia: Moments of inertia [kg m^2], shape (worlds, n_sides).
        spin: Angular momenta about the axis [kg m^2/s], shape (worlds, n_sides).
        torque: Torques on the sides [N m], shape (worlds, n_sides).
    """

    def __init__(self, worlds: int, motors: int, device: wp.Device):
        def zeros(dtype: type) -> wp.array:
            return wp.zeros((worlds, 2 * motors), dtype=dtype, device=device, requires_grad=True)

        self.mass, self.moment, self.momentum = zeros(real), zeros(NODE), zeros(NODE)
        self.inertia, self.spin, self.torque = zeros(real), zeros(real), zeros(real)


def motors_of(scene: Scene, lattice: Lattice, device: wp.Device) -> object:
    """The motors of `scene` as a Warp struct.

    Raises:
        SceneError: A side has no matter that could turn about the axis.
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
                    f"Motor {motor.name!r}: the masses of region {region!r} lie on a line along its axis and cannot be "
                    f"turned; make the region wider"
                )
    mass = np.concatenate([np.zeros(0, dtype=int), *sides])
    side = np.repeat(np.arange(len(sides)), [len(s) for s in sides])
    order = np.lexsort((side, mass))
    turned, row = np.unique(mass[order], return_index=True)
    arrays = motor_arrays()()
    arrays.masses = len(lattice)
    for field, values in (
        ("start", np.cumsum([0, *map(len, sides)])),
        ("mass", mass),
        ("turned", turned),
        ("row", [*row, len(mass)]),
        ("side", side[order]),
        ("channel", [c for c, _ in motors]),
        ("axis", np.reshape(axes, (-1, 2))),
    ):
        setattr(arrays, field, wp.array(np.asarray(values, dtype=np.int32), dtype=int, device=device))
    return arrays


def _inertia(lattice: Lattice, side: np.ndarray, ends: list[int]) -> float:
    """Moment of inertia [kg m^2] of masses about their centre along an axis at rest."""
    x, m = lattice.position[side], lattice.mass[side]
    r = x - (m @ x) / m.sum()
    if x.shape[1] == 3:
        n = lattice.position[ends[1]] - lattice.position[ends[0]]
        r = np.cross(n / np.linalg.norm(n), r)
    return float((m[:, None] * r**2).sum()) if (r**2).sum() > 1e-12 * (x**2).sum() else 0.0


def fastest_decay(lattice: Lattice, motors: object, torque: np.ndarray, speed: np.ndarray) -> float:
    """Largest rate [1/s] at which a motor's own friction stops it, of all worlds: T / w (1 / I_0 + 1 / I_1)."""
    axis, start, mass = (a.numpy() for a in (motors.axis, motors.start, motors.mass))
    inertia = [_inertia(lattice, mass[start[s] : start[s + 1]], list(axis[s // 2])) for s in range(2 * len(axis))]
    compliance = (1.0 / np.reshape(inertia, (-1, 2))).sum(axis=1)
    return float((torque / speed * compliance).max())


@functools.cache
def _rotation() -> tuple[wp.Function, wp.Function]:
    """Warp functions axis(motors, x, first, motor), where an axis points, and swing(n, r), n x r."""
    MotorArrays = motor_arrays()

    @wp.func
    def axis(motors: MotorArrays, x: wp.array[NODE], first: int, motor: int):
        """Unit vector along the axis of a motor now; z where its ends are one mass."""
        n = NODE(real(0.0), real(0.0), real(1.0), real(0.0))
        a = motors.axis[motor, 0]
        b = motors.axis[motor, 1]
        if a != b:
            n = wp.normalize(x[first + b] - x[first + a])
        return n

    @wp.func
    def swing(n: NODE, r: NODE):
        """N x r."""
        return NODE(n[1] * r[2] - n[2] * r[1], n[2] * r[0] - n[0] * r[2], n[0] * r[1] - n[1] * r[0], real(0.0))

    return axis, swing


@functools.cache
def motor_kernels() -> tuple[wp.Kernel, wp.Kernel, wp.Kernel, wp.Kernel]:
    """Kernels (gather, spin, drive, push), in the order in which they run."""
    MotorArrays = motor_arrays()
    axis, swing = _rotation()
    module = wp.get_module("warpbots.springs.motors")

    @wp.kernel(module=module)
    def gather(
        # model
        motors: MotorArrays,
        mass: wp.array2d[real],
        # state
        x: wp.array[NODE],
        v: wp.array[NODE],
        # out
        mass_out: wp.array2d[real],
        moment_out: wp.array2d[NODE],
        momentum_out: wp.array2d[NODE],
    ):
        """Sums of m, m x and m v over a side."""
        w, s = wp.tid()
        total = real(0.0)
        moment = NODE()
        momentum = NODE()
        for e in range(motors.start[s], motors.start[s + 1]):
            i = motors.mass[e]
            total += mass[w, i]
            moment += mass[w, i] * x[w * motors.masses + i]
            momentum += mass[w, i] * v[w * motors.masses + i]
        mass_out[w, s] = total
        moment_out[w, s] = moment
        momentum_out[w, s] = momentum

    @wp.kernel(module=module)
    def spin(
        # model
        motors: MotorArrays,
        mass: wp.array2d[real],
        # state
        x: wp.array[NODE],
        v: wp.array[NODE],
        whole: wp.array2d[real],
        moment: wp.array2d[NODE],
        momentum: wp.array2d[NODE],
        # out
        inertia_out: wp.array2d[real],
        spin_out: wp.array2d[real],
    ):
        """I = sum m |n x r|^2, L = sum m (n x r) . (v - v_c)."""
        w, s = wp.tid()
        first = w * motors.masses
        n = axis(motors, x, first, s // 2)
        centre = moment[w, s] / whole[w, s]
        drift = momentum[w, s] / whole[w, s]
        inertia = real(0.0)
        spin = real(0.0)
        for e in range(motors.start[s], motors.start[s + 1]):
            i = motors.mass[e]
            t = swing(n, x[first + i] - centre)
            inertia += mass[w, i] * wp.dot(t, t)
            spin += mass[w, i] * wp.dot(t, v[first + i] - drift)
        inertia_out[w, s] = inertia
        spin_out[w, s] = spin

    @wp.kernel(module=module)
    def drive(
        # model
        motors: MotorArrays,
        torque: wp.array2d[real],
        speed: wp.array2d[real],
        # state
        u: wp.array2d[real],
        inertia: wp.array2d[real],
        spin: wp.array2d[real],
        # out
        torque_out: wp.array2d[real],
    ):
        """T = T_max (u - w / w_max) on the rotor, -T on the stator."""
        w, k = wp.tid()
        relative = spin[w, 2 * k + 1] / inertia[w, 2 * k + 1] - spin[w, 2 * k] / inertia[w, 2 * k]
        T = torque[w, k] * (u[w, motors.channel[k]] - relative / speed[w, k])
        torque_out[w, 2 * k] = -T
        torque_out[w, 2 * k + 1] = T

    @wp.kernel(module=module)
    def push(
        # model
        motors: MotorArrays,
        mass: wp.array2d[real],
        # state
        x: wp.array[NODE],
        whole: wp.array2d[real],
        moment: wp.array2d[NODE],
        inertia: wp.array2d[real],
        torque: wp.array2d[real],
        # out
        force_out: wp.array[NODE],
    ):
        """F += T / I m n x r over the sides that a mass belongs to; no two threads have one mass."""
        w, t = wp.tid()
        first = w * motors.masses
        i = motors.turned[t]
        total = NODE()
        for e in range(motors.row[t], motors.row[t + 1]):
            s = motors.side[e]
            n = axis(motors, x, first, s // 2)
            r = x[first + i] - moment[w, s] / whole[w, s]
            total += torque[w, s] / inertia[w, s] * mass[w, i] * swing(n, r)
        wp.atomic_add(force_out, first + i, total)

    return gather, spin, drive, push


def turn(
    motors: object,
    sums: MotorScratch,
    parameters: list[wp.array],
    control: wp.array,
    x: wp.array,
    v: wp.array,
    force: wp.array,
) -> None:
    """Add the forces of all motors at a stage.

    Args:
        motors: From `motors_of`.
        sums: Filled on the way.
        parameters: Masses [kg], shape (worlds, n_masses), torques [N m] and speeds [rad/s], shape (worlds, n_motors).
        control: Control signals, shape (worlds, channels).
        x: Positions of the stage, shape (worlds * n_masses,).
        v: Velocities of the stage, likewise.
        force: What the forces are added to, likewise.
    """
    launch_all(_launches(motors, sums, parameters, control, x, v, force), x.device)


def adj_turn(
    motors: object,
    sums: MotorScratch,
    parameters: list[wp.array],
    control: wp.array,
    x: wp.array,
    v: wp.array,
    x_adj: wp.array,
    v_adj: wp.array,
    force_adj: wp.array,
) -> None:
    """Add to gradients from `force_adj` at a stage; arguments as of `turn`, which is run again for its sums."""
    mass, torque, speed = parameters
    steps = _launches(motors, sums, parameters, control, x, v, force_adj)
    launch_all(steps[:3], x.device)
    clear_gradients(vars(sums).values())
    none = motor_arrays()()
    adjoints = (
        ([none, mass.grad, x_adj, v_adj], [sums.mass.grad, sums.moment.grad, sums.momentum.grad]),
        (
            [none, mass.grad, x_adj, v_adj, sums.mass.grad, sums.moment.grad, sums.momentum.grad],
            [sums.inertia.grad, sums.spin.grad],
        ),
        ([none, torque.grad, speed.grad, control.grad, sums.inertia.grad, sums.spin.grad], [sums.torque.grad]),
        (
            [none, mass.grad, x_adj, sums.mass.grad, sums.moment.grad, sums.inertia.grad, sums.torque.grad],
            [force_adj],
        ),
    )
    launch_adjoints(steps, adjoints, x.device)


def _launches(
    motors: object,
    sums: MotorScratch,
    parameters: list[wp.array],
    control: wp.array,
    x: wp.array,
    v: wp.array,
    force: wp.array,
) -> list[Launch]:
    """Kernel, size, inputs and outputs of every launch."""
    mass, torque, speed = parameters
    gather, spin, drive, push = motor_kernels()
    sides, each = sums.mass.shape, torque.shape
    turned = (sides[0], motors.turned.size)
    centres = [sums.mass, sums.moment]
    return [
        (gather, sides, [motors, mass, x, v], [*centres, sums.momentum]),
        (spin, sides, [motors, mass, x, v, *centres, sums.momentum], [sums.inertia, sums.spin]),
        (drive, each, [motors, torque, speed, control, sums.inertia, sums.spin], [sums.torque]),
        (push, turned, [motors, mass, x, *centres, sums.inertia, sums.torque], [force]),
    ]
