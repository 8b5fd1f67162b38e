"""Pairs of bodies that do not touch, because a scene lists its contact laws and none names both."""

import numpy as np

from warpbots.scene.scene import Scene

__all__ = ["unnamed_pairs"]


def unnamed_pairs(scene: Scene) -> np.ndarray:
    """Which pairs do not touch because `Scene.contacts` is given, and no law in it names both; none if it is None.

    Returns:
        A row for each rigid body, a column for each rigid body and then for each obstacle, shape (n, n + m), bool.
    """
    rigid = [{b.name, b.surface} - {None} for b in scene.rigid]
    names = [*rigid, *({o.name} for o in scene.obstacles)]
    unnamed = np.full((len(rigid), len(names)), scene.contacts is not None)
    for law in scene.laws:
        for one, other in ((law.points, law.solid), (law.solid, law.points)):
            unnamed[np.ix_([one in own for own in rigid], [other in own for own in names])] = False
    return unnamed
