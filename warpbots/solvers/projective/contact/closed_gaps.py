"""Finds nodes between obstacles that have met, and held nodes inside an obstacle, before a step.

There is no room for matter between obstacles that have met, and the iteration of a step would not end. Obstacles do not
act on nodes that a constraint holds.
"""

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.numerics import real, vector
from warpbots.solvers.projective.contact.contact_arrays import ContactTopology
from warpbots.solvers.projective.contact.node_contact import ObstacleArrays, distance_to
from warpbots.solvers.projective.elements.nodes import NodeArrays

__all__ = ["find_buried_kernel", "find_closed_kernel"]

_vec = vector(3)
_OPPOSITE = wp.constant(real(-0.9))  # cosine between the normals of obstacles that face each other


@wp.kernel(enable_backward=False)
def find_closed_kernel(
    # model
    topology: ContactTopology,
    obstacles: ObstacleArrays,
    poses: MovingPoses,
    nodes: int,
    # state
    x: wp.array[_vec],
    # out
    where_out: wp.array[int],
    closed_out: wp.array[int],
):
    """Skip a step, in each world, if two obstacles have met at a node at its end; write the first of these nodes.

    If the normals at a node are opposite, the sum of the distances is the gap between the obstacles at this node.
    """
    w, k = wp.tid()
    i = topology.node[k]
    if where_out[w] == 0 or i >= nodes:
        return
    here = wp.vec3d(x[w * nodes + i])
    for s in range(obstacles.solids):
        d, _slope, n, _C = distance_to(obstacles, s, poses.rotation[w, s], poses.position[w, s], here)
        if d < real(0.0):
            for t in range(obstacles.solids):
                e, _slope, m, _C = distance_to(obstacles, t, poses.rotation[w, t], poses.position[w, t], here)
                if d + e < real(0.0) and wp.dot(n, m) < _OPPOSITE:
                    where_out[w] = 0
                    wp.atomic_min(closed_out, w, i)


@wp.kernel(enable_backward=False)
def find_buried_kernel(
    # model
    nodes: NodeArrays,
    obstacles: ObstacleArrays,
    poses: MovingPoses,
    held: wp.array[int],
    allowed: wp.array[real],
    # state
    x: wp.array[_vec],
    # out
    where_out: wp.array[int],
    buried_out: wp.array[int],
):
    """Skip a step, in each world, that ends with a held node inside an obstacle; write the first of these nodes.

    `held` contains the nodes of surfaces that constraints hold fixed, and `allowed` the depths up to which they do not
    count as inside.
    """
    w, k = wp.tid()
    i = held[k]
    if where_out[w] == 0:
        return
    place = x[w * nodes.count + i]
    if nodes.held[i] < nodes.anchors:
        place = nodes.anchor[w * nodes.anchors + nodes.held[i]]
    for s in range(obstacles.solids):
        d, _s, _n, _C = distance_to(obstacles, s, poses.rotation[w, s], poses.position[w, s], wp.vec3d(place))
        if d < -allowed[k]:
            where_out[w] = 0
            wp.atomic_min(buried_out, w, i)
