"""Contact of grid nodes with obstacles that move.

Obstacles have their poses at the start of the step. Nodes in contact with an obstacle get a velocity that the contact
condition allows, relative to the surface: the velocity of the obstacle at a node is its displacement in the step,
divided by the length of the step. Nodes up to half a cell in front of a surface are in contact, so that matter stops at
the surface on average over the positions of the surface on the grid (docs/design/mpm-constraints.md). These contacts
act after the contacts with obstacles at rest. If a node is in contact with several obstacles, the velocity after one
contact is the input of the next. The set of nodes in contact is discrete; gradients do not include its changes.

Kernels visit only the nodes in the part of a pencil that an obstacle can reach, and write only nodes in contact. The
velocities before contact are kept for the adjoint, which works in place as well.
"""

import functools

import warp as wp

from warpbots.contact import constrain
from warpbots.contact.moving_frames import MovingPoses, belt_along, belt_slope, surface_velocity
from warpbots.contact.solid import LINEAR, PLANE, Solids, solid_distance, solid_distance_adjoint
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import NODE, index_vector, launch, real, vector
from warpbots.solvers.mpm.grid import node_position
from warpbots.solvers.mpm.model import MPMModel
from warpbots.solvers.mpm.shared_grid import stencil
from warpbots.solvers.mpm.workspace import Gathered

__all__ = ["adj_moving_contact", "moving_contact", "opposite", "surface"]

_AHEAD = wp.constant(wp.float64(0.5 - 1e-6))
"""Distance in front of a surface within which nodes are in contact with it [cells]; just below a half, so that rounding
has no effect on a surface in the middle between two nodes."""

_CHUNK = 64
"""Number of pencils that a thread visits on a CPU."""

_OPPOSITE = wp.constant(wp.float64(0.9))
"""Cosine of the angle to the opposite direction within which two faces are opposite."""

_SMALL = wp.constant(wp.float64(1e-9))
_ZERO = wp.constant(wp.float64(0.0))


def moving_contact(
    model: MPMModel, gathered: Gathered, threads: tuple[int, int], dt: float, force: wp.array | None = None
) -> None:
    """Change the velocities of nodes in contact with obstacles that move, in a step of length `dt` [s].

    Args:
        model: The model, with the poses of obstacles in this step.
        gathered: Momentum and mass on the grid.
        threads: Size of launches over the nodes.
        dt: Length of the step [s].
        force: Receives the forces of nodes on obstacles [N], shape (worlds, n_contacts), vector; None if not wanted.
    """
    work = model.workspace
    work.pinched.zero_()
    still = [model.contacts.of_node, model.contacts.normal]
    inputs, outputs = (
        [*_inputs(model, gathered, threads, dt), model.friction, *still],
        [work.velocity, work.before, work.pinched, force],
    )
    launch(moving_contact_kernel(model.dim), _chunks(threads), inputs, outputs, model.device)


def adj_moving_contact(
    model: MPMModel, gathered: Gathered, threads: tuple[int, int], dt: float, force_adj: wp.array | None = None
) -> None:
    """Adjoint of `moving_contact`: changes the gradient of the velocities of nodes, in place.

    It adds to the gradients of friction and of the poses of the obstacles, and of mass if there are forces.
    """
    work, copies = model.workspace, model.workspace.copies
    inputs = [
        *_inputs(model, gathered, threads, dt), model.friction, copies.count, work.before, force_adj,
    ]  # fmt: skip
    poses_adj = MovingPoses()
    for name in MovingPoses.vars:
        setattr(poses_adj, name, getattr(model.frames.solids, name).grad)
    outputs = [
        work.velocity_adj, work.momentum_adj, copies.gradient("friction", model.friction), poses_adj, work.no_samples,
    ]  # fmt: skip
    launch(adj_moving_contact_kernel(model.dim), _chunks(threads), inputs, outputs, model.device)
    copies.collect("friction", model.friction)


def _chunk_size(threads: tuple[int, int]) -> int:
    """Number of pencils that a thread visits: most are empty, and a thread that copies its arguments costs 22 ns."""
    return _CHUNK if threads[1] == 1 else 1


def _chunks(threads: tuple[int, int]) -> tuple[int, int]:
    return -(-threads[0] // _chunk_size(threads)), threads[1]


def _inputs(model: MPMModel, gathered: Gathered, threads: tuple[int, int], dt: float) -> list:
    contacts, sizes = model.contacts, [model.grid.resolution[-1], model.grid.pencils, threads[1], _chunk_size(threads)]
    surfaces = [model.moving.solids, model.moving.owner, contacts.condition, contacts.extra, contacts.normal.size]
    return [
        *model.grid.places, *surfaces, *sizes, real(dt), model.frames.solids, gathered.active, gathered.momentum,
    ]  # fmt: skip


@wp.func
def surface(solids: Solids, k: int, R: wp.mat33d, p: wp.vec3d, x: wp.vec3d):
    """Signed distance [m] of x from a solid and its gradient, which is not exactly a unit vector for sampled solids."""
    n = wp.vec3d(R[0, 2], R[1, 2], R[2, 2])
    d = wp.dot(n, x - p)
    if solids.kind[k] != PLANE:
        d, n = solid_distance(solids, 0, k, R, p, x)
    return d, n


@wp.func
def opposite(n: wp.vec3d, m: wp.vec3d):
    """Whether faces of the normals n and m are opposite, so that matter between them cannot escape sideways."""
    return wp.dot(n, m) < -_OPPOSITE * wp.length(n) * wp.length(m)


@wp.func
def within(solids: Solids, k: int, R: wp.mat33d, p: wp.vec3d, x: wp.vec3d, axis: int, dx: wp.float64, last: int):
    """First and last node, on a pencil from x along `axis`, that can be in contact: below a plane, or in a ball."""
    kind = solids.kind[k]
    reach = _AHEAD * dx
    if kind != PLANE:
        reach += solids.reach[k]
    end = wp.float64(last)
    low = _ZERO
    high = end
    if kind == PLANE:
        d = R[0, 2] * (x[0] - p[0]) + R[1, 2] * (x[1] - p[1]) + R[2, 2] * (x[2] - p[2]) - reach
        slope = R[axis, 2] * dx
        if wp.abs(slope) > _SMALL * dx:
            if slope > _ZERO:
                high = wp.clamp(-d / slope + wp.float64(1.0), -wp.float64(1.0), end)
            else:
                low = wp.clamp(-d / slope, _ZERO, end + wp.float64(1.0))
        elif d > _SMALL * dx * end:
            high = -wp.float64(1.0)
    else:
        along = p[axis] - x[axis]
        square = reach * reach - wp.length_sq(x - p) + along * along
        if square < _ZERO:
            high = -wp.float64(1.0)
        else:
            half = wp.sqrt(square)
            low = wp.clamp((along - half) / dx, _ZERO, end + wp.float64(1.0))
            high = wp.clamp((along + half) / dx + wp.float64(1.0), -wp.float64(1.0), end)
    return wp.vec2i(int(wp.floor(low)), int(wp.floor(high)))


@wp.func
def first_of(low: int, lane: int, lanes: int):
    """The first node, not before `low`, of the thread `lane`."""
    return lane + (low - lane + lanes - 1) // lanes * lanes


@wp.func
def contact_at(
    solids: Solids, k: int, R: wp.mat33d, p: wp.vec3d, start: wp.vec3d, axis: int, dx: wp.float64, j: int, mass: real
):  # fmt: skip
    """Whether node j, of the given mass, of a pencil from `start` along `axis` is in contact with a solid.

    Also returns the place of the node [m], the unit normal of the solid there, and the length of the gradient of its
    distance, which is not exactly 1 for sampled solids.
    """
    x = start
    x[axis] = start[axis] + dx * wp.float64(j)
    near = False
    n = wp.vec3d()
    steep = wp.float64(1.0)
    if mass != real(0.0):
        d, n = surface(solids, k, R, p, x)
        near = d <= _AHEAD * dx
        if near and solids.kind[k] >= LINEAR:
            steep = wp.length(n)
            n = wp.normalize(n)
    return near, x, n, steep


@functools.cache
def _contact(dim: int) -> tuple[wp.Function, wp.Function]:
    vec, constrain_velocity = vector(dim), constrain(dim)

    @wp.func
    def velocity_after(v: vec, u: vec, n: vec, condition: int, mu: real, extra: real):
        """Velocity after contact with a surface of the velocity u [m/s]."""
        against = v - u
        return u + constrain_velocity(against, n, -wp.dot(against, n), condition, mu, extra)

    @wp.func
    def contact_work(v: vec, u: vec, n: vec, condition: int, mu: real, extra: real, g: vec):
        """g . v'; its gradient is the adjoint of `velocity_after`."""
        return wp.dot(g, velocity_after(v, u, n, condition, mu, extra))

    return velocity_after, contact_work


@functools.cache
def moving_contact_kernel(dim: int) -> wp.Kernel:
    """Kernel over (chunks of pencils, lanes): velocities of nodes after contact with obstacles that move."""
    vec, ivec, s, at = vector(dim), index_vector(dim), stencil(dim), node_position(dim)
    (in_space, from_space), (velocity_after, _) = space_maps(dim), _contact(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.moving_contact_{dim}d"), enable_backward=False)
    def contact_of_nodes(
        # model
        lower: wp.vec3d,
        dx: wp.float64,
        resolution: ivec,
        solids: Solids,
        owner: wp.array[int],
        condition: wp.array[int],
        extra: wp.array[real],
        first: int,
        length: int,
        pencils: int,
        lanes: int,
        chunk_size: int,
        dt: real,
        # work
        poses: MovingPoses,
        active: wp.array[int],
        momentum: wp.array[NODE],
        friction: wp.array2d[real],
        contact: wp.array[wp.vec3i],
        normal: wp.array[vec],
        # out
        velocity_out: wp.array[NODE],
        before_out: wp.array2d[NODE],
        pinched_out: wp.array[int],
        force_out: wp.array2d[vec],
    ):
        """Writes v' = u + constrain(v - u) to each node in contact, with the velocity u of the surface.

        Also writes v to `before_out`, and, if there is such an array, the force m (v - v') / dt to `force_out`, for
        obstacle k and node i at first + k n + i, with n nodes in a world. `pinched_out` becomes 1 in a world in which a
        node is in contact with opposite faces.
        """
        chunk, lane = wp.tid()
        for pencil in range(chunk * chunk_size, wp.min((chunk + 1) * chunk_size, active.shape[0])):
            if active[pencil] == 0:
                continue
            w = pencil // pencils
            start = at(lower, dx, resolution, (pencil - w * pencils) * length)
            for k in range(owner.shape[0]):
                R = poses.rotation[w, k]
                p = poses.position[w, k]
                ends = within(solids, k, R, p, start, dim - 1, dx, length - 1)
                for j in range(first_of(ends[0], lane, lanes), ends[1] + 1, lanes):
                    i = pencil * length + j
                    m = momentum[i][3]
                    near, x, n, _steep = contact_at(solids, k, R, p, start, dim - 1, dx, j, m)
                    if near:
                        u = from_space(surface_velocity(poses, w, k, x, n))
                        o = owner[k]
                        v = s.momentum(velocity_out[i])
                        left = velocity_after(v, u, from_space(n), condition[o], friction[w, o], extra[o])
                        before_out[k, i] = velocity_out[i]
                        velocity_out[i] = s.node(left, real(0.0))
                        own = contact[i - w * pencils * length]
                        for c in range(3):
                            if own[c] >= 0 and opposite(n, in_space(normal[own[c]])):
                                pinched_out[w] = 1
                        for q in range(k):
                            other, face = surface(solids, q, poses.rotation[w, q], poses.position[w, q], x)
                            if other <= _AHEAD * dx and opposite(n, face):
                                pinched_out[w] = 1
                        if force_out:
                            force_out[w, first + (k - w) * pencils * length + i] = (m / dt) * (v - left)

    return contact_of_nodes


@functools.cache
def adj_moving_contact_kernel(dim: int) -> wp.Kernel:
    """Kernel over (chunks of pencils, lanes): adjoint of `moving_contact_kernel`."""
    vec, ivec, s, at = vector(dim), index_vector(dim), stencil(dim), node_position(dim)
    (in_space, from_space), (velocity_after, contact_work) = space_maps(dim), _contact(dim)

    # A module of its own, in which `wp.grad` comes before a plain call of the same functions (`transfer_adjoint`).
    @wp.kernel(module=wp.get_module(f"warpbots.mpm.adj_moving_contact_{dim}d"), enable_backward=False)
    def adj_contact_of_nodes(
        # model
        lower: wp.vec3d,
        dx: wp.float64,
        resolution: ivec,
        solids: Solids,
        owner: wp.array[int],
        condition: wp.array[int],
        extra: wp.array[real],
        first: int,
        length: int,
        pencils: int,
        lanes: int,
        chunk_size: int,
        dt: real,
        # work
        poses: MovingPoses,
        active: wp.array[int],
        momentum: wp.array[NODE],
        friction: wp.array2d[real],
        copies: int,
        before: wp.array2d[NODE],
        force_adj: wp.array2d[vec],
        # out
        velocity_adj_out: wp.array[NODE],
        momentum_adj_out: wp.array[NODE],
        friction_adj_out: wp.array2d[real],
        poses_adj_out: MovingPoses,
        samples_adj_out: wp.array2d[wp.float64],
    ):
        """Replaces v'* of each node in contact by v*, and adds to the gradients of friction and poses.

        A force f = m (v - v') / dt adds -m f* / dt to v'*, m f* / dt to v*, and f* . (v - v') / dt to m*.
        """
        chunk, lane = wp.tid()
        for pencil in range(chunk * chunk_size, wp.min((chunk + 1) * chunk_size, active.shape[0])):
            if active[pencil] == 0:
                continue
            w = pencil // pencils
            row = w * copies + ((pencil + lane) & (copies - 1))
            start = at(lower, dx, resolution, (pencil - w * pencils) * length)
            count = owner.shape[0]
            for back in range(count):
                k = count - 1 - back
                R = poses.rotation[w, k]
                p = poses.position[w, k]
                ends = within(solids, k, R, p, start, dim - 1, dx, length - 1)
                for j in range(first_of(ends[0], lane, lanes), ends[1] + 1, lanes):
                    i = pencil * length + j
                    m = momentum[i][3]
                    near, x, n, steep = contact_at(solids, k, R, p, start, dim - 1, dx, j, m)
                    if near:
                        belt = poses.belt[w, k]
                        u = from_space(surface_velocity(poses, w, k, x, n))
                        o = owner[k]
                        mu = friction[w, o]
                        v = s.momentum(before[k, i])
                        g = s.momentum(velocity_adj_out[i])
                        f_adj = vec()
                        if force_adj:
                            f_adj = force_adj[w, first + (k - w) * pencils * length + i] / dt
                            g -= m * f_adj
                        v_adj, u_adj, n_adj, _condition, mu_adj, _extra, _g = wp.grad(contact_work)(
                            v, u, from_space(n), condition[o], mu, extra[o], g
                        )
                        if force_adj:
                            left = velocity_after(v, u, from_space(n), condition[o], mu, extra[o])
                            v_adj += m * f_adj
                            more = NODE(real(0.0), real(0.0), real(0.0), wp.dot(f_adj, v - left))
                            momentum_adj_out[i] = momentum_adj_out[i] + more
                        velocity_adj_out[i] = s.node(v_adj, real(0.0))
                        if friction_adj_out:
                            wp.atomic_add(friction_adj_out, row, o, mu_adj)
                        moving_adj = in_space(u_adj)
                        slope_adj = in_space(n_adj) + wp.transpose(belt_slope(belt, n)) @ moving_adj
                        if solids.kind[k] >= LINEAR:
                            slope_adj = (slope_adj - wp.dot(slope_adj, n) * n) / steep
                        x_adj, R_adj = solid_distance_adjoint(solids, 0, k, R, p, x, _ZERO, slope_adj, samples_adj_out)
                        wp.atomic_add(poses_adj_out.linear, w, k, moving_adj)
                        wp.atomic_add(poses_adj_out.belt, w, k, belt_along(moving_adj, n))
                        wp.atomic_add(poses_adj_out.spin, w, k, wp.outer(moving_adj, x - p))
                        spun_adj = wp.transpose(poses.spin[w, k]) @ moving_adj
                        wp.atomic_add(poses_adj_out.position, w, k, -x_adj - spun_adj)
                        wp.atomic_add(poses_adj_out.rotation, w, k, R_adj)

    return adj_contact_of_nodes
