"""Content of a robot file as plain records with unique names, frames as matrices, and kinds as words.

`warpbots.robots.model_reader` fills the records once; all later code translates the records into a scene. Indices are
the same as in MuJoCo; the first body is the world. Units are SI, angles are in rad.
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
    """A body of a robot file.

    Attributes:
        name: Name of the body.
        parent: Index of the parent body.
        root: Index of the root of the tree that contains the body; the root is attached to the world.
        weld: Index of the body to which this body is rigidly fixed (possibly itself), 0 for the world.
        joints: Indices of the joints of the body, in the order in which they move the body.
        position: Origin of the body in the frame of its parent [m], shape (3,).
        quaternion: Orientation of the body in the frame of its parent, as (w, x, y, z), shape (4,).
        rotation: The same orientation as a matrix, with the axes of the body as columns, shape (3, 3).
        mass: Mass of the body [kg].
        center: Centre of mass in the frame of the body [m], shape (3,).
        moments: Moments of inertia about the centre of mass, in the axes of the body [kg m^2], shape (3, 3).
        weighs: Whether the body has a mass, or moments of inertia.
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
    """A joint of a robot file.

    Attributes:
        name: Name of the joint.
        kind: Kind of the joint: ``"free"``, ``"ball"``, ``"slide"`` or ``"hinge"``.
        coordinate: Index of the first coordinate of the joint among all joint coordinates.
        velocity: Index of the first velocity of the joint among all joint velocities.
        position: Centre of the joint in the frame of its body [m], shape (3,).
        axis: Axis of the joint in the frame of its body, shape (3,).
        zero: First coordinate of the joint in the pose of the file [rad or m].
        neutral: Coordinates at which the spring of the joint is at rest [rad or m], quaternions (w, x, y, z), shape
            (n,).
        stiffness: Stiffness of the spring of the joint [N m/rad or N/m].
        damping: Damping coefficient for each velocity of the joint [N m s/rad or N s/m], shape (n,).
        armature: Added inertia for each velocity of the joint [kg m^2 or kg], shape (n,).
        range: Lower and upper limit of the joint [rad or m], shape (2,); None if the joint is not limited.
        solref: Time constant [s] and damping ratio [1] of the joint limit, or minus the stiffness and minus the damping
            of the limit per unit of inertia.
        impedance: Impedance of the joint limit at a large violation [1].
        mobility: Inverse of the effective inertia for the first velocity of the joint [1/kg or 1/(kg m^2)].
        effort: Lower and upper limit of the force of all actuators of the joint together [N m or N], shape (2,); None
            if this force is not limited.
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
    effort: np.ndarray | None


@dataclasses.dataclass(frozen=True, eq=False)
class GeomRecord:
    """A geom of a body; a geom with ``contype`` and ``conaffinity`` 0 is only visual.

    Attributes:
        name: Name of the geom, or ``"geom <index>"`` if it has no name.
        kind: Kind of the geom: ``"sphere"``, ``"box"``, ``"mesh"``, ...
        body: Index of the body to which the geom belongs.
        position: Origin of the geom in the frame of its body [m], shape (3,).
        rotation: Axes of the geom in the frame of its body, as columns, shape (3, 3).
        size: Radii and half lengths of the geom, as MuJoCo defines them for its kind [m], shape (3,).
        radius: Radius of a sphere around the origin of the geom that contains the geom [m].
        mesh: Index of the mesh of the geom, -1 if it has no mesh.
        contype: Bits that MuJoCo compares with the `conaffinity` of another geom.
        conaffinity: Bits that MuJoCo compares with the `contype` of another geom.
        friction: Coulomb coefficient [1].
        frictionless: Whether the geom has condim 1: no friction, unless the other geom has a higher condim.
        priority: Priority of the geom in a contact; the friction of the geom with the higher priority is used.
        color: Red, green and blue as in the file, where [0, 1] is usual; None if the file gives no colour.
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
    color: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True, eq=False)
class MeshRecord:
    """A mesh of a robot file.

    Attributes:
        name: Name of the mesh.
        vertices: Vertices of the mesh [m], or only those of its convex hull if the file limits their number
            (``maxhullvert``), shape (n, 3).
    """

    name: str
    vertices: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class ActuatorRecord:
    """An actuator of a robot file.

    Attributes:
        name: Name of the actuator, or ``"actuator <index>"`` if it has no name.
        index: Index of the actuator, which is also the index of its control.
        drives: Kind of the target that the actuator drives: ``"joint"``, ``"jointinparent"``, ``"tendon"``, ...
        target: Index of the target among all targets of its kind.
        dynamics: Kind of the internal dynamics of the actuator; ``"none"`` if it has no dynamics.
        gain_kind: Kind of the gain of the actuator, as MuJoCo names it.
        bias_kind: Kind of the bias of the actuator, as MuJoCo names it.
        gain: Parameters of the gain, shape (n,).
        bias: Parameters of the bias, shape (n,).
        gear: Generalised force on each velocity of the driven joint, per unit of force of the actuator, shape (6,).
        control_range: Lower and upper limit of the control, shape (2,); None if the control is not limited.
        force_range: Lower and upper limit of the force of the actuator, shape (2,); None if the force is not limited.
        is_passive: Whether the actuator itself has a damping or an armature, in addition to the joint.
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
    """An equality constraint of a robot file, other than the equality constraints of flexes.

    Attributes:
        name: Name of the constraint, or None.
        number: Index of the constraint.
        kind: Kind of the constraint: ``"connect"``, ``"weld"``, ``"joint"``, ``"tendon"``, ...
        active: Whether the constraint is active at the start.
        bodies: Indices of the bodies that the constraint connects, for ``"connect"`` and ``"weld"``.
        joint: For ``"joint"``, the index of the joint that follows another joint; None for other kinds.
        guided: Whether the constraint ties a body to a mocap body, which the user moves.
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
    """A pair of geoms that the file declares to touch.

    Attributes:
        geoms: Indices of the two geoms.
        friction: Coulomb coefficient [1].
    """

    geoms: tuple[int, int]
    friction: float


@dataclasses.dataclass(frozen=True, eq=False)
class Keyframe:
    """Joint coordinates, joint velocities and controls at one instant.

    Attributes:
        name: Name of the keyframe, or "".
        qpos: Joint coordinates, with quaternions (w, x, y, z), shape (nq,).
        qvel: Joint velocities, shape (nv,).
        ctrl: Controls, shape (nu,); None for the pose of the file, which has no controls.
    """

    name: str
    qpos: np.ndarray
    qvel: np.ndarray
    ctrl: np.ndarray | None


@dataclasses.dataclass(frozen=True, eq=False)
class RobotRecord:
    """The content of a robot file.

    Attributes:
        path: Path of the file.
        name: Name of the robot.
        urdf: Whether the file is URDF; otherwise it is MJCF.
        gravity: Gravity [m/s^2], shape (3,).
        bodies: The bodies, the world first.
        joints: The joints.
        geoms: The geoms.
        meshes: Meshes of collision geoms by their indices.
        actuators: The actuators that are enabled.
        actuated: Whether the file has actuators, whether or not they are enabled.
        equalities: The equality constraints.
        mimics: Names of the joints of URDF that mimic others.
        pairs: The pairs of geoms that the file declares to touch.
        excluded: Pairs of indices of bodies that the file excludes from contact.
        keyframes: The keyframes.
        pose: The default pose of the file, as a keyframe without controls.
        has_contact: Whether contact is enabled.
        filters_parents: Whether contact between a body and its parent in the tree is disabled, as by default in MuJoCo.
        mended: Changes that were necessary to make the file readable, one line for each.
        unsupported: Parts of the file that are left out, one line for each.
        said: Warnings that MuJoCo gave while it read the file.
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
