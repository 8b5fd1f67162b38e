"""A warning about rigid bodies that fall through what is below them because no law of contact names both."""

from collections.abc import Iterable

import numpy as np

from warpbots.scene import Obstacle, RigidBody, Scene, Servo, SoftBody, Torque
from warpbots.scene.motion_checks import changes_place
from warpbots.solvers.landing import Solid, landing
from warpbots.solvers.scene_parts import immovable, is_in

__all__ = ["floating", "missing_law"]

Falls = dict[str, tuple[float, RigidBody, Solid]]
"""Length of the fall [m], body and solid, by the name of the body."""

_SINKS = 0.01
"""Least height of bound matter above the lowest point of a body that counts as a foot [largest extent of the body]."""


def missing_law(scene: Scene, matter: tuple[SoftBody, ...] = (), held: tuple[SoftBody, ...] = ()) -> str | None:
    """A warning that names a body that nothing holds above a solid, and the line that adds the law; None without.

    Only bodies that fall for certain are named. No joint connects them to the world, no matter is bound to them or is
    below them. They fall through an obstacle if no law makes them touch an obstacle or bodies that are not connected to
    them. A loose body falls through a rigid body at rest below it if no law names both. A body to which matter is bound
    sinks into an obstacle if it is lower than this matter, as a foot is.

    Args:
        scene: Scene of rigid bodies.
        matter: Soft bodies beside them.
        held: Those of them that a constraint holds.
    """
    if not np.any(scene.gravity):
        return None
    obstacles = [o for o in scene.obstacles if not changes_place(o, scene.actuators)]
    trees = [(tree, _bound(tree, matter)) for tree in floating(scene)]
    bare = [tree for tree, bound in trees if not bound]
    falls = _through_obstacles(scene, bare, matter, obstacles) | _through_bodies(scene, bare, matter, obstacles)
    loose = [body for tree, _ in trees for body in tree]
    held = (*held, *_bound([body for body in scene.rigid if body not in loose], matter))
    for tree, bound in trees:
        if bound and not _touches(scene, tree) and not any(soft in held for soft in bound):
            falls |= _feet(scene, tree, bound, [o for o in matter if o not in bound], obstacles)
    if not falls:
        return None
    _, body, solid = min(falls.values(), key=lambda each: each[0])
    more = f", and {len(falls) - 1} more bodies likewise" if len(falls) > 1 else ""
    points = "" if body.points else ", and the body points, such as RigidBody(..., points=32)"
    return (
        f"RigidBody {body.name!r} falls through {type(solid).__name__} {solid.name!r}, because no Contact names both"
        f"{more}; give the scene "
        f"contacts=[wb.Contact({body.name!r}, {solid.name!r}, 1e8, 1e9, friction=0.5, viscosity=1e7)]{points}"
    )


def _through_obstacles(
    scene: Scene, trees: list[list[RigidBody]], matter: tuple[SoftBody, ...], obstacles: list[Obstacle]
) -> Falls:
    """Bodies of trees that nothing holds above an obstacle."""
    falls: Falls = {}
    for tree in trees:
        if not _touches(scene, tree):
            landed = [
                (*landing(scene, _middle(scene, body), [*matter, *obstacles]), body)
                for body in tree
                if body.shape is not None
            ]
            if all(solid is None or isinstance(solid, Obstacle) for _, solid, _ in landed):
                falls |= {body.name: (way, body, solid) for way, solid, body in landed if solid is not None}
    return falls


def _through_bodies(
    scene: Scene, trees: list[list[RigidBody]], matter: tuple[SoftBody, ...], obstacles: list[Obstacle]
) -> Falls:
    """Loose bodies above a rigid body that is fixed, or loose and at rest, and that no law names with them."""
    loose = [tree[0] for tree in trees if len(tree) == 1 and _starts_at_rest(scene, tree[0])]
    fixed = [b for b, still in zip(scene.rigid, immovable(scene), strict=True) if still and b.shape is not None]
    solids, falls = [*loose, *fixed], Falls()
    for body, under in zip(loose, _are_under(scene, solids, loose), strict=True):
        below = [int(k) for k in np.flatnonzero(under) if solids[k] is not body]
        resting = [solids[k] for k in below if k >= len(loose) or _rests(scene, solids[k], matter)]
        if resting:
            way, solid = landing(scene, _middle(scene, body), [*matter, *obstacles, *resting])
            if isinstance(solid, RigidBody) and not _names_both(scene, body, solid):
                falls[body.name] = way, body, solid
    return falls


def _are_under(scene: Scene, solids: list[RigidBody], bodies: list[RigidBody]) -> np.ndarray:
    """Whether the middle of a falling body passes through the ball around a solid, shape (bodies, solids), bool."""
    low, high = np.reshape([b.bounds for b in solids], (-1, 2, 3)).swapaxes(0, 1)[..., : scene.dim]
    middle = np.reshape([np.mean(b.bounds, axis=0) for b in bodies], (-1, 1, 3))[..., : scene.dim]
    way = (low + high) / 2.0 - middle
    down = np.array(scene.gravity) / np.linalg.norm(scene.gravity)
    ahead, radius = way @ down, np.linalg.norm(high - low, axis=1) / 2.0
    return (ahead > -radius) & (np.linalg.norm(way - ahead[..., None] * down, axis=2) < radius)


def _bound(tree: list[RigidBody], matter: tuple[SoftBody, ...]) -> list[SoftBody]:
    """The soft bodies that are bound to one of the bodies."""
    return [soft for soft in matter if any(is_in(body, soft) for body in tree if body.shape is not None)]


def _feet(
    scene: Scene, tree: list[RigidBody], bound: list[SoftBody], others: list[SoftBody], obstacles: list[Obstacle]
) -> Falls:
    """Bodies above an obstacle that reach lower than the matter that is bound to their tree."""
    down = np.array(scene.gravity) / np.linalg.norm(scene.gravity)

    def lowest(bounds: np.ndarray) -> float:
        low, high = (corner[: scene.dim] for corner in bounds)
        return float(np.maximum(low * down, high * down).sum())

    falls: Falls = {}
    matter = max(lowest(soft.shape.bounds) for soft in bound)
    for body in tree:
        if body.shape is not None and lowest(body.bounds) > matter + _SINKS * np.ptp(body.bounds, axis=0).max():
            way, solid = landing(scene, _middle(scene, body), [*others, *obstacles])
            if isinstance(solid, Obstacle):
                falls[body.name] = way, body, solid
    return falls


def _starts_at_rest(scene: Scene, body: RigidBody) -> bool:
    """Whether a loose body with a shape starts without velocity, so that it falls straight down."""
    own = (j for j in scene.joints if j.child == body.name)
    return body.shape is not None and not any(np.any(j.start_velocity) for j in own)


def _rests(scene: Scene, body: RigidBody, matter: tuple[SoftBody, ...]) -> bool:
    """Whether a loose body comes to rest on matter, or on what a law makes it touch."""
    return _touches(scene, [body]) or isinstance(landing(scene, _middle(scene, body), matter)[1], SoftBody)


def _names_both(scene: Scene, first: RigidBody, second: RigidBody) -> bool:
    """Whether a law names two bodies."""
    a, b = _names([first]), _names([second])
    return any((c.points in a and c.solid in b) or (c.points in b and c.solid in a) for c in scene.laws)


def floating(scene: Scene) -> list[list[RigidBody]]:
    """Bodies that are connected by joints, for each set of them that no joint connects to the world."""
    held = {a.joint for a in scene.actuators if isinstance(a, Servo | Torque)}
    held |= {j.name for j in scene.joints if j.start is not None or np.any(j.stiffness)}
    floats = {2: "free_2d", 3: "free"}[scene.dim]
    free = {j.child for j in scene.joints if j.parent is None and j.kind == floats and j.name not in held}
    parents = {j.child: j.parent for j in scene.joints if j.child not in free}
    trees: dict[str, list[RigidBody]] = {}
    for body in scene.rigid:
        root = body.name
        while parents.get(root) is not None:
            root = parents[root]
        if root not in parents:
            trees.setdefault(root, []).append(body)
    return list(trees.values())


def _touches(scene: Scene, tree: list[RigidBody]) -> bool:
    """Whether a law makes bodies of `tree` touch anything else."""
    own, rest = _names(tree), _names(b for b in scene.rigid if b not in tree) | {o.name for o in scene.obstacles}
    return any({a, b} & own and {a, b} & rest for a, b in ((c.points, c.solid) for c in scene.laws))


def _names(bodies: Iterable[RigidBody]) -> set[str]:
    return {name for b in bodies for name in (b.name, b.surface) if name is not None}


def _middle(scene: Scene, body: RigidBody) -> np.ndarray:
    return np.mean(body.bounds, axis=0)[: scene.dim]
