"""Measurements of a robot: poses, velocities, energies, momenta, torques of motors, contact forces."""

import dataclasses
from collections.abc import Callable

import warp as wp

from warpbots.numerics import Launch, clear_gradients, launch, launch_own_adjoint, record
from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.articulated.cloud_contact import area_of
from warpbots.solvers.articulated.contact_list import LISTING_KERNELS, ContactList, approach, force_at, list_contacts
from warpbots.solvers.articulated.joint_forces import motor_force
from warpbots.solvers.articulated.kinematics import center_of, first_moment, moments
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.robot_arrays import ContactLaws, RobotArrays
from warpbots.solvers.articulated.spatial import Twist, angular, linear, mat33, momentum, scalar, spatial, vec3
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links
from warpbots.solvers.articulated.step_of_obstacles import StepOfObstacles
from warpbots.solvers.articulated.surface_motion import body_pose, body_twist
from warpbots.solvers.articulated.tree_passes import pose_kernel, poses
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["ArticulatedReadings", "readings", "sense"]


@dataclasses.dataclass(frozen=True, eq=False)
class ArticulatedReadings(ArrayFields[Array]):
    """Measurements of a state, all in double precision and in world axes unless stated otherwise.

    Attributes:
        position: Origin of the frame of each body [m], shape (worlds, n_bodies), vector.
        rotation: Axes of the frame of each body, as columns [1], shape (worlds, n_bodies), matrix.
        velocity: Velocity of the origin of the frame of each body [m/s], shape (worlds, n_bodies), vector.
        angular_velocity: Angular velocity of each body [rad/s], shape (worlds, n_bodies), vector.
        center: Centre of mass of each body [m], shape (worlds, n_bodies), vector.
        kinetic_energy: Kinetic energy of each body, without the rotors of motors [J], shape (worlds, n_bodies).
        potential_energy: Potential energy of each body in the field of gravity [J], shape (worlds, n_bodies).
        momentum: Momentum of each body [kg m/s], shape (worlds, n_bodies), vector.
        angular_momentum: Angular momentum of each body about the origin of the world [kg m^2/s], shape (worlds,
            n_bodies), vector.
        torque: Torque or force of each motor [N m or N], shape (worlds, n_motors).
        contact_force: Force on each contact point [N], shape (worlds, n_points), vector. If the contact law names the
            points of this body, but the contact is at a point in closed form of the other shape, the reaction counts
            for the nearest contact point of this body.
        contact_normal: Component of `contact_force` along the normal of the contact, positive in compression [N], shape
            (worlds, n_points).
        contact_shear: Component of `contact_force` tangential to the contact, in the axes of the body of the point [N],
            shape (worlds, n_points), vector.
        obstacle_force: Force of all contacts on each obstacle [N], shape (worlds, n_obstacles), vector.
        obstacle_torque: Torque of these forces about the origin of the world [N m], shape (worlds, n_obstacles),
            vector.
    """

    position: Array
    rotation: Array
    velocity: Array
    angular_velocity: Array
    center: Array
    kinetic_energy: Array
    potential_energy: Array
    momentum: Array
    angular_momentum: Array
    torque: Array
    contact_force: Array
    contact_normal: Array
    contact_shear: Array
    obstacle_force: Array
    obstacle_torque: Array

    def mapped(self, make: Callable[[Array], Other]) -> "ArticulatedReadings[Other]":
        """Make a copy whose fields are the results of `make` for each field."""
        return ArticulatedReadings(*map(make, self.fields()))


def readings(model: ArticulatedModel, requires_grad: bool = False) -> ArticulatedReadings:
    """New arrays to which `sense` writes."""
    bodies, motors, points, obstacles = (
        (model.worlds, count)
        for count in (model.tree.bodies, model.tree.motors, model.contact_topology.points, len(model.scene.obstacles))
    )

    def zeros(shape: tuple, dtype: type = scalar) -> wp.array:
        return wp.zeros(shape, dtype=dtype, device=model.device, requires_grad=requires_grad)

    return ArticulatedReadings(
        zeros(bodies, vec3), zeros(bodies, mat33), zeros(bodies, vec3), zeros(bodies, vec3), zeros(bodies, vec3),
        zeros(bodies), zeros(bodies), zeros(bodies, vec3), zeros(bodies, vec3), zeros(motors),
        zeros(points, vec3), zeros(points), zeros(points, vec3), zeros(obstacles, vec3), zeros(obstacles, vec3),
    )  # fmt: skip


@wp.kernel
def body_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    # out
    position_out: wp.array2d[vec3],
    rotation_out: wp.array2d[mat33],
    velocity_out: wp.array2d[vec3],
    angular_velocity_out: wp.array2d[vec3],
    center_out: wp.array2d[vec3],
    kinetic_energy_out: wp.array2d[scalar],
    potential_energy_out: wp.array2d[scalar],
    momentum_out: wp.array2d[vec3],
    angular_momentum_out: wp.array2d[vec3],
):
    """Write pose, velocity, energy and momentum of each body."""
    w, b = wp.tid()
    k = w * robot.tree.bodies + b
    R, p = body_pose(robot.tree, links, w, b)
    V = body_twist(robot.tree, links, w, b)
    position_out[w, b] = p
    rotation_out[w, b] = R
    angular_velocity_out[w, b] = angular(V)
    velocity_out[w, b] = linear(V) + wp.cross(angular(V), p)
    center_out[w, b] = center_of(robot.design, links, k)
    mc = first_moment(robot.design, links, k)
    h = momentum(robot.design.mass[k], mc, moments(robot.design, links, k), V)
    kinetic_energy_out[w, b] = scalar(0.5) * wp.dot(V, h)
    potential_energy_out[w, b] = -wp.dot(robot.design.gravity[w], mc)
    momentum_out[w, b] = linear(h)
    angular_momentum_out[w, b] = angular(h)


@wp.kernel
def torque_kernel(
    # model
    robot: RobotArrays,
    # state
    stage: ImplicitStage,
    control: wp.array2d[scalar],
    # out
    torque_out: wp.array2d[scalar],
):
    """Write the torque or force of each motor."""
    w, m = wp.tid()
    torque_out[w, m] = motor_force(robot.tree, robot.design, stage, control, w, m)


@wp.func
def nearest_point(contacts: ContactLaws, w: int, group: int, x: vec3):
    """Index of the point of a group that is nearest to x, with x in the frame of the body of the group."""
    first = contacts.group_first[group]
    nearest = first
    least = scalar(wp.inf)
    for i in range(first, first + contacts.group_count[group]):
        far = wp.length(contacts.point[w * contacts.points + i] - x)
        if far < least:
            least = far
            nearest = i
    return nearest


@wp.func_grad(nearest_point)
def adj_nearest_point(contacts: ContactLaws, w: int, group: int, x: vec3, adj_nearest: int):
    """Adjoint of `nearest_point`, which does nothing because the output is an integer."""


@wp.kernel
def contact_kernel(
    # model
    robot: RobotArrays,
    # work
    links: Links,
    contact_list: ContactList,
    candidates: int,
    # out
    wrench_out: wp.array[Twist],
    force_out: wp.array2d[vec3],
    normal_out: wp.array2d[scalar],
    shear_out: wp.array2d[vec3],
):
    """Write the wrench of each contact, and add its force to the readings of its contact point.

    If the pair has a group `pair_reaction_group` on the body of the solid, the reaction is added to the readings of the
    nearest point of this group.
    """
    w, slot = wp.tid()
    if slot >= contact_list.count[w]:
        return
    c = contact_list.candidate[w * candidates + slot]
    pair = contact_list.pair[c]
    i = contact_list.point[c]
    x, d, n = approach(robot, links, w, pair, i)
    f = area_of(robot.contacts, w, pair, i) * force_at(robot, links, w, pair, x, d, n)
    wrench_out[w * candidates + slot] = spatial(wp.cross(x, f), f)
    up = wp.normalize(n)
    push = wp.dot(f, up)
    group = robot.contacts.pair_group[pair]
    own, p_own = body_pose(robot.tree, links, w, robot.contacts.group_body[group])
    if robot.contacts.pair_crossed[pair] >= 0:
        i = nearest_point(robot.contacts, w, group, wp.transpose(own) @ (x - p_own))
    reaction_group = robot.contacts.pair_reaction_group[pair]
    if reaction_group >= 0:
        other, p = body_pose(robot.tree, links, w, robot.contacts.group_body[reaction_group])
        j = nearest_point(robot.contacts, w, reaction_group, wp.transpose(other) @ (x - p))
        wp.atomic_add(force_out, w, j, -f)
        wp.atomic_add(normal_out, w, j, push)
        wp.atomic_add(shear_out, w, j, wp.transpose(other) @ (push * up - f))
    wp.atomic_add(force_out, w, i, f)
    wp.atomic_add(normal_out, w, i, push)
    wp.atomic_add(shear_out, w, i, wp.transpose(own) @ (f - push * up))


@wp.kernel
def obstacle_kernel(
    # model
    robot: RobotArrays,
    # work
    contact_list: ContactList,
    candidates: int,
    wrench: wp.array[Twist],
    # out
    force_out: wp.array2d[vec3],
    torque_out: wp.array2d[vec3],
):
    """Write the sum of the wrenches of all contacts on each obstacle."""
    w, o = wp.tid()
    contacts = robot.contacts
    W = Twist()
    for slot in range(contact_list.count[w]):
        pair = contact_list.pair[contact_list.candidate[w * candidates + slot]]
        if contacts.pair_obstacle[pair] == o:
            if contacts.group_body[contacts.pair_group[pair]] < 0:
                W += wrench[w * candidates + slot]
            else:
                W -= wrench[w * candidates + slot]
    force_out[w, o] = linear(W)
    torque_out[w, o] = angular(W)


def sense(of: StepOfObstacles, readings_out: ArticulatedReadings) -> None:
    """Measure a state, and record the adjoint on the active tape.

    Args:
        of: Model, state and control, and the motion of obstacles in the step that ended in the state.
        readings_out: Readings to which the measurement is written.

    Raises:
        RuntimeError: A gradient is recorded, but an array has no gradient.
    """
    for sum_over_contacts in readings_out.fields()[10:]:
        sum_over_contacts.zero_()
    of.place()
    for kernel, dim, inputs, outputs in _launches(of, readings_out):
        launch(kernel, dim, inputs, outputs, of.model.device)
    reads = [*of.state.fields(), of.control, *of.model.parameter_arrays()]
    record(lambda: _sense_adjoint(of, readings_out), reads, readings_out.fields())


def _launches(of: StepOfObstacles, to: ArticulatedReadings) -> list[Launch]:
    """List the kernel launches that measure a state, in the order in which they run.

    The contact kernel adds to its outputs, which must therefore be set to zero before the launches.
    """
    model = of.model
    stage = model.workspace.at_rest(of.state)
    links, contact_list = model.workspace.links, model.workspace.contact_list
    candidates = contact_list.pair.size
    steps = [
        *poses(model, stage),
        (body_kernel, to.position.shape, [model.robot_arrays, links], to.fields()[:9]),
        (torque_kernel, to.torque.shape, [model.robot_arrays, stage, of.control], [to.torque]),
    ]
    if candidates:
        contact, wrench = [model.robot_arrays, links, contact_list, candidates], model.workspace.contact_wrench
        points = [to.contact_force, to.contact_normal, to.contact_shear]
        steps += [
            *list_contacts(model.robot_arrays, links, contact_list, model.device),
            (contact_kernel, (model.worlds, candidates), contact, [wrench, *points]),
        ]
        if model.scene.obstacles:
            total = [to.obstacle_force, to.obstacle_torque]
            inputs = [model.robot_arrays, contact_list, candidates, wrench]
            steps.append((obstacle_kernel, to.obstacle_force.shape, inputs, total))
    return steps


def _sense_adjoint(of: StepOfObstacles, to: ArticulatedReadings) -> None:
    refuse_states_without_gradient("Articulated", state=of.state.fields(), readings_out=to.fields())
    model, steps = of.model, _launches(of, to)
    clear_gradients([*model.workspace.gradients(), model.workspace.contact_wrench])
    of.place()
    for kernel, dim, inputs, outputs in steps:
        if kernel in (pose_kernel, *LISTING_KERNELS):
            launch(kernel, dim, inputs, outputs, model.device)
    for kernel, dim, inputs, outputs in reversed(steps):
        if kernel not in LISTING_KERNELS:
            launch_own_adjoint(kernel, dim, [*inputs, *outputs], model.device)
    of.adj_place()
