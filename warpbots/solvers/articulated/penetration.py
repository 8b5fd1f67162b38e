"""Depths of contact points inside solids, and obstacles that meet with a body between them."""

import numpy as np
import warp as wp

from warpbots.numerics import launch
from warpbots.solvers.articulated.contact_list import ContactList, approach
from warpbots.solvers.articulated.kinematics import body_frame, joint_frame, move
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.step_arrays import ImplicitStage, Links

__all__ = ["deepest", "met", "stop_met"]

_NAN = wp.constant(scalar(np.nan))
_OPPOSITE = wp.constant(scalar(-0.9))
"""Cosine between the normals of obstacles that face each other."""
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
        k = w * robot.tree.bodies + robot.tree.body[e]
        joint = joint_frame(robot.design, k)
        move(robot.tree, robot.design, stage, joint, body_frame(robot.design, k), links_out, w, e)
    for c in range(candidates):
        _x, d, _n = approach(robot, links_out, w, contact_list.pair[c], contact_list.point[c])
        distance_out[w, c] = d


@wp.func
def closed_with(
    robot: RobotArrays, links: Links, contact_list: ContactList, candidates: int, w: int, c: int
):  # fmt: skip
    """Another candidate of the body of candidate c whose obstacle has met the obstacle of candidate c there, or -1.

    Both obstacles face each other, and the point of the surface of one is inside the other.
    """
    found = int(-1)
    own = contact_list.pair[c]
    body = robot.contacts.group_body[robot.contacts.pair_group[own]]
    solid = robot.contacts.pair_solid[own]
    if body < 0 or robot.solids.body[solid] >= 0:
        return found
    x, d, n = approach(robot, links, w, own, contact_list.point[c])
    if d < scalar(0.0):
        for b in range(candidates):
            other = contact_list.pair[b]
            s = robot.contacts.pair_solid[other]
            same = robot.contacts.group_body[robot.contacts.pair_group[other]] == body
            if same and s != solid and robot.solids.body[s] < 0:
                y, e, m = approach(robot, links, w, other, contact_list.point[b])
                gap = wp.dot(n, y - x - e * m + d * n)
                if e < scalar(0.0) and wp.dot(n, m) < _OPPOSITE and gap < scalar(0.0):
                    found = b
    return found


@wp.kernel(enable_backward=False)
def stop_met_kernel(
    # model
    robot: RobotArrays,
    # step
    stage: ImplicitStage,
    contact_list: ContactList,
    candidates: int,
    # out
    links_out: Links,
    between_out: wp.array2d[int],
    time_out: wp.array[scalar],
):
    """Set the time of a world to NaN if two obstacles have met at a body, and write the two candidates there."""
    w = wp.tid()
    between_out[w, 0] = -1
    for e in range(robot.tree.elements):
        k = w * robot.tree.bodies + robot.tree.body[e]
        joint = joint_frame(robot.design, k)
        move(robot.tree, robot.design, stage, joint, body_frame(robot.design, k), links_out, w, e)
    for c in range(candidates):
        other = closed_with(robot, links_out, contact_list, candidates, w, c)
        if other >= 0:
            between_out[w, 0] = c
            between_out[w, 1] = other
            time_out[w] = _NAN


def stop_met(model: ArticulatedModel, state: ArticulatedState) -> wp.array:
    """Set the time of each world to NaN in which obstacles have met at a body; obstacles are in their places.

    Returns:
        The candidates of the body with these two obstacles, -1 for none, shape (worlds, 2), int.
    """
    contact_list = model.workspace.contact_list
    between = model.workspace.between
    inputs = [model.robot_arrays, model.workspace.at_rest(state), contact_list, contact_list.pair.size]
    outputs = [model.workspace.links, between, state.time]
    launch(stop_met_kernel, model.worlds, inputs, outputs, model.device)
    return between


def met(model: ArticulatedModel, state: ArticulatedState) -> str | None:
    """Sentence about obstacles that have met at a body in a state, with the names and the remedy; None without any."""
    time = state.time.numpy().copy()
    between = stop_met(model, state).numpy()
    state.time.assign(time)
    worlds = np.flatnonzero(between[:, 0] >= 0)
    if not len(worlds):
        return None
    contacts, w = model.contact_topology, int(worlds[0])
    pairs = model.workspace.contact_list.pair.numpy()[between[w]]
    body = model.robot.bodies[int(contacts.group_body.numpy()[contacts.pair_group.numpy()[pairs[0]]])]
    first, second = (model.scene.laws[k].solid for k in contacts.pair_law.numpy()[pairs])
    bodies = model.workspace.links.body_position.numpy().reshape(model.worlds, -1, 3)
    place = bodies[w, model.robot.bodies.index(body)].round(4).tolist()
    return (
        f"RigidBody {body!r} in world {w}, at {place} m, is between the obstacles {first!r} and {second!r}: they have "
        f"met, and leave no room for it; end the motion earlier"
    )


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
    obstacle = model.scene.laws[model.contact_topology.pair_law.numpy()[pair]].solid
    body, solid = (names[k] if k >= 0 else obstacle for k in sorted(bodies, key=lambda k: k < 0))
    return f"{body!r} is {-d[c]:.2g} m inside of {solid!r}"
