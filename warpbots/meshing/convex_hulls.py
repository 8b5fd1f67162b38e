"""Convex hulls of points, and convex meshes with fewer vertices."""

from typing import Any

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import SceneError, TriangleMesh

__all__ = ["convex_hull", "with_fewer_vertices"]

_CONVEX = 1e-6
"""Largest excess volume of the convex hull of a mesh that is convex, divided by the volume of the mesh [1]."""


def convex_hull(points: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and faces (counter-clockwise seen from outside) of the convex hull of points; None if the hull is flat.

    Qhull's facets are divided into triangles. If the vertices of a triangle are almost collinear, the normal of the
    triangle is unreliable, and its orientation follows from the neighbouring triangles. If Qhull has merged so many
    facets that the surface is not closed, the points are perturbed by rounding errors (option QJ).
    """
    import trimesh
    from scipy.spatial import ConvexHull, QhullError

    try:
        plain = trimesh.convex.convex_hull(points)
        hull = np.asarray(plain.vertices), np.asarray(plain.faces)
        if _closed(*hull):
            return hull
        for options in ("QbB Pp Qt", "QbB Pp QJ"):
            found = ConvexHull(points, qhull_options=options)
            hull = _compact(points, _oriented(found))
            if _closed(*hull):
                return hull
    except (QhullError, ValueError):
        pass
    return None


def _closed(vertices: np.ndarray, faces: np.ndarray) -> bool:
    try:
        return TriangleMesh(vertices, faces).volume > 0.0
    except SceneError:
        return False


def _oriented(hull: Any) -> np.ndarray:
    """Triangles of a Qhull hull.

    The largest is oriented by its normal, all others consistently with their neighbours.
    """
    faces = hull.simplices.copy()
    a, b, c = (hull.points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    first = int(np.linalg.norm(normals, axis=1).argmax())
    if normals[first] @ hull.equations[first, :3] < 0.0:
        faces[first] = faces[first, ::-1]
    seen, stack = {first}, [first]
    while stack:
        one = stack.pop()
        edges = {(faces[one, k], faces[one, k - 2]) for k in range(3)}
        for other in hull.neighbors[one]:
            if other not in seen:
                if any((faces[other, k], faces[other, k - 2]) in edges for k in range(3)):
                    faces[other] = faces[other, ::-1]
                seen.add(other)
                stack.append(other)
    return faces


def _compact(points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    used, inverse = np.unique(faces, return_inverse=True)
    return points[used], inverse.reshape(faces.shape)


def with_fewer_vertices(mesh: TriangleMesh, error: float) -> TriangleMesh:
    """The convex hull of some of the vertices of a convex mesh; no point of the mesh is farther than `error` from it.

    Qhull adds vertices to the hull, beginning with those that are farthest outside, until all others are within the
    error of the planes of its facets (option W; Barber, Dobkin & Huhdanpaa 1996). At sharp tips the distance from the
    hull is larger than from the planes, so vertices that are too far from it are added. The hull is inside the mesh. A
    mesh that is not convex, or whose hull Qhull does not find, is returned as it is.

    Args:
        mesh: A closed mesh.
        error: Largest distance of a point of the mesh from the hull [m].
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        if ConvexHull(mesh.vertices).volume > (1.0 + _CONVEX) * mesh.volume:
            return mesh
        kept = ConvexHull(mesh.vertices, qhull_options=f"Qt W{error:.17g}").vertices
    except QhullError:
        return mesh
    while True:
        hull = convex_hull(mesh.vertices[kept])
        if hull is None:
            return mesh
        fewer = TriangleMesh(*hull)
        far = np.flatnonzero(signed_distance(fewer, mesh.vertices) > error)
        if not len(far):
            return fewer
        kept = np.union1d(kept, far)
