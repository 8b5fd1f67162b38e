"""Surfaces and laws of contact: which bodies touch which, with what friction."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from warpbots.robots.collision_geoms import Solid
from warpbots.robots.mujoco_source import Source, unique
from warpbots.scene import Contact, Joint, Obstacle, RigidBody, contacts_between, neighbours

__all__ = ["with_contact"]


@dataclasses.dataclass(frozen=True)
class _Properties:
    """Contact properties of a solid; solids with equal ones share a surface.

    Attributes:
        friction: Coulomb coefficient [1].
        frictionless: Whether there is no friction against other frictionless solids (condim 1).
        contype: Bits of MuJoCo's contype, of all geoms together.
        conaffinity: Bits of its conaffinity.
        excluded: Bodies that it does not touch.
        tree: The tree to which it belongs, if bodies of one tree do not touch each other; else -1.
        pairs: Names of the solids that it touches by an explicit pair, each with the friction of the pair.
    """

    friction: float
    frictionless: bool
    contype: int
    conaffinity: int
    excluded: frozenset[int]
    tree: int
    pairs: frozenset[tuple[str, float]] = frozenset()

    def meets(self, other: "_Properties", solids: Sequence[Solid]) -> bool:
        """Whether it touches `solids` with the properties `other`; a pair needs no bits, and nothing excludes it."""
        bits = self.contype & other.conaffinity or other.contype & self.conaffinity
        by_bits = bool(bits) and not self.excluded & {s.body for s in solids}
        by_pair = bool(self._frictions(solids))
        return (by_bits or by_pair) and (self.tree < 0 or self.tree != other.tree)

    def friction_on(self, other: "_Properties", solids: Sequence[Solid]) -> float:
        """That of the pair, or the larger coefficient of both, as in MuJoCo; zero if both are frictionless."""
        by_pair = self._frictions(solids)
        if by_pair:
            return max(by_pair)
        return 0.0 if self.frictionless and other.frictionless else max(self.friction, other.friction)

    def _frictions(self, solids: Sequence[Solid]) -> list[float]:
        names = {s.name for s in solids}
        return [friction for name, friction in self.pairs if name in names]


def with_contact(
    source: Source, solids: list[Solid], bodies: list[RigidBody], joints: list[Joint], more: Sequence[Obstacle],
    points: int, self_contact: bool,
) -> tuple[list[RigidBody], list[Contact]]:  # fmt: skip
    """Bodies with contact points and surfaces, and a law for each pair of surfaces, or of surface and obstacle.

    Args:
        source: The file.
        solids: Solids of bodies, and obstacles.
        bodies: All bodies.
        joints: Their joints.
        more: Obstacles that do not come from the file; all bodies touch them.
        points: Number of contact points of each moving body that touches others.
        self_contact: Whether bodies of one tree touch each other.
    """
    if not points:
        return bodies, []
    fixed, apart = _fixed_to_world(joints), neighbours(bodies, joints)
    properties = {s.name: _properties(source, s, self_contact, apart) for s in solids}
    _add_pairs(source, solids, properties)
    classes: dict[_Properties, list[Solid]] = {}
    for solid in (s for s in solids if not s.obstacle):
        classes.setdefault(properties[solid.name], []).append(solid)
    world = {s.name: (properties[s.name], [s]) for s in solids if s.obstacle}
    taken = {b.name for b in bodies} | set(world) | {o.name for o in more}
    names = {
        own: unique("surface" if len(classes) == 1 else f"surface {k + 1}", taken) for k, own in enumerate(classes)
    }
    laws: list[Contact] = []
    for own, members in classes.items():
        moving = [s.name for s in members if s.name not in fixed]
        if not moving:
            continue
        meets = {name: own.friction_on(other, at) for name, (other, at) in world.items() if own.meets(other, at)}
        meets |= {o.name: max(own.friction, o.friction) for o in more}
        for other, others in classes.items():
            near = all(a == b.name or frozenset((a, b.name)) in apart for a in moving for b in others)
            if not near and own.meets(other, others):
                meets[names[other]] = own.friction_on(other, others)
        laws += contacts_between({names[own]: 0.0}, meets, combine=max)
    surfaces = {s.name: names[own] for own, members in classes.items() for s in members}
    used = {law.points for law in laws}

    def finished(body: RigidBody) -> RigidBody:
        surface = surfaces.get(body.name)
        count = points if surface in used and body.name not in fixed else 0
        return dataclasses.replace(body, points=count, surface=surface)

    return [finished(body) for body in bodies], laws


def _properties(source: Source, solid: Solid, self_contact: bool, apart: set[frozenset[str]]) -> _Properties:
    """The properties of a solid, without pairs.

    Args:
        source: The file.
        solid: The solid.
        self_contact: Whether bodies of one tree touch each other.
        apart: Names of neighbours at joints, which never touch, so that it does not matter whether they are excluded.
    """
    model, geoms = source.model, list(solid.geoms)
    excluded = set()
    for signature in map(int, model.exclude_signature):
        pair = signature >> 16, signature & 0xFFFF
        if solid.body in pair and frozenset(source.bodies[body] for body in pair) not in apart:
            excluded.add(pair[1] if pair[0] == solid.body else pair[0])
    return _Properties(
        friction=float(model.geom_friction[geoms, 0].max()),
        frictionless=bool((model.geom_condim[geoms] == 1).all()),
        contype=int(np.bitwise_or.reduce(model.geom_contype[geoms])),
        conaffinity=int(np.bitwise_or.reduce(model.geom_conaffinity[geoms])),
        excluded=frozenset(excluded),
        tree=-1 if self_contact else int(model.body_rootid[solid.body]),
    )


def _add_pairs(source: Source, solids: list[Solid], properties: dict[str, _Properties]) -> None:
    """Add the explicit pairs of solids to their properties by name, unless they say what follows without them."""
    at = {solid.name: solid for solid in solids}
    partners: dict[str, set[tuple[str, float]]] = {}
    for ends, friction in _explicit_pairs(source, solids).items():
        a, b = sorted(ends)
        own, other = properties[a], properties[b]
        if not own.meets(other, [at[b]]) or friction != own.friction_on(other, [at[b]]):
            partners.setdefault(a, set()).add((b, friction))
            partners.setdefault(b, set()).add((a, friction))
    for name, pairs in partners.items():
        properties[name] = dataclasses.replace(properties[name], pairs=frozenset(pairs))


def _explicit_pairs(source: Source, solids: list[Solid]) -> dict[frozenset[str], float]:
    """Friction of the explicit pairs of solids by their names; if several geoms of both are paired, the largest."""
    model, at = source.model, {geom: s.name for s in solids for geom in s.geoms}
    found: dict[frozenset[str], float] = {}
    for k in range(model.npair):
        geoms = int(model.pair_geom1[k]), int(model.pair_geom2[k])
        ends = frozenset(at[geom] for geom in geoms if geom in at)
        if len(ends) == 2:
            friction = float(model.pair_friction[k, 0]) if model.pair_dim[k] > 1 else 0.0
            found[ends] = max(friction, found.get(ends, 0.0))
    return found


def _fixed_to_world(joints: list[Joint]) -> set[str]:
    """Names of the bodies that are fixed to the world; parents come before children."""
    still: set[str | None] = {None}
    for joint in joints:
        if joint.kind == "fixed" and joint.parent in still:
            still.add(joint.child)
    return still - {None}
