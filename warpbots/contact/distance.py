"""Signed distance to the shapes of a scene [m]: negative inside, positive outside.

The distance is evaluated in float64 on the host when a model is built. It decides which particles fill a body, which
particles belong to a region, and which grid nodes lie inside an obstacle. The distance to meshes is computed by Warp's
mesh query (winding number, Jacobson et al. 2013); all other shapes have closed forms.
"""

import functools

import numpy as np
import warp as wp

from warpbots.numerics import launch, warp_device
from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Points,
    Posed,
    Shape,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
)

__all__ = ["normal", "signed_distance", "surface_distance"]


@functools.singledispatch
def signed_distance(shape: Shape, x: np.ndarray) -> np.ndarray:
    """Signed distance [m] from points to a shape.

    Args:
        shape: Any shape of `warpbots.scene`.
        x: Points [m], shape (n, dim).

    Returns:
        Distances, negative inside [m], shape (n,). For `Union`, `Heightfield` and `DistanceGrid` the sign is exact, but
        the magnitude is only a bound or an interpolation.

    Raises:
        TypeError: `shape` is not a shape.
    """
    raise TypeError(f"no signed distance is known for a {type(shape).__name__}; register one with signed_distance")


def normal(shape: Shape, x: np.ndarray, step: float) -> np.ndarray:
    """Outward unit normal at each point: the normalised gradient of the signed distance.

    Args:
        shape: Any shape of `warpbots.scene`.
        x: Points [m], shape (n, dim).
        step: Step of the finite differences of the distance [m]; features of the shape that are smaller than the step
            are smoothed.

    Returns:
        Unit vectors [1], shape (n, dim). At points of a medial axis, at which the distance has no gradient, the vector
        is the vertical axis.
    """
    if isinstance(shape, HalfSpace):
        return np.broadcast_to(np.array(shape.normal), x.shape).copy()
    offsets = step * np.eye(x.shape[1])
    slope = np.stack([signed_distance(shape, x + o) - signed_distance(shape, x - o) for o in offsets], axis=1)
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    flat = length[:, 0] < 1e-9 * step
    slope[flat], length[flat] = np.eye(x.shape[1])[-1], 1.0
    return slope / length


@signed_distance.register
def _(shape: Box, x: np.ndarray) -> np.ndarray:
    lower, upper = shape.bounds
    q = np.abs(x - (lower + upper) / 2.0) - (upper - lower) / 2.0
    return np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)


@signed_distance.register
def _(shape: Sphere, x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x - np.array(shape.center), axis=1) - shape.radius


def _along(shape: Capsule | Cylinder, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Coordinates along the axis and distances from the axis [m], both of shape (n,), and length of the axis [m]."""
    start, end = np.array(shape.start), np.array(shape.end)
    length = float(np.linalg.norm(end - start))
    axis = (end - start) / length
    s = (x - start) @ axis
    return s, np.linalg.norm(x - start - s[:, None] * axis, axis=1), length


@signed_distance.register
def _(shape: Capsule, x: np.ndarray) -> np.ndarray:
    s, r, length = _along(shape, x)
    beyond = s - np.clip(s, 0.0, length)
    return np.hypot(r, beyond) - shape.radius


@signed_distance.register
def _(shape: Cylinder, x: np.ndarray) -> np.ndarray:
    s, r, length = _along(shape, x)
    q = np.stack([r - shape.radius, np.abs(s - length / 2.0) - length / 2.0], axis=1)
    return np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)


@signed_distance.register
def _(shape: HalfSpace, x: np.ndarray) -> np.ndarray:
    return (x - np.array(shape.point)) @ np.array(shape.normal)


@signed_distance.register
def _(shape: Heightfield, x: np.ndarray) -> np.ndarray:
    """Height above the terrain times the cosine of the slope angle: exact on a plane, of first order elsewhere."""
    grid = (x[:, :-1] - np.array(shape.origin)) / shape.spacing
    h, slope = _interpolate(shape.heights, grid)
    return (x[:, -1] - h) / np.sqrt(1.0 + ((slope / shape.spacing) ** 2).sum(axis=1))


@signed_distance.register
def _(shape: DistanceGrid, x: np.ndarray) -> np.ndarray:
    """Interpolation between the samples; for points outside the sampled box, the distance to the box is added."""
    lower, upper = shape.bounds
    value, _ = _interpolate(shape.values, (x - lower) / shape.spacing)
    return value + np.linalg.norm(x - np.clip(x, lower, upper), axis=1)


def _interpolate(values: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate samples multilinearly; beyond the samples the values are constant.

    Args:
        values: Samples, an array with one axis for each of the d coordinates.
        grid: Positions at which to interpolate, in units of the distance between samples, shape (n, d).

    Returns:
        Values, shape (n,), and their derivatives with respect to `grid`, shape (n, d).
    """
    top = np.array(values.shape) - 1
    inside = (grid >= 0.0) & (grid <= top)
    grid = np.clip(grid, 0.0, top)
    base = np.minimum(np.floor(grid).astype(np.int64), top - 1)
    t = grid - base
    value, slope = np.zeros(len(grid)), np.zeros_like(grid)
    for corner in np.ndindex(*(2,) * values.ndim):
        sample = values[tuple((base + corner).T)]
        weights = np.where(np.array(corner) == 1, t, 1.0 - t)
        value += sample * weights.prod(axis=1)
        for a in range(values.ndim):
            others = np.delete(weights, a, axis=1).prod(axis=1)
            slope[:, a] += sample * others * (1.0 if corner[a] else -1.0)
    return value, slope * inside


@signed_distance.register
def _(shape: Silhouette, x: np.ndarray) -> np.ndarray:
    """Distance to the edges of the pixels, from Euclidean distance transforms of the pixels inside and outside."""
    from scipy.ndimage import distance_transform_edt

    mask = np.pad(shape.mask[::-1].T, 1)  # axis 0 is x, axis 1 is y upwards, with a border of outside pixels
    pixels = np.where(mask, -distance_transform_edt(mask) + 0.5, distance_transform_edt(~mask) - 0.5)
    grid = DistanceGrid(shape.pixel * pixels, tuple(np.array(shape.lower) - 0.5 * shape.pixel), shape.pixel)
    return signed_distance(grid, x)


@signed_distance.register
def _(shape: Points, x: np.ndarray) -> np.ndarray:
    """Distance to the nearest ball (in 2D, disc); each ball has the volume of its particle."""
    from scipy.spatial import cKDTree

    dim = shape.positions.shape[1]
    radius = np.sqrt(shape.volumes / np.pi) if dim == 2 else np.cbrt(3.0 * shape.volumes / (4.0 * np.pi))
    distance, nearest = cKDTree(shape.positions).query(x)
    return distance - radius[nearest]


@signed_distance.register
def _(shape: Truss, x: np.ndarray) -> np.ndarray:
    ends = shape.joints[shape.bars]
    bars = (Capsule(a, b, r) for (a, b), r in zip(ends, shape.radius, strict=True))
    return functools.reduce(np.minimum, (signed_distance(bar, x) for bar in bars))


@signed_distance.register
def _(shape: Union, x: np.ndarray) -> np.ndarray:
    return np.min([signed_distance(s, x) for s in shape.shapes], axis=0)


@signed_distance.register
def _(shape: Posed, x: np.ndarray) -> np.ndarray:
    return signed_distance(shape.shape, (x - np.array(shape.translation)) @ np.array(shape.rotation))


@wp.kernel(enable_backward=False)
def _mesh_distance(
    # model
    mesh: wp.uint64,
    reach: float,
    with_sign: int,
    # state
    x: wp.array[wp.vec3],
    # out
    distance_out: wp.array[float],
):
    """Compute the distance from each point x to a mesh, with the sign of the winding number if `with_sign`."""
    i = wp.tid()
    if with_sign == 1:
        query = wp.mesh_query_point_sign_winding_number(mesh, x[i], reach)
    else:
        query = wp.mesh_query_point_no_sign(mesh, x[i], reach)
    nearest = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
    distance_out[i] = wp.where(with_sign == 1, query.sign, 1.0) * wp.length(x[i] - nearest)


@signed_distance.register
def _(shape: TriangleMesh, x: np.ndarray) -> np.ndarray:
    return _to_mesh(shape.vertices, shape.faces, x, signed=True)


@signed_distance.register
def _(shape: TetMesh, x: np.ndarray) -> np.ndarray:
    return _to_mesh(shape.vertices, shape.surface, x, signed=True)


@signed_distance.register
def _(shape: Sheet, x: np.ndarray) -> np.ndarray:
    """Distance to the middle surface minus half the thickness."""
    return surface_distance(shape.vertices, shape.faces, x) - 0.5 * shape.thickness


def surface_distance(vertices: np.ndarray, faces: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Distance of points from the surface of a triangle mesh, without a sign.

    It is the absolute value of the signed distance, without the time that the sign takes.

    Args:
        vertices: Vertices of the mesh [m], shape (n_vertices, 3).
        faces: Vertex indices of the triangles, shape (n_faces, 3).
        x: Points [m], shape (n, 3).

    Returns:
        The distances [m], shape (n,).
    """
    return _to_mesh(vertices, faces, x, signed=False)


def _to_mesh(vertices: np.ndarray, faces: np.ndarray, x: np.ndarray, signed: bool) -> np.ndarray:
    """Distances from points x [m], shape (n, 3), to a triangle mesh [m], shape (n,), with a sign if `signed`."""
    # Warp queries meshes in single precision: centring them saves digits for the shape.
    used = vertices[np.unique(faces)]
    lower, upper = used.min(0), used.max(0)
    center = (lower + upper) / 2.0
    reach = 2.0 * float(np.linalg.norm(upper - lower) + np.abs(x - center).max(initial=0.0))
    cpu = warp_device("cpu")
    mesh = wp.Mesh(
        points=wp.array(vertices - center, dtype=wp.vec3, device=cpu),
        indices=wp.array(faces.reshape(-1), dtype=int, device=cpu),
        support_winding_number=signed,
    )
    distance = wp.empty(len(x), dtype=float, device=cpu)
    points = wp.array(x - center, dtype=wp.vec3, device=cpu)
    launch(_mesh_distance, len(x), [mesh.id, reach, int(signed), points], [distance], cpu)
    return distance.numpy().astype(np.float64)
