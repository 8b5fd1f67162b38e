"""Contact points spread over a mesh with the symmetry of the mesh.

Without this symmetry, a symmetric body would rotate as it lands.

Points come from a random sequence on the surface. A point is accepted together with its images under the symmetries if
all of these points are far enough from one another and from all accepted points. Most points have as many images as
there are symmetries (120 for a ball that is refined from an icosahedron). Points on axes of rotation and on mirror
planes have fewer images; they fill up the number of points, and a small cloud consists only of such points. The
function uses the largest subgroup of the symmetries with which the wanted number of points is reached.

Points on the two faces of a plate may be close together. So the required distance applies to the six-dimensional points
(x, s n), where n is the normal and s is half of the required distance; then points with opposite normals are always far
enough apart.
"""

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from warpbots.solvers.articulated.mesh_symmetry import subgroups, symmetries

if TYPE_CHECKING:
    import trimesh

__all__ = ["spread"]

_TRIALS = 60
"""Number of points that are tried for each point wanted, counting a point and its images once."""

_DENSITY = 0.6
"""Number of points of a full pattern times the square of their distance, per area [1]."""

_EMPTY = 2.0
"""Distance from all points above which a place counts as empty [distance of points]."""

_FULL = 0.75
"""Fraction of the wanted points that suffices to use a pattern, though a smaller group may give more points [1]."""

_LARGEST = 120
"""Largest number of symmetries for which points on axes and mirrors are tried: that of an icosahedron."""

_SAME = 1e-6
"""Distance within which images count as one point [extent of the mesh]."""

_KEPT = 256
"""Number of clouds that stay in the process: simulations of one robot are often built many times."""

_known: OrderedDict[bytes, np.ndarray] = OrderedDict()


def spread(mesh: "trimesh.Trimesh", count: int) -> np.ndarray:
    """Spread about `count` points evenly over a mesh, reproducibly and with the symmetry of the mesh.

    Args:
        mesh: The mesh.
        count: Number of points wanted; the result may have slightly fewer points. Symmetries that need more points are
            left out.

    Returns:
        The points [m], shape (n, 3).
    """
    parts = (mesh.vertices, mesh.faces, mesh.face_normals, np.array([len(mesh.vertices), count]))
    key = hashlib.sha256(b"".join(part.tobytes() for part in parts)).digest()
    points = _known.pop(key, None)
    if points is None:
        points = _spread(mesh, count)
    _known[key] = points
    while len(_known) > _KEPT:
        _known.popitem(last=False)
    return points.copy()


def _spread(mesh: "trimesh.Trimesh", count: int) -> np.ndarray:
    import trimesh
    from scipy.spatial import cKDTree

    group, center = symmetries(mesh)
    groups = [g for g in subgroups(group) if 1 < len(g) <= max(count / 2, _LARGEST)]
    apart = np.sqrt(_DENSITY * mesh.area / count)
    mesh = mesh.copy().apply_translation(-center)
    x, face = trimesh.sample.sample_surface(mesh, _TRIALS * count, seed=0)[:2]
    scale = np.repeat([1.0, apart / 2.0], 3)
    everywhere = np.hstack([x, mesh.face_normals[face]])
    best, least = None, np.inf
    for own in groups:
        points = _with_images(_trials(mesh, own, count, everywhere), own, count, apart, _SAME * mesh.scale)
        empty = cKDTree(points * scale).query(everywhere * scale)[0].max() if 2 * len(points) > count else np.inf
        if empty < least or (empty < _EMPTY * apart and len(points) >= _FULL * count):
            best, least = center + points[:, :3], empty
        if empty < _EMPTY * apart and len(points) >= _FULL * count:
            break
    if best is not None:
        return best
    mesh.apply_translation(center)
    return np.array(trimesh.sample.sample_surface_even(mesh, count, seed=0)[0])


def _trials(mesh: "trimesh.Trimesh", group: np.ndarray, count: int, everywhere: np.ndarray) -> np.ndarray:
    """Trial points for a group of symmetries, with normals, shape (n, 6).

    Trial points are on axes of rotation, then on mirror planes and, if `count` allows as many images, everywhere.

    Args:
        mesh: The mesh, with its centre at the origin.
        group: Symmetries of the mesh, shape (n_symmetries, 3, 3).
        count: Number of points wanted.
        everywhere: Random points on the mesh and the normals at these points, shape (n_random, 6).
    """
    n = len(group)
    some = everywhere[: _TRIALS * count // n if 2 * n <= count else 0]
    if n > _LARGEST:
        return some
    return np.concatenate([some, _on_axes(mesh, group), _on_mirrors(mesh, group, _TRIALS * count // n)])


def _on_axes(mesh: "trimesh.Trimesh", group: np.ndarray) -> np.ndarray:
    """Points at which axes of rotation cross the surface [m], and the normals at these points [1], shape (n, 6)."""
    turns = group[(np.linalg.det(group) > 0.0) & (np.trace(group, axis1=1, axis2=2) < 3.0 - 1e-5)]
    axes = np.linalg.eigh(turns + np.swapaxes(turns, 1, 2))[1][:, :, 2]
    a, b, c = np.moveaxis(mesh.triangles, 1, 0)
    normal = np.cross(b - a, c - a)
    along = axes @ normal.T
    across = np.abs(along) > 1e-9 * np.linalg.norm(normal, axis=1)
    x = axes[:, None] * np.divide(np.einsum("ni,ni->n", normal, a), along, out=0.0 * along, where=across)[..., None]
    size = np.einsum("ni,ni->n", normal, normal)
    inside = across
    for p, q in ((a, b), (b, c), (c, a)):
        inside = inside & (np.einsum("ni,mni->mn", normal, np.cross(q - p, x - p)) >= -1e-9 * size)
    return np.hstack([x[inside], mesh.face_normals[np.nonzero(inside)[1]]])


def _on_mirrors(mesh: "trimesh.Trimesh", group: np.ndarray, count: int) -> np.ndarray:
    """Random points at which mirror planes cut the surface [m], and the normals at these points [1], shape (n, 6)."""
    from trimesh.intersections import mesh_plane

    mirrors = group[np.abs(np.trace(group, axis1=1, axis2=2) - 1.0) + np.abs(np.linalg.det(group) + 1.0) < 1e-5]
    sections = [mesh_plane(mesh, np.linalg.eigh(g + g.T)[1][:, 0], np.zeros(3), return_faces=True) for g in mirrors]
    if not sum(len(face) for _, face in sections):
        return np.zeros((0, 6))
    lines, faces = (np.concatenate(parts) for parts in zip(*sections, strict=True))
    length = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(lines), count, p=length / length.sum())
    a, b = np.moveaxis(lines[chosen], 1, 0)
    return np.hstack([a + rng.random((count, 1)) * (b - a), mesh.face_normals[faces[chosen]]])


def _with_images(trials: np.ndarray, group: np.ndarray, count: int, apart: float, same: float) -> np.ndarray:
    """Accept trial points one after the other, each together with its images under the symmetries.

    A trial point is accepted if all its images are far enough from one another and from all accepted points.

    Args:
        trials: Points and normals to try, shape (n, 6).
        group: Symmetries about the origin, shape (n_symmetries, 3, 3).
        count: Largest number of points to accept.
        apart: Smallest distance between two points [m].
        same: Distance within which two images count as one point [m].
    """
    scale = np.repeat([1.0, apart / 2.0], 3)
    points = np.zeros((0, 6))
    for p in trials * scale:
        if np.linalg.norm(points - p, axis=1).min(initial=np.inf) <= apart:
            continue
        images = (p.reshape(2, 3) @ np.swapaxes(group, 1, 2)).reshape(-1, 6)
        if np.linalg.norm(images[1:, :3] - p[:3], axis=1).min() < same:
            equal = np.linalg.norm(images[:, None, :3] - images[:, :3], axis=2) < same
            images = images[equal.argmax(axis=1) == np.arange(len(images))]
        between = np.linalg.norm(images[1:] - p, axis=1).min(initial=np.inf)
        if between > apart and len(points) + len(images) <= count:
            points = np.concatenate([points, images])
        if len(points) == count:
            break
    return points / scale
