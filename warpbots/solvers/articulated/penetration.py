"""Depths of contact points inside solids."""

import numpy as np
import warp as wp

from warpbots.numerics import launch
from warpbots.solvers.articulated.contact_list import ContactList, approach
from warpbots.solvers.articulated.kinematics import move
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links

__all__ = ["deepest"]

_LITTLE = 1e-3
"""Largest depth that is not reported [m]."""


@wp.kernel(enable_backward=False)
def depth_kernel(
    # model
    robot: RobotArrays,
    # step
    stage: ImplicitStage,
    contact_list: ContactList,
    candidates: int,
    # out
    links_out: Links,
    distance_out: wp.array2d[scalar],
):
    """Compute the signed distance of each candidate of a world to its solid [m], negative inside the solid."""
    w = wp.tid()
    for e in range(robot.tree.elements):
        move(robot.tree, robot.design, stage, links_out, w, e)
    for c in range(candidates):
        _x, d, _n = approach(robot, links_out, w, contact_list.pair[c], contact_list.point[c])
        distance_out[w, c] = d


def deepest(model: ArticulatedModel, state: ArticulatedState, world: int) -> str | None:
    """Text that names the deepest contact of a world, or None if no contact is deeper than a millimetre."""
    contact_list = model.workspace.contact_list
    candidates = contact_list.pair.size
    if not candidates:
        return None
    distance = wp.zeros((model.worlds, candidates), dtype=scalar, device=model.device)
    inputs = [model.robot_arrays, model.workspace.at_rest(state), contact_list, candidates]
    launch(depth_kernel, model.worlds, inputs, [model.workspace.links, distance], model.device)
    d = distance.numpy()[world]
    c = int(np.argmin(d))
    if d[c] > -_LITTLE:
        return None
    pair, names = int(contact_list.pair.numpy()[c]), model.robot.bodies
    bodies = (
        int(model.contact_topology.group_body.numpy()[model.contact_topology.pair_group.numpy()[pair]]),
        int(model.solids.body.numpy()[model.contact_topology.pair_solid.numpy()[pair]]),
    )
    obstacle = model.scene.contacts[model.contact_topology.pair_law.numpy()[pair]].solid
    body, solid = (names[k] if k >= 0 else obstacle for k in sorted(bodies, key=lambda k: k < 0))
    return f"{body!r} is {-d[c]:.2g} m inside of {solid!r}"
