"""Self-intersections of triangle meshes."""

import numpy as np
import warp as wp

from warpbots.numerics import launch, warp_device
from warpbots.scene import SceneError, TriangleMesh

__all__ = ["crossings", "refuse_crossings"]

_DEPTH = 1e-6
"""Depth of an intersection that counts, relative to the size of the mesh; files are in single precision."""

_CHUNK = 100_000


def refuse_crossings(shape: TriangleMesh) -> None:
    """Raise if faces of `shape` intersect or cover each other, as in meshes assembled from parts.

    Raises:
        SceneError: Faces intersect; the message gives the number of intersections and the first two faces.
    """
    pairs = crossings(shape.vertices, shape.faces)
    if len(pairs):
        a, b = pairs[0].tolist()
        middle = shape.vertices[shape.faces[a]].mean(axis=0).round(6).tolist()
        raise SceneError(
            f"TriangleMesh intersects itself in {len(pairs)} pairs of faces; the first are {a} and {b} near {middle} "
            f"m; give its parts as a Union of meshes, or repair it"
        )


def crossings(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Pairs of faces that intersect or cover each other; pairs that only touch, or share a vertex, do not count.

    Args:
        vertices: Vertex positions [m], shape (n, 3).
        faces: Vertex indices, shape (m, 3).

    Returns:
        Indices of the two faces of each pair, the lower index first, shape (n_pairs, 2).
    """
    corners = vertices[faces]
    lower, upper = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    corners = corners - (lower + upper) / 2.0
    depth = _DEPTH * float(np.linalg.norm(upper - lower))
    pairs = _near(corners, depth)
    a, b = faces[pairs[:, 0]], faces[pairs[:, 1]]
    pairs = pairs[~(a[:, :, None] == b[:, None]).any(axis=(1, 2))]
    parts = [pairs[k : k + _CHUNK] for k in range(0, len(pairs), _CHUNK)]
    return np.concatenate([pairs[:0], *(p[_cross(corners[p[:, 0]], corners[p[:, 1]], depth)] for p in parts)])


def _cross(p: np.ndarray, q: np.ndarray, depth: float) -> np.ndarray:
    """Whether no axis separates each pair of triangles, shape (n,), bool.

    Pair i consists of the triangles ``p[i]`` and ``q[i]``; both arrays have shape (n, 3, 3). Triangles that overlap by
    at most `depth` along an axis count as separated.
    """
    e, f = np.roll(p, -1, axis=1) - p, np.roll(q, -1, axis=1) - q
    n, m = np.cross(e[:, :1], e[:, 1:2]), np.cross(f[:, :1], f[:, 1:2])
    both = np.cross(e[:, :, None], f[:, None]).reshape(-1, 9, 3)
    axes = np.concatenate([n, m, both, np.cross(n, e), np.cross(m, f)], axis=1)
    length = np.linalg.norm(axes, axis=2, keepdims=True)
    size = np.abs(np.concatenate([e, f], axis=1)).max(axis=(1, 2), initial=1e-300)[:, None, None]
    power = np.array([2.0] * 11 + [3.0] * 6)[None, :, None]
    real = (length > 1e-9 * size**power)[..., 0]  # parallel edges and degenerate triangles give no axis
    axes = axes / np.maximum(length, 1e-300)
    s, t = (np.einsum("nki,nai->nak", x, axes) for x in (p, q))
    (a, b), (c, d) = ((x.min(axis=2), x.max(axis=2)) for x in (s, t))
    plane = (b - a <= depth) & (d - c <= depth)  # both are perpendicular to this axis
    apart = np.where(plane, np.maximum(c - b, a - d) > depth, np.minimum(b - c, d - a) <= depth)
    return ~(apart & real).any(axis=1)


def _near(corners: np.ndarray, slack: float) -> np.ndarray:
    """Pairs of triangles whose bounding boxes, enlarged by `slack`, overlap; the lower index first, shape (n, 2)."""
    cpu = warp_device("cpu")
    low = wp.array(corners.min(axis=1) - slack, dtype=wp.vec3, device=cpu)
    high = wp.array(corners.max(axis=1) + slack, dtype=wp.vec3, device=cpu)
    bvh, n = wp.Bvh(low, high), len(corners)
    count = wp.zeros(n, dtype=int, device=cpu)
    launch(_count_overlaps, n, [bvh.id, low, high], [count], cpu)
    ends = np.cumsum(count.numpy())
    first = wp.array(ends - count.numpy(), dtype=int, device=cpu)
    pairs = wp.empty(int(ends[-1]), dtype=wp.vec2i, device=cpu)
    launch(_write_overlaps, n, [bvh.id, low, high, first], [pairs], cpu)
    found = pairs.numpy().reshape(-1, 2)
    return found[np.lexsort(found.T[::-1])].astype(np.int64)


@wp.kernel(enable_backward=False)
def _count_overlaps(
    # model
    bvh: wp.uint64,
    low: wp.array[wp.vec3],
    high: wp.array[wp.vec3],
    # out
    count_out: wp.array[int],
):
    """Writes to `count_out`, for each box, the number of boxes with a higher index that overlap the box."""
    i = wp.tid()
    query = wp.bvh_query_aabb(bvh, low[i], high[i])
    other = int(0)
    count = int(0)
    while wp.bvh_query_next(query, other):
        if other > i:
            count += 1
    count_out[i] = count


@wp.kernel(enable_backward=False)
def _write_overlaps(
    # model
    bvh: wp.uint64,
    low: wp.array[wp.vec3],
    high: wp.array[wp.vec3],
    # work
    first: wp.array[int],
    # out
    pair_out: wp.array[wp.vec2i],
):
    """Writes the pairs of boxes that `_count_overlaps` has counted; the pairs of box i start at ``first[i]``."""
    i = wp.tid()
    query = wp.bvh_query_aabb(bvh, low[i], high[i])
    other = int(0)
    count = int(0)
    while wp.bvh_query_next(query, other):
        if other > i:
            pair_out[first[i] + count] = wp.vec2i(i, other)
            count += 1
