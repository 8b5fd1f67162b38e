"""Bones and their joints, and the nodes of soft bodies that are bound to each bone, on the host."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import warp as wp
from scipy.sparse import csc_matrix

from warpbots.numerics import launch_all, real, real_numpy
from warpbots.scene import JOINTS, Joint, RigidBody, Scene, SceneError, Servo, Torque
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.build import build as build_articulated
from warpbots.solvers.articulated.inertia import Moments
from warpbots.solvers.articulated.measurements import readings
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.robot import joint_of
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.articulated.tree_passes import poses
from warpbots.solvers.projective.bones.handles import HandleArrays, HandleWork
from warpbots.solvers.projective.bones.torn_bodies import refuse_torn
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.contact.bone_surface import BoneSurfaces, distance_to_body
from warpbots.solvers.projective.iterate.sparse_cholesky import Factor
from warpbots.solvers.scene_parts import is_bone, remedy

__all__ = ["BoneWorkspace", "bones_at", "bound_velocity", "handles_of", "motors_of", "refuse_unbound", "skeleton_of"]

_SAMPLES, _ROUNDING = 4, 0.0
"""Samples and rounding of the solids of bones; these solids never detect contact."""
_NEAR = 1e-6
"""Distance below which nodes coincide [mean edges]."""


def bones_at(bones: Sequence[RigidBody], position: np.ndarray, slack: float) -> np.ndarray:
    """Index of the bone that contains each point; of several, the one in which the point is deepest; -1 for none.

    Args:
        bones: Rigid bodies, with all joints at zero.
        position: Points [m], shape (n, 3).
        slack: Distance from a bone up to which points outside count as inside [m].
    """
    distance = np.full((len(position), len(bones) + 1), slack)
    for k, bone in enumerate(bones):
        if bone.shape is not None:
            distance[:, k + 1] = distance_to_body(bone, position)
    return distance.argmin(axis=1) - 1


def motors_of(scene: Scene) -> list[int]:
    """Control channels of the actuators that drive joints."""
    return [i for i, a in enumerate(scene.actuators) if isinstance(a, Torque | Servo)]


def refuse_unbound(scene: Scene, mesh: object) -> None:
    """Raise if this solver cannot simulate the bones of a scene.

    Args:
        scene: The scene with the bones.
        mesh: The soft bodies, a `Mesh`.

    Raises:
        SceneError: A bone is bound to fewer than three nodes that are not in line, a joint does not start at zero, or
            the scene has a `Contact`.
    """
    if scene.rigid:
        _refuse_contacts(scene)
        _refuse_starts(scene)
        _refuse_loose(scene, mesh.position, mesh.bone)


def skeleton_of(
    scene: Scene, mesh: object, components: Components, worlds: int, device: wp.Device
) -> ArticulatedModel | None:
    """The bones of a scene as an articulated model without contacts; None without bones.

    A floating bone without a given velocity starts with the mean velocity of the nodes that are bound to it.

    Args:
        scene: The scene with the bones.
        mesh: The soft bodies, a `Mesh`.
        components: Components of the scene.
        worlds: Number of worlds.
        device: Device of the arrays.

    Raises:
        SceneError: Two soft bodies that are bound to one skeleton touch, but no attachment joins them.
    """
    if not scene.rigid:
        return None
    refuse_torn(scene, mesh.position, mesh.body, mesh.bone, _NEAR * components.edge[: len(mesh)])
    bodies = tuple(dataclasses.replace(b, points=0) for b in scene.rigid)
    motors = tuple(scene.actuators[i] for i in motors_of(scene))
    joints = tuple(_thrown(j, scene, mesh) for j in _all_joints(scene))
    skeleton = Scene(bodies, motors, gravity=scene.gravity, joints=joints)
    of = [components.bones[[b.name for b in scene.rigid].index(j.child)] for j in joints]
    soft = {c: _soft_matter(mesh, components.of[: len(mesh)] == c) for c in set(of)}
    matter = {j.name: soft[c] for j, c in zip(joints, of, strict=True)}
    return build_articulated(skeleton, worlds, device, _SAMPLES, _ROUNDING, matter=matter)


def _soft_matter(mesh: object, own: np.ndarray) -> Moments:
    """Mass, centre of mass and inertia matrix of the nodes `own`; the stiffness of joint limits allows for them."""
    m, x = (mesh.density * mesh.volume)[own], mesh.position[own]
    center = m @ x / m.sum()
    second = np.einsum("n,ni,nj->ij", m, x - center, x - center)
    return float(m.sum()), center, np.trace(second) * np.eye(3) - second


def handles_of(
    skeleton: ArticulatedModel, mesh: object, bone_surfaces: BoneSurfaces, A: csc_matrix, factor: Factor, sizes: object
) -> HandleArrays:
    """Bones as handles that all nodes, and the vertices of bone surfaces, follow.

    Args:
        skeleton: The bones.
        mesh: The soft bodies, a `Mesh`.
        bone_surfaces: Surfaces of bones outside of their soft bodies.
        A: Matrix of the global step [N/m], shape (n_nodes, n_nodes).
        factor: The factors of `A` for nodes that are neither fixed nor bound to bones.
        sizes: Sizes of one world, `ProjectiveSizes`.
    """
    bones, ends = len(skeleton.scene.rigid), np.full(sizes.edge_ends, -1)
    bone_of = np.concatenate([mesh.bone, bone_surfaces.bone, ends])
    nodes, bound = len(bone_of), np.flatnonzero(bone_of >= 0)
    bone, position = bone_of[bound], np.concatenate([mesh.position, bone_surfaces.position])[bound]
    center = np.array([b.position for b in skeleton.scene.rigid])[bone]
    R = np.array([b.rotation for b in skeleton.scene.rigid])[bone]
    place = np.einsum("bij,bi->bj", R, position - center)
    weight = np.zeros((nodes, bones, 4))
    weight[bound, bone] = np.append(place, np.ones((len(bound), 1)), axis=1)
    weight = weight.reshape(nodes, 4 * bones)
    follow = weight[: len(mesh)]
    follow[factor.free] = -factor.lu.solve(A[factor.free] @ follow)
    handles, device = HandleArrays(), skeleton.device
    handles.nodes, handles.stride, handles.freedom = nodes, sizes.stride, skeleton.robot.freedom
    handles.handles, handles.bound = 4 * bones, len(bound)
    handles.bone_of, handles.node, handles.bone = (
        wp.array(a.astype(np.int32), dtype=int, device=device) for a in (bone_of, bound, bone)
    )
    handles.place = wp.array(place, dtype=vec3, device=device)
    handles.weight = wp.array(weight.T.reshape(-1).astype(real_numpy), dtype=real, device=device)
    handles.stiffness = wp.array((follow.T @ (A @ follow)).reshape(-1), dtype=scalar, device=device)
    return handles


class BoneWorkspace:
    """Arrays of bones that a step fills anew.

    Attributes:
        motor: Channels of the motors, shape (motors,).
        control: Control signals of the motors, shape (worlds, motors), with a gradient.
        gravity: Gravitational acceleration in double precision [m/s^2], shape (worlds,), with a gradient.
        work: Arrays of a global step, and the same arrays with `rows` and `columns` exchanged, for the adjoint.
        tangent: Transpose of the Jacobian of the residual of the joints, with soft bodies, shape (worlds * freedom *
            freedom,).
        pushed: Forces of soft bodies on bound nodes [N], shape (worlds * bound,).
        moved: Gradients with respect to the displacements of bound nodes, shape (worlds * bound,).
        power: Power whose gradients are the gradients of a step, at each bound node [W], shape (worlds * bound,), with
            a gradient.
        readings: Buffers for measurements of the bones that the caller does not ask for.
    """

    def __init__(self, skeleton: ArticulatedModel, bound: int, motor: list[int]):
        worlds, tree, device = skeleton.worlds, skeleton.tree, skeleton.device
        n, handles = tree.freedom, 4 * tree.bodies

        def zeros(shape: int | tuple, dtype: type = scalar, gradient: bool = False) -> wp.array:
            return wp.zeros(shape, dtype=dtype, device=device, requires_grad=gradient)

        self.motor = wp.array(np.array(motor, dtype=np.int32), dtype=int, device=device)
        self.control = zeros((worlds, len(motor)), gradient=True)
        self.gravity = zeros(worlds, vec3, gradient=True)
        work = HandleWork()
        for name in ("rows", "columns", "carried"):
            setattr(work, name, zeros(worlds * handles * n, vec3))
        for name in ("force", "moved"):
            setattr(work, name, zeros(worlds * handles, vec3))
        for name in ("matrix", "inverse"):
            setattr(work, name, zeros(worlds * n * n))
        for name in ("residual", "torque", "step"):
            setattr(work, name, zeros(worlds * n))
        work.pivot = zeros(worlds * n, int)
        exchanged = HandleWork()
        for name in HandleWork.vars:
            source = {"rows": "columns", "columns": "rows"}.get(name, name)
            setattr(exchanged, name, getattr(work, source))
        self.work = work, exchanged
        self.tangent = zeros(worlds * n * n)
        self.pushed, self.moved = zeros(worlds * bound, vec3), zeros(worlds * bound, vec3)
        self.power = zeros(worlds * bound, gradient=True)
        self.readings = readings(skeleton, requires_grad=True)


def _all_joints(scene: Scene) -> list[Joint]:
    """The joints of a scene, including the free joints of floating bones."""
    hung = {j.child for j in scene.joints}
    return [*scene.joints, *(joint_of(b, scene) for b in scene.rigid if b.name not in hung)]


def _thrown(joint: Joint, scene: Scene, mesh: object) -> Joint:
    """The joint; a free joint without a start velocity gets the mean velocity of the nodes bound to its bone."""
    if joint.kind != "free" or joint.parent is not None or joint.start_velocity is not None:
        return joint
    bone = [b.name for b in scene.rigid].index(joint.child)
    velocity = mesh.velocity[mesh.bone == bone].mean(axis=0) @ np.array(joint.rotation)
    return dataclasses.replace(joint, start_velocity=(*velocity, 0.0, 0.0, 0.0))


def bound_velocity(skeleton: ArticulatedModel, mesh: object) -> np.ndarray:
    """Velocities of all nodes at time 0 [m/s], shape (n_nodes, 3); bound nodes move with their bones."""
    velocity = mesh.velocity.copy()
    launch_all(poses(skeleton, skeleton.workspace.at_rest(Articulated().state(skeleton))), skeleton.device)
    twists = skeleton.workspace.links.twist.numpy()[skeleton.tree.element.numpy()]
    for k, twist in enumerate(twists):
        bound = mesh.bone == k
        velocity[bound] = np.cross(twist[:3], mesh.position[bound]) + twist[3:]
    return velocity


def _refuse_contacts(scene: Scene) -> None:
    for contact in scene.contacts:
        raise SceneError(
            f"Contact {contact.name!r}: ProjectiveDynamics detects all contacts itself, with the friction of soft "
            f"bodies and obstacles; {remedy(scene, 'ProjectiveDynamics', 'leave it out')}"
        )


def _refuse_starts(scene: Scene) -> None:
    """Raise if a joint does not start at zero: soft bodies are at rest with all joints at zero."""
    for joint in scene.joints:
        if joint.start is not None and not np.allclose(joint.start, JOINTS[joint.kind].zero, atol=1e-9):
            raise SceneError(
                f"Joint {joint.name!r}: it starts at {joint.start}, but soft bodies are at rest where all joints "
                f"are at zero; "
                f"{remedy(scene, 'ProjectiveDynamics', 'leave out start, drive the joint there with a Servo,')}"
            )


def _refuse_loose(scene: Scene, position: np.ndarray, bone: np.ndarray) -> None:
    """Raise if a bone is not bound to at least three nodes that are not in line."""
    carriers = {j.parent for j in scene.joints}
    for k, body in enumerate(scene.rigid):
        if body.shape is None and body.name in carriers:
            continue
        held = position[bone == k]
        spread = np.linalg.svd(held - held.mean(axis=0), compute_uv=False) if len(held) >= 3 else np.zeros(3)
        if spread[1] <= 1e-6 * spread[0]:
            lower, upper = body.bounds
            thickness = float((upper - lower).min())
            inside = "move it inside or make it thicker"
            cells = f"use cells of half its thickness, {thickness / 2.0:.3g} m (ProjectiveDynamics(cell_size=...))"
            advice = f"{inside}, or {cells}" if is_bone(scene, body) else remedy(scene, "ProjectiveDynamics", inside)
            raise SceneError(
                f"RigidBody {body.name!r} (from {lower.round(6).tolist()} to {upper.round(6).tolist()} m) is outside "
                f"of the soft bodies: {len(held)} of their nodes are bound to it, but it needs three that are not in "
                f"line; {advice}"
            )
