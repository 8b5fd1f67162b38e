"""Obstacles: floors, walls, terrain, tools and other solids, which stay in place or move as prescribed."""

from collections.abc import Sequence

import numpy as np

from warpbots.scene.field_types import checked
from warpbots.scene.prescribed_motion import PrescribedMotion
from warpbots.scene.record import SceneError, point, record
from warpbots.scene.shapes import HalfSpace, Shape

__all__ = ["CONDITIONS", "Obstacle", "floor", "walls"]

CONDITIONS = ("sticky", "slip", "separate", "friction")
"""Contact conditions of ChainQueen §3.2: no velocity, no normal velocity, no inward velocity, Coulomb friction."""


@record
class Obstacle:
    """A solid that nothing can push, and its contact condition.

    An obstacle stays in its place, or moves as `motion` and `warpbots.actuators.VelocityDrive` prescribe. Contact
    conditions, friction included, refer to the velocity relative to the surface.

    Attributes:
        shape: Shape of the solid.
        condition: Name of the contact condition, one of `CONDITIONS`.
        friction: Coefficient of sliding friction mu >= 0, used only by the condition ``"friction"``.
        name: Name of the obstacle, unique in the scene.
        static_friction: Coefficient of static friction, at least `friction`; None for the value of `friction`.
        motion: Prescribed motion, or None.
        surface_velocity: Velocity of the surface relative to the obstacle, like a conveyor belt, in the axes of the
            obstacle [m/s], shape (dim,); its part normal to the surface has no effect. None for no velocity.

    Raises:
        SceneError: The condition is unknown, a coefficient is negative, or static friction is below sliding friction.
    """

    shape: Shape
    condition: str = "friction"
    friction: float = 0.5
    name: str = "floor"
    static_friction: float | None = None
    motion: PrescribedMotion | None = None
    surface_velocity: Sequence[float] | None = None

    def __post_init__(self):
        if self.condition not in CONDITIONS:
            raise SceneError(
                f"Obstacle {self.name!r}: condition must be one of {', '.join(CONDITIONS)}, got {self.condition!r}"
            )
        mu, rest = self.friction, self.static_friction
        if mu < 0.0:
            raise SceneError(
                f"Obstacle {self.name!r}: friction must be a coefficient >= 0, got {mu:g}; for no friction use 0 or "
                f"condition='separate'"
            )
        if rest is not None and rest < mu:
            raise SceneError(
                f"Obstacle {self.name!r}: static_friction must be at least friction = {mu:g}, got {rest:g}; a body "
                f"at rest does not slide more easily than a sliding one"
            )
        if self.surface_velocity is not None:
            velocity = point(self.surface_velocity, f"Obstacle {self.name!r}: surface_velocity")
            object.__setattr__(self, "surface_velocity", velocity)


@checked
def floor(height: float = 0.0, dim: int = 3, condition: str = "friction", friction: float = 0.5) -> Obstacle:
    """Make a horizontal floor with its surface at `height` [m]; y is up for `dim` 2, z is up for `dim` 3.

    Raises:
        ValueError: An argument has the wrong type, or `dim` is neither 2 nor 3.
    """
    if dim not in (2, 3):
        raise ValueError(f"floor: dim must be 2 or 3, got {dim}")
    up = np.eye(dim)[-1]
    return Obstacle(HalfSpace(point=tuple(height * up), normal=tuple(up)), condition, friction, name="floor")


@checked
def walls(
    lower: Sequence[float], upper: Sequence[float], condition: str = "slip", friction: float = 0.0
) -> tuple[Obstacle, ...]:
    """Make walls around a box, one half-space for each face of the box.

    Args:
        lower: Lower corner of the free space [m], shape (dim,).
        upper: Upper corner of the free space [m], shape (dim,).
        condition: One of `CONDITIONS`.
        friction: Coulomb coefficient for the condition ``"friction"``.

    Raises:
        ValueError: An argument has the wrong type, or the corners differ in dimension.
    """
    if len(lower) not in (2, 3) or len(upper) != len(lower):
        raise ValueError(f"walls: lower and upper must both have two or three coordinates, got {lower} and {upper}")
    normals = np.eye(len(lower))
    return tuple(
        Obstacle(HalfSpace(corner, tuple(sign * n)), condition, friction, name=f"wall_{'xyz'[a]}_{side}")
        for a, n in enumerate(normals)
        for corner, sign, side in ((lower, 1.0, "low"), (upper, -1.0, "high"))
    )
