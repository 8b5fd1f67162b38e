"""Forces of matter on obstacles: the momentum that grid nodes inside obstacles take from matter, per time."""

import functools

import warp as wp

from warpbots.contact import constrain
from warpbots.numerics import NODE, launch, launch_adjoint, launch_lanes, parallel, real, vector
from warpbots.solvers.mpm.explicit_step import adj_gather, clear, gather, grid_threads
from warpbots.solvers.mpm.grid import divide
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.transfer import stencil

__all__ = ["adj_press", "press"]

_LANES = 64


def press(model: MPMModel, state: MPMState, control: wp.array, force_out: wp.array) -> None:
    """Write the force of matter on each obstacle to `force_out` [N], shape (worlds, n_obstacles), vector."""
    work = model.workspace
    gather(model, state, control, work.measured, model.contact_interval)
    work.contact_force.zero_()
    launch(contact_kernel(model.dim), grid_threads(model), _inputs(model), [work.contact_force], model.device)
    lanes = _LANES if parallel(model.device) else 1
    inputs = [model.contacts.obstacle, work.contact_force]
    launch_lanes(obstacle_kernel(model.dim), force_out.shape, lanes, inputs, [force_out], model.device)


def adj_press(model: MPMModel, state: MPMState, control: wp.array, force_out: wp.array) -> None:
    """Adjoint of `press`: adds the gradients with respect to its inputs, from the gradient of `force_out`."""
    work, dt = model.workspace, model.contact_interval
    gather(model, state, control, work.measured, dt)
    clear(model, work.measured.active, work.momentum_adj)
    inputs = [model.contacts.obstacle, force_out.grad]
    launch(spread_kernel(model.dim), work.contact_force.shape, inputs, [work.contact_force.grad], model.device)
    launch_adjoint(
        contact_kernel(model.dim), grid_threads(model), _inputs(model), [work.contact_force],
        [None] * 5 + [model.friction.grad, model.gravity.grad] + [None] * 4 + [work.momentum_adj, None],
        [work.contact_force.grad], model.device,
    )  # fmt: skip
    adj_gather(model, state, control, dt)


def _inputs(model: MPMModel) -> list:
    gathered = model.workspace.measured
    sizes = [model.grid.resolution[-1], model.grid.pencils, grid_threads(model)[1]]
    values = [*model.contacts, model.friction, model.gravity, *sizes]
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
def obstacle_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, obstacles, lanes): adds the contact forces of each obstacle, in a fixed order."""
    vec = vector(dim)
    wide = {2: wp.vec2d, 3: wp.vec3d}[dim]

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.obstacle_forces_{dim}d"), enable_backward=False)
    def press_obstacles(obstacle: wp.array[int], force: wp.array2d[vec], total_out: wp.array2d[vec]):
        """Writes the force on each obstacle o: F_o = sum of f over the contacts of obstacle o."""
        w, o, lane = wp.tid()
        total = wide(wp.float64(0.0))
        for c in range(lane, obstacle.shape[0], wp.block_dim()):
            if obstacle[c] == o:
                total += wide(force[w, c])
        added = wp.tile_sum(wp.tile(total, preserve_type=True))[0]
        if lane == 0:
            total_out[w, o] = vec(added)

    return press_obstacles


@functools.cache
def spread_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, contacts): adjoint of `obstacle_kernel`."""
    vec = vector(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.obstacle_forces_{dim}d"), enable_backward=False)
    def spread_pressure(obstacle: wp.array[int], total_adj: wp.array2d[vec], force_adj_out: wp.array2d[vec]):
        """Writes f* = F_o* to each contact, with the obstacle o of the contact; an asterisk marks a gradient."""
        w, c = wp.tid()
        force_adj_out[w, c] = total_adj[w, obstacle[c]]

    return spread_pressure
