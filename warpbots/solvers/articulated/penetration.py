"""How deep bodies are inside of what they touch."""

import numpy as np
import warp as wp

from warpbots.numerics import launch
from warpbots.solvers.articulated.arrays import Links, Stage
from warpbots.solvers.articulated.kinematics import move
from warpbots.solvers.articulated.machine import Machine
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.virtual_power import Touching, approach

__all__ = ["deepest"]

_LITTLE = 1e-3
"""Depth of which nothing has to be said [m]."""


@wp.kernel(enable_backward=False)
def depth_kernel(
    machine: Machine,
    stage: Stage,
    touching: Touching,
    candidates: int,
    links_out: Links,
    distance_out: wp.array2d[scalar],
):
    """Distance of every candidate of a world [m], negative inside."""
    w = wp.tid()
    for e in range(machine.tree.elements):
        move(machine.tree, machine.design, stage, links_out, w, e)
    for c in range(candidates):
        _x, _R, d, _n = approach(machine, links_out, w, touching.pair[c], touching.point[c])
        distance_out[w, c] = d


def deepest(model: ArticulatedModel, state: ArticulatedState, world: int) -> str | None:
    """Name the contact that is deepest in a world, if any is deeper than a millimetre."""
    touching = model.scratch.touching
    candidates = touching.pair.size
    if not candidates:
        return None
    distance = wp.zeros((model.worlds, candidates), dtype=scalar, device=model.device)
    inputs = [model.machine, model.scratch.at_rest(state), touching, candidates]
    launch(depth_kernel, model.worlds, inputs, [model.scratch.links, distance], model.device)
    d = distance.numpy()[world]
    c = int(np.argmin(d))
    if d[c] > -_LITTLE:
        return None
    pair, names = int(touching.pair.numpy()[c]), model.robot.bodies
    body = names[model.meeting.group_body.numpy()[model.meeting.pair_group.numpy()[pair]]]
    other = int(model.solids.body.numpy()[model.meeting.pair_solid.numpy()[pair]])
    solid = names[other] if other >= 0 else model.scene.contacts[model.meeting.pair_law.numpy()[pair]].solid
    return f"{body!r} is {-d[c]:.2g} m inside of {solid!r}"
