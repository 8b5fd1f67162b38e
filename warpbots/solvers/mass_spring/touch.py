"""Contact with obstacles; differentiated by Warp.

Contact acts on the velocity with which a step would end, and the position follows. Each contact changes the velocity
that the next one sees. The loop over obstacles has constant bounds and is unrolled: Warp's backward pass does not
repeat a loop that is not, and takes what it accumulated for zero wherever a later operation is not linear in it.
"""

import functools

import warp as wp

from warpbots.contact import constrain, obstacle_arrays, penetration
from warpbots.math import real, vector

__all__ = ["touch_kernel"]


@functools.cache
def touch_kernel(dim: int, obstacle_count: int) -> wp.Kernel:
    """Kernel over the masses of all worlds: contact where the first stage lies inside of an obstacle.

    A surface gives way to nothing where its stiffness K is 0. Otherwise it pushes with K d (1 - a v . n), the law of
    Hunt and Crossley (1975) with an exponent of 1: continuous where things touch, and never a pull.

    Args:
        dim: 2 or 3.
        obstacle_count: Obstacles of the scene.
    """
    vec = vector(dim)
    ObstacleArrays = obstacle_arrays(dim)
    constrain_velocity, penetrate = constrain(dim), penetration(dim)

    module = wp.get_module(f"warpbots.springs.touch_{dim}d_{obstacle_count}")
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
        """v' = constrain(V), x' = X + follow (v' - V) for the end (X, V) of the free step."""
        i = wp.tid()
        w = i // count
        n = i - w * count
        allowed = free_v[i]
        for o in range(wp.static(obstacle_count)):
            depth, out = penetrate(obstacles, o, x[i] + drift * v[i])
            if depth > real(0.0):
                push = -wp.dot(allowed, out)
                if contact[n] > real(0.0):
                    push = contact[n] * depth * (real(1.0) + damping * push) * h / mass[i]
                allowed = constrain_velocity(
                    allowed, out, push, obstacles.condition[o], friction[w, o], obstacles.extra[o]
                )
        x_out[i] = free_x[i] + follow * (allowed - free_v[i])
        v_out[i] = allowed

    return touch
