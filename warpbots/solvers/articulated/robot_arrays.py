"""Warp structs of a robot: all data that is constant in a step, in the form that kernels read."""

import warp as wp

from warpbots.contact.solid import Solids
from warpbots.solvers.articulated.spatial import mat33, quat, scalar, vec3

__all__ = ["ContactLaws", "ModelParameters", "RobotArrays", "JointTree"]


@wp.struct
class JointTree:
    """Topology of a robot; all worlds share the arrays.

    An element is an elementary joint. The elements are listed with parents before children, and an entry of an array
    refers to an element, a body, a velocity or a coordinate by its index.

    elements: Number of elements.
    bodies: Number of bodies; joint k carries body k and consists of one or several elements.
    freedom: Number of joint velocities.
    coordinates: Number of joint coordinates.
    motors: Number of motors.
    parent: For each element, the element that carries it, or -1 if the world carries it, shape (elements,).
    kind: For each element, the code of its kind (`joints`), shape (elements,).
    axis: For each element, its unit axis in the frame of the joint, shape (elements,).
    dof: For each element, the index of its first velocity, shape (elements,).
    coordinate: For each element, the index of its first coordinate, shape (elements,).
    body: For each element, the body whose joint contains the element, shape (elements,).
    first: 1 for the first element of a joint, which starts with the frame of the joint, else 0, shape (elements,).
    last: 1 for the last element of a joint, which carries the body, else 0, shape (elements,).
    element: For each body, the element that carries the body, shape (bodies,).
    of_dof: For each velocity, the element to which the velocity belongs, shape (freedom,).
    carries: Matrix, stored row by row, whose entry (e, f) is 1 if element e carries element f or e = f, else 0, shape
        (elements * elements,).
    levels: Number of levels of the tree; the elements of one level carry the elements of the next level. On a CPU,
        where one thread visits the elements in order, all elements count as a single level.
    order: Elements level by level, with elements of the same parent adjacent, shape (elements,).
    level: Index in `order` at which each level begins, followed by the number of elements, shape (levels + 1,).
    child: For each element in `order`, the index in `order` at which its children begin, followed by the number of
        elements, shape (elements + 1,).
    motor: Motors, sorted by the velocities that they drive, shape (motors,).
    drive: For each velocity, the index in `motor` at which its motors begin, followed by the number of motors, shape
        (freedom + 1,).
    motor_channel: For each motor, its control channel, shape (motors,).
    motor_dof: For each motor, the velocity that the motor drives, shape (motors,).
    motor_coordinate: For each motor, the coordinate that the motor drives, or -1 at a ball joint, shape (motors,).
    """

    elements: int
    bodies: int
    freedom: int
    coordinates: int
    motors: int
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
    motor_channel: wp.array[int]
    motor_dof: wp.array[int]
    motor_coordinate: wp.array[int]


@wp.struct
class ModelParameters:
    """Parameters of joints, bodies and motors, each array flattened over all worlds.

    `ArticulatedModel` describes the parameters.
    """

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
    force: wp.array[vec3]
    torque: wp.array[vec3]
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
    """Contact points, contact laws, and the pairs that may be in contact.

    A pair is a group of contact points and a solid that may be in contact under a contact law. A pair of edges stands
    for two boxes whose edges may touch. A candidate is one point of one pair.

    points: Number of contact points.
    groups: Number of groups of contact points.
    pairs: Number of pairs.
    laws: Number of contact laws.
    candidates: Number of candidates, which is the sum of `pair_count`.
    group_kind: For each group, the code of its kind (`rolling_points`), shape (groups,).
    group_body: For each group, the body of its points, or the obstacle as in `cloud_contact`, shape (groups,).
    group_first: For each group, the index of its first point, shape (groups,).
    group_count: For each group, the number of its points, shape (groups,).
    pair_group: For each pair, the index of its group, shape (pairs,).
    pair_solid: For each pair, the index of its solid, shape (pairs,).
    pair_law: For each pair, the index of its contact law, shape (pairs,).
    pair_count: For each pair, the number of points that may be in contact; these are the first points of the group,
        shape (pairs,).
    pair_candidate: For each pair, the index of its first candidate, shape (pairs,).
    pair_reaction_area: 1 for a pair whose contacts have the area of the first point of the group `pair_reaction_group`,
        else 0, shape (pairs,).
    pair_reaction_group: For each pair, the index of the group of points on the body of the solid to which the reaction
        force is assigned, or -1; the force of a contact is assigned to the nearest point of this group, shape (pairs,).
    pair_crossed: For a pair of edges, the index of the solid that is the box of the group; an edge of this box may
        touch an edge of the box `pair_solid`. -1 for a pair of points and a solid, shape (pairs,).
    pair_beside: For a pair with points of two boxes, the index of the pair of edges of these boxes under the same law;
        -1 for any other pair, shape (pairs,).
    pair_obstacle: For each pair, the index of the obstacle that has its solid or its points, or -1, shape (pairs,).
    bounded: 1 for a law with a coefficient of restitution, else 0, shape (laws,).
    instant: 1 for a law with instant impacts, else 0, shape (laws,).
    point: Position of each point in the frame of its body [m], shape (worlds * points,).
    radius: Radius of the ball around each point [m], shape (worlds * points,).
    area: Area that each point represents [m^2], shape (worlds * points,).
    stiffness: Pressure per depth of each law [Pa/m], shape (worlds * laws,).
    damping: Damping of each law [Pa s/m^2], shape (worlds * laws,).
    restitution: Coefficient of restitution of each law that has one [1], shape (worlds * laws,).
    friction: Coulomb coefficient of each law [1], shape (worlds * laws,).
    viscosity: Shear stress per sliding speed inside the friction cone of each law [Pa s/m], shape (worlds * laws,).
    scale: Factor by which all contact forces of a world are multiplied [1], shape (worlds,).
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
    pair_reaction_group: wp.array[int]
    pair_crossed: wp.array[int]
    pair_beside: wp.array[int]
    pair_candidate: wp.array[int]
    pair_reaction_area: wp.array[int]
    pair_obstacle: wp.array[int]
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
    """A robot and all solids that its contact points may touch: all data that is constant in a step.

    tree: Topology of the joints.
    design: Parameters of joints, bodies and motors.
    contacts: Contact points, contact laws and pairs that may be in contact.
    solids: Solids with which the contact points may be in contact.
    """

    tree: JointTree
    design: ModelParameters
    contacts: ContactLaws
    solids: Solids
