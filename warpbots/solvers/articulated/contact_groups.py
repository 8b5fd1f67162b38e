"""Groups of contact points: in closed form for spheres, boxes, capsules and cylinders, clouds for other shapes."""

import dataclasses
import math

import numpy as np

from warpbots.contact.solid import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from warpbots.contact.solid_forms import SolidForm, closed_form
from warpbots.scene import Cloud, RigidBody, Shape, dimension, parts_of
from warpbots.solvers.articulated.point_cloud import box_grid, clouds, refuse_too_many
from warpbots.solvers.articulated.rolling_points import AXIS, BALLS, RIMS

__all__ = ["PointGroup", "closed_group", "closed_group_of", "cloud_groups", "facing", "may_cross", "points_of"]

_CORNERS = 8

_PARTS = 64
"""Each point of a round body stands for 1 / `_PARTS` of its surface; bodies from files have as many points."""


@dataclasses.dataclass(frozen=True, eq=False)
class PointGroup:
    """Contact points of a part of a body; a part is one of the shapes of which the body consists.

    Attributes:
        kind: Code of the kind of the group, which determines the motion of the points over the part (`rolling_points`).
        positions: Position of each point in the frame of the body [m], shape (n, 3); a point that slides has a position
            on the axis of the part.
        areas: Area that each point represents [m^2], shape (n,).
        radii: Radius of the ball around each point [m], 0 for points on a surface, shape (n,).
        resting: Number of points, counted from the first point, on which the part can rest on a plane.
    """

    kind: int
    positions: np.ndarray
    areas: np.ndarray
    radii: np.ndarray
    resting: int

    def lowest(self, rotation: np.ndarray) -> float:
        """Height of the lowest point of the group above the origin of the body [m].

        Args:
            rotation: Orientation of the body, shape (3, 3).
        """
        up = rotation[2]
        if self.kind != RIMS:
            return float((self.positions @ up - self.radii).min())
        middle = (self.positions[:8:4] + self.positions[2:8:4]) / 2.0
        return float((middle @ up).min() - np.hypot(*((self.positions[:2] - middle[0]) @ up)))


def closed_group(part: Shape, count: int) -> PointGroup | None:
    """The contact points of a sphere, box, capsule or cylinder in the frame of its body; None for other shapes.

    Args:
        part: The shape.
        count: Largest number of points in the grid on the faces of a box, at least eight. Other shapes have a fixed
            number of points, each of which stands for a 64th of the surface.
    """
    form = closed_form(part)
    if form is None or form.kind == PLANE:
        return None
    flat = dimension(part) == 2
    of_kind = _rectangle if flat and form.kind == BOX else _POINTS[form.kind]
    positions, radius, kind, resting = of_kind(form.size, count)
    n = len(positions)
    surface = _outline(form) if flat else _surface(form)
    areas = np.full(n, surface / (n if form.kind == BOX else _PARTS))
    return PointGroup(int(kind), positions @ form.rotation.T + form.position, areas, np.full(n, radius), resting)


def closed_group_of(body: RigidBody, part: Shape) -> PointGroup | None:
    """The contact points of a part of a body in closed form (`closed_group`), or None for other shapes.

    The count of points is `body.points`, unless that is a cloud.

    Raises:
        SceneError: The points of a box do not fit into memory.
    """
    if isinstance(body.points, Cloud):
        return closed_group(part, 0)
    form = closed_form(part)
    if form is not None and form.kind == BOX:
        refuse_too_many(body)
    return closed_group(part, body.points)


def _surface(form: SolidForm) -> float:
    """Area of the surface of a solid in closed form [m^2]."""
    r, h, _ = form.size
    if form.kind == BOX:
        return float(8.0 * form.size @ np.roll(form.size, 1))
    return 4.0 * math.pi * r * {SPHERE: r, CAPSULE: r + h, CYLINDER: r / 2.0 + h}[form.kind]


def _outline(form: SolidForm) -> float:
    """Area of the surface of a 2D solid in closed form, which is one metre deep, without its two faces [m^2]."""
    r, h, _ = form.size
    if form.kind == BOX:
        return 4.0 * float(form.size[np.isfinite(form.size)].sum())
    return 2.0 * math.pi * r + {SPHERE: 0.0, CAPSULE: 4.0 * h}[form.kind]


def _rectangle(half: np.ndarray, count: int) -> tuple[np.ndarray, float, int, int]:
    """Points at the corners of a rectangle and evenly along its sides, about `count` of them, in its plane."""
    sides = np.flatnonzero(np.isfinite(half))
    pieces = np.maximum(1, np.round(count * half[sides] / (2.0 * half[sides].sum()))).astype(int)
    points = np.zeros((2 * int(pieces.sum()), 3))
    a, b = (h * np.linspace(-1.0, 1.0, n + 1) for h, n in zip(half[sides], pieces, strict=True))
    around = [*((x, -half[sides[1]]) for x in a[:-1]), *((half[sides[0]], y) for y in b[:-1])]
    points[:, sides] = [*around, *((-x, -y) for x, y in around)]
    return points, 0.0, BALLS, len(points)


def _box(half: np.ndarray, count: int) -> tuple[np.ndarray, float, int, int]:
    grid = box_grid(-half, half, max(count, _CORNERS))
    return grid, 0.0, BALLS, len(grid)


def _sphere(size: np.ndarray, count: int) -> tuple[np.ndarray, float, int, int]:
    return np.zeros((1, 3)), size[0], BALLS, 1


def _capsule(size: np.ndarray, count: int) -> tuple[np.ndarray, float, int, int]:
    return size[1] * np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), size[0], AXIS, 2


def _cylinder(size: np.ndarray, count: int) -> tuple[np.ndarray, float, int, int]:
    rim = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    corners = [[size[0] * x, size[0] * y, z] for z in (-size[1], size[1]) for x, y in rim]
    return np.array([*corners, [0.0, 0.0, 0.0]]), 0.0, RIMS, 8


_POINTS = {SPHERE: _sphere, CAPSULE: _capsule, CYLINDER: _cylinder, BOX: _box}
"""Function of each closed form from size and count to points in its axes [m], radius [m], kind and resting number."""


def cloud_groups(body: RigidBody) -> list[PointGroup]:
    """The contact points of a body as clouds: the cloud that the user gave, or else a generated cloud for each part."""
    own = [body.points] if isinstance(body.points, Cloud) else clouds(body)
    return [PointGroup(int(BALLS), c.positions, c.areas, np.zeros(len(c.areas)), len(c.areas)) for c in own]


def facing(part: Shape, solid: Shape) -> tuple[bool, bool]:
    """Decide which points represent the contact of a part with a solid.

    Points of spheres and capsules are exact for every distance field. For boxes and cylinders the points of both shapes
    are used.

    Returns:
        Whether points in closed form of the part are used, and whether points in closed form of the solid are used. If
        both are false, a cloud of points on the part is used.
    """
    own, other = closed_form(part), closed_form(solid)
    if own is None or other is None:
        return False, False
    if other.kind == PLANE or own.kind in (SPHERE, CAPSULE):
        return True, False
    return other.kind in (CYLINDER, BOX), True


def may_cross(part: Shape, solid: Shape) -> bool:
    """Whether edges of a part may touch edges of a solid, which is the case if both shapes are boxes in 3D."""
    return dimension(part) == 3 and all(
        form is not None and form.kind == BOX for form in map(closed_form, (part, solid))
    )


def points_of(body: RigidBody) -> list[PointGroup]:
    """Groups of contact points of a body against solids of closed form; empty if the body has no contact points."""
    if not body.points:
        return []
    if isinstance(body.points, Cloud):
        return cloud_groups(body)
    parts = parts_of(body.shape)
    closed = [closed_group_of(body, part) for part in parts]
    return [own or cloud for own, cloud in zip(closed, cloud_groups(body), strict=True)] if None in closed else closed
