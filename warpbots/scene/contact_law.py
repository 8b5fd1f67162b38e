"""Contact laws of rigid bodies."""

from collections.abc import Callable, Mapping

from warpbots.scene.field_types import checked
from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import assign, positive

__all__ = ["IMPACTS", "Contact", "contacts_between"]

IMPACTS = ("compliant", "instant")
"""Kinds of impact: an impact that takes time while the contact yields, or an impact that takes no time."""

_FASTEST = 10.0
"""Largest speed s of `Contact` that a law with a coefficient of restitution may have [m/s]."""


@record
class Contact:
    """A contact law between the contact points of one body and the solid of another body or obstacle.

    The laws below are those of `Articulated`. Contact under `ProjectiveDynamics` is rigid and hardly creeps. There a
    law says that two rigid bodies, or a rigid body and an obstacle, touch, and gives the friction of any pair, soft
    bodies included; its other numbers have no effect. Soft bodies touch everything, with or without a law.

    A point at depth d below the surface of the solid, with the rate of depth d', is pushed out by the pressure d
    (stiffness + damping d'), which never becomes negative. Sliding is resisted by a shear stress of `viscosity` times
    the sliding speed, at most `friction` times the pressure (Xu et al. 2021, section III-B). Each point represents an
    area, so that the force does not depend on the number of points.

    Between spheres, capsules, boxes, cylinders and planes, the positions of the contact points are closed forms. A
    sphere has one point, which is the point nearest to the solid. A capsule has a point at each end, and a point beside
    the point of its axis that is nearest to the solid. A cylinder has on each rim the deepest point and three more
    points at quarter turns, and in addition a point beside the point of its axis that is nearest to the solid. A box
    has a fixed grid of points. If the body with the points is a box or a cylinder and the solid is a sphere or a
    capsule, the contact points of the solid are used instead. Between two boxes or cylinders, the points of both bodies
    are used. A contact at a point of the solid has the area of one contact point of the body `points`, and acts on the
    nearest of these points. For other shapes, and for points that are given as a `Cloud`, only the points of the body
    `points` are used.

    With damping alone, a faster impact loses a larger fraction of its speed: a body that impacts at speed v rebounds at
    the speed r with ln(1 + a v) - a v = ln(1 - a r) + a r and a = damping / stiffness (Hunt & Crossley 1975). A
    coefficient of `restitution` e bounds the damping: the surface is e^2 times as stiff during unloading as during
    loading, and a body that impacts at speed v rebounds at e v. This holds for v well above s = (1 - e^2) / (1 + e^2)
    stiffness / damping: for v > 7 s the error of the rebound speed is at most 1 % of v if e >= 0.5, and at most s if e
    is smaller. Slower impacts lose less speed.

    With ``impact="instant"`` an impact takes no time. A step computes the time at which a gap closes, changes the
    velocities at that time by Newton's law of restitution and Coulomb's law of friction, and continues from there. So
    an impact needs no short steps, and the time of the impact is differentiable. Resting contacts, and contacts that
    approach more slowly than the speed that gravity adds in one step, are governed by stiffness and damping. All
    contacts that touch at the time of an impact take part in the impact, even if they do not approach.

    Sticking contacts creep: a body of mass m on an incline of angle t, with the area A in contact, slides down at the
    speed m g sin t / (A viscosity), which is 0.4 mm/s for 1 kg on 4 cm^2 at 30 degrees and 3e7 Pa s/m. Near the angle
    of friction the speed is higher if the centre of mass is above the contact points: the upper points carry less of
    the weight and slide first, and the lower points carry the remainder (8 % more for four points 20 cm apart, 2 cm
    below the centre of mass, at tan t = 0.98 friction).

    Attributes:
        points: Name of the body, or of the surface, that has the contact points; a soft body needs none.
        solid: Name of the body, surface or obstacle that has the solid.
        stiffness: Pressure per depth [Pa/m].
        damping: Pressure per depth and speed of approach [Pa s/m^2].
        friction: Coulomb coefficient [1]; it replaces the friction of the bodies and of the obstacle, even if it is 0,
            which causes a warning unless the obstacle, or one of two rigid bodies, has friction 0 as well, or has its
            default beside another law with friction.
        viscosity: Shear stress per sliding speed while sticking [Pa s/m]; a larger viscosity reduces creep.
        name: Name of the law, unique in the scene; None for ``"<points> on <solid>"``.
        restitution: Coefficient of restitution, the speed after a bounce divided by the speed before [1]; None if only
            damping acts.
        impact: ``"compliant"`` for an impact that lasts while the contact yields, or ``"instant"`` for an impact with a
            jump of the velocities, which needs a `restitution`.

    Raises:
        SceneError: A value is out of range, or a coefficient of restitution has no effect below s = 10 m/s.
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
        assign(self, name=self.name or self.usual_name)
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

    @property
    def usual_name(self) -> str:
        """The name of a law that is given none."""
        return f"{self.points} on {self.solid}"

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
        slow = (1.0 - e**2) / (1.0 + e**2) * self.stiffness  # times 1 / damping: the speed s of the docstring
        if self.impact == "compliant" and slow > _FASTEST * self.damping:
            raise SceneError(
                f"Contact {self.name!r}: restitution {e:g} needs a damping of at least {slow / _FASTEST:.3g} "
                f"[Pa s/m^2], got {self.damping:.3g}, with which only impacts far above {slow / self.damping:.3g} m/s "
                f"have it; {100.0 * self.stiffness:.3g} suits bounces from 0.1 m/s on"
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
    """Make a contact law for each pair of points and solid, for robots from files with friction coefficients only.

    The defaults suit robots of a few kilograms: a foot of 10 cm^2 sinks in by 1 mm under 100 N, creeps at 5 mm/s under
    a tangential force of 50 N, and hardly bounces.

    Args:
        points: Coulomb coefficient of each body or surface that has contact points, by name.
        solids: Coulomb coefficient of each body, surface or obstacle that these points may touch, by name.
        combine: Function that computes the coefficient of a pair from the coefficients of its two members, for friction
            and for restitution.
        stiffness: Pressure per depth [Pa/m].
        damping: Pressure per depth and speed of approach [Pa s/m^2].
        viscosity: Shear stress per sliding speed while sticking [Pa s/m].
        restitution: Coefficients of restitution by name. A missing name counts as 0, but if both names of a pair are
            missing, its law has no coefficient of restitution, only damping.
    """
    bounces = restitution or {}

    def bounce(a: str, b: str) -> float | None:
        return combine(bounces.get(a, 0.0), bounces.get(b, 0.0)) if {a, b} & bounces.keys() else None

    return tuple(
        Contact(a, b, stiffness, damping, combine(mu, nu), viscosity, restitution=bounce(a, b))
        for a, mu in points.items()
        for b, nu in solids.items()
    )
