"""Warning about boxes whose contact points are so far apart that another box fits between them."""

import numpy as np

from warpbots.contact.solid_forms import closed_form
from warpbots.scene import Cloud, Scene, Shape
from warpbots.solvers.articulated.contact_topology import Touching
from warpbots.solvers.articulated.point_cloud import box_grid
from warpbots.user_warning import warn_user

__all__ = ["warn_of_sparse_boxes"]

_MOST = 10_000
"""Largest number of contact points of a body that a message advises."""


def warn_of_sparse_boxes(scene: Scene, found: Touching) -> None:
    """Warn about two boxes whose faces may touch without a contact point of either box within the face of the other.

    Crossed edges exert a force along their common normal, but edges that lie within two faces in contact exert no
    force. So contact points carry the whole load of touching faces. If no point lies within the faces, one box falls
    through the other box. This cannot happen if the points of one box are closer together than the width of the
    broadest face of the other box.

    Args:
        scene: The scene.
        found: Groups of points and solids of the scene that may be in contact.
    """
    pairs = [(pair.crossed, pair.solid) for pair in found.pairs if pair.crossed >= 0]
    spacing, width = {}, {}
    for s in {s for pair in pairs for s in pair}:
        body, shape, _ = found.solids[s]
        size = 2.0 * closed_form(shape).size
        count = scene.rigid[body].points if body >= 0 else 0
        spacing[s], width[s] = _spacing(size, 0 if isinstance(count, Cloud) else count), np.sort(size)[1]

    def looseness(pair: tuple[int, int]) -> float:
        a, b = pair
        return min(spacing[a] / width[b], spacing[b] / width[a])

    worst = max(pairs, key=looseness, default=None)
    if worst is None or looseness(worst) < 1.0 - 1e-9:
        return
    names = [found.solids[s][2] for s in worst]
    a, b = worst if found.solids[worst[0]][0] >= 0 else worst[::-1]  # an obstacle has no number of points
    warn_user(
        f"boxes {names[0]!r} and {names[1]!r} may fall through each other face on face: contact points of "
        f"{found.solids[a][2]!r} are {spacing[a]:.2g} m apart, and the broadest face of {found.solids[b][2]!r} is "
        f"{width[b]:.2g} m wide; {_remedy(*found.solids[a][1:], width[b])}"
    )


def _spacing(size: np.ndarray, count: int) -> float:
    """Greatest distance between neighbouring points in the grid of `count` points on a box of the given size [m]."""
    grid = box_grid(-size / 2.0, size / 2.0, max(count, 8))
    return max(float(np.diff(np.unique(axis)).max()) for axis in grid.T)


def _remedy(shape: Shape, name: str, width: float) -> str:
    """Advice for a warning: a number of points of the box `name` whose neighbours are closer than `width` [m]."""
    size = 2.0 * closed_form(shape).size
    for count in np.unique(np.geomspace(8, _MOST, 60).astype(int)):
        if _spacing(size, count) < width:
            return f"use points={count} or more for {name!r}"
    return f"give {name!r} a Cloud that is denser where they meet"
