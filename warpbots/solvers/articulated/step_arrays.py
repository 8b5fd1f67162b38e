"""Warp structs for the intermediate results of a step: a stage, motion of links, contacts, sums over subtrees."""

import warp as wp

from warpbots.solvers.articulated.spatial import Twist, mat33, scalar, vec3

__all__ = ["Links", "Pairs", "ImplicitStage", "StepArrays", "Subtrees"]


@wp.struct
class ImplicitStage:
    """One implicit stage: coordinates q displaced by x, velocities v = c x + rate, accelerations c v + accel.

    q: Joint coordinates before the displacement [rad, m, or quaternions], shape (worlds * coordinates,).
    x: Displacement [rad or m], shape (worlds * freedom,).
    rate: Velocity minus c x [rad/s or m/s], shape (worlds * freedom,).
    accel: Acceleration minus c v [rad/s^2 or m/s^2], shape (worlds * freedom,).
    c: Inverse of the length of the stage [1/s], shape (worlds,).
    """

    q: wp.array[scalar]
    x: wp.array[scalar]
    rate: wp.array[scalar]
    accel: wp.array[scalar]
    c: wp.array[scalar]


@wp.struct
class Links:
    """Poses and motion of elements and bodies, with all worlds in one row.

    rotation: Orientations of elements [1], shape (worlds * elements,).
    position: Origins of elements [m], shape (worlds * elements,).
    basis: Axes of the velocities of elements in the world, as columns [1], shape (worlds * elements,).
    twist: Twists of elements [rad/s, m/s], shape (worlds * elements,).
    acceleration: Spatial accelerations of elements, minus the acceleration of gravity [rad/s^2, m/s^2], shape (worlds *
        elements,).
    body_rotation: Orientations of bodies [1], shape (worlds * bodies,).
    body_position: Origins of bodies [m], shape (worlds * bodies,).
    """

    rotation: wp.array[mat33]
    position: wp.array[vec3]
    basis: wp.array[mat33]
    twist: wp.array[Twist]
    acceleration: wp.array[Twist]
    body_rotation: wp.array[mat33]
    body_position: wp.array[vec3]


@wp.struct
class Pairs:
    """Sums over the contacts of each pair; arrays have shape (worlds * pairs,) unless another shape is given.

    near: 1 if the bounding sphere of the group of a pair overlaps the solid, else 0.
    active: 1 if a pair has contacts, else 0.
    wrench: Wrench W of each pair (`cloud_contact`) [N m, N].
    blocks: Matrices K, L and D of each pair, as four blocks each, row by row [N m, N and per m or m/s], shape (worlds *
        pairs * 12,).
    free: 1 for candidates that exert no compliant force because they are about to have an instant impact (`impacts`),
        shape (worlds * candidates,).
    center: Centre of the bounding sphere of each group in the frame of its body [m], shape (worlds * groups,).
    radius: Radius of the bounding sphere of each group [m], shape (worlds * groups,).
    hardness: Factor by which the viscosities are multiplied during the continuation of `newton` [1], shape (worlds,).
    in_contact: 1 if the point that a thread evaluates is in contact, else 0, shape (worlds * lanes,).
    point_wrench: Wrench of the point that a thread evaluates [N m, N], shape (worlds * lanes,).
    point_blocks: Blocks of the point that a thread evaluates, with the units of `blocks`, shape (worlds * lanes * 12,).
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
    point_wrench: wp.array[Twist]
    point_blocks: wp.array[mat33]


@wp.struct
class Subtrees:
    """Sums over the bodies that each element carries; every array has shape (worlds * elements,).

    mass: Mass [kg].
    moment: Mass times centre of mass [kg m].
    inertia: Moments of inertia about the origin of the world [kg m^2].
    need: Wrench that the bodies need for their motion at constant joint velocities [N m, N].
    push: Wrench of the contacts on the bodies [N m, N].
    """

    mass: wp.array[scalar]
    moment: wp.array[vec3]
    inertia: wp.array[mat33]
    need: wp.array[Twist]
    push: wp.array[Twist]


@wp.struct
class StepArrays:
    """Residual and Jacobian of a stage with all intermediate results, with all worlds in one row.

    links: Poses and motion of elements and bodies.
    pairs: Contacts of the pairs.
    mass: Mass of the subtree that an element carries [kg], shape (worlds * elements,).
    moment: Mass times centre of mass of the subtree [kg m], shape (worlds * elements,).
    inertia: Moments of inertia of the subtree about the origin of the world [kg m^2], shape (worlds * elements,).
    momentum: Linear momentum h of the subtree [kg m/s], shape (worlds * elements,).
    coriolis: Matrix B of the subtree (`residual`) [kg m^2/s], shape (worlds * elements,).
    force: Wrench that the motion of the subtree needs [N m, N], shape (worlds * elements,).
    pushed: Wrench of the contacts on the subtree [N m, N], shape (worlds * elements,).
    axis: Twists S of unit velocities [1, m], shape (worlds * freedom,).
    displaced: Twists s of unit displacements [1, m], shape (worlds * freedom,).
    drift: Changes a of twists per displacement (`residual`) [1/s, m/s], shape (worlds * freedom,).
    lag: Changes g of accelerations per displacement (`residual`) [1/s^2, m/s^2], shape (worlds * freedom,).
    residual: Residual [N m or N], shape (worlds * freedom,).
    step: Correction of Newton's method [rad or m], shape (worlds * freedom,).
    scale: One over the diagonal of the Jacobian [rad/(N m) or m/N], shape (worlds * freedom,).
    good: Last displacement for which the iteration converged [rad or m], shape (worlds * freedom,).
    jacobian: Derivative of the residual with respect to the displacement [N m/rad or N/m], row by row, shape
        (worlds * freedom * freedom,).
    """

    links: Links
    pairs: Pairs
    mass: wp.array[scalar]
    moment: wp.array[vec3]
    inertia: wp.array[mat33]
    momentum: wp.array[vec3]
    coriolis: wp.array[mat33]
    force: wp.array[Twist]
    pushed: wp.array[Twist]
    axis: wp.array[Twist]
    displaced: wp.array[Twist]
    drift: wp.array[Twist]
    lag: wp.array[Twist]
    residual: wp.array[scalar]
    step: wp.array[scalar]
    scale: wp.array[scalar]
    good: wp.array[scalar]
    jacobian: wp.array[scalar]
