"""Converts MuJoCo's bodies, with all joint coordinates at zero, to a kinematic tree of links with one joint each."""

import dataclasses
import math

import numpy as np

from warpbots.robots.names import distinct
from warpbots.robots.quaternions import matrix
from warpbots.robots.records import JointRecord, Keyframe, RobotRecord
from warpbots.scene import Joint, SceneError

__all__ = ["UNBOUNDED", "TreeLink", "floating", "start_of", "tree_of"]

_KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "ball"}
UNBOUNDED = 1e10
"""Magnitude from which a limit counts as infinite [rad or m]: the largest number that MuJoCo accepts."""


@dataclasses.dataclass(frozen=True, eq=False)
class TreeLink:
    """A body of the scene, with its pose with all joints at zero.

    Attributes:
        name: Name of the body of the scene.
        body: Index of MuJoCo's body, or None for a massless link between two joints of the same body.
        position: Origin of the body in the world frame with all joints at zero [m], shape (3,).
        rotation: Axes of the body in the world frame with all joints at zero, as columns, shape (3, 3).
    """

    name: str
    body: int | None
    position: np.ndarray
    rotation: np.ndarray


def start_of(robot: RobotRecord, keyframe: str | None) -> Keyframe:
    """Initial state of a file, or of one of its keyframes.

    Raises:
        SceneError: There is no such keyframe.
    """
    if keyframe is None:
        return robot.pose
    found = next((key for key in robot.keyframes if key.name == keyframe), None)
    if found is None:
        known = ", ".join(key.name for key in robot.keyframes if key.name) or "none"
        raise SceneError(f"{robot.path}: there is no keyframe {keyframe!r}; the file has {known}")
    return found


def floating(robot: RobotRecord, fixed_base: bool | None) -> dict[int, bool]:
    """Whether each child of the world that has a free joint or no joint floats, by the index of the body.

    `fixed_base` affects only bases: in MJCF the bodies that have joints below them in the tree, in URDF all bodies in
    the result.

    Args:
        robot: The file.
        fixed_base: Whether bases are fixed; None to follow the file.
    """
    found = {}
    for k, body in enumerate(robot.bodies[1:], start=1):
        free = bool(body.joints) and robot.joints[body.joints[0]].kind == "free"
        if body.parent != 0 or (body.joints and not free):
            continue
        base = robot.urdf or any(other.joints for other in robot.bodies[1:] if other.root == k and other is not body)
        found[k] = free if fixed_base is None or not base else not fixed_base
    return found


def tree_of(robot: RobotRecord, start: Keyframe, floats: dict[int, bool]) -> tuple[list[TreeLink], list[Joint]]:
    """The links of a scene, with parents before children, and the joint of each link."""
    links: list[TreeLink] = []
    joints: list[Joint] = []
    at = {0: TreeLink("", None, np.zeros(3), np.eye(3))}
    titles, between = _names(robot, floats)
    for k, body in enumerate(robot.bodies[1:], start=1):
        if k in floats:
            new = [_base(robot, start, k, floats[k], titles)]
        else:
            new = _links_of(robot, start, k, at[body.parent], titles, between)
        links += [link for link, _ in new]
        joints += [joint for _, joint in new]
        at[k] = new[-1][0]
    return links, joints


def _names(robot: RobotRecord, floats: dict[int, bool]) -> tuple[dict[int, str], dict[int, str]]:
    """Names of joints without a name in the file, by body, and of links between two joints, by the joint before."""
    tied, followed = [], []
    for k, body in enumerate(robot.bodies[1:], start=1):
        if not body.joints or not floats.get(k, True):
            tied.append(k)
        elif k not in floats:
            followed += [(j, f"{body.name}/{robot.joints[j].name}") for j in body.joints[:-1]]
    titles = distinct([robot.bodies[k].name for k in tied], {joint.name for joint in robot.joints})
    between = distinct([name for _, name in followed], {body.name for body in robot.bodies})
    return dict(zip(tied, titles, strict=True)), dict(zip([j for j, _ in followed], between, strict=True))


def _base(robot: RobotRecord, start: Keyframe, k: int, floats: bool, titles: dict[int, str]) -> tuple[TreeLink, Joint]:
    """A base and its joint.

    The joint is free, with coordinates relative to the world as in MuJoCo, or fixed at the start pose.
    """
    body = robot.bodies[k]
    own = robot.joints[body.joints[0]] if body.joints else None
    position, turn = (body.position, body.quaternion) if own is None else _free_pose(start, own)
    if not floats:
        R = body.rotation if own is None else matrix(turn)
        return _fixed(TreeLink(body.name, k, position, R), None, titles[k])
    values = {"position": (0.0,) * 3, "start": (*position, *np.roll(turn / np.linalg.norm(turn), -1))}
    if own is not None:
        values |= _free_values(start, own)
    title = titles[k] if own is None else own.name
    return TreeLink(body.name, k, np.zeros(3), np.eye(3)), Joint(title, "free", None, body.name, **values)


def _free_pose(start: Keyframe, joint: JointRecord) -> tuple[np.ndarray, np.ndarray]:
    """Position [m] and quaternion (w, x, y, z) of a free body at the start."""
    at = joint.coordinate
    return start.qpos[at : at + 3], start.qpos[at + 3 : at + 7]


def _free_values(start: Keyframe, joint: JointRecord) -> dict:
    values = {
        "start_velocity": tuple(start.qvel[joint.velocity : joint.velocity + 6]), "damping": tuple(joint.damping),
        "armature": tuple(joint.armature), "stiffness": joint.stiffness,
    }  # fmt: skip
    if joint.stiffness:
        values["neutral"] = (*joint.neutral[:3], 0.0, 0.0, 0.0)
    return values


def _fixed(link: TreeLink, parent: str | None, title: str) -> tuple[TreeLink, Joint]:
    return link, Joint(title, "fixed", parent, link.name, tuple(link.position), link.rotation)


def _links_of(
    robot: RobotRecord, start: Keyframe, k: int, up: TreeLink, titles: dict[int, str], between: dict[int, str]
) -> list[tuple[TreeLink, Joint]]:
    """One link with its joint for each joint of a body; the last link is the body itself.

    In MuJoCo a body has the pose of the file at the joint coordinates qpos0. Its joints move the body in their order,
    each by its coordinate minus its coordinate in qpos0. With all coordinates at zero, the frame after a joint is
    therefore the frame before the joint, moved by minus the coordinate in qpos0.
    """
    body, parent, found = robot.bodies[k], up.name or None, []
    p, R = up.position + up.rotation @ body.position, up.rotation @ body.rotation
    if not body.joints:
        return [_fixed(TreeLink(body.name, k, p, R), parent, titles[k])]
    for j in body.joints:
        joint, last = robot.joints[j], j == body.joints[-1]
        anchor, turn = p + R @ joint.position, R
        p, R = _at_zero(joint, p, R)
        name = body.name if last else between[j]
        link = TreeLink(name, k if last else None, p, R)
        found.append((link, _joint(start, joint, parent, name, anchor, turn)))
        parent = name
    return found


def _at_zero(joint: JointRecord, p: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The frame with origin `p` and axes `R`, moved by the joint from its coordinate in qpos0 to zero."""
    from scipy.spatial.transform import Rotation

    back = -joint.zero
    if joint.kind == "slide":
        return p + R @ joint.axis * back, R
    if joint.kind == "hinge":
        turn, anchor = Rotation.from_rotvec(back * joint.axis).as_matrix(), joint.position
        return p + R @ (anchor - turn @ anchor), R @ turn
    return p, R


def _joint(
    start: Keyframe, joint: JointRecord, parent: str | None, child: str, anchor: np.ndarray, R: np.ndarray
) -> Joint:
    kind, at, dof = _KINDS[joint.kind], joint.coordinate, joint.velocity
    values = {"start": float(start.qpos[at]), "start_velocity": float(start.qvel[dof])}
    if kind == "ball":
        q = start.qpos[at : at + 4]
        values = {
            "start": tuple(np.roll(q / np.linalg.norm(q), -1)),
            "start_velocity": tuple(start.qvel[dof : dof + 3]),
        }
    else:
        values["neutral"] = float(joint.neutral[0]) if joint.stiffness else 0.0
        if joint.range is not None:
            lower, upper = (e if abs(e) < UNBOUNDED else math.copysign(math.inf, e) for e in joint.range.tolist())
            if math.isfinite(lower) or math.isfinite(upper):
                values |= {"lower": lower, "upper": upper, **_limit_law(joint)}
    return Joint(
        joint.name, kind, parent, child, tuple(anchor), R, axis=tuple(joint.axis), stiffness=joint.stiffness,
        damping=float(joint.damping[0]), armature=float(joint.armature[0]), **values,
    )  # fmt: skip


def _limit_law(joint: JointRecord) -> dict[str, float]:
    """Stiffness and damping of a joint limit of MuJoCo, with the impedance that holds far beyond the limit.

    Without the limit the acceleration would be a_0. At depth r and speed v, MuJoCo's acceleration is

        a = (1 - d) a_0 - b v - k r,    k = 1 / (time ratio)^2,    b = 2 / time.

    The impedance d comes from solimp; solref contains time and ratio, or -k and -b. For a joint with the inertia 1 / w,
    this is the acceleration of a joint with the inertia 1 / (1 - d) / w under a spring of stiffness k / (1 - d) / w and
    a damper b / (1 - d) / w.
    """
    d = float(np.clip(joint.impedance, 0.0001, 0.9999))
    time, ratio = joint.solref
    k, b = (1.0 / (time * ratio) ** 2, 2.0 / time) if time > 0.0 else (-time, -ratio)
    inertia = 1.0 / (1.0 - d) / joint.mobility
    if not (math.isfinite(k * inertia) and k * inertia > 0.0):
        return {}
    return {"limit_stiffness": k * inertia, "limit_damping": max(0.0, b * inertia)}
