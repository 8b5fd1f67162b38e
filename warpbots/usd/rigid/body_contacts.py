"""Contact of rigid bodies from files of other programs: sets contact points, surfaces, and as few laws as possible.

In UsdPhysics every collider may touch every other collider. The exceptions are two bodies that a joint connects,
filtered pairs, and members of collision groups that exclude each other. Bodies of one material share one surface.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from pxr import Sdf, Usd

from warpbots.contact.distance import signed_distance
from warpbots.scene import Contact, Joint, Obstacle, RigidBody, contacts_between, neighbours, whole_bodies
from warpbots.usd.geometry.physics_materials import bound_material, read_friction, read_restitution, said_friction
from warpbots.usd.rigid.body_reader import BodyPrim
from warpbots.usd.rigid.body_tree import Branch
from warpbots.usd.rigid.collision_filters import filtered_pairs, has_self_contact, separated_by_groups
from warpbots.usd.stage.applied_schemas import RIGID_API
from warpbots.usd.stage.attributes import schemas
from warpbots.usd.stage.inventory import Inventory, Note
from warpbots.usd.stage.ledger import mark_read
from warpbots.usd.stage.prim_editing import read_name
from warpbots.usd.stage.prim_roles import geometry_of
from warpbots.usd.stage.schema import rows
from warpbots.usd.stage.units import StageUnits

__all__ = ["add_contact"]

_SURFACE = ("Obstacle.friction", "Obstacle.static_friction", "restitution")
"""Properties of a material that concern contact."""

_MOST = 1_000_000
"""Largest number of pairs of points and solids; beyond it, contact between robots or all contact is left out."""


class _ContactBody(NamedTuple):
    """A rigid body with colliders.

    Attributes:
        name: Name of the body.
        path: Path of the prim of the body.
        surface: Name of the surface of the body, by which contact laws refer to the body.
        friction: Coulomb coefficient of the body.
        robot: Path of the root body of the robot that contains the body.
        whole: Name of the body to which this body is fixed, or the name of this body if it is fixed to none.
        solids: Number of solids of the body.
    """

    name: str
    path: Sdf.Path
    surface: str
    friction: float
    robot: Sdf.Path
    whole: str
    solids: int


class _Laws(NamedTuple):
    """Laws of contact, and the surfaces and contact points that bodies need for them.

    Attributes:
        contacts: The laws.
        surfaces: Name of the surface of each body, by the name of the body; None if laws name the body itself.
        points: Names of the bodies that need contact points.
    """

    contacts: tuple[Contact, ...]
    surfaces: dict[str, str | None]
    points: set[str]


def add_contact(
    bodies: list[BodyPrim], posed: dict[str, tuple[RigidBody, ...]], joints: list[Joint], grown: list[Branch],
    found: Inventory, obstacles: list[Obstacle], points: int, frame: StageUnits,
) -> tuple[dict[str, tuple[RigidBody, ...]], tuple[Contact, ...] | None]:  # fmt: skip
    """Add contact points, surfaces and contact laws for bodies whose prims do not define contact.

    Args:
        bodies: The rigid bodies of the file.
        posed: For each body of the file, by its name, the bodies of the scene: massless bodies, then the body itself.
        joints: Joints of the scene.
        grown: Joints of the file, directed from parents to children.
        found: The prims of the stage; receives notes.
        obstacles: The obstacles of the scene.
        points: Number of contact points of a body; 0 for no contact.
        frame: Units and axes of the stage.

    Returns:
        `posed` with points and surfaces, and the laws; None instead of laws if no prim implies contact of bodies.
    """
    for body in (b for b in bodies if RIGID_API in schemas(b.prim)):
        mark_read(body.prim, "physics:filteredPairs")  # its laws say the same
    others = [b for b in bodies if RIGID_API not in schemas(b.prim) and b.parts]
    if not others or not points or found.contacts:
        _overrule_surfaces([p for b in bodies for p, _ in b.parts])
        return posed, () if others and not found.contacts else None
    prims = {o.name: found.obstacles[o.name] for o in obstacles}
    _note_surfaces(others, prims, frame, found.note)
    _note_sunk(others, obstacles, found.note)
    solids = {b.name: b.parts[0][0] for b in others} | prims
    restitution = _restitution(solids, frame, found.note)
    robot = {b.prim.GetPath(): b.prim.GetPath() for b in others} | {branch.child: branch.robot for branch in grown}
    scene_bodies = [b for several in posed.values() for b in several]
    joined, whole = neighbours(scene_bodies, joints), whole_bodies(scene_bodies, joints)
    surfaces = _surfaces(others, robot, {*posed, *(o.name for o in obstacles)})
    touching = [
        _ContactBody(
            b.name, b.prim.GetPath(), surfaces[b.name], read_friction(b.parts[0][0], frame)[0],
            robot[b.prim.GetPath()], whole[b.name], len(b.parts),
        )
        for b in others
    ]  # fmt: skip
    hinged = {
        frozenset((branch.parent, branch.child)): any(j.touching for j in branch.joints)
        for branch in grown if branch.parent is not None
    }  # fmt: skip
    colliders = {b.name: [p for p, _ in b.parts] for b in others} | {name: [prim] for name, prim in prims.items()}
    paths = {b.name: b.path for b in touching}, {name: prim.GetPath() for name, prim in prims.items()}
    apart = separated_by_groups(colliders, list(found.groups.values()), found.note)
    soft = [prim.GetPath() for name, prim in found.bodies.items() if name not in found.rigid]
    apart |= filtered_pairs(*paths, soft, found.filters.values(), found.note)
    roots = [root.GetPath() for root in found.roots.values() if not has_self_contact(root)]
    silent = {b.robot for b in touching for root in roots if b.path.HasPrefix(root) or b.robot.HasPrefix(root)}
    excess = _excess(touching, points, found.note)
    laws = _laws(touching, obstacles, restitution, hinged, joined, apart, silent, excess)
    for b in others:
        count = points if b.name in laws.points else 0
        last = dataclasses.replace(posed[b.name][-1], points=count, surface=laws.surfaces[b.name])
        posed[b.name] = (*posed[b.name][:-1], last)
    return posed, laws.contacts


def _laws(
    bodies: list[_ContactBody], obstacles: list[Obstacle], restitution: dict[str, float],
    hinged: dict[frozenset, bool], joined: set[frozenset[str]], apart: set[frozenset], silent: set[Sdf.Path],
    excess: str,
) -> _Laws:  # fmt: skip
    """Laws for all colliders.

    Args:
        bodies: Rigid bodies with colliders.
        obstacles: The obstacles.
        restitution: Coefficients of restitution of the bodies and obstacles that have one, by name.
        hinged: Whether two bodies that a joint of the file connects may touch, by the paths of the two bodies.
        joined: Pairs of names of bodies that are neighbours in the scene (`warpbots.scene.neighbours`): such bodies
            touch only under a law that names both.
        apart: Pairs of names of bodies or obstacles that do not touch.
        silent: Paths of the root bodies of all robots without self-contact.
        excess: Code of the contact that is left out because there would be too many pairs, from `_excess`.
    """

    def allowed(a: _ContactBody, b: _ContactBody) -> bool:
        if a is b or excess == "all" or (excess == "robots" and a.robot != b.robot):
            return False
        if frozenset((a.name, b.name)) in apart or (a.robot == b.robot and a.robot in silent):
            return False
        return hinged.get(frozenset((a.path, b.path)), True)

    def adjacent(a: _ContactBody, b: _ContactBody) -> bool:
        return frozenset((a.name, b.name)) in joined

    single = {
        x.name for i, a in enumerate(bodies) for b in bodies[i + 1 :] for x in (a, b)
        if not (excess and a.robot != b.robot) and not allowed(a, b) and not adjacent(a, b)
        and not (a.robot == b.robot and a.robot in silent and a.surface != b.surface)
    }  # fmt: skip
    solid = {o.name for o in obstacles}
    single |= {name for pair in apart if pair & solid for name in pair} - solid
    classes: dict[str, list[_ContactBody]] = {}
    for body in bodies:
        classes.setdefault(body.name if body.name in single else body.surface, []).append(body)
    restitution = restitution | {b.surface: restitution[b.name] for b in bodies if b.name in restitution}
    contacts: list[Contact] = []
    for name, members in classes.items():
        solids = {
            other: group[0].friction for other, group in classes.items()
            if any(allowed(a, b) and not adjacent(a, b) for a in members for b in group)
        }  # fmt: skip
        solids |= {o.name: o.friction for o in obstacles if frozenset((members[0].name, o.name)) not in apart}
        contacts += contacts_between({name: members[0].friction}, solids, combine=_average, restitution=restitution)
    for a in bodies:
        for b in bodies:
            if adjacent(a, b) and allowed(a, b) and a.whole != b.whole:  # fixed together, they cannot move apart
                pair = {a.name: a.friction}, {b.name: b.friction}
                contacts += contacts_between(*pair, combine=_average, restitution=restitution)
    used, met = {c.points for c in contacts}, {c.solid for c in contacts}
    surfaces = {
        b.name: None if b.name in single or b.surface == b.name or b.surface not in used | met else b.surface
        for b in bodies
    }
    return _Laws(tuple(contacts), surfaces, {b.name for b in bodies if {b.name, surfaces[b.name]} & used})


def _average(a: float, b: float) -> float:
    """Mean of two coefficients, as UsdPhysics combines them."""
    return (a + b) / 2.0


def _excess(bodies: list[_ContactBody], points: int, note: Note) -> str:
    """Code of the contact that is left out for its number of pairs: "" (none), "robots" (between robots) or "all"."""
    own: dict[Sdf.Path, list[_ContactBody]] = {}
    for body in bodies:
        own.setdefault(body.robot, []).append(body)
    every = points * len(bodies) * sum(b.solids for b in bodies)
    inside = sum(points * len(part) * sum(b.solids for b in part) for part in own.values())
    if every <= _MOST:
        return ""
    excess = "robots" if inside <= _MOST and len(own) > 1 else "all"
    what = "bodies of different robots" if excess == "robots" else "bodies"
    note(None, f"contact between {what}: it would take {every} pairs of points and solids, more than {_MOST}; read "
         f"with fewer contact_points, or add a Contact for those that should touch")  # fmt: skip
    return excess


def _overrule_surfaces(solids: list[Usd.Prim]) -> None:
    """Enter friction and restitution of the materials of `solids` in the ledger as read: contact laws overrule them."""
    names = [row.name for what in _SURFACE for row in rows(what)]
    for bound in filter(None, map(bound_material, solids)):
        mark_read(bound, *names)


def _note_surfaces(others: list[BodyPrim], obstacles: dict[str, Usd.Prim], frame: StageUnits, note: Note) -> None:
    """Note coefficients that a contact law cannot express: static friction, and different values within one body."""
    for b in others:
        first = b.parts[0][0]
        said = read_friction(first, frame)[0], read_restitution(first, frame)
        for part, _ in b.parts[1:]:
            if (read_friction(part, frame)[0], read_restitution(part, frame)) != said:
                note(part, f"friction and restitution of its material; the whole body has those of {first.GetPath()}")
    solids = [p for b in others for p, _ in b.parts] + [p for prim in obstacles.values() for p in geometry_of(prim)]
    sticking = {}
    for prim in solids:
        slides, sticks = read_friction(prim, frame)[0], said_friction(prim, frame)[1]
        if sticks not in (None, slides):
            sticking[bound_material(prim).GetPath()] = bound_material(prim), slides, sticks
    for bound, slides, sticks in sticking.values():
        note(bound, f"physics:staticFriction = {sticks:g} of rigid bodies, which have one coefficient: the dynamic "
             f"one, {slides:g}")  # fmt: skip


def _restitution(prims: dict[str, Usd.Prim], frame: StageUnits, note: Note) -> dict[str, float]:
    """Coefficient of restitution of each body or obstacle whose material has such a coefficient, by name."""
    found, wrong = {}, {}
    for name, prim in prims.items():
        e = read_restitution(prim, frame)
        if e is not None and 0.0 <= e <= 1.0:
            found[name] = e
        elif e is not None:
            material = bound_material(prim)
            wrong[material.GetPath()] = material, e
    for material, e in wrong.values():
        note(material, f"physics:restitution = {e:g} is not in [0, 1]; its contacts have the damping of all others")
    return found


def _note_sunk(others: list[BodyPrim], obstacles: list[Obstacle], note: Note) -> None:
    """Note the bodies whose centre starts inside an obstacle, for example below a floor or behind a wall."""
    centers = np.array([b.now[:3, :3] @ (np.sum(b.body.shape.bounds, axis=0) / 2.0) + b.now[:3, 3] for b in others])
    for o in obstacles:
        lower, upper = o.shape.bounds
        near = np.flatnonzero(((centers > lower) & (centers < upper)).all(axis=1))
        depths = -signed_distance(o.shape, centers[near]) if len(near) else ()
        for k, depth in zip(near, depths, strict=True):
            if depth > 0.0:
                note(others[k].prim, f"it starts {depth:.3g} m deep in the obstacle {o.name!r}, which pushes it out; "
                     f"move one of them, or read with contact_points=0")  # fmt: skip


def _surfaces(others: list[BodyPrim], robot: dict[Sdf.Path, Sdf.Path], taken: set[str]) -> dict[str, str]:
    """Name of the surface of each body, by the name of the body.

    The surface is named after the material of the body, else after the robot if it has several bodies, else after the
    body.
    """
    found, used = {}, {}
    size: dict[Sdf.Path, int] = {}
    for b in others:
        first = robot[b.prim.GetPath()]
        size[first] = size.get(first, 0) + 1
    for b in others:
        material = bound_material(b.parts[0][0])
        first = robot[b.prim.GetPath()]
        if material is None and size[first] == 1:
            found[b.name] = b.name
            continue
        path, name = (material.GetPath(), read_name(material)) if material else (first, f"surface of {first.name}")
        if name in taken or used.setdefault(name, path) != path:
            name = str(path) if material else f"surface of {path}"
        found[b.name] = name
    return found
