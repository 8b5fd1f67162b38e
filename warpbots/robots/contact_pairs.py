"""Converts contacts of a scene to pairs of solids, and penalty laws of a scene to soft constraints of MuJoCo."""

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np

from warpbots.scene import Cloud, Contact, RigidBody, Scene, SceneError, neighbours, parts_of, touched_bodies
from warpbots.solvers.articulated.contact_groups import facing, points_of
from warpbots.solvers.articulated.inertia import body_inertia

__all__ = [
    "IMPEDANCE",
    "IMPRATIO",
    "QUIET",
    "ContactPair",
    "Solid",
    "bits_of",
    "excluded",
    "point_pairs",
    "solid_pairs",
    "with_points",
]

IMPEDANCE = 1e-4
"""Impedance d of all constraints [1]: the smallest in MuJoCo, with which constraints act as springs and dampers."""

IMPRATIO = 100.0
"""Ratio of the impedance of friction to the impedance in the normal direction [1]."""

Solid = tuple[str, bool]
"""The name of a body or of an obstacle, and whether it is an obstacle."""

_BITS = 30
QUIET = 1 << _BITS
"""The contype of geoms that touch nothing: no conaffinity has this bit; as it is not 0, they are not visuals."""

_LAYER = 1e-3
"""Distance from a plane within which contact points touch the plane, divided by the extent of the body [1]."""
_SHARE = 4
"""Number of contacts by which one face rests on another in MuJoCo."""


@dataclasses.dataclass(frozen=True)
class ContactPair:
    """Two solids that touch, or a contact point and a solid.

    Attributes:
        first: Name of the body with the contact points.
        second: Name of the other body, or of the obstacle.
        obstacle: Whether `second` is an obstacle.
        friction: Coulomb coefficient [1].
        stiffness: Stiffness of each contact that MuJoCo detects for this pair [N/m].
        damping: Damping of each contact that MuJoCo detects for this pair [N s/m]; not used if `restitution` is set.
        viscosity: Tangential force of a sticking contact, divided by its sliding speed [N s/m].
        restitution: Speed after a bounce divided by the speed before [1]; None to use `damping`.
        point: Index of the contact point of the first body; None if the whole solid of the first body touches.
    """

    first: str
    second: str
    obstacle: bool
    friction: float
    stiffness: float
    damping: float
    viscosity: float
    restitution: float | None
    point: int | None = None

    def solref(self, weight: float) -> tuple[float, float]:
        """MuJoCo's solref (-k, -b) for the normal direction; `weight` is the sum of the inverse masses of both bodies.

        MuJoCo's force at depth r is (k r + b r') / (weight (1 - d)) for an impedance d of nearly 0.
        """
        scale = weight * (1.0 - IMPEDANCE)
        if self.restitution is None:
            return -self.stiffness * scale, -self.damping * scale
        loss = -math.log(max(self.restitution, 1e-3))
        ratio = loss / math.hypot(math.pi, loss)
        damping = 2.0 * ratio * math.sqrt(self.stiffness / (weight * _SHARE))
        return -self.stiffness * scale, -damping * scale

    def solreffriction(self, weight: float) -> tuple[float, float]:
        """MuJoCo's solreffriction (0, -b) for the tangential directions; `weight` is defined as for `solref`."""
        return 0.0, -self.viscosity * weight * (1.0 - IMPEDANCE) / IMPRATIO


def point_pairs(scene: Scene) -> list[ContactPair]:
    """The pairs of a contact point and a solid that can touch under the laws of a scene."""
    possible = list(_possible_contacts(scene))
    areas = {b.name: np.concatenate([g.areas for g in points_of(b)]) for b in _bodies(possible)}
    return [
        dataclasses.replace(_pair(scene, law, body, solid, float(area)), point=i)
        for law, body, solid in possible
        for i, area in enumerate(areas[body.name])
    ]


def _bodies(possible: list[tuple[Contact, RigidBody, Solid]]) -> list[RigidBody]:
    """The bodies in `possible`; each body is returned once."""
    return list({body.name: body for _, body, _ in possible}.values())


def solid_pairs(scene: Scene) -> list[ContactPair]:
    """The pairs of solids that touch in a scene; each pair of solids occurs once.

    Several laws may hold for a pair, for example one law for the points of each of the two bodies. The stiffness,
    damping and viscosity of the laws are then added, and their friction is averaged with the stiffness as weight.
    """
    possible = list(_possible_contacts(scene))
    areas = {b.name: _contact_area(b) for b in _bodies(possible)}
    found: dict[frozenset[Solid], ContactPair] = {}
    for law, body, solid in possible:
        pair, key = _pair(scene, law, body, solid, areas[body.name]), frozenset(((body.name, False), solid))
        found[key] = _joined(found[key], pair) if key in found else pair
    return list(found.values())


def _possible_contacts(scene: Scene) -> Iterator[tuple[Contact, RigidBody, Solid]]:
    """Every combination of a law, a body with contact points, and a solid that these points can touch under the law.

    Between two primitive shapes, `Articulated` may use the contact points of the solid instead, or the points of both
    shapes. The two bodies are then yielded in the opposite order, or in both orders.
    """
    joined = neighbours(scene.rigid, scene.joints)
    bodies = {b.name: b for b in scene.rigid}
    seen = set()
    for law in scene.laws:
        for body in (b for b in scene.rigid if b.points and law.points in (b.name, b.surface)):
            for solid in _partners(scene, law, body, joined):
                other = None if solid[1] else bodies[solid[0]]
                own, back = (True, False) if other is None else _ways(body, other)
                possible = [(body, solid)] if own or not back else []
                possible += [(with_points(other), (body.name, False))] if back else []
                for a, b in possible:
                    if (law.name, a.name, b) not in seen:
                        seen.add((law.name, a.name, b))
                        yield law, a, b


def _ways(body: RigidBody, other: RigidBody) -> tuple[bool, bool]:
    """Whether contact of `body` and `other` uses the points of `body`, and whether it uses the points of `other`."""
    if isinstance(body.points, Cloud):
        return True, False
    ways = [facing(a, b) for a in parts_of(body.shape) for b in parts_of(other.shape)]
    return any(own or not back for own, back in ways), any(back for _, back in ways)


def with_points(body: RigidBody) -> RigidBody:
    """`body` if it has contact points; otherwise `body` with the number of points set to 1."""
    return body if body.points else dataclasses.replace(body, points=1)


def _partners(scene: Scene, law: Contact, body: RigidBody, joined: set[frozenset[str]]) -> list[Solid]:
    """The solids that the points of a body touch under a law."""
    touched = [(b.name, False) for b in touched_bodies(law, body, scene.rigid, joined)]
    return [*touched, *((o.name, True) for o in scene.obstacles if o.name == law.solid)]


def _pair(scene: Scene, law: Contact, body: RigidBody, solid: Solid, area: float) -> ContactPair:
    """The pair of `body` and `solid` under `law`, if each contact has the area `area` [m^2]."""
    inertia = body_inertia(body)
    weight = 0.0 if inertia is None else inertia.mass * math.hypot(*scene.gravity)
    damping = law.damping / law.stiffness * weight / _SHARE
    return ContactPair(
        body.name, *solid, law.friction, law.stiffness * area, damping, law.viscosity * area, law.restitution
    )


def _joined(a: ContactPair, b: ContactPair) -> ContactPair:
    """One pair that combines two laws for the same solids."""
    bounces = [p.restitution for p in (a, b) if p.restitution is not None]
    share = b.stiffness / (a.stiffness + b.stiffness)
    return dataclasses.replace(
        a, stiffness=a.stiffness + b.stiffness, damping=a.damping + b.damping, viscosity=a.viscosity + b.viscosity,
        friction=a.friction + share * (b.friction - a.friction), restitution=min(bounces, default=None),
    )  # fmt: skip


def _contact_area(body: RigidBody) -> float:
    """Area that a contact of MuJoCo represents [m^2].

    For each of the six faces of the bounding box of the body, the areas of the points near the face are added. The
    largest sum is divided by four, the number of contacts of a face in MuJoCo, or by the number of these points if
    there are fewer than four.
    """
    groups = points_of(body)
    positions, areas, radii = (
        np.concatenate([getattr(g, name) for g in groups]) for name in ("positions", "areas", "radii")
    )
    best = 0.0, 1
    for axis in range(3):
        low, high = positions[:, axis] - radii, positions[:, axis] + radii
        for side in (low - low.min(), high.max() - high):
            touching = side <= _LAYER * max(float(np.ptp(positions, axis=0).max()), 1e-12)
            best = max(best, (float(areas[touching].sum()), int(touching.sum())))
    return best[0] / min(best[1], _SHARE)


def bits_of(scene: Scene) -> dict[Solid, tuple[int, int]]:
    """The contype and conaffinity of each body and obstacle; the bits of any two solids under a common law match.

    Solids under the same laws share a bit. Neighbours at a joint do not touch although they share a law: they need an
    ``<exclude>``.

    Raises:
        SceneError: The scene needs more than 30 bits.
    """
    solids = [(b.name, False, {b.name, b.surface}) for b in scene.rigid if b.shape is not None]
    solids += [(o.name, True, {o.name}) for o in scene.obstacles]
    under = {
        (name, obstacle): frozenset(k for k, law in enumerate(scene.laws) if law.solid in names)
        for name, obstacle, names in solids
    }
    groups = {laws: 1 << k for k, laws in enumerate(dict.fromkeys(laws for laws in under.values() if laws))}
    if len(groups) > _BITS:
        raise SceneError(
            f"Scene {scene.name!r}: MJCF distinguishes at most {_BITS} groups of solids that touch the same ones, got "
            f"{len(groups)}; give bodies common surfaces"
        )
    touching = {b.name: {b.name, b.surface} for b in scene.rigid if b.points}

    def contype(name: str, obstacle: bool) -> int:
        own = set() if obstacle else touching.get(name, set())
        laws = {k for k, law in enumerate(scene.laws) if law.points in own}
        return sum(bit for group, bit in groups.items() if group & laws) or QUIET

    return {solid: (contype(*solid), groups.get(laws, 0)) for solid, laws in under.items()}


def excluded(scene: Scene, pairs: list[ContactPair], bits: dict[Solid, tuple[int, int]]) -> list[tuple[str, str]]:
    """Names of the pairs of bodies whose bits match, but which do not touch in the scene."""
    wanted = {frozenset((p.first, p.second)) for p in pairs if not p.obstacle}
    bodies = [name for name, obstacle in bits if not obstacle]
    return [
        (a, b)
        for a, b in itertools.combinations(bodies, 2)
        if frozenset((a, b)) not in wanted and _bits_match(bits[a, False], bits[b, False])
    ]


def _bits_match(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return bool(a[0] & b[1] or b[0] & a[1])
