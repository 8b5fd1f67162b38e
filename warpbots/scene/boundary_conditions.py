"""Boundary conditions of regions: constraints on the motion of a region, and steady loads."""

from collections.abc import Sequence

from warpbots.scene.prescribed_motion import PrescribedMotion
from warpbots.scene.record import SceneError, direction, point, record

__all__ = ["FREEDOMS", "Constraint", "Load"]

FREEDOMS = ("fixed", "line", "plane")
"""Freedoms of motion: no velocity, a velocity along the direction, or a velocity perpendicular to the direction."""


@record
class Constraint:
    """A constraint on the matter of a region, which cannot move, or can move only along a line or in a plane.

    A constraint may itself move, with `motion` or a `warpbots.actuators.VelocityDrive`. Lines and planes then turn with
    the constraint, and fixed matter moves with it, like a specimen in the jaws of a testing machine.

    Attributes:
        region: Name of the constrained region.
        freedom: One of `FREEDOMS`.
        direction: Direction of the line, or normal of the plane, shape (dim,), normalised on construction; None for
            ``"fixed"``.
        name: Name of the constraint, unique in the scene.
        motion: Prescribed motion, or None.

    Raises:
        SceneError: The freedom is unknown, or the direction is missing, zero or not allowed for this freedom.
    """

    region: str
    freedom: str = "fixed"
    direction: Sequence[float] | None = None
    name: str = "clamp"
    motion: PrescribedMotion | None = None

    def __post_init__(self):
        if self.freedom not in FREEDOMS:
            raise SceneError(
                f"Constraint {self.name!r}: freedom must be one of {', '.join(FREEDOMS)}, got {self.freedom!r}"
            )
        if (self.direction is None) != (self.freedom == "fixed"):
            raise SceneError(
                f"Constraint {self.name!r}: freedom {self.freedom!r} "
                + ("takes no direction" if self.freedom == "fixed" else "needs a direction")
                + f", got {self.direction}"
            )
        if self.direction is not None:
            n = direction(self.direction, f"Constraint {self.name!r}: direction")
            object.__setattr__(self, "direction", n)


@record
class Load:
    """A steady force on a region, distributed over its matter by volume.

    Attributes:
        region: Name of the loaded region.
        force: Total force [N], shape (dim,).
        name: Name of the load, unique in the scene.
    """

    region: str
    force: Sequence[float]
    name: str = "load"

    def __post_init__(self):
        object.__setattr__(self, "force", point(self.force, f"Load {self.name!r}: force"))
