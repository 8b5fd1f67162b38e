"""Motion of obstacles and constraints that is prescribed as a function of time, or driven by a control signal."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpbots.scene.record import SceneError, direction, point, record
from warpbots.scene.shapes.field_checks import positive

__all__ = ["BEYOND", "DRIVE_KINDS", "INTERPOLATIONS", "PrescribedMotion", "VelocityDrive"]

INTERPOLATIONS = ("cubic", "linear")
"""Interpolations between the poses of a table: with a continuous velocity, or with a constant one between two poses."""

BEYOND = ("error", "hold", "repeat")
"""Behaviour after the last time of a table: end the run with an error, hold the last pose, or repeat the table."""

DRIVE_KINDS = ("translation", "rotation", "surface")
"""Motions by a `VelocityDrive`: along an axis, about an axis, or of the surface alone, like a conveyor belt."""

_TURN = np.pi / 2.0
"""Largest angle between the rotations of neighbouring poses [rad]."""


@record
class PrescribedMotion:
    """Poses of an obstacle or a constraint over time, as a table.

    A pose is a displacement from the place in the scene: at time t, a point X of the obstacle is at

        x(t) = R(t) (X - pivot) + pivot + d(t),   R = exp([r(t)]x),

    with the displacement d and the rotation vector r. Each component is interpolated, by cubic polynomials or linearly.
    The slope of the polynomials at a pose is the slope of the parabola through this pose and its two neighbours, so the
    velocity is continuous. A rotation vector may be longer than a full turn.

    Attributes:
        times: Times of the poses [s], increasing from 0, shape (n,), n >= 2.
        positions: Displacement d of the pivot at each time [m], shape (n, dim); None for a pivot that does
            not move.
        rotations: Rotation vector r at each time [rad], shape (n, 3) in 3D; the angle in 2D, shape (n,). None for no
            rotation.
        pivot: Point about which `rotations` turn [m], shape (dim,); None if there are none.
        interpolation: One of `INTERPOLATIONS`.
        beyond: Behaviour after the last time, one of `BEYOND`. A table that repeats must end with its first pose.

    Raises:
        SceneError: There are neither positions nor rotations, or fewer than two poses; the columns differ in length, or
            have a wrong shape; the times do not increase from 0; neighbouring rotations differ by more than a quarter
            turn; rotations have no pivot; `interpolation` or `beyond` is unknown; or a table that repeats does not end
            with its first pose.
    """

    times: np.ndarray
    positions: np.ndarray | None = None
    rotations: np.ndarray | None = None
    pivot: Sequence[float] | None = None
    interpolation: str = "cubic"
    beyond: str = "error"

    def __post_init__(self):
        what, t = "PrescribedMotion", self.times
        for field, known in (("interpolation", INTERPOLATIONS), ("beyond", BEYOND)):
            if getattr(self, field) not in known:
                raise SceneError(f"{what}: {field} must be one of {', '.join(known)}, got {getattr(self, field)!r}")
        if t.ndim != 1 or len(t) < 2 or t[0] != 0.0 or not (np.diff(t) > 0.0).all():
            raise SceneError(f"{what}: times must be at least two numbers that increase from 0 [s], got {t.tolist()}")
        if self.positions is None and self.rotations is None:
            raise SceneError(f"{what}: give positions, rotations, or both")
        for field in ("positions", "rotations"):
            value = getattr(self, field)
            if value is not None and len(value) != len(t):
                raise SceneError(
                    f"{what}: {field} must have one row for each of the {len(t)} times, got {len(value)} rows"
                )
        if self.rotations is not None and self.pivot is None:
            raise SceneError(f"{what}: rotations need a pivot, the point about which they turn [m]")
        if self.pivot is not None:
            object.__setattr__(self, "pivot", point(self.pivot, f"{what}: pivot"))
        self._refuse_shapes()
        self._refuse_jumps()

    def _refuse_shapes(self) -> None:
        dim = self.dim
        if dim not in (2, 3) or (self.positions is not None and self.positions.ndim != 2):
            raise SceneError(
                f"PrescribedMotion: positions must have shape (n, 2) or (n, 3), got {self.positions.shape}"
            )
        if self.pivot is not None and len(self.pivot) != dim:
            raise SceneError(f"PrescribedMotion: pivot must have {dim} coordinates, like positions, got {self.pivot}")
        if self.rotations is not None and self.rotations.shape[1:] != ((), (3,))[dim - 2]:
            raise SceneError(
                f"PrescribedMotion: rotations must have shape {('(n,)', '(n, 3)')[dim - 2]} in {dim}D, got "
                f"{self.rotations.shape}"
            )

    def _refuse_jumps(self) -> None:
        for field, unit in (("positions", "m"), ("rotations", "rad")):
            value = getattr(self, field)
            if value is None:
                continue
            rows = value.reshape(len(value), -1)
            if self.beyond == "repeat" and not np.allclose(rows[0], rows[-1], rtol=1e-9, atol=1e-12):
                raise SceneError(
                    f"PrescribedMotion: a table that repeats must end with the pose with which it begins, but {field} "
                    f"go from {value[0].tolist()} to {value[-1].tolist()} {unit}"
                )
            if field == "rotations" and (turns := np.linalg.norm(np.diff(rows, axis=0), axis=1)).max() > _TURN:
                k = int(turns.argmax())
                raise SceneError(
                    f"PrescribedMotion: rotations at {self.times[k]:g} s and {self.times[k + 1]:g} s differ by "
                    f"{turns[k]:.3g} rad, more than a quarter turn; give poses in between"
                )

    @property
    def dim(self) -> int:
        """Number of dimensions, 2 or 3."""
        return self.positions.shape[-1] if self.positions is not None else len(self.pivot)

    @property
    def end(self) -> float:
        """Time after which there is no pose [s]; infinite unless `beyond` is ``"error"``."""
        return float(self.times[-1]) if self.beyond == "error" else np.inf

    @classmethod
    def sampled(
        cls, function: Callable[[float], Any], duration: float, interval: float, **options: Any
    ) -> "PrescribedMotion":
        """Sample a function of time at equal intervals.

        Args:
            function: Maps a time [s] to a displacement [m], shape (dim,), or to a pair of a displacement and a rotation
                vector (in 2D an angle) [rad].
            duration: Time of the last sample [s], a multiple of `interval` up to rounding.
            interval: Time between samples [s].
            **options: `pivot`, `interpolation` and `beyond`.

        Raises:
            SceneError: `duration` or `interval` is not positive, `duration` is not a multiple of `interval`, or the
                samples are not a valid table.
        """
        for name, value in (("duration", duration), ("interval", interval)):
            positive(value, f"PrescribedMotion.sampled: {name}")
        count = round(duration / interval)
        if count < 1 or abs(count * interval - duration) > 1e-6 * interval:
            raise SceneError(
                f"PrescribedMotion.sampled: duration must be a multiple of interval = {interval:g} s, got {duration:g}"
            )
        times = duration * np.arange(count + 1) / count
        values = [function(float(t)) for t in times]
        pairs = [v if isinstance(v, tuple) and len(v) == 2 and np.ndim(v[0]) == 1 else (v, None) for v in values]
        positions, rotations = zip(*pairs, strict=True)
        turned = None if rotations[0] is None else np.array(rotations, dtype=np.float64)
        return cls(times, np.array(positions, dtype=np.float64), turned, **options)


@record
class VelocityDrive:
    """Moves an obstacle or a constraint with the velocity u max_speed, where u is the control signal.

    Several drives of one obstacle or constraint form a chain: each drive moves the axes of all drives after it, in the
    order of `Scene.actuators`. A `PrescribedMotion` of the obstacle or constraint moves the axes of all its drives.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        moves: Name of the obstacle or of the constraint.
        max_speed: Speed at u = 1 [m/s, or rad/s for a rotation], positive.
        axis: Direction of the velocity, or axis of the rotation, at the start, normalised on construction, shape
            (dim,); None for a rotation in 2D.
        kind: One of `DRIVE_KINDS`. With ``"surface"`` only the surface of an obstacle moves, like the belt of a
            conveyor; the axis then turns with the obstacle.
        pivot: A point on the axis of a rotation [m], shape (dim,); None for other kinds.

    Raises:
        SceneError: The speed is not positive, the kind is unknown, or the axis or the pivot does not fit the kind.
    """

    name: str
    moves: str
    max_speed: float
    axis: Sequence[float] | None = None
    kind: str = "translation"
    pivot: Sequence[float] | None = None

    def __post_init__(self):
        what = f"VelocityDrive {self.name!r}"
        positive(self.max_speed, f"{what}: max_speed")
        if self.kind not in DRIVE_KINDS:
            raise SceneError(f"{what}: kind must be one of {', '.join(DRIVE_KINDS)}, got {self.kind!r}")
        turns = self.kind == "rotation"
        if turns != (self.pivot is not None):
            raise SceneError(
                f"{what}: kind {self.kind!r} " + ("needs a pivot, a point on its axis [m]" if turns else "has no pivot")
            )
        if self.pivot is not None:
            object.__setattr__(self, "pivot", point(self.pivot, f"{what}: pivot"))
        flat = turns and len(self.pivot) == 2
        if flat != (self.axis is None):
            raise SceneError(
                f"{what}: " + ("a rotation in 2D has no axis" if flat else f"kind {self.kind!r} needs an axis")
            )
        if self.axis is not None:
            object.__setattr__(self, "axis", direction(self.axis, f"{what}: axis"))
