"""Forces and torques of matter on constraints: the momentum that constraints take from matter, per time.

A constraint takes momentum from held nodes i, whose velocities it changes from v_i to v_i', and then from held
particles p, whose velocities gathered from the grid it changes from v_p to v_p':

    F = sum m (v - v') / dt,   T = sum x × m (v - v') / dt.

Positions are those at the start of the step; with them, a step balances angular momentum exactly. An asterisk marks a
gradient. With p = F* + T* × x, which is like the velocity of a rigid body, the gradients of a force are

    v* = m p / dt,   v'* = -m p / dt,   m* = p . (v - v') / dt,   x* = f × T*.
"""

import functools

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, copy, index_vector, launch, launch_lanes, parallel, real, sum_of_lanes, vector
from warpbots.solvers.matter_readings import moment_type
from warpbots.solvers.mpm.constraints import hold_nodes, is_held, share_nodes
from warpbots.solvers.mpm.explicit_step import clear, grid_threads
from warpbots.solvers.mpm.grid import node_position
from warpbots.solvers.mpm.held_particle_forces import adj_particle_kernel, particle_sum_kernel
from warpbots.solvers.mpm.held_regions import HeldRegion
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.moving_constraints import adj_carry_nodes, carry_nodes, pose_gradients, space_direction
from warpbots.solvers.mpm.shared_grid import stencil

__all__ = ["adj_hold", "hold"]

_LANES = 64
_sum = sum_of_lanes(wp.vec3d)


def hold(model: MPMModel, state: MPMState, dt: float, force_out: wp.array, torque_out: wp.array) -> None:
    """Apply the constraints to the velocities of nodes, and write the wrench on each constraint.

    Args:
        model: The model, with the velocities of nodes before constraints, and the poses of frames, in its workspace.
        state: State to measure.
        dt: Length of the step [s].
        force_out: Force on each constraint [N], shape (worlds, n_constraints), vector.
        torque_out: Torque on each constraint about the origin [N m], shape (worlds, n_constraints), a number in 2D, a
            vector in 3D.
    """
    work, held, lanes = model.workspace, model.workspace.held, _LANES if parallel(model.device) else 1
    for k, c in enumerate(model.constraints):
        copy(held.before[k], work.velocity)
        clear(model, work.measured.active, c.share)
        share_nodes(model, c, state)
        if c.frame < 0:
            hold_nodes(model, c, work.measured.active, work.velocity, grid_threads(model))
        else:
            carry_nodes(model, c, work.measured.active, grid_threads(model))
        inputs, outputs = [*_nodes(model, k, dt), work.velocity], [held.force, held.torque]
        launch_lanes(node_sum_kernel(model.dim), model.worlds, lanes, inputs, outputs, model.device)
    for k, c in enumerate(model.constraints):
        inputs, outputs = [*_particles(model, c, state, dt), c.rest, k], [held.force, held.torque]
        launch_lanes(particle_sum_kernel(model.dim), model.worlds, lanes, inputs, outputs, model.device)
    inputs, outputs = [held.force, held.torque], [force_out, torque_out]
    launch(split_kernel(model.dim), force_out.shape, inputs, outputs, model.device)


def adj_hold(model: MPMModel, state: MPMState, dt: float, force_out: wp.array, torque_out: wp.array) -> None:
    """Adjoint of `hold`; call `hold` first.

    Replaces the gradient of the velocities of nodes after constraints by the gradient of the velocities before, in the
    workspace, and adds to the gradients of their masses, of `state`, of the model and of the poses of frames.
    """
    work, held, frames = model.workspace, model.workspace.held, model.frames.frames
    inputs, outputs = [force_out.grad, torque_out.grad], [held.force_adj, held.torque_adj]
    launch(join_kernel(model.dim), force_out.shape, inputs, outputs, model.device)
    wrench = [held.force_adj, held.torque_adj]
    for k, c in enumerate(model.constraints):
        inputs = [*_particles(model, c, state, dt), k, *wrench]
        poses_adj = pose_gradients(frames) if c.frame >= 0 else MovingPoses()
        outputs = [state.motion_adj, model.material_adj, work.velocity_adj, poses_adj]
        size = (model.worlds, c.particle.size)
        launch(adj_particle_kernel(model.dim), size, inputs, outputs, model.device)
    after = [*held.before[1:], work.velocity]
    for k, c in reversed(list(enumerate(model.constraints))):
        inputs = [*_nodes(model, k, dt), after[k], *wrench]
        kernel, outputs = adj_node_kernel(model.dim), [work.velocity_adj, work.momentum_adj]
        launch(kernel, grid_threads(model), [*inputs, grid_threads(model)[1], real(-1.0)], outputs, model.device)
        if c.frame < 0:
            hold_nodes(model, c, work.measured.active, work.velocity_adj, grid_threads(model))
        else:
            adj_carry_nodes(model, c, work.measured.active, grid_threads(model))
        outputs = [work.velocity_adj, None]
        launch(kernel, grid_threads(model), [*inputs, grid_threads(model)[1], real(1.0)], outputs, model.device)


def _nodes(model: MPMModel, k: int, dt: float) -> list:
    work, constraint = model.workspace, model.constraints[k]
    sizes = [model.grid.resolution[-1], model.grid.pencils]
    values = [work.measured.active, work.measured.momentum, constraint.share, work.held.before[k]]
    return [*model.grid.places, *sizes, k, real(dt), *values]


def _particles(model: MPMModel, constraint: HeldRegion, state: MPMState, dt: float) -> list:
    freedom = [constraint.particle, constraint.frame, constraint.freedom, space_direction(constraint)]
    values = [state.motion, model.workspace.velocity, real(dt)]
    return [*freedom, model.material, model.geometry, model.frames.frames, *values]


@functools.cache
def node_sum_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, lanes): sums of the forces and torques of held nodes, in a fixed order."""
    ivec, s, at, (in_space, _) = index_vector(dim), stencil(dim), node_position(dim), space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraint_forces_{dim}d"), enable_backward=False)
    def sum_held_nodes(
        # model
        lower: wp.vec3d,
        dx: wp.float64,
        resolution: ivec,
        length: int,
        pencils: int,
        k: int,
        dt: real,
        # state
        active: wp.array[int],
        momentum: wp.array[NODE],
        share: wp.array[NODE],
        before: wp.array[NODE],
        after: wp.array[NODE],
        # out
        force_out: wp.array2d[wp.vec3d],
        torque_out: wp.array2d[wp.vec3d],
    ):
        """Writes the sums of m (v - v') / dt, and of their moments, over the nodes that constraint k holds."""
        w, lane = wp.tid()
        force = wp.vec3d()
        torque = wp.vec3d()
        for j in range(lane, pencils * length, wp.block_dim()):
            i = w * pencils * length + j
            held = active[w * pencils + j // length]
            if held == 1:
                held = int(is_held(share[i]))
            if held == 1:
                lost = s.momentum(before[i]) - s.momentum(after[i])
                f = in_space((momentum[i][3] / dt) * lost)
                force += f
                torque += wp.cross(at(lower, dx, resolution, j), f)
        forces = _sum(force)
        torques = _sum(torque)
        if lane == 0:
            force_out[w, k] = forces
            torque_out[w, k] = torques

    return sum_held_nodes


@functools.cache
def split_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, constraints): wrenches as readings."""
    vec, moment, (_, from_space) = vector(dim), moment_type(dim), space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraint_forces_{dim}d"), enable_backward=False)
    def split_wrenches(
        # work
        force: wp.array2d[wp.vec3d],
        torque: wp.array2d[wp.vec3d],
        # out
        force_out: wp.array2d[vec],
        torque_out: wp.array2d[moment],
    ):
        """F and T in the type of readings."""
        w, k = wp.tid()
        force_out[w, k] = from_space(force[w, k])
        if wp.static(dim == 2):
            torque_out[w, k] = real(torque[w, k][2])
        else:
            torque_out[w, k] = from_space(torque[w, k])

    return split_wrenches


@functools.cache
def join_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, constraints): adjoint of `split_kernel`."""
    vec, moment, (in_space, _) = vector(dim), moment_type(dim), space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraint_forces_{dim}d"), enable_backward=False)
    def join_wrenches(
        # work
        force_adj: wp.array2d[vec],
        torque_adj: wp.array2d[moment],
        # out
        force_adj_out: wp.array2d[wp.vec3d],
        torque_adj_out: wp.array2d[wp.vec3d],
    ):
        """F* and T* in 3D."""
        w, k = wp.tid()
        force_adj_out[w, k] = in_space(force_adj[w, k])
        if wp.static(dim == 2):
            torque_adj_out[w, k] = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(torque_adj[w, k]))
        else:
            torque_adj_out[w, k] = in_space(torque_adj[w, k])

    return join_wrenches


@functools.cache
def adj_node_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): gradients with respect to velocities and masses of held nodes."""
    vec, ivec, s, at = vector(dim), index_vector(dim), stencil(dim), node_position(dim)
    _, from_space = space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraint_forces_{dim}d"), enable_backward=False)
    def adj_sum_held_nodes(
        # model
        lower: wp.vec3d,
        dx: wp.float64,
        resolution: ivec,
        length: int,
        pencils: int,
        k: int,
        dt: real,
        # state
        active: wp.array[int],
        momentum: wp.array[NODE],
        share: wp.array[NODE],
        before: wp.array[NODE],
        after: wp.array[NODE],
        force_adj: wp.array2d[wp.vec3d],
        torque_adj: wp.array2d[wp.vec3d],
        lanes: int,
        sign: real,
        # out
        velocity_adj_out: wp.array[NODE],
        momentum_adj_out: wp.array[NODE],
    ):
        """v* += m p / dt, or v'* -= m p / dt if `sign` is -1; m* += p . (v - v') / dt if there is such an array."""
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        w = pencil // pencils
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            if is_held(share[i]):
                x = at(lower, dx, resolution, i - w * pencils * length)
                p = from_space(force_adj[w, k] + wp.cross(torque_adj[w, k], x))
                velocity_adj_out[i] = velocity_adj_out[i] + s.node((sign * momentum[i][3] / dt) * p, real(0.0))
                if momentum_adj_out:
                    m_adj = wp.dot(p, s.momentum(before[i]) - s.momentum(after[i])) / dt
                    momentum_adj_out[i] = momentum_adj_out[i] + s.node(vec(), m_adj)

    return adj_sum_held_nodes
