"""Forces and torques of matter on obstacles: the momentum that grid nodes take from matter, per time."""

import functools

import warp as wp

from warpbots.contact import constrain
from warpbots.numerics import (
    NODE,
    Launch,
    launch,
    launch_adjoint,
    launch_all,
    launch_lanes,
    launch_own_adjoint,
    parallel,
    real,
    sum_of_lanes,
    vector,
)
from warpbots.solvers.device_arrays import shared
from warpbots.solvers.matter_readings import moment_kernel
from warpbots.solvers.mpm.explicit_step import grid_threads
from warpbots.solvers.mpm.grid import divide
from warpbots.solvers.mpm.model import MPMModel
from warpbots.solvers.mpm.moving_obstacles import adj_moving_contact, moving_contact
from warpbots.solvers.mpm.shared_grid import stencil

__all__ = ["adj_press", "press"]

_LANES = 64


def press(model: MPMModel, force_out: wp.array, torque_out: wp.array) -> None:
    """Write the force of matter on each obstacle [N], and its torque about the origin [N m].

    The grid is the one that `supports` has gathered, and the velocities of nodes those after all contacts with
    obstacles that do not move; obstacles that move change them.

    Args:
        model: The model.
        force_out: Force on each obstacle, shape (worlds, n_obstacles), vector.
        torque_out: Torque on each obstacle, shape (worlds, n_obstacles), a number in 2D, a vector in 3D.
    """
    work = model.workspace
    work.contact_force.zero_()
    launch(contact_kernel(model.dim), grid_threads(model), _inputs(model), [work.contact_force], model.device)
    if len(model.moving):
        moving_contact(model, work.measured, grid_threads(model), model.contact_interval, work.contact_force)
    launch_all([_moments(model)], model.device)
    lanes = _LANES if parallel(model.device) else 1
    for values, total in ((work.contact_force, force_out), (work.contact_torque, torque_out)):
        inputs = [model.contacts.obstacle, values]
        launch_lanes(obstacle_kernel(values.dtype), total.shape, lanes, inputs, [total], model.device)


def _moments(model: MPMModel) -> Launch:
    """Kernel launch that computes the torque of the force at each contact."""
    work, shape = model.workspace, (model.worlds, 1, model.contacts.place.size)
    place = shared(model.contacts.place.reshape((1, -1)), model.worlds)
    inputs, outputs = [place, work.contact_force.reshape(shape)], [work.contact_torque.reshape(shape)]
    return moment_kernel(model.dim), shape, inputs, outputs


def adj_press(model: MPMModel, force_out: wp.array, torque_out: wp.array) -> None:
    """Adjoint of `press`: adds the gradients with respect to its inputs, from the gradients of its outputs.

    The gradient of the velocities of nodes after contact becomes the gradient of their velocities before.
    """
    work = model.workspace
    for values, total in ((work.contact_force, force_out), (work.contact_torque, torque_out)):
        inputs = [model.contacts.obstacle, total.grad]
        launch(spread_kernel(values.dtype), values.shape, inputs, [values.grad], model.device)
    kernel, shape, inputs, outputs = _moments(model)
    launch_own_adjoint(kernel, shape, [*inputs, *outputs], model.device)
    launch_adjoint(
        contact_kernel(model.dim), grid_threads(model), _inputs(model), [work.contact_force],
        [None] * 5 + [model.friction.grad, model.gravity.grad] + [None] * 4 + [work.momentum_adj, None],
        [work.contact_force.grad], model.device,
    )  # fmt: skip
    if len(model.moving):
        adj_moving_contact(model, work.measured, grid_threads(model), model.contact_interval, work.contact_force.grad)


def _inputs(model: MPMModel) -> list:
    gathered = model.workspace.measured
    sizes = [model.grid.resolution[-1], model.grid.pencils, grid_threads(model)[1]]
    values = [*model.contacts.surfaces, model.friction, model.gravity, *sizes]
    return [*values, gathered.active, gathered.momentum, real(model.contact_interval)]


@functools.cache
def contact_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): computes the force at each contact of a node.

    Warp differentiates the kernel.
    """
    vec = vector(dim)
    s, constrain_velocity, quotient = stencil(dim), constrain(dim), divide(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.contact_forces_{dim}d"))
    def press_contacts(
        # model
        contact: wp.array[wp.vec3i],
        normal: wp.array[vec],
        obstacle: wp.array[int],
        condition: wp.array[int],
        extra: wp.array[real],
        friction: wp.array2d[real],
        gravity: wp.array[vec],
        length: int,
        pencils: int,
        lanes: int,
        # state
        active: wp.array[int],
        momentum: wp.array[NODE],
        dt: real,
        # out
        force_out: wp.array2d[vec],
    ):
        """Writes the force of matter at each contact of each node: f = m (v - constrain(v)) / dt.

        The first obstacle of a node acts on v = p / m + dt g; the next obstacle acts on the result of constrain(v) for
        the obstacle before.
        """
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        w = pencil // pencils
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            h = momentum[i]
            own = contact[i - w * pencils * length]
            if h[3] != real(0.0) and own[0] >= 0:
                v = quotient(s.momentum(h), h[3]) + dt * gravity[w]
                for k in range(3):
                    c = own[k]
                    if c >= 0:
                        o = obstacle[c]
                        n = normal[c]
                        left = constrain_velocity(v, n, -wp.dot(v, n), condition[o], friction[w, o], extra[o])
                        force_out[w, c] = (h[3] / dt) * (v - left)
                        v = left

    return press_contacts


@functools.cache
def obstacle_kernel(dtype: type) -> wp.Kernel:
    """Kernel over (worlds, obstacles, lanes): adds contact forces or torques of each obstacle, in a fixed order."""
    wide = {1: wp.float64, 2: wp.vec2d, 3: wp.vec3d}[wp.types.type_size(dtype)]

    total_of = sum_of_lanes(wide)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.obstacle_forces_{dtype.__name__}"), enable_backward=False)
    def press_obstacles(obstacle: wp.array[int], force: wp.array2d[dtype], total_out: wp.array2d[dtype]):
        """Writes the sum over the contacts of each obstacle o: F_o = sum f."""
        w, o, lane = wp.tid()
        total = wide(wp.float64(0.0))
        for c in range(lane, obstacle.shape[0], wp.block_dim()):
            if obstacle[c] == o:
                total += wide(force[w, c])
        added = total_of(total)
        if lane == 0:
            total_out[w, o] = dtype(added)

    return press_obstacles


@functools.cache
def spread_kernel(dtype: type) -> wp.Kernel:
    """Kernel over (worlds, contacts): adjoint of `obstacle_kernel`."""

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.obstacle_forces_{dtype.__name__}"), enable_backward=False)
    def spread_pressure(obstacle: wp.array[int], total_adj: wp.array2d[dtype], force_adj_out: wp.array2d[dtype]):
        """Writes f* = F_o* to each contact, with the obstacle o of the contact; an asterisk marks a gradient."""
        w, c = wp.tid()
        force_adj_out[w, c] = total_adj[w, obstacle[c]]

    return spread_pressure
