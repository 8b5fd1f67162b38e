"""A warning about rigid bodies that fall through an obstacle because no law of contact names both."""

from collections.abc import Iterable

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Obstacle, RigidBody, Scene, Servo, SoftBody, Torque
from warpbots.scene.motion_checks import changes_place
from warpbots.solvers.scene_parts import is_in

__all__ = ["missing_law"]

_STRIKES = 1e-4
"""Distance at which a falling point counts as having reached a solid [m]."""

_STEPS = 200
"""Largest number of steps of a ray."""

_FAR = 100.0
"""Length of a ray [m]."""


def missing_law(scene: Scene, matter: tuple[SoftBody, ...] = ()) -> str | None:
    """A warning that names a body that nothing holds above an obstacle, and the line that adds the law; None without.

    Only bodies that fall for certain are named: no joint connects them to the world, no law makes them touch an
    obstacle or bodies that are not connected to them, no matter is bound to them, and there is none below them.

    Args:
        scene: Scene of rigid bodies.
        matter: Soft bodies beside them.
    """
    if not np.any(scene.gravity):
        return None
    falls = []
    for tree in _floating(scene):
        bound = any(is_in(body, soft) for body in tree if body.shape is not None for soft in matter)
        if not (bound or _touches(scene, tree)):
            landed = [(*_landing(scene, body, matter), body) for body in tree if body.shape is not None]
            if all(solid is None or isinstance(solid, Obstacle) for _, solid, _ in landed):
                falls += [(way, solid, body) for way, solid, body in landed if solid is not None]
    if not falls:
        return None
    _, obstacle, body = min(falls, key=lambda each: each[0])
    more = f", and {len(falls) - 1} more bodies likewise" if len(falls) > 1 else ""
    points = "" if body.points else ", and the body points, such as RigidBody(..., points=32)"
    return (
        f"RigidBody {body.name!r} falls through Obstacle {obstacle.name!r}, because no Contact names both{more}; give "
        f"the scene contacts=[wb.Contact({body.name!r}, {obstacle.name!r}, 1e8, 1e9, friction=0.5, viscosity=1e7)]"
        f"{points}"
    )


def _floating(scene: Scene) -> list[list[RigidBody]]:
    """Bodies that are connected by joints, for each set of them that no joint connects to the world."""
    held = {a.joint for a in scene.actuators if isinstance(a, Servo | Torque)}
    held |= {j.name for j in scene.joints if j.start is not None or np.any(j.stiffness)}
    free = {j.child for j in scene.joints if j.parent is None and j.kind == "free" and j.name not in held}
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


def _landing(scene: Scene, body: RigidBody, matter: tuple[SoftBody, ...]) -> tuple[float, Obstacle | SoftBody | None]:
    """Length of the fall of the middle of a body [m], and the solid on which it lands; infinity and None without one.

    The solids are obstacles that do not move, and soft bodies. A body that starts in a solid does not land.
    """
    solids = [*matter, *(o for o in scene.obstacles if not changes_place(o, scene.actuators))]
    x = np.mean(body.bounds, axis=0)
    down, way = np.array(scene.gravity) / np.linalg.norm(scene.gravity), 0.0
    for _ in range(_STEPS):
        distances = [float(signed_distance(s.shape, (x + way * down)[None])[0]) for s in solids]
        least = min(distances, default=np.inf)
        if least < _STRIKES:
            return (way, solids[int(np.argmin(distances))]) if way > 0.0 else (np.inf, None)
        way += least
        if way > _FAR:
            break
    return np.inf, None
