"""Constraints that move: held nodes and held particles move relative to a frame only as the constraint permits.

The held nodes are the nodes around the held particles (`constraints`), wherever the frame has carried them. With the
velocity u of the frame at a node or a particle, its velocity v becomes

    v' = u + P (v - u),   P = 0, n n^T or I - n n^T,   n = R n_0,

for matter that is fixed to the frame, or moves along a line or in a plane of the frame. An asterisk marks a gradient.
With d = v - u, the adjoint is

    v* = P v'*,   u* = (I - P) v'*,   n* = +-((n . d) v'* + (n . v'*) d),   with + for a line and - for a plane,
    linear* += u*,   spin* += u* (x - p)^T,   p* -= spin^T u*,   x* += spin^T u*,   R* += n* n_0^T
"""

import functools

import warp as wp

from warpbots.contact.moving_frames import MovingPoses, carried_velocity
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, index_vector, launch, matrix, real, vector
from warpbots.scene import FREEDOMS
from warpbots.solvers.frame_rounding import rounding_error
from warpbots.solvers.mpm.arrays import grid_geometry, motion_arrays
from warpbots.solvers.mpm.constraints import is_held
from warpbots.solvers.mpm.grid import node_position
from warpbots.solvers.mpm.held_regions import HeldRegion
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.shared_grid import stencil
from warpbots.solvers.projection import projection

__all__ = [
    "add_gradients",
    "adj_carry_nodes",
    "adj_carry_particles",
    "carry_nodes",
    "carry_particles",
    "direction_gradient",
    "pose_gradients",
    "space_direction",
]

_FIXED, _LINE, _PLANE = (wp.constant(FREEDOMS.index(name)) for name in ("fixed", "line", "plane"))


def carry_nodes(model: MPMModel, constraint: HeldRegion, active: wp.array, threads: tuple[int, int]) -> None:
    """Change the velocities of held nodes; `constraint.before` keeps the velocities before the change."""
    outputs = [model.workspace.velocity, constraint.before]
    inputs = [*_node_inputs(model, constraint, active, threads), model.frames.frames]
    launch(carry_nodes_kernel(model.dim), threads, inputs, outputs, model.device)


def adj_carry_nodes(model: MPMModel, constraint: HeldRegion, active: wp.array, threads: tuple[int, int]) -> None:
    """Adjoint of `carry_nodes`: changes the gradients of velocities of held nodes, and adds to gradients of poses."""
    inputs = [*_node_inputs(model, constraint, active, threads), model.frames.frames, constraint.before]
    outputs = [model.workspace.velocity_adj, pose_gradients(model.frames.frames)]
    launch(adj_carry_nodes_kernel(model.dim), threads, inputs, outputs, model.device)


def carry_particles(model: MPMModel, constraint: HeldRegion, state: MPMState, state_out: MPMState, dt: float) -> None:
    """Change velocities and positions of held particles after a step without the constraint."""
    inputs = [
        constraint.particle, *_freedom(constraint), constraint.rest, model.geometry, model.frames.frames, state.motion,
        real(dt),
    ]  # fmt: skip
    size = (model.worlds, constraint.particle.size)
    launch(carry_particles_kernel(model.dim), size, inputs, [state_out.motion], model.device)


def adj_carry_particles(
    model: MPMModel, constraint: HeldRegion, state: MPMState, state_out: MPMState, moved_adj: object, dt: float
) -> None:
    """Complete the adjoint of `carry_particles`, as `constraints.adj_hold_particles` does."""
    inputs = [
        constraint.particle, *_freedom(constraint), model.geometry, model.frames.frames, state.motion,
        state_out.motion, model.workspace.velocity, moved_adj, real(dt),
    ]  # fmt: skip
    outputs = [state.motion_adj, model.workspace.velocity_adj, pose_gradients(model.frames.frames)]
    size = (model.worlds, constraint.particle.size)
    launch(adj_carry_particles_kernel(model.dim), size, inputs, outputs, model.device)


def _freedom(constraint: HeldRegion) -> list:
    return [constraint.frame, constraint.freedom, space_direction(constraint)]


def space_direction(constraint: HeldRegion) -> wp.vec3d:
    """The direction of a constraint, in 3D."""
    n = constraint.direction
    return wp.vec3d(*(float(c) for c in n), *[0.0] * (3 - len(n)))


def _node_inputs(model: MPMModel, constraint: HeldRegion, active: wp.array, threads: tuple[int, int]) -> list:
    sizes = [model.grid.resolution[-1], model.grid.pencils, threads[1]]
    return [*model.grid.places, *_freedom(constraint), *sizes, constraint.share, active]


def pose_gradients(poses: MovingPoses) -> MovingPoses:
    """The gradients with respect to `poses`, as a Warp struct."""
    gradients = MovingPoses()
    for name in MovingPoses.vars:
        setattr(gradients, name, getattr(poses, name).grad)
    return gradients


@functools.cache
def direction_gradient(dim: int) -> wp.Function:
    """Warp function (d, g, freedom, n): gradient with respect to n of g . P d."""
    vec = vector(dim)

    @wp.func
    def by_direction(d: vec, g: vec, freedom: int, n: vec):
        """Gradient with respect to n of g . P d."""
        both = wp.dot(n, d) * g + wp.dot(n, g) * d
        n_adj = vec()
        if freedom == _LINE:
            n_adj = both
        if freedom == _PLANE:
            n_adj = -both
        return n_adj

    return by_direction


@wp.func
def add_gradients(
    poses: MovingPoses, gradients: MovingPoses, w: int, f: int, direction: wp.vec3d, x: wp.vec3d, u_adj: wp.vec3d,
    n_adj: wp.vec3d,
):  # fmt: skip
    """Add to the gradients of frame f, from the gradients u* of its velocity at x and n* of a direction; returns x*."""
    x_adj = wp.transpose(poses.spin[w, f]) @ u_adj
    wp.atomic_add(gradients.linear, w, f, u_adj)
    wp.atomic_add(gradients.spin, w, f, wp.outer(u_adj, x - poses.position[w, f]))
    wp.atomic_add(gradients.position, w, f, -x_adj)
    wp.atomic_add(gradients.rotation, w, f, wp.outer(n_adj, direction))
    return x_adj


@functools.cache
def carry_nodes_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): velocities of nodes that are held by a constraint that moves."""
    ivec, s, project, at = index_vector(dim), stencil(dim), projection(dim), node_position(dim)
    _, from_space = space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.moving_constraints_{dim}d"), enable_backward=False)
    def carry_grid(
        # model
        lower: wp.vec3d,
        dx: wp.float64,
        resolution: ivec,
        f: int,
        freedom: int,
        direction: wp.vec3d,
        length: int,
        pencils: int,
        lanes: int,
        # state
        share: wp.array[NODE],
        active: wp.array[int],
        frames: MovingPoses,
        # out
        velocity_out: wp.array[NODE],
        before_out: wp.array[NODE],
    ):
        """Writes v' = u + P (v - u) to each held node, and v to `before_out`."""
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        w = pencil // pencils
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            if is_held(share[i]):
                x = at(lower, dx, resolution, i - w * pencils * length)
                u = from_space(carried_velocity(frames.position[w, f], frames.linear[w, f], frames.spin[w, f], x))
                n = from_space(frames.rotation[w, f] @ direction)
                before = velocity_out[i]
                before_out[i] = before
                velocity_out[i] = s.node(u + project(s.momentum(before) - u, freedom, n), real(0.0))

    return carry_grid


@functools.cache
def adj_carry_nodes_kernel(dim: int) -> wp.Kernel:
    """Kernel over (pencils of all worlds, lanes): adjoint of `carry_nodes_kernel`."""
    ivec, s, project, at = index_vector(dim), stencil(dim), projection(dim), node_position(dim)
    (in_space, from_space), by_direction = space_maps(dim), direction_gradient(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.moving_constraints_{dim}d"), enable_backward=False)
    def adj_carry_grid(
        # model
        lower: wp.vec3d,
        dx: wp.float64,
        resolution: ivec,
        f: int,
        freedom: int,
        direction: wp.vec3d,
        length: int,
        pencils: int,
        lanes: int,
        # state
        share: wp.array[NODE],
        active: wp.array[int],
        frames: MovingPoses,
        before: wp.array[NODE],
        # out
        velocity_adj_out: wp.array[NODE],
        gradients_out: MovingPoses,
    ):
        """Replaces v'* of each held node by v*, and adds to the gradients of the frame."""
        pencil, lane = wp.tid()
        if active[pencil] == 0:
            return
        w = pencil // pencils
        for i in range(pencil * length + lane, (pencil + 1) * length, lanes):
            if is_held(share[i]):
                x = at(lower, dx, resolution, i - w * pencils * length)
                u = from_space(carried_velocity(frames.position[w, f], frames.linear[w, f], frames.spin[w, f], x))
                n = from_space(frames.rotation[w, f] @ direction)
                g = s.momentum(velocity_adj_out[i])
                v_adj = project(g, freedom, n)
                n_adj = by_direction(s.momentum(before[i]) - u, g, freedom, n)
                add_gradients(frames, gradients_out, w, f, direction, x, in_space(g - v_adj), in_space(n_adj))
                velocity_adj_out[i] = s.node(v_adj, real(0.0))

    return adj_carry_grid


@functools.cache
def carry_particles_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held particles): changes the velocities and positions that `move_kernel` has written."""
    s, project, (in_space, from_space) = stencil(dim), projection(dim), space_maps(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.moving_constraints_{dim}d"), enable_backward=False)
    def carry_held(
        # model
        particle: wp.array[int],
        f: int,
        freedom: int,
        direction: wp.vec3d,
        rest: wp.array[wp.vec3d],
        grid: GridGeometry,
        # state
        frames: MovingPoses,
        motion: MotionArrays,
        dt: real,
        # out
        motion_out: MotionArrays,
    ):
        """Writes v' = u + P (v' - u) and x' = x + dt v' of each held particle."""
        w, k = wp.tid()
        r = w * grid.particles + particle[k]
        if s.reach((motion.x[r] - grid.lower) * grid.inv_dx, grid.resolution):
            R = frames.rotation[w, f]
            p = frames.position[w, f]
            x = in_space(motion.x[r])
            if freedom == _FIXED:
                x += rounding_error(rest[k], p, R, x)
            carried = carried_velocity(p, frames.linear[w, f], frames.spin[w, f], x)
            u = from_space(carried)
            relative = project(motion_out.v[r] - u, freedom, from_space(R @ direction))
            motion_out.v[r] = u + relative
            motion_out.x[r] = from_space(x + wp.float64(dt) * carried) + dt * relative

    return carry_held


@functools.cache
def adj_carry_particles_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, held particles): adds the difference between the adjoints of a held and a free particle.

    The adjoint of the step has treated all particles as free, see `constraints.adj_hold_particles_kernel`.
    """
    mat, s, project = matrix(dim), stencil(dim), projection(dim)
    (in_space, from_space), by_direction = space_maps(dim), direction_gradient(dim)
    MotionArrays, GridGeometry = motion_arrays(dim), grid_geometry(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.moving_constraints_{dim}d"), enable_backward=False)
    def adj_carry_held(
        # model
        particle: wp.array[int],
        f: int,
        freedom: int,
        direction: wp.vec3d,
        grid: GridGeometry,
        # state
        frames: MovingPoses,
        motion: MotionArrays,
        moved: MotionArrays,
        velocity: wp.array[NODE],
        moved_adj: MotionArrays,
        dt: real,
        # out
        motion_adj_out: MotionArrays,
        velocity_adj_out: wp.array[NODE],
        gradients_out: MovingPoses,
    ):
        """With q = v*' + dt x*' and d = P q - q: v_i* += w d, u* -= d, x* += slope(d) - A^T (sum w v_i - v')."""
        w, k = wp.tid()
        r = w * grid.particles + particle[k]
        x = (motion.x[r] - grid.lower) * grid.inv_dx
        if s.reach(x, grid.resolution):
            first = w * grid.pencils
            at = in_space(motion.x[r])
            u = from_space(carried_velocity(frames.position[w, f], frames.linear[w, f], frames.spin[w, f], at))
            n = from_space(frames.rotation[w, f] @ direction)
            q = moved_adj.v[r] + dt * moved_adj.x[r]
            lost = project(q, freedom, n) - q
            A = (real(4.0) * grid.inv_dx) * (moved_adj.C[r] + dt * (moved_adj.F[r] @ wp.transpose(motion.F[r])))
            h, _M = s.gather(velocity, first, grid.resolution, x)
            s.scatter(velocity_adj_out, first, grid.resolution, x, lost, real(0.0), mat())
            slope = s.slope(velocity, first, grid.resolution, x, lost, real(0.0), mat())
            slope -= wp.transpose(A) @ (s.momentum(h) - moved.v[r])
            n_adj = by_direction(s.momentum(h) - u, q, freedom, n)
            x_adj = add_gradients(frames, gradients_out, w, f, direction, at, in_space(-lost), in_space(n_adj))
            motion_adj_out.x[r] = motion_adj_out.x[r] + grid.inv_dx * slope + from_space(x_adj)

    return adj_carry_held
