"""What happens where rigid bodies touch."""

import math

from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.checks import assign, positive

__all__ = ["Contact"]


@record
class Contact:
    """A law of contact between points of one kind and solids of another.

    A point at depth d under a solid's surface is pushed out with a pressure d (stiffness - damping d') that never
    pulls, and held back by a shear that is `viscosity` times the speed of sliding, up to `friction` times the pressure
    (Xu et al. 2021, section III-B). Points stand for areas, so that a law does not depend on how many there are.

    Attributes:
        points: Name of a body, or of a surface, whose points touch.
        solid: Name of a body, of a surface or of an obstacle that they touch.
        stiffness: Pressure per depth [Pa/m].
        damping: How much the pressure grows with the speed of approach, per depth [Pa s/m^2].
        friction: Coulomb coefficient [1].
        viscosity: Shear per speed of what sticks [Pa s/m]: it creeps, the less so the greater this is.
        name: Name of the law, unique in the scene; None for ``"points on solid"``.

    Raises:
        SceneError: A value is outside of its range.
    """

    points: str
    solid: str
    stiffness: float
    damping: float = 0.0
    friction: float = 0.0
    viscosity: float = 0.0
    name: str | None = None

    def __post_init__(self):
        assign(self, name=self.name or f"{self.points} on {self.solid}")
        assign(self, stiffness=positive(self.stiffness, f"Contact {self.name!r}: stiffness"))
        for field in ("damping", "friction", "viscosity"):
            value = float(getattr(self, field))
            if not (math.isfinite(value) and value >= 0.0):
                raise SceneError(f"Contact {self.name!r}: {field} must not be negative, got {value:g}")
            assign(self, **{field: value})
        if self.friction > 0.0 and self.viscosity == 0.0:
            raise SceneError(
                f"Contact {self.name!r}: friction {self.friction:g} needs a viscosity above 0 [Pa s/m], which is what "
                f"holds what sticks"
            )
