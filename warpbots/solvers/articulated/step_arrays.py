"""Warp structs for the intermediate results of a step: stages, motion of links, contacts and sums over subtrees."""

import warp as wp

from warpbots.solvers.articulated.exchange_arrays import Exchange
from warpbots.solvers.articulated.spatial import Twist, mat33, scalar, vec3

__all__ = ["Change", "ImplicitStage", "Links", "Pairs", "StepArrays", "Subtree", "Subtrees"]


@wp.struct
class ImplicitStage:
    """An implicit stage, flattened over all worlds.

    The stage displaces the coordinates q by x and ends with the velocities v = c x + rate and the accelerations c v +
    accel.

    q: Joint coordinates before the displacement [rad, m, or quaternions], shape (worlds * coordinates,).
    x: Displacement of the joint coordinates [rad or m], shape (worlds * freedom,).
    rate: Velocities minus c x [rad/s or m/s], shape (worlds * freedom,).
    accel: Accelerations minus c v [rad/s^2 or m/s^2], shape (worlds * freedom,).
    c: Inverse of the length of the stage [1/s], shape (worlds,).
    """

    q: wp.array[scalar]
    x: wp.array[scalar]
    rate: wp.array[scalar]
    accel: wp.array[scalar]
    c: wp.array[scalar]


@wp.struct
class Links:
    """Poses and motion of elements and bodies in world axes, flattened over all worlds.

    rotation: Orientation of each element [1], shape (worlds * elements,).
    position: Origin of each element [m], shape (worlds * elements,).
    basis: Axes of the velocities of each element, as columns [1], shape (worlds * elements,).
    twist: Twist of each element [rad/s, m/s], shape (worlds * elements,).
    acceleration: Spatial acceleration of each element minus the acceleration of gravity [rad/s^2, m/s^2], shape (worlds
        * elements,).
    body_rotation: Orientation of the frame of each body [1], shape (worlds * bodies,).
    body_position: Origin of the frame of each body [m], shape (worlds * bodies,).
    frame_rotation, frame_position, frame_linear, frame_spin, frame_belt: Poses and velocities of obstacles that move
        (`MovingPoses`), each of shape (worlds, frames); null if no obstacle moves.
    """

    rotation: wp.array[mat33]
    position: wp.array[vec3]
    basis: wp.array[mat33]
    twist: wp.array[Twist]
    acceleration: wp.array[Twist]
    body_rotation: wp.array[mat33]
    body_position: wp.array[vec3]
    frame_rotation: wp.array2d[mat33]
    frame_position: wp.array2d[vec3]
    frame_linear: wp.array2d[vec3]
    frame_spin: wp.array2d[mat33]
    frame_belt: wp.array2d[vec3]


@wp.struct
class Pairs:
    """Sums over the contacts of each pair, and arrays with which these sums are computed.

    The arrays are flattened over all worlds.

    near: For each pair, 1 if the bounding sphere of its group overlaps its solid, else 0, shape (worlds * pairs,).
    active: For each pair, 1 if the pair has contacts, else 0, shape (worlds * pairs,).
    wrench: Wrench W of each pair (`cloud_contact`) [N m, N], shape (worlds * pairs,).
    blocks: Matrices K, L and D of each pair, as four blocks each, row by row [N m, N and per m or m/s], shape (worlds *
        pairs * 12,).
    free: For each candidate, 1 if it exerts no compliant force because it is about to have an instant impact
        (`impacts`), else 0, shape (worlds * candidates,).
    center: Centre of the bounding sphere of each group in the frame of its body [m], shape (worlds * groups,).
    radius: Radius of the bounding sphere of each group [m], shape (worlds * groups,).
    hardness: Factor of viscosities and of masses of points of matter in the continuation of `newton` [1], shape
        (worlds,).
    in_contact: For each thread, 1 if the point that the thread evaluates is in contact, else 0, shape (worlds *
        lanes,).
    margin: For each thread, the least `sticking_margin` of the points that the thread has evaluated [m/s], shape
        (worlds * lanes,).
    point_wrench: For each thread, the wrench of the point that the thread evaluates [N m, N], shape (worlds * lanes,).
    point_blocks: For each thread, the matrices K, L and D of the point that the thread evaluates, with the form and the
        units of `blocks`, shape (worlds * lanes * 12,).
    """

    near: wp.array[int]
    active: wp.array[int]
    wrench: wp.array[Twist]
    blocks: wp.array[mat33]
    free: wp.array[int]
    center: wp.array[vec3]
    radius: wp.array[scalar]
    hardness: wp.array[scalar]
    in_contact: wp.array[int]
    margin: wp.array[scalar]
    point_wrench: wp.array[Twist]
    point_blocks: wp.array[mat33]


@wp.struct
class Subtrees:
    """Sums over the bodies that each element carries; every array has shape (worlds * elements,).

    mass: Total mass of the bodies [kg].
    moment: Sum of mass times centre of mass of the bodies [kg m].
    inertia: Sum of the moments of inertia of the bodies about the origin of the world [kg m^2].
    need: Sum of the wrenches that the bodies need for their motion at constant joint velocities [N m, N].
    push: Sum of the contact and external wrenches on the bodies [N m, N].
    """

    mass: wp.array[scalar]
    moment: wp.array[vec3]
    inertia: wp.array[mat33]
    need: wp.array[Twist]
    push: wp.array[Twist]


@wp.struct
class Subtree:
    """Sums over the bodies that an element carries; the docstring of `residual` defines the symbols.

    mass: Mass [kg].
    moment: Mass times centre of mass [kg m].
    inertia: Moments of inertia about the origin of the world [kg m^2].
    momentum: Linear momentum h [kg m/s].
    coriolis: Matrix B [kg m^2/s].
    force: Wrench that the motion needs [N m, N].
    pushed: Contact and external wrenches [N m, N].
    """

    mass: scalar
    moment: vec3
    inertia: mat33
    momentum: vec3
    coriolis: mat33
    force: Twist
    pushed: Twist


@wp.struct
class Change:
    """Changes by a unit displacement along a velocity; the docstring of `residual` defines the symbols.

    displaced: Twist s of the displacement [1, m].
    drift: Change a of the twist of the subtree [1/s, m/s].
    lag: Change g of the acceleration of the subtree [1/s^2, m/s^2].
    """

    displaced: Twist
    drift: Twist
    lag: Twist


@wp.struct
class StepArrays:
    """Residual and Jacobian of a stage with all intermediate results, flattened over all worlds.

    The subtree of an element consists of all bodies that the element carries. The docstring of `residual` defines the
    symbols.

    links: Poses and motion of elements and bodies.
    pairs: Contacts of the pairs.
    exchange: Points of matter that touch bodies, with a capacity of 0 if there is no matter.
    joint_frame: Orientation of the frame of each joint in the last element of its parent, with all joints at zero [1],
        shape (worlds * bodies,).
    body_frame: Orientation of the frame of each body in its element [1], shape (worlds * bodies,).
    subtree: Sums over the bodies of each subtree, shape (worlds * elements,).
    axis: Twist S of a unit value of each velocity [1, m], shape (worlds * freedom,).
    change: Changes by a unit displacement along each velocity, shape (worlds * freedom,).
    residual: Residual r of each velocity [N m or N], shape (worlds * freedom,).
    step: Correction of Newton's method [rad or m], shape (worlds * freedom,).
    scale: Inverse of each diagonal entry of the Jacobian [rad/(N m) or m/N], shape (worlds * freedom,).
    good: Last displacement for which the iteration converged [rad or m], shape (worlds * freedom,).
    jacobian: Derivatives of the residual with respect to the displacement, row by row [N m/rad or N/m], shape (worlds *
        freedom * freedom,). `mass_inverse` stores the inverse of the mass matrix here.
    """

    links: Links
    pairs: Pairs
    exchange: Exchange
    joint_frame: wp.array[mat33]
    body_frame: wp.array[mat33]
    subtree: wp.array[Subtree]
    axis: wp.array[Twist]
    change: wp.array[Change]
    residual: wp.array[scalar]
    step: wp.array[scalar]
    scale: wp.array[scalar]
    good: wp.array[scalar]
    jacobian: wp.array[scalar]
