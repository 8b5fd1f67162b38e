"""Collisions of printed parts within the ranges of their joints.

Two parts collide if a point of one part lies deeper in the other part than a tolerance. This is the case if the first
part touches the *core* of the other part: the part without all points within the tolerance of its surface (a Minkowski
difference). Surfaces may therefore touch and slide. If the distance to the core is d in one pose, then no pose in which
all points have moved by less than d is a collision. A point moves by at most the sum, over all coordinates, of the
change of the coordinate times the reach of the coordinate (conservative advancement, Mirtich 1996; adaptive bisection,
Schwarzer, Saha & Latombe 2005). Therefore no collision between the visited poses is missed.
"""

import dataclasses
import functools
import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.design.export.motion import JointPath, moves_of, path_between
from warpbots.design.export.parts import PrintedPart
from warpbots.scene import Scene, SceneError
from warpbots.scene.field_types import checked

if TYPE_CHECKING:
    from manifold3d import Manifold

__all__ = ["Collision", "Sweep", "sweep"]

_NEAR = 1.0
"""Largest distance that is measured [mm]; larger ones are slow to measure."""

_SAMPLES = 12
"""Poses after the start of a collision, of which the one with the largest overlap is reported."""


@dataclasses.dataclass(frozen=True)
class Collision:
    """Two parts that collide.

    Attributes:
        first: Name of one part.
        second: Name of the other part.
        begins: Text with the joint coordinates at which the collision begins, on the path from zero.
        volume: Largest overlapping volume after the beginning of the collision, on the section of the path that was
            followed [mm^3].
        at: Text with the joint coordinates at which the overlapping volume is largest.
        moves: Whether a joint between the parts can move.
    """

    first: str
    second: str
    begins: str
    volume: float
    at: str
    moves: bool


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The result of moving all joints through their ranges.

    Attributes:
        collisions: Pairs of parts that collide. A pair with a single joint coordinate between its two bodies may occur
            twice, once for each direction of motion.
        undecided: For each pair of parts for which the number of poses was not sufficient, the fraction of the joint
            ranges that is undecided [1].
        notes: Notes about ranges that were assumed, and about floating bodies, which were not compared with other
            bodies.
    """

    collisions: tuple[Collision, ...]
    undecided: dict[tuple[str, str], float]
    notes: tuple[str, ...]


@checked
def sweep(
    scene: Scene,
    parts: Sequence[PrintedPart],
    ranges: Mapping[str, tuple[Any, Any]] | None = None,
    tolerance: float = 0.05,
    poses: int = 400,
) -> Sweep:
    """Move all joints of a scene through their ranges, and compare every pair of parts.

    If one joint coordinate lies between the two parts, it is followed from zero, or from the limit nearest to zero, to
    each of its limits. If several coordinates lie between the parts, their ranges are bisected, starting with the boxes
    of coordinates in which a collision is most likely.

    Args:
        scene: The scene.
        parts: The printed parts of the scene.
        ranges: Lower and upper ends of the coordinates of a joint [rad or m], by the name of the joint; they replace
            the limits of the joint. Without range and limits a hinge turns by 180 degrees to both sides, and a
            prismatic joint moves by 10 mm to both sides. The coordinates of a ball joint are the components of its
            rotation vector, by default 45 degrees to both sides.
        tolerance: Depth from which an overlap counts as a collision [mm]. A part that is nowhere thicker than twice
            this depth collides if it touches another part.
        poses: Largest number of poses for which the distance of a pair with several coordinates is computed.

    Raises:
        SceneError: `ranges` names a joint that does not exist or does not move, the two ends are not a range, or
            `tolerance` or `poses` is not positive.
    """
    for name, value in (("tolerance", tolerance), ("poses", poses)):
        if not value > 0:
            raise SceneError(f"sweep: {name} must be positive, got {value:g}")
    _refuse_ranges(scene, ranges or {})
    found = {joint.name: moves_of(joint, ranges) for joint in scene.joints}
    moves = {name: own for name, (own, _) in found.items()}
    notes = [note for _, note in found.values() if note is not None]
    collisions: list[Collision] = []
    undecided: dict[tuple[str, str], float] = {}
    apart = []
    core = functools.cache(lambda k: _core(parts[k].placed, tolerance))
    for (k, a), (_, b) in itertools.combinations(enumerate(parts), 2):
        path = path_between(a.name, b.name, scene, moves)
        if path is None:
            apart.append(f"{a.name!r} and {b.name!r}")
            continue
        pair = _Pair(a.placed, b.placed, path, tolerance, functools.partial(core, k))
        ways, left = pair.collisions(poses)
        collisions += [pair.collision(a.name, b.name, start, first, end) for start, first, end in ways]
        if left:
            undecided[a.name, b.name] = left
    if apart:
        notes.append(f"No joint but a free one connects {', '.join(apart)}: they were not compared.")
    return Sweep(tuple(collisions), undecided, tuple(notes))


def _refuse_ranges(scene: Scene, ranges: Mapping[str, tuple[Any, Any]]) -> None:
    """Raise if a range is invalid, or names a joint that does not exist."""
    joints = {j.name: j for j in scene.joints}
    for name, ends in ranges.items():
        joint = joints.get(name)
        if joint is None or joint.kind in ("fixed", "free"):
            moving = ", ".join(j.name for j in scene.joints if j.kind not in ("fixed", "free")) or "none"
            raise SceneError(f"ranges: there is no joint {name!r} that has a range; the scene has {moving}")
        lower, upper = (np.asarray(end, np.float64) for end in ends)
        fits = all(end.shape in ((), (1,), (joint.freedom,)) and np.isfinite(end).all() for end in (lower, upper))
        if not fits or (lower > upper).any():
            raise SceneError(
                f"ranges[{name!r}] must be a lower and an upper end, one or {joint.freedom} numbers each, lower not "
                f"above upper, got {ends!r}"
            )


_Way = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Coordinates of the start of a path, of the start of a collision on it, and of the end of the path."""


def _core(solid: "Manifold", depth: float) -> "Manifold":
    """The part of a solid that is deeper than `depth` below its surface [mm]; the whole solid if that part is empty."""
    from manifold3d import Manifold

    core = solid.minkowski_difference(Manifold.sphere(depth, 8)).simplify(0.1 * depth)
    return solid if core.is_empty() else core


class _Pair:
    """Two parts and the joints between them; a pose is the pose of the second part relative to the first part.

    Attributes:
        reach: Largest displacement of a point of the parts per unit of each joint coordinate [mm/rad or 1], shape (n,).
        inner: The core of the first part; None before its first use.
    """

    def __init__(
        self,
        first: "Manifold",
        second: "Manifold",
        path: JointPath,
        tolerance: float,
        core: Callable[[], "Manifold"],
    ):
        self.first, self.second, self.path, self.tolerance, self.core = first, second, path, tolerance, core
        self.inner: Manifold | None = None
        a, b = (np.asarray(s.to_mesh64().vert_properties[:, :3]) for s in (first, second))
        self.reach = path.reach(a, b)
        axes = [axis for m in path.moves for axis in m.axes]
        self.directions = np.array([*_DIRECTIONS, *axes, *(-axis for axis in axes)])
        self.edge = (a @ self.directions.T).max(axis=0)
        self.corners = np.asarray(second.hull().to_mesh64().vert_properties[:, :3])

    def moved(self, q: np.ndarray) -> "Manifold":
        """The second part in its pose at the joint coordinates `q`."""
        return self.second.transform(self.path.pose(q)[:3])

    def bound(self, q: np.ndarray) -> float:
        """A lower bound of the distance between the parts [mm]: the widest gap between them along some directions."""
        pose = self.path.pose(q)
        corners = self.corners @ pose[:3, :3].T + pose[:3, 3]
        return float(((corners @ self.directions.T).min(axis=0) - self.edge).max())

    def freedom(self, q: np.ndarray) -> float:
        """A lower bound of the distance from the second part to the core of the first part [mm], 0 only if they touch.

        Until the parts have touched once, the bound is the distance to the first part itself, because cores are slow to
        compute.
        """
        if (bound := self.bound(q)) >= _NEAR:
            return bound
        moved = self.moved(q)
        if self.inner is None:
            if (gap := self.first.min_gap(moved, _NEAR)) > 0.0:
                return float(gap)
            self.inner = self.core()
        return float(self.inner.min_gap(moved, _NEAR))

    def touches(self, q: np.ndarray) -> bool:
        """Whether the distance of the parts is below a tenth of the tolerance."""
        least = 0.1 * self.tolerance
        return self.bound(q) < least and self.first.min_gap(self.moved(q), least) < least

    def collisions(self, poses: int) -> tuple[list[_Way], float]:
        """Paths from zero on which the parts collide, and the fraction of the joint ranges that remains undecided."""
        lower, upper = self.path.lower, self.path.upper
        zero = np.clip(np.zeros(len(lower)), lower, upper)
        if self._slides_past():
            return [], 0.0
        if self.freedom(zero) == 0.0:
            return [(zero, zero, zero)], 0.0
        if len(zero) <= 1:
            ends, left = [lower, upper][: 2 * len(zero)], 0.0
        else:
            end, left = self._search(poses)
            ends = [] if end is None else [end]
        begins = [(end, self._begin(zero, end)) for end in ends]
        return [(zero, first, end) for end, first in begins if first is not None], left

    def _slides_past(self) -> bool:
        """Whether no joint moves points along a certain axis, and the parts do not overlap along this axis."""
        turning = [axis for m in self.path.moves if m.turns for axis in m.axes]
        sliding = [axis for m in self.path.moves if not m.turns for axis in m.axes]
        for axis in turning[:1]:
            parallel = all(np.linalg.norm(np.cross(axis, other)) < 1e-9 for other in turning)
            if parallel and all(abs(axis @ other) < 1e-9 for other in sliding):
                ahead = (self.corners @ axis).min() - self.edge[self._index(axis)]
                behind = (self.corners @ -axis).min() - self.edge[self._index(-axis)]
                return bool(max(ahead, behind) > -self.tolerance)
        return False

    def _index(self, direction: np.ndarray) -> int:
        return int((self.directions @ direction).argmax())

    def _begin(self, start: np.ndarray, end: np.ndarray) -> np.ndarray | None:
        """Joint coordinates at which the first collision on a straight path begins, or None.

        If the parts were apart before, the collision begins where they first touch; otherwise it begins where the
        overlap becomes too deep.
        """
        length = float(self.reach @ np.abs(end - start))
        visited = [0.0]
        while (freedom := self.freedom(start + visited[-1] * (end - start))) > 0.0:
            if visited[-1] == 1.0 or length == 0.0:
                return None
            visited.append(min(1.0, visited[-1] + max(freedom, 0.1 * self.tolerance) / length))
        accuracy = 0.01 * self.tolerance / length
        apart = [k for k, s in enumerate(visited) if not self.touches(start + s * (end - start))]
        if apart:
            found = _first(lambda s: self.touches(start + s * (end - start)), *visited[apart[-1] :][:2], accuracy)
        else:
            found = _first(lambda s: self.freedom(start + s * (end - start)) == 0.0, *visited[-2:], accuracy)
        return start + found * (end - start)

    def _search(self, poses: int) -> tuple[np.ndarray | None, float]:
        """Coordinates at which the parts collide, or None, and the fraction of the joint ranges that is undecided."""
        lower, upper = self.path.lower, self.path.upper
        boxes: list[tuple[float, int, np.ndarray, np.ndarray]] = [(0.0, 0, lower, upper)]
        computed = visited = 0
        while boxes and computed < poses and visited < 50 * poses:
            _, _, low, high = heapq.heappop(boxes)
            visited += 1
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            motion, bound = float(self.reach @ half), self.bound(middle)
            if bound < _NEAR and bound <= motion:
                computed += 1
                bound = self.freedom(middle)
                if bound == 0.0:
                    return middle, 0.0
            if bound > motion or motion <= 0.1 * self.tolerance:
                continue
            cut = int((self.reach * half).argmax())
            for side in (0, 1):
                ends = low.copy(), high.copy()
                ends[1 - side][cut] = middle[cut]
                heapq.heappush(boxes, (bound - motion, 2 * visited + side, *ends))
        whole = np.prod(upper - lower)
        return None, float(sum(np.prod(high - low) for _, _, low, high in boxes) / whole)

    def collision(self, first: str, second: str, start: np.ndarray, begins: np.ndarray, end: np.ndarray) -> Collision:
        """The `Collision` of the parts `first` and `second` on a path from `start` to `end`."""
        way = [begins + s * (end - begins) for s in np.linspace(0.0, 1.0, _SAMPLES)] if (end != begins).any() else [end]
        volumes = [float((self.first ^ self.moved(q)).volume()) for q in way]
        worst, told = int(np.argmax(volumes)), self.path.described
        return Collision(first, second, told(begins), volumes[worst], told(way[worst]), bool(len(start)))


def _first(holds: Callable[[float], bool], low: float, high: float, accuracy: float) -> float:
    """The point between `low` and `high` from which on `holds` is true, by bisection.

    `holds` must be true at `high`.
    """
    while high - low > accuracy:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


_DIRECTIONS = np.array([d for d in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(d)])
_DIRECTIONS /= np.linalg.norm(_DIRECTIONS, axis=1)[:, None]
