"""Bodies and obstacles of a file that do not touch: collision groups, filtered pairs, and self-contact of robots.

Filtered pairs are also written, for other programs, where colliders touch by default; warpbots reads the laws instead.
"""

import functools
import itertools
from collections.abc import Collection, Iterable

from pxr import Sdf, Usd, UsdPhysics

from warpbots.scene import Scene, neighbours, unnamed_pairs
from warpbots.usd.stage.applied_schemas import RIGID_API, UNSUPPORTED_APIS
from warpbots.usd.stage.attributes import enabled, schemas, targets_of
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.ledger import mark_read

__all__ = ["filtered_pairs", "has_self_contact", "separated_by_groups", "write_filters"]


def separated_by_groups(colliders: dict[str, list[Usd.Prim]], groups: list[Usd.Prim], note: Note) -> set[frozenset]:
    """Pairs of names of bodies and obstacles that do not touch because of their collision groups.

    Args:
        colliders: Colliders of each body and obstacle by its name.
        groups: Prims of the type PhysicsCollisionGroup.
        note: Receives a note on each pair for which the groups separate only some of the colliders; such pairs touch
            with all their colliders.
    """
    if not groups:
        return set()
    for group in groups:
        mark_read(group, "physics:filteredGroups", "physics:invertFilteredGroups", "physics:mergeGroup")
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
    def collide(a: frozenset, b: frozenset) -> bool:
        return all(table.IsCollisionEnabled(x, y) for x in a for y in b)

    apart = set()
    for a, b in itertools.combinations(colliders, 2):
        found = {collide(x, y) for x in member[a] for y in member[b]}
        if found == {False}:
            apart.add(frozenset((a, b)))
        elif False in found:
            note(colliders[a][0], f"collision groups that keep some of the colliders of {a!r} and {b!r} apart; all of "
                 f"them touch")  # fmt: skip
    return apart


def filtered_pairs(
    bodies: dict[str, Sdf.Path],
    obstacles: dict[str, Sdf.Path],
    soft: Collection[Sdf.Path],
    filters: Iterable[Usd.Prim],
    note: Note,
) -> set[frozenset]:
    """Pairs of names of bodies and obstacles that do not touch because of PhysicsFilteredPairsAPI.

    Args:
        bodies: Paths of the bodies by name.
        obstacles: Paths of the obstacles by name.
        soft: Paths of the soft bodies.
        filters: Prims with PhysicsFilteredPairsAPI.
        note: Receives a note on each filter that names a soft body.
    """

    def names(path: Sdf.Path) -> set[str]:
        found = {name for name, at in (bodies | obstacles).items() if at.HasPrefix(path) or path.HasPrefix(at)}
        above = {name: at for name, at in bodies.items() if path.HasPrefix(at)}
        if above:  # a collider belongs to the nearest of nested bodies
            found -= above.keys() - {max(above, key=lambda name: above[name].pathElementCount)}
        return found

    pairs = set()
    for prim in filters:
        here, targets = prim.GetPath(), targets_of(prim, "physics:filteredPairs")
        pairs |= {frozenset((a, b)) for a in names(here) for target in targets for b in names(target) if a != b}
        if any(at.HasPrefix(end) or end.HasPrefix(at) for at in soft for end in (here, *targets)):
            note(prim, UNSUPPORTED_APIS["PhysicsFilteredPairsAPI"])
    return pairs


def has_self_contact(root: Usd.Prim) -> bool:
    """Whether bodies of the articulation at `root` may touch one another."""
    names = ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")
    return all(enabled(root, name) for name in names)


def write_filters(stage: Usd.Stage, scene: Scene, bodies: dict[str, Sdf.Path], obstacles: dict[str, Sdf.Path]) -> None:
    """Filter all pairs that do not touch in `scene` because its list of laws names them not, or not as neighbours.

    A scene without a list has no filters. Bodies of other programs keep theirs.

    Args:
        stage: The stage, with all bodies and obstacles.
        scene: The scene.
        bodies: Paths of the rigid bodies by name.
        obstacles: Paths of the obstacles by name.
    """
    shaped = [k for k, body in enumerate(scene.rigid) if body.shape is not None]
    apart = unnamed_pairs(scene)
    if scene.contacts is not None:
        joined = neighbours(scene.rigid, scene.joints) - {frozenset((law.points, law.solid)) for law in scene.laws}
        names = [b.name for b in scene.rigid]
        for a, b in (map(names.index, pair) for pair in joined):
            apart[[a, b], [b, a]] = True
    paths = [*(bodies.get(b.name) for b in scene.rigid), *(obstacles.get(o.name) for o in scene.obstacles)]
    for k in shaped:
        prim = stage.GetPrimAtPath(paths[k])
        if RIGID_API not in schemas(prim):
            continue
        others = [*(j for j in shaped if j > k), *range(len(scene.rigid), len(paths))]
        targets = [paths[j] for j in others if apart[k, j]]
        if targets:
            UsdPhysics.FilteredPairsAPI.Apply(prim).CreateFilteredPairsRel().SetTargets(targets)
        elif prim.HasAPI(UsdPhysics.FilteredPairsAPI):
            UsdPhysics.FilteredPairsAPI(prim).GetFilteredPairsRel().ClearTargets(True)
            prim.RemoveAPI(UsdPhysics.FilteredPairsAPI)
