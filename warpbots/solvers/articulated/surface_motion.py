"""Poses and velocities of bodies, solids and surfaces at a contact, by the index of a body.

An index is -1 for the world, and -2 - f for frame f of an obstacle that moves (`obstacle_motion`). The velocity of such
an obstacle is an affine function of the place. In addition its surface may move like a belt.
"""

import warp as wp

from warpbots.contact.moving_frames import belt_along, belt_slope, carried_velocity
from warpbots.contact.solid import Solids, solid_frame
from warpbots.solvers.articulated.robot_arrays import JointTree
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import Links

__all__ = ["WORLD", "body_pose", "body_twist", "relative_velocity", "solid_pose", "surface_gradients"]

WORLD = wp.constant(-1)
"""Index of a body that stands for the world; frame f of an obstacle that moves has the index `WORLD` - 1 - f."""


@wp.func
def body_pose(tree: JointTree, links: Links, w: int, body: int):
    """Orientation and origin [m] of a body, of the world, or of an obstacle that moves."""
    R = wp.identity(n=3, dtype=scalar)
    p = vec3()
    if body >= 0:
        R = links.body_rotation[w * tree.bodies + body]
        p = links.body_position[w * tree.bodies + body]
    elif body < WORLD:
        R = links.frame_rotation[w, WORLD - 1 - body]
        p = links.frame_position[w, WORLD - 1 - body]
    return R, p


@wp.func
def solid_pose(tree: JointTree, links: Links, solids: Solids, w: int, s: int):
    """Orientation and origin [m] of solid s."""
    R, p = body_pose(tree, links, w, solids.body[s])
    return solid_frame(solids, s, R, p)


@wp.func
def body_twist(tree: JointTree, links: Links, w: int, body: int):
    """Twist of a body; zero for the world and for obstacles that move, whose velocity `surface_velocity` returns."""
    V = Twist()
    if body >= 0:
        V = links.twist[w * tree.elements + tree.element[body]]
    return V


@wp.func
def surface_velocity(links: Links, w: int, body: int, x: vec3, n: vec3):
    """Velocity at x of the surface of an obstacle that moves, with the normal n [m/s]."""
    f = WORLD - 1 - body
    carried = carried_velocity(links.frame_position[w, f], links.frame_linear[w, f], links.frame_spin[w, f], x)
    return carried + belt_along(links.frame_belt[w, f], n)


@wp.func
def relative_velocity(tree: JointTree, links: Links, w: int, a: int, b: int, x: vec3, n: vec3):
    """Velocity of body a relative to body b at x, where the surface of the solid has the normal n [m/s]."""
    V = body_twist(tree, links, w, a) - body_twist(tree, links, w, b)
    u = linear(V) + wp.cross(angular(V), x)
    if a < WORLD:
        u = u + surface_velocity(links, w, a, x, n)
    if b < WORLD:
        u = u - surface_velocity(links, w, b, x, n)
    return u


@wp.func
def surface_gradients(links: Links, w: int, a: int, b: int, n: vec3):
    """Derivatives, with respect to x and n, of the parts of the relative velocity due to obstacles that move."""
    by_x = mat33()
    by_n = mat33()
    if a < WORLD:
        by_x += links.frame_spin[w, WORLD - 1 - a]
        by_n += belt_slope(links.frame_belt[w, WORLD - 1 - a], n)
    if b < WORLD:
        by_x -= links.frame_spin[w, WORLD - 1 - b]
        by_n -= belt_slope(links.frame_belt[w, WORLD - 1 - b], n)
    return by_x, by_n
