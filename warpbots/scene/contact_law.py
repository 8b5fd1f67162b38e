"""What happens where rigid bodies touch."""

from collections.abc import Callable, Mapping

from warpbots.scene.field_types import checked
from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import assign, positive

__all__ = ["Contact", "contacts_between"]


@record
class Contact:
    """A law of contact between points of one kind and solids of another.

    A point at depth d under a solid's surface is pushed out with a pressure d (stiffness - damping d') that never
    pulls, and held back by a shear that is `viscosity` times the speed of sliding, up to `friction` times the pressure
    (Xu et al. 2021, section III-B). Points stand for areas, so that a law does not depend on how many there are.

    A bounce by damping alone takes the more of the speed, the greater that is: from v to r with ln(1 + a v) - a v =
    ln(1 - a r) + a r, a = damping / stiffness (Hunt & Crossley 1975). With a coefficient of `restitution` e the damping
    is bounded: a surface is e^2 times as stiff on the way out as it was on the way in, and what strikes comes off at e
    times its speed v. That holds for v well over s = (1 - e^2) / (1 + e^2) stiffness / damping, from 7 s on within 1 %
    of v for e >= 0.5 and within s for lower ones; slower bounces lose less.

    What sticks creeps: a body of mass m on an incline of angle t, with the area A in contact, slides down at the speed
    m g sin t / (A viscosity), which is 0.4 mm/s for 1 kg on 4 cm^2 at 30 degrees and 3e7 Pa s/m. Near the angle of
    friction it is more where the centre of mass is above the sole: the upper points carry less and slide first, which
    leaves the lower ones to hold the rest (8 % more for four points 20 cm apart, 2 cm below it, at tan t = 0.98
    friction).

    Attributes:
        points: Name of a body, or of a surface, whose points touch.
        solid: Name of a body, of a surface or of an obstacle that they touch.
        stiffness: Pressure per depth [Pa/m].
        damping: How much the pressure grows with the speed of approach, per depth [Pa s/m^2].
        friction: Coulomb coefficient [1].
        viscosity: Shear per speed of what sticks [Pa s/m]: it creeps, the less so the greater this is.
        name: Name of the law, unique in the scene; None for ``"points on solid"``.
        restitution: Speed after a bounce, per speed before [1]; None for what damping alone leaves.

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
    restitution: float | None = None

    def __post_init__(self):
        assign(self, name=self.name or f"{self.points} on {self.solid}")
        positive(self.stiffness, f"Contact {self.name!r}: stiffness")
        for field in ("damping", "friction", "viscosity"):
            if getattr(self, field) < 0.0:
                raise SceneError(f"Contact {self.name!r}: {field} must not be negative, got {getattr(self, field):g}")
        if self.restitution is not None:
            self._check_restitution()
        if self.friction > 0.0 and self.viscosity == 0.0:
            raise SceneError(
                f"Contact {self.name!r}: friction {self.friction:g} needs a viscosity above 0 [Pa s/m], which is what "
                f"holds what sticks"
            )

    def _check_restitution(self) -> None:
        e = float(self.restitution)
        if not 0.0 <= e <= 1.0:
            raise SceneError(
                f"Contact {self.name!r}: restitution must be in [0, 1], from no bounce to no loss, or None for what "
                f"damping alone leaves, got {e:g}"
            )
        if e < 1.0 and self.damping == 0.0:
            raise SceneError(
                f"Contact {self.name!r}: restitution {e:g} needs a damping above 0 [Pa s/m^2], which is what takes the "
                f"energy; {100.0 * self.stiffness:.3g} suits bounces from 0.1 m/s on"
            )
        assign(self, restitution=e)


@checked
def contacts_between(
    points: Mapping[str, float],
    solids: Mapping[str, float],
    *,
    combine: Callable[[float, float], float] = min,
    stiffness: float = 1e8,
    damping: float = 1e9,
    viscosity: float = 1e7,
    restitution: Mapping[str, float] | None = None,
) -> tuple[Contact, ...]:
    """A law for every pair, for robots that come from files which know friction alone.

    The defaults suit robots of a few kilograms: a foot of 10 cm^2 gives way by 1 mm under 100 N, creeps by 5 mm/s
    under half of that, and hardly bounces.

    Args:
        points: Coulomb coefficient of each body or surface that has points, by name.
        solids: Coulomb coefficient of each body, surface or obstacle that they touch, by name.
        combine: Coefficient of a pair from those of both, of friction and of restitution.
        stiffness: Pressure per depth [Pa/m].
        damping: Growth of the pressure with the speed of approach, per depth [Pa s/m^2].
        viscosity: Shear per speed of what sticks [Pa s/m].
        restitution: Coefficients of restitution by name, 0 for those that are not in it; two of which neither is go by
            their damping alone.
    """
    bounces = restitution or {}

    def bounce(a: str, b: str) -> float | None:
        return combine(bounces.get(a, 0.0), bounces.get(b, 0.0)) if {a, b} & bounces.keys() else None

    return tuple(
        Contact(a, b, stiffness, damping, combine(mu, nu), viscosity, restitution=bounce(a, b))
        for a, mu in points.items()
        for b, nu in solids.items()
    )
