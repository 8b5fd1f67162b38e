"""A warning about soft bodies that overlap at the start, where their matter counts twice."""

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Points, Scene, bars_of
from warpbots.user_warning import warn_user

__all__ = ["warn_of_overlap"]

_DEEP = 0.25
"""Depth of the middle of a cell in another body at which the bodies overlap [spacings]; they touch at -0.5."""


def warn_of_overlap(scene: Scene, body: np.ndarray, position: np.ndarray, volume: np.ndarray, spacing: float) -> bool:
    """Warn of two soft bodies that have matter in the same place; return whether there are any.

    Bodies of springs that attachments join may overlap, as an axle and its wheel do, and so may narrow bars.
    Balls of points overlap their neighbours; so points are sought in other bodies, but nothing in points.

    Args:
        scene: The scene.
        body: Index of the body of each cell or particle, shape (n,).
        position: Middle of each cell or particle at the start [m], shape (n, dim).
        volume: Volume of each cell or particle [m^dim], shape (n,).
        spacing: Distance between neighbouring middles [m].
    """
    joined = {name for a in scene.attachments for name in (a.first, a.second)}
    low, high = np.swapaxes([b.shape.bounds for b in scene.soft], 0, 1)
    meet = ((low[:, None] < high) & (low < high[:, None])).all(axis=-1) & ~np.eye(len(low), dtype=bool)
    for i, j in np.argwhere(meet):
        own, other = scene.soft[i], scene.soft[j]
        if {own.name, other.name} <= joined or isinstance(other.shape, Points):
            continue
        if any(bars_of(each.shape) is not None for each in (own, other)):
            continue
        near = np.flatnonzero((body == i) & ((position > low[j]) & (position < high[j])).all(axis=1))
        if not len(near):
            continue
        inside = near[signed_distance(other.shape, position[near]) < -_DEEP * spacing]
        if len(inside):
            share = volume[inside].sum() / volume[body == i].sum()
            warn_user(
                f"SoftBody {own.name!r} and SoftBody {other.name!r} overlap at the start: {100.0 * share:.3g} % of "
                f"{own.name!r} is inside {other.name!r}, around {position[inside].mean(axis=0).round(4).tolist()} m, "
                f"and the matter there counts twice; move them apart, so that they touch at most, or make them one "
                f"SoftBody with region_materials"
            )
            return True
    return False
