"""Bones and their joints, and the nodes of soft bodies that are bound to each bone, on the host."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import warp as wp
from scipy.sparse import csc_matrix

from warpbots.meshing.fitted import samples
from warpbots.numerics import launch_all, real, real_numpy, warp_device
from warpbots.scene import JOINTS, Joint, RigidBody, Scene, SceneError, Servo, SoftBody, Torque
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.build import build as build_articulated
from warpbots.solvers.articulated.doubtful_joints import warn_of_joints
from warpbots.solvers.articulated.inertia import Moments, warn_of_overlaps
from warpbots.solvers.articulated.measurements import readings
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.articulated.robot import joint_of
from warpbots.solvers.articulated.spatial import scalar, vec3
from warpbots.solvers.articulated.tree_passes import poses
from warpbots.solvers.projective.bones.handle_arrays import HandleArrays, HandleWork
from warpbots.solvers.projective.bones.joint_blocks import JointBlocks
from warpbots.solvers.projective.bones.torn_bodies import refuse_torn
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.contact.bone_surface import BARE, BoneSurfaces, distance_to_body, posed_surface
from warpbots.solvers.projective.iterate.sparse_cholesky import Factor
from warpbots.solvers.scene_parts import is_bone, remedy
from warpbots.user_warning import warn_user

__all__ = [
    "BoneWorkspace",
    "at_start",
    "bones_at",
    "bones_inside",
    "bound_velocity",
    "handles_of",
    "motors_of",
    "refuse_unbound",
    "skeleton_of",
]

_SAMPLES, _ROUNDING = 4, 0.0
"""Samples and rounding of the solids of bones; these solids never detect contact."""
_NEAR = 1e-6
"""Distance below which nodes coincide [mean edges]."""
_TOUCHING = 4e-6
"""Depth up to which a node of a soft body touches a rigid body [cells]; contact parts surfaces this near."""


def at_start(scene: Scene) -> Scene:
    """The scene with its rigid bodies in their start poses; `RigidBody` has their poses with all joints at zero.

    Soft bodies are bound to rigid bodies in their places at time 0, and are at rest there.
    """
    if all(j.start is None or np.allclose(j.start, JOINTS[j.kind].zero, atol=1e-12) for j in scene.joints):
        return scene
    bodies = tuple(dataclasses.replace(b, points=0) for b in scene.rigid)
    skeleton = build_articulated(Scene(bodies, joints=scene.joints), 1, warp_device("cpu"), _SAMPLES, _ROUNDING)
    launch_all(poses(skeleton, skeleton.workspace.at_rest(Articulated().state(skeleton))), skeleton.device)
    links = skeleton.workspace.links
    frames = zip(links.body_position.numpy(), links.body_rotation.numpy(), strict=True)
    moved = (dataclasses.replace(b, position=p, rotation=R) for b, (p, R) in zip(scene.rigid, frames, strict=True))
    return dataclasses.replace(scene, bodies=[next(moved) if isinstance(b, RigidBody) else b for b in scene.bodies])


def bones_inside(scene: Scene, position: Sequence[np.ndarray], cell_size: float) -> list[list[int]]:
    """For each soft body, the indices of the rigid bodies that reach into it: its nodes in them are bound to them.

    Bodies whose surfaces merely touch are in contact. A warning names those that a joint holds, as a user may mean to
    glue a pad to a link.

    Args:
        scene: The scene with the rigid bodies in their start poses.
        position: Nodes of each soft body [m], each of shape (n, 3).
        cell_size: Approximate length of the edges of surfaces [m].
    """
    held = {j.child for j in scene.joints if j.kind != "free"}
    found = []
    for body, x in zip(scene.soft, position, strict=True):
        found.append([])
        for k, bone in enumerate(scene.rigid):
            least = distance_to_body(bone, x).min(initial=np.inf)
            if least > _NEAR * cell_size:
                continue
            if least < -_TOUCHING * cell_size or _reaches(bone, body, cell_size):
                found[-1].append(k)
            elif bone.name in held:
                warn_user(
                    f"SoftBody {body.name!r} touches RigidBody {bone.name!r} and is not bound to it; to bind it, let "
                    f"it reach into the rigid body, such as by {0.01 * cell_size:.2g} m"
                )
    return found


def _reaches(bone: RigidBody, body: SoftBody, cell_size: float) -> bool:
    """Whether the surface of a bone is partly inside a soft body."""
    points = samples(*posed_surface(bone, cell_size)).reshape(-1, 3)
    return bool(distance_to_body(body, points).min() < -BARE * cell_size)


def bones_at(bones: Sequence[RigidBody], inside: list[int], position: np.ndarray, slack: float) -> np.ndarray:
    """Index of the bone that contains each point; of several, the one in which the point is deepest; -1 for none.

    Args:
        bones: Rigid bodies in their start poses.
        inside: Indices of the bones that reach into the body of the points.
        position: Points [m], shape (n, 3).
        slack: Distance from a bone up to which points outside count as inside [m].
    """
    distance = np.full((len(position), len(bones) + 1), slack)
    for k in inside:
        distance[:, k + 1] = distance_to_body(bones[k], position)
    return distance.argmin(axis=1) - 1


def motors_of(scene: Scene) -> list[int]:
    """Control channels of the actuators that drive joints."""
    return [i for i, a in enumerate(scene.actuators) if isinstance(a, Torque | Servo)]


def refuse_unbound(scene: Scene, mesh: object) -> None:
    """Raise if this solver cannot simulate the bones of a scene.

    Args:
        scene: The scene with the bones in their start poses.
        mesh: The soft bodies, a `Mesh`.

    Raises:
        SceneError: A bone is bound to soft matter by nodes in line, or a body without flesh is in a fluid.
    """
    if scene.rigid:
        _warn_of_laws(scene)
        warn_of_joints(scene)
        warn_of_overlaps(scene)
        _refuse_barely_bound(scene, mesh.position, mesh.bone)
        _refuse_wet(scene, mesh.bone)


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
    center = m @ x / m.sum() if len(m) else np.zeros(3)
    second = np.einsum("n,ni,nj->ij", m, x - center, x - center)
    return float(m.sum()), center, np.trace(second) * np.eye(3) - second


def handles_of(
    skeleton: ArticulatedModel, rigid: Sequence[RigidBody], mesh: object, bone_surfaces: BoneSurfaces,
    joint_blocks: JointBlocks, A: csc_matrix, factor: Factor, sizes: object,
) -> HandleArrays:  # fmt: skip
    """Bones as handles that their nodes, soft matter around these, and the vertices of bone surfaces follow.

    Args:
        skeleton: The bones.
        rigid: Bones in their start poses.
        mesh: The soft bodies, a `Mesh`.
        bone_surfaces: Surfaces of bones outside of their soft bodies.
        joint_blocks: Which joints are in one block.
        A: Matrix of the global step [N/m], shape (n_nodes, n_nodes).
        factor: The factors of `A` for nodes that are neither fixed nor bound to bones.
        sizes: Sizes of one world, `ProjectiveSizes`.
    """
    bones, soft = len(rigid), len(mesh)
    bone_of = np.concatenate([mesh.bone, bone_surfaces.bone, np.full(sizes.edge_ends, -1)])
    bound = np.flatnonzero(bone_of >= 0)
    number = np.full(len(bone_of), -1)
    number[bound] = np.arange(len(bound))
    bone, position = bone_of[bound], np.concatenate([mesh.position, bone_surfaces.position])[bound]
    center = np.array([b.position for b in rigid])[bone]
    R = np.array([b.rotation for b in rigid])[bone]
    place = np.einsum("bij,bi->bj", R, position - center)
    inner, flesh = int((bound < soft).sum()), np.unique(mesh.bone[mesh.bone >= 0])
    flesh_of = np.full(bones, -1)
    flesh_of[flesh] = np.arange(len(flesh))
    follow = np.zeros((soft, len(flesh), 4))
    follow[bound[:inner], flesh_of[bone[:inner]]] = np.append(place[:inner], np.ones((inner, 1)), axis=1)
    follow = follow.reshape(soft, 4 * len(flesh))
    if len(flesh):
        follow[factor.free] = -factor.lu.solve(A[factor.free] @ follow)
    device = skeleton.device
    handles = HandleArrays()
    handles.nodes, handles.soft, handles.stride = len(bone_of), soft, sizes.stride
    handles.freedom, handles.handles = skeleton.robot.freedom, 4 * bones
    handles.bound, handles.fleshed, handles.blocks = len(bound), len(flesh), len(joint_blocks)
    tables = {
        "bone_of": bone_of, "number": number, "node": bound, "bone": bone, "flesh": flesh, "flesh_of": flesh_of,
        "bare": inner + np.searchsorted(bone_surfaces.bone, np.arange(bones + 1)), "block": joint_blocks.first,
        "entry": joint_blocks.entry, "block_of": joint_blocks.of_joint, "slot": joint_blocks.slot,
        "block_at": np.append(joint_blocks.of_point, np.full(sizes.edge_ends, -1)),
    }  # fmt: skip
    for name, values in tables.items():
        setattr(handles, name, wp.array(values.astype(np.int32), dtype=int, device=device))
    handles.span = wp.array(joint_blocks.span.astype(np.int32), dtype=wp.vec2i, device=device)
    handles.place = wp.array(place, dtype=vec3, device=device)
    handles.weight = wp.array(follow.T.reshape(-1).astype(real_numpy), dtype=real, device=device)
    handles.stiffness = wp.array((follow.T @ (A @ follow)).reshape(-1), dtype=scalar, device=device)
    return handles


class BoneWorkspace:
    """Arrays of bones that a step fills anew.

    Attributes:
        motor: Channels of the motors, shape (motors,).
        control: Control signals of the motors, shape (worlds, motors), with a gradient.
        gravity: Gravitational acceleration in double precision [m/s^2], shape (worlds,), with a gradient.
        work: Arrays of a global step, and the same arrays with `rows` and `columns` exchanged, for the adjoint.
        tangent: Transpose of the Jacobian of the residual of the joints, with soft bodies, shape (worlds * entries,).
        pushed: Forces of soft bodies on bound nodes [N], shape (worlds * bound,).
        moved: Gradients with respect to the displacements of bound nodes, shape (worlds * bound,).
        power: Power whose gradients are the gradients of a step, at each bound node [W], shape (worlds * bound,), with
            a gradient.
        readings: Buffers for measurements of the bones that the caller does not ask for.
    """

    def __init__(self, skeleton: ArticulatedModel, joint_blocks: JointBlocks, bound: int, motor: list[int]):
        worlds, tree, device = skeleton.worlds, skeleton.tree, skeleton.device
        n, handles = tree.freedom, 4 * tree.bodies
        entries, slots = int(joint_blocks.entry[-1]), int(joint_blocks.slot[-1])

        def zeros(shape: int | tuple, dtype: type = scalar, gradient: bool = False) -> wp.array:
            return wp.zeros(shape, dtype=dtype, device=device, requires_grad=gradient)

        self.motor = wp.array(np.array(motor, dtype=np.int32), dtype=int, device=device)
        self.control = zeros((worlds, len(motor)), gradient=True)
        self.gravity = zeros(worlds, vec3, gradient=True)
        work = HandleWork()
        for name in ("rows", "columns", "carried"):
            setattr(work, name, zeros(worlds * slots, vec3))
        for name in ("force", "moved"):
            setattr(work, name, zeros(worlds * handles, vec3))
        for name in ("matrix", "inverse"):
            setattr(work, name, zeros(worlds * entries))
        for name in ("residual", "torque", "step"):
            setattr(work, name, zeros(worlds * n))
        work.pivot = zeros(worlds * n, int)
        exchanged = HandleWork()
        for name in HandleWork.vars:
            source = {"rows": "columns", "columns": "rows"}.get(name, name)
            setattr(exchanged, name, getattr(work, source))
        self.work = work, exchanged
        self.tangent = zeros(worlds * entries)
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
    bound = mesh.bone == [b.name for b in scene.rigid].index(joint.child)
    if not bound.any():
        return joint
    velocity = mesh.velocity[bound].mean(axis=0) @ np.array(joint.rotation)
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


def _warn_of_laws(scene: Scene) -> None:
    """Warn that contact laws only select pairs here and give their friction."""
    if scene.laws:
        warn_user(
            "ProjectiveDynamics: Contact laws select which rigid bodies touch one another and obstacles, and give the "
            "friction of the pairs that they name; their stiffness, damping, viscosity and restitution have no effect, "
            "because contact is rigid and does not bounce"
        )


def _refuse_barely_bound(scene: Scene, position: np.ndarray, bone: np.ndarray) -> None:
    """Raise if nodes of soft matter are bound to a rigid body, but not three nodes that are not in line."""
    for k, body in enumerate(scene.rigid):
        held = position[bone == k]
        spread = np.linalg.svd(held - held.mean(axis=0), compute_uv=False) if len(held) >= 3 else np.zeros(3)
        if spread[1] > 1e-6 * spread[0] or not (len(held) or is_bone(scene, body)):
            continue
        lower, upper = body.bounds
        thickness = float((upper - lower).min())
        raise SceneError(
            f"RigidBody {body.name!r} (from {lower.round(6).tolist()} to {upper.round(6).tolist()} m): {len(held)} "
            f"nodes of the soft bodies are inside or on it, but a bone needs three that are not in line; make it "
            f"thicker, move it further inside, use cells of half its thickness, {thickness / 2.0:.3g} m "
            f"(ProjectiveDynamics(cell_size=...)), or move it out of the soft bodies by a gap"
        )


def _refuse_wet(scene: Scene, bone: np.ndarray) -> None:
    """Raise if a scene with a fluid has a rigid body without flesh, because the fluid has no forces on it."""
    for k, body in enumerate(scene.rigid):
        if scene.fluid is not None and body.shape is not None and not (bone == k).any():
            raise SceneError(
                f"Scene.fluid: it acts on soft bodies only, and RigidBody {body.name!r} is in none; "
                f"{remedy(scene, 'ProjectiveDynamics', 'leave out the fluid or cover the body with a SoftBody')}"
            )
