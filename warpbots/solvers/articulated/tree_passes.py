"""Launches that traverse the tree of joints from the roots.

On a CPU one thread traverses the whole tree of a world; on a GPU many threads process one level after the other.
"""

import warp as wp

from warpbots.numerics import Launch, launch_own_adjoint, parallel
from warpbots.solvers.articulated.kinematics import body_frame, joint_frame, move
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.robot_arrays import JointTree, ModelParameters
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links
from warpbots.solvers.articulated.virtual_power import motor_power_kernel, power_kernel, sweep_kernel

__all__ = ["adjoints", "pose_kernel", "poses", "power_adjoint", "sweeps"]


@wp.kernel
def pose_kernel(
    # model
    tree: JointTree,
    design: ModelParameters,
    # step
    stage: ImplicitStage,
    first: int,
    count: int,
    # out
    links_out: Links,
):
    """Write poses and motion of elements to `links_out`.

    Thread i processes `count` elements of `tree.order`, starting at index `first` + `count` i.
    """
    w, i = wp.tid()
    for m in range(count):
        e = tree.order[first + count * i + m]
        k = w * tree.bodies + tree.body[e]
        move(tree, design, stage, joint_frame(design, k), body_frame(design, k), links_out, w, e)


def _spans(model: ArticulatedModel) -> list[tuple[int, int, int]]:
    """List the tuple (threads, first, count) of each launch over all elements.

    Each world has `threads` threads. Thread i processes `count` elements of `tree.order`, starting at index `first` +
    `count` i.
    """
    if not parallel(model.device):
        return [(1, 0, model.tree.elements)]
    widths = [len(level) for level in model.robot.levels]
    return [(width, sum(widths[:i]), 1) for i, width in enumerate(widths)]


def poses(model: ArticulatedModel, stage: ImplicitStage) -> list[Launch]:
    """List the launches that write poses and motion of all links at the end of a stage to `workspace.links`."""
    inputs = [model.tree, model.design, stage]
    return [
        (pose_kernel, (model.worlds, threads), [*inputs, first, count], [model.workspace.links])
        for threads, first, count in _spans(model)
    ]


def sweeps(model: ArticulatedModel, stage: ImplicitStage) -> list[Launch]:
    """List the launches that write poses and virtual twists of all elements.

    The virtual twists follow from the virtual velocities in `workspace.weight`.
    """
    workspace = model.workspace
    inputs = [model.tree, model.design, stage, workspace.weight]
    return [
        (sweep_kernel, (model.worlds, threads), [*inputs, first, count], [workspace.links, workspace.sweep])
        for threads, first, count in _spans(model)
    ]


def adjoints(steps: list[Launch], device: wp.Device) -> None:
    """Launch the adjoints of `steps` in reverse order; gradients are read from and added to `grad` of the arrays."""
    for kernel, dim, inputs, outputs in reversed(steps):
        launch_own_adjoint(kernel, dim, [*inputs, *outputs], device)


def power_adjoint(model: ArticulatedModel, stage: ImplicitStage, control: wp.array) -> None:
    """Adjoint of the powers of inertia, joints and motors.

    Call this function after all other adjoints that use the launches of `sweeps`.
    """
    workspace, worlds, elements = model.workspace, model.worlds, model.tree.elements
    count = 1 if parallel(model.device) else elements
    same = [model.tree, model.design, stage, workspace.weight]
    swept = [workspace.links, workspace.sweep]
    steps = [
        *sweeps(model, stage),
        (power_kernel, (worlds, elements // count), [*same, count, *swept], [workspace.power]),
    ]
    workspace.power.grad.fill_(1.0)
    if motors := model.tree.motors:
        steps.append((motor_power_kernel, (worlds, motors), [*same, control], [workspace.motor_power]))
        workspace.motor_power.grad.fill_(1.0)
    adjoints(steps, model.device)
