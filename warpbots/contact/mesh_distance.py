"""Signed distance to closed triangle meshes in double precision, with the nearest point of the mesh.

Warp's mesh query, in single precision, returns a face that is nearest up to rounding. Any nearer face must intersect
the cube around the query point whose half edge is the distance to the returned face. So the distances to all faces that
intersect this cube are compared in double precision, and the least of them belongs to the nearest face. The winding
number gives the sign (Jacobson et al. 2013); near the surface the winding number is summed over all faces in double
precision.
"""

import dataclasses

import numpy as np
import warp as wp

from warpbots.numerics import launch, warp_device

__all__ = ["NearestPoints", "nearest_on_mesh"]

_scalar, _vec3, _vec3i = wp.float64, wp.vec3d, wp.vec3i
_ZERO, _HALF, _ONE = (wp.constant(_scalar(c)) for c in (0.0, 0.5, 1.0))
_FULL = wp.constant(_scalar(4.0 * np.pi))

_CLOSE = 1e-5
"""Distance from the surface up to which the winding number is summed in double precision, in largest extents [1]."""

_SLACK = 1e-6
"""Enlargement of the cubes, because the bounds of faces are in single precision, relative to `reach` [1]."""

_ON = 1e-15
"""Distance from the surface up to which a point counts as on the surface, in largest extents [1]."""


@dataclasses.dataclass(frozen=True, eq=False)
class NearestPoints:
    """The nearest points of a mesh to n query points.

    Attributes:
        distance: Signed distance from each query point to the mesh, negative inside [m], shape (n,).
        face: Index of the face that contains the nearest point to each query point, shape (n,), int.
        barycentric: Barycentric coordinates of each nearest point in its face [1], shape (n, 3).
        normal: Gradient of the signed distance at each query point, a unit vector [1], shape (n, 3); it points outwards
            at query points on the surface.
    """

    distance: np.ndarray
    face: np.ndarray
    barycentric: np.ndarray
    normal: np.ndarray


@wp.func
def _on_edge(x: _vec3, a: _vec3, b: _vec3):
    """Weight t of the end b in the point (1 - t) a + t b of the segment from a to b that is nearest to x."""
    e = b - a
    length = wp.dot(e, e)
    t = _ZERO
    if length > _ZERO:
        t = wp.clamp(wp.dot(x - a, e) / length, _ZERO, _ONE)
    return t


@wp.func
def _on_face(x: _vec3, a: _vec3, b: _vec3, c: _vec3):
    """Barycentric coordinates of the point of the triangle (a, b, c) that is nearest to x."""
    n = wp.cross(b - a, c - a)
    area = wp.dot(n, n)
    if area > _ZERO:
        u = wp.dot(wp.cross(b - x, c - x), n) / area
        v = wp.dot(wp.cross(c - x, a - x), n) / area
        if u > _ZERO and v > _ZERO and u + v < _ONE:
            return _vec3(u, v, _ONE - u - v)
    r = _on_edge(x, a, b)
    s = _on_edge(x, b, c)
    t = _on_edge(x, c, a)
    found = _vec3(_ONE - r, r, _ZERO)
    least = wp.length_sq(a + r * (b - a) - x)
    other = wp.length_sq(b + s * (c - b) - x)
    if other < least:
        least = other
        found = _vec3(_ZERO, _ONE - s, s)
    if wp.length_sq(c + t * (a - c) - x) < least:
        found = _vec3(t, _ZERO, _ONE - t)
    return found


@wp.func
def _corners(vertices: wp.array[_vec3], faces: wp.array[_vec3i], f: int):
    """Positions of the three corners of face f."""
    i = faces[f]
    return vertices[i[0]], vertices[i[1]], vertices[i[2]]


@wp.func
def _solid_angle(a: _vec3, b: _vec3, c: _vec3):
    """Solid angle of the triangle (a, b, c) as seen from the origin (Van Oosterom & Strackee 1983).

    The angle is positive if the origin is behind the triangle.
    """
    la = wp.length(a)
    lb = wp.length(b)
    lc = wp.length(c)
    around = la * lb * lc + wp.dot(a, b) * lc + wp.dot(b, c) * la + wp.dot(c, a) * lb
    return _scalar(2.0) * wp.atan2(wp.dot(a, wp.cross(b, c)), around)


@wp.func
def _single(x: _vec3):
    """Convert the vector x to single precision."""
    return wp.vec3f(float(x[0]), float(x[1]), float(x[2]))


@wp.kernel(enable_backward=False)
def nearest_kernel(
    # model
    mesh: wp.uint64,
    vertices: wp.array[_vec3],
    faces: wp.array[_vec3i],
    reach: float,
    close: _scalar,
    slack: _scalar,
    on: _scalar,
    # state
    x: wp.array[_vec3],
    # out
    distance_out: wp.array[_scalar],
    face_out: wp.array[int],
    barycentric_out: wp.array[_vec3],
    normal_out: wp.array[_vec3],
):
    """Find the nearest point of a mesh to each query point x.

    The kernel writes the signed distance, the face and the barycentric coordinates of the nearest point, and the
    gradient of the distance.
    """
    p = wp.tid()
    y = x[p]
    query = wp.mesh_query_point_sign_winding_number(mesh, _single(y), reach)
    face = query.face
    a, b, c = _corners(vertices, faces, face)
    share = _on_face(y, a, b, c)
    gap = y - (share[0] * a + share[1] * b + share[2] * c)
    distance = wp.length(gap)
    half = (distance + slack) * _vec3(_ONE, _ONE, _ONE)
    cube = wp.mesh_query_aabb(mesh, _single(y - half), _single(y + half))
    other = int(0)
    while wp.mesh_query_aabb_next(cube, other):
        a, b, c = _corners(vertices, faces, other)
        beyond = wp.max(wp.max(wp.min(wp.min(a, b), c) - y, y - wp.max(wp.max(a, b), c)), _vec3())
        if wp.length_sq(beyond) <= distance * distance:  # else its bounds are too far away, in a corner of the cube
            own = _on_face(y, a, b, c)
            way = y - (own[0] * a + own[1] * b + own[2] * c)
            if wp.length(way) < distance:
                face = other
                share = own
                gap = way
                distance = wp.length(way)
    sign = _scalar(query.sign)
    if distance < close:
        winding = _ZERO
        for f in range(faces.shape[0]):
            a, b, c = _corners(vertices, faces, f)
            winding += _solid_angle(a - y, b - y, c - y)
        sign = wp.where(winding > _HALF * _FULL, -_ONE, _ONE)
    a, b, c = _corners(vertices, faces, face)
    normal = wp.normalize(wp.cross(b - a, c - a))
    if distance > on:
        if wp.min(share) > _ZERO:  # above a face: its own normal keeps all digits at any distance
            normal = sign * wp.where(wp.dot(normal, gap) < _ZERO, -normal, normal)
        else:
            normal = sign * gap / distance
    distance_out[p] = sign * distance
    face_out[p] = face
    barycentric_out[p] = share
    normal_out[p] = normal


def nearest_on_mesh(vertices: np.ndarray, faces: np.ndarray, x: np.ndarray) -> NearestPoints:
    """Find the nearest point of a closed triangle mesh to each of several query points.

    The mesh need not be convex. The result is exact up to rounding in double precision. If several points of the mesh
    are equally near, any of these points is returned. For query points on the surface, at distance zero, the normal is
    the normal of a face.

    Args:
        vertices: Positions of the vertices of the mesh [m], shape (k, 3).
        faces: Indices of the vertices of each face, counter-clockwise seen from outside, shape (m, 3), int.
        x: Query points [m], shape (n, 3).
    """
    used = vertices[np.unique(faces)]
    lower, upper = used.min(axis=0), used.max(axis=0)
    center, size = (lower + upper) / 2.0, float((upper - lower).max())
    reach = 2.0 * float(np.linalg.norm(upper - lower) + np.abs(x - center).max(initial=0.0))

    cpu = warp_device("cpu")

    def array(values: np.ndarray, dtype: type) -> wp.array:
        return wp.array(values, dtype=dtype, device=cpu)

    mesh = wp.Mesh(
        array(vertices - center, wp.vec3f), array(faces.reshape(-1), int), support_winding_number=True
    )  # fmt: skip
    exact = [array(vertices - center, _vec3), array(faces, _vec3i)]
    inputs = [mesh.id, *exact, reach, _CLOSE * size, _SLACK * reach, _ON * size, array(x - center, _vec3)]
    outputs = [wp.empty(len(x), dtype=t, device=cpu) for t in (_scalar, int, _vec3, _vec3)]
    launch(nearest_kernel, len(x), inputs, outputs, cpu)
    return NearestPoints(*(a.numpy() for a in outputs))
