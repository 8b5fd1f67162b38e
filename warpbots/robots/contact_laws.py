"""Surfaces and laws: who touches whom, with what friction."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from warpbots.robots.collision_geoms import Solid
from warpbots.robots.mujoco_source import Source, unique
from warpbots.scene import Contact, Joint, Obstacle, RigidBody, contacts_between, neighbours

__all__ = ["dressed"]


@dataclasses.dataclass(frozen=True)
class _Skin:
    """How a solid touches; solids of one skin touch the same others in the same way.

    Attributes:
        friction: Coulomb coefficient [1].
        slippery: Whether it has none against what is slippery too (condim 1).
        contype: Bits of MuJoCo's contype, of all geoms together.
        conaffinity: Bits of its conaffinity.
        excluded: Bodies that it does not touch.
        tree: The tree to which it belongs, where bodies of one tree do not touch one another; else -1.
    """

    friction: float
    slippery: bool
    contype: int
    conaffinity: int
    excluded: frozenset[int]
    tree: int

    def meets(self, other: "_Skin", bodies: set[int]) -> bool:
        """Whether it touches another skin, that of `bodies`."""
        bits = self.contype & other.conaffinity or other.contype & self.conaffinity
        return bool(bits) and not self.excluded & bodies and (self.tree < 0 or self.tree != other.tree)

    def friction_on(self, other: "_Skin") -> float:
        """The greater coefficient of both, as in MuJoCo; none where both are slippery."""
        return 0.0 if self.slippery and other.slippery else max(self.friction, other.friction)


def dressed(
    source: Source, solids: list[Solid], bodies: list[RigidBody], joints: list[Joint], more: Sequence[Obstacle],
    points: int, self_contact: bool,
) -> tuple[list[RigidBody], list[Contact]]:  # fmt: skip
    """Bodies with points and surfaces, and a law for every two surfaces, or surface and obstacle, that touch.

    Args:
        source: The file.
        solids: What touches.
        bodies: All bodies.
        joints: Their joints.
        more: Obstacles that do not come from the file; everything touches them.
        points: Points of every body that moves and touches anything.
        self_contact: Whether bodies of one tree touch one another.
    """
    if not points:
        return bodies, []
    skins: dict[_Skin, list[Solid]] = {}
    for solid in (s for s in solids if not s.obstacle):
        skins.setdefault(_skin(source, solid, self_contact), []).append(solid)
    world = {s.name: (_skin(source, s, self_contact), {s.body}) for s in solids if s.obstacle}
    taken = {b.name for b in bodies} | set(world) | {o.name for o in more}
    names = {skin: unique("surface" if len(skins) == 1 else f"surface {k + 1}", taken) for k, skin in enumerate(skins)}
    still, apart = _still(joints), neighbours(bodies, joints)
    laws: list[Contact] = []
    for skin, members in skins.items():
        moving = [s.name for s in members if s.name not in still]
        if not moving:
            continue
        meets = {name: skin.friction_on(other) for name, (other, at) in world.items() if skin.meets(other, at)}
        meets |= {o.name: max(skin.friction, o.friction) for o in more}
        for other, others in skins.items():
            near = all(a == b.name or frozenset((a, b.name)) in apart for a in moving for b in others)
            if not near and skin.meets(other, {s.body for s in others}):
                meets[names[other]] = skin.friction_on(other)
        laws += contacts_between({names[skin]: 0.0}, meets, combine=max)
    surfaces = {s.name: names[skin] for skin, members in skins.items() for s in members}
    used = {law.points for law in laws}

    def dress(body: RigidBody) -> RigidBody:
        surface = surfaces.get(body.name)
        count = points if surface in used and body.name not in still else 0
        return dataclasses.replace(body, points=count, surface=surface)

    return [dress(body) for body in bodies], laws


def _skin(source: Source, solid: Solid, self_contact: bool) -> _Skin:
    model, geoms = source.model, list(solid.geoms)
    excluded = set()
    for signature in map(int, model.exclude_signature):
        pair = signature >> 16, signature & 0xFFFF
        if solid.body in pair:
            excluded.add(pair[1] if pair[0] == solid.body else pair[0])
    return _Skin(
        friction=float(model.geom_friction[geoms, 0].max()),
        slippery=bool((model.geom_condim[geoms] == 1).all()),
        contype=int(np.bitwise_or.reduce(model.geom_contype[geoms])),
        conaffinity=int(np.bitwise_or.reduce(model.geom_conaffinity[geoms])),
        excluded=frozenset(excluded),
        tree=-1 if self_contact else int(model.body_rootid[solid.body]),
    )


def _still(joints: list[Joint]) -> set[str]:
    """Names of the bodies that are fixed to the world; parents come before children."""
    still: set[str | None] = {None}
    for joint in joints:
        if joint.kind == "fixed" and joint.parent in still:
            still.add(joint.child)
    return still - {None}
