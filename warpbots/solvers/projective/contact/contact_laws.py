"""Which contact law names which pair of bodies: its friction is the friction of the pair. Who touches without one."""

import itertools

import numpy as np

from warpbots.scene import Scene, SceneError, unnamed_pairs

__all__ = ["friction_alone", "laws_of_pairs", "names_both", "unnamed_obstacles"]


def laws_of_pairs(scene: Scene, bones: np.ndarray) -> np.ndarray:
    """Index of the `Contact` law of every pair of bodies, -1 for none, shape (n, n), int.

    Bodies are soft bodies, then bones with a surface, then obstacles. A law names a body by its name or its surface.

    Args:
        scene: The scene.
        bones: Indices in `Scene.rigid` of the bones with a surface, ascending.

    Raises:
        SceneError: Laws that name the same pair differ in friction.
    """
    rigid = [{scene.rigid[k].name, scene.rigid[k].surface} for k in bones]
    names = [*({b.name} for b in scene.soft), *rigid, *({o.name} for o in scene.obstacles)]
    table = np.full((len(names),) * 2, -1)
    for law, contact in enumerate(scene.laws):
        sides = [[i for i, own in enumerate(names) if name in own] for name in (contact.points, contact.solid)]
        for i, j in itertools.product(*sides):
            first = scene.laws[table[i, j]]
            if table[i, j] < 0:
                table[i, j] = table[j, i] = law
            elif first.friction != contact.friction:
                raise SceneError(
                    f"Contact {first.name!r} and {contact.name!r} name the same pair, with friction "
                    f"{first.friction:g} and {contact.friction:g}; ProjectiveDynamics has one coefficient for a pair: "
                    f"give both the same, or leave one out"
                )
    return table


def unnamed_obstacles(scene: Scene, bodies: np.ndarray) -> str | None:
    """A warning that names an obstacle that no rigid body touches for want of a law, and two remedies; None without.

    Args:
        scene: The scene.
        bodies: Indices of the rigid bodies that move and have a surface outside of soft bodies, shape (n,), int.
    """
    unnamed = unnamed_pairs(scene)[bodies, len(scene.rigid) :].all(axis=0)
    if not len(bodies) or not unnamed.any():
        return None
    first, more = scene.obstacles[int(unnamed.argmax())], int(unnamed.sum()) - 1
    others = f", nor {more} more obstacles" if more else ""
    return (
        f"Obstacle {first.name!r}: rigid bodies pass through it, because Scene.contacts is given and no Contact in it "
        f"names this obstacle{others}; add wb.Contact({scene.rigid[bodies[0]].name!r}, {first.name!r}, 1e8, 1e9, "
        f"friction=0.5, viscosity=1e7), or give contacts=None, so that all bodies touch"
    )


def friction_alone(scene: Scene, bodies: np.ndarray) -> str | None:
    """A warning that names a rigid body whose laws all name soft bodies, so that it passes through obstacles.

    Soft bodies touch everything without a law, so these laws set friction alone; but as `Scene.contacts` is given, the
    body touches no obstacle that they do not name.

    Args:
        scene: The scene.
        bodies: Indices of the rigid bodies that move and have a surface outside of soft bodies, shape (n,), int.
    """
    soft, unnamed = {b.name for b in scene.soft}, unnamed_pairs(scene)
    for k in bodies:
        body, apart = scene.rigid[k], unnamed[k, len(scene.rigid) :]
        laws = [c for c in scene.laws if {c.points, c.solid} & {body.name, body.surface}]
        if laws and apart.all() and apart.size and all({c.points, c.solid} & soft for c in laws):
            obstacle = scene.obstacles[0].name
            return (
                f"RigidBody {body.name!r} passes through Obstacle {obstacle!r}: Contact {laws[0].name!r} sets the "
                f"friction on a soft body alone, which the body touches anyway, and Scene.contacts keeps apart what no "
                f"Contact names; add wb.Contact({body.name!r}, {obstacle!r}, 1e8, 1e9, friction=0.5, viscosity=1e7), "
                f"or give contacts=None, so that all bodies touch"
            )
    return None


def names_both(scene: Scene, one: str, other: str) -> bool:
    """Whether a contact law names both of two bodies: then they touch even if they are neighbours at a joint."""
    return any({c.points, c.solid} == {one, other} for c in scene.laws)
