"""The scene: everything that is simulated, as plain data in SI units."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from warpbots.scene.actuators import Actuator, Motor
from warpbots.scene.attachment import Attachment
from warpbots.scene.body import SoftBody
from warpbots.scene.boundary_conditions import Constraint, Load
from warpbots.scene.contact_law import Contact
from warpbots.scene.field import Field
from warpbots.scene.field_types import Pair
from warpbots.scene.fluid import Fluid
from warpbots.scene.joint import Joint
from warpbots.scene.joint_motors import Servo, Torque
from warpbots.scene.mechanism_checks import contact_faults, drive_faults, idle_contact_faults, joint_faults
from warpbots.scene.motion_checks import motion_faults
from warpbots.scene.obstacle import Obstacle
from warpbots.scene.palette import colors_of
from warpbots.scene.plane_checks import plane_faults
from warpbots.scene.prescribed_motion import VelocityDrive
from warpbots.scene.record import SceneError, record, refuse
from warpbots.scene.rigid_body import RigidBody
from warpbots.scene.shapes import dimension

__all__ = ["Scene", "Task"]

_PARTS = ("bodies", "actuators", "obstacles", "constraints", "loads", "attachments", "joints", "contacts", "fields")


@record
class Task:
    """Default settings for running a scene, for simulations and for the command line.

    Attributes:
        cell_size: Size of the cells of the soft bodies [m]; None for a size that follows from the shapes.
        control_interval: Time during which a control signal is constant [s].
        substeps: Number of solver steps in each control interval.
        steps: Number of control intervals in a run.
        direction: Direction in which the robot should travel, shape (dim,).
        clusters: Number of clusters of matter that the controller observes.
        clock: Period of the clock signal that the controller observes [s]; None for no clock.
    """

    cell_size: float | None
    control_interval: float
    substeps: int
    steps: int
    direction: Sequence[float]
    clusters: int = 7
    clock: float | None = None

    def __post_init__(self):
        for field in ("cell_size", "control_interval", "substeps", "steps", "clusters", "clock"):
            value = getattr(self, field)
            if value is not None and value <= 0:
                raise SceneError(f"Task: {field} must be positive, got {value:g}")


@record
class Scene:
    """A scene: bodies, their actuators and their surroundings.

    Attributes:
        bodies: Bodies, soft or rigid; all shapes of a scene are 2D or all are 3D. A scene that consists only of
            obstacles, such as a room that was read from a file, has no bodies; its obstacles are put around a robot by
            ``dataclasses.replace(robot, obstacles=room.obstacles)``.
        actuators: Actuators; channel k of every control tensor drives actuator k.
        obstacles: Solids that nothing can push; they stay in place or move as prescribed.
        gravity: Gravitational acceleration [m/s^2], shape (dim,); None for 9.81 downwards (y up in 2D, z up in 3D).
        domain: Lower and upper corner of the space that matter may occupy [m]; None to let the solver choose one
            around the bodies.
        task: Default settings for running the scene, or None.
        name: Name of the scene.
        constraints: Constraints on regions.
        loads: Loads on regions.
        attachments: Attachments between soft bodies.
        joints: Joints of rigid bodies; a body that is not the child of a joint floats freely.
        contacts: Contact laws between bodies, and between bodies and obstacles. Rigid bodies touch one another and
            obstacles only where a law names both, so that ``()`` means that they touch nothing but soft bodies. None,
            the default, leaves the pairs to the solver: all pairs under `ProjectiveDynamics`, whose contact needs no
            law, and none under `Articulated` and `Coupled`. Soft bodies touch everything, with or without laws.
        fluid: The fluid around soft bodies, or None.
        fields: Parameters that no other record can hold, such as a stiffness that differs from element to element; see
            `warpbots.Simulation.scene_with`.
        source: Path of the file from which the scene was read; parts of this file that warpbots does not understand are
            preserved when the scene is written. Comparisons ignore `source`.
        text: Function that returns the text that `print` shows; `warpbots` sets a function that returns a short table.
            `repr` gives all data of a scene.
        mimebundle: Function that returns the content that a notebook shows; `warpbots` sets a function that returns a
            table with a picture.

    Raises:
        SceneError: Names are duplicate or do not exist, or parts have different dimensions; the message lists every
            fault.
    """

    text: ClassVar[Callable[["Scene"], str]] = staticmethod(repr)
    mimebundle: ClassVar[Callable[["Scene"], dict]] = staticmethod(lambda scene: {"text/plain": str(scene)})

    bodies: Sequence[SoftBody | RigidBody]
    actuators: Sequence[Actuator | Torque | Servo | VelocityDrive] = ()
    obstacles: Sequence[Obstacle] = ()
    gravity: Sequence[float] | None = None
    domain: Pair[Sequence[float]] | None = None
    task: Task | None = None
    name: str = "robot"
    constraints: Sequence[Constraint] = ()
    loads: Sequence[Load] = ()
    attachments: Sequence[Attachment] = ()
    joints: Sequence[Joint] = ()
    contacts: Sequence[Contact] | None = None
    fluid: Fluid | None = None
    fields: Sequence[Field] = ()
    source: str | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self):
        if not self.bodies and not self.obstacles:
            raise SceneError("Scene needs at least one body, got none, and no obstacles either")
        gravity = self.gravity if self.gravity is not None else -9.81 * np.eye(self.dim)[-1]
        object.__setattr__(self, "gravity", tuple(float(g) + 0.0 for g in gravity))
        self.validate()

    def __str__(self) -> str:
        return type(self).text(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        """Content that a notebook shows for the scene: a table and a picture (`warpbots.view`)."""
        return type(self).mimebundle(self)

    @property
    def dim(self) -> int:
        """Number of dimensions, 2 or 3."""
        shapes = (part.shape for part in (*self.bodies, *self.obstacles) if part.shape is not None)
        first = next(shapes, None)
        if first is None:  # rigid bodies without extent
            return 3 if self.gravity is None else len(self.gravity)
        return dimension(first)

    @property
    def soft(self) -> tuple[SoftBody, ...]:
        """The soft bodies."""
        return tuple(b for b in self.bodies if isinstance(b, SoftBody))

    @property
    def rigid(self) -> tuple[RigidBody, ...]:
        """The rigid bodies."""
        return tuple(b for b in self.bodies if isinstance(b, RigidBody))

    @property
    def colors(self) -> tuple[tuple[float, float, float], ...]:
        """Red, green and blue in [0, 1] of each of `bodies`, in all pictures and files.

        A body without a colour has one of a palette: soft bodies one after another in the order of the scene, rigid
        bodies one for each mechanism, which are all bodies that joints connect. The colours can be told apart with
        red-green and blue-yellow colour blindness.
        """
        return colors_of(self.bodies, self.joints)

    @property
    def laws(self) -> tuple[Contact, ...]:
        """The contact laws; empty if `contacts` is ``()`` or None."""
        return self.contacts or ()

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the bounding box of all bodies at rest [m], each of shape (dim,).

        For a scene without bodies, it is the bounding box of all obstacles, with an extent of 1 m in a direction in
        which the obstacles are unbounded.
        """
        boxes = [b.bounds if isinstance(b, RigidBody) else b.shape.bounds for b in self.bodies or self.obstacles]
        corners = zip(*((lower[: self.dim], upper[: self.dim]) for lower, upper in boxes), strict=True)
        lower, upper = np.min(next(corners), axis=0), np.max(next(corners), axis=0)
        if self.bodies:
            return lower, upper
        lower = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 1.0, -0.5))
        return lower, np.where(np.isfinite(upper), upper, lower + 1.0)

    def regions(self) -> dict[str, list[str]]:
        """Names of all regions, each with the names of the bodies that have this region."""
        found: dict[str, list[str]] = {}
        for body in self.soft:
            for region in body.regions:
                found.setdefault(region, []).append(body.name)
        return found

    def validate(self) -> None:
        """Check that all parts fit together.

        Raises:
            SceneError: Parts do not fit together; the message has one line for each fault.
        """
        soft = {b.name for b in self.soft}
        refuse(
            [
                *self._name_faults(), *self._dimension_faults(), *self._domain_faults(),
                *joint_faults(self.rigid, self.joints, soft), *drive_faults(self.actuators, self.joints, self.rigid),
                *contact_faults(self.rigid, self.obstacles, self.laws, soft),
                *motion_faults(self.obstacles, self.constraints, self.actuators, {b.name for b in self.bodies}),
            ]
        )  # fmt: skip
        # from here on, all names exist and joints form trees
        refuse(idle_contact_faults(self.rigid, self.joints, self.obstacles, self.laws, soft))

    def _name_faults(self) -> list[str]:
        faults = []
        for kind in _PARTS:
            for name, count in Counter(p.name for p in getattr(self, kind) or ()).items():
                if count > 1:
                    faults.append(f"Scene: {count} {kind} are named {name!r}; every name must be unique")
        regions = self.regions()
        for part in (*self.actuators, *self.constraints, *self.loads):
            for region in (value for name, value in vars(part).items() if name in ("region", "rotor", "stator")):
                if region not in regions:
                    faults.append(
                        f"{type(part).__name__} {part.name!r}: there is no region {region!r}; the scene has "
                        f"{', '.join(regions) or 'no regions (give a SoftBody regions={...})'}"
                    )
        return [*faults, *self._attachment_faults()]

    def _attachment_faults(self) -> list[str]:
        soft, rigid = ([b.name for b in bodies] for bodies in (self.soft, self.rigid))
        attachments = {a.name: a for a in self.attachments}
        faults = [
            f"Attachment {a.name!r}: "
            + (
                f"body {body!r} is rigid, and attachments join soft bodies; matter around a rigid body is bound to it "
                f"without one"
                if body in rigid
                else f"there is no soft body {body!r}; the scene has {', '.join(soft) or 'none'}"
            )
            for a in self.attachments
            for body in (a.first, a.second)
            if body not in soft
        ]
        for motor in (a for a in self.actuators if isinstance(a, Motor)):
            at = attachments.get(motor.attachment)
            if at is None:
                faults.append(
                    f"Motor {motor.name!r}: there is no attachment {motor.attachment!r}; the scene has "
                    f"{', '.join(attachments) or 'none'}"
                )
            elif self.dim == 3 and len(at.points) != 2:
                faults.append(
                    f"Motor {motor.name!r}: its attachment {at.name!r} must have two points, which define its axis, "
                    f"got {len(at.points)}"
                )
        return faults

    def _dimension_faults(self) -> list[str]:
        dim = self.dim
        sizes = {f"SoftBody {b.name!r}": dimension(b.shape) for b in self.soft}
        sizes |= {f"Obstacle {o.name!r}": dimension(o.shape) for o in self.obstacles}
        for part in (*self.actuators, *self.constraints, *self.loads, *self.attachments):
            for field in ("waypoints", "points", "force", "direction", "wave", "axis", "pivot"):
                value = getattr(part, field, None)
                if np.ndim(value) and np.shape(value)[-1] != dim:
                    sizes[f"{type(part).__name__} {part.name!r}"] = np.shape(value)[-1]
        moving = [*self.obstacles, *self.constraints]
        sizes |= {f"the motion of {m.name!r}": m.motion.dim for m in moving if m.motion is not None}
        velocities = {o.name: o.surface_velocity for o in self.obstacles if o.surface_velocity is not None}
        sizes |= {f"surface_velocity of Obstacle {name!r}": len(v) for name, v in velocities.items()}
        sizes |= {f"Field {f.name!r}": f.places.shape[2] for f in self.fields if f.places is not None}
        sizes["gravity"] = len(self.gravity)
        if self.fluid is not None and self.fluid.velocity is not None:
            sizes["Fluid.velocity"] = len(self.fluid.velocity)
        if self.task is not None:
            sizes["Task.direction"] = len(self.task.direction)
        faults = [f"Scene: {what} is {n}D in a {dim}D scene" for what, n in sizes.items() if n != dim]
        example = {2: "Sphere((0, 0), 0.1), which is a disc", 3: "Sphere((0, 0, 0), 0.1)"}[dim]
        faults += [
            f"Scene: RigidBody {b.name!r} is {5 - dim}D in a {dim}D scene; give it a {dim}D shape, such as {example}"
            for b in self.rigid
            if b.shape is not None and dimension(b.shape) != dim
        ]
        return faults if dim == 3 else [*faults, *plane_faults(self.rigid, self.joints)]

    def _domain_faults(self) -> list[str]:
        if self.domain is None:
            return []
        lower, upper = np.array(self.domain[0]), np.array(self.domain[1])
        if lower.shape != (self.dim,) or upper.shape != (self.dim,) or not (lower < upper).all():
            return [f"Scene: domain must be a lower and an upper corner of {self.dim} coordinates, got {self.domain}"]
        faults = []
        for body in self.soft:
            low, high = body.shape.bounds
            if (low < lower).any() or (high > upper).any():
                faults.append(
                    f"SoftBody {body.name!r} reaches from {low.round(4).tolist()} to {high.round(4).tolist()} and "
                    f"leaves the domain {lower.tolist()} to {upper.tolist()}; enlarge Scene.domain or move the body"
                )
        return faults
