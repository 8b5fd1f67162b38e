"""Decides which collision geoms touch in MuJoCo, and with which friction."""

from collections.abc import Sequence
from typing import NamedTuple

from warpbots.robots.records import RobotRecord
from warpbots.scene import Joint

__all__ = ["APART", "Filter"]

APART = -1.0
"""Stands in place of a coefficient of friction for geoms that do not touch."""


class ContactKind(NamedTuple):
    """Properties of a geom that decide about its contacts, as in `warpbots.robots.records.GeomRecord`."""

    contype: int
    conaffinity: int
    friction: float
    frictionless: bool
    priority: int


_ADDED = ContactKind(1, 1, 0.0, False, 0)
"""Contact properties of an obstacle that is not in the file: MuJoCo's default bits, and no friction."""


def _friction(one: ContactKind, other: ContactKind) -> float:
    """Friction of the contact of two geoms, or `APART` if their contype and conaffinity do not match.

    The geom with the higher priority determines the friction, which is 0 if that geom has condim 1. At equal priority
    the larger of the two frictions is used, or 0 if both geoms have condim 1.
    """
    if not (one.contype & other.conaffinity or other.contype & one.conaffinity):
        return APART
    if one.priority != other.priority:
        first = max(one, other, key=lambda kind: kind.priority)
        return 0.0 if first.frictionless else first.friction
    return 0.0 if one.frictionless and other.frictionless else max(one.friction, other.friction)


class Filter:
    """MuJoCo's rules that decide which bodies touch, applied to the joints of a scene.

    Bodies that are fixed to each other never touch. Bodies that a joint connects touch only if one of them is fixed to
    the world, or if the flag ``filterparent`` is off.
    """

    def __init__(self, robot: RobotRecord, joints: Sequence[Joint], self_contact: bool):
        """Apply the rules to `robot` and `joints`.

        Without `self_contact`, bodies of the same tree never touch each other.
        """
        self.robot, self.self_contact = robot, self_contact
        self._on = {j.child: j for j in joints}
        self._number = {body.name: k for k, body in enumerate(robot.bodies)}
        self._kinds = [ContactKind(*(getattr(geom, name) for name in ContactKind._fields)) for geom in robot.geoms]
        self._welds = ["", *(self._weld(body.name) for body in robot.bodies[1:])]
        self._above = ["", *(self._weld(self._up(weld)) for weld in self._welds[1:])]
        self._pairs = {frozenset(pair.geoms): pair.friction for pair in robot.pairs}

    def _weld(self, name: str) -> str:
        """Name of the topmost body to which the body `name` is rigidly fixed: `name` or an ancestor; "" for the world.

        A base that floats in the file, and that only the user has fixed to the world, counts as not fixed, so that it
        filters the contacts of its children as in the file.
        """
        while name and (joint := self._on[name]).kind == "fixed":
            if joint.parent is None and self.robot.bodies[self._number[name]].weld != 0:
                break
            name = joint.parent or ""
        return name

    def _up(self, name: str) -> str:
        """Name of the parent of a body in the file, skipping links that are not in the file; "" for the world."""
        name = name and (self._on[name].parent or "")
        while name and name not in self._number:
            name = self._on[name].parent or ""
        return name

    def lets_touch(self, a: int, b: int) -> bool:
        """Whether two bodies may touch, regardless of the contype and conaffinity of their geoms."""
        (weld, above), (other, above_other) = ((self._welds[k], self._above[k]) for k in (a, b))
        if weld == other or {(a, b), (b, a)} & self.robot.excluded:
            return False
        related = weld and other and (weld == above_other or other == above)
        return not (related and self.robot.filters_parents)

    def friction(self, first: int, second: int) -> float:
        """Friction of the contact of two geoms, or `APART` if they do not touch.

        The geoms of an explicit pair touch regardless of their bits, their parents and excluded bodies, but not if they
        are on one body, or on one tree without self-contact.
        """
        bodies, (a, b) = self.robot.bodies, (self.robot.geoms[k].body for k in (first, second))
        if a == b or not (self.self_contact or bodies[a].root != bodies[b].root):
            return APART
        ends = frozenset((first, second))
        if ends in self._pairs:
            return self._pairs[ends]
        return _friction(self._kinds[first], self._kinds[second]) if self.lets_touch(a, b) else APART

    def friction_on_added(self, geom: int) -> float:
        """Friction of a geom on a smooth obstacle that is not in the file, or `APART` if their bits do not match."""
        return _friction(self._kinds[geom], _ADDED)

    def groups(self, geoms: Sequence[int], added: bool) -> list[list[int]]:
        """Groups of geoms that belong to one body and touch the same geoms of other bodies with the same friction.

        Args:
            geoms: All geoms that can touch.
            added: Whether there are obstacles that are not in the file.
        """
        own, paired = self.robot.geoms, {geom for ends in self._pairs for geom in ends}
        units: dict[tuple, list[int]] = {}
        for geom in geoms:
            kind = geom if geom in paired else self._kinds[geom]
            units.setdefault((own[geom].body, kind), []).append(geom)
        firsts = [unit[0] for unit in units.values()]
        found: dict[tuple, list[int]] = {}
        for first, unit in zip(firsts, units.values(), strict=True):
            row = tuple(self.friction(first, other) for other in firsts)
            key = own[first].body, row, self.friction_on_added(first) if added else APART
            found.setdefault(key, []).extend(unit)
        return [sorted(group) for group in found.values()]
