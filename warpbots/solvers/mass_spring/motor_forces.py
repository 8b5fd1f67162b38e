"""Forces of motors: torques between two regions about the axis of their attachment; differentiated by Warp.

A motor has two sides: side 0 is the stator, side 1 the rotor. Let c be the centre of mass of a side and v_c its
velocity. About the axis through c along the unit vector n, the side has the moment of inertia and the angular velocity

    I = sum m |n x r|^2,   w = 1/I sum m (n x r) . (v - v_c),   r = x - c.

A torque T on the side is applied as the forces f = (T / I) m n x r on its masses. The sum of these forces is zero, and
their torque along n is T. Both sides use the current axis of the attachment, so that momentum, and angular momentum
along the axis, are conserved.

Vectors are padded with zeros (`NODE`); in 2D the axis is z. Loops have dynamic bounds and only add up terms, as Warp's
backward pass requires; each nonlinear function of the sums is in a separate kernel.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, Launch, clear_gradients, launch_adjoints, launch_all, real
from warpbots.solvers.mass_spring.motors import motor_arrays

__all__ = ["MotorWorkspace", "add_motor_forces", "adj_motor_forces", "motor_kernels"]


class MotorWorkspace:
    """Sums over the masses of each side of each motor; every stage fills the arrays anew, and all have gradients.

    Attributes:
        mass: Total mass of each side [kg], shape (worlds, n_sides).
        moment: Sum of mass times position of each side [kg m], shape (worlds, n_sides).
        momentum: Momentum of each side [kg m/s], shape (worlds, n_sides).
        inertia: Moment of inertia of each side about the axis of the motor [kg m^2], shape (worlds, n_sides).
        spin: Angular momentum of each side about the axis of the motor [kg m^2/s], shape (worlds, n_sides).
        torque: Torque on each side [N m], shape (worlds, n_sides).
    """

    def __init__(self, worlds: int, motors: int, device: wp.Device):
        def zeros(dtype: type) -> wp.array:
            return wp.zeros((worlds, 2 * motors), dtype=dtype, device=device, requires_grad=True)

        self.mass, self.moment, self.momentum = zeros(real), zeros(NODE), zeros(NODE)
        self.inertia, self.spin, self.torque = zeros(real), zeros(real), zeros(real)


@functools.cache
def _rotation() -> tuple[wp.Function, wp.Function]:
    """Two Warp functions: axis(motors, x, first, motor), and the cross product cross(n, r).

    The first function returns the unit vector along the axis of a motor.
    """
    MotorArrays = motor_arrays()

    @wp.func
    def axis(motors: MotorArrays, x: wp.array[NODE], first: int, motor: int):
        """Unit vector along the current axis of a motor; the z axis if both ends of the axis are the same mass.

        `first` is the index in x of the first mass of the world.
        """
        n = NODE(real(0.0), real(0.0), real(1.0), real(0.0))
        a = motors.axis[motor, 0]
        b = motors.axis[motor, 1]
        if a != b:
            n = wp.normalize(x[first + b] - x[first + a])
        return n

    @wp.func
    def cross(n: NODE, r: NODE):
        """Cross product n x r of the first three components; the fourth component is 0."""
        return NODE(n[1] * r[2] - n[2] * r[1], n[2] * r[0] - n[0] * r[2], n[0] * r[1] - n[1] * r[0], real(0.0))

    return axis, cross


@functools.cache
def motor_kernels() -> tuple[wp.Kernel, wp.Kernel, wp.Kernel, wp.Kernel]:
    """The four kernels of motors, in the order in which they run: sums, inertias, torques and forces."""
    MotorArrays = motor_arrays()
    axis, cross = _rotation()
    module = wp.get_module("warpbots.springs.motors")

    @wp.kernel(module=module)
    def sum_sides(
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
        """Sums of m, m x and m v over the masses of a side; launched over (worlds, sides)."""
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
    def inertia_of_sides(
        # model
        motors: MotorArrays,
        mass: wp.array2d[real],
        # state
        x: wp.array[NODE],
        v: wp.array[NODE],
        # work
        whole: wp.array2d[real],
        moment: wp.array2d[NODE],
        momentum: wp.array2d[NODE],
        # out
        inertia_out: wp.array2d[real],
        spin_out: wp.array2d[real],
    ):
        """I = sum m |n x r|^2, L = sum m (n x r) . (v - v_c) over the masses of a side; launched over (worlds, sides).

        The array `whole` holds the total mass of each side.
        """
        w, s = wp.tid()
        first = w * motors.masses
        n = axis(motors, x, first, s // 2)
        centre = moment[w, s] / whole[w, s]
        drift = momentum[w, s] / whole[w, s]
        inertia = real(0.0)
        spin = real(0.0)
        for e in range(motors.start[s], motors.start[s + 1]):
            i = motors.mass[e]
            t = cross(n, x[first + i] - centre)
            inertia += mass[w, i] * wp.dot(t, t)
            spin += mass[w, i] * wp.dot(t, v[first + i] - drift)
        inertia_out[w, s] = inertia
        spin_out[w, s] = spin

    @wp.kernel(module=module)
    def torque_on_sides(
        # model
        motors: MotorArrays,
        torque: wp.array2d[real],
        speed: wp.array2d[real],
        # state
        u: wp.array2d[real],
        # work
        inertia: wp.array2d[real],
        spin: wp.array2d[real],
        # out
        torque_out: wp.array2d[real],
    ):
        """T = T_max (u - w / w_max) on the rotor and -T on the stator; launched over (worlds, motors).

        w is the angular velocity of the rotor relative to the stator, w_max the speed of the motor without load.
        """
        w, k = wp.tid()
        relative = spin[w, 2 * k + 1] / inertia[w, 2 * k + 1] - spin[w, 2 * k] / inertia[w, 2 * k]
        T = torque[w, k] * (u[w, motors.channel[k]] - relative / speed[w, k])
        torque_out[w, 2 * k] = -T
        torque_out[w, 2 * k + 1] = T

    @wp.kernel(module=module)
    def force_on_masses(
        # model
        motors: MotorArrays,
        mass: wp.array2d[real],
        # state
        x: wp.array[NODE],
        # work
        whole: wp.array2d[real],
        moment: wp.array2d[NODE],
        inertia: wp.array2d[real],
        torque: wp.array2d[real],
        # out
        force_out: wp.array[NODE],
    ):
        """f += sum of (T / I) m n x r over all sides to which a mass belongs; launched over (worlds, n_driven).

        The array `whole` holds the total mass of each side.
        """
        w, t = wp.tid()
        first = w * motors.masses
        i = motors.driven[t]
        total = NODE()
        for e in range(motors.row[t], motors.row[t + 1]):
            s = motors.side[e]
            n = axis(motors, x, first, s // 2)
            r = x[first + i] - moment[w, s] / whole[w, s]
            total += torque[w, s] / inertia[w, s] * mass[w, i] * cross(n, r)
        wp.atomic_add(force_out, first + i, total)

    return sum_sides, inertia_of_sides, torque_on_sides, force_on_masses


def add_motor_forces(
    motors: object,
    sums: MotorWorkspace,
    parameters: list[wp.array],
    control: wp.array,
    x: wp.array,
    v: wp.array,
    force: wp.array,
) -> None:
    """Add the forces of all motors to the forces at a stage.

    Args:
        motors: Motors as a Warp struct, from `motors_of`.
        sums: Sums over the masses of each side; the function fills them.
        parameters: Three arrays: the masses [kg], shape (worlds, n_masses), and the torques [N m] and speeds [rad/s]
            of the motors, each of shape (worlds, n_motors).
        control: Control signals, shape (worlds, channels).
        x: Positions of the stage, shape (worlds * n_masses,).
        v: Velocities of the stage, shape (worlds * n_masses,).
        force: Forces to add to [N], shape (worlds * n_masses,).
    """
    launch_all(_launches(motors, sums, parameters, control, x, v, force), x.device)


def adj_motor_forces(
    motors: object,
    sums: MotorWorkspace,
    parameters: list[wp.array],
    control: wp.array,
    x: wp.array,
    v: wp.array,
    x_adj: wp.array,
    v_adj: wp.array,
    force_adj: wp.array,
) -> None:
    """Adjoint of `add_motor_forces`: add to the gradients of the inputs, from the gradient `force_adj` of the forces.

    The function computes the sums again.
    """
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
    sums: MotorWorkspace,
    parameters: list[wp.array],
    control: wp.array,
    x: wp.array,
    v: wp.array,
    force: wp.array,
) -> list[Launch]:
    """List the kernel launches in the order in which they run: kernel, size, inputs and outputs of each."""
    mass, torque, speed = parameters
    sum_sides, inertia, drive, push = motor_kernels()
    sides, each = sums.mass.shape, torque.shape
    driven = (sides[0], motors.driven.size)
    centres = [sums.mass, sums.moment]
    return [
        (sum_sides, sides, [motors, mass, x, v], [*centres, sums.momentum]),
        (inertia, sides, [motors, mass, x, v, *centres, sums.momentum], [sums.inertia, sums.spin]),
        (drive, each, [motors, torque, speed, control, sums.inertia, sums.spin], [sums.torque]),
        (push, driven, [motors, mass, x, *centres, sums.inertia, sums.torque], [force]),
    ]
