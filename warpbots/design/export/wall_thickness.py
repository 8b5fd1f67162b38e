"""Measures the thickness of the walls of a part with rays from its surface through the solid."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from warpbots.design.export.solids import manifold_of
from warpbots.scene.field_types import checked

if TYPE_CHECKING:
    import trimesh
    from manifold3d import Manifold

__all__ = ["Wall", "thickness_at", "thinnest_wall"]

_SAMPLES = (2000, 20000)
"""Smallest and largest number of points of the surface from which rays start."""

_OPPOSITE = np.cos(np.radians(30.0))
"""Two surfaces are the sides of a wall if they include less than 30 degrees."""

_SPOTS, _AROUND, _ROUNDS = 8, 60, 6
"""Number of thinnest spots around which more rays start, rays around each, and passes, each half as far away."""


@dataclasses.dataclass(frozen=True)
class Wall:
    """The thinnest wall of a part.

    Attributes:
        thickness: Thickness of the wall [mm].
        place: A point on the surface of the wall [mm], shape (3,).
    """

    thickness: float
    place: tuple[float, float, float]


def thickness_at(solid: "Manifold", points: np.ndarray, normals: np.ndarray, longest: float) -> np.ndarray:
    """Length of the path from each surface point through the solid, opposite to the normal [mm], shape (n,).

    The length is inf if the path is longer than `longest`. It is also inf if the face at the end of the path is not
    parallel within 30 degrees to the face at its start: the point is then at an edge, not at a wall.

    Args:
        solid: The solid [mm].
        points: Points on the surface of the solid [mm], shape (n, 3).
        normals: Outward unit normals at the points, shape (n, 3).
        longest: Length of the longest path that is followed [mm]; short rays are faster.
    """
    inside = 1e-7 * longest
    found = np.full(len(points), np.inf)
    for k, (point, normal) in enumerate(zip(points, normals, strict=True)):
        hits = solid.ray_cast(tuple(point - inside * normal), tuple(point - longest * normal))
        out = next((h for h in hits if np.dot(h.normal, normal) < 0.0), None)
        if out is not None and -np.dot(out.normal, normal) > _OPPOSITE:
            found[k] = np.dot(point - np.array(out.position), normal)
    return found


@checked
def thinnest_wall(mesh: "trimesh.Trimesh", limit: float, seed: int = 0) -> Wall | None:
    """The thinnest wall of a solid; None if the solid has no wall.

    Rays start from 2000 to 20000 points that are spread evenly over the surface, about half a `limit` apart. In further
    passes they start from points around the thinnest places, ever closer to these places. Edges sharper than 30 degrees
    count as walls without thickness.

    Args:
        mesh: A closed mesh [mm].
        limit: Thickness below which a wall is a fault [mm].
        seed: Seed of the random numbers.

    Raises:
        ValueError: The mesh is open, or `limit` is not positive.
    """
    if not limit > 0.0:
        raise ValueError(f"thinnest_wall: limit must be positive [mm], got {limit:g}")
    import trimesh

    solid, rng = manifold_of(mesh), np.random.default_rng(seed)
    count = int(np.clip(mesh.area / (0.5 * limit) ** 2, *_SAMPLES))
    points, faces = trimesh.sample.sample_surface(mesh, count, seed=seed)
    points, normals = np.array(points), mesh.face_normals[faces]
    longest, size = 2.0 * limit, float(np.linalg.norm(mesh.extents))
    thickness = thickness_at(solid, points, normals, longest)
    while not np.isfinite(thickness).any() and longest < size:
        longest *= 2.0
        thickness = thickness_at(solid, points, normals, longest)
    spread = np.sqrt(mesh.area / count)
    for _ in range(_ROUNDS):
        thinnest = np.argsort(thickness)[:_SPOTS]
        thinnest = thinnest[np.isfinite(thickness[thinnest])]
        near, facing = _around(solid, points[thinnest], normals[thinnest], spread, rng)
        points, normals = np.concatenate([points[thinnest], near]), np.concatenate([normals[thinnest], facing])
        thickness = np.concatenate([thickness[thinnest], thickness_at(solid, near, facing, longest)])
        spread *= 0.5
    if not len(thickness):
        return None
    k = int(thickness.argmin())
    x, y, z = (float(v) for v in points[k])
    return Wall(float(thickness[k]), (x, y, z))


def _around(
    solid: "Manifold", points: np.ndarray, normals: np.ndarray, spread: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Random points of the surface within about the distance `spread` of given points, and the normals there."""
    near, facing = [], []
    for point, normal in zip(points, normals, strict=True):
        offsets = rng.uniform(-spread, spread, (_AROUND, 3))
        offsets -= (offsets @ normal)[:, None] * normal
        for start in point + offsets:
            hits = solid.ray_cast(tuple(start + spread * normal), tuple(start - spread * normal))
            near += [hits[0].position] if hits and np.dot(hits[0].normal, normal) > 0.0 else []
            facing += [hits[0].normal] if hits and np.dot(hits[0].normal, normal) > 0.0 else []
    return np.reshape(near, (-1, 3)), np.reshape(facing, (-1, 3))
