"""Lines of sight, and what they meet first."""

import dataclasses

import numpy as np

from warpbots.bench.drawing import Drawing
from warpbots.view.browser.scene import DrawnMoment

__all__ = ["Hit", "Ray", "first_hit"]


@dataclasses.dataclass(frozen=True, eq=False)
class Ray:
    """The line of sight through a pointer, in the frame of the browser, whose third axis points upwards.

    Attributes:
        origin: The eye [m], shape (3,).
        direction: Unit vector away from the eye, shape (3,).
        forward: Unit vector perpendicular to the screen and away from the eye, shape (3,).
    """

    origin: np.ndarray
    direction: np.ndarray
    forward: np.ndarray

    @classmethod
    def of(cls, origin: list[float], direction: list[float], forward: list[float]) -> "Ray":
        """The ray from numbers that a browser has sent.

        Raises:
            ValueError: The numbers are no ray.
        """
        vectors = [np.array(v, dtype=np.float64) for v in (origin, direction, forward)]
        lengths = [float(np.linalg.norm(v)) for v in vectors[1:]]
        if any(v.shape != (3,) or not np.isfinite(v).all() for v in vectors) or not min(lengths) > 0.0:
            raise ValueError(f"a ray needs three finite vectors of three numbers, got {vectors}")
        return cls(vectors[0], vectors[1] / lengths[0], vectors[2] / lengths[1])

    def beside(self, point: np.ndarray) -> np.ndarray:
        """The point on the ray that is as far from the screen as `point` [m], shape (3,)."""
        return self.origin + self.direction * ((point - self.origin) @ self.forward) / (self.direction @ self.forward)


@dataclasses.dataclass(frozen=True, eq=False)
class Hit:
    """The first point of a body or an obstacle on a ray.

    Attributes:
        point: The point [m], shape (3,).
        body: Index of the rigid body; None for anything else.
        arm: The point in the frame of the rigid body [m], shape (3,); None for anything else.
        obstacle: Index of the obstacle; None for anything else.
    """

    point: np.ndarray
    body: int | None = None
    arm: np.ndarray | None = None
    obstacle: int | None = None


def first_hit(ray: Ray, drawing: Drawing, moment: DrawnMoment, bodies: int) -> Hit | None:
    """The point of a body or an obstacle that is seen along a ray; None if the ray meets none.

    Args:
        ray: The ray.
        drawing: The meshes.
        moment: Their places.
        bodies: Number of rigid bodies.
    """
    nearest, found = np.inf, None
    x, shown = moment.vertices.astype(np.float64), moment.colors[:, 3] > 0
    for mesh in drawing.soft:
        faces = mesh.faces[shown[mesh.faces].all(axis=1)]
        if (t := _on_triangles(ray.origin, ray.direction, x[faces])) < nearest:
            nearest, found = t, Hit(ray.origin + t * ray.direction)
    if count := len(drawing.radius):
        centers, visible = x[-count:], shown[-count:]
        if (t := _on_balls(ray, centers[visible], drawing.radius[visible])) < nearest:
            nearest, found = t, Hit(ray.origin + t * ray.direction)
    for k, mesh in enumerate(drawing.rigid):
        if mesh is None:
            continue
        R, p = moment.rotation[k].astype(np.float64), moment.position[k].astype(np.float64)
        origin, direction = (ray.origin - p) @ R, ray.direction @ R
        if (t := _on_triangles(origin, direction, mesh.vertices[mesh.faces])) < nearest:
            nearest = t
            point = ray.origin + t * ray.direction
            found = Hit(point, k, origin + t * direction) if k < bodies else Hit(point, obstacle=k - bodies)
    return found


def _on_triangles(origin: np.ndarray, direction: np.ndarray, corner: np.ndarray) -> float:
    """Distance along a ray to the first of some triangles, shape (m, 3, 3); infinity if it meets none.

    Source: T. Möller and B. Trumbore, Fast, minimum storage ray/triangle intersection, 1997.
    """
    a, ab, ac = corner[:, 0], corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    p = np.cross(direction, ac)
    volume = np.einsum("ni,ni->n", ab, p)
    seen = volume != 0.0  # not edge-on
    a, ab, ac, p, volume = a[seen], ab[seen], ac[seen], p[seen], volume[seen]
    q = np.cross(origin - a, ab)
    s, u = np.einsum("ni,ni->n", origin - a, p) / volume, q @ direction / volume
    t = np.einsum("ni,ni->n", ac, q) / volume
    met = (s >= 0.0) & (u >= 0.0) & (s + u <= 1.0) & (t > 0.0)
    return float(t[met].min(initial=np.inf))


def _on_balls(ray: Ray, center: np.ndarray, radius: np.ndarray) -> float:
    """Distance along a ray to the first of some balls; infinity if it meets none."""
    along = (center - ray.origin) @ ray.direction
    away = np.linalg.norm(center - ray.origin - along[:, None] * ray.direction, axis=1)
    met = (away < radius) & (along > 0.0)
    return float((along[met] - np.sqrt(radius[met] ** 2 - away[met] ** 2)).min(initial=np.inf))
