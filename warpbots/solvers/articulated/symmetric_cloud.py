"""Contact points spread over a mesh with the symmetry of the mesh: else what is symmetric would turn as it lands.

Of a mesh those symmetries are found that exchange axes or their signs, about the centre of its box or its surface: the
48 of a cube and all of their subgroups. Points are taken from a random sequence on the surface; each brings its
images, if all of them keep their distance from one another and from the points before.
"""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from warpbots.contact.distance import signed_distance
from warpbots.scene import TriangleMesh

if TYPE_CHECKING:
    import trimesh

__all__ = ["spread", "symmetries"]

_SAME = 1e-5
"""Distance within which images of vertices and points are on the mesh, in its extent [1]."""

_PROBES = 300
"""Most vertices, and faces, whose images are compared."""

_TRIALS = 30
"""Points that are tried for each that is wanted."""

_CLOSER = (1.0, 0.3, 0.1, 0.03)
"""Factors of the distance that are tried until most of the points are found [1]."""

_DENSITY = 0.6
"""Points of a pattern that is full, times the square of their distance, per area [1]."""


def symmetries(mesh: "trimesh.Trimesh") -> tuple[np.ndarray, int, np.ndarray]:
    """Matrices that map a mesh onto itself about a centre, the identity first.

    They are a group of signed permutations of the axes of the mesh, or of its principal axes, whichever has more.

    Returns:
        The matrices, shape (n, 3, 3), how many of them, from the first on, change signs alone, and the centre [m].
    """
    center = mesh.bounds.mean(axis=0)
    faces = mesh.triangles_center
    principal = np.linalg.svd(faces - mesh.area_faces @ faces / mesh.area, full_matrices=False)[2]
    found = [_of_axes(mesh, center, axes) for axes in (np.eye(3), principal)]
    return *max(found, key=lambda of: len(of[0])), center


def _of_axes(mesh: "trimesh.Trimesh", center: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, int]:
    """Those that permute and reverse these axes, the rows of a matrix, and how many of them only reverse."""
    from scipy.spatial import cKDTree

    corners, faces = mesh.vertices - center, mesh.triangles_center - center
    tree, reach = cKDTree(corners), _SAME * mesh.scale
    corners, faces = (x[:: len(x) // _PROBES + 1] for x in (corners, faces))
    permutations = [np.eye(3)[list(order)] for order in itertools.permutations(range(3))]
    signed = [
        axes.T @ (np.array(s)[:, None] * p) @ axes for p in permutations for s in itertools.product((1, -1), repeat=3)
    ]
    likely = [k for k, g in enumerate(signed) if tree.query(corners @ g.T)[0].max() < reach]
    images = np.array([faces @ signed[k].T + center for k in likely])
    surface = TriangleMesh(mesh.vertices, mesh.faces)
    off = np.abs(signed_distance(surface, images.reshape(-1, 3))).reshape(len(likely), -1).max(axis=1)
    kept = [k for k, far in zip(likely, off, strict=True) if far < reach]
    return np.array([signed[k] for k in kept]), sum(k < 8 for k in kept)


def spread(mesh: "trimesh.Trimesh", count: int) -> np.ndarray:
    """About `count` points evenly over a mesh, always the same, symmetric where it is, shape (n, 3).

    Args:
        mesh: The mesh.
        count: How many points are wanted; there may be a few less. A symmetry with more images than half of them is
            left out.
    """
    import trimesh

    group, flips, center = symmetries(mesh)
    if len(group) > count / 2:
        group = group[:flips]
    if not 1 < len(group) <= count / 2:
        return np.array(trimesh.sample.sample_surface_even(mesh, count, seed=0)[0])
    trials = trimesh.sample.sample_surface(mesh, _TRIALS * count, seed=0)[0]
    for closer in _CLOSER:  # a plate that is thinner than points are apart has images of them on its other face
        points = _with_images(trials, group, center, count, closer * np.sqrt(_DENSITY * mesh.area / count))
        if 2 * len(points) > count:
            return points
    return np.array(trimesh.sample.sample_surface_even(mesh, count, seed=0)[0])


def _with_images(trials: np.ndarray, group: np.ndarray, center: np.ndarray, count: int, apart: float) -> np.ndarray:
    """Those of some points that keep their distance [m] from one another and from all images, with the images."""
    points = np.zeros((0, 3))
    for p in trials:
        images = center + (p - center) @ np.swapaxes(group, 1, 2)
        between = np.linalg.norm(images[1:] - images[0], axis=1).min()
        if between > apart and (np.linalg.norm(points - p, axis=1) > apart).all():
            points = np.concatenate([points, images])
            if len(points) + len(group) > count:
                break
    return points
