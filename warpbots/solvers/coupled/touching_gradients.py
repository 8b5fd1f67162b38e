"""Adjoints of the kernels of `touching_points`."""

import functools

import warp as wp

from warpbots.contact.solid import LINEAR, Solids, solid_distance, solid_distance_adjoint
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import real, sum_of_lanes, vector
from warpbots.solvers.articulated.exchange_arrays import Exchange, ExchangeGradients
from warpbots.solvers.articulated.spatial import Twist, angular, mat33, scalar, spatial, vec3
from warpbots.solvers.coupled.touching_points import end_of_points

__all__ = ["add_friction_gradients_kernel", "adj_wrench_kernel", "pose_gradients_kernel"]

_sum, _sum_of_twists, _sum_of_matrices, _sum_of_numbers = map(sum_of_lanes, (vec3, Twist, mat33, scalar))
_HALF = wp.constant(scalar(0.5))


@wp.kernel(enable_backward=False)
def adj_wrench_kernel(
    # model
    bodies: int,
    # step
    h: scalar,
    # work
    points: Exchange,
    impulse: wp.array[vec3],
    force_adj: wp.array2d[vec3],
    torque_adj: wp.array2d[vec3],
    # out
    impulse_adj_out: wp.array[vec3],
    place_adj_out: wp.array[vec3],
):
    """Add to the gradients by impulses or by places, if there is such an array, from those by forces and torques."""
    w, b, lane = wp.tid()
    k = w * bodies + b
    for i in range(points.first[k] + lane, points.first[k] + points.count[k], wp.block_dim()):
        if impulse_adj_out:
            own = (force_adj[w, b] + wp.cross(torque_adj[w, b], points.place[i])) / h
            impulse_adj_out[i] = impulse_adj_out[i] + own
        if place_adj_out:
            place_adj_out[i] = place_adj_out[i] + wp.cross(impulse[i], torque_adj[w, b]) / h


@functools.cache
def pose_gradients_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, bodies, lanes) for matter in `dim` dimensions."""
    vec = vector(dim)
    in_space, from_space = space_maps(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.coupled.pose_gradients_{dim}d"), enable_backward=False)
    def pose_gradients(
        # model
        bodies: int,
        elements: int,
        element: wp.array[int],
        solids: Solids,
        matter: int,
        bound: wp.array[int],
        bound_place: wp.array[vec3],
        # state
        x: wp.array[vec],
        # step
        h: scalar,
        correction: scalar,
        # work
        twist: wp.array[Twist],
        axes: wp.array[mat33],
        origin: wp.array[vec3],
        row: wp.array[int],
        points: Exchange,
        distance_adj: wp.array[scalar],
        gradients: ExchangeGradients,
        # out
        x_adj_out: wp.array[vec3],
        v_adj_out: wp.array[vec],
        twist_adj_out: wp.array[Twist],
        position_adj_out: wp.array[vec3],
        rotation_adj_out: wp.array[mat33],
        samples_adj_out: wp.array2d[scalar],
    ):
        """Add the gradients of normals, distances and corrections to those of positions of points and poses of bodies.

        Without an array `distance_adj` the distances have no gradients. There is an array `v_adj_out` where forces are
        measured.
        """
        w, b, lane = wp.tid()
        k = w * bodies + b
        R = axes[k]
        p = origin[k]
        e = w * elements + element[b]
        V_adj = Twist()
        p_adj = vec3()
        R_adj = mat33()
        for i in range(points.first[k] + lane, points.first[k] + points.count[k], wp.block_dim()):
            r = row[i]
            v_adj = gradients.velocity[i]
            if bound[r - w * matter] >= 0 and v_adj_out:
                V_adj += spatial(wp.cross(in_space(x[r]), v_adj), v_adj)
                x_adj_out[i] = x_adj_out[i] + wp.cross(v_adj, angular(twist[e]))
                v_adj_out[r] = v_adj_out[r] - from_space(v_adj)
            elif bound[r - w * matter] >= 0:
                away_adj = correction / h * v_adj
                x_adj_out[i] = x_adj_out[i] + away_adj
                p_adj -= away_adj
                R_adj -= wp.outer(away_adj, bound_place[r - w * matter])
            else:
                n = points.normal[i]
                y = in_space(x[r])
                _d, slope = solid_distance(solids, 0, b, R, p, y)
                n_adj = gradients.normal[i]
                d_adj = scalar(0.0)
                if distance_adj:
                    d_adj = distance_adj[i]
                if solids.kind[b] >= LINEAR:
                    n_adj = (n_adj - wp.dot(n_adj, n) * n) / wp.length(slope)
                x_adj, own_adj = solid_distance_adjoint(solids, 0, b, R, p, y, d_adj, n_adj, samples_adj_out)
                x_adj_out[i] = x_adj_out[i] + x_adj
                p_adj -= x_adj
                R_adj += own_adj
        V_adj = _sum_of_twists(V_adj)
        p_adj = _sum(p_adj)
        R_adj = _sum_of_matrices(R_adj)
        if lane == 0:
            twist_adj_out[e] = twist_adj_out[e] + V_adj
            position_adj_out[k] = position_adj_out[k] + p_adj
            rotation_adj_out[k] = (
                rotation_adj_out[k] + R_adj @ wp.transpose(solids.rotation[b]) + wp.outer(p_adj, solids.position[b])
            )

    return pose_gradients


@wp.kernel(enable_backward=False)
def add_friction_gradients_kernel(
    # model
    bodies: int,
    matter: int,
    soft: wp.array[int],
    # work
    row: wp.array[int],
    points: Exchange,
    gradients: ExchangeGradients,
    # out
    friction_adj_out: wp.array2d[real],
):
    """Add the gradients by the coefficients at the points to those of each soft body, then of each rigid body."""
    w, body, lane = wp.tid()
    softs = friction_adj_out.shape[1] - bodies
    start = int(w * matter)
    end = end_of_points(points, bodies, w)
    if body >= softs:
        k = w * bodies + body - softs
        start = points.first[k]
        end = start + points.count[k]
    mu = scalar(0.0)
    for i in range(start + lane, end, wp.block_dim()):
        if body >= softs or soft[row[i]] == body:
            mu += gradients.friction[i]
    mu = _sum_of_numbers(mu)
    if lane == 0:
        friction_adj_out[w, body] = friction_adj_out[w, body] + real(_HALF * mu)
