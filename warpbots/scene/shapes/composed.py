"""Shapes composed of other shapes."""

from collections.abc import Sequence

import numpy as np

from warpbots.scene.record import SceneError, point, record
from warpbots.scene.shapes.field_checks import assign
from warpbots.scene.shapes.primitives import Box, Capsule, Cylinder, HalfSpace, Sphere
from warpbots.scene.shapes.sampled import DistanceGrid, Heightfield, Points, Silhouette, TriangleMesh
from warpbots.scene.shapes.sheet import Sheet
from warpbots.scene.shapes.tet_mesh import TetMesh
from warpbots.scene.shapes.truss import Truss

__all__ = ["Posed", "Shape", "Union", "bars_of", "dimension", "parts_of", "sheets_of"]


@record
class Union:
    """The union of several shapes.

    The mass and moments of inertia of a `RigidBody` are sums over the shapes, so that an overlap counts twice, with a
    warning. In a `SoftBody` an overlap counts once.

    Attributes:
        shapes: The shapes, at least one; all must have the same dimension.
    """

    shapes: Sequence["Shape"]

    def __post_init__(self):
        assign(self, shapes=tuple(self.shapes))
        if not self.shapes:
            raise SceneError("Union needs at least one shape")
        dims = {dimension(s) for s in self.shapes}
        if len(dims) > 1:
            raise SceneError("Union: all shapes must have the same dimension, got both 2D and 3D shapes")

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner [m], each of shape (dim,)."""
        lower, upper = zip(*(s.bounds for s in self.shapes), strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)


@record
class Posed:
    """A shape, rotated and then translated: x = rotation . x_shape + translation.

    Attributes:
        shape: The shape before rotation and translation.
        translation: Position of the origin of the frame of `shape` after the translation [m], shape (dim,).
        rotation: Rotation matrix, row by row [1], shape (dim, dim).
    """

    shape: "Shape"
    translation: Sequence[float]
    rotation: Sequence[Sequence[float]]

    def __post_init__(self):
        dim = dimension(self.shape)
        translation = point(self.translation, "Posed.translation")
        R = np.asarray(self.rotation, dtype=np.float64)
        if len(translation) != dim or R.shape != (dim, dim):
            raise SceneError(
                f"Posed: a {dim}D shape needs a translation of {dim} components and a rotation of shape "
                f"({dim}, {dim}), got {translation} and a rotation of shape {R.shape}"
            )
        if not np.allclose(R @ R.T, np.eye(dim), atol=1e-6) or np.linalg.det(R) < 0.0:
            raise SceneError(f"Posed.rotation must be a rotation matrix (orthogonal, determinant 1), got {R.tolist()}")
        assign(self, translation=translation, rotation=tuple(tuple(float(v) for v in row) for row in R))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of a box around the rotated bounding box of `shape` [m], each of shape (dim,).

        The corners are infinite for an unbounded shape.
        """
        lower, upper = self.shape.bounds
        if not np.isfinite(upper - lower).all():
            return np.full(len(lower), -np.inf), np.full(len(lower), np.inf)
        corners = np.stack(np.meshgrid(*zip(lower, upper, strict=True), indexing="ij"), -1).reshape(-1, len(lower))
        moved = corners @ np.array(self.rotation).T + np.array(self.translation)
        return moved.min(0), moved.max(0)


Shape = (
    Box | Sphere | Capsule | Cylinder | HalfSpace | Heightfield | Silhouette | TriangleMesh | Points | DistanceGrid
    | Truss | TetMesh | Sheet | Union | Posed
)  # fmt: skip
"""Any of the shapes of this package."""


def dimension(shape: Shape) -> int:
    """Dimension of the space of `shape`: 2 or 3."""
    return len(shape.bounds[0])


def bars_of(shape: Shape) -> Truss | None:
    """Return `shape` as a truss in world coordinates, or None if `shape` is not a truss."""
    if isinstance(shape, Posed):
        truss = bars_of(shape.shape)
        return truss and Truss(
            truss.joints @ np.array(shape.rotation).T + np.array(shape.translation), truss.bars, truss.radius
        )
    return shape if isinstance(shape, Truss) else None


def parts_of(shape: Shape) -> tuple[Shape, ...]:
    """The shapes of a union, including the shapes of nested unions; for any other shape, the shape itself."""
    return tuple(p for s in shape.shapes for p in parts_of(s)) if isinstance(shape, Union) else (shape,)


def sheets_of(shape: Shape) -> tuple[Sheet, ...]:
    """All sheets of `shape` in world coordinates: the shape itself, or parts of a union; none for a solid."""
    if isinstance(shape, Union):
        return tuple(sheet for part in shape.shapes for sheet in sheets_of(part))
    if isinstance(shape, Posed):
        turn, move = np.array(shape.rotation).T, np.array(shape.translation)
        return tuple(Sheet(s.vertices @ turn + move, s.faces, s.thickness, s.bending) for s in sheets_of(shape.shape))
    return (shape,) if isinstance(shape, Sheet) else ()
