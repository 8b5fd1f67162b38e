"""Thickness of obstacles, for contact that is tested only at points: a thin solid can fit between two points."""

import functools

import numpy as np

from warpbots.contact.distance import signed_distance
from warpbots.scene import (
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Obstacle,
    Posed,
    SceneError,
    Shape,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
    dimension,
)

__all__ = ["least_thickness", "refuse_thin", "thickness"]

_LEAST = {2: 1.5, 3: np.sqrt(3.0)}
"""Smallest thickness that points one spacing apart cannot miss [spacings], by dimension.

A disc of this diameter, in 3D a ball, contains one of the points at any position.
"""

_TIP = 4.0
"""Largest extent of a thin part that counts as a mere tip of the mesh, as on a ramp, relative to `least` [1]."""

_FACES = 1000
"""Least number of faces of a mesh to sample; if a mesh has fewer, all its faces are divided into quarters."""

_QUARTERS = ([0, 0, 0], [1, 1, 1], [2, 2, 2], [1, 2, 0])
"""For each quarter of a triangle, the corners whose midpoints with corners 0, 1, 2 are the corners of the quarter."""


def least_thickness(dim: int, spacing: float) -> float:
    """Least thickness [m] of a solid that no arrangement of points can miss.

    The points are `spacing` [m] apart, in `dim` (2 or 3) dimensions.
    """
    return float(_LEAST[dim] * spacing)


def refuse_thin(
    obstacles: tuple[Obstacle, ...], spacing: float, what: str, option: str, least: float | None = None
) -> None:
    """Raise an error if an obstacle is so thin that points could pass it without contact.

    Args:
        obstacles: Obstacles of a scene.
        spacing: Distance between neighbouring points [m].
        what: Word for the points in messages, in the plural.
        option: Solver option that brings the points closer together, for messages.
        least: Least sufficient thickness [m]; None to use `least_thickness`.

    Raises:
        SceneError: An obstacle is too thin; the message names the first obstacle that is.
    """
    for obstacle in obstacles:
        enough = least or least_thickness(dimension(obstacle.shape), spacing)
        thick = thickness(obstacle.shape, enough)
        if thick < (1.0 - 1e-6) * enough:
            raise SceneError(
                f"Obstacle {obstacle.name!r}: it is {thick:.3g} m thick, and {what} {spacing:g} m apart can miss "
                f"solids thinner than {enough:.3g} m; make it thicker, away from the bodies, or use a smaller {option}"
            )


@functools.singledispatch
def thickness(shape: Shape, least: float) -> float:
    """Thickness [m] of the thinnest part of a solid.

    Args:
        shape: Any shape of `warpbots.scene`.
        least: Thickness from which a part of a mesh counts as thick [m].

    Returns:
        For a mesh, the thickness of a part that is thinner than `least` and is not merely the tip of a thicker part, or
        infinity if the mesh has no such part. For a sampled distance, twice the largest depth. For any other shape
        without a special rule, the smallest edge of its bounding box.
    """
    lower, upper = shape.bounds
    return float((upper - lower).min())


@thickness.register
def _(shape: HalfSpace | Heightfield, least: float) -> float:
    return np.inf


@thickness.register
def _(shape: Sphere | Capsule, least: float) -> float:
    return 2.0 * shape.radius


@thickness.register
def _(shape: Cylinder, least: float) -> float:
    return min(2.0 * shape.radius, float(np.linalg.norm(np.subtract(shape.end, shape.start))))


@thickness.register
def _(shape: Sheet, least: float) -> float:
    return shape.thickness


@thickness.register
def _(shape: Truss, least: float) -> float:
    return 2.0 * float(np.min(shape.radius))


@thickness.register
def _(shape: Union, least: float) -> float:
    return min(thickness(part, least) for part in shape.shapes)


@thickness.register
def _(shape: Posed, least: float) -> float:
    return thickness(shape.shape, least)


@thickness.register
def _(shape: DistanceGrid, least: float) -> float:
    return -2.0 * float(shape.values.min())


@thickness.register
def _(shape: Silhouette, least: float) -> float:
    from scipy.ndimage import distance_transform_edt

    return 2.0 * shape.pixel * float(distance_transform_edt(np.pad(shape.mask, 1)).max() - 0.5)


@thickness.register
def _(shape: TriangleMesh, least: float) -> float:
    return _of_surface(shape, shape.vertices[shape.faces], least)


@thickness.register
def _(shape: TetMesh, least: float) -> float:
    return _of_surface(shape, shape.vertices[shape.surface], least)


def _of_surface(shape: Shape, corner: np.ndarray, least: float) -> float:
    """Thickness of a thin part of a mesh [m]; infinity if the mesh has no thin part.

    The thickness is the diameter of the largest ball inside the part that touches a face, at the centre of the face.

    Args:
        shape: The solid.
        corner: Corners of the faces of the mesh [m], shape (n, 3, 3).
        least: Thickness from which a part counts as thick [m].
    """
    from scipy.spatial import cKDTree

    while len(corner) < _FACES:
        corner = np.concatenate([corner + corner[:, order] for order in _QUARTERS]) / 2.0
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    area = np.linalg.norm(normal, axis=1)
    centre, normal = corner.mean(axis=1)[area > 0.0], normal[area > 0.0] / area[area > 0.0, None]

    def fits(face: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
        """Whether the ball of the given radius that touches each face at its centre from inside fits into the solid."""
        middle = centre[face] - np.reshape(radius, (-1, 1)) * normal[face]
        return -signed_distance(shape, middle) > 0.95 * radius

    everywhere = np.arange(len(centre))
    thick = fits(everywhere, 0.5 * least)
    if thick.any():
        thick |= cKDTree(centre[thick]).query(centre)[0] < _TIP * least
    thin = everywhere[~thick]
    lower, upper = np.zeros(len(thin)), np.full(len(thin), 0.5 * least)
    for _ in range(20):
        radius = 0.5 * (lower + upper)
        inside = fits(thin, radius)
        lower, upper = np.where(inside, radius, lower), np.where(inside, upper, radius)
    return 2.0 * float(upper.max()) if len(thin) else np.inf
