"""Symmetries of a mesh: the rotations and reflections about its centre that map the mesh onto itself.

A symmetry is determined by the images of two vertices that are not in line with the centre. A vertex and its image have
the same distance from the centre and the same angular defect: a full turn minus the angles of the faces around the
vertex. The defect does not depend on the division of flat parts into triangles. Two vertices are chosen for which few
other vertices have the same distance and defect. So there are few candidates for a symmetry, and each candidate is
tested on vertices and on points of faces. This method finds every axis of rotation, of any order.
"""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from warpbots.contact.distance import surface_distance

if TYPE_CHECKING:
    import trimesh

__all__ = ["subgroups", "symmetries"]

_SAME = 1e-5
"""Largest distance from the mesh of images of vertices and points, relative to the extent of the mesh [1]."""

_AS_POINTED = 2e-5
"""Largest difference of the defects of vertices that count as images of each other [rad]."""

_APART = 0.2
"""Least sine of the angle at the centre between the two vertices whose images are used [1]."""

_MOST = 1 << 22
"""Largest number of pairs of possible images; beyond it, only exchanges and reversals of axes are tested."""

_TURN = 1e-5
"""Difference from a full turn, or between directions, that counts as rounding [1]."""

_FEW = 12
"""Number of vertices whose images are tested first for a candidate, and least number in later tests."""

_TRIED = 300_000, 10_000
"""Number of images of vertices, and of points of faces, that are tested over all candidates."""


def symmetries(mesh: "trimesh.Trimesh") -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal matrices that map a mesh onto itself, with the centre of its surface as the origin.

    The first matrix is the identity.

    If too many vertices are alike, the function finds only matrices that permute and reverse either the coordinate axes
    or the principal axes of the mesh, whichever gives more symmetries.

    Returns:
        The matrices, which form a group, shape (n, 3, 3), and the centre of the surface [m], shape (3,).
    """
    faces = mesh.triangles_center
    center = mesh.area_faces @ faces / mesh.area
    candidates = _of_two_vertices(mesh, center)
    if candidates is not None:
        return _verified(mesh, center, candidates), center
    principal = np.linalg.svd(faces - center, full_matrices=False)[2]
    return max((_verified(mesh, center, _of_axes(axes)) for axes in (np.eye(3), principal)), key=len), center


def subgroups(group: np.ndarray) -> list[np.ndarray]:
    """List a group of orthogonal matrices and those subgroups that map its main axis to itself, largest first.

    The main axis is the axis with the most rotations. If it has k rotations, each divisor m of k gives a subgroup,
    whose elements rotate a direction perpendicular to the axis by multiples of 2 pi / m.
    """
    axis, k = _main_axis(group)
    if k == 1:
        return [group]
    keeps = group[np.abs(np.abs(np.einsum("i,nij,j->n", axis, group, axis)) - 1.0) < _TURN]
    planes = [g for g in keeps if np.linalg.det(g) * (axis @ g @ axis) < 0.0]
    across = _mirrored(planes[0], axis) if planes else np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    images = keeps @ across
    turns = np.arctan2(np.cross(across, images) @ axis, images @ across) / (2.0 * np.pi)
    of_turns = [keeps[np.abs(m * turns - np.round(m * turns)) < m * _TURN] for m in range(1, k + 1) if k % m == 0]
    return sorted([group, keeps, *of_turns], key=len, reverse=True)


def _main_axis(group: np.ndarray) -> tuple[np.ndarray, int]:
    """Axis with the most rotations in a group, and the number of these rotations, counting the identity."""
    turns = group[(np.linalg.det(group) > 0.0) & (np.trace(group, axis1=1, axis2=2) < 3.0 - _TURN)]
    if not len(turns):
        return np.eye(3)[2], 1
    axes = np.linalg.eigh(turns + np.swapaxes(turns, 1, 2))[1][:, :, 2]
    alike = np.abs(axes @ axes.T) > 1.0 - _TURN
    most = np.argmax(alike.sum(axis=1))
    return axes[most], int(alike[most].sum()) + 1


def _mirrored(g: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Unit vector perpendicular to `axis` that `g` leaves unchanged; `g` must reverse another such direction."""
    two = np.eye(3) - np.outer(axis, axis)
    return np.linalg.svd(two @ (g + np.eye(3)) @ two)[0][:, 0]


def _of_axes(axes: np.ndarray) -> np.ndarray:
    """The 48 matrices that permute and reverse the given axes, which are the rows of `axes`."""
    orders, signs = itertools.permutations(range(3)), list(itertools.product((1.0, -1.0), repeat=3))
    return np.array([axes.T @ (np.array(s)[:, None] * axes[list(order)]) for order in orders for s in signs])


def _of_two_vertices(mesh: "trimesh.Trimesh", center: np.ndarray) -> np.ndarray | None:
    """Candidates for symmetries: matrices that map two chosen vertices to vertices of the same distance and defect.

    The result is None if too many vertices are alike.
    """
    mesh = mesh.copy()
    mesh.merge_vertices()
    x, reach = mesh.vertices.view(np.ndarray) - center, _SAME * mesh.scale
    radius, defect = np.linalg.norm(x, axis=1), mesh.vertex_defects
    far = radius > _APART * radius.max()
    x, radius, defect = x[far], radius[far], defect[far]
    cells = np.round(np.column_stack([radius / (4.0 * reach), defect / (4.0 * _AS_POINTED)]))
    _, some, counts = np.unique(cells, axis=0, return_index=True, return_counts=True)
    few = some[np.argsort(counts, kind="stable")[:_FEW]]
    alike = [(np.abs(radius - radius[i]) < 2.0 * reach) & (np.abs(defect - defect[i]) < _AS_POINTED) for i in few]
    alike.sort(key=np.count_nonzero)
    first = x[alike[0]]
    for second in (x[k] for k in [*alike, np.full(len(x), True)]):
        sine = np.linalg.norm(np.cross(first[0], second), axis=1)
        b = second[np.argmax(sine)]
        if sine.max() > _APART * np.linalg.norm(first[0]) * np.linalg.norm(b):
            break
    if len(first) * len(second) > _MOST:
        return None
    between = np.linalg.norm(first[:, None] - second, axis=2)
    i, j = np.nonzero(np.abs(between - np.linalg.norm(first[0] - b)) < 4.0 * reach)
    own, images = _frames(first[:1], b[None])[0], _frames(first[i], second[j])
    signed = np.stack([np.eye(3), np.diag([1.0, 1.0, -1.0])])
    return (images[:, None] @ signed @ own.T).reshape(-1, 3, 3)


def _frames(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotations whose columns are along a, along the part of b perpendicular to a, and along a × b, shape (n, 3, 3)."""
    z = np.cross(a, b)
    columns = np.stack([a, np.cross(z, a), z], axis=2)
    return columns / np.linalg.norm(columns, axis=1, keepdims=True)


def _verified(mesh: "trimesh.Trimesh", center: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Those candidates that map vertices to vertices and points of faces to the surface; the first is the identity."""
    from scipy.spatial import cKDTree

    corners, reach = mesh.vertices - center, _SAME * mesh.scale
    tree = cKDTree(corners)
    for tried in (_FEW * len(candidates), _TRIED[0]):
        some = _spaced(corners, max(_FEW, tried // max(1, len(candidates))))
        off = tree.query(some @ np.swapaxes(candidates, 1, 2), distance_upper_bound=reach)[0].max(axis=1)
        candidates = candidates[off < reach]
    some = _spaced(mesh.triangles_center - center, max(_FEW // 4, _TRIED[1] // len(candidates)))
    vertices, faces = mesh.vertices.view(np.ndarray), mesh.faces.view(np.ndarray)
    some = some[surface_distance(vertices, faces, some + center) < reach]  # on needles it is less accurate than that
    images = some @ np.swapaxes(candidates, 1, 2) + center
    off = surface_distance(vertices, faces, images.reshape(-1, 3))
    kept = candidates[off.reshape(len(candidates), -1).max(axis=1, initial=0.0) < reach]
    kept = kept[np.argsort(-np.trace(kept, axis1=1, axis2=2), kind="stable")]
    kept[0] = np.eye(3)
    return kept


def _spaced(x: np.ndarray, count: int) -> np.ndarray:
    """At most `count` evenly spaced rows of an array."""
    return x[:: -(-len(x) // count)]
