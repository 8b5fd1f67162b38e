"""The equations of motion of a state: mass matrix, bias, forces, accelerations, and wrenches that joints transmit."""

import dataclasses
from collections.abc import Callable

import warp as wp

from warpbots.numerics import Launch, clear_gradients, launch, launch_all, record
from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.articulated.contact_list import LISTING_KERNELS, list_contacts
from warpbots.solvers.articulated.equations_of_motion import (
    adj_solve_kernel,
    axis_kernel,
    contact_kernel,
    force_kernel,
    joint_kernel,
    mass_matrix_kernel,
    need_kernel,
    push_kernel,
    solve_kernel,
    subtree_kernel,
    transmit_kernel,
    weigh_kernel,
)
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.articulated.step_of_obstacles import StepOfObstacles
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.articulated.tree_passes import adjoints, poses
from warpbots.solvers.scene_support import refuse_states_without_gradient

__all__ = ["Dynamics", "dynamics", "equations"]


@dataclasses.dataclass(frozen=True, eq=False)
class Dynamics(ArrayFields[Array]):
    """The equations of motion at a state, M(q) a + bias(q, qd) = force, all in double precision.

    The equations hold in continuous time; the steps of the solver fulfil the equations in the limit of short steps. In
    a world with a singular mass matrix, accelerations, joint forces and joint moments are not finite.

    Attributes:
        mass_matrix: Mass matrix M, including the inertia of rotors [kg m^2, kg m or kg], shape (worlds, n_velocities,
            n_velocities).
        bias: Coriolis, centrifugal and gravitational forces on the joints [N m or N], shape (worlds, n_velocities).
        force: Forces of springs, dampers, limits, motors, contacts and external wrenches on the joints [N m or N],
            shape (worlds, n_velocities).
        acceleration: Rates a of the joint velocities [rad/s^2 or m/s^2], shape (worlds, n_velocities).
        joint_force: Force that the joint of each body transmits to the body, including motors and springs, in world
            axes [N], shape (worlds, n_bodies), vector.
        joint_moment: Moment that the joint of each body transmits to the body, in world axes [N m], shape (worlds,
            n_bodies), vector. Its reference point is the origin of the frame of the joint that moves with the body.
    """

    mass_matrix: Array
    bias: Array
    force: Array
    acceleration: Array
    joint_force: Array
    joint_moment: Array

    def mapped(self, make: Callable[[Array], Other]) -> "Dynamics[Other]":
        """Make a copy whose fields are the results of `make` for each field."""
        return Dynamics(*map(make, self.fields()))


def equations(model: ArticulatedModel, requires_grad: bool = False) -> Dynamics:
    """New arrays to which `dynamics` writes."""
    n = model.tree.freedom
    velocities, bodies = (model.worlds, n), (model.worlds, model.tree.bodies)

    def zeros(shape: tuple, dtype: type = scalar) -> wp.array:
        return wp.zeros(shape, dtype=dtype, device=model.device, requires_grad=requires_grad)

    return Dynamics(
        zeros((model.worlds, n, n)), zeros(velocities), zeros(velocities), zeros(velocities), zeros(bodies, vec3),
        zeros(bodies, vec3),
    )  # fmt: skip


def dynamics(of: StepOfObstacles, dynamics_out: Dynamics) -> None:
    """Evaluate the equations of motion at a state, and record the adjoint on the active tape.

    Args:
        of: Model, state and control, and the motion of obstacles in the step that ended in the state.
        dynamics_out: Arrays to which the results are written.

    Raises:
        RuntimeError: A gradient is recorded, but an array has no gradient.
    """
    _evaluate(of, dynamics_out)
    reads = [*of.state.fields(), of.control, *of.model.parameter_arrays()]
    record(lambda: _adjoint(of, dynamics_out), reads, dynamics_out.fields())


def _evaluate(of: StepOfObstacles, to: Dynamics) -> None:
    model = of.model
    lanes, work = lanes_of(model.device), model.workspace.equations
    of.place()
    launch_all(_terms(of, to), model.device)
    inputs, outputs = [lanes, to.mass_matrix, to.bias, to.force], [work.factors, to.acceleration.flatten()]
    launch(solve_kernel, (model.worlds, lanes), inputs, outputs, model.device, lanes)
    launch_all(_reactions(model, to), model.device)


def _terms(of: StepOfObstacles, to: Dynamics) -> list[Launch]:
    """List the kernel launches that compute mass matrix, bias and force, in the order in which they run."""
    model = of.model
    robot, work, links, stage = (
        model.robot_arrays, model.workspace.equations, model.workspace.links, model.workspace.at_rest(of.state)
    )  # fmt: skip
    each, contact_list = (model.worlds, model.tree.bodies), model.workspace.contact_list
    candidates = contact_list.pair.size
    steps = [
        *poses(model, stage),
        (axis_kernel, to.bias.shape, [robot, links], [work.axis]),
        (need_kernel, each, [robot, links], [work.need]),
    ]
    if candidates:
        contacts = [contact_list, candidates]
        steps += [
            *list_contacts(robot, links, contact_list, model.device),
            (contact_kernel, (model.worlds, candidates), [robot, links, *contacts], [work.contact]),
            (push_kernel, each, [robot, *contacts, work.contact], [work.push]),
        ]
    elements, summed = (model.worlds, model.tree.elements), [work.axis, work.subtrees]
    return [
        *steps,
        (subtree_kernel, elements, [robot, links, work.need, work.push], [work.subtrees]),
        (mass_matrix_kernel, to.mass_matrix.shape, [robot, *summed], [to.mass_matrix]),
        (force_kernel, to.bias.shape, [robot, stage, of.control, *summed], [to.bias, to.force]),
    ]


def _reactions(model: ArticulatedModel, to: Dynamics) -> list[Launch]:
    """List the kernel launches that compute the wrenches that joints transmit, in the order in which they run."""
    robot, work, links = model.robot_arrays, model.workspace.equations, model.workspace.links
    each = to.joint_force.shape
    return [
        (transmit_kernel, each, [robot, work.axis, work.subtrees, to.acceleration], [work.transmitted]),
        (joint_kernel, each, [model.tree, links, work.transmitted], [to.joint_force, to.joint_moment]),
    ]


def _adjoint(of: StepOfObstacles, to: Dynamics) -> None:
    """Adjoint of `dynamics`.

    The function also adds to the gradients of those outputs from which other outputs are computed.
    """
    refuse_states_without_gradient("Articulated", state=of.state.fields(), dynamics_out=to.fields())
    model = of.model
    lanes, work = lanes_of(model.device), model.workspace.equations
    _evaluate(of, to)
    clear_gradients([*model.workspace.gradients(), *work.gradients()])
    adjoints(_reactions(model, to), model.device)
    inputs = [lanes, work.factors, to.acceleration.grad]
    launch(weigh_kernel, (model.worlds, lanes), inputs, [work.weight], model.device, lanes)
    outputs = [to.mass_matrix.grad, to.bias.grad, to.force.grad]
    launch(adj_solve_kernel, to.bias.shape, [work.weight, to.acceleration], outputs, model.device)
    adjoints([step for step in _terms(of, to) if step[0] not in LISTING_KERNELS], model.device)
    of.adj_place()
