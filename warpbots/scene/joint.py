"""Joints between rigid bodies."""

import math
from collections.abc import Sequence

import numpy as np

from warpbots.scene.field_types import Bound
from warpbots.scene.joint_kinds import JOINTS, JointKind
from warpbots.scene.record import SceneError, direction, record
from warpbots.scene.rigid_body import in_space, rotation_matrix
from warpbots.scene.shapes.field_checks import assign, positive

__all__ = ["Joint"]

_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@record
class Joint:
    """A connection that determines how a child body can move relative to its parent body or to the world.

    ============= =============================================================== ======================================
    kind          joint coordinates q                                             joint velocities qd
    ============= =============================================================== ======================================
    fixed
    revolute      angle about `axis` [rad]                                        its rate
    prismatic     length along `axis` [m]                                         its rate
    cylindrical   length along `axis` [m], angle about it [rad]                   their rates
    planar        lengths along x and y [m]                                       their rates
    translational lengths along x, y and z [m]                                    their rates
    ball          quaternion (x, y, z, w)                                         angular velocity in the child's axes
    free_2d       lengths along x and y [m], angle about z [rad]                  their rates
    free          lengths along x, y and z [m], then a quaternion (x, y, z, w)    their rates, angular velocity in the
                                                                                  child's axes
    ============= =============================================================== ======================================

    All directions are given in the frame of the joint, which is fixed to the parent. With all coordinates at zero, and
    quaternions at (0, 0, 0, 1), the bodies have the poses given by their `position` and `rotation`.

    In a 2D scene, in which bodies stay in the plane, a joint is fixed, revolute about z, prismatic, planar or free_2d.

    Attributes:
        name: Name of the joint, unique in the scene.
        kind: One of `JOINTS`.
        parent: Name of the parent body, or None for the world.
        child: Name of the child body.
        position: Origin of the frame of the joint in the world with all coordinates at zero [m], shape (3,), or (2,) in
            2D. None for the origin of the world or, if the joint is free, for the centre of mass of the child. With the
            origin at the centre of mass, q has the displacement of the centre of mass and qd its velocity, and the
            child turns about the centre of mass. If a free joint has its origin elsewhere, a step conserves momentum
            only to the order of accuracy of the integrator.
        rotation: Rotation matrix of the frame of the joint in the world with all coordinates at zero, row by row, shape
            (3, 3). The columns of the matrix are the axes of the frame.
        axis: Direction of a revolute, prismatic or cylindrical joint in the frame of the joint, normalised on
            construction, shape (3,), or (2,) in the plane of a 2D scene.
        start: Joint coordinates at time 0 [rad, m, or quaternion], shape (coordinates,), or one number for all; None
            for zero. Limits are springs, so that a start beyond one is allowed: the default limit throws the joint back
            at a speed of 74/s times the excess. An excess over the range of the limits, or over half a turn, causes a
            warning.
        start_velocity: Joint velocities at time 0 [rad/s or m/s], shape (velocities,), or one number for all; None for
            rest.
        stiffness: Stiffness of the spring of the joint [N m/rad or N/m], one number for each velocity or for all.
        neutral: Coordinates at which the spring is at rest [rad or m]; the spring of a ball is at rest at the zero
            rotation.
        damping: Damping of the joint [N m s/rad or N s/m], one number for each velocity or for all.
        armature: Inertia of the rotor of the joint [kg m^2 or kg], one number for each velocity or for all.
        lower: Lower limits of the coordinates [rad or m]; None for no limits. Balls and free joints have no limits.
        upper: Upper limits of the coordinates [rad or m]; None for no limits.
        limit_stiffness: Stiffness of the limits [N m/rad or N/m], positive. None for I / (5 ms)^2 with the inertia I
            that the joint carries, so that a weight of any mass at a lever arm r passes the limit by g / r (5 ms)^2
            [rad], which is 0.25 mrad at 1 m. The limit is stiffer if motors or springs of the joint require this
            (`warpbots.solvers.articulated.joint_limits`).
        limit_damping: Damping of the limits [N m s/rad or N s/m]; None for critical damping, 2 sqrt(k I), with the
            stiffness k of the limit. The damping force acts only beyond the limits and never exceeds the elastic force
            of the limits. So limits do not pull, and the force is continuous at the limit: motion towards the limit
            meets up to twice the stiffness, motion away from the limit follows a damped spring. An inertia I rebounds
            from a limit at its full speed if the damping is 0, and at 0.26 of its speed if the damping is critical. A
            warning names limits with a given stiffness that steps are too long for.

    Raises:
        SceneError: The kind is unknown, the axis is zero, limits cross, or a value has the wrong length or sign.
    """

    name: str
    kind: str
    parent: str | None
    child: str
    position: Sequence[float] | None = None
    rotation: Sequence[Sequence[float]] = _IDENTITY
    axis: Sequence[float] = (0.0, 0.0, 1.0)
    start: Sequence[float] | float | None = None
    start_velocity: Sequence[float] | float | None = None
    stiffness: Sequence[float] | float = 0.0
    neutral: Sequence[float] | float = 0.0
    damping: Sequence[float] | float = 0.0
    armature: Sequence[float] | float = 0.0
    lower: Sequence[Bound] | Bound | None = None
    upper: Sequence[Bound] | Bound | None = None
    limit_stiffness: float | None = None
    limit_damping: float | None = None

    def __post_init__(self):
        what = f"Joint {self.name!r}"
        if self.kind not in JOINTS:
            raise SceneError(f"{what}: kind must be one of {', '.join(JOINTS)}, got {self.kind!r}")
        if self.parent == self.child:
            raise SceneError(f"{what}: it joins {self.child!r} to itself; name two bodies, or None for the world")
        kind = JOINTS[self.kind]
        axis = [*self.axis, 0.0] if np.shape(self.axis) == (2,) else self.axis
        position, axis = self.position, direction(axis, f"{what}: axis", 3)
        if position is None and self.kind != "free":
            position = (0.0, 0.0, 0.0)
        if position is not None:
            position = in_space(position, f"{what}: position")
        assign(self, position=position, axis=axis, rotation=rotation_matrix(self.rotation, f"{what}: rotation"))
        for field in ("stiffness", "damping", "armature"):
            values = self._spread(field, kind.freedom)
            if min(values, default=0.0) < 0.0:
                raise SceneError(f"{what}: {field} must not be negative, got {values}")
        self._spread("neutral", kind.freedom)
        if any(self.neutral[kind.straight :]):
            raise SceneError(
                f"{what}: the spring of a ball is at rest at the zero rotation, got neutral {self.neutral}"
            )
        if self.start_velocity is not None:
            self._spread("start_velocity", kind.freedom)
        if self.start is not None:
            self._spread("start", kind.coordinates)
            if kind.ball:
                norm = math.hypot(*self.start[kind.straight :])
                if abs(norm - 1.0) > 1e-3:
                    raise SceneError(
                        f"{what}: the last four coordinates of start must be a unit quaternion (x, y, z, w), got one "
                        f"of length {norm:g}"
                    )
        self._check_limits(what, kind)

    @property
    def freedom(self) -> int:
        """Number of joint velocities."""
        return JOINTS[self.kind].freedom

    @property
    def straight(self) -> int:
        """Number of joint velocities that are rates of a coordinate.

        These velocities come first; the angular velocity of a ball comes after them.
        """
        return JOINTS[self.kind].straight

    def _spread(self, field: str, count: int) -> tuple[float, ...]:
        """Values of a field, one for each velocity or coordinate; a single number applies to all of them."""
        value = np.asarray(getattr(self, field), dtype=np.float64)
        if value.ndim == 1 and len(value) != count:
            raise SceneError(
                f"Joint {self.name!r}: {field} of a {self.kind} joint must be one number or {count} of them, got "
                f"{getattr(self, field)}"
            )
        values = tuple(float(v) for v in np.broadcast_to(value, count))
        assign(self, **{field: values})
        return values

    def _check_limits(self, what: str, kind: JointKind) -> None:
        if self.limit_stiffness is not None:
            positive(self.limit_stiffness, f"{what}: limit_stiffness")
        if self.limit_damping is not None and self.limit_damping < 0.0:
            raise SceneError(f"{what}: limit_damping must not be negative, got {self.limit_damping:g}")
        if self.lower is None and self.upper is None:
            return
        if kind.ball or not kind.freedom:
            raise SceneError(f"{what}: a {self.kind} joint has no limits; leave out lower and upper")
        for field, none in (("lower", -math.inf), ("upper", math.inf)):
            value = none if getattr(self, field) is None else getattr(self, field)
            assign(self, **{field: value})
            self._spread(field, kind.freedom)
        if any(a >= b for a, b in zip(self.lower, self.upper, strict=True)):
            raise SceneError(f"{what}: lower {self.lower} must be below upper {self.upper}")
