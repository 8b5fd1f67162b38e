"""The inventory of a stage: which prims are bodies, obstacles and actuators, and which cannot be simulated."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pxr import Usd, UsdGeom, UsdPhysics

from warpbots.usd.stage.applied_schemas import (
    FIELD_API,
    OBSTACLE_API,
    REGION_API,
    RESULT_API,
    ROD_API,
    UNSUPPORTED_APIS,
)
from warpbots.usd.stage.attributes import authored, enabled, schemas, value_of
from warpbots.usd.stage.ledger import mark_named, mark_read
from warpbots.usd.stage.point_instancers import expand
from warpbots.usd.stage.prim_editing import read_name
from warpbots.usd.stage.prim_roles import (
    body_of,
    geometry_of,
    is_collider,
    is_geometry,
    is_moving,
    is_rigid,
    is_soft,
    kind_of,
    part_api,
    part_classes,
)
from warpbots.usd.stage.schema import rows

__all__ = ["WHOLE", "Inventory", "Note", "expanded_inventory", "take_inventory"]

Note = Callable[[Usd.Prim | None, str], None]
"""Function that receives a prim, or None for the whole file, and a note on what is left out or changed on reading."""

WHOLE = "the whole file"
"""Location of notes on the whole file."""

_EXPANDED = "a point instancer; its {} instances became bodies or obstacles, so that Scene.source is not set"
"""Note about an instancer whose instances are bodies or obstacles."""

_ORDER = rows("order")[0].name

_SEPARATIONS = ("physics:filteredPairs", "physics:filteredGroups", "physics:invertFilteredGroups", "physics:mergeGroup")

_FLAGS = {"PhysicsArticulationRootAPI": "roots", "PhysicsFilteredPairsAPI": "filters"}


class Inventory(NamedTuple):
    """The prims of a stage by their role.

    Each dictionary maps unique names to prims, in the order of the scene.

    Attributes:
        bodies: Soft and rigid bodies.
        loose: Geometry without physics.
        obstacles: Solids that nothing can push; they stay in place or move as prescribed.
        actuators: Actuators.
        constraints: Constraints of regions.
        loads: Loads on regions.
        attachments: Attachments of bodies to each other.
        joints: Joints between rigid bodies.
        contacts: Laws of contact.
        fields: Parameters of solvers.
        roots: Roots of articulations.
        filters: Prims that filter collisions.
        groups: Collision groups.
        settings: The physics scene, or None.
        left_out: Paths of prims that are left out or changed on reading, each with the reason.
    """

    bodies: dict[str, Usd.Prim]
    loose: dict[str, Usd.Prim]
    obstacles: dict[str, Usd.Prim]
    actuators: dict[str, Usd.Prim]
    constraints: dict[str, Usd.Prim]
    loads: dict[str, Usd.Prim]
    attachments: dict[str, Usd.Prim]
    joints: dict[str, Usd.Prim]
    contacts: dict[str, Usd.Prim]
    fields: dict[str, Usd.Prim]
    roots: dict[str, Usd.Prim]
    filters: dict[str, Usd.Prim]
    groups: dict[str, Usd.Prim]
    settings: Usd.Prim | None
    left_out: list[tuple[str, str]]

    @property
    def rigid(self) -> dict[str, Usd.Prim]:
        """The rigid bodies."""
        return {name: prim for name, prim in self.bodies.items() if is_rigid(prim)}

    @property
    def soft(self) -> dict[str, Usd.Prim]:
        """The soft bodies."""
        return {name: prim for name, prim in self.bodies.items() if not is_rigid(prim)}

    def note(self, prim: Usd.Prim | None, reason: str) -> None:
        """Add a note on a prim that is left out or changed on reading."""
        self.left_out.append((str(prim.GetPath()) if prim else WHOLE, reason))


def expanded_inventory(stage: Usd.Stage) -> tuple[Inventory, bool]:
    """The prims of `stage` including instances of point instancers, and whether there are any such instances.

    Instancers without physics are expanded only if no prim is marked as a body.
    """
    lost: list[tuple[str, str]] = []
    expanded = expand(stage, lambda: not any(kind == "bodies" for _, kind, _, _ in _kinds(stage)), lost)
    found = take_inventory(stage)
    found.left_out.extend([*lost, *((path, _EXPANDED.format(count)) for path, count in expanded.items())])
    return found, bool(expanded)


def _kinds(stage: Usd.Stage) -> Iterator[tuple[Usd.Prim, str | None, str | None, bool]]:
    """All prims of `stage`, each with the three results of `_kind`.

    Prims that belong to another prim are left out.
    """
    walk = iter(Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()))
    for prim in walk:
        kind, reason, prune = _kind(prim)
        yield prim, kind, reason, prune
        if prune:
            walk.PruneChildren()


def take_inventory(stage: Usd.Stage) -> Inventory:
    """The prims of `stage` by their roles, including prims of instances; inactive prims are left out."""
    kinds: dict[str, list[Usd.Prim]] = {kind: [] for kind in Inventory._fields}
    left_out = _missing(stage)
    for prim, kind, reason, prune in _kinds(stage):
        if reason:
            left_out.append((str(prim.GetPath()), reason))
            if not kind:
                mark_named(prim, below=prune)
        if kind:
            kinds[kind].append(prim)
        for api, flag in _FLAGS.items():
            if api in schemas(prim):
                kinds[flag].append(prim)
    for extra in kinds["settings"][1:]:
        left_out.append((str(extra.GetPath()), "a second PhysicsScene; the first one is used"))
        mark_named(extra)
    if not any(is_moving(prim) for prim in kinds["bodies"]):
        for api, flag in _FLAGS.items():
            left_out += [(str(prim.GetPath()), UNSUPPORTED_APIS[api]) for prim in kinds[flag]]
        left_out += [(str(p.GetPath()), "a collision group; soft bodies ignore it") for p in kinds["groups"]]
        for prim in (*kinds["filters"], *kinds["groups"]):
            mark_read(prim, *_SEPARATIONS)
    return Inventory(
        **{kind: _named(kinds[kind]) for kind in Inventory._fields if kind not in ("settings", "left_out")},
        settings=next(iter(kinds["settings"]), None),
        left_out=left_out,
    )


def _missing(stage: Usd.Stage) -> list[tuple[str, str]]:
    """Prims whose references USD cannot find or read, such as materials in other formats, each with the reason."""
    return [
        (str(error.rootSite.path), f"it refers to a file that cannot be found or read ({' '.join(str(error).split())})")
        for error in stage.GetCompositionErrors()
    ]


def _kind(prim: Usd.Prim) -> tuple[str | None, str | None, bool]:
    """The role of `prim` or None, the reason for a note or None, and whether the prims below `prim` belong to it."""
    if prim.IsPseudoRoot():
        return None, None, False
    applied = schemas(prim)
    if applied & {REGION_API, RESULT_API}:
        return None, None, True
    if is_soft(prim):
        rod = any(ROD_API in schemas(part) for part in (prim, *geometry_of(prim)))
        return (None, "a deformable of curves (a rod), which is left out", True) if rod else ("bodies", None, True)
    if OBSTACLE_API in applied:
        return "obstacles", None, True
    if FIELD_API in applied:
        return "fields", None, True
    if part_api(applied):
        return kind_of(part_classes()[part_api(applied)]), None, True
    if prim.IsA(UsdPhysics.Scene):
        return "settings", None, False
    if prim.IsA(UsdPhysics.Joint):
        return "joints", None, False
    if prim.IsA(UsdPhysics.CollisionGroup):
        return "groups", None, False
    if is_rigid(prim):
        return "bodies", None, False
    if body_of(prim):
        return None, None, False
    reason = "a kinematic body with a velocity; only time samples of its transform move it" if _drifts(prim) else None
    if "PhysxTriggerAPI" in applied:
        return None, "a trigger, which resists nothing", False
    if "PhysicsCollisionAPI" in applied:
        if not is_collider(prim):
            return None, reason, False
        return "obstacles", reason, not prim.IsA(UsdGeom.Gprim)
    solid = is_geometry(prim) and prim.GetTypeName() not in ("Plane", "BasisCurves")
    loose = solid and UsdGeom.Imageable(prim).ComputePurpose() != UsdGeom.Tokens.guide
    return "loose" if loose else None, reason, False


def _drifts(prim: Usd.Prim) -> bool:
    """Whether `prim` is a kinematic body with a velocity."""
    names = (rows(what)[0].name for what in ("velocity of a body", "angular velocity of a body"))
    rates = (value_of(prim, name) for name in names if authored(prim, name))
    on = "PhysicsRigidBodyAPI" in schemas(prim) and enabled(prim, "physics:rigidBodyEnabled")
    return on and any(any(rate) for rate in rates)


def _named(prims: Iterable[Usd.Prim]) -> dict[str, Usd.Prim]:
    """`prims` by name, in the order of the scene; prims that share a name have their paths as keys instead."""
    ordered = sorted(prims, key=lambda p: value_of(p, _ORDER) if authored(p, _ORDER) else float("inf"))
    count = Counter(read_name(prim) for prim in ordered)
    return {read_name(p) if count[read_name(p)] == 1 else str(p.GetPath()): p for p in ordered}
