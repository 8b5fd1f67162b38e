"""All that is constant in a step, and all that it computes on its way, as two Warp structs."""

import warp as wp

from warpbots.contact.solid import Solids
from warpbots.solvers.articulated.arrays import Design, Links, Tree
from warpbots.solvers.articulated.cloud_contact import Contacts, Pairs
from warpbots.solvers.articulated.spatial import Twist, mat33, scalar, vec3

__all__ = ["Machine", "Work"]


@wp.struct
class Machine:
    """A robot and what it touches.

    tree: Topology.
    design: Parameters of joints, bodies and motors.
    contacts: Points, laws and what may touch what.
    solids: What may be touched.
    """

    tree: Tree
    design: Design
    contacts: Contacts
    solids: Solids


@wp.struct
class Work:
    """What an evaluation of residual and Jacobian writes, all worlds in one row.

    Links and pairs have structs of their own. Of shape (worlds * elements,), for the subtree that an element carries:
    mass, moment (mass times centre of mass), inertia, momentum, coriolis (B), force (wrench that its motion needs),
    pushed (wrench of its contacts). Of shape (worlds * freedom,): axis (S), displaced (s), drift (a), lag (g),
    residual, step, scale, good. Of shape (worlds * freedom * freedom,): jacobian.
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
