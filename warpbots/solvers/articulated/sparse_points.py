"""Boxes whose contact points are farther apart than faces are wide, so that one passes between those of another."""

import numpy as np

from warpbots.contact.solid import closed_form
from warpbots.scene import Scene
from warpbots.solvers.articulated.contact_topology import Touching
from warpbots.solvers.articulated.point_cloud import box_grid
from warpbots.user_warning import warn_user

__all__ = ["warn_of_sparse_boxes"]

_MOST = 10_000
"""Contact points of a body up to which a number of them is advised."""


def warn_of_sparse_boxes(scene: Scene, found: Touching) -> None:
    """Warn of two boxes, face on face, of which neither may have a contact point in the face of the other.

    Edges that cross act along their common normal, and those of faces that lie on one another have none. There points
    alone carry, and one box falls through the other where all of them miss. That cannot be if the points of one are
    nearer to one another than the broadest face of the other is wide.

    Args:
        scene: What is simulated.
        found: What may be in contact in it.
    """
    worst, said = 1.0 - 1e-9, ""
    for pair in found.pairs:
        if pair.crossed < 0:
            continue
        boxes = [found.solids[s] for s in (pair.crossed, pair.solid)]
        sizes = [2.0 * closed_form(shape).size for _, shape, _ in boxes]
        counts = [scene.rigid[body].points if body >= 0 else 0 for body, _, _ in boxes]
        ratios = [_spacing(sizes[i], counts[i]) / np.sort(sizes[1 - i])[1] for i in range(2)]
        if min(ratios) > worst:
            worst, i = min(ratios), int(np.argmax([body >= 0 for body, _, _ in boxes]))
            said = (
                f"boxes {boxes[0][2]!r} and {boxes[1][2]!r} may fall through each other face on face: contact points "
                f"of {boxes[i][2]!r} are {_spacing(sizes[i], counts[i]):.2g} m apart, and the broadest face of "
                f"{boxes[1 - i][2]!r} is {np.sort(sizes[1 - i])[1]:.2g} m wide; {_remedy(boxes, sizes, i)}"
            )
    if said:
        warn_user(said)


def _spacing(size: np.ndarray, count: int) -> float:
    """Greatest distance of neighbours in the grid of points on a box [m]."""
    grid = box_grid(-size / 2.0, size / 2.0, max(count, 8))
    return max(float(np.diff(np.unique(axis)).max()) for axis in grid.T)


def _remedy(boxes: list[tuple], sizes: list[np.ndarray], i: int) -> str:
    """How many points suffice."""
    for count in np.unique(np.geomspace(8, _MOST, 60).astype(int)):
        if _spacing(sizes[i], count) < np.sort(sizes[1 - i])[1]:
            return f"use points={count} or more for {boxes[i][2]!r}"
    return f"give {boxes[i][2]!r} a Cloud that is denser where they meet"
