"""Relative motion of the bodies of a scene within the ranges of their joints, in mm."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from warpbots.design.export.solids import MM
from warpbots.scene import JOINTS, Joint, Scene

__all__ = ["Move", "JointPath", "moves_of", "path_between"]

_TURN, _BALL, _SLIDE = np.pi, np.pi / 4.0, 10.0
"""Default range to both sides without limits: of a hinge and of a ball [rad], of a slide [mm]."""


@dataclasses.dataclass(frozen=True, eq=False)
class Move:
    """A rotation or a translation that a joint permits; its coordinates q are zero in the poses that the scene states.

    Attributes:
        joint: Name of the joint.
        turns: Whether the move is a rotation by the rotation vector ``q @ axes`` [rad]; otherwise it is a translation
            by the vector ``q @ axes`` [mm].
        origin: A point on the axis of the rotation, with all coordinates at zero [mm], shape (3,).
        axes: Unit vector of the axis of each coordinate, in the world frame with all coordinates at zero, shape (k, 3).
        lower: Lower end of the range of each coordinate [rad or mm], shape (k,).
        upper: Upper end of the range of each coordinate [rad or mm], shape (k,).
    """

    joint: str
    turns: bool
    origin: np.ndarray
    axes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def pose(self, q: np.ndarray) -> np.ndarray:
        """Transformation that moves points of the world by the move with coordinates `q`, shape (4, 4)."""
        pose = np.eye(4)
        if self.turns:
            pose[:3, :3] = Rotation.from_rotvec(q @ self.axes).as_matrix()
            pose[:3, 3] = self.origin - pose[:3, :3] @ self.origin
        else:
            pose[:3, 3] = q @ self.axes
        return pose

    @property
    def reach(self) -> float:
        """Largest displacement of a point by a translation [mm]; 0 for a rotation."""
        return 0.0 if self.turns else float(np.linalg.norm(np.maximum(-self.lower, self.upper)))


def moves_of(joint: Joint, ranges: Mapping[str, tuple[Any, Any]] | None = None) -> tuple[tuple[Move, ...], str | None]:
    """The moves of a joint, and a note on ranges that were assumed because the joint has no limits (None if it has).

    Args:
        joint: The joint; a free joint has no moves.
        ranges: Lower and upper ends of the coordinates of a joint [rad or m], by the name of the joint; they replace
            the limits of the joint.
    """
    moves, assumed, first = [], False, 0
    origin, R = MM * np.array(joint.position or np.zeros(3)), np.array(joint.rotation)
    for turns, axes in _steps(joint):
        count, scale = len(axes), 1.0 if turns else MM
        usual = (_TURN if count == 1 else _BALL) if turns else _SLIDE / MM
        given = (ranges or {}).get(joint.name, (joint.lower, joint.upper))
        ends = [_ends(end, first, count, s * usual) for end, s in zip(given, (-1.0, 1.0), strict=True)]
        assumed |= any(guessed for _, guessed in ends)
        moves.append(Move(joint.name, turns, origin, np.array(axes) @ R.T, scale * ends[0][0], scale * ends[1][0]))
        first += count
    return tuple(moves), _assumption(joint.name, moves) if assumed else None


def _steps(joint: Joint) -> list[tuple[bool, list[np.ndarray]]]:
    """Steps of the motion of a joint: for each step, whether it is a rotation, and its axes.

    Successive translations are one step.
    """
    steps: list[tuple[bool, list[np.ndarray]]] = []
    if joint.kind == "free":
        return steps
    for part in JOINTS[joint.kind].chain:
        axes = list(np.eye(3)) if part.type == "ball" else [part.direction(joint.axis)]
        turns = part.type != "prismatic"
        if steps and not turns and not steps[-1][0]:
            steps[-1][1].extend(axes)
        else:
            steps.append((turns, axes))
    return steps


def _ends(value: Any, first: int, count: int, usual: float) -> tuple[np.ndarray, bool]:
    """Lower or upper ends of the ranges of `count` coordinates, and whether one of these ends is not given.

    `value` holds the given ends of all coordinates of the joint; `first` is the index of the first coordinate to
    return. An end that is not given becomes `usual`.
    """
    values = np.atleast_1d(np.full(1, np.inf) if value is None else np.asarray(value, np.float64))
    values = np.broadcast_to(values, first + count)[first:] if len(values) == 1 else values[first : first + count]
    return np.where(np.isfinite(values), values, usual), not np.isfinite(values).all()


def _assumption(joint: str, moves: Sequence[Move]) -> str:
    ranges = [
        f"{_shown(low, m.turns)} to {_shown(high, m.turns)}"
        for m in moves
        for low, high in zip(m.lower, m.upper, strict=True)
    ]
    return f"Joint {joint!r} lacks limits: it was moved from {', '.join(ranges)}."


def _shown(value: float, turns: bool) -> str:
    return f"{np.degrees(value):.1f}°" if turns else f"{value:.2f} mm"


@dataclasses.dataclass(frozen=True, eq=False)
class JointPath:
    """The joints between two bodies.

    The coordinates of the moves `up` come first, followed by the coordinates of the moves `down`.

    Attributes:
        up: Moves of the joints from the last common ancestor of the two bodies to the first body.
        down: Moves of the joints from the last common ancestor to the second body.
    """

    up: tuple[Move, ...]
    down: tuple[Move, ...]

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves, in the order of their coordinates."""
        return self.up + self.down

    @property
    def lower(self) -> np.ndarray:
        """Lower ends of the ranges of all coordinates [rad or mm], shape (n,)."""
        return np.concatenate([np.zeros(0), *(m.lower for m in self.moves)])

    @property
    def upper(self) -> np.ndarray:
        """Upper ends of the ranges of all coordinates [rad or mm], shape (n,)."""
        return np.concatenate([np.zeros(0), *(m.upper for m in self.moves)])

    def pose(self, q: np.ndarray) -> np.ndarray:
        """Transformation of the second body, in world coordinates, while the first body does not move, shape (4, 4).

        The transformation is the inverse of the product of exponentials of the moves `up`, times the product of
        exponentials of the moves `down` (Brockett 1984).
        """
        parts = np.split(q, np.cumsum([len(m.axes) for m in self.moves])[:-1]) if self.moves else []
        poses = [m.pose(part) for m, part in zip(self.moves, parts, strict=True)]
        cut = len(self.up)
        first, second = (functools.reduce(np.matmul, p, np.eye(4)) for p in (poses[:cut], poses[cut:]))
        return np.linalg.solve(first, second)

    def reach(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Largest displacement of points of one body relative to the other, per unit of each coordinate [mm/rad or 1].

        Args:
            first: Vertices of the first body in the world with all coordinates at zero [mm], shape (n, 3).
            second: Vertices of the second body in the world with all coordinates at zero [mm], shape (m, 3).
        """
        chain = self.up[::-1] + self.down
        towards_second, towards_first = _radii(chain, second), _radii(chain[::-1], first)[::-1]
        radii = np.minimum(towards_second, towards_first)
        cut = len(self.up)
        ordered = [*radii[:cut][::-1], *radii[cut:]]
        counts = [len(m.axes) for m in self.moves]
        return np.repeat(ordered, counts) if counts else np.zeros(0)

    def described(self, q: np.ndarray) -> str:
        """A text that lists the coordinates `q` with the names of their joints."""
        parts = np.split(q, np.cumsum([len(m.axes) for m in self.moves])[:-1]) if self.moves else []
        return ", ".join(
            f"{m.joint} = {' / '.join(_shown(v, m.turns) for v in part)}"
            for m, part in zip(self.moves, parts, strict=True)
        )


def _radii(chain: Sequence[Move], points: np.ndarray) -> np.ndarray:
    """Bound of the distance between points at the end of a chain and the origin of each move [mm]; 1 for translations.

    Rotations do not change the distance between the origins of successive moves; translations change it by at most
    their range.
    """
    radii = np.ones(len(chain))
    if not len(chain):
        return radii
    beyond = float(np.linalg.norm(points - chain[-1].origin, axis=1).max())
    for k in reversed(range(len(chain))):
        if k + 1 < len(chain):
            beyond += float(np.linalg.norm(chain[k + 1].origin - chain[k].origin)) + chain[k + 1].reach
        if chain[k].turns:
            last = k + 1 == len(chain) and len(chain[k].axes) == 1
            arms = np.cross(points - chain[k].origin, chain[k].axes[0])
            radii[k] = float(np.linalg.norm(arms, axis=1).max()) if last else beyond
    return radii


def path_between(first: str, second: str, scene: Scene, moves: Mapping[str, tuple[Move, ...]]) -> JointPath | None:
    """The joints between two bodies; None if one body floats freely relative to the other.

    Args:
        first: Name of the first body.
        second: Name of the second body.
        scene: The scene.
        moves: Moves of each joint, by name of the joint.
    """
    on = {j.child: j for j in scene.joints}

    def branch(name: str) -> list[str]:
        """Names of the bodies from the root to the body `name`; the root is "" for the world, or a floating body."""
        way = [name]
        while way[-1] in on and on[way[-1]].kind != "free" and on[way[-1]].parent is not None:
            way.append(str(on[way[-1]].parent))
        floats = way[-1] not in on or on[way[-1]].kind == "free"
        return [*([] if floats else [""]), *way[::-1]]

    a, b = branch(first), branch(second)
    if a[0] != b[0]:
        return None
    shared = sum(x == y for x, y in zip(a, b, strict=False))
    up, down = (tuple(m for name in way[shared:] for m in moves[on[name].name]) for way in (a, b))
    return JointPath(up, down)
