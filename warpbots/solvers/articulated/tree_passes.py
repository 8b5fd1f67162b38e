"""Launches that go over the tree: by one thread for each world, or by many, level by level from the roots."""

import warp as wp

from warpbots.numerics import Launch, launch_own_adjoint, parallel
from warpbots.solvers.articulated.arrays import Links, Stage
from warpbots.solvers.articulated.implicit_schemes import Past
from warpbots.solvers.articulated.kinematics import move
from warpbots.solvers.articulated.machine import Machine
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.virtual_power import motor_power_kernel, power_kernel, sweep_kernel

__all__ = ["adjoints", "pose_kernel", "poses", "power_adjoint", "sweeps"]


@wp.kernel
def pose_kernel(machine: Machine, stage: Stage, first: int, count: int, links_out: Links):
    """Where elements are: `count` from number `first + count i` of `order` on."""
    w, i = wp.tid()
    for k in range(count):
        move(machine.tree, machine.design, stage, links_out, w, machine.tree.order[first + count * i + k])


def _spans(model: ArticulatedModel) -> list[tuple[int, int, int]]:
    """For each launch its threads for a world, and where the elements of the first begin and how many each has."""
    if not parallel(model.device):
        return [(1, 0, model.tree.elements)]
    widths = [len(level) for level in model.robot.levels]
    return [(width, sum(widths[:i]), 1) for i, width in enumerate(widths)]


def poses(model: ArticulatedModel, stage: Stage) -> list[Launch]:
    """Where everything is at the end of a stage, in `scratch.links`."""
    return [
        (pose_kernel, (model.worlds, threads), [model.machine, stage, first, count], [model.scratch.links])
        for threads, first, count in _spans(model)
    ]


def sweeps(model: ArticulatedModel, past: Past, stage: Stage, number: int) -> list[Launch]:
    """Where everything is, and virtual twists for the virtual velocities in `scratch.weight`."""
    scratch = model.scratch
    inputs = [model.machine, past, stage, scratch.weight, number]
    return [
        (sweep_kernel, (model.worlds, threads), [*inputs, first, count], [scratch.links, scratch.sweep])
        for threads, first, count in _spans(model)
    ]


def adjoints(steps: list[Launch], device: wp.Device) -> None:
    """Adjoints of `steps` backwards, whose arrays own their gradients."""
    for kernel, dim, inputs, outputs in reversed(steps):
        launch_own_adjoint(kernel, dim, [*inputs, *outputs], device)


def power_adjoint(model: ArticulatedModel, past: Past, stage: Stage, control: wp.array, number: int) -> None:
    """Gradients of the power of inertia, joints and motors, after those of what else depends on `sweeps`."""
    scratch, worlds, elements = model.scratch, model.worlds, model.tree.elements
    count = 1 if parallel(model.device) else elements
    same = [model.machine, past, stage, scratch.weight, number]
    steps = [
        *sweeps(model, past, stage, number),
        (power_kernel, (worlds, elements // count), [*same, count, scratch.links, scratch.sweep], [scratch.power]),
    ]
    scratch.power.grad.fill_(1.0)
    if model.channels:
        steps.append((motor_power_kernel, (worlds, model.channels), [*same, control], [scratch.motor_power]))
        scratch.motor_power.grad.fill_(1.0)
    adjoints(steps, model.device)
