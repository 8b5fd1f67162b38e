"""Poses and velocities of obstacles that move, at any time in a step, and the velocity of their surfaces at a contact.

Friction depends on the velocity u of a surface. It is chosen so that a body that sticks to the surface moves with it
exactly, and needs the same friction force in all stages of a step. Let x(s) be the path of a point of an obstacle, at
the time s after the start of a step of length h. Then u(s) is the derivative of a polynomial through the poses

    BDF1     at 0 and h:            u = (x(h) - x(0)) / h,
    SDIRK2   at 0, g h and h:       u(s) = a + (b - a) (2 s / h - g),   a = (x(g h) - x(0)) / (g h),
                                                                        b = (x(h) - x(g h)) / ((1 - g) h).

The stages of SDIRK2 integrate a linear velocity exactly, (1 - g) u(g h) + g u(h) = (x(h) - x(0)) / h. The difference
formula of the stages, by which a body has its displacement at each stage, is not suitable: a body of mass m on a plate
with the acceleration a would need the forces -0.7 m a and 5.1 m a in the two stages, and slip.
"""

import warp as wp

from warpbots.contact.moving_frames import FrameMotions, MovingPoses, belt_of, pose_at
from warpbots.solvers.articulated.implicit_integrators import GAMMA, SDIRK2
from warpbots.solvers.articulated.spatial import scalar

__all__ = ["ObstacleMotion", "place_kernel", "place_world", "time_kernel"]

_ZERO, _ONE, _TWO = (wp.constant(scalar(c)) for c in (0.0, 1.0, 2.0))
_GAMMA = wp.constant(scalar(GAMMA))
_MOMENT = wp.constant(scalar(1e-6))
"""Time over which velocities are measured in a state at the start, before any step [s]."""


@wp.struct
class ObstacleMotion:
    """Inputs of the motion of all frames during a step.

    method: Code of the integrator.
    ended: 1 if `time` and `travel` are values at the end of the step, 0 if they are values at its start.
    length: Length of the step [s], shape (worlds,).
    time: Time [s], shape (worlds,).
    travel: Coordinates of the drives [m or rad], shape (worlds, drives).
    rate: Velocities of the drives [m/s or rad/s], shape (worlds, drives).
    position: Table of displacements [m], shape (worlds, poses, 3).
    rotation: Table of rotation vectors [rad], shape (worlds, poses, 3).
    surface: Velocities of the surfaces of obstacles that move [m/s], shape (worlds, frames of obstacles, 3).
    motions: Tables and drives of each frame.
    """

    method: int
    ended: int
    length: wp.array[scalar]
    time: wp.array[scalar]
    travel: wp.array2d[scalar]
    rate: wp.array2d[scalar]
    position: wp.array3d[scalar]
    rotation: wp.array3d[scalar]
    surface: wp.array3d[scalar]
    motions: FrameMotions


@wp.func
def pose_after(motion: ObstacleMotion, w: int, f: int, s: scalar):
    """Axes and origin [m] of frame f at the time s after the time of the state."""
    t = motion.time[w] + s
    R, p = pose_at(motion.motions, f, w, motion.position, motion.rotation, motion.travel, motion.rate, t, s)
    return R, p


@wp.func(inline=False)  # called several times in a kernel: compiled once, for it is long
def place_frame(motion: ObstacleMotion, w: int, f: int, at: scalar, poses: MovingPoses):
    """Write the pose and the velocity of frame f of world w at the time `at` after the start of the step."""
    h = motion.length[w]
    begin = _ZERO
    if motion.ended == 1:
        begin = -h
    if h == _ZERO:
        h = _MOMENT
    R, p = pose_after(motion, w, f, begin + at)
    R0, p0 = pose_after(motion, w, f, begin)
    R1, p1 = pose_after(motion, w, f, begin + h)
    turning = (R1 - R0) / h
    moving = (p1 - p0) / h
    if motion.method == SDIRK2:
        R2, p2 = pose_after(motion, w, f, begin + _GAMMA * h)
        share = (_TWO * at / h - _GAMMA) / (_ONE - _GAMMA)
        early_turning = (R2 - R0) / (_GAMMA * h)
        early_moving = (p2 - p0) / (_GAMMA * h)
        turning = early_turning + share * (turning - early_turning)
        moving = early_moving + share * (moving - early_moving)
    poses.rotation[w, f] = R
    poses.position[w, f] = p
    poses.linear[w, f] = moving
    poses.spin[w, f] = turning @ wp.transpose(R)
    poses.belt[w, f] = R @ belt_of(motion.motions, f, w, motion.surface, motion.rate)


@wp.func
def place_world(motion: ObstacleMotion, w: int, at: scalar, poses: MovingPoses):
    """Write the poses and velocities of all frames of world w at the time `at` after the start of the step."""
    for f in range(motion.motions.first.shape[0]):
        place_frame(motion, w, f, at, poses)


@wp.kernel
def place_kernel(
    # step
    motion: ObstacleMotion,
    at: wp.array[scalar],
    # out
    poses_out: MovingPoses,
):
    """Write the pose and the velocity of each frame at the time `at` after the start of the step."""
    w, f = wp.tid()
    place_frame(motion, w, f, at[w], poses_out)


@wp.kernel
def time_kernel(
    # step
    whole: wp.array[scalar],
    left: wp.array[scalar],
    length: wp.array[scalar],
    share: scalar,
    # out
    at_out: wp.array[scalar],
):
    """Write the time, after the start of a step, at which a share of a part of the step has passed.

    The part starts at the time `left` before the end of the step; the length of the step is `whole`.
    """
    w = wp.tid()
    at_out[w] = whole[w] - left[w] + share * length[w]
