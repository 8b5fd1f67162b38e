"""A robot as kernels see it: all data that is constant in a step, as Warp structs."""

import warp as wp

from warpbots.contact.solid import Solids
from warpbots.solvers.articulated.spatial import mat33, quat, scalar, vec3

__all__ = ["ContactLaws", "ModelParameters", "RobotArrays", "JointTree"]


@wp.struct
class JointTree:
    """Topology of a robot, the same in all worlds. Elements are elementary joints, with parents before children.

    elements: Number of elements.
    bodies: Number of bodies; joint k carries body k and consists of one or several elements.
    freedom: Number of velocities.
    coordinates: Number of coordinates.
    channels: Number of motors.
    parent: Element that carries an element, -1 for the world, shape (elements,).
    kind: Kind of an element (`joints`), shape (elements,).
    axis: Unit axis in the frame of the joint, shape (elements,).
    dof: First velocity of an element, shape (elements,).
    coordinate: First coordinate of an element, shape (elements,).
    body: Body whose joint contains an element, shape (elements,).
    first: 1 for the first element of a joint, which starts with the frame of the joint, shape (elements,).
    last: 1 for the last element of a joint, which carries the body, shape (elements,).
    element: Element that carries a body, shape (bodies,).
    of_dof: Element of a velocity, shape (freedom,).
    carries: Entry (e, f), stored row by row, is 1 if element e carries element f or is f, else 0, shape (elements *
        elements,).
    levels: Number of levels of the tree; elements of the previous level carry the elements of a level.
    order: Elements level by level, with elements of the same parent adjacent, shape (elements,).
    level: Index in `order` at which each level begins, and the number of elements, shape (levels + 1,).
    child: For each element in `order`, the index in `order` at which its children begin, shape (elements + 1,).
    motor: Motors, sorted by the velocities that they drive, shape (channels,).
    drive: Index in `motor` at which the motors of each velocity begin, shape (freedom + 1,).
    motor_dof: Velocity that a motor drives, shape (channels,).
    motor_coordinate: Coordinate that a motor drives, -1 at a ball joint, shape (channels,).
    """

    elements: int
    bodies: int
    freedom: int
    coordinates: int
    channels: int
    parent: wp.array[int]
    kind: wp.array[int]
    axis: wp.array[vec3]
    dof: wp.array[int]
    coordinate: wp.array[int]
    body: wp.array[int]
    first: wp.array[int]
    last: wp.array[int]
    element: wp.array[int]
    of_dof: wp.array[int]
    carries: wp.array[int]
    levels: int
    order: wp.array[int]
    level: wp.array[int]
    child: wp.array[int]
    motor: wp.array[int]
    drive: wp.array[int]
    motor_dof: wp.array[int]
    motor_coordinate: wp.array[int]


@wp.struct
class ModelParameters:
    """Parameters of joints, bodies and motors, with all worlds in one row; see `ArticulatedModel`."""

    joint_position: wp.array[vec3]
    joint_rotation: wp.array[quat]
    body_position: wp.array[vec3]
    body_rotation: wp.array[quat]
    mass: wp.array[scalar]
    center: wp.array[vec3]
    inertia: wp.array[mat33]
    gravity: wp.array[vec3]
    stiffness: wp.array[scalar]
    neutral: wp.array[scalar]
    damping: wp.array[scalar]
    armature: wp.array[scalar]
    lower: wp.array[scalar]
    upper: wp.array[scalar]
    limit_stiffness: wp.array[scalar]
    limit_damping: wp.array[scalar]
    motor_torque: wp.array[scalar]
    motor_stiffness: wp.array[scalar]
    motor_damping: wp.array[scalar]
    motor_target: wp.array[scalar]
    motor_reach: wp.array[scalar]


@wp.struct
class ContactLaws:
    """Contact points, contact laws, and pairs of a group of points and a solid that may be in contact.

    points: Number of points.
    groups: Number of groups.
    pairs: Number of pairs.
    laws: Number of laws.
    candidates: Number of candidates: all points of all pairs.
    group_kind: Kind of a group of points (`rolling_points`), shape (groups,).
    group_body: Body of a group, shape (groups,).
    group_first: First point of a group, shape (groups,).
    group_count: Number of points of a group, shape (groups,).
    pair_group: Group of a pair, shape (pairs,).
    pair_solid: Solid of a pair, shape (pairs,).
    pair_law: Law of a pair, shape (pairs,).
    pair_count: Number of points of the group of a pair, counted from the first, that may be in contact, shape (pairs,).
    pair_candidate: First candidate of a pair, shape (pairs,).
    pair_lent: 1 for a pair whose contacts have the area of the first point of `pair_felt`, shape (pairs,).
    pair_felt: Group of points on the body of the solid of a pair, whose nearest point reports the reaction forces; -1
        for none, shape (pairs,).
    pair_crossed: For a pair of edges, the solid that is the box of the group, whose edges touch the edges of the box
        `pair_solid`; -1 for a pair of points and a solid, shape (pairs,).
    pair_beside: For a pair with points of two boxes, the pair of edges of these boxes under the same law; -1 for none,
        shape (pairs,).
    bounded: 1 for a law with a coefficient of restitution, shape (laws,).
    instant: 1 for a law with instant impacts, shape (laws,).
    point: Points in the frames of their bodies [m], shape (worlds * points,).
    radius: Radii of the balls around the points [m], shape (worlds * points,).
    area: Areas of the points [m^2], shape (worlds * points,).
    stiffness: Pressure per depth of a law [Pa/m], shape (worlds * laws,).
    damping: Damping of a law [Pa s/m^2], shape (worlds * laws,).
    restitution: Coefficient of restitution of a law, if it has one [1], shape (worlds * laws,).
    friction: Coulomb coefficient of a law [1], shape (worlds * laws,).
    viscosity: Shear stress per sliding speed of a law, inside the friction cone [Pa s/m], shape (worlds * laws,).
    scale: Factor by which all contact forces are multiplied [1], shape (worlds,).
    """

    points: int
    groups: int
    pairs: int
    laws: int
    candidates: int
    group_kind: wp.array[int]
    group_body: wp.array[int]
    group_first: wp.array[int]
    group_count: wp.array[int]
    pair_group: wp.array[int]
    pair_solid: wp.array[int]
    pair_law: wp.array[int]
    pair_count: wp.array[int]
    pair_felt: wp.array[int]
    pair_crossed: wp.array[int]
    pair_beside: wp.array[int]
    pair_candidate: wp.array[int]
    pair_lent: wp.array[int]
    bounded: wp.array[int]
    instant: wp.array[int]
    point: wp.array[vec3]
    radius: wp.array[scalar]
    area: wp.array[scalar]
    stiffness: wp.array[scalar]
    damping: wp.array[scalar]
    restitution: wp.array[scalar]
    friction: wp.array[scalar]
    viscosity: wp.array[scalar]
    scale: wp.array[scalar]


@wp.struct
class RobotArrays:
    """A robot and the solids around it: all data that is constant in a step.

    tree: Topology of the joints.
    design: Parameters of joints, bodies and motors.
    contacts: Contact points and laws.
    solids: Solids with which the points may be in contact.
    """

    tree: JointTree
    design: ModelParameters
    contacts: ContactLaws
    solids: Solids
