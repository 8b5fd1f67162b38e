"""Forces and torques of particles that constraints hold, with their gradients; see `constraint_forces` for both."""

import functools

import warp as wp

from warpbots.contact.moving_frames import MovingPoses, carried_velocity
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, matrix, real, sum_of_lanes, vector
from warpbots.scene import FREEDOMS
from warpbots.solvers.frame_rounding import rounding_error
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, motion_arrays
from warpbots.solvers.mpm.moving_constraints import add_gradients, direction_gradient
from warpbots.solvers.mpm.shared_grid import stencil
from warpbots.solvers.projection import projection

__all__ = ["adj_particle_kernel", "particle_sum_kernel"]

_FIXED = wp.constant(FREEDOMS.index("fixed"))
_sum = sum_of_lanes(wp.vec3d)


@functools.cache
def _held_motion(dim: int) -> wp.Function:
    """Warp function: mass, velocity before the constraint, frame velocity and direction of a held particle."""
    vec, s, (_, from_space) = vector(dim), stencil(dim), space_maps(dim)
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)

    @wp.func
    def held_motion(
        f: int, direction: wp.vec3d, material: ConstitutionArrays, grid: GridGeometry, frames: MovingPoses,
        motion: MotionArrays, velocity: wp.array[NODE], place: wp.vec3d, w: int, r: int,
    ):  # fmt: skip
        """m, v, u at `place`, and n; m is 0 for a particle outside of the grid, which has no part in a step."""
        m = real(0.0)
        v = vec()
        u = vec()
        n = from_space(direction)
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            m = material.rho[r] * material.V[r]
            h, _M = s.gather(velocity, w * grid.pencils, grid.resolution, x)
            v = s.momentum(h)
            if f >= 0:
                n = from_space(frames.rotation[w, f] @ direction)
                u = from_space(carried_velocity(frames.position[w, f], frames.linear[w, f], frames.spin[w, f], place))
        return m, v, u, n

    return held_motion


@functools.cache
def particle_sum_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, lanes): adds the forces and torques of held particles to those of held nodes."""
    project, held_motion, (in_space, _) = projection(dim), _held_motion(dim), space_maps(dim)
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraint_forces_{dim}d"), enable_backward=False)
    def sum_held_particles(
        # model
        particle: wp.array[int],
        f: int,
        freedom: int,
        direction: wp.vec3d,
        material: ConstitutionArrays,
        grid: GridGeometry,
        frames: MovingPoses,
        # state
        motion: MotionArrays,
        velocity: wp.array[NODE],
        dt: real,
        rest: wp.array[wp.vec3d],
        k: int,
        # out
        force_out: wp.array2d[wp.vec3d],
        torque_out: wp.array2d[wp.vec3d],
    ):
        """Adds the sums of m (v - v') / dt, v' = u + P (v - u), and of their moments, over held particles."""
        w, lane = wp.tid()
        force = wp.vec3d()
        torque = wp.vec3d()
        for j in range(lane, particle.shape[0], wp.block_dim()):
            r = w * grid.particles + particle[j]
            x = in_space(motion.x[r])
            place = x
            if f >= 0 and freedom == _FIXED:
                place += rounding_error(rest[j], frames.position[w, f], frames.rotation[w, f], x)
            m, v, u, n = held_motion(f, direction, material, grid, frames, motion, velocity, place, w, r)
            push = in_space((m / dt) * (v - u - project(v - u, freedom, n)))
            force += push
            torque += wp.cross(x, push)
        forces = _sum(force)
        torques = _sum(torque)
        if lane == 0:
            force_out[w, k] = force_out[w, k] + forces
            torque_out[w, k] = torque_out[w, k] + torques

    return sum_held_particles


@functools.cache
def adj_particle_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held particles): adjoint of `particle_sum_kernel`."""
    mat, s, project, held_motion = matrix(dim), stencil(dim), projection(dim), _held_motion(dim)
    (in_space, from_space), by_direction = space_maps(dim), direction_gradient(dim)
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.adj_constraint_forces_{dim}d"), enable_backward=False)
    def adj_sum_held_particles(
        # model
        particle: wp.array[int],
        f: int,
        freedom: int,
        direction: wp.vec3d,
        material: ConstitutionArrays,
        grid: GridGeometry,
        frames: MovingPoses,
        # state
        motion: MotionArrays,
        velocity: wp.array[NODE],
        dt: real,
        k: int,
        force_adj: wp.array2d[wp.vec3d],
        torque_adj: wp.array2d[wp.vec3d],
        # out
        motion_adj_out: MotionArrays,
        material_adj_out: ConstitutionArrays,
        velocity_adj_out: wp.array[NODE],
        poses_adj_out: MovingPoses,
    ):
        """With d = v - u and g = m p / dt: v* += g - P g, u* -= g - P g, m* += p . (d - P d) / dt, x* += f × T*."""
        w, j = wp.tid()
        r = w * grid.particles + particle[j]
        at = in_space(motion.x[r])
        m, v, u, n = held_motion(f, direction, material, grid, frames, motion, velocity, at, w, r)
        if m == real(0.0):
            return
        p = from_space(force_adj[w, k] + wp.cross(torque_adj[w, k], at))
        g = (m / dt) * p
        lost = v - u - project(v - u, freedom, n)
        v_adj = g - project(g, freedom, n)
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        first = w * grid.pencils
        s.scatter(velocity_adj_out, first, grid.resolution, x, v_adj, real(0.0), mat())
        slope = s.slope(velocity, first, grid.resolution, x, v_adj, real(0.0), mat())
        x_adj = wp.cross(in_space((m / dt) * lost), torque_adj[w, k])
        if f >= 0:
            n_adj = in_space(by_direction(v - u, -g, freedom, n))
            x_adj += add_gradients(frames, poses_adj_out, w, f, direction, at, in_space(-v_adj), n_adj)
        motion_adj_out.x[r] = motion_adj_out.x[r] + grid.inv_dx * slope + from_space(x_adj)
        m_adj = wp.dot(p, lost) / dt
        if material_adj_out.rho:
            material_adj_out.rho[r] = material_adj_out.rho[r] + material.V[r] * m_adj
        if material_adj_out.V:
            material_adj_out.V[r] = material_adj_out.V[r] + material.rho[r] * m_adj

    return adj_sum_held_particles
