"""Forces of masses on the constraints that hold them; differentiated by Warp."""

import functools

import warp as wp

from warpbots.contact.moving_frames import MovingPoses, carried_velocity
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projection import projection

__all__ = ["constraint_force_kernel"]


@functools.cache
def constraint_force_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, masses): computes the force of each mass on the constraint that holds the mass.

    The force is the mean over the time h, with the laws of `constraints` and `moving_constraints`.
    """
    vec, project, (in_space, from_space) = vector(dim), projection(dim), space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.springs.constraint_force_{dim}d"))
    def constraint_force(
        # model
        constraint: wp.array[int],
        frame: wp.array[int],
        freedom: wp.array[int],
        direction: wp.array[vec],
        mass: wp.array2d[real],
        # step
        h: real,
        # state
        x: wp.array2d[vec],
        # work
        frames: MovingPoses,
        whole: wp.array2d[NODE],
        projected: wp.array2d[NODE],
        velocity: wp.array2d[vec],
        # out
        force_out: wp.array3d[vec],
    ):
        """Force f - project(f) + m (V - v') / h, with the velocity V after contact and v' = u + project(V - u)."""
        w, i = wp.tid()
        c = constraint[i]
        if c < 0:
            return
        along = direction[i]
        u = vec()
        k = frame[i]
        if k >= 0:
            along = from_space(frames.rotation[w, k] @ in_space(direction[i]))
            p = frames.position[w, k]
            u = from_space(carried_velocity(p, frames.linear[w, k], frames.spin[w, k], in_space(x[w, i])))
        relative = velocity[w, i] - u
        stopped = vec()
        for a in range(wp.static(dim)):
            stopped[a] = whole[w, i][a] - projected[w, i][a]
        force_out[w, c, i] = stopped + mass[w, i] / h * (relative - project(relative, freedom[i], along))

    return constraint_force
