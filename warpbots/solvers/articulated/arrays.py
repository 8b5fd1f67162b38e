"""What kernels know of a robot: its topology, its parameters, one implicit stage, and where its parts are."""

import warp as wp

from warpbots.solvers.articulated.spatial import Twist, mat33, quat, scalar, vec3

__all__ = ["Design", "Links", "Stage", "Tree"]


@wp.struct
class Tree:
    """Topology, the same in all worlds. Elements are elementary joints, parents before children.

    elements: Number of elements.
    bodies: Number of bodies; body k hangs on joint k, which is one or several elements.
    freedom: Number of velocities.
    coordinates: Number of coordinates.
    channels: Number of motors.
    parent: Element that carries an element, -1 for the world, shape (elements,).
    kind: Kind of an element (`joints`), shape (elements,).
    axis: Unit axis in the frame of the joint, shape (elements,).
    dof: Its first velocity, shape (elements,).
    coordinate: Its first coordinate, shape (elements,).
    body: Body to whose joint it belongs, shape (elements,).
    first: 1 for the first element of a joint, whose frame comes before it, shape (elements,).
    last: 1 for the last element of a joint, which carries the body, shape (elements,).
    element: Element that carries a body, shape (bodies,).
    of_dof: Element of a velocity, shape (freedom,).
    carries: 1 where the first element carries the second or is it, row by row, shape (elements * elements,).
    levels: Number of levels: elements of one are carried by elements of the one before.
    order: Elements level by level, those with the same parent side by side, shape (elements,).
    level: Where in `order` a level begins, shape (levels + 1,).
    child: Where in `order` begins what an element of `order` carries itself, shape (elements + 1,).
    motor: Motors in the order of what they drive, shape (channels,).
    drive: Where in `motor` the motors of a velocity begin, shape (freedom + 1,).
    motor_dof: Velocity that a motor drives, shape (channels,).
    motor_coordinate: Its coordinate, shape (channels,).
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
class Design:
    """Parameters that can be differentiated, all worlds in one row; see `ArticulatedModel`."""

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
class Stage:
    """One implicit stage: coordinates q displaced by x, velocities from the rate c x + rate, accelerations c v + accel.

    q: Joint coordinates that are displaced, shape (worlds * coordinates,).
    x: Displacement, shape (worlds * freedom,).
    rate: What the rate of the displacement is besides c x, shape (worlds * freedom,).
    accel: What the acceleration is besides c v, shape (worlds * freedom,).
    c: Inverse of the length of the stage [1/s], shape (worlds,).
    """

    q: wp.array[scalar]
    x: wp.array[scalar]
    rate: wp.array[scalar]
    accel: wp.array[scalar]
    c: wp.array[scalar]


@wp.struct
class Links:
    """Where elements and bodies are, all worlds in one row.

    rotation: Orientation of an element.
    position: Its origin [m].
    basis: Columns are the axes along or about which its velocities go, in the world.
    twist: Its twist.
    acceleration: Its spatial acceleration less gravity.
    body_rotation: Orientation of a body.
    body_position: Its origin [m].
    """

    rotation: wp.array[mat33]
    position: wp.array[vec3]
    basis: wp.array[mat33]
    twist: wp.array[Twist]
    acceleration: wp.array[Twist]
    body_rotation: wp.array[mat33]
    body_position: wp.array[vec3]
