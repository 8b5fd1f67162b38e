"""Contact with obstacles; differentiated by Warp.

Contact acts on the velocity with which a step would end, and the position follows. Each contact changes the velocity
that the next one sees. Between its stages a scheme moves masses on as if nothing were in the way, so that where a mass
touches its way is that of its velocities at both ends alone. The loop over obstacles has constant bounds and is
unrolled: Warp's backward pass does not repeat a loop that is not, and takes what it accumulated for zero wherever a
later operation is not linear in it.
"""

import functools

import warp as wp

from warpbots.contact import constrain, obstacle_arrays, penetration
from warpbots.numerics import real, vector

__all__ = ["stop_kernel", "touch_kernel"]

_PARTS = wp.constant(8)
"""Points on the way of a mass at which it is looked for in an obstacle, if it is long."""


@functools.cache
def touch_kernel(dim: int, obstacle_count: int, stages: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: contact where the first stage lies inside of an obstacle.

    A surface gives way to nothing where its stiffness K is 0. Otherwise it pushes with K d (1 - a v . n), the law of
    Hunt and Crossley (1975) with an exponent of 1: continuous where things touch, and never a pull. Of friction there
    may be `copies` for each world (`warpbots.numerics.Copies`).

    Args:
        dim: 2 or 3.
        obstacle_count: Obstacles of the scene.
        stages: Stages of the scheme.
    """
    vec = vector(dim)
    ObstacleArrays = obstacle_arrays(dim)
    constrain_velocity, penetrate = constrain(dim), penetration(dim)

    module = wp.get_module(f"warpbots.springs.touch_{dim}d_{obstacle_count}_{stages}")
    wp.set_module_options({"max_unroll": max(16, obstacle_count)}, module)

    @wp.kernel(module=module)
    def touch(
        # model
        mass: wp.array[real],
        contact: wp.array[real],
        damping: real,
        obstacles: ObstacleArrays,
        friction: wp.array2d[real],
        count: int,
        copies: int,
        # scheme
        drift: real,
        follow: real,
        h: real,
        # state
        x: wp.array[vec],
        v: wp.array[vec],
        free_x: wp.array[vec],
        free_v: wp.array[vec],
        # out
        x_out: wp.array[vec],
        v_out: wp.array[vec],
    ):
        """v' = constrain(V), x' = X + follow (v' - V) for the end (X, V) of the free step.

        With several stages x' = x + (h - follow) v + follow v' where anything is touched; with one that is the same.
        """
        i = wp.tid()
        w = i // count
        n = i - w * count
        row = w * copies + (n & (copies - 1))
        allowed = free_v[i]
        touches = bool(False)
        for o in range(wp.static(obstacle_count)):
            depth, out = penetrate(obstacles, o, x[i] + drift * v[i])
            if depth > real(0.0):
                touches = True
                push = -wp.dot(allowed, out)
                if contact[n] > real(0.0):
                    push = contact[n] * depth * (real(1.0) + damping * push) * h / mass[i]
                allowed = constrain_velocity(
                    allowed, out, push, obstacles.condition[o], friction[row, o], obstacles.extra[o]
                )
        end = free_x[i] + follow * (allowed - free_v[i])
        if wp.static(stages > 1):  # noqa: SIM102 (decides what is compiled)
            if touches:
                end = x[i] + (h - follow) * v[i] + follow * allowed
        x_out[i] = end
        v_out[i] = allowed

    return touch


@functools.cache
def stop_kernel(dim: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: the position NaN, which stops the run, to those that pass an obstacle.

    A mass passes an obstacle if it is under one face and then under the opposite one, which pushes it out on the far
    side, or if it is outside again farther behind the face than `half` of the smallest thickness. That it was inside at
    all is seen at the start of the step and, if that is longer, on the way.
    """
    vec = vector(dim)
    ObstacleArrays, penetrate = obstacle_arrays(dim), penetration(dim)
    nan = real(float("nan"))

    @wp.kernel(module=wp.get_module(f"warpbots.springs.stop_{dim}d"), enable_backward=False)
    def stop_what_passes(
        # model
        obstacles: ObstacleArrays,
        half: real,
        # state
        x: wp.array[vec],
        # out
        x_out: wp.array[vec],
    ):
        """x' = NaN where x to x' passes an obstacle."""
        i = wp.tid()
        start = x[i]
        way = x_out[i] - start
        passes = bool(False)
        for o in range(obstacles.kind.shape[0]):
            depth, face = penetrate(obstacles, o, start)
            if depth <= real(0.0) and wp.length(way) > half:
                for k in range(1, _PARTS):
                    if depth <= real(0.0):
                        depth, face = penetrate(obstacles, o, start + real(k) / real(_PARTS) * way)
            if depth > real(0.0):
                depth_end, face_end = penetrate(obstacles, o, start + way)
                if depth_end > real(0.0):
                    passes = passes or wp.dot(face, face_end) < real(0.0)
                else:
                    passes = passes or wp.dot(face, way) < -half
        if passes:
            x_out[i] = vec(nan)

    return stop_what_passes
