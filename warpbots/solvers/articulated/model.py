"""Model of the articulated solver (`ArticulatedModel`), constant in a step, and its state (`ArticulatedState`)."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids
from warpbots.numerics import struct_of
from warpbots.numerics.parameters import ANY, NOT_NEGATIVE, Parameter, parameter, parameters_of, parametric, shared
from warpbots.scene import Scene, Servo
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
from warpbots.solvers.articulated.surface_motion import WORLD
from warpbots.solvers.articulated.workspace import ArticulatedWorkspace
from warpbots.solvers.motion_parameters import MotionParameters, with_motions
from warpbots.solvers.moving_frames import MovingFrames
from warpbots.solvers.parameters import GRAVITY
from warpbots.solvers.places import Places

__all__ = ["NEVER", "ArticulatedModel", "ArticulatedState"]

NEVER = 1e18
"""A limit that no coordinate reaches [rad or m]."""


@dataclasses.dataclass(frozen=True, eq=False)
class ArticulatedState(ArrayFields[Array]):
    """State of the bodies, in double precision.

    Attributes:
        q: Joint coordinates in the order of `Robot.coordinates` [rad, m, or quaternions (x, y, z, w)], shape
            (worlds, n_coordinates).
        qd: Joint velocities in the order of `Robot.velocities` [rad/s or m/s], shape (worlds, n_velocities).
        time: Time since the start [s], shape (worlds,), or (worlds, 0) if no obstacle moves.
        travel: Coordinates of the drives of obstacles [m or rad], shape (worlds, n_drives).
        last_step: Length of the step that ended in this state, 0 at the start [s], shape (worlds,), or (worlds, 0) if
            no obstacle moves. Together with the time, it gives the velocities of obstacles for readings.
        lost: 1 for a world that cannot go on; a simulation keeps the state that this world had before the control
            interval [1], shape (worlds,).
    """

    q: Array
    qd: Array
    time: Array
    travel: Array
    last_step: Array
    lost: Array

    def mapped(self, make: Callable[[Array], Other]) -> "ArticulatedState[Other]":
        """A copy with `make` applied to each field."""
        return ArticulatedState(*map(make, self.fields()))


@parametric
class ArticulatedModel(MotionParameters, ArrayModel):
    """A scene as arrays. A changed copy is made with `dataclasses.replace`.

    Joint k carries body k. Arrays over bodies or joints are in the order of `Scene.rigid`, even if kernels traverse the
    tree in another order.

    Attributes:
        scene: The scene that was built.
        worlds: Number of independent copies.
        device: Device of all arrays.
        robot: Names of joints and bodies and their indices in the arrays, on the host.
        rounded: Whether any contact point has a ball around it.
        tree: Topology of the joints, as a Warp struct.
        contact_topology: Points and solids that may be in contact, as a Warp struct whose arrays of parameters are
            null.
        solids: Solids, as a Warp struct, with the samples at the parameters of the scene.
        frames: Frames of obstacles that move.
        workspace: Arrays that every step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    robot: ArticulatedRobot
    joint_position: wp.array = parameter(
        "m", ANY, "joint", "origin of the joint's frame in that of the parent's joint", axes="n_bodies", entry="vector"
    )
    joint_rotation: wp.array = parameter(
        "1", ANY, "joint", "quaternion (x, y, z, w) of the joint's frame, of any length", axes="n_bodies",
        entry="quaternion",
    )  # fmt: skip
    body_position: wp.array = parameter(
        "m", ANY, "body", "origin of the body's frame in that of its joint", entry="vector"
    )
    body_rotation: wp.array = parameter(
        "1", ANY, "body", "quaternion (x, y, z, w) of the body's frame, of any length", entry="quaternion"
    )
    mass: wp.array = parameter(
        "kg", NOT_NEGATIVE, "body", "mass", meaning="mass; `inertia` stays as it is unless it is replaced as well"
    )
    center_of_mass: wp.array = parameter("m", ANY, "body", "centre of mass in the body's frame", entry="vector")
    inertia: wp.array = parameter(
        "kg m^2", ANY, "body", "moments of inertia about it; only the symmetric part counts", entry="inertia",
        meaning="moments of inertia about the centre of mass; only the symmetric part counts",
    )  # fmt: skip
    gravity: wp.array = shared(GRAVITY)
    joint_stiffness: wp.array = parameter(
        "N m/rad, N/m", NOT_NEGATIVE, "velocity", "stiffness of the spring", meaning="stiffness of the joint spring"
    )
    joint_neutral: wp.array = parameter("rad, m", ANY, "velocity", "coordinate at which the spring is at rest")
    joint_damping: wp.array = parameter(
        "N m s/rad, N s/m", NOT_NEGATIVE, "velocity", "damping", meaning="damping of the joint"
    )
    body_force: wp.array = parameter(
        "N", ANY, "body", "external force", entry="vector",
        meaning="external force on the centre of mass, in world axes; 0 unless it is replaced",
    )  # fmt: skip
    body_torque: wp.array = parameter(
        "N m", ANY, "body", "external torque", entry="vector",
        meaning="external torque about the centre of mass, in world axes; 0 unless it is replaced",
    )  # fmt: skip
    armature: wp.array = parameter("kg m^2, kg", NOT_NEGATIVE, "velocity", "inertia of the rotor")
    joint_lower: wp.array = parameter(
        "rad, m", ANY, "velocity", "lower limit", meaning="lower limit; -`NEVER` for none"
    )
    joint_upper: wp.array = parameter("rad, m", ANY, "velocity", "upper limit", meaning="upper limit; `NEVER` for none")
    limit_stiffness: wp.array = parameter("N m/rad, N/m", NOT_NEGATIVE, "velocity", "stiffness of limits")
    limit_damping: wp.array = parameter("N m s/rad, N s/m", NOT_NEGATIVE, "velocity", "damping of limits")
    motor_torque: wp.array = parameter(
        "N m, N", ANY, "motor", "torque or force at u = 1", axes="n_motors",
        meaning="torque or force at u = 1; a negative one reverses the motor",
    )  # fmt: skip
    motor_stiffness: wp.array = parameter("N m/rad, N/m", NOT_NEGATIVE, "motor", "proportional gain", axes="n_motors")
    motor_damping: wp.array = parameter("N m s/rad, N s/m", NOT_NEGATIVE, "motor", "derivative gain", axes="n_motors")
    motor_target: wp.array = parameter("rad, m", ANY, "motor", "target at u = 0", axes="n_motors")
    motor_reach: wp.array = parameter(
        "rad, m", ANY, "motor", "how far u = 1 moves the target", axes="n_motors",
        meaning="how far u = 1 moves the target; a negative one reverses the motor",
    )  # fmt: skip
    contact_point: wp.array = parameter(
        "m", ANY, "point", "contact points in the frames of their bodies", entry="vector"
    )
    contact_radius: wp.array = parameter(
        "m", ANY, "point", "radii of the balls around contact points",
        meaning="radii of the balls around contact points; 0 for points on a surface, negative outside of it",
    )  # fmt: skip
    contact_area: wp.array = parameter("m^2", NOT_NEGATIVE, "point", "areas of contact points")
    contact_stiffness: wp.array = parameter("Pa/m", NOT_NEGATIVE, "contact", "pressure per depth")
    contact_damping: wp.array = parameter("Pa s/m^2", NOT_NEGATIVE, "contact", "damping per depth")
    contact_restitution: wp.array = parameter(
        "1", (0.0, math.nextafter(1.0, 2.0), True), "contact", "coefficient of restitution, of laws that have one",
        meaning="coefficient of restitution; 0 for a law without one",
    )  # fmt: skip
    contact_friction: wp.array = parameter("1", NOT_NEGATIVE, "contact", "Coulomb coefficient")
    contact_viscosity: wp.array = parameter("Pa s/m", NOT_NEGATIVE, "contact", "shear per speed within the cone")
    contact_scale: wp.array = parameter("1", NOT_NEGATIVE, "world", "factor of all contact forces", axes="")
    solid_distance: wp.array = parameter(
        "m", ANY, "sample", "coefficients of splines through distances to sampled solids",
        meaning="coefficients of quadratic B-splines through signed distances to solids without a closed form",
    )  # fmt: skip
    rounded: bool
    tree: JointTree
    contact_topology: ContactLaws
    solids: Solids
    frames: MovingFrames
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
        return any(law.impact == "instant" for law in self.scene.laws)

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

    def still_state(self, q: wp.array, qd: wp.array, lost: wp.array) -> ArticulatedState[wp.array]:
        """State of a model without obstacles that move, with given arrays of coordinates and velocities."""
        nothing = self.workspace.nothing
        return ArticulatedState(q, qd, nothing, nothing, nothing, lost)

    def places(self, per: str) -> Places | None:
        """Places of elements of the kind `per` at zero coordinates; None if elements of this kind have no place.

        Bodies, joints, velocities, motors, contact points and samples have places.
        """
        if per == "sample":
            return sample_places(self.scene, self.solids)
        return robot_places(self.scene, self.robot, self.contact_point.numpy()[0], per)

    @functools.cached_property
    def may_close(self) -> bool:
        """Whether an obstacle that moves may meet another one at a body."""
        solids, pairs = self.solids.body.numpy(), self.contact_topology.pair_solid.numpy()
        return bool(self.frames) and bool((solids < WORLD).any()) and np.unique(pairs[solids[pairs] < 0]).size > 1

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
        servos = [isinstance(motor, Servo) for motor in self.robot.motors.values()]
        if not any(servos):
            absent |= {"motor_stiffness", "motor_damping", "motor_target", "motor_reach"}
        if all(servos):
            absent |= {"motor_torque"}
        if not self.contact_topology.pairs:
            absent |= set(_CONTACT)
        if not self.rounded:
            absent |= {"contact_radius"}
        if not any(c.restitution is not None for c in self.scene.laws):
            absent |= {"contact_restitution"}
        if not self.solid_distance.size:
            absent |= {"solid_distance"}
        absent |= self.frames.absent
        return {name: spec for name, spec in parameters_of(ArticulatedModel).items() if name not in absent}

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with joints, motors, bodies and laws of contact from `values`."""
        robot = self.robot if "center_of_mass" in values else _without_frames(self.robot, self.scene)
        scene = with_motions(with_motors(super().recorded(values), values), values)
        scene = with_joints(scene, robot, values, NEVER)
        scene = with_contact_laws(with_bodies(scene, self.robot, values), values)
        if not values.keys() & set(FRAMES):
            return scene
        robot = dataclasses.replace(self.robot, joints=tuple(joint_of(b, scene) for b in scene.rigid))
        return with_frames(scene, robot, {n: self.parameter(n).numpy()[0] for n in FRAMES} | dict(values))

    def parameter_arrays(self) -> list[wp.array]:
        """All parameters, in the order of `parameters_of`."""
        return [getattr(self, name) for name in parameters_of(ArticulatedModel)]


def _without_frames(robot: ArticulatedRobot, scene: Scene) -> ArticulatedRobot:
    """Copy of `robot` with the joints of `scene`, in which free joints without a frame have the default frame."""
    given = {joint.name: joint for joint in scene.joints}
    return dataclasses.replace(robot, joints=tuple(given.get(j.name, j) for j in robot.joints))


_CONTACT = tuple(name for name in parameters_of(ArticulatedModel) if name.startswith("contact_"))
_OTHERS = ("contact_", "solid_", "motion_", "drive_", "surface_")
_DESIGN = tuple(name for name in parameters_of(ArticulatedModel) if not name.startswith(_OTHERS))
