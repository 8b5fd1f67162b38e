"""Kinematic tree: MuJoCo's bodies with all joint coordinates at zero, as links with one joint each."""

import dataclasses
import math

import numpy as np

from warpbots.robots.mujoco_source import Source, matrix, unique
from warpbots.scene import Joint, SceneError

__all__ = ["UNBOUNDED", "Link", "Start", "floating", "start_of", "tree_of"]

_KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "ball"}
UNBOUNDED = 1e10
"""Coordinate from which a limit is none [rad or m]: the largest number of MuJoCo."""

_UPRIGHT = (0.0, 0.0, 0.0, 1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """A body of the scene.

    Attributes:
        name: Its name.
        body: Index of MuJoCo's body, or None for a massless link between two joints of the same body.
        position: Origin in the world with all joints at zero [m], shape (3,).
        rotation: Its axes as columns, shape (3, 3).
    """

    name: str
    body: int | None
    position: np.ndarray
    rotation: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Start:
    """Joint coordinates and velocities at time 0, in the order of MuJoCo.

    Attributes:
        qpos: Coordinates, quaternions (w, x, y, z), shape (nq,).
        qvel: Velocities, shape (nv,).
        ctrl: Controls of a keyframe, shape (nu,); None if it is not a keyframe.
    """

    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray | None = None


def start_of(source: Source, keyframe: str | None) -> Start:
    """Initial state of a file, or of one of its keyframes.

    Raises:
        SceneError: There is no such keyframe.
    """
    model = source.model
    if keyframe is None:
        return Start(model.qpos0.copy(), np.zeros(model.nv))
    names = [model.key(k).name for k in range(model.nkey)]
    if keyframe not in names:
        known = ", ".join(n for n in names if n) or "none"
        raise SceneError(f"{source.path}: there is no keyframe {keyframe!r}; the file has {known}")
    k = names.index(keyframe)
    return Start(model.key_qpos[k].copy(), model.key_qvel[k].copy(), model.key_ctrl[k].copy())


def floating(source: Source, fixed_base: bool | None) -> dict[int, bool]:
    """Whether each base of the robot floats: bodies attached to the world with joints below, or all of URDF.

    Args:
        source: The file.
        fixed_base: Whether roots are fixed; None for what the file says.
    """
    model, found = source.model, {}
    for body in range(1, model.nbody):
        joints = source.joints_of(body)
        free = bool(joints) and source.joint_kind(joints[0]) == "free"
        if model.body_parentid[body] != 0 or (joints and not free):
            continue
        below = [k for k in range(1, model.nbody) if model.body_rootid[k] == body and k != body]
        base = source.urdf or any(source.joints_of(k) for k in below)
        found[body] = free if fixed_base is None or not base else not fixed_base
    return found


def tree_of(source: Source, start: Start, floats: dict[int, bool]) -> tuple[list[Link], list[Joint]]:
    """Links, parents first, and the joint of each."""
    links: list[Link] = []
    joints: list[Joint] = []
    at = {0: Link("", None, np.zeros(3), np.eye(3))}
    bodies, names = set(source.bodies), set(source.joints)
    for body in range(1, source.model.nbody):
        up = at[source.model.body_parentid[body]]
        if body in floats:
            new = [_base(source, start, body, floats[body], names)]
        else:
            new = _links_of(source, start, body, up, bodies, names)
        links += [link for link, _ in new]
        joints += [joint for _, joint in new]
        at[body] = new[-1][0]
    return links, joints


def _base(source: Source, start: Start, body: int, floats: bool, names: set[str]) -> tuple[Link, Joint]:
    """A base that floats, with coordinates relative to the world as in MuJoCo, or is fixed at its start."""
    model, name, own = source.model, source.bodies[body], source.joints_of(body)
    position, quaternion = model.body_pos[body], model.body_quat[body]
    if own:
        at = model.jnt_qposadr[own[0]]
        position, quaternion = start.qpos[at : at + 3], start.qpos[at + 3 : at + 7]
    if not floats:
        return _fixed(source, Link(name, body, position, matrix(quaternion)), None, names)
    values = {"position": (0.0,) * 3, "start": (*position, *np.roll(quaternion / np.linalg.norm(quaternion), -1))}
    if own:
        values |= _free_values(source, start, own[0])
    title = source.joints[own[0]] if own else unique(name, names)
    return Link(name, body, np.zeros(3), np.eye(3)), Joint(title, "free", None, name, **values)


def _free_values(source: Source, start: Start, joint: int) -> dict:
    model, first = source.model, source.model.jnt_dofadr[joint]
    dofs, stiffness = slice(first, first + 6), float(model.jnt_stiffness[joint])
    values = {
        "start_velocity": tuple(start.qvel[dofs]), "damping": tuple(model.dof_damping[dofs]),
        "armature": tuple(model.dof_armature[dofs]), "stiffness": stiffness,
    }  # fmt: skip
    if stiffness:
        at = model.jnt_qposadr[joint]
        values["neutral"] = (*model.qpos_spring[at : at + 3], 0.0, 0.0, 0.0)
    return values


def _fixed(source: Source, link: Link, parent: str | None, names: set[str]) -> tuple[Link, Joint]:
    title = unique(link.name, names)
    return link, Joint(title, "fixed", parent, link.name, tuple(link.position), link.rotation)


def _links_of(
    source: Source, start: Start, body: int, up: Link, bodies: set[str], names: set[str]
) -> list[tuple[Link, Joint]]:
    """A body with its joints, a link for each; the last is the body itself.

    MuJoCo's body has the pose of the file at qpos0. Its joints move it from the first to the last, each by its
    coordinate minus that of qpos0. At zero, the frame after a joint is that before it, moved by minus the coordinate of
    qpos0.
    """
    model, parent = source.model, up.name or None
    p = up.position + up.rotation @ model.body_pos[body]
    R = up.rotation @ matrix(model.body_quat[body])
    own, found = source.joints_of(body), []
    if not own:
        return [_fixed(source, Link(source.bodies[body], body, p, R), parent, names)]
    for joint in own:
        last = joint == own[-1]
        anchor, turn = p + R @ model.jnt_pos[joint], R
        p, R = _at_zero(source, joint, p, R)
        name = source.bodies[body] if last else unique(f"{source.bodies[body]}/{source.joints[joint]}", bodies)
        link = Link(name, body if last else None, p, R)
        found.append((link, _joint(source, start, joint, parent, name, anchor, turn)))
        parent = name
    return found


def _at_zero(source: Source, joint: int, p: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The frame at `p` and `R`, moved by the joint from its coordinate in qpos0 to zero."""
    from scipy.spatial.transform import Rotation

    model, kind = source.model, source.joint_kind(joint)
    back, axis = -model.qpos0[model.jnt_qposadr[joint]], model.jnt_axis[joint]
    if kind == "slide":
        return p + R @ axis * back, R
    if kind == "hinge":
        turn, anchor = Rotation.from_rotvec(back * axis).as_matrix(), model.jnt_pos[joint]
        return p + R @ (anchor - turn @ anchor), R @ turn
    return p, R


def _joint(
    source: Source, start: Start, joint: int, parent: str | None, child: str, anchor: np.ndarray, R: np.ndarray
) -> Joint:
    model, kind = source.model, _KINDS[source.joint_kind(joint)]
    at, dof = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
    values = {"start": float(start.qpos[at]), "start_velocity": float(start.qvel[dof])}
    if kind == "ball":
        q = start.qpos[at : at + 4]
        values = {
            "start": tuple(np.roll(q / np.linalg.norm(q), -1)),
            "start_velocity": tuple(start.qvel[dof : dof + 3]),
        }
    else:
        values["neutral"] = float(model.qpos_spring[at]) if model.jnt_stiffness[joint] else 0.0
        lower, upper = (
            e if abs(e) < UNBOUNDED else math.copysign(math.inf, e) for e in model.jnt_range[joint].tolist()
        )
        if model.jnt_limited[joint] and (math.isfinite(lower) or math.isfinite(upper)):
            values |= {"lower": lower, "upper": upper, **_limit_law(source, joint)}
    return Joint(
        source.joints[joint], kind, parent, child, tuple(anchor), R, axis=tuple(model.jnt_axis[joint]),
        stiffness=float(model.jnt_stiffness[joint]), damping=float(model.dof_damping[dof]),
        armature=float(model.dof_armature[dof]), **values,
    )  # fmt: skip


def _limit_law(source: Source, joint: int) -> dict[str, float]:
    """Stiffness and damping of MuJoCo's limit, for a load that rests far behind it.

    With the acceleration a_0 without the limit, MuJoCo's acceleration is

        a = (1 - d) a_0 - b v - k r,    k = 1 / (time ratio)^2,    b = 2 / time,

    at depth r, with d from solimp, and time and ratio, or -k and -b, from solref. With the inertia 1 / w this is a
    spring k / (1 - d) / w and a damper b / (1 - d) / w that act on an inertia 1 / (1 - d) times as large.
    """
    model = source.model
    d = float(np.clip(model.jnt_solimp[joint, 1], 0.0001, 0.9999))
    time, ratio = model.jnt_solref[joint]
    k, b = (1.0 / (time * ratio) ** 2, 2.0 / time) if time > 0.0 else (-time, -ratio)
    inertia = 1.0 / (1.0 - d) / float(model.dof_invweight0[model.jnt_dofadr[joint]])
    if not (math.isfinite(k * inertia) and k * inertia > 0.0):
        return {}
    return {"limit_stiffness": k * inertia, "limit_damping": max(0.0, b * inertia)}
