"""Places of the parts of a robot, and of the samples of solids, with all joints at zero."""

import numpy as np

from warpbots.contact.solid import Solids
from warpbots.contact.solid_forms import grid_of
from warpbots.scene import Scene
from warpbots.solvers.articulated.robot import ArticulatedRobot
from warpbots.solvers.places import Places

__all__ = ["robot_places", "sample_places"]


def robot_places(scene: Scene, robot: ArticulatedRobot, contact_point: np.ndarray, per: str) -> Places | None:
    """Places of bodies, joints, velocities, motors or contact points; None for other kinds of elements.

    The place of a body is the origin of its frame. The place of a joint, of its velocities and of its motors is the
    origin of the frame of the joint; these elements belong to the body that the joint moves.

    Args:
        scene: Scene with the rigid bodies and motors.
        robot: Robot of the scene.
        contact_point: Contact points in the frames of their bodies [m], shape (n_points, 3).
        per: Kind of element (`warpbots.solvers.Parameter.per`).
    """
    if per == "point":
        return _points(scene, robot, contact_point)
    bodies, velocities = np.arange(len(robot.bodies)), np.zeros(robot.freedom, dtype=int)
    for k, joint in enumerate(robot.joints):
        velocities[robot.velocities[joint.name]] = k
    names = [j.name for j in robot.joints]
    moved = {
        "body": bodies,
        "joint": bodies,
        "velocity": velocities,
        "motor": np.array([names.index(a.joint) for a in robot.motors.values()], dtype=int),
    }
    if per not in moved:
        return None
    origin = np.array([part.position for part in (scene.rigid if per == "body" else robot.joints)])
    return _places(scene, origin[moved[per]], moved[per])


def _points(scene: Scene, robot: ArticulatedRobot, contact_point: np.ndarray) -> Places:
    owner = np.full(len(contact_point), -1)
    for k, own in enumerate(robot.contact_points):
        owner[own] = k
    return _carried(scene, contact_point, owner)


def _carried(scene: Scene, x: np.ndarray, owner: np.ndarray) -> Places:
    """Places of points that are given in the frames of their bodies.

    Args:
        scene: Scene with the rigid bodies.
        x: Positions of the points in the frames of their bodies [m], shape (n, 3).
        owner: Index of the rigid body of each point, or -1 for a point in the world frame, shape (n,).
    """
    origin, axes = (np.array([getattr(b, name) for b in scene.rigid]) for name in ("position", "rotation"))
    x, moved, body = x.copy(), owner >= 0, np.full(len(x), -1)
    x[moved] = origin[owner[moved]] + np.einsum("pij,pj->pi", axes[owner[moved]], x[moved])
    names = [b.name for b in scene.bodies]
    body[moved] = np.array([names.index(b.name) for b in scene.rigid])[owner[moved]]
    return Places(x[:, None], body, {})


def sample_places(scene: Scene, solids: Solids) -> Places:
    """Places of the samples of solids without a closed form; samples of obstacles belong to no body."""
    grids = [grid_of(solids, s) for s in range(solids.kind.size)]
    positions = [np.zeros((0, 3)) if grid is None else grid.positions for grid in grids]
    owner = np.repeat(solids.body.numpy(), [len(x) for x in positions])
    return _carried(scene, np.concatenate(positions), owner)


def _places(scene: Scene, position: np.ndarray, body: np.ndarray) -> Places:
    """Places of elements with a single vertex each; `body` is the index of the rigid body of each element."""
    names = [b.name for b in scene.bodies]
    number = np.array([names.index(b.name) for b in scene.rigid])
    return Places(position[:, None], number[body], {})
