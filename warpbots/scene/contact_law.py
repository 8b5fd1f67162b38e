"""Contact laws of rigid bodies."""

from collections.abc import Callable, Mapping

from warpbots.scene.field_types import checked
from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import assign, positive

__all__ = ["IMPACTS", "Contact", "contacts_between"]

IMPACTS = ("compliant", "instant")
"""Kinds of impact: one that takes time while the contact yields, or one that takes none."""


@record
class Contact:
    """A contact law between the contact points of one body and the solid of another.

    A point at depth d below a solid's surface is pushed out by a pressure d (stiffness - damping d') that never pulls,
    and resisted by a shear stress of `viscosity` times the sliding speed, up to `friction` times the pressure (Xu et
    al. 2021, section III-B). Each point represents an area, so that a law does not depend on the number of points.

    Spheres, capsules, boxes and cylinders touch planes and each other at points in closed form: a sphere where it is
    nearest to the solid, a capsule at its ends and where its axis is nearest, a cylinder at the deepest point of each
    rim, three more in quarter turns, and where its axis is nearest, a box at its points. A solid that is a sphere or a
    capsule touches a box or a cylinder by its own points instead; boxes and cylinders touch each other by the
    points of both. A contact at a point of the solid has the area of one contact point of `points`, and acts on the
    nearest of these. Other shapes, and points that are given as a `Cloud`, touch by their points alone.

    Damping alone makes the loss of speed in a bounce grow with the speed: from v to r with ln(1 + a v) - a v =
    ln(1 - a r) + a r, a = damping / stiffness (Hunt & Crossley 1975). With a coefficient of `restitution` e the damping
    is bounded: the surface is e^2 times as stiff during unloading as during loading, and a body that impacts at speed v
    rebounds at e v. This holds for v well above s = (1 - e^2) / (1 + e^2) stiffness / damping: from 7 s upwards within
    1 % of v for e >= 0.5 and within s for lower ones; slower bounces lose less.

    With ``impact="instant"`` an impact takes no time. A step finds when a gap vanishes, lets velocities jump by
    Newton's law of restitution and Coulomb's law of friction, and goes on from there. So an impact needs no short
    steps, and its time has a derivative. Contacts that approach more slowly than gravity accelerates a body in one
    step, and resting contacts, are left to stiffness and damping. All contacts that touch at the time of an impact take
    part in it, approaching or not.

    Sticking contacts creep: a body of mass m on an incline of angle t, with the area A in contact, slides down at the
    speed m g sin t / (A viscosity), which is 0.4 mm/s for 1 kg on 4 cm^2 at 30 degrees and 3e7 Pa s/m. Near the angle
    of friction the speed is higher if the centre of mass is above the contact points: the upper points carry less and
    slide first, and the lower points carry the rest (8 % more for four points 20 cm apart, 2 cm below the centre of
    mass, at tan t = 0.98 friction).

    Attributes:
        points: Name of the body, or of the surface, that has the contact points.
        solid: Name of the body, surface or obstacle that has the solid.
        stiffness: Pressure per depth [Pa/m].
        damping: Pressure per depth and speed of approach [Pa s/m^2].
        friction: Coulomb coefficient [1].
        viscosity: Shear stress per sliding speed while sticking [Pa s/m]; a larger viscosity reduces creep.
        name: Name of the law, unique in the scene; None for ``"points on solid"``.
        restitution: Coefficient of restitution, speed after a bounce over speed before [1]; None for damping alone.
        impact: ``"compliant"``, while the contact yields, or ``"instant"``, a jump of velocities, which needs a
            `restitution`.

    Raises:
        SceneError: A value is out of range.
    """

    points: str
    solid: str
    stiffness: float
    damping: float = 0.0
    friction: float = 0.0
    viscosity: float = 0.0
    name: str | None = None
    restitution: float | None = None
    impact: str = "compliant"

    def __post_init__(self):
        assign(self, name=self.name or f"{self.points} on {self.solid}")
        positive(self.stiffness, f"Contact {self.name!r}: stiffness")
        for field in ("damping", "friction", "viscosity"):
            if getattr(self, field) < 0.0:
                raise SceneError(f"Contact {self.name!r}: {field} must not be negative, got {getattr(self, field):g}")
        if self.impact not in IMPACTS:
            raise SceneError(
                f"Contact {self.name!r}: impact must be one of {', '.join(map(repr, IMPACTS))}, got {self.impact!r}"
            )
        if self.impact == "instant" and self.restitution is None:
            raise SceneError(
                f"Contact {self.name!r}: an instant impact needs a coefficient of restitution, because damping acts "
                f"only while an impact lasts; give restitution in [0, 1], or use impact 'compliant'"
            )
        if self.restitution is not None:
            self._check_restitution()
        if self.friction > 0.0 and self.viscosity == 0.0:
            raise SceneError(
                f"Contact {self.name!r}: friction {self.friction:g} needs a viscosity above 0 [Pa s/m], which "
                f"resists sliding while a contact sticks"
            )

    def _check_restitution(self) -> None:
        e = float(self.restitution)
        if not 0.0 <= e <= 1.0:
            raise SceneError(
                f"Contact {self.name!r}: restitution must be in [0, 1], from no bounce to no loss, or None for "
                f"damping alone, got {e:g}"
            )
        if e < 1.0 and self.damping == 0.0:
            raise SceneError(
                f"Contact {self.name!r}: restitution {e:g} needs a damping above 0 [Pa s/m^2], which dissipates the "
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
    """A law for every pair, for robots from files that contain only friction coefficients.

    The defaults suit robots of a few kilograms: a foot of 10 cm^2 yields by 1 mm under 100 N, creeps by 5 mm/s under
    half of that, and hardly bounces.

    Args:
        points: Coulomb coefficient of each body or surface that has points, by name.
        solids: Coulomb coefficient of each body, surface or obstacle in contact with them, by name.
        combine: Computes the coefficient of a pair from the coefficients of both sides, for friction and for
            restitution.
        stiffness: Pressure per depth [Pa/m].
        damping: Pressure per depth and speed of approach [Pa s/m^2].
        viscosity: Shear stress per sliding speed while sticking [Pa s/m].
        restitution: Coefficients of restitution by name; a missing name counts as 0, and a pair with both missing has
            only damping.
    """
    bounces = restitution or {}

    def bounce(a: str, b: str) -> float | None:
        return combine(bounces.get(a, 0.0), bounces.get(b, 0.0)) if {a, b} & bounces.keys() else None

    return tuple(
        Contact(a, b, stiffness, damping, combine(mu, nu), viscosity, restitution=bounce(a, b))
        for a, mu in points.items()
        for b, nu in solids.items()
    )
