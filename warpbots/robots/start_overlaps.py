"""Finds geoms that overlap at the start, with MuJoCo's collision detection."""

from warpbots.robots.mujoco_source import Source
from warpbots.robots.records import Keyframe

__all__ = ["overlaps_at"]

_OVERLAP = 0.01
"""Smallest depth that counts, divided by the radius of the smaller geom [1]."""


def overlaps_at(source: Source, start: Keyframe) -> dict[frozenset[int], float]:
    """Depths of the overlaps of pairs of geoms at the start [m], by the two indices; tiny overlaps are left out."""
    model, data = source.model, source.words.MjData(source.model)
    data.qpos[:] = start.qpos
    source.words.mj_kinematics(model, data)
    source.words.mj_comPos(model, data)
    source.words.mj_collision(model, data)
    found: dict[frozenset[int], float] = {}
    for geoms, distance in zip(data.contact.geom.tolist(), data.contact.dist.tolist(), strict=True):
        if -distance > _OVERLAP * min(model.geom_rbound[geoms]):
            found[frozenset(geoms)] = max(-distance, found.get(frozenset(geoms), 0.0))
    return found
