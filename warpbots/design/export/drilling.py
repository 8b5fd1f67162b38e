"""Drilling: removes the cylinders and tubes of holes from solids."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpbots.design.export.holes import AxleHole, Drilled, TendonChannel
from warpbots.design.export.solids import MM, welded
from warpbots.scene import Joint, RigidBody, Scene, SceneError

if TYPE_CHECKING:
    from manifold3d import Manifold

__all__ = ["drill"]

_SIDES, _ARCS = 64, 32
"""Sides of a round hole, and of the ball at a bend of a channel."""

_BEYOND = 0.01
"""Extension of a hole at both ends, so that a hole that ends on a face leaves no film there [mm]."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Cut:
    """The cut of a hole in a part: the solid to remove, in the frame of the body [mm], and its description."""

    cutter: "Manifold"
    drilled: Drilled


def drill(
    solids: Mapping[str, "Manifold"], holes: Sequence[AxleHole | TendonChannel], scene: Scene
) -> dict[str, tuple["Manifold", tuple[Drilled, ...]]]:
    """The solids after drilling, and the cuts of the holes in each solid, by the name of the body.

    Args:
        solids: Solids of the bodies, in their frames [mm].
        holes: The holes; their bodies and joints must exist.
        scene: The scene.

    Raises:
        SceneError: A hole misses its part, or removes the whole part.
    """
    cuts: dict[str, list[_Cut]] = {name: [] for name in solids}
    for hole in holes:
        for cut in [_channel(hole, solids)] if isinstance(hole, TendonChannel) else _bores(hole, solids, scene):
            cuts[cut.drilled.part].append(cut)
    found = {}
    for name, solid in solids.items():
        for cut in cuts[name]:
            solid = solid - cut.cutter
        if not solid.volume() > 0.0:
            raise SceneError(f"RigidBody {name!r}: its holes leave nothing of it; make them narrower")
        found[name] = welded(solid) if cuts[name] else solid, tuple(cut.drilled for cut in cuts[name])
    return found


def _channel(channel: TendonChannel, solids: Mapping[str, "Manifold"]) -> _Cut:
    from manifold3d import Manifold, OpType

    points, width = MM * channel.points, MM * channel.diameter
    tubes = [_cylinder(a, b, width) for a, b in zip(points[:-1], points[1:], strict=True)]
    ball = Manifold.sphere(0.5 * width, _ARCS)
    tube = Manifold.batch_boolean([*tubes, *(ball.translate(tuple(p)) for p in points)], OpType.Add)
    volume = (solids[channel.body] ^ tube).volume()
    if not volume > 0.0:
        raise _missed(f"TendonChannel {channel.name!r}", channel.body)
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    return _Cut(tube, Drilled(channel, channel.body, width, volume, 0.0, length))


def _bores(hole: AxleHole, solids: Mapping[str, "Manifold"], scene: Scene) -> list[_Cut]:
    """The cuts of an axle hole in the child of its joint and, if the parent is printed, in the parent."""
    joint = next(j for j in scene.joints if j.name == hole.joint)
    bodies = {body.name: body for body in scene.rigid}
    cuts: list[_Cut] = []
    for name, wider in ((joint.child, hole.clearance), (joint.parent, -hole.grip)):
        if name is None or name not in solids:
            continue
        bore = _Bore(joint, bodies[name], solids[name], MM * (hole.diameter + wider))
        if hole.length is not None:
            ends = -0.5 * MM * hole.length, 0.5 * MM * hole.length
        else:
            ends = _span(bore.walls(), (cuts[0].drilled.start, cuts[0].drilled.end) if cuts else None)
        taken = bore.solid ^ bore.cylinder(*ends)
        if not taken.volume() > 0.0:
            raise _missed(f"AxleHole at {hole.joint!r}", name)
        along = bore.along(taken)
        drilled = Drilled(hole, name, bore.diameter, taken.volume(), float(along.min()), float(along.max()))
        cuts.append(_Cut(bore.cylinder(*ends), drilled))
    return cuts


def _span(walls: Sequence[tuple[float, float]], child: tuple[float, float] | None) -> tuple[float, float]:
    """Start and end of a hole along the axis [mm].

    It goes either through all walls, or only through walls beside the child.

    Args:
        walls: Start and end of each wall along the axis [mm].
        child: Start and end of the hole in the child [mm]; None if the hole is in the child itself and goes through all
            walls.
    """
    if child is not None:
        beside = [wall for wall in walls if wall[0] < child[1] and wall[1] > child[0]]
        after = [wall for wall in walls if wall[0] >= child[1]]
        before = [wall for wall in walls if wall[1] <= child[0]]
        walls = [*beside, *sorted(after)[:1], *sorted(before, key=lambda wall: wall[1])[-1:]]
    return min((low for low, _ in walls), default=0.0), max((high for _, high in walls), default=0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class _Bore:
    """The axis of a joint that passes through the solid of a body, and the diameter of the hole in this body [mm]."""

    joint: Joint
    body: RigidBody
    solid: "Manifold"
    diameter: float

    @property
    def origin(self) -> np.ndarray:
        """Origin of the joint in the frame of the body [mm], shape (3,)."""
        return MM * (np.array(self.joint.position) - self.body.position) @ np.array(self.body.rotation)

    @property
    def axis(self) -> np.ndarray:
        """Axis of the joint in the frame of the body, shape (3,)."""
        return np.array(self.joint.rotation) @ self.joint.axis @ np.array(self.body.rotation)

    def along(self, solid: "Manifold") -> np.ndarray:
        """Positions of the vertices of a solid along the axis, measured from the joint origin [mm], shape (n,)."""
        return (solid.to_mesh64().vert_properties[:, :3] - self.origin) @ self.axis

    def cylinder(self, start: float, end: float) -> "Manifold":
        """The solid of the hole between the positions `start` and `end` along the axis [mm]."""
        return _cylinder(self.origin + start * self.axis, self.origin + end * self.axis, self.diameter)

    def walls(self) -> list[tuple[float, float]]:
        """Start and end, along the axis, of each wall through which the axis passes [mm]."""
        along = self.along(self.solid)
        crossed = (self.solid ^ self.cylinder(float(along.min()), float(along.max()))).decompose()
        return [(float(a.min()), float(a.max())) for a in map(self.along, crossed)]


def _cylinder(start: np.ndarray, end: np.ndarray, diameter: float) -> "Manifold":
    """A prism that circumscribes a round cylinder, and is a little longer than the cylinder."""
    import trimesh
    from manifold3d import Manifold

    length, radius = float(np.linalg.norm(end - start)), 0.5 * diameter / np.cos(np.pi / _SIDES)
    if length == 0.0:
        return Manifold()
    axis = (end - start) / length
    pose = trimesh.geometry.align_vectors((0.0, 0.0, 1.0), axis)
    pose[:3, 3] = start - _BEYOND * axis
    return Manifold.cylinder(length + 2.0 * _BEYOND, radius, radius, _SIDES).transform(pose[:3])


def _missed(hole: str, part: str) -> SceneError:
    return SceneError(f"{hole} misses the part {part!r}; move it, or leave it out")
