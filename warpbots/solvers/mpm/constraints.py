"""Constraints: held grid nodes and held particles move only as the constraint permits.

A constraint acts on matter through the grid, like a sticky obstacle. A node is held if at least a ninth of the rest
volume within its spline belongs to the constrained region; this is the case for nodes up to 5/8 of a cell beyond a face
of the region. Matter starts to deform 0.15 cells behind the last held node. Therefore matter is always clamped within
half a cell of the face, and exactly at the face on average over all positions of the face on the grid
(docs/design/mpm-constraints.md). Held particles still deform with the grid and transfer their stress to the grid. The
positions and velocities of held particles are projected, so that they fulfil the constraint up to rounding.

The set of held nodes is discrete; gradients do not include its changes.
"""

import functools

import warp as wp

from warpbots.numerics import NODE, Slice, launch, launch_slices, matrix, real, vector
from warpbots.solvers.mpm.arrays import constitution_arrays, grid_geometry, motion_arrays
from warpbots.solvers.mpm.held_regions import HeldRegion
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.shared_grid import stencil
from warpbots.solvers.projection import projection

__all__ = ["adj_hold_particles", "hold_nodes", "hold_particles", "is_held", "share_nodes"]

_SHARE = wp.constant(real(1.0 / 9.0))
"""Fraction of the matter at a node above which the node is held [1]."""


def share_nodes(model: MPMModel, constraint: HeldRegion, state: MPMState) -> None:
    """Add the volumes of the particles near the constraint to `constraint.share`, which must be zero on entry."""
    inputs = [constraint.near, constraint.weight, model.material, model.geometry, state.motion]
    launch(share_kernel(model.dim), (model.worlds, constraint.near.size), inputs, [constraint.share], model.device)


def hold_nodes(
    model: MPMModel, constraint: HeldRegion, active: wp.array, values: wp.array, threads: tuple[int, int]
) -> None:
    """Project `values` at held nodes.

    `values` are the velocities of nodes, or the gradients with respect to these velocities: a projection is its own
    adjoint.
    """
    inputs = [constraint.freedom, constraint.direction, model.grid.resolution[-1], threads[1], constraint.share, active]
    launch_slices(hold_nodes_kernel(model.dim), threads, inputs, [values], model.device)


def hold_particles(model: MPMModel, constraint: HeldRegion, state: MPMState, state_out: MPMState, dt: float) -> None:
    """Project the velocities of held particles, and move these particles with their projected velocities."""
    c, size = constraint, (model.worlds, constraint.particle.size)
    inputs = [c.particle, c.freedom, c.direction, model.geometry, state.motion, real(dt)]
    launch(hold_particles_kernel(model.dim), size, inputs, [state_out.motion], model.device)


def adj_hold_particles(
    model: MPMModel, constraint: HeldRegion, state: MPMState, state_out: MPMState, moved_adj: object, dt: float
) -> None:
    """Complete the adjoint of `hold_particles`; call this after the adjoint of a step without constraints on particles.

    Args:
        model: The model.
        constraint: The constraint.
        state: State at the start of the step.
        state_out: State at the end of the step.
        moved_adj: Gradient with respect to the motion after the step and before plastic flow, as a Warp struct.
        dt: Length of the step [s].
    """
    c, velocity, velocity_adj = constraint, model.workspace.velocity, model.workspace.velocity_adj
    inputs = [
        c.particle, c.freedom, c.direction, model.geometry, state.motion, state_out.motion, velocity, moved_adj,
        real(dt),
    ]  # fmt: skip
    size, outputs = (model.worlds, c.particle.size), [state.motion_adj, velocity_adj]
    launch(adj_hold_particles_kernel(model.dim), size, inputs, outputs, model.device)


@functools.cache
def share_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, particles near a held region): adds rest volumes to grid nodes.

    The volume of held particles and the volume of all particles are added separately.
    """
    vec, mat = vector(dim), matrix(dim)
    MotionArrays, ConstitutionArrays, GridGeometry = motion_arrays(dim), constitution_arrays(), grid_geometry(dim)
    s = stencil(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraints_{dim}d"), enable_backward=False)
    def share(
        # model
        near: wp.array[int],
        weight: wp.array[real],
        material: ConstitutionArrays,
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        # out
        share_out: wp.array[NODE],
    ):
        """Adds w_ip V_p to the volume of each node i, and also to its held volume if particle p is held."""
        w, k = wp.tid()
        r = w * grid.particles + near[k]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            held = vec()
            held[0] = weight[k] * material.V[r]
            s.scatter(share_out, w * grid.pencils, grid.resolution, x, held, material.V[r], mat())

    return share


@wp.func
def is_held(h: NODE):
    """Whether a node is held: at least a ninth of its matter, from `share_nodes`, is held."""
    return h[0] > real(0.0) and h[0] >= _SHARE * h[3]


@functools.cache
def hold_nodes_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): projects the velocities of held nodes."""
    vec, s, project = vector(dim), stencil(dim), projection(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraints_{dim}d"), enable_backward=False)
    def hold_grid(
        # launch
        part: Slice,
        # model
        freedom: int,
        direction: vec,
        length: int,
        lanes: int,
        # state
        share: wp.array[NODE],
        active: wp.array[int],
        # out
        velocity_out: wp.array[NODE],
    ):
        """Projects the velocity of each node on the permitted motion if at least a ninth of its matter is held."""
        item, lane = wp.tid()
        pencil = part.start + item
        if active[pencil] == 0:
            return
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            if is_held(share[i]):
                velocity_out[i] = s.node(project(s.momentum(velocity_out[i]), freedom, direction), real(0.0))

    return hold_grid


@functools.cache
def hold_particles_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held particles): projects the velocities and positions that `move_kernel` has written."""
    vec, s, project = vector(dim), stencil(dim), projection(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraints_{dim}d"), enable_backward=False)
    def hold_held(
        # model
        particle: wp.array[int],
        freedom: int,
        direction: vec,
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        dt: real,
        # out
        motion_out: MotionArrays,
    ):
        """Projects the velocity of each held particle and moves the particle: v' = project(v'), x' = x + dt v'."""
        w, k = wp.tid()
        r = w * grid.particles + particle[k]
        if s.reach((motion.x[r] - grid.lower) * grid.inv_dx, grid.resolution):
            v = project(motion_out.v[r], freedom, direction)
            motion_out.v[r] = v
            motion_out.x[r] = motion.x[r] + dt * v

    return hold_held


@functools.cache
def adj_hold_particles_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held particles): adds the difference between the adjoints of a held and a free particle.

    An asterisk marks a gradient. The adjoint of the step has treated all particles as free: it has used q = v*' + dt
    x*' as the gradient with respect to the velocity of the particle, and v' as the velocity gathered from the grid. For
    a held particle the correct gradient is project(q), and the gathered velocity is sum w v_i, before the projection.
    """
    vec, mat, s, project = vector(dim), matrix(dim), stencil(dim), projection(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constraints_{dim}d"), enable_backward=False)
    def adj_hold_held(
        # model
        particle: wp.array[int],
        freedom: int,
        direction: vec,
        grid: GridGeometry,
        # state
        motion: MotionArrays,
        moved: MotionArrays,
        velocity: wp.array[NODE],
        moved_adj: MotionArrays,
        dt: real,
        # out
        motion_adj_out: MotionArrays,
        velocity_adj_out: wp.array[NODE],
    ):
        """With d = project(q) - q: v_i* += w d, x* += slope(d) - A^T (sum w v_i - v'), A as in `adj_move_kernel`."""
        w, k = wp.tid()
        r = w * grid.particles + particle[k]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            first = w * grid.pencils
            q = moved_adj.v[r] + dt * moved_adj.x[r]
            lost = project(q, freedom, direction) - q
            A = (real(4.0) * grid.inv_dx) * (moved_adj.C[r] + dt * (moved_adj.F[r] @ wp.transpose(motion.F[r])))
            h, _M = s.gather(velocity, first, grid.resolution, x)
            s.scatter(velocity_adj_out, first, grid.resolution, x, lost, real(0.0), mat())
            slope = s.slope(velocity, first, grid.resolution, x, lost, real(0.0), mat())
            slope -= wp.transpose(A) @ (s.momentum(h) - moved.v[r])
            motion_adj_out.x[r] = motion_adj_out.x[r] + grid.inv_dx * slope

    return adj_hold_held
