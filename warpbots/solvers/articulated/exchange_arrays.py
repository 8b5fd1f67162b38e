"""Warp structs of the points of matter that touch bodies."""

import warp as wp

from warpbots.solvers.articulated.spatial import Twist, mat33, scalar, vec3

__all__ = ["Exchange", "ExchangeGradients"]


@wp.struct
class Exchange:
    """Points of matter that touch bodies, of all worlds, with room for n points.

    The points of body b of world w are `count` points from the index `first` on, both at w * bodies + b.

    capacity: Room for points, n; 0 if there is no matter.
    first: Index of the first point of each body, shape (worlds * bodies,).
    count: Number of points that touch each body, shape (worlds * bodies,).
    place: Place of each point at the start of the last stage [m], shape (n,).
    mass: Mass of each point [kg], shape (n,).
    velocity: Velocity of each point at the end of the step without the bodies [m/s], shape (n,).
    normal: Outward unit normal of the body at each point [1], shape (n,).
    condition: Code of the contact condition of each point, shape (n,).
    friction: Coulomb coefficient at each point [1], shape (n,).
    wrench: Wrench of all points on each body [N m, N], shape (worlds * bodies,).
    blocks: Matrix B of each body, as four blocks, row by row: a change dV of the twist of the body changes the wrench
        by -B dV, shape (worlds * bodies * 4,).
    """

    capacity: int
    first: wp.array[int]
    count: wp.array[int]
    place: wp.array[vec3]
    mass: wp.array[scalar]
    velocity: wp.array[vec3]
    normal: wp.array[vec3]
    condition: wp.array[int]
    friction: wp.array[scalar]
    wrench: wp.array[Twist]
    blocks: wp.array[mat33]


@wp.struct
class ExchangeGradients:
    """Gradients with respect to the fields of `Exchange` with the same names."""

    place: wp.array[vec3]
    mass: wp.array[scalar]
    velocity: wp.array[vec3]
    normal: wp.array[vec3]
    friction: wp.array[scalar]
