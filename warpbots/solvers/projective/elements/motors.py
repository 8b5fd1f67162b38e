"""Motors: torques between a rotor and a stator about the axis of their attachment.

The rotor and the stator are the sides of a motor. When a step begins, a side has the moment of inertia I about the axis
n through its centre of mass c, and its nodes have the arms b,

    I = sum m |n x r|^2,   b_i = m_i n x r_i / I,   r_i = x_i - c,

with the sign of the torque on the side: + on the rotor, - on the stator. The forces T b_i on a side have the torque T
about the axis, and their sum is zero. With the displacements u of a step, the angular velocity of the rotor relative to
the stator at the end of the step is w = b . u / h. A step takes the torque

    T = T_max (control - w / w_max),   f_i = T b_i,

at the speed at its end: the force of the speed-dependent part is minus the gradient of T_max / (w_max h) (b . u)^2 / 2,
so that the resistance of the motor is stable for every step length. The axis and arms are taken at the start of the
step; this error is of second order in the angle per step, like the error of implicit Euler in angular momentum.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.scene import Motor, Scene, SceneError
from warpbots.solvers.projective.elements.element import Kind, Place, Point, at, corner, raise_to, row, scaling_by
from warpbots.solvers.projective.elements.nodes import NodeArrays, packed

__all__ = ["MOTORS", "MotorArrays", "motorised"]

_vec = vector(3)
_node = wp.types.vector(1, wp.int32)
_ends = wp.types.vector(8, wp.int32)
_shares = wp.types.vector(8, real)


@wp.struct
class MotorArrays:
    """Nodes that motors drive; arrays that may differ between worlds hold all worlds in one row.

    Sides are numbered stator, rotor of the first motor, and so on.

    place: Where the elements, which are the nodes of the sides, are among all elements.
    node: The node, shape (count,).
    motor_side: Side of each element, shape (count,).
    motor_first: First element of each side, and the end of the last side, shape (2 * motors + 1,).
    motor_end: Nodes of the elements at both ends of each axis, shape (motors,).
    motor_weight: Weights of the nodes in `motor_end`, negative for the first end [1], shape (motors,).
    motor_channel: Control channel of each motor, shape (motors,).
    motor_node: Nodes that any motor drives, shape (driven,).
    motor_row: First entry of each driven node in `motor_item`, and the end of the last node, shape (driven + 1,).
    motor_item: Elements of the driven nodes, grouped by nodes, shape (count,).
    motor_slope: Value of T_max / w_max in the matrix of the global step [N m s], shape (motors,).
    torque: T_max [N m], shape (worlds * motors,).
    speed: w_max [rad/s], shape (worlds * motors,).
    side_mass: Mass of each side [kg], shape (worlds * count,), of which the first 2 * motors of a world are used.
    side_moment: Sum of m x over each side [kg m], shape and use as of `side_mass`.
    side_inertia: I of each side [kg m^2], shape and use as of `side_mass`.
    arm: b of each element with its sign [1/m], shape (worlds * count,).
    turned: b . u of each motor [rad], shape (worlds * count,), of which the first entries of a world are used, one for
        each motor.
    sensed: b . a of each motor for a vector a other than u, shape and use as of `turned`.
    nominal: Unused, shape (count,).
    """

    place: Place
    node: wp.array[_node]
    motor_side: wp.array[int]
    motor_first: wp.array[int]
    motor_end: wp.array[_ends]
    motor_weight: wp.array[_shares]
    motor_channel: wp.array[int]
    motor_node: wp.array[int]
    motor_row: wp.array[int]
    motor_item: wp.array[int]
    motor_slope: wp.array[real]
    torque: wp.array[real]
    speed: wp.array[real]
    side_mass: wp.array[real]
    side_moment: wp.array[_vec]
    side_inertia: wp.array[real]
    arm: wp.array[_vec]
    turned: wp.array[real]
    sensed: wp.array[real]
    nominal: wp.array[real]


@wp.func
def axis(motors: MotorArrays, x: wp.array[_vec], w: int, motor: int):
    """Unit vector n of the axis, from the first end of the attachment to the second."""
    n = _vec()
    for c in range(8):
        n += motors.motor_weight[motor][c] * x[w * motors.place.nodes + motors.motor_end[motor][c]]
    return wp.normalize(n)


@wp.func
def lever(motors: MotorArrays, x: wp.array[_vec], w: int, s: int, e: int):
    """n x r of element e of side s."""
    k = row(motors.place, w, s)
    r = x[w * motors.place.nodes + motors.node[e][0]] - motors.side_moment[k] / motors.side_mass[k]
    return wp.cross(axis(motors, x, w, s // 2), r)


@wp.kernel
def sum_kernel(
    # model
    motors: MotorArrays,
    nodes: NodeArrays,
    # state
    x: wp.array[_vec],
    # out
    motors_out: MotorArrays,
):
    """Write the sums of m and m x over each side."""
    w, s = wp.tid()
    total = real(0.0)
    moment = _vec()
    for e in range(motors.motor_first[s], motors.motor_first[s + 1]):
        i = w * motors.place.nodes + motors.node[e][0]
        total += nodes.mass[i]
        moment += nodes.mass[i] * x[i]
    motors_out.side_mass[row(motors.place, w, s)] = total
    motors_out.side_moment[row(motors.place, w, s)] = moment


@wp.kernel
def inertia_kernel(
    # model
    motors: MotorArrays,
    nodes: NodeArrays,
    # state
    x: wp.array[_vec],
    # out
    motors_out: MotorArrays,
):
    """I = sum m |n x r|^2."""
    w, s = wp.tid()
    inertia = real(0.0)
    for e in range(motors.motor_first[s], motors.motor_first[s + 1]):
        t = lever(motors, x, w, s, e)
        inertia += nodes.mass[w * motors.place.nodes + motors.node[e][0]] * wp.dot(t, t)
    motors_out.side_inertia[row(motors.place, w, s)] = inertia


@wp.kernel
def arm_kernel(
    # model
    motors: MotorArrays,
    nodes: NodeArrays,
    # state
    x: wp.array[_vec],
    # out
    motors_out: MotorArrays,
):
    """b = m n x r / I on the rotor, -b on the stator."""
    w, e = wp.tid()
    s = motors.motor_side[e]
    m = real(2 * (s % 2) - 1) * nodes.mass[w * motors.place.nodes + motors.node[e][0]]
    arm = m / motors.side_inertia[row(motors.place, w, s)] * lever(motors, x, w, s, e)
    motors_out.arm[row(motors.place, w, e)] = arm


@wp.kernel
def turn_kernel(
    # model
    motors: MotorArrays,
    # state
    active: wp.array[int],
    u: wp.array[NODE],
    # out
    motors_out: MotorArrays,
):
    """b . u."""
    w, k = wp.tid()
    if active[w] == 0:
        return
    total = real(0.0)
    for e in range(motors.motor_first[2 * k], motors.motor_first[2 * k + 2]):
        total += wp.dot(motors.arm[row(motors.place, w, e)], at(u, w * motors.place.stride + motors.node[e][0]))
    motors_out.turned[row(motors.place, w, k)] = total


@wp.kernel
def force_kernel(
    # model
    motors: MotorArrays,
    # state
    h: real,
    active: wp.array[int],
    control: wp.array2d[real],
    # out
    force_out: wp.array[_vec],
):
    """f = T_max (control - b . u / (h w_max)) b."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    k = motors.motor_side[e] // 2
    j = w * motors.motor_channel.shape[0] + k
    speed = motors.turned[row(motors.place, w, k)] / h
    torque = motors.torque[j] * (control[w, motors.motor_channel[k]] - speed / motors.speed[j])
    force_out[corner(motors.place, w, e)] = torque * motors.arm[row(motors.place, w, e)]


@wp.kernel(enable_backward=False)
def sense_kernel(
    # model
    motors: MotorArrays,
    # state
    active: wp.array[int],
    a: wp.array[NODE],
    # out
    motors_out: MotorArrays,
):
    """b . a."""
    w, k = wp.tid()
    if active[w] == 0:
        return
    total = real(0.0)
    for e in range(motors.motor_first[2 * k], motors.motor_first[2 * k + 2]):
        total += wp.dot(motors.arm[row(motors.place, w, e)], at(a, w * motors.place.stride + motors.node[e][0]))
    motors_out.sensed[row(motors.place, w, k)] = total


@wp.kernel(enable_backward=False)
def product_kernel(
    # model
    motors: MotorArrays,
    nodes: NodeArrays,
    # state
    h: real,
    active: wp.array[int],
    # out
    residual_out: wp.array[NODE],
):
    """Subtract T_max / (w_max h) b (b . a), except where nodes are fixed."""
    w, t = wp.tid()
    i = motors.motor_node[t]
    if active[w] == 0 or nodes.held[i] >= 0:
        return
    total = _vec()
    for p in range(motors.motor_row[t], motors.motor_row[t + 1]):
        e = motors.motor_item[p]
        k = motors.motor_side[e] // 2
        j = w * motors.motor_channel.shape[0] + k
        slope = motors.torque[j] / (motors.speed[j] * h) * motors.sensed[row(motors.place, w, k)]
        total += slope * motors.arm[row(motors.place, w, e)]
    y = w * motors.place.stride + i
    residual_out[y] = residual_out[y] - packed(total)


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    motors: MotorArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """Raise the maxima to the ratio of T_max / w_max to its value in the matrix of the global step."""
    w, e = wp.tid()
    k = motors.motor_side[e] // 2
    j = w * motors.motor_channel.shape[0] + k
    raise_to(scaling_out, w, e, motors.torque[j] / (motors.speed[j] * motors.motor_slope[k]))


def motorised(scene: Scene, position: np.ndarray, mass: np.ndarray, regions: dict[str, np.ndarray], ends: dict) -> dict:
    """Fields of `Mesh` for motors.

    Args:
        scene: The scene.
        position: Nodes at rest [m], shape (n_nodes, 3).
        mass: Masses of the nodes [kg], shape (n_nodes,).
        regions: For every region, which nodes are in the region, each of shape (n_nodes,), bool.
        ends: The fields of `Mesh` for attachments.

    Raises:
        SceneError: A rotor or stator has no moment of inertia about the axis of its motor.
    """
    motors = [(c, a) for c, a in enumerate(scene.actuators) if isinstance(a, Motor)]
    first = dict(zip((a.name for a in scene.attachments), _starts([len(a.points) for a in scene.attachments])[:-1],
                     strict=True))  # fmt: skip
    sides, resistance, corners, weights = [], [], [np.zeros((0, 8), dtype=int)], [np.zeros((0, 8))]
    for _, motor in motors:
        points = first[motor.attachment] + np.arange(2)
        corners.append(ends["attachments"][points, :4].reshape(1, 8))
        weights.append((np.array([[-1.0], [1.0]]) * ends["attachment_weight"][points, :4]).reshape(1, 8))
        n = weights[-1][0] @ position[corners[-1][0]]
        arms = []
        for region in (motor.stator, motor.rotor):
            side = np.flatnonzero(regions[region] & (mass > 0.0))
            r = position[side] - mass[side] @ position[side] / mass[side].sum()
            lever = np.linalg.norm(np.cross(n / np.linalg.norm(n), r), axis=1)
            inertia = (mass[side] * lever**2).sum()
            if inertia <= 1e-12 * mass[side].sum() * (r**2).sum():
                raise SceneError(
                    f"Motor {motor.name!r}: the nodes of region {region!r} lie on a line along its axis and have no "
                    f"moment of inertia about it; make the region wider"
                )
            sides.append(side)
            arms.append(mass[side] * lever / inertia)
        total = sum(a.sum() for a in arms)
        resistance += [motor.max_torque / motor.max_speed * a * total for a in arms]
    node = np.concatenate([np.zeros(0, dtype=int), *sides])
    order = np.argsort(node, kind="stable")
    driven, row_start = np.unique(node[order], return_index=True)
    return {
        "motors": node[:, None],
        "motor_side": np.repeat(np.arange(len(sides)), [len(s) for s in sides]),
        "motor_first": _starts([len(s) for s in sides]),
        "motor_end": np.concatenate(corners),
        "motor_weight": np.concatenate(weights),
        "motor_channel": np.array([c for c, _ in motors], dtype=int),
        "motor_node": driven,
        "motor_row": np.append(row_start, len(node)),
        "motor_item": order,
        "motor_slope": np.array([m.max_torque / m.max_speed for _, m in motors]),
        "motor_resistance": np.concatenate([np.zeros(0), *resistance]),
    }


def _starts(counts: list[int]) -> np.ndarray:
    """Starts of consecutive runs with the lengths `counts`, and the end of the last run."""
    return np.cumsum([0, *counts])


def _blocks(mesh: object) -> np.ndarray:
    """T_max / w_max |b_i| sum_j |b_j|, a diagonal that is nowhere below T_max / w_max b b^T."""
    return mesh.motor_resistance[:, None, None]


def _begin(motors: MotorArrays, model: object, point: Point) -> list[tuple]:
    inputs = [motors, model.nodes, point.x, motors]
    sides = (model.worlds, 2 * motors.motor_channel.size)
    each = (model.worlds, motors.place.count)
    return [(sum_kernel, sides, inputs), (inertia_kernel, sides, inputs), (arm_kernel, each, inputs)]


def _forces(motors: MotorArrays, model: object, point: Point) -> list[tuple]:
    force = model.workspace.force
    return [
        (turn_kernel, (model.worlds, motors.motor_channel.size), [motors, point.active, point.u, motors]),
        (
            force_kernel, (model.worlds, motors.place.count),
            [motors, point.h, point.active, point.control, force],
        ),
    ]  # fmt: skip


def _stiffness(_motors: MotorArrays, _model: object, _point: Point) -> list[tuple]:
    """Returns no launches: the stiffness of a motor couples all its nodes, see `_product`."""
    return []


def _product(
    motors: MotorArrays, model: object, point: Point, active: wp.array, a: wp.array, out: wp.array
) -> list[tuple]:
    sensed = [motors, active, a, motors]
    inputs = [motors, model.nodes, point.h, active, out]
    return [
        (sense_kernel, (model.worlds, motors.motor_channel.size), sensed),
        (product_kernel, (model.worlds, motors.motor_node.size), inputs),
    ]


MOTORS = Kind(
    name="motors",
    arrays=MotorArrays,
    node=_node,
    constant={
        "motor_side": int,
        "motor_first": int,
        "motor_end": _ends,
        "motor_weight": _shares,
        "motor_channel": int,
        "motor_node": int,
        "motor_row": int,
        "motor_item": int,
        "motor_slope": real,
    },
    rested={
        "side_mass": real,
        "side_moment": _vec,
        "side_inertia": real,
        "arm": _vec,
        "turned": real,
        "sensed": real,
    },
    blocks=_blocks,
    begin=_begin,
    viscous=True,
    product=_product,
    scaling=scaling_by(scaling_kernel),
    forces=_forces,
    stiffness=_stiffness,
)
"""Nodes that motors drive."""
