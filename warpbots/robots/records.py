"""Content of a robot file as plain records with unique names, frames as matrices, and kinds as words.

Records are read once (`warpbots.robots.model_reader`); everything afterwards translates them into a scene. Indices are
those of MuJoCo; the first body is the world. Units are SI, angles are in rad.
"""

import dataclasses
from pathlib import Path

import numpy as np

__all__ = [
    "ActuatorRecord", "BodyRecord", "EqualityRecord", "GeomRecord", "JointRecord", "Keyframe", "MeshRecord",
    "PairRecord", "RobotRecord",
]  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class BodyRecord:
    """A body.

    Attributes:
        name: Its name.
        parent: Index of its parent.
        root: Index of the root of its tree, a body attached to the world.
        weld: Index of the body to which it is fixed, 0 for the world.
        joints: Indices of its joints, in the order in which they move it.
        position: Its origin in the frame of its parent [m], shape (3,).
        quaternion: Its orientation in the frame of its parent (w, x, y, z), shape (4,).
        rotation: The same orientation as a matrix, with the axes as columns, shape (3, 3).
        mass: Its mass [kg].
        center: Its centre of mass in its own frame [m], shape (3,).
        moments: Its moments of inertia about the centre of mass in its own axes [kg m^2], shape (3, 3).
        weighs: Whether it has a mass, or moments of inertia.
    """

    name: str
    parent: int
    root: int
    weld: int
    joints: tuple[int, ...]
    position: np.ndarray
    quaternion: np.ndarray
    rotation: np.ndarray
    mass: float
    center: np.ndarray
    moments: np.ndarray
    weighs: bool


@dataclasses.dataclass(frozen=True, eq=False)
class JointRecord:
    """A joint.

    Attributes:
        name: Its name.
        kind: ``"free"``, ``"ball"``, ``"slide"`` or ``"hinge"``.
        coordinate: Index of its first coordinate.
        velocity: Index of its first velocity.
        position: Its centre in the frame of its body [m], shape (3,).
        axis: Its axis in the frame of its body, shape (3,).
        zero: Its first coordinate at the pose of the file [rad or m].
        neutral: Coordinates at which its spring is at rest [rad or m], quaternions (w, x, y, z), shape (n,).
        stiffness: Stiffness of its spring [N m/rad or N/m].
        damping: Damping coefficient of each of its velocities [N m s/rad or N s/m], shape (n,).
        armature: Added inertia for each of its velocities [kg m^2 or kg], shape (n,).
        range: Lower and upper limit [rad or m], shape (2,); None if it is not limited.
        solref: Time constant [s] and damping ratio [1] of its limit, or minus stiffness and minus damping per unit of
            inertia.
        impedance: Impedance of its limit at a large violation [1].
        mobility: Inverse of the effective inertia for its first velocity [1/kg or 1/(kg m^2)].
        effort: Largest force of its actuators [N m or N]; None if it is not limited.
    """

    name: str
    kind: str
    coordinate: int
    velocity: int
    position: np.ndarray
    axis: np.ndarray
    zero: float
    neutral: np.ndarray
    stiffness: float
    damping: np.ndarray
    armature: np.ndarray
    range: np.ndarray | None
    solref: tuple[float, float]
    impedance: float
    mobility: float
    effort: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class GeomRecord:
    """A geom of a body; it is only visual if ``contype`` and ``conaffinity`` are 0.

    Attributes:
        name: Its name, or its number.
        kind: ``"sphere"``, ``"box"``, ``"mesh"``, ...
        body: Index of its body.
        position: Its origin in the frame of its body [m], shape (3,).
        rotation: Its axes in the frame of its body, as columns, shape (3, 3).
        size: Radii and half lengths [m], shape (3,).
        radius: Radius of a sphere around its origin that contains it [m].
        mesh: Index of its mesh, -1 without one.
        contype: MuJoCo's bits that are compared with the conaffinity of another geom.
        conaffinity: Bits that are compared with the contype of another geom.
        friction: Coulomb coefficient [1].
        frictionless: Whether the geom has condim 1: no friction, unless the other geom has a higher condim.
        priority: Priority in a contact: the friction of the geom with the higher priority is used.
        color: Red, green and blue in [0, 1].
    """

    name: str
    kind: str
    body: int
    position: np.ndarray
    rotation: np.ndarray
    size: np.ndarray
    radius: float
    mesh: int
    contype: int
    conaffinity: int
    friction: float
    frictionless: bool
    priority: int
    color: tuple[float, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class MeshRecord:
    """A mesh.

    Attributes:
        name: Its name.
        vertices: Its vertices [m], shape (n, 3).
    """

    name: str
    vertices: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class ActuatorRecord:
    """An actuator.

    Attributes:
        name: Its name, or its number.
        index: Its number, also the number of its control.
        drives: Kind of its target: ``"joint"``, ``"jointinparent"``, ``"tendon"``, ...
        target: Index of its target.
        dynamics: Kind of its internal dynamics, ``"none"`` if it has none.
        gain_kind: Kind of its gain.
        bias_kind: Kind of its bias.
        gain: Parameters of its gain, shape (n,).
        bias: Parameters of its bias, shape (n,).
        gear: Force on each velocity of its joint, per unit of force of the actuator, shape (6,).
        control_range: Lower and upper control, shape (2,); None if the control is not limited.
        force_range: Lower and upper force, shape (2,); None if the force is not limited.
        is_passive: Whether it has a damping or an armature of its own.
    """

    name: str
    index: int
    drives: str
    target: int
    dynamics: str
    gain_kind: str
    bias_kind: str
    gain: np.ndarray
    bias: np.ndarray
    gear: np.ndarray
    control_range: np.ndarray | None
    force_range: np.ndarray | None
    is_passive: bool


@dataclasses.dataclass(frozen=True, eq=False)
class EqualityRecord:
    """An equality constraint that is not one of a flex.

    Attributes:
        name: Its name, or None.
        number: Its number.
        kind: ``"connect"``, ``"weld"``, ``"joint"``, ``"tendon"``, ...
        active: Whether it holds at the start.
        bodies: Indices of the bodies that it connects, for ``"connect"`` and ``"weld"``.
        joint: Index of the joint that follows another; None for other kinds.
        guided: Whether it connects a body to one that is moved from outside (mocap).
    """

    name: str | None
    number: int
    kind: str
    active: bool
    bodies: tuple[int, ...]
    joint: int | None
    guided: bool


@dataclasses.dataclass(frozen=True, eq=False)
class PairRecord:
    """An explicit pair of geoms that touch.

    Attributes:
        geoms: Indices of the two geoms.
        friction: Coulomb coefficient [1].
    """

    geoms: tuple[int, int]
    friction: float


@dataclasses.dataclass(frozen=True, eq=False)
class Keyframe:
    """Joint coordinates, velocities and controls at one time.

    Attributes:
        name: Its name, or "".
        qpos: Coordinates, quaternions (w, x, y, z), shape (nq,).
        qvel: Velocities, shape (nv,).
        ctrl: Controls, shape (nu,); None for the pose of the file, which has no controls.
    """

    name: str
    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray | None


@dataclasses.dataclass(frozen=True, eq=False)
class RobotRecord:
    """A robot file.

    Attributes:
        path: Path of the file.
        name: Name of the robot.
        urdf: Whether it is URDF, rather than MJCF.
        gravity: Gravity [m/s^2], shape (3,).
        bodies: The bodies, the world first.
        joints: The joints.
        geoms: The geoms.
        meshes: Meshes of collision geoms by their indices.
        actuators: The actuators that are enabled.
        actuated: Whether the file has actuators, enabled or not.
        equalities: The equality constraints.
        mimics: Names of the joints of URDF that mimic others.
        pairs: The explicit pairs.
        excluded: Pairs of indices of bodies that the file excludes from contact.
        keyframes: The keyframes.
        pose: The pose of the file.
        has_contact: Whether contact is enabled.
        filters_parents: Whether bodies that a joint connects do not touch.
        mended: Changes that make the file readable, a line each.
        unsupported: Parts that are left out, a line each.
        said: Warnings of MuJoCo.
    """

    path: Path
    name: str
    urdf: bool
    gravity: np.ndarray
    bodies: tuple[BodyRecord, ...]
    joints: tuple[JointRecord, ...]
    geoms: tuple[GeomRecord, ...]
    meshes: dict[int, MeshRecord]
    actuators: tuple[ActuatorRecord, ...]
    actuated: bool
    equalities: tuple[EqualityRecord, ...]
    mimics: tuple[str, ...]
    pairs: tuple[PairRecord, ...]
    excluded: frozenset[tuple[int, int]]
    keyframes: tuple[Keyframe, ...]
    pose: Keyframe
    has_contact: bool
    filters_parents: bool
    mended: tuple[str, ...]
    unsupported: tuple[str, ...]
    said: tuple[str, ...]
