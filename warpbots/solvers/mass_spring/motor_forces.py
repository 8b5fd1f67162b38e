"""Forces of motors: torques between two regions about the axis of their attachment; differentiated by Warp.

A motor has two sides, 0 the stator and 1 the rotor. About its centre of mass c, which moves at v_c, and about the axis
n, a side has the moment of inertia and the angular velocity

    I = sum m |n x r|^2,   w = 1/I sum m (n x r) . (v - v_c),   r = x - c,

and a torque T is applied as the forces f = (T / I) m n x r on its masses, which have no net force and the torque T
along n. Both sides use the axis of the attachment in its current position, so that momentum, and angular momentum along
the axis, are conserved.

Vectors are padded with zeros (`NODE`); in 2D the axis is z. Loops have dynamic bounds and only add up terms, as Warp's
backward pass requires; each nonlinear function of the sums is in a separate kernel.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, Launch, clear_gradients, launch_adjoints, launch_all, real
from warpbots.solvers.mass_spring.motors import motor_arrays

__all__ = ["MotorWorkspace", "add_motor_forces", "adj_motor_forces", "motor_kernels"]


class MotorWorkspace:
    """Sums over the masses of each side of each motor, with gradients; every stage fills them anew.

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


@functools.cache
def _rotation() -> tuple[wp.Function, wp.Function]:
    """Warp functions axis(motors, x, first, motor), the unit vector along the axis of a motor, and cross(n, r)."""
    MotorArrays = motor_arrays()

    @wp.func
    def axis(motors: MotorArrays, x: wp.array[NODE], first: int, motor: int):
        """Unit vector along the current axis of a motor; the z axis if both ends of the axis are the same mass."""
        n = NODE(real(0.0), real(0.0), real(1.0), real(0.0))
        a = motors.axis[motor, 0]
        b = motors.axis[motor, 1]
        if a != b:
            n = wp.normalize(x[first + b] - x[first + a])
        return n

    @wp.func
    def cross(n: NODE, r: NODE):
        """n x r."""
        return NODE(n[1] * r[2] - n[2] * r[1], n[2] * r[0] - n[0] * r[2], n[0] * r[1] - n[1] * r[0], real(0.0))

    return axis, cross


@functools.cache
def motor_kernels() -> tuple[wp.Kernel, wp.Kernel, wp.Kernel, wp.Kernel]:
    """Kernels (sum_sides, inertia, torque, force), in the order in which they run."""
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
        """T = T_max (u - w / w_max) on the rotor, -T on the stator."""
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
        """f += (T / I) m n x r, summed over the sides to which a mass belongs; each mass has one thread."""
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
        motors: From `motors_of`.
        sums: Sums over the sides; the function fills them.
        parameters: Masses [kg], shape (worlds, n_masses), torques [N m] and speeds [rad/s], shape (worlds, n_motors).
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
    """Adjoint of `add_motor_forces`: compute the sums again and add to gradients of the inputs, from `force_adj`."""
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
    """Kernel, size, inputs and outputs of every launch."""
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
