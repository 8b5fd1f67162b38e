"""Points of matter that are bound to rigid bodies: which, and where in their bodies.

A rigid body that reaches into a soft body binds the points in it, as a bone binds nodes in projective dynamics. In the
exchange a bound point always sticks to its body (`touching_points`), so that it acts on the body with its inertia and
with the forces of its springs.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import warp as wp

from warpbots.contact import signed_distance
from warpbots.scene import RigidBody, Scene, SceneError, bars_of
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.spatial import vec3
from warpbots.solvers.coupled.measured_bodies import MeasuredBodies
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mpm.model import MPMModel
from warpbots.solvers.scene_parts import EMBEDDED, is_in

__all__ = ["BoundPoints", "bound_points", "correction_of", "reaches", "thrown_with", "with_bound"]

_SLACK = 1e-6
"""Distance from a body up to which points outside of it count as inside [`MatterPoints.size`]."""

_IN_LINE = 1e-6
"""Width of points in line, divided by their length [1]."""


@dataclasses.dataclass(frozen=True, eq=False)
class BoundPoints:
    """The points of matter of one world that are bound to rigid bodies.

    Attributes:
        of: Index of the rigid body of each point, -1 for a point that is not bound, shape (n_points,), int.
        body: `of` on the device, shape (n_points,), int.
        place: Place of each bound point in the frame of the solid of its body [m], double precision, shape
            (n_points,), vector.
    """

    of: np.ndarray
    body: wp.array
    place: wp.array

    def __len__(self) -> int:
        return int((self.of >= 0).sum())


def correction_of(share: float) -> float:
    """Share of its distance from its place by which contact moves a bound point in a step [1].

    With the displacement r of a point at the start of a step, contact acts on its velocity plus beta r / h. If the last
    stage of the bodies lasts for the share g of the step, r obeys r'' = (1 - g beta) r' - (1 - g) beta r. Its decay is
    fastest where both roots are equal, at beta = 1 / (1 + sqrt(1 - g))^2.

    Args:
        share: g [1].
    """
    return 1.0 / (1.0 + (1.0 - share) ** 0.5) ** 2


def bound_points(
    scene: Scene, size: float, cell: str, soft: MPMModel | MassSpringModel, at: MeasuredBodies,
    reaching: Sequence[tuple[int, int]], frames: tuple[np.ndarray, np.ndarray], device: wp.Device,
) -> BoundPoints:  # fmt: skip
    """Find the points that are bound to each body; of several bodies, a point is bound to the one it is deepest in.

    Args:
        scene: The scene.
        size: Distance of points [m].
        cell: What this distance is called.
        soft: Model of the matter.
        at: Poses of the rigid bodies at the start.
        reaching: Indices of the rigid bodies that reach into soft bodies, and of these soft bodies.
        frames: Positions [m] and axes of the solids in the frames of the bodies, shapes (n_bodies, 3) and
            (n_bodies, 3, 3).
        device: Device of the arrays.

    Raises:
        SceneError: A body that reaches into a soft body contains no three of its points that are not in line, or a
            constraint holds a bound point.
    """
    x, n = soft.matter.position, len(soft.matter)
    of, place, nearest = np.full(n, -1), np.zeros((n, 3)), np.full(n, _SLACK * size)
    for k in dict.fromkeys(k for k, _ in reaching):
        depth = signed_distance(scene.rigid[k].shape, at.in_frame(0, k, x))
        own = np.isin(soft.matter.body, [s for b, s in reaching if b == k]) & (depth < nearest)
        of[own], nearest[own] = k, depth[own]
        origin = at.position[0, k] + at.rotation[0, k] @ frames[0][k]
        place[own, : scene.dim] = x[own]
        place[own] = (place[own] - origin) @ at.rotation[0, k] @ frames[1][k]
    for k, s in reaching:
        _refuse_barely_bound(scene, k, s, x[(of == k) & (soft.matter.body == s)], size, cell)
    _refuse_held(scene, soft, of)
    return BoundPoints(of, device_array(of, device, int), device_array(place, device, vec3))


def reaches(body: RigidBody, at: MeasuredBodies, k: int, soft_body: object, x: np.ndarray, most: float) -> bool:
    """Whether a rigid body reaches into a soft body deeper than bodies that are placed in contact.

    Args:
        body: The rigid body, with the index `k`.
        at: Poses of the rigid bodies at the start.
        k: Index of the rigid body.
        soft_body: The soft body.
        x: Points of the soft body [m], shape (n, 3).
        most: Depth of points in bodies in contact [m].
    """
    if body.shape is None:
        return False
    depth = signed_distance(body.shape, at.in_frame(0, k, x))
    placed = dataclasses.replace(body, position=at.position[0, k], rotation=at.rotation[0, k])
    return bool(depth.min(initial=np.inf) < -most) or is_in(placed, soft_body, EMBEDDED)


def with_bound(soft: MassSpringModel, bound: BoundPoints, at: MeasuredBodies) -> MassSpringModel:
    """The matter with bound points that move with their bodies at the start and do not touch obstacles."""
    velocity, contact = np.array(soft.matter.velocity), soft.contact.numpy().copy()
    for i in np.flatnonzero(bound.of >= 0):
        velocity[i] = at.velocity_at(0, bound.of[i], soft.matter.position[i])
    contact[bound.of >= 0] = -1.0
    lattice = dataclasses.replace(soft.lattice, velocity=velocity)
    return dataclasses.replace(soft, lattice=lattice, contact=device_array(contact, soft.device))


def thrown_with(rigid: ArticulatedModel, bound: BoundPoints, velocity: np.ndarray) -> ArticulatedModel:
    """The bodies; a floating one without a given velocity starts with the mean velocity of the points bound to it.

    Args:
        rigid: The rigid bodies.
        bound: The bound points.
        velocity: Velocities of all points at the start [m/s], shape (n_points, dim).
    """
    robot, dim = rigid.robot, velocity.shape[1]
    floats = {2: "free_2d", 3: "free"}[dim]
    start = robot.start_velocity.copy()
    for k, joint in enumerate(robot.joints):
        own = bound.of == k
        if own.any() and joint.kind == floats and joint.parent is None and joint.start_velocity is None:
            start[robot.velocities[joint.name]][:dim] = (
                velocity[own].mean(axis=0) @ np.array(joint.rotation)[:dim, :dim]
            )
    return dataclasses.replace(rigid, robot=dataclasses.replace(robot, start_velocity=start))


def _refuse_barely_bound(scene: Scene, k: int, s: int, held: np.ndarray, size: float, cell: str) -> None:
    """Raise if a rigid body contains too few points of a soft body: three not in line, two in 2D, or one of a truss."""
    body, soft, dim = scene.rigid[k], scene.soft[s], scene.dim
    spread = np.linalg.svd(held - held.mean(axis=0), compute_uv=False) if len(held) >= dim else np.zeros(dim)
    if spread[dim - 2] > _IN_LINE * spread[0] or (len(held) and bars_of(soft.shape) is not None):
        return
    if bars_of(soft.shape) is not None:
        raise SceneError(
            f"RigidBody {body.name!r}: it reaches into SoftBody {soft.name!r}, but none of the masses at the ends of "
            f"the bars of its Truss is inside or on the body; move one of its joints inside, or the body out"
        )
    raise SceneError(
        f"RigidBody {body.name!r}: it reaches into SoftBody {soft.name!r}, but {len(held)} masses of this body are "
        f"inside or on it, and to bind it takes {'two' if dim == 2 else 'three that are not in line'}; move it further "
        f"inside by a {cell} of {size:g} m, make it thicker, use a smaller MassSpring(spacing=...), or move it out"
    )


def _refuse_held(scene: Scene, soft: MassSpringModel, of: np.ndarray) -> None:
    held = np.flatnonzero((of >= 0) & (soft.constraint.numpy() >= 0)) if (of >= 0).any() else of[:0]
    if len(held):
        i = int(held[0])
        constraint = scene.constraints[int(soft.constraint.numpy()[i])]
        raise SceneError(
            f"Constraint {constraint.name!r}: it holds mass {i} of {scene.soft[soft.matter.body[i]].name!r} at "
            f"{soft.matter.position[i].round(4).tolist()} m, which is bound to RigidBody {scene.rigid[of[i]].name!r}; "
            f"keep the region out of the rigid body, or hold the body by a Joint to the world"
        )
