"""Adjoints of the kernels of `touching_points`."""

import warp as wp

from warpbots.contact.solid import LINEAR, Solids, solid_distance, solid_distance_adjoint
from warpbots.contact.space_maps import space_maps
from warpbots.numerics import real, vector
from warpbots.solvers.articulated.exchange_arrays import Exchange, ExchangeGradients
from warpbots.solvers.articulated.robot_arrays import JointTree
from warpbots.solvers.articulated.spatial import Twist, angular, mat33, scalar, spatial, vec3

__all__ = ["add_friction_gradients_kernel", "adj_wrench_kernel", "pose_gradients_kernel"]

_vec = vector(3)
in_space, from_space = space_maps(3)
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
    w, b = wp.tid()
    k = w * bodies + b
    for i in range(points.first[k], points.first[k] + points.count[k]):
        if impulse_adj_out:
            own = (force_adj[w, b] + wp.cross(torque_adj[w, b], points.place[i])) / h
            impulse_adj_out[i] = impulse_adj_out[i] + own
        if place_adj_out:
            place_adj_out[i] = place_adj_out[i] + wp.cross(impulse[i], torque_adj[w, b]) / h


@wp.kernel(enable_backward=False)
def pose_gradients_kernel(
    # model
    bodies: int,
    tree: JointTree,
    solids: Solids,
    soft: wp.array[int],
    matter: int,
    bound: wp.array[int],
    bound_place: wp.array[vec3],
    # state
    x: wp.array[_vec],
    # step
    h: scalar,
    correction: scalar,
    # work
    twist: wp.array[Twist],
    axes: wp.array[mat33],
    origin: wp.array[vec3],
    particle: wp.array[int],
    points: Exchange,
    distance_adj: wp.array[scalar],
    gradients: ExchangeGradients,
    # out
    x_adj_out: wp.array[vec3],
    v_adj_out: wp.array[_vec],
    twist_adj_out: wp.array[Twist],
    position_adj_out: wp.array[vec3],
    rotation_adj_out: wp.array[mat33],
    friction_adj_out: wp.array2d[scalar],
    samples_adj_out: wp.array2d[scalar],
):
    """Add the gradients of normals, distances and corrections to those of positions of points and poses of bodies.

    Without an array `distance_adj` the distances have no gradients. Also write the gradient by the coefficient of
    friction of each rigid body with each soft body. There is an array `v_adj_out` where forces are measured.
    """
    w, b = wp.tid()
    k = w * bodies + b
    R = axes[k]
    p = origin[k]
    e = w * tree.elements + tree.element[b]
    V_adj = Twist()
    p_adj = vec3()
    R_adj = mat33()
    pair = b * (friction_adj_out.shape[1] // bodies)
    for s in range(friction_adj_out.shape[1] // bodies):
        friction_adj_out[w, pair + s] = scalar(0.0)
    for i in range(points.first[k], points.first[k] + points.count[k]):
        r = particle[i]
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
            s = soft[r]
            friction_adj_out[w, pair + s] = friction_adj_out[w, pair + s] + gradients.friction[i]
    twist_adj_out[e] = twist_adj_out[e] + V_adj
    position_adj_out[k] = position_adj_out[k] + p_adj
    rotation_adj_out[k] = (
        rotation_adj_out[k] + R_adj @ wp.transpose(solids.rotation[b]) + wp.outer(p_adj, solids.position[b])
    )


@wp.kernel(enable_backward=False)
def add_friction_gradients_kernel(
    # model
    bodies: int,
    # work
    of_pair: wp.array2d[scalar],
    # out
    friction_adj_out: wp.array2d[real],
):
    """Add the gradients by the coefficients of pairs of bodies to those of soft and of rigid bodies."""
    w = wp.tid()
    soft = of_pair.shape[1] // bodies
    for b in range(bodies):
        mu = scalar(0.0)
        for s in range(soft):
            mu += of_pair[w, b * soft + s]
        friction_adj_out[w, soft + b] = friction_adj_out[w, soft + b] + real(_HALF * mu)
    for s in range(soft):
        mu = scalar(0.0)
        for b in range(bodies):
            mu += of_pair[w, b * soft + s]
        friction_adj_out[w, s] = friction_adj_out[w, s] + real(_HALF * mu)
