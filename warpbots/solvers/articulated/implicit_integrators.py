"""The implicit integrators BDF1 and SDIRK2: the equations of their stages.

The stages of both integrators have the same form. A stage displaces the coordinates by x. The velocity at its end is v
= c x + rate, and the acceleration is c v + accel, with

    BDF1     c = 1 / h                        rate = 0                  accel = -c v_n
    SDIRK2   c = 1 / (g h), first stage       rate = 0                  accel = -c v_n
                            second stage      rate = -k c x_1           accel = -c v_n - k c (v_1 - v_n)

where h is the length of the step, v_n the velocity at its start, x_1 and v_1 are the displacement and velocity of the
first stage, g = 1 - 1 / sqrt 2 and k = (1 - g) / g (Alexander 1977, "Diagonally implicit Runge-Kutta methods for stiff
O.D.E.'s"). All stages use the control signals of the step, so a force that is constant within a step gives its full
impulse in that step. Multistep methods do not have this property: across a jump of the force, BDF2 gives 1.5 or 0.67
times the impulse.
"""

import math

import warp as wp

from warpbots.solvers.articulated.joints import BALL, FIXED
from warpbots.solvers.articulated.kinematics import ball, joint_velocity, of_joint
from warpbots.solvers.articulated.robot_arrays import JointTree
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage

__all__ = [
    "BDF1",
    "GAMMA",
    "INTEGRATORS",
    "LAST_STAGE",
    "SDIRK2",
    "Past",
    "finish",
    "inverse_length",
    "length_of",
    "predict",
    "recall",
]

BDF1, SDIRK2 = wp.constant(1), wp.constant(2)

INTEGRATORS = {"sdirk2": SDIRK2, "bdf1": BDF1}
"""Code of each integrator, which is its number of stages."""

GAMMA = 1.0 - math.sqrt(0.5)
"""Length of the first stage of SDIRK2 divided by the length of the step [1]."""

LAST_STAGE = {"sdirk2": GAMMA, "bdf1": 1.0}
"""Length of the last stage of each integrator divided by the length of the step [1]."""

_GAMMA = wp.constant(scalar(GAMMA))
_KAPPA = wp.constant(scalar(1.0 / (1.0 - math.sqrt(0.5)) - 1.0))
_ZERO, _ONE = (wp.constant(scalar(c)) for c in (0.0, 1.0))


@wp.struct
class Past:
    """State at the start of a step, flattened over all worlds, and the length of the step.

    method: Code of the integrator.
    h: Length of the step [s].
    lengths: If a step is taken in parts, the length of the current part in each world [s], shape (worlds,), or 0 if a
        world takes no step; otherwise an empty array, shape (0,).
    q: Joint coordinates at the start of the step [rad, m, or quaternions], shape (worlds * coordinates,).
    qd: Joint velocities at the start of the step [rad/s or m/s], shape (worlds * freedom,).
    """

    method: int
    h: scalar
    lengths: wp.array[scalar]
    q: wp.array[scalar]
    qd: wp.array[scalar]


@wp.func
def length_of(past: Past, w: int):
    """Length of the step, or of its current part, in world w [s]."""
    h = past.h
    if past.lengths.shape[0] > 0:
        h = past.lengths[w]
    return h


@wp.func
def inverse_length(past: Past, w: int):
    """Coefficient c of the stages of a step in world w [1/s]."""
    c = _ONE / length_of(past, w)
    if past.method == SDIRK2:
        c = c / _GAMMA
    return c


@wp.func
def recall(tree: JointTree, past: Past, first: ImplicitStage, stage: ImplicitStage, w: int, e: int, number: int):
    """Write the terms `rate` and `accel` of element e in a stage.

    `number` is 0 for the first of two stages, and 1 for the second stage or a single stage.
    """
    c = stage.c[w]
    v = of_joint(tree, past.qd, w, e)
    rate = vec3()
    accel = -c * v
    if number == 1 and past.method == SDIRK2:
        rate = -_KAPPA * c * of_joint(tree, first.x, w, e)
        accel = accel - _KAPPA * c * (joint_velocity(tree, first, w, e) - v)
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
def predict(tree: JointTree, past: Past, first: ImplicitStage, stage: ImplicitStage, w: int, j: int, number: int):
    """Write the initial displacement of velocity j for Newton's method.

    The guess assumes a constant velocity or, in the second of two stages, the acceleration of the first stage.
    """
    i = w * tree.freedom + j
    v = past.qd[i]
    if number == 1 and past.method == SDIRK2:
        v += (first.c[w] * first.x[i] - v) / _GAMMA
    stage.x[i] = (v - stage.rate[i]) / stage.c[w]


@wp.func
def finish(tree: JointTree, past: Past, stage: ImplicitStage, end: Past, w: int, e: int):
    """Write the coordinates and velocities of element e at the end of the step; `stage` is the last stage."""
    kind = tree.kind[e]
    i = w * tree.coordinates + tree.coordinate[e]
    j = w * tree.freedom + tree.dof[e]
    if kind == BALL:
        v = joint_velocity(tree, stage, w, e)
        q = ball(tree, stage, w, e)
        for k in range(4):
            end.q[i + k] = q[k]
        for k in range(3):
            end.qd[j + k] = v[k]
    elif kind != FIXED:
        end.q[i] = past.q[i] + stage.x[j]
        end.qd[j] = stage.c[w] * stage.x[j] + stage.rate[j]
