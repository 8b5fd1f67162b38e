"""Which rigid bodies touch what, as few laws of contact: bodies of one material are one surface.

In UsdPhysics everything that collides touches everything else, except bodies at a joint, filtered pairs, and what is
in collision groups that do not meet.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

from pxr import Sdf, Usd, UsdPhysics

from warpbots.scene import Contact, Obstacle, contacts_between
from warpbots.usd.stage.values import enabled, schemas

__all__ = ["Toucher", "Touching", "grouped", "touching"]

_MOST = 1_000_000
"""Pairs of points and solids that a scene may have; contact between robots is left out before there are more."""

_FILTER = "PhysicsFilteredPairsAPI"


class Toucher(NamedTuple):
    """A rigid body that touches.

    Attributes:
        name: Its name.
        path: Path of its prim.
        surface: What its surface is made of.
        friction: Coulomb coefficient.
        robot: Path of the first body of its robot.
        carrier: Name of the body that carries it in the scene, or None.
        solids: Number of its solids.
        touches: Whether it has points to touch with; otherwise others touch it alone.
    """

    name: str
    path: Sdf.Path
    surface: str
    friction: float
    robot: Sdf.Path
    carrier: str | None
    solids: int
    touches: bool = True


class Touching(NamedTuple):
    """What touches what.

    Attributes:
        contacts: The laws.
        surfaces: Surface of each body by its name; None for one of its own.
        points: Names of the bodies that touch.
    """

    contacts: tuple[Contact, ...]
    surfaces: dict[str, str | None]
    points: set[str]


def touching(
    bodies: list[Toucher], obstacles: dict[str, tuple[Usd.Prim, Obstacle]], bounces: dict[str, float],
    neighbours: dict[frozenset, bool], filters: list[Usd.Prim], roots: list[Usd.Prim], points: int,
    note: Callable[[Usd.Prim, str], None], apart: set[frozenset] = frozenset(),
) -> Touching:  # fmt: skip
    """Laws for all that collides.

    Args:
        bodies: Rigid bodies with colliders.
        obstacles: Obstacles and their prims by name.
        bounces: Coefficients of restitution of the bodies and obstacles that have one, by name.
        neighbours: Paths of two bodies at a joint, and whether they touch all the same.
        filters: Prims with PhysicsFilteredPairsAPI.
        roots: Prims with PhysicsArticulationRootAPI.
        points: Number of points of a body.
        note: Takes what is not as the file says it.
        apart: Names of two that do not touch whatever else is said.
    """
    apart = apart | _filtered(bodies, obstacles, filters)
    silent = {b.robot for b in bodies for root in roots if _within(root.GetPath(), b) and not _self_collides(root)}
    crowd = _crowd(bodies, obstacles, points, note)

    def allowed(a: Toucher, b: Toucher) -> bool:
        if a is b or crowd == "all" or (crowd == "robots" and a.robot != b.robot):
            return False
        if frozenset((a.name, b.name)) in apart or (a.robot == b.robot and a.robot in silent):
            return False
        return neighbours.get(frozenset((a.path, b.path)), True)

    def adjacent(a: Toucher, b: Toucher) -> bool:
        return a.carrier == b.name or b.carrier == a.name

    alone = {
        x.name for i, a in enumerate(bodies) for b in bodies[i + 1 :] for x in (a, b)
        if not (crowd and a.robot != b.robot) and not allowed(a, b) and not adjacent(a, b)
        and not (a.robot == b.robot and a.robot in silent and a.surface != b.surface)
    }  # fmt: skip
    alone |= {name for pair in apart for name in pair if name in obstacles for name in pair} - set(obstacles)
    classes: dict[str, list[Toucher]] = {}
    for body in bodies:
        classes.setdefault(body.name if body.name in alone else body.surface, []).append(body)
    bounces = bounces | {b.surface: bounces[b.name] for b in bodies if b.name in bounces}
    contacts: list[Contact] = []
    for name, members in classes.items():
        if not members[0].touches:
            continue
        solids = {
            other: group[0].friction for other, group in classes.items()
            if any(allowed(a, b) and not adjacent(a, b) for a in members for b in group)
        }  # fmt: skip
        solids |= {o: found.friction for o, (_, found) in obstacles.items() if frozenset((members[0].name, o)) not in
                   apart}  # fmt: skip
        contacts += contacts_between({name: members[0].friction}, solids, combine=_average, restitution=bounces)
    for a in bodies:
        for b in bodies:
            if a.touches and adjacent(a, b) and allowed(a, b) and neighbours.get(frozenset((a.path, b.path))):
                pair = {a.name: a.friction}, {b.name: b.friction}
                contacts += contacts_between(*pair, combine=_average, restitution=bounces)
    used, met = {c.points for c in contacts}, {c.solid for c in contacts}
    surfaces = {
        b.name: None if b.name in alone or b.surface == b.name or b.surface not in used | met else b.surface
        for b in bodies
    }
    return Touching(tuple(contacts), surfaces, {b.name for b in bodies if {b.name, surfaces[b.name]} & used})


def grouped(
    colliders: dict[str, list[Usd.Prim]], groups: list[Usd.Prim], note: Callable[[Usd.Prim, str], None]
) -> set[frozenset]:
    """Names of two that do not touch because of their collision groups.

    Args:
        colliders: Colliders of each body and obstacle by its name.
        groups: Prims of the type PhysicsCollisionGroup.
        note: Takes what is not as the file says it: bodies touch with all of their colliders, or with none.
    """
    if not groups:
        return set()
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(groups[0].GetStage())
    queries = {
        group.GetPath(): UsdPhysics.CollisionGroup(group).GetCollidersCollectionAPI().ComputeMembershipQuery()
        for group in groups
    }
    member = {
        name: {frozenset(g for g, query in queries.items() if query.IsPathIncluded(prim.GetPath())) for prim in prims}
        for name, prims in colliders.items()
    }

    @functools.cache
    def meet(a: frozenset, b: frozenset) -> bool:
        return all(table.IsCollisionEnabled(x, y) for x in a for y in b)

    apart = set()
    for a, b in itertools.combinations(colliders, 2):
        found = {meet(x, y) for x in member[a] for y in member[b]}
        if found == {False}:
            apart.add(frozenset((a, b)))
        elif False in found:
            note(colliders[a][0], f"collision groups that keep some of the colliders of {a!r} and {b!r} apart; all of "
                 f"them touch")  # fmt: skip
    return apart


def _average(a: float, b: float) -> float:
    """How UsdPhysics combines coefficients."""
    return (a + b) / 2.0


def _within(root: Sdf.Path, body: Toucher) -> bool:
    return body.path.HasPrefix(root) or body.robot.HasPrefix(root)


def _self_collides(root: Usd.Prim) -> bool:
    names = ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")
    return all(enabled(root, name) for name in names)


def _crowd(bodies: list[Toucher], obstacles: dict, points: int, note: Callable) -> str:
    """What is left out because there would be too much of it: "", contact between "robots", or of "all" bodies."""
    own: dict[Sdf.Path, list[Toucher]] = {}
    for body in bodies:
        own.setdefault(body.robot, []).append(body)
    every = points * len(bodies) * sum(b.solids for b in bodies)
    inside = sum(points * len(part) * sum(b.solids for b in part) for part in own.values())
    if every <= _MOST:
        return ""
    crowd = "robots" if inside <= _MOST and len(own) > 1 else "all"
    what = "bodies of different robots" if crowd == "robots" else "bodies"
    note(None, f"contact between {what}: it would take {every} pairs of points and solids, more than {_MOST}; read "
         f"with fewer contact_points, or add Contacts for those that meet")  # fmt: skip
    return crowd


def _filtered(
    bodies: list[Toucher], obstacles: dict[str, tuple[Usd.Prim, Obstacle]], filters: list[Usd.Prim]
) -> set[frozenset]:
    """Names of two that do not touch because of a filter."""

    def names(path: Sdf.Path) -> set[str]:
        found = {b.name for b in bodies if b.path.HasPrefix(path) or path.HasPrefix(b.path)}
        nested = [b for b in bodies if path.HasPrefix(b.path)]
        if nested:  # a collider belongs to the nearest of nested bodies
            last = max(nested, key=lambda b: b.path.pathElementCount)
            found -= {b.name for b in nested if b is not last}
            found |= {last.name}
        near = {n for n, (p, _) in obstacles.items() if p.GetPath().HasPrefix(path) or path.HasPrefix(p.GetPath())}
        return found | near

    pairs = set()
    for prim in filters:
        if _FILTER not in schemas(prim):
            continue
        here = names(prim.GetPath())
        for target in prim.GetRelationship("physics:filteredPairs").GetForwardedTargets():
            pairs |= {frozenset((a, b)) for a in here for b in names(target) if a != b}
    return pairs
