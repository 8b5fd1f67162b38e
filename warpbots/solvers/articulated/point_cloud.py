"""Contact points spread over the surfaces of bodies."""

import functools
import logging

import numpy as np

from warpbots.scene import (
    Box,
    Capsule,
    Cloud,
    Cylinder,
    Posed,
    RigidBody,
    SceneError,
    Shape,
    Sphere,
    TetMesh,
    TriangleMesh,
    parts_of,
)
from warpbots.scene.memory_limit import refuse_excess

__all__ = ["box_grid", "clouds", "refuse_too_many", "surface_mesh"]

logging.getLogger("trimesh").addHandler(logging.NullHandler())  # trimesh prints a message if it returns fewer points

_POINT = 500.0
"""Memory of a contact point [bytes]."""


def clouds(body: RigidBody) -> list[Cloud]:
    """Generate a cloud of contact points for each part of a body, with about `body.points` points in total.

    Each point represents an equal fraction of the area of its part. A box has a grid of points that includes the
    corners, on which the box can rest. All other surfaces are sampled evenly and reproducibly, with the symmetry of the
    surface.

    Raises:
        SceneError: No surface is known for the shape of the body, or the points do not fit into memory.
    """
    refuse_too_many(body)
    parts = parts_of(body.shape)
    try:
        areas = np.array([surface_mesh(s).area for s in parts])
        if not areas.min() > 0.0:
            raise TypeError(f"a part of its surface is too small to have an area for {body.points} points")
        shares = np.maximum(1, np.round(body.points * areas / areas.sum())).astype(int)
        positions = [_spread(s, n) for s, n in zip(parts, shares, strict=True)]
    except TypeError as fault:
        raise SceneError(f"RigidBody {body.name!r}: {fault}; give it points=Cloud(...)") from None
    return [Cloud(p, a / len(p)) for p, a in zip(positions, areas, strict=True)]


def refuse_too_many(body: RigidBody) -> None:
    """Raise an error if the contact points of a body do not fit into memory.

    Raises:
        SceneError: The points do not fit into memory.
    """
    refuse_excess(body.points, _POINT, f"RigidBody {body.name!r}: points", "use fewer")


@functools.singledispatch
def surface_mesh(shape: Shape) -> object:
    """The surface of a shape as a `trimesh.Trimesh`.

    Raises:
        TypeError: No surface is known for the shape.
    """
    raise TypeError(f"no surface is known for a {type(shape).__name__}")


@surface_mesh.register
def _(shape: Box) -> object:
    import trimesh

    lower, upper = shape.bounds
    return trimesh.creation.box(bounds=np.array([lower, upper]))


@surface_mesh.register
def _(shape: Sphere) -> object:
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=4, radius=shape.radius)
    return ball.apply_translation(shape.center)


@surface_mesh.register
def _(shape: Cylinder) -> object:
    import trimesh

    return trimesh.creation.cylinder(radius=shape.radius, segment=[shape.start, shape.end], sections=64)


@surface_mesh.register
def _(shape: Capsule) -> object:
    import trimesh

    start, end = np.array(shape.start), np.array(shape.end)
    length = float(np.linalg.norm(end - start))
    R = trimesh.geometry.align_vectors((0.0, 0.0, 1.0), (end - start) / length)
    capsule = trimesh.creation.capsule(height=length, radius=shape.radius, count=(32, 32))
    return capsule.apply_transform(R).apply_translation((start + end) / 2.0 - R[:3, :3] @ capsule.centroid)


@surface_mesh.register
def _(shape: TriangleMesh) -> object:
    import trimesh

    return trimesh.Trimesh(shape.vertices, shape.faces, process=False)


@surface_mesh.register
def _(shape: TetMesh) -> object:
    import trimesh

    return trimesh.Trimesh(shape.vertices, shape.surface, process=False)


@surface_mesh.register
def _(shape: Posed) -> object:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = shape.rotation, shape.translation
    return surface_mesh(shape.shape).apply_transform(pose)


def _spread(shape: Shape, count: int) -> np.ndarray:
    """Spread about `count` points over the surface of a shape [m], shape (n, 3)."""
    if isinstance(shape, Posed):
        return _spread(shape.shape, count) @ np.array(shape.rotation).T + np.array(shape.translation)
    if isinstance(shape, Box) and count >= 8:
        return box_grid(*shape.bounds, count)
    from warpbots.solvers.articulated.symmetric_cloud import spread

    return spread(surface_mesh(shape), count)


def box_grid(lower: np.ndarray, upper: np.ndarray, count: int) -> np.ndarray:
    """Finest grid with nearly equal spacings on the faces of a box that has at most `count` points [m], shape (n, 3).

    `lower` and `upper` are opposite corners of the box.
    """
    edges = upper - lower
    best = np.array([2, 2, 2])
    for spacing in np.geomspace(edges.max(), edges.min() / count, 200):
        n = np.maximum(2, np.round(edges / spacing).astype(int) + 1)
        if np.prod(n) - np.prod(np.maximum(n - 2, 0)) > count:
            break
        best = n
    axes = [np.linspace(a, b, k) for a, b, k in zip(lower, upper, best, strict=True)]
    face = np.stack(np.meshgrid(*map(np.arange, best[1:]), indexing="ij"), axis=-1).reshape(-1, 2)
    rim = face[((face == 0) | (face == best[1:] - 1)).any(axis=1)]  # points of the layers between two opposite faces
    layers = [face if i in (0, best[0] - 1) else rim for i in range(best[0])]
    index = np.column_stack([np.repeat(np.arange(best[0]), [len(layer) for layer in layers]), np.concatenate(layers)])
    return np.stack([axis[i] for axis, i in zip(axes, index.T, strict=True)], axis=1)
