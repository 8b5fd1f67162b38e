"""Surfaces and contact laws of a scene; they say which bodies touch each other, and with which friction."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from warpbots.robots.collision_geoms import CollisionSolid
from warpbots.robots.contact_filter import APART, Filter
from warpbots.robots.names import unique
from warpbots.scene import Contact, Joint, Obstacle, RigidBody, contacts_between, neighbours, parts_of
from warpbots.solvers.articulated.point_cloud import surface_mesh

__all__ = ["with_contact"]

Overlaps = Callable[[], dict[frozenset[int], float]]
"""Function that returns the depths of overlapping geoms at the start [m], by the pairs of their indices."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Table:
    """Friction of all pairs of solids.

    Attributes:
        solids: The solids.
        friction: Coulomb coefficient of each pair, `APART` for a pair that does not touch, shape (n, n).
        near: Whether two solids are neighbours, shape (n, n). Neighbours touch only under a law that names both.
        moving: Whether a solid can move, shape (n,).
        added: Friction of each solid on smooth obstacles that are not in the file, shape (n,).
    """

    solids: list[CollisionSolid]
    friction: np.ndarray
    near: np.ndarray
    moving: np.ndarray
    added: np.ndarray

    def surfaces(self) -> list[list[int]]:
        """Groups of solids, as indices; one law between two groups holds for all pairs of members except neighbours."""
        found: list[list[int]] = []
        for k in [k for k, solid in enumerate(self.solids) if not solid.obstacle]:
            for members in found:
                joined = [*members, k]
                others = [joined, *(other for other in found if other is not members)]
                if self.added[k] == self.added[members[0]] and self._alike(joined, others):
                    members.append(k)
                    break
            else:
                found.append([k])
        return found

    def _alike(self, members: list[int], others: list[list[int]]) -> bool:
        """Whether all `members` have the same friction on each solid, and on each group of `others`.

        Neighbours are ignored.
        """
        least, most = (np.where(self.near[members], away, self.friction[members]) for away in (np.inf, -np.inf))
        least, most = least.min(axis=0), most.max(axis=0)
        return bool((least >= most).all()) and all(least[other].min() >= most[other].max() for other in others)

    def of(self, first: list[int], second: list[int]) -> float:
        """Friction between the solids `first` and the solids `second`, or `APART` if they do not touch."""
        pairs = ((a, b) for a in first for b in second if a != b and self.moving[a] and not self.near[a, b])
        return next((float(self.friction[a, b]) for a, b in pairs), APART)


def with_contact(
    contact: Filter, solids: list[CollisionSolid], bodies: list[RigidBody], joints: list[Joint],
    more: Sequence[Obstacle], points: int, overlaps: Overlaps, unknown: list[str],
) -> tuple[list[RigidBody], list[Contact]]:  # fmt: skip
    """The bodies with contact points and surfaces, and the laws between surfaces, obstacles and neighbouring bodies.

    Args:
        contact: The rules that decide which geoms touch each other.
        solids: Solids of bodies, and obstacles.
        bodies: All bodies.
        joints: The joints of the bodies.
        more: Obstacles that do not come from the file; all bodies touch them.
        points: Number of contact points of each moving body that touches something.
        overlaps: Function that returns the depth of the overlap of each pair of geoms that overlap at the start, by the
            two indices of the geoms [m].
        unknown: Receives a line for each contact that is left out.
    """
    if not (points and solids):
        return bodies, []
    table = _table(contact, solids, bodies, joints, bool(more))
    surfaces = table.surfaces()
    taken = {b.name for b in bodies} | {s.name for s in solids} | {o.name for o in more}
    names = [unique("surface" if len(surfaces) == 1 else f"surface {k + 1}", taken) for k in range(len(surfaces))]
    laws: list[Contact] = []
    for name, own in zip(names, surfaces, strict=True):
        if not table.moving[own].any():
            continue
        others = [(solids[k].name, [k]) for k in range(len(solids)) if solids[k].obstacle]
        others += list(zip(names, surfaces, strict=True))
        meets = {other: mu for other, members in others if (mu := table.of(own, members)) != APART}
        if (rough := float(table.added[own[0]])) != APART:
            meets |= {o.name: max(rough, o.friction) for o in more}
        laws += contacts_between({name: 0.0}, meets, combine=max)
    laws += _between_neighbours(table, overlaps, unknown)
    of = {solids[k].name: name for name, own in zip(names, surfaces, strict=True) for k in own}
    return _finished(bodies, table, of, {law.points for law in laws}, points), laws


def _table(
    contact: Filter, solids: list[CollisionSolid], bodies: list[RigidBody], joints: list[Joint], more: bool
) -> _Table:
    fixed, apart = _fixed_to_world(joints), neighbours(bodies, joints)
    friction = np.array([[contact.friction(a.geoms[0], b.geoms[0]) for b in solids] for a in solids])
    near = np.array(
        [[not (a.obstacle or b.obstacle) and (frozenset((a.name, b.name)) in apart) for b in solids] for a in solids]
    )
    moving = np.array([not solid.obstacle and solid.name not in fixed for solid in solids])
    added = _meet_added(contact, solids) if more else np.full(len(solids), APART)
    return _Table(solids, friction, near | np.eye(len(solids), dtype=bool), moving, added)


def _meet_added(contact: Filter, solids: list[CollisionSolid]) -> np.ndarray:
    """Friction of each solid on smooth obstacles that are not in the file.

    These obstacles have MuJoCo's default bits. If no geom of a body matches these bits, all geoms of the body touch the
    obstacles.
    """
    found = [contact.friction_on_added(solid.geoms[0]) for solid in solids]
    touching = {solid.body for solid, mu in zip(solids, found, strict=True) if mu != APART}
    geoms = contact.robot.geoms
    return np.array(
        [mu if s.body in touching else geoms[s.geoms[0]].friction for s, mu in zip(solids, found, strict=True)]
    )


def _between_neighbours(table: _Table, overlaps: Overlaps, unknown: list[str]) -> list[Contact]:
    """Laws for neighbours that touch in MuJoCo and do not overlap at the start; each law names both bodies.

    Two kinds of neighbours touch in MuJoCo: two bodies with a body without geometry between them in the tree; and two
    bodies that a joint connects, if one of them is fixed to the world.
    """
    wanted = [
        (a, b)
        for a, b in itertools.combinations(range(len(table.solids)), 2)
        if table.near[a, b] and table.friction[a, b] != APART and table.moving[[a, b]].any()
    ]
    depths = overlaps() if wanted else {}
    laws: list[Contact] = []
    for a, b in wanted:
        first, second = table.solids[a], table.solids[b]
        deepest = max(depths.get(frozenset(ends), 0.0) for ends in itertools.product(first.geoms, second.geoms))
        if deepest:
            unknown.append(
                f"contact of {first.name!r} and {second.name!r}, which overlap by {deepest:.2g} m at the start; MuJoCo "
                f"pushes them apart"
            )
            continue
        for k, other in ((a, b), (b, a)):
            if table.moving[k]:
                meets = {table.solids[other].name: float(table.friction[a, b])}
                laws += contacts_between({table.solids[k].name: 0.0}, meets, combine=max)
    return laws


def _finished(
    bodies: list[RigidBody], table: _Table, surfaces: dict[str, str], used: set[str], points: int
) -> list[RigidBody]:
    """The bodies with surfaces and contact points; the solids of one body share its points in proportion to area."""
    parts: dict[int, list[CollisionSolid]] = {}
    for solid in itertools.compress(table.solids, table.moving):
        parts.setdefault(solid.body, []).append(solid)
    share = {name: part for solids in parts.values() for name, part in _shares(solids).items()}

    def finished(body: RigidBody) -> RigidBody:
        surface = surfaces.get(body.name)
        touches = body.name in share and {body.name, surface} & used
        count = max(1, round(points * share[body.name])) if touches else 0
        return dataclasses.replace(body, points=count, surface=surface)

    return [finished(body) for body in bodies]


def _shares(solids: list[CollisionSolid]) -> dict[str, float]:
    """Surface area of each solid divided by the surface area of all solids of its body, by the name of the solid."""
    if len(solids) == 1:
        return {solids[0].name: 1.0}
    areas = {solid.name: sum(surface_mesh(part).area for part in parts_of(solid.shape)) for solid in solids}
    return {name: area / sum(areas.values()) for name, area in areas.items()}


def _fixed_to_world(joints: list[Joint]) -> set[str]:
    """Names of the bodies that are fixed to the world; in `joints`, parents come before children."""
    still: set[str | None] = {None}
    for joint in joints:
        if joint.kind == "fixed" and joint.parent in still:
            still.add(joint.child)
    return still - {None}
