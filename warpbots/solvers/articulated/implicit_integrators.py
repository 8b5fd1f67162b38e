"""The implicit schemes: what a stage of each makes of the past.

All are of one form. A stage displaces the coordinates by x; its rate is c x + rate, its acceleration c v + accel.

    BDF1     c = 1 / h                        rate = 0                  accel = -c v_n
    BDF2     c = (1 + 2 r) / (1 + r) / h      rate = b x_{n-1}          accel = -(1 + r) / h v_n + b v_{n-1}
    SDIRK2   c = 1 / (g h), first stage       rate = 0                  accel = -c v_n
                            second stage      rate = -k c x_1           accel = -c v_n - k c (v_1 - v_n)

with b = r^2 / (1 + r) / h for the ratio r of this step to the last one, g = 1 - 1 / sqrt 2, k = (1 - g) / g, and the
coordinates x_{n-1} of the last step in the chart of this one. BDF2 begins with a step of SDIRK2 (Nishikawa 2019, "On
large start-up error of BDF2").
"""

import math

import warp as wp

from warpbots.solvers.articulated.joints import BALL, FIXED, cayley_inverse
from warpbots.solvers.articulated.kinematics import ball, joint_velocity, of_joint
from warpbots.solvers.articulated.robot_arrays import Tree
from warpbots.solvers.articulated.spatial import quat, scalar, vec3
from warpbots.solvers.articulated.step_arrays import Stage

__all__ = ["BDF1", "BDF2", "INTEGRATORS", "SDIRK2", "Past", "finish", "predict", "recall", "stages"]

BDF1, BDF2, SDIRK2 = (wp.constant(k) for k in range(3))

INTEGRATORS = {"bdf1": BDF1, "bdf2": BDF2, "sdirk2": SDIRK2}
"""Code of each integrator."""

_GAMMA = wp.constant(scalar(1.0 - math.sqrt(0.5)))
_KAPPA = wp.constant(scalar(1.0 / (1.0 - math.sqrt(0.5)) - 1.0))
_ZERO, _ONE, _TWO = (wp.constant(scalar(c)) for c in (0.0, 1.0, 2.0))


@wp.struct
class Past:
    """Where a step starts, all worlds in one row, and how long it is.

    method: Code of the integrator.
    h: Length of the step [s].
    q: Joint coordinates, shape (worlds * coordinates,).
    qd: Joint velocities, shape (worlds * freedom,).
    previous_q: Joint coordinates before the last step, of use if there was one.
    previous_qd: Joint velocities before the last step.
    previous_dt: Length of the last step [s], 0 if there was none, shape (worlds,).
    """

    method: int
    h: scalar
    q: wp.array[scalar]
    qd: wp.array[scalar]
    previous_q: wp.array[scalar]
    previous_qd: wp.array[scalar]
    previous_dt: wp.array[scalar]


@wp.func
def stages(past: Past, w: int):
    """Number of stages of the step of a world."""
    n = int(1)
    if past.method == SDIRK2 or (past.method == BDF2 and past.previous_dt[w] == _ZERO):
        n = 2
    return n


@wp.func
def _last(tree: Tree, past: Past, w: int, e: int):
    """Coordinates of an element before the last step in the chart of this one."""
    i = w * tree.coordinates + tree.coordinate[e]
    x = vec3()
    if tree.kind[e] == BALL:
        q = quat(past.q[i], past.q[i + 1], past.q[i + 2], past.q[i + 3])
        p = quat(
            past.previous_q[i], past.previous_q[i + 1], past.previous_q[i + 2],
            past.previous_q[i + 3],
        )  # fmt: skip
        x = cayley_inverse(wp.quat_inverse(wp.normalize(q)) * p)
    elif tree.kind[e] != FIXED:
        x = vec3(past.previous_q[i] - past.q[i], _ZERO, _ZERO)
    return x


@wp.func
def inverse_length(past: Past, w: int):
    """The c of the stages of a step [1/s]."""
    c = _ONE / past.h
    if past.method != BDF1:
        if stages(past, w) == 2:
            c = c / _GAMMA
        else:
            r = past.h / past.previous_dt[w]
            c = c * (_ONE + _TWO * r) / (_ONE + r)
    return c


@wp.func
def recall(tree: Tree, past: Past, first: Stage, stage: Stage, w: int, e: int, number: int):
    """Write what a stage makes of the past of an element; `number` is 0 for the first of two stages and 1 otherwise."""
    c = inverse_length(past, w)
    v = of_joint(tree, past.qd, w, e)
    rate = vec3()
    accel = -c * v
    if number == 1 and past.method != BDF1:
        if stages(past, w) == 2:
            x = of_joint(tree, first.x, w, e)
            rate = -_KAPPA * c * x
            accel = accel - _KAPPA * c * (joint_velocity(tree, first, w, e) - v)
        else:
            r = past.h / past.previous_dt[w]
            b = r * r / (_ONE + r) / past.h
            rate = b * _last(tree, past, w, e)
            accel = b * of_joint(tree, past.previous_qd, w, e) - (_ONE + r) / past.h * v
    i = w * tree.freedom + tree.dof[e]
    kind = tree.kind[e]
    if kind == BALL:
        for k in range(3):
            stage.rate[i + k] = rate[k]
            stage.accel[i + k] = accel[k]
    elif kind != FIXED:
        stage.rate[i] = rate[0]
        stage.accel[i] = accel[0]


@wp.func
def predict(tree: Tree, past: Past, first: Stage, stage: Stage, w: int, j: int, number: int):
    """Displacement at which Newton's method starts: velocities go on changing as they did."""
    i = w * tree.freedom + j
    v = past.qd[i]
    if number == 1:
        if stages(past, w) == 2:
            v += (first.c[w] * first.x[i] - v) / _GAMMA
        elif past.method == BDF2:
            v += (v - past.previous_qd[i]) * past.h / past.previous_dt[w]
    stage.x[i] = (v - stage.rate[i]) / stage.c[w]


@wp.func
def finish(tree: Tree, past: Past, stage: Stage, end: Past, w: int, e: int):
    """Write coordinates and velocities of an element at the end of a stage, which is that of the step."""
    kind = tree.kind[e]
    i = w * tree.coordinates + tree.coordinate[e]
    j = w * tree.freedom + tree.dof[e]
    if kind == BALL:
        v = joint_velocity(tree, stage, w, e)
        q = ball(tree, stage, w, e)
        for k in range(4):
            end.q[i + k] = q[k]
            end.previous_q[i + k] = past.q[i + k]
        for k in range(3):
            end.qd[j + k] = v[k]
            end.previous_qd[j + k] = past.qd[j + k]
    elif kind != FIXED:
        end.q[i] = past.q[i] + stage.x[j]
        end.qd[j] = stage.c[w] * stage.x[j] + stage.rate[j]
        end.previous_q[i] = past.q[i]
        end.previous_qd[j] = past.qd[j]
