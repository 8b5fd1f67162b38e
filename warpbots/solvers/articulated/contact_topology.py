"""Topology of contact: which contact points may touch which solids, and under which contact law."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import warp as wp

from warpbots.contact.solid import PLANE
from warpbots.contact.solid_forms import closed_form
from warpbots.scene import Cloud, Contact, Scene, SceneError, Shape, neighbours, parts_of, touched_bodies
from warpbots.solvers.articulated.contact_groups import (
    PointGroup,
    closed_group,
    closed_group_of,
    cloud_groups,
    facing,
    may_cross,
    points_of,
)
from warpbots.solvers.articulated.robot_arrays import ContactLaws
from warpbots.solvers.articulated.surface_motion import WORLD
from warpbots.solvers.device_arrays import device_array

__all__ = ["PointRange", "CandidatePair", "Touching", "contact_arrays", "touching"]


@dataclasses.dataclass(frozen=True)
class PointRange:
    """A group of contact points of a body; the points have consecutive indices, starting with `first`.

    Attributes:
        body: Index of the body, or of an obstacle as in `Touching`, because obstacles may also have contact points.
        first: Index of the first point of this group in the list of the points of all groups.
        points: The points of the group.
    """

    body: int
    first: int
    points: PointGroup


@dataclasses.dataclass(frozen=True)
class CandidatePair:
    """A group of points and a solid that may be in contact under a contact law.

    Attributes:
        group: Index of the group of points.
        solid: Index of the solid.
        law: Index of the contact law.
        count: Number of points that may be in contact; these are the first points of the group.
        reaction_group: Index of the group of points on the body of the solid to which the reaction force is assigned,
            or -1. The force of a contact is assigned to the point of this group nearest to the contact.
        reaction_area: Whether a contact has the area of the first point of the group `reaction_group`, because the law
            names only the points of that group.
        obstacle: Index of the obstacle that has the solid or the points; -1 for two bodies.
        crossed: For a pair of edges of two boxes, the index of the solid that is the box of `group`; an edge of this
            box may touch an edge of the box `solid`. -1 for a pair with points. A contact of edges has the area of the
            first point of the group, and its force is assigned to the point of the group nearest to the contact.
        beside: For a pair with points of two boxes, the index of the pair of edges of these boxes under the same law;
            -1 for any other pair.
    """

    group: int
    solid: int
    law: int
    count: int
    reaction_group: int
    reaction_area: bool
    obstacle: int
    crossed: int = -1
    beside: int = -1


@dataclasses.dataclass(frozen=True)
class Touching:
    """Everything that may be in contact in a scene.

    Attributes:
        groups: Groups of contact points.
        solids: For each solid its body, its shape in the frame of that body, and its name. An obstacle has the body
            -1 if it stays in place, and -2 - f if it is fixed to frame f.
        pairs: Pairs of a group and a solid that may be in contact.
        sharp: Indices of the solids that are boxes with sharp edges, because their edges may touch edges of other
            boxes.
    """

    groups: tuple[PointRange, ...]
    solids: tuple[tuple[int, Shape, str], ...]
    pairs: tuple[CandidatePair, ...]
    sharp: tuple[int, ...]

    def of(self, field: str) -> np.ndarray:
        """Values of the field "positions", "areas" or "radii" of all points, shape (n, ...)."""
        empty = np.zeros((0, 3) if field == "positions" else 0)
        return np.concatenate([empty, *(getattr(g.points, field) for g in self.groups)])


_Place = tuple[int, int]
"""Index of a body and index of one of its parts; for the world, -1 and the index among the parts of all obstacles."""

_Points = tuple[int, int, bool]
"""A body, one of its parts and whether its points have a closed form; part -1 for a cloud given by the user."""


class _PairCollector:
    """Collector of the pairs that may be in contact; its dictionaries have bodies and parts of bodies as keys."""

    def __init__(self, scene: Scene, frame_of: Sequence[int]):
        self._scene = scene
        self._parts = {k: parts_of(b.shape) for k, b in enumerate(scene.rigid) if b.shape is not None}
        obstacles = [(part, k) for k, o in enumerate(scene.obstacles) for part in parts_of(o.shape)]
        self._parts[WORLD] = tuple(part for part, _ in obstacles)
        self._obstacles, self._frame_of = [k for _, k in obstacles], frame_of
        self._clouds: dict[int, list[PointGroup]] = {}
        self.points: dict[_Points, PointGroup] = {}
        self.pairs: dict[tuple[_Points, _Place, int], tuple[_Points | None, bool]] = {}
        self.crossed: dict[tuple[frozenset[_Place], int], tuple[_Place, _Place]] = {}

    def body(self, k: int, other: int, law: int) -> None:
        """Add the pairs for contact of the points of body k with another body."""
        for j in range(len(self._parts[other])):
            self._solid(k, (other, j), law)

    def obstacle(self, k: int, name: str, law: int) -> None:
        """Add the pairs for contact of the points of body k with an obstacle."""
        for j, own in enumerate(self._obstacles):
            if self._scene.obstacles[own].name == name:
                self._solid(k, (WORLD, j), law)

    def rest(self) -> None:
        """Add the contact points of bodies without a pair, so that these points report a contact force of zero."""
        having = {k for k, _, _ in self.points}
        for k, body in enumerate(self._scene.rigid):
            if k not in having:
                for i, group in enumerate(points_of(body)):
                    own = isinstance(body.points, Cloud)
                    self.points[k, -1 if own else i, not own] = group

    def name(self, place: _Place) -> str:
        """Name of the body or obstacle to which a part belongs."""
        obstacle = self.obstacle_of(place)
        return self._scene.rigid[place[0]].name if obstacle < 0 else self._scene.obstacles[obstacle].name

    def obstacle_of(self, place: _Place) -> int:
        """Index of the obstacle to which a part belongs, or -1 for a part of a body."""
        return self._obstacles[place[1]] if place[0] == WORLD else -1

    def body_of(self, place: _Place) -> int:
        """Index of the body that carries a part, as in `Touching`."""
        obstacle = self.obstacle_of(place)
        frame = -1 if obstacle < 0 else int(self._frame_of[obstacle])
        return place[0] if frame < 0 else WORLD - 1 - frame

    def shape(self, place: _Place) -> Shape:
        """Shape of a part."""
        return self._parts[place[0]][place[1]]

    def _solid(self, k: int, solid: _Place, law: int) -> None:
        if isinstance(self._scene.rigid[k].points, Cloud):
            self._pair((k, -1, False), solid, law)
            return
        for i, part in enumerate(self._parts[k]):
            own, other = facing(part, self.shape(solid))
            if own:
                self._pair((k, i, True), solid, law)
            if other:
                self._pair((*solid, True), (k, i), law, (k, i, True))
            if not (own or other):
                self._pair((k, i, False), solid, law)
            if may_cross(part, self.shape(solid)):
                self.crossed.setdefault((frozenset([solid, (k, i)]), law), ((k, i), solid))

    def _pair(self, points: _Points, solid: _Place, law: int, reaction: _Points | None = None) -> None:
        for who in (points, reaction):
            if who and who not in self.points:
                self.points[who] = self._group(*who)
        key = points, solid, law
        before, area = self.pairs.get(key, (None, True))
        self.pairs[key] = reaction or before, area and reaction is not None

    def _group(self, k: int, part: int, closed: bool) -> PointGroup:
        if k == WORLD:
            return closed_group(self._parts[k][part], 0)
        body = self._scene.rigid[k]
        if closed:
            return closed_group_of(body, self._parts[k][part])
        if k not in self._clouds:
            self._clouds[k] = cloud_groups(body)
        return self._clouds[k][part]


def touching(scene: Scene, frame_of: Sequence[int]) -> Touching:
    """Find everything that may be in contact in a scene.

    Args:
        scene: The scene.
        frame_of: Index of the frame of each obstacle, -1 for an obstacle that stays in its place.

    Raises:
        SceneError: A contact law with instant impacts applies to two boxes.
    """
    collector = _PairCollector(scene, frame_of)
    joined, number = neighbours(scene.rigid, scene.joints), {b.name: k for k, b in enumerate(scene.rigid)}
    for law, contact in enumerate(scene.laws):
        for k, body in enumerate(scene.rigid):
            if not body.points or contact.points not in (body.name, body.surface):
                continue
            for other in touched_bodies(contact, body, scene.rigid, joined):
                collector.body(k, number[other.name], law)
            collector.obstacle(k, contact.solid, law)
    for _, law in collector.crossed:
        if scene.laws[law].impact == "instant":
            raise SceneError(
                f"Contact {scene.laws[law].name!r}: it is between boxes, whose edges have no gap before they "
                f"touch, so the time of an instant impact cannot be found; use impact 'compliant', "
                "or give points as a Cloud"
            )
    collector.rest()
    return _numbered(collector)


def _numbered(collector: _PairCollector) -> Touching:
    """Number the groups in the order of their bodies, and the solids in the order in which pairs first use them."""
    order = sorted(collector.points)
    groups, first = [], 0
    for key in order:
        groups.append(PointRange(collector.body_of(key[:2]), first, collector.points[key]))
        first += len(collector.points[key].areas)
    crossed = list(collector.crossed)

    def edges(points: _Points, solid: _Place, law: int) -> tuple:
        return frozenset([points[:2], solid]), law

    own_of = {own for own, _ in collector.crossed.values()}
    places = dict.fromkeys((key[1], edges(*key) in crossed) for key in collector.pairs)
    places = list(places | dict.fromkeys((own, True) for own in own_of if (own, True) not in places))
    pairs = []
    for key, (reaction, area) in collector.pairs.items():
        points, solid, law = key
        form, group = closed_form(collector.shape(solid)), collector.points[points]
        count = group.resting if form is not None and form.kind == PLANE else len(group.areas)
        reaction_group = -1 if reaction is None else order.index(reaction)
        beside = len(collector.pairs) + crossed.index(edges(*key)) if edges(*key) in crossed else -1
        number = places.index((solid, beside >= 0))
        touched = max(collector.obstacle_of(points[:2]), collector.obstacle_of(solid))
        pairs.append(
            CandidatePair(order.index(points), number, law, count, reaction_group, area, touched, beside=beside)
        )
    for (_, law), (own, solid) in collector.crossed.items():
        group, number = order.index((*own, True)), places.index((solid, True))
        touched = collector.obstacle_of(solid)
        pairs.append(CandidatePair(group, number, law, 1, -1, False, touched, places.index((own, True))))
    solids = tuple((collector.body_of(p), collector.shape(p), collector.name(p)) for p, _ in places)
    sharp = tuple(n for n, (_, own) in enumerate(places) if own)
    return Touching(tuple(groups), solids, tuple(pairs), sharp)


def contact_arrays(found: Touching, laws: tuple[Contact, ...], device: wp.Device) -> ContactLaws:
    """Copy the topology of contact to the device; the arrays for parameters of points and laws stay null."""

    def array(values: list) -> wp.array:
        return device_array(values, device, int)

    topology = ContactLaws()
    topology.points = sum(len(g.points.areas) for g in found.groups)
    topology.groups, topology.pairs, topology.laws = len(found.groups), len(found.pairs), len(laws)
    topology.group_kind = array([g.points.kind for g in found.groups])
    topology.group_body = array([g.body for g in found.groups])
    topology.group_first = array([g.first for g in found.groups])
    topology.group_count = array([len(g.points.areas) for g in found.groups])
    names = ("group", "solid", "law", "count", "reaction_group", "reaction_area", "obstacle", "crossed", "beside")
    for name in names:
        setattr(topology, f"pair_{name}", array([getattr(p, name) for p in found.pairs]))
    topology.bounded = array([law.restitution is not None for law in laws])
    topology.instant = array([law.impact == "instant" for law in laws])
    counts = [p.count for p in found.pairs]
    topology.candidates, topology.pair_candidate = sum(counts), array(np.cumsum([0, *counts])[:-1])
    return topology
