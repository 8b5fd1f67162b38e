"""Which contact law names which pair of bodies: its friction is the friction of the pair."""

import itertools

import numpy as np

from warpbots.scene import Scene, SceneError

__all__ = ["laws_of_pairs", "names_both"]


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
    for law, contact in enumerate(scene.contacts):
        sides = [[i for i, own in enumerate(names) if name in own] for name in (contact.points, contact.solid)]
        for i, j in itertools.product(*sides):
            first = scene.contacts[table[i, j]]
            if table[i, j] < 0:
                table[i, j] = table[j, i] = law
            elif first.friction != contact.friction:
                raise SceneError(
                    f"Contact {first.name!r} and {contact.name!r} name the same pair, with friction "
                    f"{first.friction:g} and {contact.friction:g}; ProjectiveDynamics has one coefficient for a pair: "
                    f"give both the same, or leave one out"
                )
    return table


def names_both(scene: Scene, one: str, other: str) -> bool:
    """Whether a contact law names both of two bodies: then they touch even if they are neighbours at a joint."""
    return any({c.points, c.solid} == {one, other} for c in scene.contacts)
