"""Constraints that move: masses that cannot move relative to a frame, or only along a line or in a plane of it.

The displacement of a mass is that of the frame plus the part of the relative displacement that the constraint allows.
At the stages of a scheme, no force accelerates a mass that is fixed to a frame; on a line or in a plane, the constraint
acts on a mass only at the end of the step.
"""

import functools

import warp as wp

from warpbots.contact.moving_frames import MovingPoses, carried_velocity
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import real, vector
from warpbots.scene import FREEDOMS
from warpbots.solvers.frame_rounding import rounding_error
from warpbots.solvers.projection import projection

__all__ = ["carry_kernel"]

_FIXED = wp.constant(FREEDOMS.index("fixed"))


@functools.cache
def carry_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, masses): motion at the end of a step under constraints that move; differentiated by Warp."""
    vec, project, (in_space, from_space) = vector(dim), projection(dim), space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.carry_{dim}d"))
    def carry(
        # model
        frame: wp.array[int],
        freedom: wp.array[int],
        direction: wp.array[vec],
        rest: wp.array[wp.vec3d],
        # step
        h: real,
        # state
        x: wp.array2d[vec],
        # work
        frames: MovingPoses,
        x_free: wp.array2d[vec],
        v_free: wp.array2d[vec],
        # out
        x_out: wp.array2d[vec],
        v_out: wp.array2d[vec],
    ):
        """x' = x + h u + project(x_free - x - h u), v' = u + project(v_free - u), with the velocity u of the frame."""
        w, n = wp.tid()
        f = frame[n]
        end = x_free[w, n]
        velocity = v_free[w, n]
        if f >= 0:
            R = frames.rotation[w, f]
            p = frames.position[w, f]
            at = in_space(x[w, n])
            lag = wp.vec3d()
            if freedom[n] == _FIXED:
                lag = rounding_error(rest[n], p, R, at)
            u = carried_velocity(p, frames.linear[w, f], frames.spin[w, f], at + lag)
            step = wp.float64(h) * u
            along = from_space(R @ in_space(direction[n]))
            relative = x_free[w, n] - x[w, n] - from_space(step)
            end = from_space(at + lag + step) + project(relative, freedom[n], along)
            velocity = from_space(u) + project(v_free[w, n] - from_space(u), freedom[n], along)
        x_out[w, n] = end
        v_out[w, n] = velocity

    return carry
