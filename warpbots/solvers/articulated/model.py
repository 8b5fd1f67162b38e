"""Model of the articulated solver (`ArticulatedModel`), constant in a step, and its state (`ArticulatedState`)."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids
from warpbots.numerics import struct_of
from warpbots.scene import Scene
from warpbots.solvers.array_fields import Array, ArrayFields, Other
from warpbots.solvers.array_model import ArrayModel
from warpbots.solvers.articulated.recorded import (
    FRAMES,
    with_bodies,
    with_contact_laws,
    with_frames,
    with_joints,
    with_motors,
)
from warpbots.solvers.articulated.robot import ArticulatedRobot, joint_of
from warpbots.solvers.articulated.robot_arrays import ContactLaws, JointTree, ModelParameters, RobotArrays
from warpbots.solvers.articulated.robot_places import robot_places, sample_places
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.articulated.workspace import ArticulatedWorkspace
from warpbots.solvers.places import Places
from warpbots.solvers.solver import Parameter

__all__ = ["NEVER", "PARAMETERS", "ArticulatedModel", "ArticulatedState"]

NEVER = 1e18
"""A limit that no coordinate reaches [rad or m]."""

_ANY = (-float("inf"), float("inf"))
_POSITIVE = (0.0, float("inf"))

# fmt: off
PARAMETERS = {
    "joint_position": Parameter("m", *_ANY, "joint", "origin of the joint's frame in that of the parent's joint"),
    "joint_rotation": Parameter("1", *_ANY, "joint", "quaternion (x, y, z, w) of the joint's frame, of any length"),
    "body_position": Parameter("m", *_ANY, "body", "origin of the body's frame in that of its joint"),
    "body_rotation": Parameter("1", *_ANY, "body", "quaternion (x, y, z, w) of the body's frame, of any length"),
    "mass": Parameter("kg", *_POSITIVE, "body", "mass", inclusive=True),
    "center_of_mass": Parameter("m", *_ANY, "body", "centre of mass in the body's frame"),
    "inertia": Parameter("kg m^2", *_ANY, "body", "moments of inertia about it; only the symmetric part counts"),
    "gravity": Parameter("m/s^2", *_ANY, "component", "gravitational acceleration"),
    "joint_stiffness": Parameter("N m/rad, N/m", *_POSITIVE, "velocity", "stiffness of the spring", inclusive=True),
    "joint_neutral": Parameter("rad, m", *_ANY, "velocity", "coordinate at which the spring is at rest"),
    "joint_damping": Parameter("N m s/rad, N s/m", *_POSITIVE, "velocity", "damping", inclusive=True),
    "armature": Parameter("kg m^2, kg", *_POSITIVE, "velocity", "inertia of the rotor", inclusive=True),
    "joint_lower": Parameter("rad, m", *_ANY, "velocity", "lower limit"),
    "joint_upper": Parameter("rad, m", *_ANY, "velocity", "upper limit"),
    "limit_stiffness": Parameter("N m/rad, N/m", *_POSITIVE, "velocity", "stiffness of limits", inclusive=True),
    "limit_damping": Parameter("N m s/rad, N s/m", *_POSITIVE, "velocity", "damping of limits", inclusive=True),
    "motor_torque": Parameter("N m, N", *_ANY, "motor", "torque or force at u = 1"),
    "motor_stiffness": Parameter("N m/rad, N/m", *_POSITIVE, "motor", "proportional gain", inclusive=True),
    "motor_damping": Parameter("N m s/rad, N s/m", *_POSITIVE, "motor", "derivative gain", inclusive=True),
    "motor_target": Parameter("rad, m", *_ANY, "motor", "target at u = 0"),
    "motor_reach": Parameter("rad, m", *_ANY, "motor", "how far u = 1 moves the target"),
    "contact_point": Parameter("m", *_ANY, "point", "contact points in the frames of their bodies"),
    "contact_radius": Parameter("m", *_ANY, "point", "radii of the balls around contact points"),
    "contact_area": Parameter("m^2", *_POSITIVE, "point", "areas of contact points", inclusive=True),
    "contact_stiffness": Parameter("Pa/m", *_POSITIVE, "contact", "pressure per depth", inclusive=True),
    "contact_damping": Parameter("Pa s/m^2", *_POSITIVE, "contact", "damping per depth", inclusive=True),
    "contact_restitution": Parameter(
        "1", 0.0, math.nextafter(1.0, 2.0), "contact", "coefficient of restitution, of laws that have one",
        inclusive=True,
    ),
    "contact_friction": Parameter("1", *_POSITIVE, "contact", "Coulomb coefficient", inclusive=True),
    "contact_viscosity": Parameter("Pa s/m", *_POSITIVE, "contact", "shear per speed within the cone", inclusive=True),
    "contact_scale": Parameter("1", *_POSITIVE, "world", "factor of all contact forces", inclusive=True),
    "solid_distance": Parameter("m", *_ANY, "sample", "coefficients of splines through distances to sampled solids"),
}
# fmt: on
"""Fields of the model that can be differentiated."""

_DESIGN = (
    "joint_position", "joint_rotation", "body_position", "body_rotation", "mass", "center_of_mass", "inertia",
    "gravity", "joint_stiffness", "joint_neutral", "joint_damping", "armature", "joint_lower", "joint_upper",
    "limit_stiffness", "limit_damping", "motor_torque", "motor_stiffness", "motor_damping", "motor_target",
    "motor_reach",
)  # fmt: skip
_CONTACT = (
    "contact_point", "contact_radius", "contact_area", "contact_stiffness", "contact_damping", "contact_restitution",
    "contact_friction", "contact_viscosity", "contact_scale",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class ArticulatedState(ArrayFields[Array]):
    """State of the bodies, in double precision.

    Attributes:
        q: Joint coordinates in the order of `Robot.coordinates` [rad, m, or quaternions (x, y, z, w)], shape
            (worlds, n_coordinates).
        qd: Joint velocities in the order of `Robot.velocities` [rad/s or m/s], shape (worlds, n_velocities).
        lost: 1 for a world that cannot go on; a simulation keeps the state that this world had before the control
            interval [1], shape (worlds,).
    """

    q: Array
    qd: Array
    lost: Array

    def mapped(self, make: Callable[[Array], Other]) -> "ArticulatedState[Other]":
        """A copy with `make` applied to each field."""
        return ArticulatedState(*map(make, self.fields()))


@dataclasses.dataclass(frozen=True)
class ArticulatedModel(ArrayModel):
    """A scene as arrays. A changed copy is made with `dataclasses.replace`.

    Joint k carries body k. Arrays over bodies or joints are in the order of `Scene.rigid`, even if kernels traverse the
    tree in another order.

    Attributes:
        scene: The scene that was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        robot: Names of joints and bodies and their indices in the arrays, on the host.
        joint_position: Origin of the frame of each joint, in the frame that moves with the parent joint [m], shape
            (worlds, n_bodies), vector.
        joint_rotation: Orientation of the frame of each joint, in the frame that moves with the parent joint, as
            quaternions (x, y, z, w) [1], shape (worlds, n_bodies), quaternion.
        body_position: Origin of the frame of each body, in the frame that moves with its joint [m], shape (worlds,
            n_bodies), vector.
        body_rotation: Orientation of the frame of each body, in the frame that moves with its joint, as quaternions (x,
            y, z, w) [1], shape (worlds, n_bodies), quaternion.
        mass: Masses [kg], shape (worlds, n_bodies).
        center_of_mass: Centres of mass in the bodies' frames [m], shape (worlds, n_bodies), vector.
        inertia: Moments of inertia about the centres of mass [kg m^2], shape (worlds, n_bodies), matrix.
        gravity: Gravitational acceleration [m/s^2], shape (worlds,), vector.
        joint_stiffness: Stiffness of joint springs [N m/rad or N/m], shape (worlds, n_velocities).
        joint_neutral: Coordinates at which joint springs exert no force [rad or m], shape (worlds, n_velocities).
        joint_damping: Damping of joints [N m s/rad or N s/m], shape (worlds, n_velocities).
        armature: Inertia of the rotors of motors [kg m^2 or kg], shape (worlds, n_velocities).
        joint_lower: Lower limits [rad or m], -`NEVER` for none, shape (worlds, n_velocities).
        joint_upper: Upper limits [rad or m], `NEVER` for none, shape (worlds, n_velocities).
        limit_stiffness: Stiffness of limits [N m/rad or N/m], shape (worlds, n_velocities).
        limit_damping: Damping of limits [N m s/rad or N s/m], shape (worlds, n_velocities).
        motor_torque: Torques or forces of motors at u = 1 [N m or N], shape (worlds, channels).
        motor_stiffness: Proportional gains of servos [N m/rad or N/m], shape (worlds, channels).
        motor_damping: Derivative gains of servos [N m s/rad or N s/m], shape (worlds, channels).
        motor_target: Target coordinates of servos at u = 0 [rad or m], shape (worlds, channels).
        motor_reach: Displacement of the target coordinates of servos at u = 1 [rad or m], shape (worlds, channels).
        contact_point: Contact points in the frames of their bodies [m], shape (worlds, n_points), vector.
        contact_radius: Radii of the balls around contact points [m], 0 for points on a surface, shape (worlds,
            n_points).
        contact_area: Areas of contact points [m^2], shape (worlds, n_points).
        contact_stiffness: Pressure per depth [Pa/m], shape (worlds, n_contacts).
        contact_damping: Damping per depth [Pa s/m^2], shape (worlds, n_contacts).
        contact_restitution: Coefficients of restitution, 0 for a law without one [1], shape (worlds, n_contacts).
        contact_friction: Coulomb coefficients [1], shape (worlds, n_contacts).
        contact_viscosity: Shear stress per sliding speed, inside the friction cone [Pa s/m], shape (worlds,
            n_contacts).
        contact_scale: Factor by which all contact forces are multiplied [1], shape (worlds,).
        solid_distance: Coefficients of the quadratic B-splines through the signed distances to solids without a closed
            form at their samples [m], shape (worlds, n_samples).
        rounded: Whether any contact point has a ball around it.
        tree: Topology of the joints, as a Warp struct.
        contact_topology: Points and solids that may be in contact, as a Warp struct whose arrays of parameters are
            null.
        solids: Solids, as a Warp struct, with the samples at the parameters of the scene.
        workspace: Arrays that every step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    robot: ArticulatedRobot
    joint_position: wp.array
    joint_rotation: wp.array
    body_position: wp.array
    body_rotation: wp.array
    mass: wp.array
    center_of_mass: wp.array
    inertia: wp.array
    gravity: wp.array
    joint_stiffness: wp.array
    joint_neutral: wp.array
    joint_damping: wp.array
    armature: wp.array
    joint_lower: wp.array
    joint_upper: wp.array
    limit_stiffness: wp.array
    limit_damping: wp.array
    motor_torque: wp.array
    motor_stiffness: wp.array
    motor_damping: wp.array
    motor_target: wp.array
    motor_reach: wp.array
    contact_point: wp.array
    contact_radius: wp.array
    contact_area: wp.array
    contact_stiffness: wp.array
    contact_damping: wp.array
    contact_restitution: wp.array
    contact_friction: wp.array
    contact_viscosity: wp.array
    contact_scale: wp.array
    solid_distance: wp.array
    rounded: bool
    tree: JointTree
    contact_topology: ContactLaws
    solids: Solids
    workspace: ArticulatedWorkspace

    scalar = scalar
    """Warp scalar of control signals."""

    matter = None
    """There are no soft bodies."""

    def summary(self) -> str:
        """Text with the number of bodies, degrees of freedom and contact points."""
        bodies, points = len(self.robot.bodies), self.contact_topology.points
        return f"{bodies} rigid bodies, {self.robot.freedom} degrees of freedom, {points} contact points"

    @functools.cached_property
    def impacts(self) -> bool:
        """Whether any law of contact has instant impacts."""
        return any(law.impact == "instant" for law in self.scene.contacts)

    @functools.cached_property
    def design(self) -> ModelParameters:
        """Parameters of joints, bodies and motors as a Warp struct."""
        return struct_of(ModelParameters, [getattr(self, name) for name in _DESIGN])

    @functools.cached_property
    def contacts(self) -> ContactLaws:
        """Contact points and laws, as a Warp struct."""
        contacts = ContactLaws()
        for name in ContactLaws.vars:
            setattr(contacts, name, getattr(self.contact_topology, name))
        for name in _CONTACT:
            setattr(contacts, name.removeprefix("contact_"), getattr(self, name).flatten())
        return contacts

    @functools.cached_property
    def robot_arrays(self) -> RobotArrays:
        """All data that is constant in a step, as a Warp struct."""
        arrays, solids = RobotArrays(), Solids()
        for name in Solids.vars:
            setattr(solids, name, getattr(self.solids, name))
        solids.sample = self.solid_distance
        arrays.tree, arrays.design, arrays.contacts, arrays.solids = self.tree, self.design, self.contacts, solids
        return arrays

    def places(self, per: str) -> Places | None:
        """Places of elements of the kind `per` at zero coordinates; None if elements of this kind have no place.

        Bodies, joints, velocities, motors, contact points and samples have places.
        """
        if per == "sample":
            return sample_places(self.scene, self.solids)
        return robot_places(self.scene, self.robot, self.contact_point.numpy()[0], per)

    def parameters(self) -> dict[str, Parameter]:
        """Parameters that can be differentiated: field name -> unit, range and meaning.

        Parameters of springs, limits, motors, contacts, balls, restitution and samples are left out if the scene has
        none of these.
        """
        absent = set()
        if not self.robot.freedom:
            absent |= {"joint_stiffness", "joint_damping", "armature"}
        if not self.robot.sprung:
            absent |= {"joint_neutral"}
        if not self.robot.limited:
            absent |= {"joint_lower", "joint_upper", "limit_stiffness", "limit_damping"}
        servos, torques = self.robot.servos.any(), not self.robot.servos.all()
        if not servos:
            absent |= {"motor_stiffness", "motor_damping", "motor_target", "motor_reach"}
        if not (self.channels and torques):
            absent |= {"motor_torque"}
        if not self.contact_topology.pairs:
            absent |= set(_CONTACT)
        if not self.rounded:
            absent |= {"contact_radius"}
        if not any(c.restitution is not None for c in self.scene.contacts):
            absent |= {"contact_restitution"}
        if not self.solid_distance.size:
            absent |= {"solid_distance"}
        return {name: spec for name, spec in PARAMETERS.items() if name not in absent}

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with joints, motors, bodies and laws of contact from `values`."""
        robot = self.robot if "center_of_mass" in values else _without_frames(self.robot, self.scene)
        scene = with_joints(with_motors(super().recorded(values), values), robot, values, NEVER)
        scene = with_contact_laws(with_bodies(scene, self.robot, values), values)
        if not values.keys() & set(FRAMES):
            return scene
        robot = dataclasses.replace(self.robot, joints=tuple(joint_of(b, scene) for b in scene.rigid))
        return with_frames(scene, robot, {n: self.parameter(n).numpy()[0] for n in FRAMES} | dict(values))

    def parameter_arrays(self) -> list[wp.array]:
        """All parameters, in the order of `PARAMETERS`."""
        return [getattr(self, name) for name in PARAMETERS]


def _without_frames(robot: ArticulatedRobot, scene: Scene) -> ArticulatedRobot:
    """`robot` with its joints as `scene` gives them: free joints without a frame keep the default frame."""
    given = {joint.name: joint for joint in scene.joints}
    return dataclasses.replace(robot, joints=tuple(given.get(j.name, j) for j in robot.joints))
