"""Which collision geoms MuJoCo lets touch, and with what friction."""

import dataclasses
from collections.abc import Sequence

from warpbots.robots.mujoco_source import Source
from warpbots.scene import Joint

__all__ = ["APART", "Filter", "GeomKind"]

APART = -1.0
"""In place of a coefficient of friction: no contact."""


@dataclasses.dataclass(frozen=True)
class GeomKind:
    """What a geom contributes to a contact.

    Attributes:
        contype: MuJoCo's bits that meet the conaffinity of the other geom.
        conaffinity: Bits that meet its contype.
        friction: Coulomb coefficient [1].
        frictionless: Whether its contacts have no friction unless the other geom has (condim 1).
        priority: The friction of the geom with the higher priority holds.
    """

    contype: int
    conaffinity: int
    friction: float
    frictionless: bool
    priority: int

    @classmethod
    def of(cls, source: Source, geom: int) -> "GeomKind":
        """That of a geom of a file."""
        model = source.model
        return cls(
            int(model.geom_contype[geom]), int(model.geom_conaffinity[geom]), float(model.geom_friction[geom, 0]),
            bool(model.geom_condim[geom] == 1), int(model.geom_priority[geom]),
        )  # fmt: skip

    def friction_on(self, other: "GeomKind") -> float:
        """Friction of a contact with another geom, or `APART` where their bits do not meet.

        It is that of the higher priority, or else the larger; without friction if this geom, or both, have condim 1.
        """
        if not (self.contype & other.conaffinity or other.contype & self.conaffinity):
            return APART
        if self.priority != other.priority:
            first = max(self, other, key=lambda kind: kind.priority)
            return 0.0 if first.frictionless else first.friction
        return 0.0 if self.frictionless and other.frictionless else max(self.friction, other.friction)


_ADDED = GeomKind(1, 1, 0.0, False, 0)
"""An obstacle that is not in the file: MuJoCo's default bits."""


class Filter:
    """MuJoCo's rules of which bodies touch, for the joints of a scene.

    Bodies that are fixed to each other never touch, and neither do those that a joint connects, unless one of them is
    fixed to the world, or the flag ``filterparent`` is off.
    """

    def __init__(self, source: Source, joints: Sequence[Joint], self_contact: bool):
        """From a file and the joints of its scene; without `self_contact`, bodies of one tree do not touch either."""
        self.source, self.self_contact = source, self_contact
        self._on = {j.child: j for j in joints}
        self._number = {name: k for k, name in enumerate(source.bodies)}
        self._kinds = [GeomKind.of(source, geom) for geom in range(source.model.ngeom)]
        self._welds = ["", *map(self._weld, source.bodies[1:])]
        self._above = ["", *(self._weld(self._up(weld)) for weld in self._welds[1:])]
        self._excluded = {(s >> 16, s & 0xFFFF) for s in map(int, source.model.exclude_signature)}
        self._pairs = _explicit_pairs(source)

    def _weld(self, name: str) -> str:
        """The body to which another one is fixed, "" for the world.

        One that is fixed to the world by the user alone is its own: in the file it has a parent and children.
        """
        while name and (joint := self._on[name]).kind == "fixed":
            if joint.parent is None and self.source.model.body_weldid[self._number[name]] != 0:
                break
            name = joint.parent or ""
        return name

    def _up(self, name: str) -> str:
        """The parent of a body in the file, "" for the world."""
        name = name and (self._on[name].parent or "")
        while name and name not in self._number:
            name = self._on[name].parent or ""
        return name

    def lets_touch(self, a: int, b: int) -> bool:
        """Whether two bodies touch if the bits of their geoms say so."""
        (weld, above), (other, above_other) = ((self._welds[k], self._above[k]) for k in (a, b))
        if weld == other or (a, b) in self._excluded or (b, a) in self._excluded:
            return False
        related = weld and other and (weld == above_other or other == above)
        return not (related and self.source.filters_parents)

    def friction(self, first: int, second: int) -> float:
        """Friction of the contact of two geoms, `APART` if they do not touch; an explicit pair needs no bits."""
        model = self.source.model
        a, b = int(model.geom_bodyid[first]), int(model.geom_bodyid[second])
        if a == b or not (self.self_contact or model.body_rootid[a] != model.body_rootid[b]):
            return APART
        ends = frozenset((first, second))
        if ends in self._pairs:
            return self._pairs[ends]
        return self._kinds[first].friction_on(self._kinds[second]) if self.lets_touch(a, b) else APART

    def friction_on_added(self, geom: int) -> float:
        """Friction of a geom on a smooth obstacle that is not in the file, `APART` where their bits do not meet."""
        return self._kinds[geom].friction_on(_ADDED)

    def groups(self, geoms: Sequence[int], added: bool) -> list[list[int]]:
        """Geoms divided by body, and by which geoms of other bodies they touch with what friction.

        Args:
            geoms: All geoms that can touch.
            added: Whether there are obstacles that are not in the file.
        """
        model, paired = self.source.model, {geom for ends in self._pairs for geom in ends}
        units: dict[tuple, list[int]] = {}
        for geom in geoms:
            kind = geom if geom in paired else self._kinds[geom]
            units.setdefault((int(model.geom_bodyid[geom]), kind), []).append(geom)
        firsts = [unit[0] for unit in units.values()]
        found: dict[tuple, list[int]] = {}
        for first, unit in zip(firsts, units.values(), strict=True):
            row = tuple(self.friction(first, other) for other in firsts)
            key = int(model.geom_bodyid[first]), row, self.friction_on_added(first) if added else APART
            found.setdefault(key, []).extend(unit)
        return [sorted(group) for group in found.values()]


def _explicit_pairs(source: Source) -> dict[frozenset[int], float]:
    """Friction of the explicit pairs of geoms."""
    model = source.model
    return {
        frozenset((int(model.pair_geom1[k]), int(model.pair_geom2[k]))): (
            float(model.pair_friction[k, 0]) if model.pair_dim[k] > 1 else 0.0
        )
        for k in range(model.npair)
    }
