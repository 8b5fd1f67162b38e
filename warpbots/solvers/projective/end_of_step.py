"""The end of a step, evaluated again from what the step has stored; adjoints and wrenches begin with it."""

import dataclasses

import warp as wp

from warpbots.numerics import copy, launch, real
from warpbots.solvers.projective.bones_step import Skeleton
from warpbots.solvers.projective.contact_points import ContactPoints
from warpbots.solvers.projective.contact_step import ContactStep
from warpbots.solvers.projective.elements import nodes
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_rest
from warpbots.solvers.projective.islands import separate_kernel
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.prescribed_step import PrescribedStep
from warpbots.solvers.projective.states import ProjectiveState
from warpbots.solvers.projective.step_clock import move_all_kernel

__all__ = ["EndOfStep", "recall_step"]


@dataclasses.dataclass(frozen=True)
class EndOfStep:
    """A step, evaluated at its end.

    Attributes:
        dt: Length of the step [s].
        point: The end of the step.
        velocity: Velocities of nodes at the start [m/s], shape (worlds * n_nodes,).
        prescribed: Prescribed motion in the step.
        points: Points at the start of the step.
        skeleton: The bones.
        contact: The contacts.
    """

    dt: float
    point: Point
    velocity: wp.array
    prescribed: PrescribedStep
    points: ContactPoints
    skeleton: Skeleton
    contact: ContactStep


def recall_step(
    model: ProjectiveModel, state: ProjectiveState, control: wp.array, state_out: ProjectiveState, dt: float
) -> EndOfStep:
    """Evaluate rest shapes, bones and contacts at the end of a step, and write the gradient with respect to the end.

    Args:
        model: The model.
        state: The state at the start of the step.
        control: Control signals, shape (worlds, channels).
        state_out: The state at the end of the step, with gradients.
        dt: Length of the step [s].
    """
    workspace, sizes, device, h = model.workspace, model.topology.sizes, model.device, real(dt)
    x, v, u = state.position.flatten(), state.velocity.flatten(), workspace.displacement
    it, each = model.matrices.of(dt).iteration, (model.worlds, sizes.nodes)
    ended = [state_out.velocity.flatten(), state_out.position.grad.flatten(), state_out.velocity.grad.flatten()]
    workspace.stepped.zero_()
    point = Point(workspace.everywhere, control, x, u, h, state.time)
    prescribed = PrescribedStep(model, state, control, dt)
    prescribed.clear_gradients()
    evaluate_rest(model, point)
    launch(nodes.seed_kernel, each, [model.nodes, h, *ended], [u, workspace.seed], device)
    end = workspace.end(state_out)
    if end is not None:
        copy(u, end.z)
    points = ContactPoints(model, state, dt)
    skeleton = Skeleton(model, state, points, control, dt)
    skeleton.recall(u, state_out, dt)
    prescribed.carry_edges(points.position, u)
    launch(separate_kernel, (model.worlds, it.islands.count), [workspace.everywhere], [it.islands], device)
    launch(move_all_kernel, it.units, [], [it.islands], device)
    contact = ContactStep(model, skeleton, points, dt)
    contact.recall(end, u)
    return EndOfStep(dt, point, v, prescribed, points, skeleton, contact)
